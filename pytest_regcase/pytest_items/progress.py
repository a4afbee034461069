"""Says what runs while it runs: which attempt of how many, how long it may take at most, what is left.

On a terminal a line a running case below pytest's own lines; elsewhere plain lines in place of its letters;
nothing under ``-q``. Lives in the process that reports, and knows what every process of the session reports there.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

from pytest_regcase.pytest_items.controller import Controller
from pytest_regcase.pytest_items.function_lists import is_part
from pytest_regcase.pytest_items.live_block import LiveBlock
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan

COLUMNS = 80
LONG_SECONDS = 10.0
"""What took less before needs no line at its start where lines stay."""
_SHORTEST_NAME = 12


@dataclass
class _Case:
    """One case of this session, as far as it got."""

    name: str
    planned: set[AttemptKey] = field(default_factory=set)
    """What is not left out by an option, as far as this process knows."""
    left: Counter[str] = field(default_factory=Counter)
    """Scenario -> how many attempts of it are planned and not over."""
    done: int = 0
    repeated: Counter[AttemptKey] = field(default_factory=Counter)
    """How many tries of an attempt are over: pytest-rerunfailures starts the item anew for each."""
    running: int = 0
    recurred: int = 0

    def plan(self, key: AttemptKey) -> None:
        """Take an attempt for a planned one."""
        if key not in self.planned:
            self.planned.add(key)
            self.left[key.scenario] += 1


@dataclass
class _Running:
    """An attempt that has begun, and is not told of yet."""

    case: _Case
    plan: AttemptPlan
    most_seconds: float | None
    """For so long it may run."""
    began: float
    is_over: bool = False

    @property
    def what(self) -> str:
        """What it is called within its case."""
        key = self.plan.key
        named = f"live run {key.run}" if self.plan.kind == "live" else key.scenario
        tries = self.case.repeated[key]
        return f"{named}, try {tries + 1}" if tries else named


class Durations:
    """How long attempts took in this session, by scenario."""

    def __init__(self) -> None:
        self._seconds: dict[str, tuple[int, float]] = {}

    def add(self, scenario: str, seconds: float) -> None:
        """Note one attempt."""
        number, before = self._seconds.get(scenario, (0, 0.0))
        self._seconds[scenario] = number + 1, before + seconds

    def expected(self, scenario: str) -> float | None:
        """Return the mean of that scenario's attempts, of any case; None before the first one."""
        number, seconds = self._seconds.get(scenario, (0, 0.0))
        return seconds / number if number else None


class Progress:
    """The hooks by which the reporting process follows the attempts."""

    def __init__(
        self, controller: Controller, config: pytest.Config, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._controller = controller
        self._config = config
        self._clock = clock
        self._durations = Durations()
        self._kept: frozenset[AttemptKey] | None = None
        self._running: dict[str, _Running] = {}
        """By node id, in the order in which they began."""
        self._reporter: pytest.TerminalReporter | None = None
        self._block: LiveBlock | None = None

    def pytest_sessionstart(self) -> None:
        """Look at where the reports go: pytest knows that only now."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or self._config.get_verbosity() < 0:
            # Nobody looks, and each of our hooks would be called for every attempt.
            self._config.pluginmanager.unregister(self)
            return
        self._reporter = reporter
        captures = self._config.getoption("capture", "fd") != "no"
        # What a test prints past pytest would stand in the middle of the lines.
        if reporter.isatty and captures and os.environ.get("TERM") != "dumb":
            self._block = LiveBlock(self._config.get_terminal_writer())

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave out what an option deselected. The controller of xdist collects nothing, and does not know it."""
        if self._reporter is None or getattr(self._config.option, "dist", "no") != "no":
            return
        found = (self._controller.planned(each.nodeid) for each in session.items)
        self._kept = frozenset(each.plan.key for each in found if each is not None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> Generator[None]:
        """Say that an attempt begins, and how long it may take."""
        started = self._started(nodeid)
        if started is not None and self._takes_over and self._reporter is not None:
            # The reporter then takes the file's name for written.
            self._reporter.currentfspath = self._config.rootpath / nodeid.partition("::")[0]
        yield
        if started is not None and self._block is None and self._is_long(started.plan):
            self._print(self._line(started))
        self._draw()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        """Note what an attempt showed."""
        yield
        running = self._running.get(report.nodeid)
        if (
            running is not None
            and not running.is_over
            and not is_part(report)
            and (report.when == "call" or not report.passed)
        ):
            told = self._reported(running, report)
            if self._takes_over:
                self._print(told)
        self._draw()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> Generator[None]:
        """Forget what has ended, however it did."""
        yield
        running = self._running.pop(nodeid, None)
        if running is not None and not running.is_over:
            running.case.running -= 1
        self._draw()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> Generator[None, Any, Any]:
        """Print no letter where a line says more; the summary counts as ever."""
        status = yield
        if self._takes_over and report.nodeid in self._running:
            return status[0], "", ""
        return status

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Leave the terminal to the summary."""
        self._stop()

    def pytest_unconfigure(self) -> None:
        """Leave a clean terminal, however the session ended."""
        self._stop()

    def _stop(self) -> None:
        if self._block is not None:
            self._block.close()
        self._block = self._reporter = None

    @property
    def _takes_over(self) -> bool:
        """Whether lines stand in the place of pytest's letters: not on a terminal, nor where it prints lines."""
        return self._reporter is not None and self._block is None and self._config.get_verbosity() == 0

    def _started(self, node_id: str) -> _Running | None:
        if self._reporter is None:
            return None
        found = self._controller.planned(node_id)
        if found is None:
            return None
        plan = found.plan
        case = self._cases.setdefault(_owner(plan.key), _Case(_name(plan.key)))
        case.plan(plan.key)
        case.running += 1
        agent = found.project.config.agents.get(plan.key.agent)
        live = agent.live_cap_seconds if agent is not None and plan.kind == "live" else None
        most = live or (agent.cap_seconds if agent is not None else None)
        self._running[node_id] = running = _Running(case, plan, most, self._clock())
        return running

    @cached_property
    def _cases(self) -> dict[tuple[str, str], _Case]:
        """The cases of this session; asked for when the first attempt begins, and everything is collected."""
        cases: dict[tuple[str, str], _Case] = {}
        for key in self._controller.planned_keys:
            if self._kept is None or key in self._kept:
                cases.setdefault(_owner(key), _Case(_name(key))).plan(key)
        return cases

    def _reported(self, running: _Running, report: pytest.TestReport) -> str:
        """Note the end of an attempt, and return what there is to tell of it."""
        case, plan = running.case, running.plan
        number, what = self._number(case), running.what
        record: dict[str, Any] | None = getattr(report, "regcase", None)
        seconds = self._clock() - running.began
        if record is not None:
            self._durations.add(plan.key.scenario, seconds)
            case.recurred += record["verdict"] == "recurred"
        facts = [f"{_verdict(record) if record is not None else report.outcome} after {_time(seconds)}"]
        if str(report.outcome) == "rerun":  # as pytest-rerunfailures calls it
            case.repeated[plan.key] += 1
            facts.append("another try follows")
        else:
            running.is_over = True
            case.running -= 1
            case.done += 1
            case.left[plan.key.scenario] -= 1
            facts += self._outlook(case)
        return _fitted(case.name, number, what, facts)

    def _number(self, case: _Case) -> str:
        return f"{case.done + case.running} of {len(case.planned)}"

    def _line(self, running: _Running) -> str:
        """Return what is running, for at most how long, and what is left."""
        case, most = running.case, running.most_seconds
        facts = [f"at most {_time(most)}"] if most is not None else []
        facts += self._outlook(case)
        return _fitted(case.name, self._number(case), running.what, facts)

    def _outlook(self, case: _Case) -> list[str]:
        facts = []
        left = [(number, self._durations.expected(name)) for name, number in case.left.items() if number]
        known = [number * seconds for number, seconds in left if seconds is not None]
        if known and len(known) == len(left):
            facts.append(f"about {_time(sum(known))} left")
        if "live" in case.left:
            facts.append(f"{case.recurred} recurred")
        return facts

    def _is_long(self, plan: AttemptPlan) -> bool:
        expected = self._durations.expected(plan.key.scenario)
        return expected is None or expected >= LONG_SECONDS

    def _draw(self) -> None:
        """Draw a line for each case of which an attempt runs: the one that began last."""
        if self._block is not None:
            shown = {id(each.case): each for each in self._running.values() if not each.is_over}
            self._block.draw([self._line(each) for each in shown.values()])

    def _print(self, line: str) -> None:
        """Print a line that stays."""
        if self._reporter is None:
            return
        writer = self._config.get_terminal_writer()
        if writer.width_of_current_line:
            writer.line()
        self._reporter.currentfspath = None
        writer.line(line)
        writer.flush()


def _owner(key: AttemptKey) -> tuple[str, str]:
    return key.case_id, key.agent


def _name(key: AttemptKey) -> str:
    """Return what a line calls a case; one that a test function runs is named with the function."""
    function = key.agent.rpartition("::")[2] if "::" in key.agent else None
    return key.case_id if function is None else f"{key.case_id} ({function})"


def _verdict(record: dict[str, Any]) -> str:
    reason = record.get("reason")
    return f"inconclusive ({reason})" if reason else str(record["verdict"])


def _time(seconds: float) -> str:
    if seconds < 10 and round(seconds, 1) % 1:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _fitted(case: str, number: str, what: str, facts: list[str]) -> str:
    """Return one line of less than 80 columns: names are shortened, facts are not, the time left is left out."""
    tail = f": {number}, " + "{what}" + "".join(f", {each}" for each in facts)
    room = COLUMNS - 1 - len(tail) + len("{what}")
    what = _shortened(what, max(_SHORTEST_NAME, room - min(len(case), _SHORTEST_NAME)))
    case = _shortened(case, max(_SHORTEST_NAME, room - len(what)))
    line = case + tail.replace("{what}", what)
    needed = [each for each in facts if not each.endswith(" left")]
    return line if len(line) < COLUMNS or needed == facts else _fitted(case, number, what, needed)


def _shortened(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 2] + ".."
