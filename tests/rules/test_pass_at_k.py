import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.pass_at_k import pass_at_k, pass_at_k_interval, pass_hat_k, pass_hat_k_interval


def test_the_estimates_are_exact_fractions() -> None:
    assert pass_at_k(10, 3, 1) == Fraction(3, 10)
    assert pass_at_k(10, 3, 5) == Fraction(11, 12)
    assert pass_hat_k(10, 9, 3) == Fraction(7, 10)
    assert pass_hat_k(3, 3, 3) == 1
    assert pass_at_k(3, 0, 3) == 0


@given(st.integers(1, 8), st.data(), st.fractions(0, 1, max_denominator=20))
def test_both_are_unbiased(trials: int, data: st.DataObject, rate: Fraction) -> None:
    k = data.draw(st.integers(1, trials))
    chance = [comb(trials, c) * rate**c * (1 - rate) ** (trials - c) for c in range(trials + 1)]
    assert sum(chance[c] * pass_at_k(trials, c, k) for c in range(trials + 1)) == 1 - (1 - rate) ** k
    assert sum(chance[c] * pass_hat_k(trials, c, k) for c in range(trials + 1)) == rate**k


def test_a_clean_30_does_not_show_8_uses_reliable() -> None:
    low, high = pass_hat_k_interval(30, 30, 8, "0.05")
    assert low == pytest.approx(Decimal("0.37392456949031083"), abs=Decimal("1e-12"))
    assert high == 1


def test_intervals_at_the_ends() -> None:
    assert pass_at_k_interval(5, 0, 2, "0.05")[0] == 0
    assert pass_at_k_interval(5, 5, 2, "0.05")[1] == 1
    assert pass_hat_k_interval(5, 0, 2, "0.05")[0] == 0
    # A long risk is halved without loss: 1 trial, none passed, is at most 1 - risk / 2.
    long_risk = "0." + "0" * 60 + "2"
    assert pass_hat_k_interval(1, 0, 1, long_risk)[1] == 1 - Decimal("1e-61")


@given(st.integers(1, 20), st.data())
def test_an_interval_holds_the_rate_that_was_seen(trials: int, data: st.DataObject) -> None:
    passed, k = data.draw(st.integers(0, trials)), data.draw(st.integers(1, trials))
    seen = Decimal(passed) / trials
    low, high = pass_hat_k_interval(trials, passed, k, "0.1")
    assert 0 <= low <= seen**k <= high <= 1
    low, high = pass_at_k_interval(trials, passed, k, "0.1")
    assert 0 <= low <= 1 - (1 - seen) ** k <= high <= 1


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k, pass_at_k_interval, pass_hat_k_interval])
@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ((4, 4, 5), r"for k = 5 from 4 trials: .* exists\.\nRun at least 5 trials"),
        ((0, 0, 1), "for k = 1 from 0 trials"),
        ((4, 5, 1), r"from 5 passed of 4 trials with k = 1: .*\nGive 0 <= passed <= trials and k of at least 1"),
        ((4, -1, 1), "from -1 passed"),
        ((4, 2, 0), "with k = 0"),
    ],
)
def test_counts_that_cannot_be_are_refused(
    function: Callable[..., object], counts: tuple[int, int, int], says: str
) -> None:
    risk = {"risk": "0.05"} if function in (pass_at_k_interval, pass_hat_k_interval) else {}
    with pytest.raises(UsageRefused, match=says):
        function(*counts, **risk)


def test_an_interval_needs_a_risk() -> None:
    with pytest.raises(UsageRefused, match="use risk = 1"):
        pass_at_k_interval(4, 2, 1, "1")


def test_reference_values(shared_reference: Path) -> None:
    ran = 0
    for row in json.loads((shared_reference / "statistics.json").read_text())["rows"]:
        given_ = row["inputs"]
        match row["function"]:
            case "pass_at_k" | "pass_hat_k":
                estimate = {"pass_at_k": pass_at_k, "pass_hat_k": pass_hat_k}[row["function"]]
                got = [float(estimate(given_["n"], given_["c"], given_["k"]))]
            case "pass_at_k_ci" | "pass_hat_k_ci":
                interval = {"pass_at_k_ci": pass_at_k_interval, "pass_hat_k_ci": pass_hat_k_interval}[
                    row["function"]
                ]
                got = [float(e) for e in interval(given_["n"], given_["c"], given_["k"], str(given_["alpha"]))]
            case _:
                continue
        expected = row["value"] if isinstance(row["value"], list) else [row["value"]]
        assert got == pytest.approx(expected, abs=1e-9), row["id"]
        ran += 1
    assert ran == 5 + 5 + 1 + 2
