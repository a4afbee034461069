"""Whether live attempts are independent draws of the agent's randomness, and which of them may be counted.

Knows request ids, seeds and response digests as recorded. The formulas of the rerun rule count independent
draws: a cached answer or a reused seed repeats one draw.
"""

from collections.abc import Sequence
from typing import Literal

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.records.session import LiveRow

Independence = Literal["fresh", "distinct", "off"]
"""Which clean runs count: every draw of its own; only those with a transcript that no other one has; all."""


def fresh_draws(rows: Sequence[AttemptRecord]) -> tuple[bool, ...]:
    """Say for each live attempt, in ledger order, whether it is a draw of its own.

    It is when it was recorded as one, none of its upstream response ids was seen before, and its seed is absent or
    new for its agent digest. An inconclusive attempt uses no seed up: its number is run again with the same one.
    """
    seen_ids: set[str] = set()
    seen_seeds: set[tuple[str, int]] = set()
    fresh: list[bool] = []
    for row in rows:
        draw = row.draw
        if draw is None:
            fresh.append(False)
            continue
        seed = None if draw.seed is None else (row.digests.agent, draw.seed)
        fresh.append(draw.fresh and seen_ids.isdisjoint(draw.upstream_ids) and seed not in seen_seeds)
        seen_ids.update(draw.upstream_ids)
        if seed is not None and row.verdict != "inconclusive":
            seen_seeds.add(seed)
    return tuple(fresh)


def counting_draws(rows: Sequence[LiveRow], independence: Independence) -> tuple[LiveRow, ...]:
    """Return the rows with `fresh` saying which clean ones count under `independence`; their order stays.

    `distinct` leaves out a clean run whose transcript is missing or equals that of one with a lower number: it is
    made again under the same number. `off` counts every clean run, so what comes of it is unverified. Failed
    runs always count, whatever drew them.
    """
    if independence == "off":
        return tuple(row.model_copy(update={"fresh": True}) for row in rows)
    if independence == "fresh":
        return tuple(rows)
    counted = list(rows)
    seen: set[str] = set()
    for place, row in sorted(enumerate(rows), key=lambda each: run_order(each[1])):
        if row.verdict != "clean" or not row.fresh:
            continue
        if row.response_digest is None or row.response_digest in seen:
            counted[place] = row.model_copy(update={"fresh": False})
        else:
            seen.add(row.response_digest)
    return tuple(counted)


def run_order(row: LiveRow) -> tuple[int, str, str]:
    """Return what live rows are sorted by, whichever was made first: the run, then the session that made it."""
    return row.run, row.session_id, row.response_digest or ""


def symptom_is_the_suppliers(case: RegressionCase) -> bool:
    """Say whether the symptom lies with the supplier (no reply, its error, a cut stream), not in the model's
    output.

    Then the draw is the supplier's too, and equal transcripts of clean runs are only worth a note.
    """
    match = case.symptom_match
    if match is not None and match.no_reply:
        return True
    observation = case.observation
    if observation.error is not None and observation.error.raised_by in ("supplier", "environment"):
        return True
    return observation.termination == "cut-off"
