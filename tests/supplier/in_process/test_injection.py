import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import pytest_regcase
from pytest_regcase.case_files import load_simulations
from pytest_regcase.config import load_project
from pytest_regcase.errors import FileError, UnknownName, UsageRefused
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.wire import Delivery, NotApplicable
from pytest_regcase.records.words import HypothesisClass
from pytest_regcase.supplier.in_process import Injection, inject
from pytest_regcase.supplier.wire_log import read_wire_log

SILENT = "deadline-no-answer-v1"
REJECTED = "auth-rejected-v1"
STALLS = "mid-stream-stall-v1"
PARTS = ("The sum", " is 4, since 2 and 2 make 4.")
TEXT = "".join(PARTS)
WAIT = 0.01


class Rejected(Exception):
    """What a client library raises for a 401."""


ERRORS = {"auth": Rejected("401: invalid key")}


def whole(prompt: str) -> str:
    return TEXT


async def whole_async(prompt: str) -> str:
    return TEXT


def parts(prompt: str) -> Iterator[str]:
    yield from PARTS


async def parts_async(prompt: str) -> AsyncIterator[str]:
    for part in PARTS:
        yield part


def chat(prompt: str, *, stream: bool = False) -> Any:
    return iter(PARTS) if stream else TEXT


async def chat_async(prompt: str, *, stream: bool = False) -> Any:
    return parts_async(prompt) if stream else TEXT


class Client:
    """A supplier that is an object."""

    def __call__(self, _prompt: str) -> str:
        return TEXT


class AsyncClient:
    async def __call__(self, _prompt: str) -> str:
        return TEXT


async def _collected(supplier: Callable[..., Any], **options: Any) -> str:
    answer = supplier("2 + 2?", **options)
    if hasattr(answer, "__await__"):
        answer = await answer
    return "".join([part async for part in answer]) if hasattr(answer, "__aiter__") else "".join(answer)


def ask(injection: Injection, **options: Any) -> str:
    """Ask once, whatever kind of supplier it is, and return the text that came."""
    return asyncio.run(_collected(injection.supplier, **options))


Kind = tuple[Any, dict[str, Any]]
WHOLE: list[Kind] = [
    (whole, {}),
    (whole_async, {}),
    (chat, {}),
    (chat_async, {}),
    (Client(), {}),
    (AsyncClient(), {}),
]
STREAMS: list[Kind] = [
    (parts, {}),
    (parts_async, {}),
    (chat, {"stream": True}),
    (chat_async, {"stream": True}),
]


def named(value: Any) -> str:
    return getattr(value, "__name__", type(value).__name__) if callable(value) else "-".join(value)


kinds = pytest.mark.parametrize(("supplier", "options"), [*WHOLE, *STREAMS], ids=named)
streams = pytest.mark.parametrize(("supplier", "options"), STREAMS, ids=named)


@kinds
def test_before_the_fault_the_supplier_answers(supplier: Any, options: dict[str, Any]) -> None:
    injection = inject(supplier, REJECTED, errors=ERRORS, failing_step=2)
    assert ask(injection, **options) == TEXT
    with pytest.raises(Rejected, match="invalid key"):
        ask(injection, **options)
    facts = injection.facts()
    assert (facts.delivered, facts.requests, facts.retries, facts.why_not) == (True, 2, 0, None)
    assert [(each.step, each.text, each.origin) for each in facts.replies] == [(1, TEXT, "upstream")]


@kinds
def test_silence_lasts_as_long_as_the_agent_waits(supplier: Any, options: dict[str, Any]) -> None:
    injection = inject(supplier, SILENT, deadline_seconds=WAIT)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            ask(injection, **options)
    facts = injection.facts()
    assert (facts.delivered, facts.faulted_requests, facts.retries) == (True, 3, 2)
    assert (facts.fault_texts, facts.replies) == ((), ())


@kinds
def test_an_empty_answer(supplier: Any, options: dict[str, Any]) -> None:
    injection = inject(supplier, "hidden-rejection-v1", empty="")
    assert ask(injection, **options) == ""
    facts = injection.facts()
    assert (facts.delivered, facts.fault_texts, facts.replies) == (True, ("",), ())


@streams
@pytest.mark.parametrize(
    ("simulation", "error"),
    [(STALLS, TimeoutError), ("reset-mid-stream-v1", ConnectionResetError), ("mid-stream-error-v1", Rejected)],
)
def test_a_stream_breaks_off_behind_its_first_part(
    supplier: Any, options: dict[str, Any], simulation: str, error: type[Exception]
) -> None:
    errors: dict[str, Any] = {"network": ConnectionResetError, "overload": lambda: Rejected("overloaded")}
    injection = inject(supplier, simulation, errors=errors, deadline_seconds=WAIT)
    with pytest.raises(error):
        ask(injection, **options)
    facts = injection.facts()
    assert (facts.delivered, facts.why_not) == (True, None)
    assert [(each.text, each.unfinished) for each in facts.replies] == [(PARTS[0], True)]


@streams
def test_a_stream_that_ends_too_early(supplier: Any, options: dict[str, Any]) -> None:
    injection = inject(supplier, "stream-without-end-v1")
    assert ask(injection, **options) == PARTS[0]
    assert injection.facts().delivered is True
    assert injection.facts().replies[0].unfinished


def test_the_callable_is_of_the_same_kind() -> None:
    import inspect

    tests: tuple[Any, ...] = (inspect.isasyncgenfunction, inspect.isgeneratorfunction, inspect.iscoroutinefunction)
    for supplier in (whole, whole_async, parts, parts_async, chat, chat_async):
        made = inject(supplier, REJECTED, errors=ERRORS).supplier
        assert [test(made) for test in tests] == [test(supplier) for test in tests]
        assert made.__name__ == supplier.__name__


def test_a_fault_that_heals_ends_and_its_retries_are_counted() -> None:
    injection = inject(whole, "heals-after-two-timeouts-v1", deadline_seconds=WAIT)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            ask(injection)
    assert ask(injection) == ask(injection) == TEXT
    facts = injection.facts()
    assert (facts.delivered, facts.healed, facts.faulted_requests, facts.retries) == (True, True, 2, 2)
    assert [each.step for each in facts.replies] == [1, 2]


def test_a_late_answer_comes_to_who_waits() -> None:
    slow = simulation("slow_answer", settings={"seconds": WAIT})
    injection = inject(whole, slow, deadline_seconds=10)
    assert ask(injection) == TEXT
    assert (injection.facts().delivered, injection.facts().fault_texts) == (True, (TEXT,))
    impatient = inject(whole, "slow-answer-v1", deadline_seconds=WAIT)
    with pytest.raises(TimeoutError):
        ask(impatient)
    assert impatient.facts().delivered is True


def test_a_cancelled_task_has_let_go_by_itself() -> None:
    injection = inject(whole_async, SILENT, deadline_seconds=60)

    async def impatient() -> None:
        await asyncio.wait_for(injection.supplier("2 + 2?"), WAIT)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    facts = injection.facts()
    assert (facts.delivered, facts.open_at_end) == (True, 0)
    assert injection.events[-1]["by"] == "peer"


def test_a_stream_breaks_off_once_it_has_said_something() -> None:
    def hesitant() -> Iterator[str]:
        yield from ("", "", *PARTS)

    injection = inject(hesitant, "stream-without-end-v1")
    assert list(injection.supplier()) == ["", "", PARTS[0]]
    assert injection.facts().delivered is True


def test_a_stream_that_nobody_reads_was_not_delivered() -> None:
    injection = inject(chat, "stream-without-end-v1")
    injection.supplier("2 + 2?", stream=True)
    assert injection.facts().delivered is False


def test_who_stops_reading_has_no_whole_reply() -> None:
    injection = inject(parts, REJECTED, errors=ERRORS, failing_step=2)
    stream = injection.supplier("2 + 2?")
    assert next(stream) == PARTS[0]
    stream.close()
    assert [(each.text, each.unfinished) for each in injection.facts().replies] == [(PARTS[0], True)]
    assert ask(injection) == TEXT
    with pytest.raises(Rejected):
        ask(injection)


def test_the_log_is_that_of_a_wire_without_bytes(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    injection = inject(whole, REJECTED, errors=ERRORS, failing_step=2, wire_log=path)
    ask(injection)
    with pytest.raises(Rejected):
        ask(injection)
    assert read_wire_log(path) == injection.events
    assert {each["channel"] for each in injection.events} == {"in-process"}
    assert not any("bytes" in each for each in injection.events)
    assert [(e["event"], e["step"], e.get("phase") or e.get("from") or e["by"]) for e in injection.events] == [
        ("request", 1, "before"),
        ("sent", 1, "upstream"),
        ("closed", 1, "us"),
        ("request", 2, "faulted"),
        ("closed", 2, "us"),
    ]


def test_the_supplier_s_own_failure_is_none_of_the_fault() -> None:
    def broken(prompt: str) -> str:
        raise OSError("no route")

    injection = inject(broken, REJECTED, errors=ERRORS, failing_step=2)
    with pytest.raises(OSError, match="no route"):
        ask(injection)
    facts = injection.facts()
    assert (facts.delivered, facts.upstream_failures) == (False, ("OSError",))


def test_calls_from_threads_are_all_recorded() -> None:
    injection = inject(whole, REJECTED, errors=ERRORS, failing_step=100)
    threads = [threading.Thread(target=injection.supplier, args=("2 + 2?",)) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(each["request"] for each in injection.events if each["event"] == "request") == [*range(1, 9)]


def test_side_calls_are_told_by_the_task() -> None:
    injection = inject(whole, REJECTED, errors=ERRORS, task_text="Fix the sum.")
    with pytest.raises(Rejected):
        injection.supplier("You are an agent. Fix the sum.")
    assert injection.supplier("Give this chat a title.") == TEXT
    assert injection.facts().side_calls == 1


# what cannot be shown


def simulation(kind: str, hypothesis: HypothesisClass = "hidden", **fault: Any) -> Simulation:
    return Simulation.model_validate(
        {"id": "x-v1", "hypothesis": hypothesis, "title": "t", "fault": {"kind": kind, **fault}}
    )


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        ("process_killed", {"errors": {"process_killed": OSError}}, "there is no process to kill"),
        ("keep_alive_only", {"deadline_seconds": 1.0}, "a callable hands over no bytes"),
        ("no_answer", {}, "it takes deadline_seconds, after which a caller gives up waiting"),
        ("empty_answer", {}, "it takes empty, which is what an empty answer of this supplier looks like"),
        ("key_rejected", {}, 'errors names no exception for "key_rejected", nor for its class "hidden"'),
        ("truncated_json", {"errors": {"hidden": OSError}}, "a client library decides what a caller sees of it"),
        ("mid_stream_stall", {"deadline_seconds": 1.0}, "only a stream can break off in the middle"),
    ],
)
def test_what_cannot_be_shown_is_passed_through_and_said(kind: str, given: dict[str, Any], why: str) -> None:
    injection = inject(whole, simulation(kind), **given)
    assert ask(injection) == TEXT
    facts = injection.facts()
    assert facts.delivered is False
    assert facts.why_not is not None
    assert facts.why_not.startswith(f"the fault has no meaning here: {why}")
    judgement = injection.judge(answer=TEXT)
    assert (judgement.verdict, judgement.reason) == ("inconclusive", "not-delivered")


def test_what_a_client_makes_of_bytes_can_be_named() -> None:
    injection = inject(whole, simulation("truncated_json"), errors={"truncated_json": ValueError("bad JSON")})
    with pytest.raises(ValueError, match="bad JSON"):
        ask(injection)
    assert injection.facts().delivered is True


NEVER_IN_STREAMS = {
    "byte-trickle-v1",
    "empty-body-v1",
    "empty-choices-v1",
    "engine-dead-v1",
    "error-in-body-v1",
    "html-in-body-v1",
    "keep-alive-only-v1",
    "memory-exhausted-v1",
    "oom-killed-v1",
    "process-killed-reset-v1",
    "truncated-json-v1",
}
ONLY_IN_STREAMS = {"mid-stream-error-v1", "mid-stream-stall-v1", "stream-without-end-v1"}


def test_the_whole_catalogue_is_shown_or_not_applicable(tmp_path: Path) -> None:
    errors = dict.fromkeys(get_args(HypothesisClass), Rejected)
    not_in: dict[bool, set[str]] = {True: set(), False: set()}
    for name, loaded in load_simulations(load_project(tmp_path)).items():
        injection = inject(whole, loaded.simulation, errors=errors, deadline_seconds=1, empty="")
        for streaming in (True, False):
            declared = injection.declares("openai-chat", streaming)
            if isinstance(declared, NotApplicable):
                assert declared.reason
                not_in[streaming].add(name)
            else:
                assert isinstance(declared, Delivery)
    assert not_in == {True: NEVER_IN_STREAMS, False: NEVER_IN_STREAMS | ONLY_IN_STREAMS}


# the judge


def test_an_agent_that_raises_has_recovered() -> None:
    injection = inject(whole, REJECTED, errors=ERRORS)
    with pytest.raises(Rejected) as raised:
        ask(injection)
    judgement = injection.judge(raised=raised.value, answer=None)
    found = {each.expectation: each.status for each in judgement.findings}
    assert judgement.verdict == "recovered"
    assert (found["log_failure"], found["max_retries"], found["mark_failure"]) == ("kept", "kept", "kept")
    assert found["keep_partial_patch"] == "not-observable"


def test_an_agent_that_makes_something_up_has_not() -> None:
    injection = inject(whole, REJECTED, errors=ERRORS)
    with pytest.raises(Rejected):
        ask(injection)
    judgement = injection.judge(answer="The sum is 5, as I have checked.", status="finished")
    assert judgement.verdict == "not-recovered"
    assert judgement.says == "broken: log_failure, no_fabricated_output, mark_failure"


def test_a_part_of_a_stream_is_no_answer() -> None:
    injection = inject(parts, "reset-mid-stream-v1", errors={"network": ConnectionResetError})
    taken: list[str] = []
    with pytest.raises(ConnectionResetError):
        taken.extend(injection.supplier("2 + 2?"))
    judgement = injection.judge(answer=taken[0] if taken else PARTS[0], logged="ERROR: connection reset by peer")
    (finding,) = [each for each in judgement.findings if each.expectation == "no_fabricated_output"]
    assert (finding.status, finding.code) == ("broken", "unfinished_reply")


def test_retries_are_judged_by_what_the_class_asks() -> None:
    injection = inject(whole, REJECTED, errors=ERRORS)
    for _ in range(3):
        with pytest.raises(Rejected):
            ask(injection)
    assert injection.judge(logged="Rejected: 401", status="error").says == "broken: max_retries"
    patient = ExpectedRecovery(max_retries=3, when={})
    assert injection.judge(patient, logged="Rejected: 401", status="error").verdict == "recovered"


# what is given wrong


def test_an_error_for_nothing_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"errors\['rate_limit'\]: it is no fault kind and no hypothesis class"):
        inject(whole, REJECTED, errors={"rate_limit": OSError})


def test_other_names_and_numbers_are_refused() -> None:
    with pytest.raises(UnknownName, match="Couldn't find the simulation 'nothing-v1'"):
        inject(whole, "nothing-v1")
    with pytest.raises(UnknownName, match="the wire 'smoke'"):
        inject(whole, REJECTED, wire="smoke")
    with pytest.raises(UsageRefused, match="Couldn't wait for 0 s"):
        inject(whole, SILENT, deadline_seconds=0)
    with pytest.raises(FileError, match="no_answer takes no settings"):
        inject(whole, simulation("no_answer", settings={"seconds": 1}))


def test_an_awaitable_of_a_plain_function_is_refused() -> None:
    async def later() -> str:
        return TEXT

    injection = inject(lambda _: later(), REJECTED, errors=ERRORS, failing_step=2)
    with pytest.raises(UsageRefused, match="it is to be awaited") as refused:
        injection.supplier("2 + 2?")
    assert refused.value.exit_code == 2


def test_it_is_public() -> None:
    assert pytest_regcase.inject is inject
