from itertools import permutations
from math import exp, log

import pytest

from pytest_regcase.rules import changepoint
from pytest_regcase.rules.changepoint import Split, bb_loglik, best_changepoint, present_segment
from pytest_regcase.rules.flake import FirstAttempt
from tests.rules.history_samples import attempts, one_digest_each


def outcomes(text: str) -> list[bool | None]:
    return [each.failed for each in attempts(text)]


def slow_best(failed: list[bool | None], prior: tuple[float, float] = (0.05, 0.5)) -> Split:
    """The definition, part by part."""

    def loglik(part: list[bool | None]) -> float:
        known = [each for each in part if each is not None]
        return bb_loglik(sum(known), len(known), prior)

    scores = [
        Split(at, loglik(failed[:at]) + loglik(failed[at:]) - loglik(failed)) for at in range(1, len(failed))
    ]
    return max(scores, key=lambda each: each.score)


@pytest.mark.parametrize(
    ("failures", "runs", "prior", "expected"),
    [
        (0, 100, (0.05, 0.5), -0.32260530225574274),
        (3, 10, (0.05, 0.5), -8.842972126304007),
        (1, 1, (0.3, 0.5), -0.9808292530117262),
        (10, 10, (0.05, 0.5), -3.6302019671037695),
        (0, 0, (0.05, 0.5), 0.0),
        (1, 1, (1, 1), log(1 / 2)),
        (1, 2, (1, 1), log(1 / 6)),
    ],
)
def test_bb_loglik(failures: int, runs: int, prior: tuple[float, float], expected: float) -> None:
    assert bb_loglik(failures, runs, prior) == pytest.approx(expected, abs=1e-9)


def test_the_default_prior_is_the_one_of_first_tries() -> None:
    assert bb_loglik(3, 10) == bb_loglik(3, 10, (0.05, 0.5))


def test_the_likelihoods_of_all_sequences_add_up_to_one() -> None:
    ways = (1, 5, 10, 10, 5, 1)
    assert sum(n * exp(bb_loglik(k, 5)) for k, n in enumerate(ways)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("failures", "runs", "prior"),
    [(-1, 3, (1, 1)), (4, 3, (1, 1)), (1, 3, (0, 1)), (1, 3, (1, 0)), (1, 3, (1, -2))],
)
def test_a_likelihood_that_cannot_be(failures: int, runs: int, prior: tuple[float, float]) -> None:
    with pytest.raises(ValueError) as caught:
        bb_loglik(failures, runs, prior)
    assert (
        str(caught.value) == f"no likelihood of {failures} failures in {runs} under Beta({prior[0]}, {prior[1]})"
    )


@pytest.mark.parametrize(
    ("text", "prior", "expected"),
    [
        ("." * 30 + "FFF", (0.05, 0.5), (30, 9.577204353913535)),
        ("." * 30 + "F.F.FF.F", (0.05, 0.5), (30, 9.310712451725195)),
        (".F" * 10 + "." * 30, (0.05, 0.5), (20, 10.93863947622372)),
        ("." * 100 + "FF", (0.3, 0.5), (100, 8.871505346165781)),
        ("F" + "." * 40, (0.05, 0.5), (1, 4.3003727813170425)),
    ],
)
def test_best_changepoint(text: str, prior: tuple[float, float], expected: tuple[int, float]) -> None:
    split = best_changepoint(outcomes(text), prior)
    assert split is not None
    assert split.start == expected[0]
    assert split.score == pytest.approx(expected[1], abs=1e-9)
    if prior == (0.05, 0.5):
        assert best_changepoint(outcomes(text)) == split


def test_prefix_sums_give_what_the_definition_gives() -> None:
    for order in set(permutations("FFF...?")):
        found, slow = best_changepoint(outcomes("".join(order))), slow_best(outcomes("".join(order)))
        assert found is not None
        assert found.score == pytest.approx(slow.score, abs=1e-12)


def test_the_first_of_equal_places_stands() -> None:
    assert best_changepoint(outcomes("FF..FF"), (0.5, 0.5)) == best_changepoint(
        outcomes("FF..FF"), (0.5, 0.5), boundaries=[2]
    )
    # From either side the same score, but for the rounding of sums of lgamma.
    for blocks in range(2, 30):
        found = best_changepoint(outcomes("F" * blocks + "." * 31 + "F" * blocks))
        assert found is not None
        assert found.start == blocks


def test_of_exactly_equal_scores_the_first_stands_without_any_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changepoint, "_ROUNDING", 0.0)
    found = best_changepoint(outcomes("FF..FF"), (0.5, 0.5))
    assert found is not None
    assert found.start == 2


def test_no_evidence_is_no_change_even_where_changes_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changepoint, "SPLIT_PRIOR", 1.0)
    assert present_segment(one_digest_each("???")) == 0
    assert present_segment(one_digest_each("..F")) == 2


def test_the_place_behind_a_split_may_be_the_next_one() -> None:
    old, bad, new = attempts("." * 100, "old"), attempts("F" * 30, "bad"), attempts("." * 100, "new")
    assert present_segment((*old, *bad, *new)) == 130
    assert present_segment((*bad, *old)) == 30
    assert present_segment((*attempts("F"), *attempts("F" * 40, "e"), *old)) == 41


def test_a_better_place_is_taken_wherever_it_stands() -> None:
    text = outcomes("." * 30 + "FFF")
    early = best_changepoint(text, boundaries=[29, 30])
    late = best_changepoint(text, boundaries=[30, 29])
    assert early == late == best_changepoint(text)


def test_no_place_no_split() -> None:
    assert best_changepoint([]) is None
    assert best_changepoint([True]) is None
    assert best_changepoint(outcomes("..FF"), boundaries=[]) is None
    assert best_changepoint(outcomes(".F")) is not None


def test_what_proved_nothing_weighs_nothing() -> None:
    plain = best_changepoint(outcomes("." * 30 + "FFF"))
    holes = best_changepoint(outcomes("?" + "." * 30 + "?FF?F?"))
    assert plain is not None
    assert holes is not None
    assert holes.start == 31
    assert holes.score == plain.score


@pytest.mark.parametrize(
    ("clean", "failures"),
    [(10, 6), (20, 4), (50, 3), (100, 2)],
)
def test_how_many_failures_in_a_row_are_a_change(clean: int, failures: int) -> None:
    """The table of the statistics page, section 4: that many failures after so many passes, and not one fewer."""
    assert present_segment(one_digest_each("." * clean + "F" * failures)) == clean
    assert present_segment(one_digest_each("." * clean + "F" * (failures - 1))) == 0


def test_it_is_too_slow_to_be_an_exit_test() -> None:
    failing = "." * 9 + "F"
    assert present_segment(one_digest_each(failing * 10 + "." * 150)) == 0
    assert present_segment(one_digest_each(failing * 10 + "." * 151)) == 100
    assert present_segment(one_digest_each(failing * 2 + "." * 1500)) == 0


def test_on_equal_digests_nothing_changed() -> None:
    assert present_segment(attempts("." * 100 + "F" * 20)) == 0
    assert present_segment((*attempts("." * 90, "old"), *attempts("." * 10 + "F" * 20, "new"))) == 90


def test_the_segment_starts_where_the_digests_changed() -> None:
    history = (*attempts("." * 100, "old"), *attempts("?FF?", "new"), *attempts("F?F", "newer"))
    assert present_segment(history) == 100
    assert present_segment(history[50:]) == 50


def test_only_what_lies_behind_an_accepted_split_is_searched_again() -> None:
    history = one_digest_each("." * 100 + "F" * 30 + "." * 100)
    assert present_segment(history) == 130
    assert present_segment(one_digest_each("." * 100 + "F" * 30 + "." * 100 + "F" * 30)) == 230


def test_an_empty_or_unchanged_history_is_one_segment() -> None:
    assert present_segment(()) == 0
    assert present_segment(attempts("?")) == 0
    assert present_segment(one_digest_each("." * 500)) == 0


def test_another_prior_may_be_given() -> None:
    history = one_digest_each("." * 10 + "F" * 5)
    assert present_segment(history) == 0
    assert present_segment(history, (0.1, 0.1)) == 10


def blocks(number: int) -> tuple[FirstAttempt, ...]:
    return one_digest_each("".join(("." if each % 2 else "F") * 60 for each in range(number)))


def test_a_rate_that_changed_too_often_has_no_segment_but_the_present_digests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changepoint, "MOST_SPLITS", 4)
    assert present_segment(blocks(5)) == 60 * 4
    monkeypatch.setattr(changepoint, "MOST_SPLITS", 3)
    assert present_segment(blocks(5)) == 60 * 5 - 1


def test_ten_thousand_attempts_are_read_a_fixed_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are cut off one by one, the worst there is: the work must not grow with the square."""
    evaluated = 0
    log_beta = changepoint._log_beta

    def counting(a: float, b: float) -> float:
        nonlocal evaluated
        evaluated += 1
        return log_beta(a, b)

    monkeypatch.setattr(changepoint, "_log_beta", counting)
    history = one_digest_each((("." * 20 + "F" * 20) * 50)[:2000])
    present_segment(history)
    most = (changepoint.MOST_SPLITS + 1) * (2 * len(history) + 2)
    assert len(history) < evaluated <= most
