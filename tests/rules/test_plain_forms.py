"""What the rules skip over in a long history changes nothing: each says what its plain, slow form says."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import chain, pairwise
from math import comb, log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.rules import changepoint, drift, quarantine
from pytest_regcase.rules.changepoint import SPLIT_PRIOR, best_changepoint, present_segment
from pytest_regcase.rules.drift import drift_alarm
from pytest_regcase.rules.flake import (
    FirstAttempt,
    FirstAttemptCounts,
    by_digests,
    condensed,
    first_attempt_counts,
    passing_digests,
)
from pytest_regcase.rules.quarantine import quarantine_min_k
from tests.rules.history_samples import attempts, one_digest_each

History = tuple[FirstAttempt, ...]

_STRETCH = st.tuples(
    st.sampled_from([".", ".", "F", "F.", "F?", "?", "F....", "...."]), st.integers(1, 25), st.sampled_from("abcd")
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Stretches that pass, fail, flake or prove nothing, on digests that change and come back."""
    stretches = draw(st.lists(_STRETCH, min_size=1, max_size=8))
    confirmed = draw(st.booleans())
    return tuple(
        chain.from_iterable(
            attempts(signs * times, digests, confirm_passed=confirmed) for signs, times, digests in stretches
        )
    )


def plain_segment(history: History) -> int:
    """Every place where the digests change, each time over everything that is left."""
    places = [index for index, (before, each) in enumerate(pairwise(history), 1) if before.digests != each.digests]
    failed = [each.failed for each in history]
    start = 0
    while True:
        split = best_changepoint(failed[start:], boundaries=[at - start for at in places if at > start])
        if split is None or split.score + log(SPLIT_PRIOR) <= 0:
            return start
        start += split.start


@settings(max_examples=150)
@given(histories())
def test_a_segment_starts_where_looking_at_every_place_finds_it(history: History) -> None:
    start = plain_segment(history)
    assert present_segment(history) == start
    short = condensed(history)
    assert sum(each.times for each in short[: present_segment(short)]) == start


@pytest.mark.parametrize(
    ("history", "start"),
    [
        # The place lies between two stretches of one kind each, with one that proved nothing at the corner.
        ((*attempts("." * 40, "a"), *attempts("?", "b"), *attempts("F" * 9, "c"), *attempts("F" * 9, "d")), 40),
        ((*attempts("." * 20, "a"), *attempts("." * 20, "b"), *attempts("F" * 9, "c"), *attempts("F", "d")), 40),
        (
            (
                *attempts("." * 20, "a"),
                *attempts("." * 20, "b"),
                *attempts("?", "c"),
                *attempts("F" * 9, "d"),
                *attempts("F" * 9, "e"),
            ),
            40,
        ),
        ((*attempts("F" * 20, "a"), *attempts("F" * 20, "b"), *attempts("." * 99, "c"), *attempts(".", "d")), 40),
        ((*attempts("." * 40, "a"), *attempts("F" * 9, "b")), 40),
        ((*attempts("." * 40, "a"), *attempts("F" * 9, "b"), *attempts("F" * 9, "c")), 40),
        ((*attempts("." * 20, "a"), *attempts("." * 20, "b"), *attempts("F" * 9, "c")), 40),
    ],
)
def test_the_places_that_are_looked_at_hold_the_best_one(history: History, start: int) -> None:
    assert plain_segment(history) == start
    assert present_segment(history) == start


@pytest.mark.parametrize("history", ["." * 500, "F" * 500])
def test_in_a_stretch_of_one_kind_only_its_ends_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, history: str
) -> None:
    looked: list[tuple[float, float]] = []
    log_beta = changepoint._log_beta

    def noted(a: float, b: float) -> float:
        looked.append((a, b))
        return log_beta(a, b)

    monkeypatch.setattr(changepoint, "_log_beta", noted)
    assert present_segment(one_digest_each(history)) == 0
    assert len(looked) == 2 + 2 * 2  # of the whole and of nothing, and both parts at each end


@settings(max_examples=150)
@given(histories(), st.sampled_from([("0.01", "0.3"), ("0.001", "0.2"), ("0.05", "0.5")]))
def test_an_alarm_is_about_what_came_since_the_sum_was_zero(history: History, rates: tuple[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drift, "_since_zero", lambda history, _passes: history)
        plain = drift_alarm(history, *rates)
    assert drift_alarm(history, *rates) == plain


@pytest.mark.parametrize(
    ("history", "raised"),
    [
        # 20 passes bring the sum back; one more, and what lies before is not read.
        (attempts("FFF" + "." * 20), 1),
        (attempts("FFF" + "." * 21), 0),
        (attempts("FFF" + "." * 20 + "F"), 1),
        (attempts("FFF" + "." * 21 + "F"), 0),
        (attempts("FFF" + "." * 10 + "?" + "." * 10 + "?F"), 1),
        (attempts("FFF" + "." * 10 + "?" + "." * 11 + "?F"), 0),
        (condensed((*attempts("FFF" + "." * 10, "a"), *attempts("." * 11 + "FF", "b"))), 0),
        (condensed((*attempts("FFF" + "." * 10, "a"), *attempts("." * 10 + "FFF", "b"))), 2),
    ],
)
def test_what_lies_before_long_passes_is_not_read(
    monkeypatch: pytest.MonkeyPatch, history: History, raised: int
) -> None:
    alarms: list[drift.Alarm] = []
    make = drift._alarm

    def noted(*given: Any) -> drift.Alarm:
        alarms.append(make(*given))
        return alarms[-1]

    monkeypatch.setattr(drift, "_alarm", noted)
    drift_alarm(history)
    assert len(alarms) == raised


def test_an_alarm_of_one_failure_behind_many_passes() -> None:
    """At these rates one failure is enough: neither the last attempt nor the first may be skipped."""
    for history in (attempts("." * 30 + "F"), attempts("." * 30 + "?F?"), attempts("F"), attempts("?F")):
        assert drift_alarm(history, "0.0001", "0.5") is not None
    assert drift_alarm(attempts("F" + "." * 11), "0.0001", "0.5") is None
    assert drift_alarm(attempts("F" + "." * 9), "0.0001", "0.5") is not None


@settings(max_examples=100)
@given(histories())
def test_counts_are_those_of_the_definition(history: History) -> None:
    passing = passing_digests(history)
    decided = [each for each in history if each.failed is not None]
    counts = FirstAttemptCounts(
        failures=sum(each.failed is True for each in decided if each.digests in passing),
        attempts=sum(each.digests in passing for each in decided),
        unknown=len(history) - len(decided),
        only_failed=sum(each.digests not in passing for each in decided),
    )
    for made in (history, condensed(history)):
        tallies = by_digests(made)
        assert list(tallies) == list(dict.fromkeys(each.digests for each in history))
        assert {name for name, tally in tallies.items() if tally.can_pass} == passing
        assert first_attempt_counts(tallies.values()) == counts


def fewest(attempts_made: int, budget: str, risk: str) -> int:
    """The smallest k with P(X >= k) < risk, from fractions."""
    rate = Fraction(budget)
    more, failures = Fraction(1), 0
    while more >= Fraction(risk):
        more -= comb(attempts_made, failures) * rate**failures * (1 - rate) ** (attempts_made - failures)
        failures += 1
    return failures


@pytest.mark.parametrize("near", [Decimal("1e-40"), Decimal(2)], ids=["in-decimals", "in-whole-numbers"])
@pytest.mark.parametrize(
    ("budget", "risk"),
    [
        ("0.01", "0.05"),
        ("0.3", "0.05"),
        # Ties: the chance of 2 of 2, and of 3 of 3, is the risk, or 1e-39 and 1e-60 beside it.
        ("0.5", "0.25"),
        ("0.5", "0.125"),
        ("0.5", "0.250000000000000000000000000000000000001"),
        ("0.5", "0.249999999999999999999999999999999999999"),
        ("0.5", "0.250000000000000000000000000000000000000000000000000000000001"),
        ("0.5", "0.249999999999999999999999999999999999999999999999999999999999"),
    ],
)
def test_the_fewest_failures_in_either_arithmetic(
    monkeypatch: pytest.MonkeyPatch, budget: str, risk: str, near: Decimal
) -> None:
    monkeypatch.setattr(quarantine, "_NEAR_TIE", near)
    for number in (1, 2, 3, 4, 20, 57):
        assert quarantine_min_k(number, budget, risk) == fewest(number, budget, risk)


@pytest.mark.parametrize("budget", ["0.3", "0.07"])
@pytest.mark.parametrize("number", [11, 30, 41])
def test_a_tie_of_many_digits_is_a_tie(budget: str, number: int) -> None:
    """The risk is the very chance of so many failures, in all its digits: it is not below it."""
    rate = Fraction(budget)
    for failures in range(1, 6):
        more = 1 - sum(comb(number, k) * rate**k * (1 - rate) ** (number - k) for k in range(failures))
        if more.denominator > 10**100:  # more decimals than a risk may have
            continue
        with localcontext(prec=200):
            risk = Decimal(more.numerator) / Decimal(more.denominator)
        assert quarantine_min_k(number, budget, risk) == failures + 1 == fewest(number, budget, str(risk))
