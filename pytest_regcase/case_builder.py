"""Makes a draft case of one failed trial. Pure: no clock, files, network or randomness.

Knows the record shapes and the built-in simulations by id. It says what was seen, never why: the cause status of a
draft is always unknown. Must import nothing but records and errors.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pytest_regcase.records.canonical import canonical_json, digest
from pytest_regcase.records.case import (
    Handover,
    Hypothesis,
    Observation,
    ObservedError,
    RegressionCase,
    ReplySource,
    SymptomMatch,
    TaskSource,
)
from pytest_regcase.records.trial import TranscriptLine, Trial
from pytest_regcase.records.words import HypothesisClass

TRANSCRIPT: Final = "recorded/transcript.jsonl"
TASK_TEXT: Final = "recorded/task.txt"
WORK_TREE: Final = "recorded/work_tree"
OUTPUT_LIMIT_CHARACTERS: Final = 256 * 1024
"""Longer tool results are cut, with the digest of the whole. Replies are never cut: they are replayed."""
MESSAGE_LIMIT_CHARACTERS: Final = 2_000

PROPOSED: Final[tuple[tuple[HypothesisClass, tuple[str, ...]], ...]] = (
    ("deadline", ("deadline-no-answer-v1",)),
    ("resource-exhaustion", ("oom-killed-v1", "oom-server-error-v1")),
    ("auth", ("auth-rejected-v1",)),
    ("hidden", ("hidden-rejection-v1",)),
)
"""Hypothesis classes that every case is drafted with, and their built-in simulations."""

_ID_LIMIT: Final = 80
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,79}")


@dataclass(frozen=True)
class Draft:
    """A case that is not written yet, and the files that go beside it."""

    case: RegressionCase
    files: dict[str, bytes]
    """By name relative to the case's folder. The work tree is not among them: only a person can give it."""
    warnings: tuple[str, ...]


def draft_case(
    trial: Trial,
    *,
    owner: str,
    case_id: str | None = None,
    title: str | None = None,
    with_work_tree: bool = False,
) -> Draft:
    """Return the draft case of a redacted `trial`. The same trial gives the same draft.

    `with_work_tree` says that files will lie in ``recorded/work_tree``.
    """
    files: dict[str, bytes] = {}
    lines, warnings = _bounded(trial.steps)
    if lines:
        files[TRANSCRIPT] = b"".join(canonical_json(line.to_sparse()) + b"\n" for line in lines)
    if trial.task_text:
        files[TASK_TEXT] = trial.task_text.encode("utf-8")
    event = source_event(trial)
    error = None
    if trial.error is not None:
        message = trial.error.message
        if message is not None and len(message) > MESSAGE_LIMIT_CHARACTERS:
            warnings.append(
                f"the error's message is cut after {MESSAGE_LIMIT_CHARACTERS} of {len(message)} characters"
            )
            message = message[:MESSAGE_LIMIT_CHARACTERS]
        error = ObservedError(type=trial.error.type, message=message, raised_by=trial.error.raised_by)
    observation = Observation(
        symptom=symptom(trial),
        source_event=event,
        source_revision=trial.revision,
        cause_status="unknown",
        observed_at=trial.ended_at or _last_moment(trial),
        harness=trial.harness,
        task_id=trial.task_id,
        attempt=trial.attempt,
        failing_step=trial.failing_step,
        termination=trial.termination,
        outcome=trial.outcome,
        outcome_from=trial.outcome_from,
        labels=trial.labels,
        error=error,
        conditions=trial.conditions,
        recorded={name: digest(content) for name, content in files.items()},
        redactions=trial.redactions,
        source_digests=trial.source_digests,
    )
    if trial.termination == "finished":
        warnings.append(
            "the trial ended by itself, so [symptom_match] takes any failed live attempt that ends by itself for"
            " this failure; narrow it where you can"
        )
    has_task = TASK_TEXT in files
    case = RegressionCase(
        id=case_id or propose_id(trial),
        title=title or propose_title(trial),
        unresolved_questions=_questions(trial),
        observation=observation,
        task=TaskSource(text_file=TASK_TEXT if has_task else None, work_tree=WORK_TREE if with_work_tree else None)
        if has_task or with_work_tree
        else None,
        replies=ReplySource(source="transcript") if lines else None,
        symptom_match=symptom_match(trial),
        hypotheses=tuple(Hypothesis(id=name, simulations=simulations) for name, simulations in PROPOSED),
        handover=Handover(owner=owner, next_decision=_next_decision(trial, event)),
    )
    return Draft(case, files, tuple(warnings))


def symptom(trial: Trial) -> str:
    """Return one sentence of what was seen, in our fixed words, numbers and the error's name."""
    step, answered = trial.failing_step, len(trial.replies)
    before = f"model answered step {answered}, then " if answered else ""
    kind = trial.error.type if trial.error is not None else None
    if kind is not None and _NAME.fullmatch(kind) is None:
        kind = None  # a whole text stands there: it is in the observation's error, not in a sentence
    if step is None:
        return _without_conversation(trial, kind)
    if no_reply(trial):
        if trial.termination == "error":
            raised = f": {kind} was raised" if kind else ": an error was raised"
            return f"{before or 'model '}gave no usable reply at step {step}{raised}"
        ends = {
            "cut-off": "the record ends there and says nothing of how the trial ended",
            "cancelled": "the trial was cancelled there",
        }.get(trial.termination or "", "the record ends there")
        return f"{before}no reply at step {step} is recorded; {ends}"
    if trial.termination == "error":
        return f"{before}{kind or 'an error'} was raised at step {step}"
    if trial.termination == "limit":
        return f"{before}the trial was stopped by a limit at step {step}{_scored(trial)}"
    if trial.termination == "cancelled":
        return f"{before}the trial was cancelled at step {step}"
    if trial.termination == "cut-off":
        return f"{before}the record ends at step {step} and says nothing of how the trial ended"
    return f"the trial ended after step {step}{_scored(trial)}"


def no_reply(trial: Trial) -> bool:
    """Say whether the failing step is one whose reply failed or never came."""
    if trial.failing_step is None or trial.termination not in ("error", "cut-off", "cancelled"):
        return False
    return trial.failing_step > max((line.step for line in trial.replies), default=0)


def source_event(trial: Trial) -> str:
    """Return the harness, run, task and attempt, as far as each is recorded, and the event's own id.

    Task ids alone collide. An event id that is a digest is shortened; the case holds the source's digests whole.
    """
    harness = (trial.harness or trial.format).split(" ")[0]
    parts = [part for part in (harness, trial.run_id, trial.task_id) if part]
    if trial.attempt is not None:
        parts.append(f"attempt-{trial.attempt}")
    event_id = trial.event_id if trial.event_id_from == "recorded" else trial.event_id[: len("sha256:") + 16]
    return "/".join(parts) + f"#{event_id}"


def propose_id(trial: Trial) -> str:
    """Return an id that says where the trial comes from and is the same each time."""
    harness = (trial.harness or trial.format).split(" ")[0]
    parts = [harness, trial.task_id or "trial"]
    if trial.attempt is not None:
        parts.append(str(trial.attempt))
    ending = _slug([trial.event_id.removeprefix("sha256:")])[:8].rstrip("-")
    name = _slug(parts)[: _ID_LIMIT - len(ending) - 1].rstrip("-") or "trial"
    return f"{name}-{ending}" if ending else name


def propose_title(trial: Trial) -> str:
    """Return a short title that says what was seen."""
    step = trial.failing_step
    if step is None:
        return "no record of the trial" if not trial.steps else "no conversation recorded"
    if no_reply(trial):
        return f"no usable reply at step {step}" if trial.termination == "error" else f"no reply at step {step}"
    seen = {"error": "error", "limit": "stopped by a limit", "cancelled": "cancelled", "cut-off": "cut off"}
    ending = seen.get(trial.termination or "")
    return f"{ending} at step {step}" if ending else f"failed after step {step}"


def symptom_match(trial: Trial) -> SymptomMatch | None:
    """Return what a failed live attempt must show to count as this failure again; None where nothing was recorded.

    A trial that was cut off while a reply was due matches an error at that place as well: whoever ended it did not
    wait for the error.
    """
    if trial.termination is None:
        return None
    kind = trial.error.type if trial.error is not None else None
    without_reply = no_reply(trial)
    cut_while_waiting = without_reply and trial.termination == "cut-off"
    return SymptomMatch(
        termination=("error", "cut-off") if cut_while_waiting else (trial.termination,),
        error_type=re.escape(kind) if kind else None,
        no_reply=True if without_reply else None,
    )


def _without_conversation(trial: Trial, kind: str | None) -> str:
    if trial.termination == "error":
        return f"{kind or 'an error'} was raised; no conversation is recorded"
    if trial.termination == "cut-off":
        return "the log was never closed and holds no record of the trial"
    return f"no conversation is recorded{_scored(trial)}"


def _scored(trial: Trial) -> str:
    if trial.outcome == "undetermined":
        return ""
    return (
        f"; a person says that it {trial.outcome}"
        if trial.outcome_from == "person"
        else f"; scored as {trial.outcome}"
    )


def _questions(trial: Trial) -> tuple[str, ...]:
    """Return what the record leaves open. Each question holds several answers; none of them is a finding."""
    asked: list[str] = []
    if no_reply(trial):
        asked.append("server deadline, resource exhaustion, or a rejected request hidden by the wrapper?")
        asked.append("did the server process crash, hang, or keep serving other requests?")
    if trial.error is not None and trial.error.raised_by == "supplier" and trial.error.message:
        asked.append("who wrote the error's words: the model server itself, or something in front of it?")
    if trial.termination == "cut-off":
        asked.append("what ended the harness: a person, a time-out of what ran it, or the machine?")
    if trial.termination == "never-started":
        asked.append("what kept the trial from starting?")
    if trial.termination == "cancelled":
        asked.append("who or what cancelled the trial, and what was it waiting for?")
    if not trial.steps:
        asked.append("had the trial started when the record was cut off?")
    if trial.termination == "error" and not no_reply(trial):
        asked.append("was the error raised by the agent, its environment, the grader or the harness?")
    if trial.termination == "limit":
        asked.append("would the trial have passed with a higher limit?")
    if trial.termination in (None, "finished"):
        asked.append("which step led to the failed outcome, and what was different from a trial that passed?")
    return tuple(asked)


def _next_decision(trial: Trial, event: str) -> str:
    if no_reply(trial) or not trial.steps:
        return f"compare the model server's own logs for {event} with each simulation before assigning a cause"
    return f"find lower-level evidence of what happened in {event} before assigning a cause"


def _bounded(lines: Iterable[TranscriptLine]) -> tuple[list[TranscriptLine], list[str]]:
    """Cut tool results that are longer than a case should hold."""
    kept: list[TranscriptLine] = []
    cut = 0
    for line in lines:
        changes = {
            name: _cut(content)
            for name in ("text", "raw_output")
            if not line.is_reply
            and (content := getattr(line, name)) is not None
            and len(content) > OUTPUT_LIMIT_CHARACTERS
        }
        cut += len(changes)
        kept.append(line.model_copy(update=changes) if changes else line)
    warnings = [f"{cut} long outputs are cut after {OUTPUT_LIMIT_CHARACTERS} characters"] if cut else []
    return kept, warnings


def _cut(content: str) -> str:
    whole = digest(content.encode("utf-8", "surrogatepass"))
    return f"{content[:OUTPUT_LIMIT_CHARACTERS]}\n[cut: {len(content)} characters, {whole}]"


def _last_moment(trial: Trial) -> datetime | None:
    """Return the latest recorded time of a line: until then it was seen running."""
    return max((line.at for line in trial.steps if line.at is not None), default=None)


def _slug(parts: Iterable[str]) -> str:
    plain = unicodedata.normalize("NFKD", "-".join(parts)).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
