"""An attempt as a row of the ledger, and back: plain values that both databases hold. Knows no connection."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.canonical import canonical_json

_LONGEST_TOKEN = 500


def attempt_columns(record: AttemptRecord) -> dict[str, Any]:
    """Return the values of the attempt's row, as one made here."""
    return {
        "attempt_id": text_of(record.attempt_id),
        "session_id": record.session_id,
        "case_id": record.case_id,
        "agent": record.agent,
        "scenario": record.scenario,
        "run": record.run,
        "try": record.try_number,
        "planned_total": record.planned_total,
        "case_digest": record.digests.case,
        "simulation_digest": record.digests.simulation,
        "agent_digest": record.digests.agent,
        "model_digest": record.digests.model,
        "started_at": time_of(record.started_at),
        "duration_seconds": record.duration_seconds,
        "verdict": record.verdict,
        "reason": record.reason,
        "says": None if record.says is None else text_of(record.says),
        "delivered": record.wire.delivered,
        "fresh": None if record.draw is None else record.draw.fresh,
        "source": None if record.draw is None else record.draw.source,
        "folder": None if record.folder is None else text_of(record.folder),
        "record": record_json(record),
        "invalidated_at": None,
        "invalidated_why": None,
        "home_ledger": None,
        "home_row": None,
    }


def tokens_of(record: AttemptRecord) -> list[str]:
    """Return what a live attempt drew; a check draws nothing."""
    if record.scenario != "live" or record.draw is None:
        return []
    return draw_tokens(
        upstream_ids=record.draw.upstream_ids,
        seed=record.draw.seed,
        agent_digest=record.digests.agent,
        verdict=record.verdict,
    )


def draw_tokens(*, upstream_ids: Sequence[str], seed: int | None, agent_digest: str, verdict: str) -> list[str]:
    """Return a token for each of the supplier's answers, and one for the seed unless the row is inconclusive.

    Rows of a case that share a token are not draws of their own, all but one (`rules.independence`).
    """
    tokens = [f"id {each}" for each in upstream_ids]
    if seed is not None and verdict != "inconclusive":
        tokens.append(f"seed {seed} of {agent_digest}")
    return sorted({_short(text_of(each)) for each in tokens})


def text_of(text: str) -> str:
    """Return what both databases can hold: no NUL (PostgreSQL), no lone surrogate (SQLite)."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def time_of(at: datetime) -> str:
    """Return `at` in UTC; one without an offset is read as UTC. The texts sort by time."""
    return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).isoformat()


def record_json(record: AttemptRecord) -> str:
    """Return the whole attempt as JSON."""
    try:
        return record.model_dump_json(by_alias=True)
    except ValueError:  # a lone surrogate
        return json_of(record.to_plain())


def json_of(value: object) -> str:
    """Return canonical JSON; a lone surrogate (half a character, as a broken tool may print it) has no UTF-8."""
    return canonical_json(value).decode("utf-8", "replace")


def chunks(items: Iterable[str], size: int = 500) -> list[list[str]]:
    """Return `items` once each, sorted, in parts that an IN list can hold."""
    every = sorted(set(items))
    return [every[start : start + size] for start in range(0, len(every), size)]


def _short(token: str) -> str:
    return token if len(token) <= _LONGEST_TOKEN else f"digest {sha256(token.encode()).hexdigest()}"
