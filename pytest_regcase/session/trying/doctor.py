"""Two attempts with a built-in task that say how an agent meets our supplier, before any case depends on it.

One is answered, in the other the first request never is. What is reported was seen on the wire.
"""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_regcase.agents import clock
from pytest_regcase.agents.launch import Places
from pytest_regcase.case_files import LoadedCase, load_case, load_simulations, write_new_case, writing
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord, Finding
from pytest_regcase.records.case import Handover, Observation, RegressionCase, TaskSource
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.recovery.agent_clock import clock_of, in_agent_time
from pytest_regcase.session.attempt import run_attempt
from pytest_regcase.session.plan import agent_config
from pytest_regcase.session.revisions.revision import revision_of
from pytest_regcase.session.trying.containers import ContainerFacts, container_facts
from pytest_regcase.supplier.reach import resolve
from pytest_regcase.supplier.wire_log import read_wire_log

SILENT = "deadline-no-answer-v1"
TASK = "Create a file named answer.txt that holds the word regcase, then finish.\n"
LAST_WORDS_BYTES = 4096
LAST_WORDS_LINES = 3
README = "This folder belongs to `regcase doctor`. Whatever is done here is thrown away.\n"


@dataclass(frozen=True)
class Diagnosis:
    """What two attempts showed. Times are seconds of the agent's clock; None: not seen."""

    agent: str
    answered: AttemptRecord
    silent: AttemptRecord
    reached: bool
    """In both runs a model request came in that we can answer."""
    time_scale: float
    """As configured: how many times as fast the agent's clock is to run in the silent run."""
    clock_missed: str | None
    """Why the agent did not get that clock; None: it did, or none was asked for."""
    other_requests: tuple[str, ...]
    """Paths that were asked for besides, each once: other wires, lists of models."""
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
    last_words: tuple[str, ...]
    """The last lines that the agent wrote to stderr in the silent run."""
    containers: ContainerFacts | None
    """None: nothing in the configuration speaks of containers."""
    folder: Path
    notice: str | None
    """What is to be known about the agent's revision."""


def diagnose(project: Project, name: str) -> Diagnosis:
    """Run the two attempts and read them.

    Raises:
        UnknownName: the agent is not configured.
        UsageRefused: its `time_scale`, or the project's `reach`, cannot be had on this machine.
        WriteError: the project's folder takes no files.
    """
    config = agent_config(project, name)
    resolve(project.config.supplier.reach)  # refused before anything runs, as the clock is
    now = datetime.now(UTC)
    folder = project.root / ".regcase" / "doctor" / now.strftime("%Y%m%dT%H%M%SZ")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if config.time_scale != 1:
            # Refused before anything runs; an attempt would have it in its record only.
            clock.library(project.root / ".regcase" / "clock")
    revision = revision_of(project, name)
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
    events = _events(project, silent)
    both = [*_events(project, answered), *events]
    requests = _requests(both)
    first = next((event for event in _requests(events) if _is_model_request(event)), None)
    others = dict.fromkeys(str(event.get("path")) for event in requests if not _is_model_request(event))
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
        reached=first is not None and any(map(_is_model_request, _requests(_events(project, answered)))),
        time_scale=agent_config(project, name).time_scale,
        clock_missed=next((str(event["missed"]) for event in events if "missed" in event), None),
        other_requests=tuple(others),
        wire=None if first is None else first.get("wire"),
        streaming=None if first is None else first.get("streaming"),
        startup_seconds=None if first is None else first.get("t"),
        client_timeout_seconds=held if gave_up else None,
        retries=silent.wire.retries if silent.wire.delivered else None,
        stopped_seconds=stopped,
        # Half as much again, in steps of five seconds: a loaded machine must not turn a good agent red.
        proposed_stop_within_seconds=None if stopped is None else max(5, int(-(-stopped * 1.5 // 5) * 5)),
        # Without the fault there was nothing to show.
        shows=tuple(each.expectation for each in silent.findings if each.status in ("kept", "broken"))
        if silent.wire.delivered
        else (),
        cannot_show=tuple(each for each in silent.findings if each.status == "not-observable"),
        last_words=_last_words(project, silent),
        containers=container_facts(project, agent_config(project, name), (answered, silent), both),
        folder=folder,
        notice=notice,
    )


def _last_words(project: Project, record: AttemptRecord) -> tuple[str, ...]:
    if record.folder is None:
        return ()
    path = Places.below(project.root / record.folder).stderr
    if not path.is_file():
        return ()
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_WORDS_BYTES))
        text = file.read().decode("utf-8", "replace")
    return tuple(line for line in text.splitlines() if line.strip())[-LAST_WORDS_LINES:]


def _events(project: Project, record: AttemptRecord) -> list[dict[str, Any]]:
    if record.folder is None:
        return []
    events = read_wire_log(project.root / record.folder / "wire.jsonl")
    return list(in_agent_time(events, clock_of(events)))


def _requests(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == "request"]


def _is_model_request(event: dict[str, Any]) -> bool:
    # Only what a wire understood has a phase; the rest was refused, or answered with a filler.
    return "phase" in event and not event.get("side_call")
