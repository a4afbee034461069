"""A draft says what was seen and never why; the same trial gives the same draft."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from pytest_regcase.case_builder import (
    MESSAGE_LIMIT_CHARACTERS,
    PROPOSED,
    TASK_TEXT,
    TRANSCRIPT,
    TRANSCRIPT_LIMIT_BYTES,
    Counted,
    draft_case,
    propose_id,
    source_event,
    symptom,
    symptom_match,
)
from pytest_regcase.case_files import built_in_folder, load_simulation
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.canonical import digest
from pytest_regcase.records.case import Baseline, Slug
from pytest_regcase.records.occurrence import Occurrence
from pytest_regcase.records.trial import ToolCall, TranscriptLine, Trial, TrialError
from pytest_regcase.records.words import Termination

WHY = re.compile(r"because|caused|due to|out of memory|oom|deadline exceeded|rejected|crash", re.IGNORECASE)


def trial(replies: int = 2, **facts: Any) -> Trial:
    """A trial in which the reply after the last recorded one never came."""
    steps = [TranscriptLine(step=0, role="user", text="Fix calc.py.")]
    for step in range(1, replies + 1):
        call = ToolCall(id=f"c{step}", name="bash", arguments='{"command": "ls"}')
        steps.append(TranscriptLine(step=step, role="assistant", text="x", tool_calls=(call,)))
        steps.append(
            TranscriptLine(
                step=step,
                role="tool",
                tool_call_id=f"c{step}",
                text="y",
                at=datetime(2026, 4, 12, 9, 31, step, tzinfo=UTC),
            )
        )
    defaults: dict[str, Any] = {
        "format": "x",
        "harness": "some-harness 1.0",
        "run_id": "run-7",
        "task_id": "Calc/Fix It",
        "attempt": 2,
        "event_id": "AbCdEfGhIj",
        "event_id_from": "recorded",
        "task_text": "Fix calc.py.",
        "steps": tuple(steps),
        "failing_step": replies + 1,
        "termination": "error",
        "error": TrialError(type="APITimeoutError", message="Request timed out.", raised_by="supplier"),
    }
    return Trial(**{**defaults, **facts})


LOST: dict[str, Any] = {
    "steps": (),
    "failing_step": None,
    "task_text": None,
    "error": None,
    "termination": "cut-off",
}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "model answered step 2, then gave no usable reply at step 3: APITimeoutError was raised"),
        (
            {"error": TrialError()},
            "model answered step 2, then gave no usable reply at step 3: an error was raised",
        ),
        (
            {"termination": "cut-off", "error": None},
            "model answered step 2, then no reply at step 3 is recorded; the record ends there and says nothing of"
            " how the trial ended",
        ),
        (
            {"termination": "cancelled", "error": None},
            "model answered step 2, then no reply at step 3 is recorded; the trial was cancelled there",
        ),
        ({"failing_step": 2}, "model answered step 2, then APITimeoutError was raised at step 2"),
        (
            {"failing_step": 2, "termination": "limit", "error": None, "outcome": "failed", "outcome_from": "log"},
            "model answered step 2, then the trial was stopped by a limit at step 2; scored as failed",
        ),
        (
            {
                "failing_step": 2,
                "termination": "finished",
                "error": None,
                "outcome": "failed",
                "outcome_from": "person",
            },
            "the trial ended after step 2; a person says that it failed",
        ),
        (LOST, "the log was never closed and holds no record of the trial"),
        (
            {"error": TrialError(type="a whole\ntext")},
            "model answered step 2, then gave no usable reply at step 3: an error was raised",
        ),
        (
            {"steps": (), "failing_step": None},
            "APITimeoutError was raised; no conversation is recorded",
        ),
    ],
)  # fmt: skip
def test_the_symptom_says_what_was_seen(facts: dict[str, Any], expected: str) -> None:
    assert symptom(trial(**facts)) == expected


def test_the_symptom_of_a_first_call_names_no_answered_step() -> None:
    assert symptom(trial(replies=0)) == "model gave no usable reply at step 1: APITimeoutError was raised"


terminations = st.sampled_from([None, "finished", "error", "limit", "cut-off", "cancelled", "never-started"])
trials = st.builds(
    lambda replies, termination, shift, error, outcome: trial(
        replies,
        termination=termination,
        failing_step=replies + shift or None,
        error=TrialError(message=error) if error is not None else None,
        outcome=outcome,
        outcome_from=None if outcome == "undetermined" else "log",
    ),
    st.integers(0, 4),
    terminations,
    st.integers(0, 1),
    st.none() | st.text(),
    st.sampled_from(["passed", "failed", "undetermined"]),
)


@given(trials)
def test_no_draft_says_why_or_claims_a_cause(made: Trial) -> None:
    draft = draft_case(made, owner="someone")
    case = draft.case
    assert case.title is not None
    assert case.handover is not None
    for words in (case.symptom, case.title):
        assert WHY.search(words) is None
        assert "\n" not in words
    assert case.cause_status == "unknown"
    assert case.computed_cause_status == "unknown"
    assert case.evidence == ()
    assert case.unresolved_questions
    assert all(question.endswith("?") for question in case.unresolved_questions)
    assert "before assigning a cause" in case.handover.next_decision
    assert case.observation.termination == made.termination
    assert case.observation.outcome == made.outcome
    assert draft_case(made, owner="someone") == draft


@given(trials)
def test_no_reply_is_matched_only_where_none_came(made: Trial) -> None:
    match = symptom_match(made)
    if made.termination is None:
        assert match is None
        return
    assert match is not None
    assert made.termination in match.termination
    assert (match.no_reply is True) == made.no_reply
    if made.termination not in ("error", "cut-off", "cancelled"):
        assert match.no_reply is None


@pytest.mark.parametrize(
    ("termination", "expected"), [("error", ("error",)), ("cut-off", ("error", "cut-off")), ("limit", ("limit",))]
)
def test_a_trial_cut_off_while_it_waited_matches_an_error_there_too(
    termination: Termination, expected: tuple[str, ...]
) -> None:
    match = symptom_match(trial(termination=termination))
    assert match is not None
    assert match.termination == expected


def test_the_error_type_is_matched_as_it_is_written() -> None:
    match = symptom_match(trial(error=TrialError(type="a.B(c)+")))
    assert match is not None
    assert match.error_type is not None
    assert re.search(match.error_type, "x a.B(c)+ y")
    assert not re.search(match.error_type, "aXB(c)+")


def test_the_hypotheses_are_those_of_the_built_in_catalogue() -> None:
    draft = draft_case(trial(), owner="someone")
    assert [(each.id, each.simulations) for each in draft.case.hypotheses] == list(PROPOSED)
    assert {name for name, _ in PROPOSED} == {"deadline", "resource-exhaustion", "auth", "hidden"}
    for name, simulations in PROPOSED:
        for simulation in simulations:
            path = built_in_folder() / f"{simulation}.toml"
            assert load_simulation(path).simulation.hypothesis == name


def test_the_files_hold_the_conversation_and_the_task() -> None:
    draft = draft_case(trial(), owner="someone")
    lines = [json.loads(line) for line in draft.files[TRANSCRIPT].splitlines()]
    assert [(line["step"], line["role"]) for line in lines] == [
        (0, "user"), (1, "assistant"), (1, "tool"), (2, "assistant"), (2, "tool"),
    ]  # fmt: skip
    assert lines[1]["tool_calls"] == [{"arguments": '{"command": "ls"}', "id": "c1", "name": "bash"}]
    assert not any(value in (None, [], {}) for line in lines for value in line.values())
    assert draft.files[TASK_TEXT] == b"Fix calc.py."
    assert draft.case.observation.recorded == {name: digest(content) for name, content in draft.files.items()}
    assert draft.case.replies is not None
    assert draft.case.replies.source == "transcript"
    assert draft.case.observation.observed_at == datetime(2026, 4, 12, 9, 31, 2, tzinfo=UTC)


def test_what_was_not_recorded_is_absent() -> None:
    bare = Trial(format="x", event_id="sha256:" + "ab" * 32, event_id_from="digest", **LOST)
    draft = draft_case(bare, owner="someone")
    assert draft.files == {}
    assert (draft.case.task, draft.case.replies) == (None, None)
    assert set(draft.case.observation.to_sparse()) == {
        "symptom", "source_event", "cause_status", "termination", "outcome",
    }  # fmt: skip
    assert draft.case.observation.source_event == "x#sha256:abababababababab"


def test_a_work_tree_is_named_only_when_there_is_one() -> None:
    task = draft_case(trial(), owner="x", with_work_tree=True).case.task
    assert task is not None
    assert task.work_tree == "recorded/work_tree"
    task = draft_case(trial(), owner="x").case.task
    assert task is not None
    assert task.work_tree is None


def test_the_source_event_tells_equal_tasks_apart() -> None:
    assert source_event(trial()) == "some-harness/run-7/Calc/Fix It/attempt-2#AbCdEfGhIj"
    assert source_event(trial(attempt=3)) != source_event(trial())
    assert source_event(trial(run_id="run-8")) != source_event(trial())


@given(
    st.none() | st.text(max_size=200),
    st.none() | st.integers(0, 99),
    st.text(min_size=1, max_size=80),
    st.booleans(),
)
def test_a_proposed_id_is_always_an_id(
    task_id: str | None, attempt: int | None, event_id: str, digested: bool
) -> None:
    made = trial(
        task_id=task_id, attempt=attempt, event_id=event_id, event_id_from="digest" if digested else "recorded"
    )
    TypeAdapter(Slug).validate_python(propose_id(made))
    assert propose_id(made) == propose_id(made)


def test_a_proposed_id_says_where_the_trial_comes_from() -> None:
    assert propose_id(trial()) == "some-harness-calc-fix-it-2-abcdefgh"


def conversation(*outputs: str, reply: str = "x", role: str = "tool", step: int = 1) -> Trial:
    lines = [
        TranscriptLine(step=0, role="user", text="Fix calc.py."),
        TranscriptLine(step=1, role="assistant", text=reply),
    ]
    lines += [TranscriptLine.model_validate({"step": step, "role": role, "text": each}) for each in outputs]
    return trial(steps=tuple(lines))


def recorded(made: Trial, **options: Any) -> tuple[list[dict[str, Any]], bytes, tuple[str, ...]]:
    draft = draft_case(made, owner="x", **options)
    content = draft.files[TRANSCRIPT]
    return [json.loads(line) for line in content.splitlines()], content, draft.warnings


def test_a_transcript_that_fits_is_whole() -> None:
    output = "x" * (TRANSCRIPT_LIMIT_BYTES - 1000)
    lines, _, warnings = recorded(conversation(output))
    assert lines[-1]["text"] == output
    assert warnings == ()


def test_long_outputs_are_cut_with_the_digest_of_the_whole_and_replies_never() -> None:
    reply, output = "r" * 100_000, "x" * TRANSCRIPT_LIMIT_BYTES
    lines, content, (warning,) = recorded(conversation(output, "short", reply=reply))
    assert len(content) <= TRANSCRIPT_LIMIT_BYTES
    _, kept, cut, short = lines
    assert kept["text"] == reply
    assert short["text"] == "short"
    assert cut["text"].startswith("x" * 32_768 + "\n[cut: ")
    assert digest(output.encode()) in cut["text"]
    assert "of 1 lines are cut" in warning
    assert "--full" in warning


def test_only_as_much_is_cut_as_must_be() -> None:
    lines, content, _ = recorded(conversation(*["y" * 20_000] * 40))
    assert len(content) <= TRANSCRIPT_LIMIT_BYTES
    assert {len(line["text"].partition("\n")[0]) for line in lines[2:]} == {4_096}


def test_results_handed_over_as_a_users_message_are_cut_after_those_of_tools() -> None:
    made = conversation("z" * 300_000, role="user")
    lines, content, _ = recorded(made)
    assert len(content) <= TRANSCRIPT_LIMIT_BYTES
    assert "[cut: 300000 characters" in lines[-1]["text"]


@pytest.mark.parametrize(
    "made",
    [
        conversation(reply="r" * 300_000),
        conversation("p" * 300_000, role="user", step=0),  # what it was asked is no output
    ],
)
def test_what_must_not_be_cut_is_refused_with_its_size(made: Trial) -> None:
    with pytest.raises(UsageRefused, match=r"it has 30\d,\d{3} bytes; allowed: 262,144.*\nSay --full") as caught:
        draft_case(made, owner="x")
    assert caught.value.slug == "transcript-too-large"
    assert draft_case(made, owner="x", full=True).warnings == ()


def test_full_keeps_every_output() -> None:
    output = "x" * TRANSCRIPT_LIMIT_BYTES
    lines, _, warnings = recorded(conversation(output), full=True)
    assert lines[-1]["text"] == output
    assert warnings == ()


def test_what_was_counted_and_attached_goes_into_the_case() -> None:
    counted = Counted(
        Baseline(failures=2, trials=5, kind="all-attempts"), (Occurrence(source_event="other", failing_step=4),)
    )
    draft = draft_case(trial(), owner="x", counted=counted, attached={"recorded/attached/server.log": b"text"})
    assert draft.case.baseline == counted.baseline
    assert draft.case.occurrences == counted.occurrences
    assert draft.files["recorded/attached/server.log"] == b"text"
    assert draft.case.observation.recorded["recorded/attached/server.log"] == digest(b"text")


def test_a_long_message_is_cut_and_said() -> None:
    message = "y" * (MESSAGE_LIMIT_CHARACTERS + 5)
    draft = draft_case(trial(error=TrialError(type="E", message=message)), owner="x")
    assert draft.case.observation.error is not None
    assert draft.case.observation.error.message == message[:MESSAGE_LIMIT_CHARACTERS]
    assert len(draft.warnings) == 1
