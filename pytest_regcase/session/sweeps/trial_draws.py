"""What one trial of a sweep says of a case: its draws, each with a verdict, and what identifies them.

Reads a trial and lets go of its conversation. A harness that retried made several draws: each counts. What is
kept is redacted, and depends on the log and the case alone: whoever counts a log anywhere gets the same rows.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pytest_regcase.case_builder import source_event
from pytest_regcase.case_files import LoadedCase
from pytest_regcase.records.attempt import AttemptRecord, Draw, TrialSummary
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial
from pytest_regcase.recovery.live import LiveResult
from pytest_regcase.recovery.sweep import judge_retried, judge_trial
from pytest_regcase.recovery.symptom import same_task
from pytest_regcase.redaction import Redactor, redact_trial
from pytest_regcase.rules.lifecycle import in_utc
from pytest_regcase.session.revisions.log_revision import Ran
from pytest_regcase.session.sweeps.sweep import counting_conditions

_LONG_ID: Final = 16
"""Recorded ids of that length are unique by themselves; shorter ones may come again in another run."""
_LARGEST_TRY: Final = 2**30
_ERROR_LIMIT: Final = 500


@dataclass(frozen=True)
class TrialDraw:
    """One draw of the case's population, judged."""

    attempt_id: str
    verdict: LiveResult
    at: datetime
    draw: Draw
    duration_seconds: float = 0.0
    ended: TrialSummary = field(default_factory=TrialSummary)


@dataclass(frozen=True)
class LightTrial:
    """A trial without its conversation."""

    name: str
    """As it was listed, with its log where several were given."""
    event: str
    identity: str
    """The id of its own row in the ledger: the same wherever its log lies."""
    run: str
    """Which run of a harness it is part of: what the ledger calls its session."""
    trial: Trial = field(repr=False)
    """Redacted, without steps."""
    own_task: bool | None
    """Whether it is of the case's task; None where nothing recorded says so."""
    at: datetime | None
    """When it began, as far as recorded."""
    draws: tuple[TrialDraw, ...]
    """In the order in which they were made; none where nothing says when."""


def light_trial(
    loaded: LoadedCase, task_text: str | None, name: str, trial: Trial, *, case_digest: str
) -> LightTrial:
    """Judge a trial by the case, and keep what a row needs.

    The symptom's step is asked for only where the trial is of the case's own task: steps differ from task to task.
    """
    error = trial.error.model_copy(update={"traceback": None}) if trial.error is not None else None
    bare = redact_trial(
        trial.model_copy(
            update={"steps": (), "submission": None, "partial_patch": None, "final_text": None, "error": error}
        )
    )
    own_task = same_task(loaded.case, task_text, bare)
    at = _began(trial)
    identity = _identity(loaded, trial, at, case_digest)
    draws = tuple(_draws(loaded, trial, bare, identity, at, own_task=own_task is True)) if at is not None else ()
    return LightTrial(name, source_event(bare), identity, _run_of(trial, at), bare, own_task, at, draws)


def record_of(light: LightTrial, draw: TrialDraw, ran: Ran, loaded: LoadedCase) -> AttemptRecord:
    """Return the ledger's record of a draw, as run 1.

    The number of its try is made of all the rest: two rows then have one key only where they are one record, in
    whichever ledgers they were counted and under whichever run numbers.
    """
    trial = light.trial
    facts = {
        "trial": light.event,
        "harness": trial.harness or trial.format,
        "revision": trial.revision,
        "model": trial.model,
    }
    record = AttemptRecord(
        attempt_id=draw.attempt_id,
        session_id=light.run,
        case_id=loaded.id,
        agent=loaded.case.agent,
        scenario="live",
        digests=ran.digests,
        started_at=draw.at,
        duration_seconds=draw.duration_seconds,
        trial=draw.ended,
        verdict=draw.verdict.verdict,
        reason=draw.verdict.reason,
        says=draw.verdict.says,
        draw=draw.draw,
        conditions={
            **{name: value for name, value in facts.items() if value is not None},
            **counting_conditions(trial.conditions),
        },
    )
    number = int(digest_of(record.to_plain())[len("sha256:") :], 16) % _LARGEST_TRY
    return record.model_copy(update={"try_number": number})


def _draws(
    loaded: LoadedCase, trial: Trial, bare: Trial, identity: str, at: datetime, *, own_task: bool
) -> "list[TrialDraw]":
    symptom = loaded.case.symptom_match
    step = loaded.case.observation.failing_step if own_task else None
    words = Redactor()
    draws = [
        TrialDraw(
            attempt_id=f"{identity}.retried-{number}",
            verdict=_redacted(judge_retried(error, symptom), words),
            at=at,
            draw=Draw(fresh=False, source="sweep"),
            ended=TrialSummary(termination="error", error=_error(bare.retried[number - 1])),
        )
        for number, error in enumerate(trial.retried, 1)
    ]
    ended_at = trial.ended_at
    seconds = (in_utc(ended_at) - at).total_seconds() if ended_at is not None else 0.0
    last = TrialDraw(
        attempt_id=identity,
        verdict=_redacted(judge_trial(trial, symptom, step), words),
        at=at,
        draw=_draw(trial),
        duration_seconds=max(0.0, round(seconds, 3)),
        ended=TrialSummary(termination=trial.termination, outcome=trial.outcome, error=_error(bare.error)),
    )
    return [*draws, last]


def _draw(trial: Trial) -> Draw:
    """Say whether it is a draw of its own: each reply came with an id that the supplier gave it."""
    ids = [line.response_id for line in trial.replies]
    texts = [
        line.model_dump(mode="json", include={"text": True, "tool_calls": {"__all__": {"name", "arguments"}}})
        for line in trial.replies
    ]
    return Draw(
        fresh=bool(ids) and all(ids),
        seed=_seed(trial.conditions),
        response_digest=digest_of(texts) if texts else None,
        upstream_ids=tuple(dict.fromkeys(each for each in ids if each)),
        source="sweep",
    )


def _seed(conditions: dict[str, Any]) -> int | None:
    """Return the seed that its model calls were made with, as far as recorded."""
    for name, value in conditions.items():
        if name == "seed" and isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, dict) and (found := _seed(value)) is not None:
            return found
    return None


def _began(trial: Trial) -> datetime | None:
    times = [line.at for line in trial.steps if line.at is not None]
    found = trial.started_at or (min(map(in_utc, times)) if times else trial.ended_at)
    return None if found is None else in_utc(found)


def _identity(loaded: LoadedCase, trial: Trial, at: datetime | None, case_digest: str) -> str:
    """Return the id of a trial's row: by what its log calls it, or by its content, never by where the log lies.

    A recorded id may be a task's, which another sweep has too: when the trial began tells the two apart.
    """
    harness = (trial.harness or trial.format).split(" ")[0]
    by_itself = trial.event_id_from == "digest" or len(trial.event_id) >= _LONG_ID
    began = None if at is None or trial.event_id_from == "digest" else at.isoformat()
    parts = [harness, None if by_itself else trial.run_id, trial.task_id, trial.attempt, trial.event_id, began]
    return f"sweep.{loaded.id}.{digest_of([parts, case_digest])[len('sha256:') :][:32]}"


def _run_of(trial: Trial, at: datetime | None) -> str:
    """Return the session of a trial: its harness's run; without an id of that, all of one version, model and day.

    Trials of one sweep are one session, however many files they lie in: what they share (an outage, a snapshot of
    the model) they share.
    """
    harness = (trial.harness or trial.format).split(" ")[0]
    day = at.astimezone(UTC).date().isoformat() if at is not None else None
    parts = [harness, trial.run_id] if trial.run_id else [trial.harness, trial.revision, trial.model, day]
    return f"sweep-{digest_of(parts)[len('sha256:') :][:16]}"


def _error(error: Any) -> str | None:
    if error is None:
        return None
    return ": ".join(filter(None, (error.type, error.message)))[:_ERROR_LIMIT] or None


def _redacted(result: LiveResult, redactor: Redactor) -> LiveResult:
    return result.model_copy(update={"says": redactor.text(result.says)})
