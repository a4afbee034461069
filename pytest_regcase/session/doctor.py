"""Two attempts with a built-in task that say how an agent meets our supplier, before any case depends on it.

One is answered, in the other the first request never is. What is reported was seen on the wire.
"""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_regcase.agents.revision import agent_digest
from pytest_regcase.case_files import LoadedCase, load_case, load_simulations, write_new_case
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord, Finding
from pytest_regcase.records.case import Handover, Observation, RegressionCase, TaskSource
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.session.attempt import run_attempt
from pytest_regcase.session.plan import agent_config
from pytest_regcase.supplier.wire_log import read_wire_log

SILENT = "deadline-no-answer-v1"
TASK = "Create a file named answer.txt that holds the word regcase, then finish.\n"
README = "This folder belongs to `regcase doctor`. Whatever is done here is thrown away.\n"


@dataclass(frozen=True)
class Diagnosis:
    """What two attempts showed. Times are seconds; None: not seen."""

    agent: str
    answered: AttemptRecord
    silent: AttemptRecord
    reached: bool
    """The agent's first request came in at our port."""
    wire: str | None
    streaming: bool | None
    startup_seconds: float | None
    client_timeout_seconds: float | None
    """How long the agent's client held the unanswered request before it let go."""
    retries: int | None
    stopped_seconds: float | None
    proposed_stop_within_seconds: int | None
    shows: tuple[str, ...]
    cannot_show: tuple[Finding, ...]
    folder: Path
    notice: str | None
    """What is to be known about the agent's revision."""


def diagnose(project: Project, name: str) -> Diagnosis:
    """Run the two attempts and read them.

    Raises:
        UnknownName: the agent is not configured.
    """
    config = agent_config(project, name)
    now = datetime.now(UTC)
    folder = project.root / ".regcase" / "doctor" / now.strftime("%Y%m%dT%H%M%SZ")
    folder.mkdir(parents=True, exist_ok=True)
    revision = agent_digest(project.root, name, config, exclude=(*project.config.cases, *project.config.fixtures))
    snapshot = SessionSnapshot(
        session_id=f"doctor-{now.strftime('%Y%m%dT%H%M%SZ')}",
        folder=str(folder),
        ledger_id="none",
        agent=name,
        agent_digests={name: revision.digest},
    )
    silent_simulation = load_simulations(project)[SILENT]
    with tempfile.TemporaryDirectory(prefix="regcase-doctor-") as temporary:
        loaded = _built_in_case(Path(temporary), config.deadline_seconds)
        answered = run_attempt(project, loaded, None, _plan(name, "control"), snapshot, try_number=0)
        silent = run_attempt(project, loaded, silent_simulation, _plan(name, SILENT), snapshot, try_number=0)
    return _read(project, name, answered, silent, folder, revision.notice)


def _built_in_case(parent: Path, deadline_seconds: float) -> LoadedCase:
    case = RegressionCase(
        id="regcase-doctor",
        title="a built-in task",
        observation=Observation(symptom="none: this is no recorded trial", source_event="regcase-doctor"),
        task=TaskSource(text_file="recorded/task.txt", work_tree="recorded/work_tree"),
        # The widest budget that the agent's deadline leaves: the doctor measures, it does not judge.
        expected_recovery=ExpectedRecovery(stop_within_seconds=deadline_seconds * 0.99, max_retries=1000, when={}),
        handover=Handover(owner="regcase doctor", next_decision="none"),
    )
    files = {"recorded/task.txt": TASK.encode(), "recorded/work_tree/README.txt": README.encode()}
    write_new_case(parent / "regcase-doctor", case, files)
    return load_case(parent / "regcase-doctor" / "case.toml")


def _plan(agent: str, scenario: str) -> AttemptPlan:
    key = AttemptKey(case_id="regcase-doctor", agent=agent, scenario=scenario)
    if scenario == "control":
        return AttemptPlan(key=key, kind="control")
    return AttemptPlan(key=key, kind="simulation", hypothesis="deadline")


def _read(
    project: Project,
    name: str,
    answered: AttemptRecord,
    silent: AttemptRecord,
    folder: Path,
    notice: str | None,
) -> Diagnosis:
    events = read_wire_log(project.root / silent.folder / "wire.jsonl") if silent.folder is not None else []
    first = next((event for event in events if event["event"] == "request" and not event.get("side_call")), None)
    held = None
    if first is not None:
        # Only a close by the peer says something about the client's own time-out.
        held = next(
            (
                event.get("held_seconds")
                for event in events
                if event["event"] == "closed" and event.get("conn") == first["conn"] and event.get("by") == "peer"
            ),
            None,
        )
    gave_up = silent.exit.ended_by is None and silent.wire.stopped_seconds is not None
    stopped = silent.wire.stopped_seconds if gave_up else None
    return Diagnosis(
        agent=name,
        answered=answered,
        silent=silent,
        reached=first is not None,
        wire=None if first is None else first.get("wire"),
        streaming=None if first is None else first.get("streaming"),
        startup_seconds=None if first is None else first.get("t"),
        client_timeout_seconds=held if gave_up else None,
        retries=silent.wire.retries if first is not None else None,
        stopped_seconds=stopped,
        # Half as much again, in steps of five seconds: a loaded machine must not turn a good agent red.
        proposed_stop_within_seconds=None if stopped is None else max(5, int(-(-stopped * 1.5 // 5) * 5)),
        shows=tuple(each.expectation for each in silent.findings if each.status in ("kept", "broken")),
        cannot_show=tuple(each for each in silent.findings if each.status == "not-observable"),
        folder=folder,
        notice=notice,
    )
