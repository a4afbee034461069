"""Makes a draft case of one failed trial. Pure: no clock, files, network or randomness.

Knows the record shapes and the built-in simulations by id. It says what was seen, never why: the cause status of a
draft is always unknown. Must import nothing but records and errors.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.canonical import canonical_json, digest
from pytest_regcase.records.case import (
    Baseline,
    Handover,
    Hypothesis,
    Kept,
    Observation,
    ObservedError,
    RegressionCase,
    ReplySource,
    SymptomMatch,
    TaskSource,
)
from pytest_regcase.records.occurrence import Occurrence
from pytest_regcase.records.trial import TranscriptLine, Trial
from pytest_regcase.records.words import HypothesisClass

TRANSCRIPT: Final = "recorded/transcript.jsonl"
TASK_TEXT: Final = "recorded/task.txt"
WORK_TREE: Final = "recorded/work_tree"
TRANSCRIPT_LIMIT_BYTES: Final = 256 * 1024
"""A recorded transcript is cut to this: long tool results first. Replies are never cut: they are replayed."""
_CUT_TO_CHARACTERS: Final = (32_768, 16_384, 8_192, 4_096, 2_048, 1_024, 512)
"""How much of a long text is kept: the first that makes the transcript fit."""
MESSAGE_LIMIT_CHARACTERS: Final = 2_000

PROPOSED: Final[tuple[tuple[HypothesisClass, tuple[str, ...]], ...]] = (
    ("deadline", ("deadline-no-answer-v1",)),
    ("resource-exhaustion", ("oom-killed-v1", "oom-server-error-v1")),
    ("auth", ("auth-rejected-v1",)),
    ("hidden", ("hidden-rejection-v1",)),
)
"""Hypothesis classes that every case is drafted with, and their built-in simulations."""

_MARK_CHARACTERS: Final = 120
"""A mark that says what was cut is about as long; a text that is hardly longer than the limit is left whole."""
_ID_LIMIT: Final = 80
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,79}")


@dataclass(frozen=True)
class Counted:
    """What the sweep that a trial is from shows besides it: how often it failed alike, and where."""

    baseline: Baseline | None = None
    occurrences: tuple[Occurrence, ...] = ()


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
    full: bool = False,
    counted: Counted | None = None,
    attached: Mapping[str, bytes] | None = None,
    kept: Sequence[Kept] = (),
) -> Draft:
    """Return the draft case of a redacted `trial`. The same trial gives the same draft.

    `with_work_tree` says that files will lie in ``recorded/work_tree``; with `full` no recorded output is cut.
    `attached` are further recorded files by name, redacted; `kept` is what a person wanted not to be.

    Raises:
        UsageRefused: the replies alone are larger than a transcript may be, and not `full`.
    """
    files: dict[str, bytes] = {}
    lines, warnings = (list(trial.steps), []) if full else _bounded(trial.steps)
    if lines:
        files[TRANSCRIPT] = b"".join(map(_rendered, lines))
    if trial.task_text:
        files[TASK_TEXT] = trial.task_text.encode("utf-8")
    files.update(attached or {})
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
        by_person=trial.by_person,
        labels=trial.labels,
        error=error,
        conditions=trial.conditions,
        recorded={name: digest(content) for name, content in files.items()},
        redactions=trial.redactions,
        kept=tuple(kept),
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
        baseline=counted.baseline if counted is not None else None,
        occurrences=counted.occurrences if counted is not None else (),
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
    if trial.no_reply:
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
    if trial.no_reply:
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
    without_reply = trial.no_reply
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
    if trial.no_reply:
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
    if trial.termination == "error" and not trial.no_reply:
        asked.append("was the error raised by the agent, its environment, the grader or the harness?")
    if trial.termination == "limit":
        asked.append("would the trial have passed with a higher limit?")
    if trial.termination in (None, "finished"):
        asked.append("which step led to the failed outcome, and what was different from a trial that passed?")
    return tuple(asked)


def _next_decision(trial: Trial, event: str) -> str:
    if trial.no_reply or not trial.steps:
        return f"compare the model server's own logs for {event} with each simulation before assigning a cause"
    return f"find lower-level evidence of what happened in {event} before assigning a cause"


def _bounded(lines: Sequence[TranscriptLine]) -> tuple[list[TranscriptLine], list[str]]:
    """Cut tool results, then other texts that are no replies, until the transcript is as small as a case's may be.

    Raises:
        UsageRefused: what must not be cut is larger already.
    """
    kept = list(lines)
    size = sum(len(_rendered(line)) for line in kept)
    if size <= TRANSCRIPT_LIMIT_BYTES:
        return kept, []
    for cuttable in (_is_output, _is_no_reply):
        for limit in _CUT_TO_CHARACTERS:
            shorter = [_shortened(line, limit) if cuttable(line) else line for line in kept]
            if sum(len(_rendered(line)) for line in shorter) <= TRANSCRIPT_LIMIT_BYTES:
                cut = sum(1 for old, new in zip(lines, shorter, strict=True) if old is not new)
                return shorter, [
                    f"the transcript has {size:,} bytes, and a case holds {TRANSCRIPT_LIMIT_BYTES:,}: long texts"
                    f" of {cut} lines are cut, with the digest of the whole; no reply is; --full keeps everything"
                ]
        kept = [_shortened(line, _CUT_TO_CHARACTERS[-1]) if cuttable(line) else line for line in kept]
    least = sum(len(_rendered(line)) for line in kept)
    raise UsageRefused(
        f"Couldn't make the transcript small enough for a case: with every long output cut it has {least:,} bytes;"
        f" allowed: {TRANSCRIPT_LIMIT_BYTES:,}. Its replies are replayed, so they are never cut.\n"
        "Say --full to keep the whole transcript.",
        slug="transcript-too-large",
    )


def _rendered(line: TranscriptLine) -> bytes:
    # A replayed answer is no answer of the supplier's any more.
    return canonical_json({key: value for key, value in line.to_sparse().items() if key != "response_id"}) + b"\n"


def _is_output(line: TranscriptLine) -> bool:
    return line.role == "tool" or (line.raw_output is not None and not line.is_reply)


def _is_no_reply(line: TranscriptLine) -> bool:
    """Some harnesses hand results to the model as a user's message; before the first reply there is none."""
    return line.step > 0 and not line.is_reply


def _shortened(line: TranscriptLine, limit: int) -> TranscriptLine:
    changes = {
        name: _cut(content, limit)
        for name in ("text", "raw_output")
        if (content := getattr(line, name)) is not None and len(content) > limit + _MARK_CHARACTERS
    }
    return line.model_copy(update=changes) if changes else line


def _cut(content: str, limit: int) -> str:
    whole = digest(content.encode("utf-8", "surrogatepass"))
    return f"{content[:limit]}\n[cut: {len(content)} characters, {whole}]"


def _last_moment(trial: Trial) -> datetime | None:
    """Return the latest recorded time of a line: until then it was seen running."""
    return max((line.at for line in trial.steps if line.at is not None), default=None)


def _slug(parts: Iterable[str]) -> str:
    plain = unicodedata.normalize("NFKD", "-".join(parts)).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
