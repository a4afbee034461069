"""Attempts, sessions, transitions, decisions and versions as rows of the ledger, and back.

Plain values that both databases hold. Knows no connection.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import RowMapping

from pytest_regcase.records.attempt import AttemptKey, AttemptRecord
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow, Transition
from pytest_regcase.records.version import Decided, RestsOn, Version

_LONGEST_TOKEN = 500
Row = RowMapping | Mapping[str, Any]
"""A row of a database, or the same values from elsewhere."""


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


def session_of(row: Row) -> SessionRow:
    """Return the session of a row; one that was read without its planned keys has none."""
    planned = [AttemptKey.model_validate(each) for each in json.loads(row.get("planned", "[]"))]
    at = datetime.fromisoformat
    return SessionRow(
        session_id=row["session_id"],
        started_at=at(row["started_at"]),
        finished_at=None if row["finished_at"] is None else at(row["finished_at"]),
        profile=row["profile"],
        planned=tuple(planned),
        source=row["source"],
        run_id=row["run_id"],
        shard=row["shard"],
        agent=row["agent"],
        commit=row["commit"],
        live_new=row["live_new"],
        revisions=None if row["revisions"] is None else json.loads(row["revisions"]),
        left_out=() if row["left_out"] is None else tuple(json.loads(row["left_out"])),
        hooked=() if row["hooked"] is None else tuple(json.loads(row["hooked"])),
    )


def transition_of(row: Row) -> Transition:
    """Return the transition of a row."""
    values = {key: value for key, value in row.items() if key != "seq"}
    return Transition.model_validate({**values, "at": datetime.fromisoformat(row["at"])})


def decided_of(row: Row) -> Decided:
    """Return the decision of a row."""
    return Decided(
        revision=row["revision"],
        at=datetime.fromisoformat(row["at"]),
        about=row["about"],
        digest=row["digest"],
        decision=GateDecision.model_validate_json(row["decision"]),
        rests_on=None if row["rests_on"] is None else RestsOn.model_validate_json(row["rests_on"]),
    )


def version_of(row: Row) -> Version:
    """Return what a row says was made active."""
    return Version(
        active=row["active"],
        since=datetime.fromisoformat(row["since"]),
        decision=row["decision"],
        who=row["who"],
        why=row["why"],
    )


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
    if at.tzinfo is not UTC:
        at = at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    return at.isoformat()


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
