"""SWE-agent trajectories (`*.traj`), of 0.x (state as JSON text) and 1.x (state as an object).

Field names after SWE-agent's `types.py` and `agent/agents.py`. Must import no other importer.

What surprises: on most errors and limits the harness itself takes the diff and submits it, as `submitted
(exit_cost)`, so a submission may be half a patch, and the last step is the harness's own words, no reply; the file
is written after every step, so one without an exit status was ended from outside.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.protocol import Peek, only_trial
from pytest_regcase.importers.reading import (
    NotJson,
    digests_of,
    filled,
    mapping,
    parse_json,
    present,
    read_parsed,
    refused,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.importers.swe_agent_conversation import SweAgentConversation
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import ErrorLink, Submission, Trial, TrialError, TrialRef
from pytest_regcase.records.words import EXPECTATIONS, RaisedBy, Termination

_FINISHED: Final = frozenset({"submitted", "exit_command", "exit_forfeit"})
"""The agent ended it: by handing in, by typing `exit`, or by giving up."""
_LIMITS: Final = frozenset({"exit_cost", "exit_total_execution_time"})
_RAISED_BY: Final[Mapping[str, RaisedBy]] = {
    "exit_api": "supplier",
    "exit_environment_error": "environment",
    "early_exit": "environment",
}
_AUTOSUBMITTED: Final = re.compile(r"submitted \((?P<why>.+)\)")
_RAISED: Final = re.compile(r"raised (?P<type>[A-Za-z_]\w*)>\]")
_INSTANCE: Final = re.compile(r"[\w.-]+__[\w.-]+-[0-9]+")


class SweAgent:
    """Importer of SWE-agent trajectories: one trial a file."""

    name = "swe-agent"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is an object with trajectory, history and info, or a demonstration (a history alone)."""
        if peek.kind != "file" or peek.shape.kind != "object":
            return False
        if "trajectory" in peek.shape.keys:
            return peek.whole_shape.keys >= {"trajectory", "history", "info"}
        is_history = "history" in peek.shape.keys and b'"agent"' in peek.head and b'"role"' in peek.head
        return is_history and peek.whole_shape.keys == {"history"}

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file."""
        trial = _read(source)
        if trial.termination == "never-started":
            yield only_trial(trial, why_not="the harness skipped it: it never ran", refusal="never-ran")
            return
        ended = "the agent ended it; a trajectory holds no pass or fail: that needs the benchmark's report"
        yield only_trial(trial, why_not=ended if trial.termination == "finished" else None)

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the trial. Outcome is always undetermined: the format has none."""
        return _read(source)


def _read(source: Path) -> Trial:
    parsed = read_parsed(source)
    document = mapping(parsed.value)
    if not isinstance(document.get("trajectory"), list):
        raise refused(
            "no-trajectory",
            source,
            "it has a history and no trajectory, as a demonstration for the prompt has",
            "Give the trajectory that a run has written.",
        )
    info = mapping(document.get("info"))
    conversation = SweAgentConversation(
        [mapping(each) for each in sequence(document.get("trajectory"))],
        [mapping(each) for each in sequence(document.get("history"))],
    )
    lines = conversation.lines
    ending = _Ending(info, conversation)
    replay = _replay_config(document.get("replay_config"))
    problem = mapping(replay.get("problem_statement"))
    version = filled(info.get("swe_agent_version"))
    due = ending.termination in ("error", "cut-off") and reply_was_due(lines)
    missing = [*parsed.notes, *conversation.missing]
    attempts = len(sequence(document.get("attempts")))
    if attempts > 1:
        missing.append(f"{attempts} attempts within this trial: only the one that the harness chose is read")
    return Trial(
        format=SweAgent.name,
        harness=f"SWE-agent {version}" if version else "SWE-agent",
        task_id=filled(problem.get("id")) or (source.stem if _INSTANCE.fullmatch(source.stem) else None),
        event_id=digest_of(parsed.value),
        event_id_from="digest",
        revision=filled(info.get("swe_agent_hash")),
        model=filled(mapping(mapping(replay.get("agent")).get("model")).get("name")),
        task_text=filled(problem.get("text")) or conversation.task_text,
        steps=tuple(lines),
        failing_step=failing_step(lines, next_reply_failed=due),
        termination=ending.termination,
        error=ending.error,
        labels=(f"swe-agent:exit_status:{ending.status}",) if ending.status else (),
        conditions=_conditions(document, replay),
        submission=ending.submission,
        partial_patch=ending.partial_patch,
        model_requests=whole(mapping(info.get("model_stats")).get("api_calls")),
        can_show=EXPECTATIONS,
        source_digests=digests_of(source),
        missing=tuple(missing),
    )


class _Ending:
    """How a trajectory says that it ended, and whose submission it holds."""

    def __init__(self, info: Mapping[str, Any], conversation: SweAgentConversation) -> None:
        self.status = filled(info.get("exit_status"))
        matched = _AUTOSUBMITTED.fullmatch(self.status or "")
        self._by_harness = matched is not None
        self._why = matched["why"] if matched is not None else self.status
        self._last_words = conversation.last_words
        self._handed_in = filled(info.get("submission"))
        self._last_diff = conversation.last_diff

    @property
    def termination(self) -> Termination:
        if self._why is None:
            return "cut-off"
        if self._why in _FINISHED:
            return "finished"
        if self._why.startswith("skipped"):
            return "never-started"
        return "limit" if self._why in _LIMITS else "error"

    @property
    def error(self) -> TrialError | None:
        """The exit status as the type: the exception's own name stands in the harness's log files only."""
        if self.termination != "error" or self._why is None:
            return None
        raised = _RAISED.search(self._last_words or "")
        return TrialError(
            type=self._why,
            message=self._last_words,
            raised_by=_RAISED_BY.get(self._why, "unknown"),
            chain=(ErrorLink(type=raised["type"]),) if raised is not None else (),
        )

    @property
    def submission(self) -> Submission | None:
        if self._handed_in is None or self.status is None or not self.status.startswith("submitted"):
            return None
        by: Any = "harness" if self._by_harness else "agent"
        if re.search(r"^(?:diff --git |--- )", self._handed_in, re.MULTILINE):
            return Submission(patch=self._handed_in, by=by)
        return Submission(text=self._handed_in, by=by)  # a flag, where the task is to find one

    @property
    def partial_patch(self) -> str | None:
        """The half patch: what the harness submitted by itself, else the last recorded diff of the state."""
        if self._by_harness:
            return self._handed_in
        return self._last_diff if self.termination in ("error", "limit", "cut-off") else None


def _replay_config(value: Any) -> Mapping[str, Any]:
    """Return the run's own configuration: written as JSON within a text."""
    if isinstance(value, str):
        try:
            value = parse_json(value.encode("utf-8")).value
        except NotJson:
            return {}
    return mapping(value)


def _conditions(document: Mapping[str, Any], replay: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits, retries and what the model was called with, as recorded; never its key."""
    model = {
        name: value
        for name, value in mapping(mapping(replay.get("agent")).get("model")).items()
        if name not in ("name", "api_key", "choose_api_key_by_thread")
    }
    deployment = mapping(mapping(replay.get("env")).get("deployment"))
    kept = {
        "environment": text(document.get("environment")),
        "model": model,
        "deployment": {"type": deployment.get("type"), "image": deployment.get("image")},
    }
    found: dict[str, Any] = present(json.loads(json.dumps(kept)))
    return found
