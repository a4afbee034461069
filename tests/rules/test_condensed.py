"""A condensed history says what the whole one says: no rule tells the two apart."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.rules.drift import drift_alarm
from pytest_regcase.rules.flake import FirstAttempt, condensed, flake_rate
from pytest_regcase.rules.quarantine import check_exit, propose
from tests.rules.history_samples import attempts

OUTCOMES = st.lists(
    st.tuples(st.sampled_from([False, False, False, True, None]), st.sampled_from("ab"), st.booleans()),
    min_size=1,
    max_size=60,
)
LIMITS = {"budget": "0.01", "risk": "0.05"}


def test_passes_in_a_row_are_one_entry_named_by_the_last_session() -> None:
    assert condensed(attempts("..F..F.")) == (
        FirstAttempt(failed=False, digests="d", session_id="d-1", times=2),
        FirstAttempt(failed=True, digests="d", session_id="d-2"),
        FirstAttempt(failed=False, digests="d", session_id="d-4", times=2),
        FirstAttempt(failed=True, digests="d", session_id="d-5"),
        FirstAttempt(failed=False, digests="d", session_id="d-6"),
    )


def test_what_is_condensed_already_takes_more() -> None:
    (twice,) = condensed(attempts(".."))
    (more,) = condensed([twice, *attempts("..."), twice])
    assert (more.times, more.session_id) == (7, "d-1")


def test_a_failure_keeps_its_entry_and_what_proved_nothing_does_not() -> None:
    assert [(each.failed, each.times) for each in condensed(attempts("FF??"))] == [
        (True, 1),
        (True, 1),
        (None, 2),
    ]


@pytest.mark.parametrize(
    "change",
    [{"failed": None}, {"digests": "other"}, {"confirm_passed": True}],
    ids=lambda change: next(iter(change)),
)
def test_only_what_is_alike_is_put_together(change: dict[str, Any]) -> None:
    (first, second) = attempts("..")
    history = (first, second._replace(**change))
    assert condensed(history) == history


def test_an_empty_history_stays_empty() -> None:
    assert condensed(()) == ()


def test_a_proposal_counts_every_session_of_a_condensed_entry() -> None:
    found = propose(condensed(attempts("." * 18 + "F" + "." * 10 + "F" + "F" + "..")), **LIMITS)
    whole = propose(attempts("." * 18 + "F" + "." * 10 + "F" + "F" + ".."), **LIMITS)
    assert found == whole
    assert found.model_dump()["sessions"] == 33


@settings(max_examples=40)
@given(OUTCOMES)
def test_no_rule_tells_a_condensed_history_from_the_whole(outcomes: list[tuple[bool | None, str, bool]]) -> None:
    whole = [
        FirstAttempt(failed=failed, digests=digests, session_id=f"s{place}", confirm_passed=confirmed)
        for place, (failed, digests, confirmed) in enumerate(outcomes)
    ]
    short = condensed(whole)
    assert sum(each.times for each in short) == len(whole)
    assert condensed(short) == short
    assert flake_rate(short) == flake_rate(whole)
    assert drift_alarm(short) == drift_alarm(whole)
    assert propose(short, **LIMITS) == propose(whole, **LIMITS)
    assert check_exit(short, entry_digests="a", **LIMITS) == check_exit(whole, entry_digests="a", **LIMITS)
