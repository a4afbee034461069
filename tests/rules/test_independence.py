from typing import Any

import pytest

from pytest_regcase.records.attempt import Digests, Draw
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.independence import (
    Independence,
    counting_draws,
    fresh_draws,
    run_order,
    symptom_is_the_suppliers,
)
from tests.rules.attempt_samples import a_case, a_live_attempt, an_attempt, live

OUTPUT = {"symptom": "wrong answer", "source_event": "e", "termination": "finished"}


def draw(**changes: Any) -> Draw:
    return Draw.model_validate({"fresh": True, **changes})


def test_a_draw_with_ids_of_its_own_is_fresh() -> None:
    assert fresh_draws([a_live_attempt(1), a_live_attempt(2)]) == (True, True)


def test_an_id_that_was_seen_before_is_no_fresh_draw() -> None:
    rows = [a_live_attempt(1), a_live_attempt(2, draw=draw(upstream_ids=("new", "chatcmpl-1")))]
    assert fresh_draws(rows) == (True, False)


def test_what_was_not_recorded_as_a_draw_is_none() -> None:
    assert fresh_draws([an_attempt("inconclusive", "live"), a_live_attempt(2, draw=draw(fresh=False))]) == (
        False,
        False,
    )


def test_a_seed_counts_once_an_agent_digest() -> None:
    other = Digests(case="c", agent="another")
    rows = [
        a_live_attempt(1, draw=draw(seed=7)),
        a_live_attempt(2, draw=draw(seed=7)),
        a_live_attempt(3, draw=draw(seed=7), digests=other),
    ]
    assert fresh_draws(rows) == (True, False, True)


def test_an_inconclusive_attempt_uses_its_seed_not_up() -> None:
    rows = [a_live_attempt(1, "inconclusive", draw=draw(seed=1)), a_live_attempt(1, draw=draw(seed=1))]
    assert fresh_draws(rows) == (True, True)


def counted(rows: tuple[LiveRow, ...], independence: Independence) -> list[int]:
    """The places of the clean rows that count."""
    found = counting_draws(rows, independence)
    assert [each.model_copy(update={"fresh": True}) for each in found] == [
        each.model_copy(update={"fresh": True}) for each in rows
    ]
    return [place for place, each in enumerate(found) if each.verdict == "clean" and each.fresh]


def with_transcripts(*digests: str | None, first: int = 1) -> tuple[LiveRow, ...]:
    verdicts: list[AttemptVerdict] = ["clean"] * len(digests)
    rows = live(*verdicts, first=first)
    return tuple(
        row.model_copy(update={"response_digest": digest}) for row, digest in zip(rows, digests, strict=True)
    )


def test_fresh_leaves_the_rows_as_they_are() -> None:
    rows = (*with_transcripts("a", "a", None), *live("clean", first=4, fresh=False))
    assert counting_draws(rows, "fresh") == rows
    assert counted(rows, "fresh") == [0, 1, 2]


def test_off_counts_every_clean_run() -> None:
    assert counted((*with_transcripts("a", "a"), *live("clean", first=3, fresh=False)), "off") == [0, 1, 2]


def test_distinct_counts_the_lowest_run_of_each_transcript() -> None:
    assert counted(with_transcripts("a", "b", "a", "c"), "distinct") == [0, 1, 3]
    later_number_first = (*with_transcripts("a", first=5), *with_transcripts("a", first=2))
    assert counted(later_number_first, "distinct") == [1]


def test_distinct_leaves_out_what_no_transcript_shows_to_differ() -> None:
    assert counted(with_transcripts(None, "a", None), "distinct") == [1]
    stale = live("clean", fresh=False)
    assert counted((*stale, *with_transcripts("sha256:1", first=2)), "distinct") == [1]


def test_distinct_looks_at_clean_runs_only() -> None:
    failed = live("recurred")
    rows = (*failed, *with_transcripts("sha256:1", first=2))
    assert counting_draws(rows, "distinct") == rows
    between = (*with_transcripts("a"), *live("inconclusive", first=2), *with_transcripts("a", first=3))
    assert counted(between, "distinct") == [0]


@pytest.mark.parametrize(
    ("changes", "suppliers"),
    [
        ({"symptom_match": {"no_reply": True}, "observation": OUTPUT}, True),
        ({"symptom_match": {"no_reply": False}, "observation": OUTPUT}, False),
        ({"symptom_match": {"error_type": "X"}, "observation": OUTPUT}, False),
        ({"symptom_match": {"error_type": "X"}}, True),
        ({"observation": {**OUTPUT, "error": {"raised_by": "environment"}}}, True),
        ({"observation": {**OUTPUT, "error": {"raised_by": "harness"}}}, False),
        ({"observation": {"symptom": "s", "source_event": "e", "error": {"raised_by": "supplier"}}}, True),
        ({"observation": {"symptom": "s", "source_event": "e", "error": {"raised_by": "agent"}}}, False),
        ({"observation": OUTPUT}, False),
    ],
)
def test_where_the_symptom_lies(changes: dict[str, Any], suppliers: bool) -> None:
    assert symptom_is_the_suppliers(a_case(**changes)) is suppliers


def test_rows_of_one_run_have_one_order_whichever_was_made_first() -> None:
    rows = (
        *with_transcripts(None),
        *with_transcripts("A"),
        *with_transcripts("B"),
        *live("clean", session_id="s2"),
        *live("clean", first=2, session_id="s0"),
    )
    for given in (rows, rows[::-1]):
        assert sorted(given, key=run_order) == list(rows)
