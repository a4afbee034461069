import random
from fractions import Fraction
from functools import cache
from itertools import chain
from math import comb

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules import quarantine
from pytest_regcase.rules.flake import FirstAttempt
from pytest_regcase.rules.pooling import tarone_z
from pytest_regcase.rules.quarantine import (
    ExitCheck,
    NoProposal,
    Probation,
    Proposal,
    check_exit,
    most_quarantined,
    probation,
    propose,
    quarantine_min_k,
)
from pytest_regcase.rules.rerun import clean_reruns
from tests.rules.history_samples import attempts, one_digest_each

ONE_PERCENT, RISK = "0.01", "0.05"


def entry(*parts: tuple[FirstAttempt, ...], budget: str = ONE_PERCENT) -> Proposal | NoProposal:
    return propose(tuple(chain(*parts)), budget=budget, risk=RISK)


def proposed(*parts: tuple[FirstAttempt, ...], budget: str = ONE_PERCENT) -> Proposal:
    found = entry(*parts, budget=budget)
    assert isinstance(found, Proposal)
    return found


def way_out(*parts: tuple[FirstAttempt, ...], budget: str = ONE_PERCENT) -> ExitCheck:
    return check_exit(chain(*parts), entry_digests="old", budget=budget, risk=RISK)


def tail(failures: int, runs: int, rate: Fraction) -> Fraction:
    """P(X >= failures), summed term by term."""
    return sum(
        (comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(failures, runs + 1)), Fraction(0)
    )


def twice(runs: int, rate: Fraction) -> Fraction:
    """P(X >= 2)."""
    return 1 - (1 - rate) ** runs - runs * rate * (1 - rate) ** (runs - 1)


@pytest.mark.parametrize(
    ("runs", "budget", "fewest"),
    [
        (10, "0.01", 2),
        (20, "0.01", 2),
        (50, "0.01", 3),
        (100, "0.01", 4),
        (200, "0.01", 6),
        (20, "0.02", 3),
        (50, "0.02", 4),
        (100, "0.02", 6),
        (20, "0.05", 4),
        (50, "0.05", 6),
        (100, "0.05", 10),
        (200, "0.05", 16),
        # Nothing shows it: more failures than attempts would be needed.
        (0, "0.01", 1),
        (1, "0.06", 2),
        # A tie: one failure in one attempt bounds the rate by exactly the risk from below, which is not above it.
        (1, "0.05", 2),
        (1, "0.0499999999999999999999", 1),
    ],
)
def test_the_fewest_failures_that_show_a_rate_above_the_budget(runs: int, budget: str, fewest: int) -> None:
    assert quarantine_min_k(runs, budget, RISK) == fewest


def test_the_fewest_failures_are_those_of_the_exact_tail() -> None:
    for runs in (1, 2, 3, 7, 20, 33):
        for budget in ("0.004", "0.1", "0.25", "0.9"):
            for risk in ("0.01", "0.25"):
                fewest = next(k for k in range(runs + 2) if tail(k, runs, Fraction(budget)) < Fraction(risk))
                assert quarantine_min_k(runs, budget, risk) == fewest


@pytest.mark.parametrize(
    ("budget", "risk", "named"), [("0", "0.05", "flake_budget = 0"), ("0.01", "1", "risk = 1")]
)
def test_a_budget_or_risk_that_is_none_is_named(budget: str, risk: str, named: str) -> None:
    with pytest.raises(UsageRefused, match=f"^Couldn't use {named}:"):
        quarantine_min_k(20, budget, risk)
    with pytest.raises(UsageRefused, match=f"^Couldn't use {named}:"):
        propose(attempts("."), budget=budget, risk=risk)
    with pytest.raises(UsageRefused, match=f"^Couldn't use {named}:"):
        probation(budget, risk)


def test_a_proposal_with_its_numbers() -> None:
    history = (*attempts("F" + "." * 12, "one"), *attempts("." * 6 + "F?", "two"))
    assert entry(history) == Proposal(
        failures=2,
        attempts=20,
        unknown=1,
        sessions=20,
        digests="two",
        lower="0.018065",
        budget="0.01",
        risk="0.05",
        at_every_look=False,
        clean_to_leave=299,
        says=(
            "flaky: 2 of 20 first attempts failed, on digests that also pass; at this look the rate is at least"
            " 1.8065 %, which is above the budget of 1 %. Out again: a change and 299 clean first attempts"
        ),
    )


def test_a_smaller_risk_asks_for_more() -> None:
    two, three = attempts("FF" + "." * 18), attempts("FFF" + "." * 17)
    refused = propose(two, budget=ONE_PERCENT, risk="0.01")
    assert refused == NoProposal(
        code="within-budget",
        why="2 of 20 first attempts failed; only 3 would show a rate above the budget of 1 %",
    )
    found = propose(three, budget=ONE_PERCENT, risk="0.01")
    assert isinstance(found, Proposal)
    assert (found.lower, found.risk, found.at_every_look, found.clean_to_leave) == ("0.022711", "0.01", False, 459)


def test_one_failure_in_ten_is_no_rate_of_ten_percent() -> None:
    """Pitfall 14: no point estimate ever quarantines."""
    assert entry(attempts("F" + "." * 9)) == NoProposal(
        code="too-few-attempts",
        why="10 first attempts on digests that pass; 20 are needed to call it flaky",
    )
    assert entry(attempts("F" + "." * 19)) == NoProposal(
        code="too-few-failures", why="1 of 20 first attempts failed; it takes 2 to call it flaky"
    )
    # 4 % observed, four times the budget, and still not shown.
    assert entry(attempts("FF" + "." * 48)) == NoProposal(
        code="within-budget",
        why="2 of 50 first attempts failed; only 3 would show a rate above the budget of 1 %",
    )


def test_each_limit_of_entry_by_itself() -> None:
    assert isinstance(entry(attempts("FF" + "." * 18)), Proposal)
    assert entry(attempts("FF" + "." * 17)) == NoProposal(
        code="too-few-attempts", why="19 first attempts on digests that pass; 20 are needed to call it flaky"
    )
    # With a tiny budget one failure lies above it. One is still no pattern.
    one = entry(attempts("F" + "." * 19), budget="0.0001")
    assert isinstance(one, NoProposal)
    assert one.code == "too-few-failures"
    assert isinstance(entry(attempts("FFF" + "." * 47)), Proposal)


def test_a_case_that_only_fails_is_never_flaky() -> None:
    only = NoProposal(
        code="only-fails",
        why=(
            "every failure (40) was on digests on which nothing passed: a regression until shown otherwise, not a"
            " flake. Repair it, or set it aside by hand as broken, for at most 14 days"
        ),
    )
    assert entry(attempts("F" * 40)) == only
    assert entry(one_digest_each("F" * 40)) == only


def test_a_regression_that_was_repaired_is_no_flake() -> None:
    found = entry(attempts("." * 50, "good"), attempts("FFF", "bad"), attempts("." * 50, "mended"))
    assert isinstance(found, NoProposal)
    assert found.code == "only-fails"


def test_failures_and_passes_on_digests_of_their_own_need_a_confirm_run_that_passed() -> None:
    nights = "..F....F....F....F...."
    found = entry(one_digest_each(nights))
    assert isinstance(found, NoProposal)
    assert found.code == "only-fails"
    confirmed = proposed(one_digest_each(nights, confirm_passed=True))
    assert (confirmed.failures, confirmed.attempts, confirmed.digests) == (4, 22, "r17")


def test_what_proved_nothing_quarantines_nobody() -> None:
    """Pitfall 9: unknown is neither clean nor a failure."""
    found = entry(attempts("F" + "." * 18 + "?" * 30))
    assert isinstance(found, NoProposal)
    assert found.code == "too-few-attempts"
    assert proposed(attempts("FF" + "." * 18 + "?" * 5)).unknown == 5


def test_an_empty_history_is_no_evidence() -> None:
    assert entry() == NoProposal(
        code="too-few-attempts", why="0 first attempts on digests that pass; 20 are needed to call it flaky"
    )


def test_sessions_are_counted_and_regressions_left_out_of_them() -> None:
    flaky = attempts("F" + "." * 10 + "F" + "." * 10)
    two = tuple(each._replace(session_id=f"s{n % 2}") for n, each in enumerate(flaky))
    assert proposed(two).sessions == 2
    assert proposed(flaky, attempts("F?", "bad")).sessions == 22
    assert proposed(attempts("F?", "bad"), flaky, attempts("F", "worse")).digests == "d"


def test_only_the_present_segment_is_read() -> None:
    """Pitfall 10: what another revision did before its rate changed is not pooled in."""
    shaky = attempts("FF.F" * 15, "old")
    found = entry(shaky, attempts("." * 60, "new"))
    assert isinstance(found, NoProposal)
    assert found == NoProposal(
        code="too-few-failures", why="0 of 60 first attempts failed; it takes 2 to call it flaky"
    )
    assert proposed(shaky).failures == 45
    turned = proposed(attempts("." * 100, "old"), attempts("F..F" * 6, "new"))
    assert (turned.failures, turned.attempts) == (12, 24)


def test_revisions_that_fail_at_different_rates_are_not_pooled() -> None:
    """Pitfall 10 within one segment: Tarone's test says that the counts are not of one rate."""
    shaky, steady = attempts("F..F" + "." * 20, "old"), attempts("." * 17, "new")
    assert proposed(shaky).failures == 2
    bad = attempts("FFF" + "." * 5, "old")
    found = entry(bad, steady)
    assert found == NoProposal(
        code="too-few-attempts",
        why=(
            "17 first attempts on digests that pass; 20 are needed to call it flaky; its revisions fail at"
            " different rates, so the present one was read alone"
        ),
    )
    # Alone, the present revision may still be flaky; then nothing of the old one is in its numbers.
    alone = proposed(attempts("." * 60, "old"), attempts("?FFF" + "." * 17, "new"))
    assert (alone.failures, alone.attempts, alone.unknown, alone.at_every_look) == (3, 20, 1, False)


def test_the_present_digests_are_those_of_the_last_attempt() -> None:
    found = entry(attempts("." * 60, "old"), attempts("FFF" + "." * 17, "new"), attempts(".", "newest"))
    assert isinstance(found, NoProposal)
    assert found.why.startswith(
        "1 first attempts on digests that pass; 20 are needed to call it flaky; its revisions"
    )


def test_revisions_are_pooled_up_to_the_limit_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = attempts("." * 60, "old"), attempts("FFF" + "." * 17, "new")
    z = tarone_z([0, 3], [60, 20])
    monkeypatch.setattr(quarantine, "OVERDISPERSED", z)
    assert proposed(old, new).attempts == 80


def test_revisions_that_fail_alike_are_pooled() -> None:
    found = proposed(attempts("F" + "." * 11, "old"), attempts("F" + "." * 12, "new"))
    assert (found.failures, found.attempts, found.digests) == (2, 25, "new")


def test_regressions_are_left_out_before_revisions_are_compared() -> None:
    found = proposed(attempts("F" + "." * 11, "old"), attempts("FF", "bad"), attempts("F" + "." * 12, "new"))
    assert (found.failures, found.attempts) == (2, 25)


def test_a_bound_for_one_look_is_not_sold_as_one_for_every_look() -> None:
    """Pitfall 20: re-read after every attempt, the bound for a fixed number fires sooner or later.

    A case within its budget, looked at after every attempt: more than 10 % of such histories cross the fixed
    bound once, and at most about 5 % what is called evidence at every look.
    """
    within = [looks(0.05, seed) for seed in range(100)]
    assert sum("one look" in seen or "every look" in seen for seen in within) > 2 * 100 * 0.05
    assert sum("every look" in seen for seen in within) <= 100 * 0.05
    assert sum("every look" in looks(0.25, seed) for seed in range(10)) >= 9


def looks(rate: float, seed: int) -> set[str]:
    """What was said in the course of 100 attempts, each of which failed with probability `rate`."""
    chance = random.Random(seed)
    failures, seen = 0, set[str]()
    for runs in range(1, 101):
        failed = chance.random() < rate
        failures += failed
        if failed and runs >= 20 and failures > 0.05 * runs:  # else it shows nothing new
            seen.add(look(failures, runs))
    return seen


@cache
def look(failures: int, runs: int) -> str:
    found = entry(attempts("F" * failures + "." * (runs - failures)), budget="0.05")
    if isinstance(found, NoProposal):
        return "nothing"
    return "every look" if found.at_every_look else "one look"


def test_evidence_at_every_look_is_said() -> None:
    found = proposed(attempts("FFF" + "." * 17))
    assert found.at_every_look
    assert found.says == (
        "flaky: 3 of 20 first attempts failed, on digests that also pass; at this look the rate is at least"
        " 4.2169 %, and at every look it is above the budget of 1 %. Out again: a change and 299 clean first"
        " attempts"
    )


@pytest.mark.parametrize("budget", ["0.01", "0.05", "0.2"])
@pytest.mark.parametrize("failures", [3, 8, 15])
def test_where_evidence_at_every_look_ends(budget: str, failures: int) -> None:
    """The mixture's likelihood over that of the budget, as an exact product (an urn): 20 or more is evidence."""
    rate = Fraction(budget)
    ratio = Fraction(1)
    for number in range(failures):
        ratio *= Fraction(2 * number + 1, 2 * number + 2) / rate
    runs = failures
    while ratio >= 20:
        last, passes = ratio, runs - failures
        ratio *= Fraction(2 * passes + 1, 2 * runs + 2) / (1 - rate)
        runs += 1
    assert ratio < 20 <= last
    for length in range(max(20, runs - 3), runs + 3):
        found = entry(attempts("F" * failures + "." * (length - failures)), budget=budget)
        assert isinstance(found, Proposal)
        assert found.at_every_look is (length < runs)


def test_a_part_that_was_picked_after_the_fact_is_no_evidence_at_every_look() -> None:
    assert proposed(attempts("FFF" + "." * 17, "new")).at_every_look
    assert not proposed(attempts("." * 400, "old"), attempts("FFF" + "." * 17, "new")).at_every_look


def test_the_way_out_is_not_wider_than_the_way_in() -> None:
    """Pitfall 15: 50 clean runs would let a case out that 2 % put in; 149 are asked for."""
    for budget in ("0.01", "0.02", "0.05", "0.10"):
        need = clean_reruns(budget, RISK)
        assert proposed(attempts("F" * 8 + "." * 12), budget=budget).clean_to_leave == need
        assert not way_out(attempts("." * (need - 1), "new"), budget=budget).granted
        let_out = way_out(attempts("." * need, "new"), budget=budget)
        assert let_out.granted
        assert let_out.bound is not None
        assert Fraction(let_out.bound) <= Fraction(budget)
    assert clean_reruns("0.02", RISK) == 149


def test_out_after_a_change_and_the_clean_runs_of_the_budget() -> None:
    assert way_out(attempts("FF.", "old"), attempts("." * 298 + "?.", "new")) == ExitCheck(
        code="granted",
        clean=299,
        need=299,
        unknown=1,
        changes=1,
        bound="0.0100",
        risk_over_changes="0.0496",
        probation=None,
        says="exit granted: 299 clean shows < 1 %, budget is 1 %; 1 unknown, not counted as clean (change 1)",
    )


def test_refused_with_what_the_clean_runs_show_and_with_probation() -> None:
    found = way_out(attempts("." * 29, "new"))
    assert found == ExitCheck(
        code="too-few-clean",
        clean=29,
        need=299,
        unknown=0,
        changes=1,
        bound="0.0982",
        risk_over_changes="0.0496",
        probation=Probation(
            runs=35,
            red_at_budget="0.0479",
            bound="0.1286",
            says=(
                "probation: it gates again, red on the second failure in 35 first attempts; at its budget that"
                " happens in 4.79 %, and passing shows only < 12.86 %"
            ),
        ),
        says=(
            "exit refused: 29 clean shows < 9.82 %, budget is 1 %; 270 more clean first attempts are needed. Or"
            " probation: it gates again, red on the second failure in 35 first attempts; at its budget that"
            " happens in 4.79 %, and passing shows only < 12.86 %"
        ),
    )
    assert not found.granted


def test_where_the_budget_allows_no_probation_none_is_offered() -> None:
    found = way_out(attempts(".", "new"), budget="0.5")
    assert found.probation is None
    assert found.says == (
        "exit refused: 1 clean shows < 95 %, budget is 50 %; 4 more clean first attempts are needed"
    )


def test_passes_without_a_change_do_not_let_it_out() -> None:
    assert way_out(attempts("." * 1000, "old")) == ExitCheck(
        code="no-change",
        clean=0,
        need=299,
        unknown=0,
        changes=0,
        bound=None,
        risk_over_changes=None,
        says="exit refused: nothing was changed since it was quarantined, and passes alone do not end it",
    )
    assert way_out().code == "no-change"
    # A change on which nothing came out yet is none that was tried.
    assert way_out(attempts("??", "new")).code == "no-change"


def test_a_failure_uses_the_change_up() -> None:
    """The counter does not start again by itself (pitfall 5): passes on digests that failed prove nothing new."""
    assert way_out(attempts("." * 298 + "F" + "." * 400, "new")) == ExitCheck(
        code="failed-again",
        clean=0,
        need=299,
        unknown=0,
        changes=1,
        bound=None,
        risk_over_changes="0.0496",
        says="exit refused: it failed again after change 1; another change starts a new count",
    )


def test_another_change_starts_a_new_count_and_the_risk_over_both_is_said() -> None:
    found = way_out(attempts("...?F", "second"), attempts("." * 299, "third"))
    assert way_out(attempts("?.??", "second")).unknown == 3
    assert (found.code, found.clean, found.unknown, found.changes) == ("granted", 299, 0, 2)
    assert found.risk_over_changes == "0.0967"  # 1 - (1 - 0.99^299)^2
    assert found.says == "exit granted: 299 clean shows < 1 %, budget is 1 % (change 2)"


def test_all_digests_since_the_change_are_used_up_by_a_failure() -> None:
    first, failed = attempts("." * 200, "first"), attempts("F", "other")
    found = way_out(first, failed, attempts("." * 300, "first"))
    assert (found.code, found.clean, found.changes) == ("failed-again", 0, 1)
    # Neither are the digests it was quarantined on a change, nor those that failed longer ago.
    found = way_out(
        first, failed, attempts("F", "third"), attempts("." * 300, "old"), attempts("." * 300, "other")
    )
    assert (found.code, found.clean, found.changes) == ("failed-again", 0, 2)


def test_clean_runs_on_several_changed_digests_are_one_count() -> None:
    found = way_out(attempts("." * 150, "second"), attempts("F", "old"), attempts("." * 149, "third"))
    assert (found.code, found.clean, found.changes) == ("granted", 299, 1)


def test_a_bound_that_meets_a_small_budget_is_not_printed_above_it() -> None:
    budget = "0.000256"
    found = way_out(attempts("." * clean_reruns(budget, RISK), "new"), budget=budget)
    assert found.bound == budget
    assert found.says == "exit granted: 11701 clean shows < 0.0256 %, budget is 0.0256 % (change 1)"


@pytest.mark.parametrize(
    ("budget", "risk", "runs", "red", "bound"),
    [
        ("0.01", "0.05", 35, "0.0479", "0.1286"),
        ("0.05", "0.05", 7, "0.0444", "0.5208"),
        ("0.2", "0.05", 2, "0.0400", "0.9747"),
        # A tie: 1 - 0.8^2 - 2 * 0.2 * 0.8 is exactly 0.04.
        ("0.2", "0.04", 2, "0.0400", "0.9798"),
        ("0.000256", "0.05", 1388, "0.0500", "0.0035"),
    ],
)
def test_how_long_probation_lasts(budget: str, risk: str, runs: int, red: str, bound: str) -> None:
    found = probation(budget, risk)
    assert found is not None
    assert (found.runs, found.red_at_budget, found.bound) == (runs, red, bound)
    assert twice(runs, Fraction(budget)) <= Fraction(risk) < twice(runs + 1, Fraction(budget))


def test_probation_is_as_long_as_the_exact_tail_allows() -> None:
    for budget in ("0.03", "0.04", "0.06", "0.08", "0.11", "0.15"):
        found = probation(budget, RISK)
        assert found is not None
        longest = max(n for n in range(1, 40) if twice(n, Fraction(budget)) <= Fraction(RISK))
        assert found.runs == longest


@pytest.mark.parametrize(
    ("budget", "risk"),
    [
        ("0.5", "0.05"),
        ("0.3", "0.05"),
        ("0.2", "0.0399999"),
        # 1e-40 below the square of the budget, which is how likely two of two fail.
        ("0.20000000000000000001", "0.040000000000000000004"),
    ],
)
def test_a_budget_at_which_two_failures_are_no_surprise_has_no_probation(budget: str, risk: str) -> None:
    assert probation(budget, risk) is None


@pytest.mark.parametrize(
    ("cases", "limit", "most"),
    [(1, 3, 3), (60, 3, 3), (79, 3, 3), (80, 3, 4), (200, 3, 10), (60, 0, 3), (19, 0, 0)],
)
def test_how_many_may_be_quarantined_at_once(cases: int, limit: int, most: int) -> None:
    assert most_quarantined(cases, limit) == most
    assert most_quarantined(cases) == max(3, cases * 5 // 100)


class TestFailsNow:
    """What fails since some session, and nothing passed since, is broken: no flake, though it passed once."""

    PASSED = FirstAttempt(failed=False, digests="same", session_id="early", times=60)
    UNKNOWN = FirstAttempt(failed=None, digests="same", session_id="lost")

    def failed(self, session_id: str, *, confirm_passed: bool = False, times: int = 1) -> FirstAttempt:
        return FirstAttempt(
            failed=True, digests="same", session_id=session_id, confirm_passed=confirm_passed, times=times
        )

    def found(self, *history: FirstAttempt) -> Proposal | NoProposal:
        return propose((self.PASSED, *history), budget="0.01", risk="0.05")

    def test_it_says_since_when_and_how_often(self) -> None:
        found = self.found(self.failed("s1"), self.UNKNOWN, self.failed("s2", times=2), self.UNKNOWN)
        assert found == NoProposal(
            code="only-fails",
            why=(
                "it fails always since session s1 (3 first attempts, and no confirm run passed): a regression"
                " until shown otherwise, not a flake. Repair it, or set it aside by hand as broken, for at most"
                " 14 days"
            ),
        )

    def test_two_are_enough(self) -> None:
        flaky = self.failed("s1", confirm_passed=True)
        found = self.found(flaky, flaky, self.failed("s2"), self.failed("s3"))
        assert isinstance(found, NoProposal)
        assert "since session s2 (2 first attempts" in found.why

    @pytest.mark.parametrize("passed", ["first", "confirm"])
    def test_a_pass_of_any_kind_since_makes_it_a_flake(self, passed: str) -> None:
        last = (
            FirstAttempt(failed=False, digests="same", session_id="s4")
            if passed == "first"
            else self.failed("s4", confirm_passed=True)
        )
        failures = (self.failed("s1"), self.failed("s2"), self.failed("s3"))
        assert isinstance(self.found(*failures, last), Proposal)
        assert isinstance(self.found(*failures, last, self.failed("s5")), Proposal)
        assert isinstance(self.found(*failures, last, self.failed("s5"), self.failed("s6")), NoProposal)
