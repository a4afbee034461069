"""Runs marked functions: parameters for the fixture, the call as an attempt, its record on the report.

The hooks of every process of a gate run that has marked functions. Decides nothing.
"""

import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn
from unittest import TestCase

import pytest

from pytest_regcase.pytest_items.attempt_item import InvalidCaseItem
from pytest_regcase.pytest_items.check_standing import CheckStanding, ShownFailure
from pytest_regcase.pytest_items.function_lists import IS_PART, leave_list
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.pytest_items.hooks import ProjectHooks
from pytest_regcase.pytest_items.marked_functions import (
    HOW,
    MarkedFunctions,
    PlannedFunction,
    WrongMark,
    ids,
    why_nothing,
)
from pytest_regcase.pytest_items.plan_order import put_in_plan_order
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord
from pytest_regcase.reporters.layout import inert_lines
from pytest_regcase.session.attempts.function_attempt import RETURNED, FunctionAttempt, FunctionEnd
from pytest_regcase.session.attempts.function_fixture import RegcaseFixture

_SAYS_LENGTH = 500
_TIMER = "pytest-timeout"


@dataclass(frozen=True)
class AttemptParam:
    """The parameter of one call: which attempt it is. The fixture `regcase` calls `begun`."""

    calls: "FunctionCalls"
    function: PlannedFunction
    plan: AttemptPlan
    place: int
    """In the function's plan."""

    @contextmanager
    def begun(self, item: pytest.Item) -> Iterator[RegcaseFixture]:
        """Begin the attempt; what the function does not take down is taken down here."""
        call = item.stash[_CALL]
        call.standing.skip_when_stopped()
        gate, function = self.calls.gate, self.function
        assert function.entry.loaded is not None
        attempt = FunctionAttempt(
            function.project,
            function.entry.loaded,
            gate.simulation_of(self.plan),
            self.plan,
            function.snapshot,
            try_number=call.standing.next_try(item),
        )
        call.attempt = attempt
        try:
            yield RegcaseFixture(attempt)
        finally:
            call.attempt = None
            attempt.close()


@dataclass(frozen=True)
class NoAttempt:
    """The parameter of a function of which nothing is run."""

    function: PlannedFunction | WrongMark

    def begun(self, _item: pytest.Item) -> NoReturn:
        """Say why."""
        if isinstance(self.function, WrongMark):
            pytest.fail(self.function.text, pytrace=False)
        pytest.skip(why_nothing(self.function))


@dataclass
class _Call:
    """What an item of a marked function has beside it, over all its tries."""

    param: AttemptParam
    standing: CheckStanding
    place: int
    attempt: FunctionAttempt | None = None
    record: AttemptRecord | None = None
    raised: BaseException | None = None
    parts: "_Parts | None" = None
    """While the function runs."""


@dataclass
class _Parts:
    """What the parts of a call (`subtests`) showed: pytest reports each by itself, and lets the function go on."""

    failed: list[BaseException] = field(default_factory=list)

    def end(self, ended: FunctionEnd) -> FunctionEnd:
        """Return how the function ended, which is no better than any part of it."""
        if not self.failed or ended.how not in ("returned", "raised"):
            return ended
        more = f" (and {len(self.failed) - 1} more)" if len(self.failed) > 1 else ""
        return FunctionEnd("own-check", f"a subtest failed: {_says(self.failed[0])}{more}")


_CALL = pytest.StashKey[_Call]()
_WRONG = pytest.StashKey[str]()


@dataclass(frozen=True)
class _OwnLines:
    """Shows an attempt's own lines, and everything else as the item itself does."""

    otherwise: Callable[..., Any]

    def __call__(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if isinstance(excinfo.value, ShownFailure):
            return str(excinfo.value)
        return self.otherwise(excinfo, *args, **kwargs)


class FunctionCalls:
    """The hooks."""

    def __init__(self, gate: GateRun, hooks: ProjectHooks, *, leaves_lists: bool) -> None:
        self.gate = gate
        self._hooks = hooks
        self._leaves_lists = leaves_lists
        self._functions = MarkedFunctions(gate)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Call a marked function once an attempt."""
        definition = metafunc.definition
        if "regcase" not in metafunc.fixturenames or definition.get_closest_marker("regcase") is None:
            return
        function = self._functions.of(definition)
        if isinstance(function, PlannedFunction) and function.plans:
            params = [AttemptParam(self, function, plan, place) for place, plan in enumerate(function.plans)]
            metafunc.parametrize("regcase", params, indirect=True, ids=list(ids(function.plans)))
        else:
            name = "invalid" if isinstance(function, WrongMark) else "not-run"
            metafunc.parametrize("regcase", [NoAttempt(function)], indirect=True, ids=[name])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Tie the items to their attempts, note them before any are left out, and put them in order afterwards."""
        self._hooks.refuse_late_ones()
        nodes: dict[str, AttemptKey] = {}
        for item in items:
            if item.get_closest_marker("regcase") is None or isinstance(item, InvalidCaseItem):
                continue
            call = self._tie(item)
            if call is not None:
                nodes[item.nodeid] = call.param.plan.key
        if self._leaves_lists:
            leave_list(config, self.gate.session_folder, self._functions, nodes)
        self._heal(items)
        yield
        put_in_plan_order(items, _place_in_plan)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail an item whose mark cannot be right."""
        if _WRONG in item.stash:
            pytest.fail(item.stash[_WRONG], pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        """Take the call of a marked function for an attempt: judge how it ended, and show where the check stands.

        The outermost wrapper: what runs async functions is inside.
        """
        call = pyfuncitem.stash.get(_CALL, None)
        if call is None or call.attempt is None:
            return (yield)
        call.record = call.raised = None
        call.parts = parts = _Parts()
        result: Any = None
        ended = RETURNED
        try:
            result = yield
        except (KeyboardInterrupt, pytest.exit.Exception, pytest.skip.Exception, pytest.xfail.Exception):
            raise
        except BaseException as error:
            call.raised = error
            ended = _ended(error, pyfuncitem)
        finally:
            call.parts = None
        ended = parts.end(ended)
        call.record = call.attempt.finish(ended)
        show = call.standing.show_interrupted if ended.how == "interrupted" else call.standing.show
        try:
            show(call.record)
        except ShownFailure as shown:
            raise shown from call.raised
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Hang the attempt's record on the call report; show what the function raised behind its lines."""
        report = yield
        own = item.stash.get(_CALL, None)
        if own is None:
            return report
        # What an agent prints is not to be obeyed by the CI runner that reads our output.
        report.sections = [(name, "\n".join(inert_lines(text))) for name, text in report.sections]
        if call.when != "call":
            return report
        if own.parts is not None:
            setattr(report, IS_PART, True)
            if call.excinfo is not None and report.failed:
                own.parts.failed.append(call.excinfo.value)
            return report
        if own.record is not None:
            report.regcase = self.gate.on_report(own.record)  # type: ignore[attr-defined]
        if own.raised is not None and call.excinfo is not None:
            raised = item.repr_failure(pytest.ExceptionInfo.from_exception(own.raised))
            shown = "\n".join(inert_lines(str(raised)))
            report.sections.append(("what the function raised", shown))
        own.record = own.raised = None
        return report

    def _tie(self, item: pytest.Item) -> _Call | None:
        """Tie an item of a marked function to its attempt; None where it has none."""
        params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        param = params.get("regcase")
        others = sorted(set(params) - {"regcase"})
        if isinstance(param, NoAttempt):
            if isinstance(param.function, WrongMark):
                self._never_again(item)
            return None
        if not isinstance(param, AttemptParam):
            text = f"Couldn't run the function for its case: it has no argument `regcase`.\nWrite {HOW}."
            if isinstance(cls := getattr(item, "cls", None), type) and issubclass(cls, TestCase):
                text += " Methods of unittest.TestCase cannot have one."
            self._refuse(item, text)
            return None
        if others:
            text = (
                f"Couldn't run the function for its case: it has parameters of its own ({', '.join(others)}), and"
                " attempts are counted by the function's name.\nWrite a function for each."
            )
            self._refuse(item, text)
            return None
        assert param.function.entry.loaded is not None
        standing = CheckStanding(self.gate, param.function.entry.loaded, param.plan)
        call = _Call(param, standing, param.place)
        item.stash[_CALL] = call
        # pytest would look through every frame of ours for what is to be shown, which takes longer than the rest.
        item.repr_failure = _OwnLines(item.repr_failure)  # type: ignore[method-assign]
        if self.gate.confirms:
            # Before the user's own: the first one counts.
            item.add_marker(standing.repeats(), append=False)
        return call

    def _refuse(self, item: pytest.Item, text: str) -> None:
        item.stash[_WRONG] = self._functions.refuse(item, text).text
        self._never_again(item)

    def _never_again(self, item: pytest.Item) -> None:
        if self.gate.confirms:
            item.add_marker(pytest.mark.flaky(reruns=0), append=False)

    def _heal(self, items: list[pytest.Item]) -> None:
        """Take out the failing items of cases that have no agent but a function."""
        run = {each.entry.path.resolve() for each in self._functions.planned}
        items[:] = [
            each
            for each in items
            if not (isinstance(each, InvalidCaseItem) and each.agent_is_missing and each.path.resolve() in run)
        ]


def _ended(error: BaseException, item: pytest.Function) -> FunctionEnd:
    """Say what an exception of the function means: its own end, its own check, or somebody else's timer."""
    says = _says(error)
    if isinstance(error, pytest.fail.Exception) and _TIMER in says:
        return FunctionEnd("interrupted", says)
    if _is_own_check(error):
        return FunctionEnd("own-check", says)
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return RETURNED
    if isinstance(error, SystemExit) and not isinstance(error.code, int):
        return FunctionEnd("raised", says, f"{error.code}\n")  # as Python itself writes it
    own = error.__traceback__
    while own is not None and own.tb_frame.f_code.co_filename != str(item.path):
        own = own.tb_next
    lines = traceback.format_exception(type(error), error, own or error.__traceback__)
    return FunctionEnd("raised", says, "".join(lines))


def _says(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip().removesuffix(":")[:_SAYS_LENGTH]


def _is_own_check(error: BaseException) -> bool:
    """Say whether the test itself says that something is wrong, or the settings for warnings here."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_own_check, error.exceptions))
    return isinstance(error, AssertionError | pytest.fail.Exception | Warning)


def _place_in_plan(item: pytest.Item) -> tuple[str, int] | None:
    call = item.stash.get(_CALL, None)
    return None if call is None else (call.param.function.agent, call.place)
