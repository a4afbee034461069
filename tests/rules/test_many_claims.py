import json
from fractions import Fraction
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.many_claims import bh, by, ebh, holm

p_values = st.lists(st.floats(0, 1), max_size=8)
alphas = st.floats(0.001, 0.999)


def test_each_keeps_the_order_given() -> None:
    given_p = [0.04, 0.01, 0.9]
    assert holm(given_p) == pytest.approx([0.08, 0.03, 0.9])
    assert bh(given_p) == pytest.approx([0.06, 0.03, 0.9])
    assert by(given_p) == pytest.approx([0.06 * 11 / 6, 0.03 * 11 / 6, 1])


def test_equal_p_values_are_adjusted_alike_and_none_above_1() -> None:
    assert holm([0.02, 0.02]) == (0.04, 0.04)
    assert holm([0.6, 0.7]) == (1, 1)
    assert bh([0.02, 0.02]) == (0.02, 0.02)


@pytest.mark.parametrize("adjust", [holm, bh, by])
def test_one_p_value_stays_and_none_stays_none(adjust: object) -> None:
    assert callable(adjust)
    assert adjust([0.03]) == (0.03,)
    assert adjust([]) == ()
    assert adjust([0, 1]) == (0, 1)


@pytest.mark.parametrize("adjust", [holm, bh, by])
@pytest.mark.parametrize("value", [-0.1, 1.1, nan])
def test_what_is_no_p_value_is_refused(adjust: object, value: float) -> None:
    assert callable(adjust)
    with pytest.raises(UsageRefused, match=r"as a p-value\.\nA p-value is a number from 0 to 1"):
        adjust([0.5, value])


@given(p_values, alphas)
def test_holm_is_the_step_down_procedure(values: list[float], alpha: float) -> None:
    kept = []
    for rank, position in enumerate(sorted(range(len(values)), key=lambda each: values[each])):
        if Fraction(values[position]) * (len(values) - rank) > Fraction(alpha):
            break
        kept.append(position)
    assert [position for position, each in enumerate(holm(values)) if each <= alpha] == sorted(kept)


@given(p_values, alphas)
def test_bh_is_the_step_up_procedure(values: list[float], alpha: float) -> None:
    m = len(values)
    ascending = sorted(range(m), key=lambda each: values[each])
    ranks = [r for r in range(1, m + 1) if Fraction(values[ascending[r - 1]]) * m <= Fraction(alpha) * r]
    kept = ascending[: max(ranks, default=0)]
    assert [position for position, each in enumerate(bh(values)) if each <= alpha] == sorted(kept)


@given(p_values)
def test_by_asks_more_than_bh_by_the_harmonic_number(values: list[float]) -> None:
    harmonic = sum(1 / each for each in range(1, len(values) + 1))
    assert by(values) == pytest.approx([min(1, each * harmonic) for each in _uncapped_bh(values)])


def _uncapped_bh(values: list[float]) -> list[float]:
    m = len(values)
    return [
        min(m * other / sum(each <= other for each in values) for other in values if other >= value)
        for value in values
    ]


def test_eight_claims_at_e_20_stand_together_and_one_alone_does_not() -> None:
    assert ebh([20] * 8, "0.05") == tuple(range(8))
    assert ebh([20] + [1] * 7, "0.05") == ()
    assert ebh([19.999] * 8, "0.05") == ()


def test_the_positions_of_the_claims_that_stand() -> None:
    assert ebh([1, 400, 0, 90], "0.05") == (1, 3)
    assert ebh([inf, 0, 0], "0.05") == (0,)
    assert ebh([], "0.05") == ()


@given(st.lists(st.floats(0, 500), max_size=8))
def test_e_bh_is_its_definition(values: list[float]) -> None:
    m = len(values)
    descending = sorted(values, reverse=True)
    counts = [k for k in range(1, m + 1) if k * Fraction(descending[k - 1]) >= m / Fraction("0.05")]
    stand = ebh(values, "0.05")
    assert len(stand) == max(counts, default=0)
    assert sorted((values[each] for each in stand), reverse=True) == descending[: len(stand)]


@pytest.mark.parametrize("value", [-1, nan, -inf])
def test_what_is_no_e_value_is_refused(value: float) -> None:
    with pytest.raises(UsageRefused, match=r"as an e-value\.\nAn e-value is a number that is never negative"):
        ebh([20, value], "0.05")


def test_a_risk_is_needed() -> None:
    with pytest.raises(UsageRefused, match="use risk = 0"):
        ebh([20], "0")


def test_reference_values(shared_reference: Path) -> None:
    ran = 0
    for row in json.loads((shared_reference / "statistics.json").read_text())["rows"]:
        match row["function"]:
            case "holm" | "bh" | "by":
                adjust = {"holm": holm, "bh": bh, "by": by}[row["function"]]
                assert adjust(row["inputs"]["p"]) == pytest.approx(row["value"], rel=1e-7), row["id"]
            case "ebh_count":
                assert len(ebh(row["inputs"]["e"], str(row["inputs"]["alpha"]))) == row["value"], row["id"]
            case _:
                continue
        ran += 1
    assert ran == 3 * 3 + 4
