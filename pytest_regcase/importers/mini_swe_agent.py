"""mini-swe-agent trajectories (`*.traj.json`): format 1.1 (v2), format 1 (v1), and the bare list of v0.

Field names after the package's own `agents/default.py`, `exceptions.py` and `run/benchmarks/swebench.py` of 1.17.0
and 2.4.6. Must import no other importer.

What surprises: the file is rewritten after every step, so an interrupted run has `exit_status` ""; a failed call
adds no assistant message; v1's batch runner puts the exception's text where the patch belongs.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.mini_marks import is_minis
from pytest_regcase.importers.mini_messages import Conversation
from pytest_regcase.importers.protocol import Peek, only_trial
from pytest_regcase.importers.reading import (
    bare,
    digests_of,
    exception_chain,
    filled,
    mapping,
    present,
    read_parsed,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import ErrorLink, Submission, Trial, TrialError, TrialRef
from pytest_regcase.records.words import EXPECTATIONS, RaisedBy, Termination

_LIMITS: Final = frozenset({"LimitsExceeded", "TimeExceeded"})
_NO_EXCEPTION: Final = frozenset({"", "Submitted", "UserInterruption", "RepeatedFormatError"}) | _LIMITS
_KEYS: Final = frozenset({"info", "messages", "instance_id", "trajectory_format"})


class MiniSweAgent:
    """Importer of mini-swe-agent trajectories: one trial a file."""

    name = "mini-swe-agent"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is an object of `info` and `messages` alone, or a message list with mini's own marks."""
        if peek.kind != "file":
            return False
        keys = peek.shape.keys
        if peek.shape.kind == "object":
            if keys & {"info", "messages"} and keys <= _KEYS:
                keys = peek.whole_shape.keys  # a long patch or conversation hides the other one behind the head
            if "trajectory_format" in keys:
                return "messages" in keys
            return {"info", "messages"} <= keys <= _KEYS
        return peek.shape.kind == "list" and {"role", "content"} <= keys and is_minis(peek.head)

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file."""
        trial = _read(source)
        why_not = None
        if trial.error is None and trial.termination == "finished":
            why_not = "it submitted, and a trajectory holds no pass or fail: that needs the benchmark's report"
        elif trial.error is None and trial.termination is None:
            why_not = "nothing in it says how it ended, or that it failed"
        yield only_trial(trial, why_not=why_not)

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the trial. Outcome is always undetermined: the format has none."""
        return _read(source)


def _read(source: Path) -> Trial:
    parsed = read_parsed(source)
    missing = list(parsed.notes)
    document = mapping(parsed.value)
    info = mapping(document.get("info"))
    config = mapping(info.get("config"))
    messages = parsed.value if isinstance(parsed.value, list) else document.get("messages")
    conversation = Conversation(sequence(messages), mapping(config.get("agent")))
    missing.extend(conversation.missing)
    ending = _Ending(info, conversation.exit_extra, conversation.interrupted)
    if not info:
        missing.append("how it ended: a bare message list has no exit status")
    due = ending.termination in ("error", "cut-off", "cancelled") and reply_was_due(conversation.lines)
    task_id = filled(document.get("instance_id"))
    if ending.termination not in (None, "finished"):
        missing.append("partial patch: a trajectory keeps none when the run does not end by submitting")
    version = filled(info.get("mini_version"))
    return Trial(
        format=MiniSweAgent.name,
        harness=f"mini-swe-agent {version}" if version else "mini-swe-agent",
        task_id=task_id,
        event_id=digest_of(parsed.value),
        event_id_from="digest",
        model=filled(mapping(config.get("model")).get("model_name")),
        task_text=conversation.task_text,
        steps=tuple(conversation.lines),
        failing_step=failing_step(conversation.lines, next_reply_failed=due),
        termination=ending.termination,
        error=ending.error,
        labels=(f"mini:exit_status:{ending.status}",) if ending.status else (),
        conditions=_conditions(config),
        submission=ending.submission(is_patch=task_id is not None),
        model_requests=whole(mapping(info.get("model_stats")).get("api_calls")),
        can_show=EXPECTATIONS,
        source_digests=digests_of(source),
        missing=tuple(missing),
    )


class _Ending:
    """How a trajectory says that it ended."""

    def __init__(self, info: Mapping[str, Any], exit_extra: Mapping[str, Any], interrupted: bool) -> None:
        status = text(info.get("exit_status"))
        self.status = status if status is not None else text(exit_extra.get("exit_status"))
        self._submission = text(info.get("submission", exit_extra.get("submission")))
        self._info = info
        self._exit = exit_extra
        self.error = self._error()
        self.termination = self._termination(interrupted)

    def submission(self, *, is_patch: bool) -> Submission | None:
        """Return what was handed in; only a run that ended by submitting handed in anything."""
        if self.status != "Submitted" or self._submission is None:
            return None
        if is_patch or re.search(r"^(?:diff --git |--- )", self._submission, re.MULTILINE):
            return Submission(patch=self._submission)
        return Submission(text=self._submission)

    def _termination(self, interrupted: bool) -> Termination | None:
        if self.error is not None:
            return "error"
        if self.status is None:
            return None
        if self.status in _LIMITS:
            return "limit"
        if self.status == "Submitted":
            return "finished"
        return "cancelled" if interrupted or self.status == "UserInterruption" else "cut-off"

    def _error(self) -> TrialError | None:
        status = self.status or ""
        if status == "RepeatedFormatError":
            return TrialError(type=status)
        traceback = filled(self._exit.get("traceback")) or filled(self._info.get("traceback"))
        message = text(self._exit.get("exception_str")) or text(self._info.get("exception_str"))
        if status in _NO_EXCEPTION and traceback is None:
            return None
        chain = exception_chain(traceback)
        if message is None and status not in _NO_EXCEPTION:
            message = self._submission  # where v1's batch runner puts it
        kind = status if status and status not in _NO_EXCEPTION else (bare(chain[0][0]) if chain else None)
        return TrialError(
            type=kind,
            message=message if message is not None else (chain[0][1] if chain else None),
            traceback=traceback,
            raised_by=_raised_by(traceback),
            chain=tuple(ErrorLink(type=each, message=words) for each, words in chain),
        )


def _raised_by(traceback: str | None) -> RaisedBy:
    """Say who raised it, where the last frames show it: below the model's call, or below a command's execution.

    What mini itself raises below its model call (it cannot compute a cost) is the harness's.
    """
    if traceback is None:
        return "unknown"
    last_part = traceback.rpartition("Traceback (most recent call last)")[2]
    frames = _FRAME.findall(last_part)
    calls = [index for index, (_, source) in enumerate(frames) if "self.model.query(" in source]
    runs = [index for index, (_, source) in enumerate(frames) if "self.env.execute(" in source]
    if calls and calls[-1] < len(frames) - 1:
        return "harness" if "minisweagent" in frames[-1][0] else "supplier"
    if runs and runs[-1] < len(frames) - 1:
        return "environment"
    return "unknown"


_FRAME = re.compile(r'^  File "([^"\n]+)", line \d+, in [^\n]+\n    ([^\n]*)', re.MULTILINE)


def _conditions(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits, time-outs and what the model was called with, as recorded; templates are left out."""
    agent, model, environment = (mapping(config.get(name)) for name in ("agent", "model", "environment"))
    limits = {
        name: value for name, value in agent.items() if name.endswith(("_limit", "_limit_seconds", "_errors"))
    }
    kept = {
        "agent": limits,
        "model": {"model_kwargs": model.get("model_kwargs"), "type": config.get("model_type")},
        "environment": {"timeout": environment.get("timeout"), "type": config.get("environment_type")},
    }
    found: dict[str, Any] = present(kept)
    return found
