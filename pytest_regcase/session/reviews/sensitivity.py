"""Can a case fail? Its expectations, under its own simulations, against agents that are known to be bad.

The shipped behaviours of the demo are run over a small built-in task: of the case, its expectations and
simulations count, not its replies. Never prints.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import Literal

from pytest_regcase.agents import clock
from pytest_regcase.case_files import LoadedCase, LoadedSimulation, load_case, load_simulations, write_new_case
from pytest_regcase.config import AgentConfig, Project, RegcaseConfig
from pytest_regcase.demo.behaviours import BEHAVIOURS
from pytest_regcase.errors import MachineryError, UsageRefused
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord
from pytest_regcase.records.case import Handover, Observation, RegressionCase, ReplySource, TaskSource
from pytest_regcase.records.expected_recovery import ExpectedRecovery, Tightening
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.records.wire import NotApplicable
from pytest_regcase.records.words import EXPECTATIONS, OPTIONAL_EXPECTATIONS, Expectation, HypothesisClass
from pytest_regcase.session.attempt import run_attempt
from pytest_regcase.session.project.rules_in_force import expected_recovery
from pytest_regcase.session.reviews.catalogue import entry_of
from pytest_regcase.supplier.inject import declares_for

Told = Callable[[int, int | None, str], None]
Status = Literal["caught", "let-pass", "not-asked", "not-provoked", "not-shown"]

LONGEST_WATCH_SECONDS = 600.0
"""By the agent's clock. A case that gives an agent more time to stop cannot be watched to its end here."""
REAL_SECONDS = 8.0
"""About how long a hanging agent is watched where the machine can give it a faster clock."""
AT_ONCE = 6
"""Most of an attempt is waiting."""
WIRE = "openai-chat"
"""What the demo's agents speak, and they do not stream."""

_BUDGETS: tuple[Expectation, ...] = ("max_retries", "stop_within_seconds")
_ID = "regcase-sensitivity"
_FAILING_STEP = 3
_COMMANDS = ("cat sums.py", "sed -i 's/a - b/a + b/' sums.py")
"""The second mends one bug of two, so that there is partial work at the fault."""
_SUMS = "def add(a, b):\n    return a - b\n\n\ndef half(a):\n    return a\n"


@dataclass(frozen=True)
class Gap:
    """Something bad that one simulation brought out, and that the case lets pass."""

    simulation: str
    expectation: Expectation
    why: str
    """What in the case lets it pass."""


@dataclass(frozen=True)
class Tried:
    """How one behaviour came out over the case's simulations."""

    behaviour: str
    does: str
    """In one sentence."""
    status: Status
    caught_by: tuple[Expectation, ...] = ()
    gaps: tuple[Gap, ...] = ()
    troubles: tuple[str, ...] = ()
    """Attempts that proved nothing, with the reason."""


@dataclass(frozen=True)
class Sensitivity:
    """What the case's expectations notice."""

    case_id: str
    simulations: tuple[str, ...]
    """Those that were run."""
    left_out: Mapping[str, str]
    """Simulations of the case that mean nothing to these agents, with the reason."""
    watched_seconds: float
    """How long an agent had, after the first faulted request and by its own clock."""
    time_scale: float
    tried: tuple[Tried, ...]
    attempts: int

    @property
    def let_pass(self) -> tuple[Tried, ...]:
        """The behaviours that the case would call recovered."""
        return tuple(each for each in self.tried if each.status == "let-pass")

    @property
    def not_shown(self) -> tuple[Tried, ...]:
        """The behaviours of which nothing is known, since no attempt proved anything."""
        return tuple(each for each in self.tried if each.status == "not-shown")


def sensitivity_of(project: Project, loaded: LoadedCase, *, tell: Told | None = None) -> Sensitivity:
    """Run every shipped behaviour under every simulation of the case, and compare what breaks with what is asked.

    Raises:
        UsageRefused: the case names no simulation that these agents can meet.
        UnknownName: it names one that does not exist.
    """
    known = load_simulations(project)
    chosen, left_out = _chosen(loaded, known)
    asked = expected_recovery(project, loaded.case, None)
    stop = min(asked.stop_within_seconds, LONGEST_WATCH_SECONDS)
    watched = stop + max(1.0, stop / 20)
    with tempfile.TemporaryDirectory(prefix="regcase-sensitivity-") as temporary:
        root = Path(temporary)
        scale = _time_scale(root, watched)
        runs = _Runs(
            project=Project(root=root, config=RegcaseConfig(agents=_agents(watched, stop, scale))),
            loaded=_built_in_case(root, loaded.case.expected_recovery, asked),
            simulations={name: known[name] for name in chosen},
            snapshot=SessionSnapshot(
                session_id=_ID,
                folder=str(root),
                ledger_id="none",
                agent_digests=dict.fromkeys(BEHAVIOURS, "sha256:" + "0" * 64),
            ),
        )
        records = runs.all(tell)
    tried = [
        _tried(name, project, loaded, known, {each: records[name, each] for each in chosen}) for name in BEHAVIOURS
    ]
    return Sensitivity(
        case_id=loaded.id,
        simulations=tuple(chosen),
        left_out=left_out,
        watched_seconds=watched,
        time_scale=scale,
        tried=tuple(tried),
        attempts=len(records),
    )


def _chosen(loaded: LoadedCase, known: Mapping[str, LoadedSimulation]) -> tuple[tuple[str, ...], dict[str, str]]:
    chosen: list[str] = []
    left_out: dict[str, str] = {}
    for name in loaded.case.simulation_ids:
        if name not in known:
            left_out[name] = "there is no such simulation"
        elif WIRE not in entry_of(known[name].simulation).whole:
            declared = declares_for(known[name].simulation)(WIRE, False)
            left_out[name] = declared.reason if isinstance(declared, NotApplicable) else "it does not apply"
        else:
            chosen.append(name)
    if not chosen:
        told = "; ".join(f"{name}: {why}" for name, why in left_out.items()) or "it names none"
        raise UsageRefused(
            f"Couldn't try the expectations of {loaded.id}: it has no simulation to try them under ({told}).\n"
            "Add one to a hypothesis of the case; `regcase simulations` lists them."
        )
    return tuple(chosen), left_out


def _time_scale(root: Path, watched_seconds: float) -> float:
    """Return how many times as fast an agent's clock can run here; 1 where this machine cannot give it one."""
    if watched_seconds <= REAL_SECONDS:
        return 1
    try:
        clock.library(root / ".regcase" / "clock")
    except (UsageRefused, MachineryError, OSError):
        return 1
    return watched_seconds / REAL_SECONDS


def _agents(watched_seconds: float, stop_seconds: float, scale: float) -> dict[str, AgentConfig]:
    # Nine tries of the most patient one fit into the time to stop, so that it breaks the number alone.
    timeout = max(0.3, min(10.0, stop_seconds / 12))
    words = ("--timeout", f"{timeout:g}", "--task", "{task_file}", "--out", "{out_dir}")
    return {
        name: AgentConfig(
            command=(sys.executable, "-m", "pytest_regcase.demo.behaviours", name, *words),
            env={"OPENAI_BASE_URL": "{openai_base_url}", "OPENAI_API_KEY": "{api_key}"},
            output="{out_dir}",
            deadline_seconds=watched_seconds,
            cap_seconds=watched_seconds + 60,
            time_scale=scale,
        )
        for name in BEHAVIOURS
    }


def _built_in_case(parent: Path, own: ExpectedRecovery, asked: ExpectedRecovery) -> LoadedCase:
    """Write the built-in task with every expectation switched on; budgets are those of the case."""
    switched_on: dict[str, object] = {
        each: True for each in (*EXPECTATIONS, *OPTIONAL_EXPECTATIONS) if each not in _BUDGETS
    }
    case = RegressionCase(
        id=_ID,
        title="a built-in task",
        observation=Observation(
            symptom="none: this is no recorded trial", source_event=_ID, failing_step=_FAILING_STEP
        ),
        task=TaskSource(text_file="recorded/task.txt", work_tree="recorded/work_tree"),
        replies=ReplySource(source="script", file="recorded/script.jsonl"),
        expected_recovery=asked.model_copy(update={**switched_on, "required": (), "when": _no_looser(own, asked)}),
        handover=Handover(owner="regcase check", next_decision="none"),
    )
    lines = [
        {
            "step": step,
            "role": "assistant",
            "tool_calls": [{"id": f"call_{step}", "name": "bash", "arguments": json.dumps({"command": command})}],
        }
        for step, command in enumerate(_COMMANDS, start=1)
    ]
    files = {
        "recorded/task.txt": b"sums.py has two bugs. Fix both, then submit.\n",
        "recorded/script.jsonl": "".join(json.dumps(line) + "\n" for line in lines).encode(),
        "recorded/work_tree/sums.py": _SUMS.encode(),
    }
    write_new_case(parent / _ID, case, files)
    return load_case(parent / _ID / "case.toml")


def _no_looser(own: ExpectedRecovery, asked: ExpectedRecovery) -> dict[HypothesisClass, Tightening]:
    """Return what the case asks of single classes; the project's limits hold for them too."""
    return {
        name: Tightening(
            max_retries=None if each.max_retries is None else min(each.max_retries, asked.max_retries),
            stop_within_seconds=None
            if each.stop_within_seconds is None
            else min(each.stop_within_seconds, asked.stop_within_seconds),
        )
        for name, each in own.when.items()
    }


@dataclass(frozen=True)
class _Runs:
    """What is needed to run one attempt after the other."""

    project: Project
    loaded: LoadedCase
    simulations: Mapping[str, LoadedSimulation]
    snapshot: SessionSnapshot

    def all(self, tell: Told | None) -> dict[tuple[str, str], AttemptRecord]:
        """Run every behaviour under every simulation; return the records by both."""
        keys = [(behaviour, simulation) for behaviour in BEHAVIOURS for simulation in self.simulations]
        records: dict[tuple[str, str], AttemptRecord] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            running = {pool.submit(self._one, *key): key for key in keys}
            try:
                for done in as_completed(running):
                    records[running[done]] = done.result()
                    if tell is not None:
                        tell(len(records), len(keys), " under ".join(running[done]))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return records

    def _one(self, behaviour: str, name: str) -> AttemptRecord:
        simulation = self.simulations[name]
        plan = AttemptPlan(
            key=AttemptKey(case_id=_ID, agent=behaviour, scenario=name),
            kind="simulation",
            hypothesis=simulation.simulation.hypothesis,
        )
        return run_attempt(self.project, self.loaded, simulation, plan, self.snapshot, try_number=0)


def _tried(
    behaviour: str,
    project: Project,
    loaded: LoadedCase,
    known: Mapping[str, LoadedSimulation],
    records: Mapping[str, AttemptRecord],
) -> Tried:
    caught: set[Expectation] = set()
    gaps: list[Gap] = []
    troubles: list[str] = []
    for name, record in records.items():
        # Watched for less time than it has to stop: what was seen until then stands.
        if record.verdict == "inconclusive" and record.reason != "cut-short":
            troubles.append(f"{name}: {record.says}")
            continue
        hypothesis = known[name].simulation.hypothesis
        asked = expected_recovery(project, loaded.case, hypothesis)
        caught |= {each.expectation for each in record.broken if _asks(asked, each.expectation)}
        gaps += _gaps(name, record, asked, ExpectedRecovery().under(hypothesis))
    required = [each for each in gaps if each.expectation not in OPTIONAL_EXPECTATIONS]
    status: Status = "not-shown" if troubles else "not-provoked"
    if caught:
        status = "caught"
    elif gaps:
        status = "let-pass" if required else "not-asked"
    order = (*EXPECTATIONS, *OPTIONAL_EXPECTATIONS)
    return Tried(
        behaviour=behaviour,
        does=" ".join((getdoc(BEHAVIOURS[behaviour]) or "").partition("\n\n")[0].split()),
        status=status,
        caught_by=tuple(sorted(caught, key=order.index)),
        gaps=tuple(gaps),
        troubles=tuple(troubles),
    )


def _asks(expected: ExpectedRecovery, expectation: Expectation) -> bool:
    return getattr(expected, expectation) not in (False, None) or expectation in _BUDGETS


def _gaps(name: str, record: AttemptRecord, asked: ExpectedRecovery, usual: ExpectedRecovery) -> Iterator[Gap]:
    """Yield what broke and is not asked for, and what kept a budget that is wider than the usual one."""
    for finding in record.findings:
        expectation = finding.expectation
        if finding.status == "broken":
            if not _asks(asked, expectation):
                value = "false" if getattr(asked, expectation) is False else "not set"
                yield Gap(name, expectation, f"{expectation} is {value}")
        elif expectation == "max_retries":
            retries = finding.facts.get("retries") or 0
            if usual.max_retries < retries <= asked.max_retries:
                yield Gap(name, expectation, f"max_retries = {asked.max_retries} allows its {retries} retries")
        elif expectation == "stop_within_seconds":
            seconds = finding.facts.get("stopped_seconds") or finding.facts.get("watched_seconds") or 0
            if usual.stop_within_seconds < seconds <= asked.stop_within_seconds:
                why = f"stop_within_seconds = {asked.stop_within_seconds:g} allows its {seconds:.0f} s"
                yield Gap(name, expectation, why)
