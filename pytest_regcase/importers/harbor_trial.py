"""One Harbor trial: what its result says, joined to the conversation that its agent left in the folder.

Field names after harbor 0.26.0 (`models/trial/result.py`, `error_policy.py`, `paths.py`). Must import no importer.

What surprises: an exception and a reward may both be there, and Harbor's own table says for which exceptions the
reward counts (`reward_valid`, in newer files only); where the harness was ended from outside, the result looks
finished and has neither; times of 2025 have no zone, so they name no point in time.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.atif_conversation import AtifConversation, AtifDocument, read_documents
from pytest_regcase.importers.folder_files import folders_in, is_plain_file, name_below
from pytest_regcase.importers.reading import (
    digest_file,
    exception_chain,
    filled,
    mapping,
    moment,
    present,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import ErrorLink, Trial, TrialError
from pytest_regcase.records.words import Expectation, Outcome, RaisedBy, Termination

_PHASES: Final = ("environment_setup", "agent_setup", "agent_execution", "verifier")
_MESSAGE_LIMIT: Final = 2_000
_SHOWN: Final[tuple[Expectation, ...]] = (
    "log_failure",
    "max_retries",
    "stop_within_seconds",
    "no_fabricated_output",
    "mark_failure",
)
"""Not the partial patch: the container is gone afterwards, and Harbor keeps no diff."""
_TRAJECTORY: Final = "trajectory.json"
_TERMINUS_TASK: Final = re.compile(r"\nTask Description:\n(?P<task>.+?)\s*\nCurrent terminal state:", re.DOTALL)


@dataclass(frozen=True)
class JobFacts:
    """What a job says of all its trials."""

    version: str | None
    """Of Harbor itself; recorded for the job only."""
    concurrency: Any
    max_retries: Any


@dataclass(frozen=True)
class TrialFolder:
    """A trial's folder with its result (empty: none was written) and its configuration."""

    place: Path
    result: Mapping[str, Any]
    config: Mapping[str, Any]
    digested: Path
    """The file that the two were read from."""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str | None:
        """Harbor's own name of the trial: the task's, and random letters."""
        return filled(self.result.get("trial_name")) or filled(self.config.get("trial_name"))

    @property
    def task(self) -> str | None:
        """The task's name; an unfinished trial has it at the front of its own."""
        return filled(self.result.get("task_name")) or (self.name or "").rpartition("__")[0] or None

    @property
    def started(self) -> str | None:
        """When it started, as written, with or without a zone: compared within one job only."""
        return filled(self.result.get("started_at"))

    @property
    def task_steps(self) -> list[Mapping[str, Any]]:
        """The steps of a task that has several (`step_results`), each with an agent run of its own."""
        return [mapping(each) for each in sequence(self.result.get("step_results"))]


class HarborEnding:
    """How a trial ended: outcome, termination and error, each from its own field."""

    def __init__(self, folder: TrialFolder) -> None:
        self._folder = folder
        self._result = folder.result
        self.exception = mapping(self._result.get("exception_info"))
        self.failed_task_step: Mapping[str, Any] = {}
        if not self.exception:
            for step in folder.task_steps:
                if mapping(step.get("exception_info")):
                    self.exception, self.failed_task_step = mapping(step["exception_info"]), step
                    break
        self.error_type = filled(self.exception.get("exception_type"))
        self.failed_by_error = bool(self.exception)
        self.rewards = mapping(mapping(self._result.get("verifier_result")).get("rewards"))
        self.reward_is_valid = self._result.get("reward_valid") is not False

    @cached_property
    def phase(self) -> str | None:
        """The phase that failed: the last one that had started by then. A verifier may well run afterwards."""
        holder = self.failed_task_step or self._result
        raised = self.exception.get("occurred_at")
        started = [
            name
            for name in _PHASES
            if (at := mapping(holder.get(name)).get("started_at")) is not None and not _is_later(at, raised)
        ]
        return started[-1] if started else None

    @cached_property
    def outcome(self) -> Outcome:
        """Passed or failed where one reward of 1 or 0 is recorded and Harbor counts it as valid.

        What Harbor's own pass@k leaves out is undetermined here: other values, several rewards, an invalid one.
        """
        values = list(self.rewards.values())
        if len(values) != 1 or not self.reward_is_valid or isinstance(values[0], bool):
            return "undetermined"
        if values[0] not in (0, 1):
            return "undetermined"
        return "passed" if values[0] == 1 else "failed"

    @cached_property
    def termination(self) -> Termination | None:
        """Why it stopped; cut off where neither exception nor verifier's result says that it came to its end."""
        if self.exception:
            return "cancelled" if self.error_type == "CancelledError" else "error"
        if mapping(self._result.get("verifier_result")):
            return "finished"
        not_graded = mapping(self._folder.config.get("verifier")).get("disable") is True
        not_run = self._folder.config.get("install_only") is True
        if (not_graded or not_run) and filled(self._result.get("finished_at")) and self.phase != "verifier":
            return "finished"
        return "cut-off"

    @cached_property
    def error(self) -> TrialError | None:
        """What was raised, as recorded."""
        if not self.exception:
            return None
        traceback = filled(self.exception.get("exception_traceback"))
        chain = exception_chain(traceback)
        message = text(self.exception.get("exception_message"))
        if message is not None and len(message) > _MESSAGE_LIMIT:
            message = message.partition("\n")[0]  # a whole inner traceback and the task's text can follow
        return TrialError(
            type=self.error_type,
            message=message,
            traceback=traceback,
            raised_by=self._raised_by(traceback),
            chain=tuple(ErrorLink(type=kind, message=words) for kind, words in chain),
        )

    def _raised_by(self, traceback: str | None) -> RaisedBy:
        """Say who raised it where phase or frames show it: below Harbor's own model call, or its deadline."""
        if self.phase in ("environment_setup", "verifier"):
            return "environment" if self.phase == "environment_setup" else "grader"
        if self.error_type == "AgentTimeoutError":
            return "harness"
        last_part = (traceback or "").rpartition("Traceback (most recent call last)")[2]
        _, below, deeper = last_part.rpartition("/harbor/llms/")
        return "supplier" if below and 'File "' in deeper else "unknown"

    def labels(self) -> Iterator[str]:
        """Yield Harbor's own words: clues, not causes."""
        for name, value in self.rewards.items():
            yield f"harbor:reward:{name}={value}"
        if "reward_valid" in self._result:
            yield f"harbor:reward_valid={str(self._result['reward_valid']).lower()}"
        if self.termination != "finished" and self.phase is not None:
            yield f"harbor:phase:{self.phase}"
        episodes = whole(mapping(mapping(self._result.get("agent_result")).get("metadata")).get("n_episodes"))
        if episodes is not None:
            yield f"harbor:n_episodes={episodes}"


def _is_later(at: Any, than: Any) -> bool:
    """Compare two times of one file, both with a zone or both without; False where they cannot be compared."""
    try:
        return datetime.fromisoformat(at) > datetime.fromisoformat(than)
    except (TypeError, ValueError):
        return False


def read_trial(format_name: str, folder: TrialFolder, job: JobFacts | None, *, attempt: int | None) -> Trial:
    """Return the trial, with the conversation of its agent where it left one in a form that we read."""
    result, config = folder.result, folder.config
    ending = HarborEnding(folder)
    documents, notes = _documents(folder, ending)
    conversation = AtifConversation(documents) if documents else None
    lines = conversation.lines if conversation is not None else []
    due = (
        ending.termination in ("error", "cut-off", "cancelled")
        and ending.phase in (None, "agent_execution")
        and reply_was_due(lines)
    )
    agent, model = mapping(result.get("agent_info")), mapping(mapping(result.get("agent_info")).get("model_info"))
    version = filled(agent.get("version"))
    event_id = filled(result.get("id"))
    graded = ending.outcome != "undetermined"
    # Work that was graded, validly or not, was handed in to the grader, and nothing in the log shows what it was.
    can_show = _SHOWN if ending.rewards else (*_SHOWN, "no_partial_submission")
    if not result:
        notes = (*notes, "result: the trial was ended before Harbor wrote one")
    elif ending.termination == "cut-off":
        notes = (*notes, "how it ended: the result has neither an exception nor a verifier's result")
    return Trial(
        format=format_name,
        harness=f"harbor {job.version}" if job is not None and job.version else "harbor",
        run_id=filled(config.get("job_id")),
        task_id=folder.task,
        attempt=attempt,
        event_id=event_id or digest_of([result, config]),
        event_id_from="recorded" if event_id else "digest",
        revision=version if version != "unknown" else None,
        model=filled(mapping(config.get("agent")).get("model_name")) or filled(model.get("name")),
        started_at=moment(result.get("started_at")),
        ended_at=moment(result.get("finished_at")),
        task_text=_task_text(conversation) if conversation is not None else None,
        steps=tuple(lines),
        failing_step=failing_step(lines, next_reply_failed=due),
        termination=ending.termination,
        outcome=ending.outcome,
        outcome_from="log" if graded else None,
        error=ending.error,
        labels=tuple(ending.labels()),
        conditions=_conditions(folder, job),
        model_requests=conversation.model_requests if conversation is not None else None,
        can_show=can_show,
        source_digests={
            name_below(each, folder.place): digest_file(each)
            for each in (folder.digested, *(each.path for each in documents))
        },
        missing=(*folder.notes, *notes, *(conversation.missing if conversation is not None else ())),
    )


def _documents(folder: TrialFolder, ending: HarborEnding) -> tuple[tuple[AtifDocument, ...], tuple[str, ...]]:
    """Return the agent's trajectory, and what is to be said about it: a lost one does not lose the trial."""
    place, notes = folder.place / "agent", []
    steps = folder.task_steps
    if steps:
        chosen = ending.failed_task_step or steps[-1]
        name = filled(chosen.get("step_name")) or ""
        place = folder.place / "steps" / (name if name in _names(folder.place / "steps") else "") / "agent"
        notes.append(f"the agent runs of {len(steps) - 1} other task steps: the conversation is that of {name!r}")
    path = place / _TRAJECTORY
    if not is_plain_file(path):
        notes.append(
            "conversation: the agent left no trajectory in ATIF (its own logs may lie in the folder `agent`)"
        )
        return (), tuple(notes)
    try:
        documents = read_documents(path)
    except ImportRefused as refusal:
        notes.append(f"conversation: {refusal.text.splitlines()[0].partition(': ')[2]}")
        return (), tuple(notes)
    if _is_rendered(documents[0]):
        notes.append(
            "the replies word for word: Harbor's Terminus writes them down in a form of its own, so what is"
            " replayed is not what the model sent"
        )
    return documents, tuple(notes)


def _task_text(conversation: AtifConversation) -> str | None:
    """Return what the agent was asked; Terminus puts its own instructions and the terminal around it."""
    said = conversation.task_text
    asked = _TERMINUS_TASK.search(said or "")
    return asked["task"] if asked is not None and (conversation.agent or "").startswith("terminus") else said


def _names(place: Path) -> list[str]:
    return [each.name for each in folders_in(place)] if place.is_dir() else []


def _is_rendered(document: AtifDocument) -> bool:
    """Say whether Terminus wrote analysis, plan and commands of each reply instead of its text."""
    agent = filled(mapping(document.value.get("agent")).get("name")) or ""
    messages = (text(mapping(step).get("message")) for step in sequence(document.value.get("steps")))
    return agent.startswith("terminus") and any((said or "").startswith("Analysis: ") for said in messages)


def _conditions(folder: TrialFolder, job: JobFacts | None) -> dict[str, Any]:
    """Return limits, time-outs and how the agent was called, as recorded; never its environment variables."""
    config = folder.config
    agent = mapping(config.get("agent"))
    kept = {
        "time_outs": {
            **{name: value for name, value in config.items() if name.endswith("_multiplier")},
            **{f"agent_{name}": value for name, value in agent.items() if name.endswith("_timeout_sec")},
        },
        "agent": {
            "name": mapping(folder.result.get("agent_info")).get("name") or agent.get("name"),
            "kwargs": agent.get("kwargs"),
        },
        "environment": {"type": mapping(config.get("environment")).get("type")},
        "task": {
            "source": folder.result.get("source"),
            "checksum": folder.result.get("task_checksum"),
            "git_commit_id": mapping(folder.result.get("task_id")).get("git_commit_id"),
        },
        "job": {"n_concurrent_trials": job.concurrency, "max_retries": job.max_retries} if job else None,
        "started_at_without_zone": folder.started if moment(folder.started) is None else None,
    }
    found: dict[str, Any] = present(kept)
    return found
