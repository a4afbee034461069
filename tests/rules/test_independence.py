from typing import Any

import pytest

from pytest_regcase.records.attempt import Digests, Draw
from pytest_regcase.rules.independence import fresh_draws, symptom_is_the_suppliers
from tests.rules.attempt_samples import a_case, a_live_attempt, an_attempt


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


@pytest.mark.parametrize(
    ("changes", "suppliers"),
    [
        ({"symptom_match": {"no_reply": True}}, True),
        ({"symptom_match": {"error_type": "X"}}, True),
        ({"observation": {"symptom": "s", "source_event": "e", "error": {"raised_by": "supplier"}}}, True),
        ({"observation": {"symptom": "s", "source_event": "e", "error": {"raised_by": "agent"}}}, False),
        ({"observation": {"symptom": "wrong answer", "source_event": "e", "termination": "finished"}}, False),
    ],
)
def test_where_the_symptom_lies(changes: dict[str, Any], suppliers: bool) -> None:
    assert symptom_is_the_suppliers(a_case(**changes)) is suppliers
