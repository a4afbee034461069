from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.case import Baseline, RerunRule
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.claim_plan import (
    ClaimSettings,
    claim_plan,
    in_force,
    need_from,
    next_runs,
    risk_of,
    risk_over_fixes,
    shown_risk,
)
from pytest_regcase.rules.comparison import boschloo_p, fisher_p, predictive_at_most
from pytest_regcase.rules.plans import plan_for
from pytest_regcase.rules.sequential import Plan, SequentialResult, decide, history_of
from tests.rules.attempt_samples import live

RULE = RerunRule()
TWO_OF_20 = Baseline(failures=2, trials=20, kind="all-attempts")
ZERO = plan_for("zero", "0.10", "0.05")


def settings(**changes: Any) -> ClaimSettings:
    return ClaimSettings.model_validate(changes)


def clean(count: int) -> list[AttemptVerdict]:
    return ["clean"] * count


class TestPlan:
    @pytest.mark.parametrize(
        ("plan", "bounds"),
        [("zero", (29,)), ("allow-one", (31, 54)), ("c:1", (46, 46)), ("e-process", (30, 64, 90, 115))],
    )
    def test_it_is_the_configured_one(self, plan: str, bounds: tuple[int, ...]) -> None:
        assert claim_plan(settings(plan=plan), RULE, None).bounds == bounds
        assert claim_plan(settings(plan=plan), RULE, TWO_OF_20, 3).bounds == bounds

    @pytest.mark.parametrize(
        ("failures", "trials", "need"), [(2, 20, 68), (20, 200, 31), (1, 1, 29), (3, 10, 29), (1, 200, 3800)]
    )
    def test_fixed_asks_for_the_comparison_too(self, failures: int, trials: int, need: int) -> None:
        baseline = Baseline(failures=failures, trials=trials, kind="all-attempts")
        assert claim_plan(settings(rule="fixed"), RULE, baseline).bounds == (need,)

    def test_fixed_raises_every_bound_to_where_the_comparison_holds(self) -> None:
        plan = claim_plan(settings(rule="fixed", plan="allow-one"), RULE, TWO_OF_20)
        assert plan.name == "allow-one"
        assert plan.bounds[0] == 68
        after_one = plan.bounds[1]
        assert fisher_p(2, 20, 1, after_one) <= Decimal("0.05") < fisher_p(2, 20, 1, after_one - 1)
        many = Baseline(failures=15, trials=20, kind="fresh")
        assert claim_plan(settings(rule="fixed", plan="allow-one"), RULE, many).bounds == (31, 54)

    def test_another_comparison_may_ask_for_less(self) -> None:
        high, three_of_10 = RerunRule(max_failure_rate="0.5"), Baseline(failures=3, trials=10, kind="fresh")
        assert claim_plan(settings(plan="c:1"), high, None).bounds == (8, 8)
        fisher = claim_plan(settings(rule="fixed", plan="c:1"), high, three_of_10)
        plan = claim_plan(settings(rule="fixed", comparison="boschloo", plan="c:1"), high, three_of_10)
        assert (fisher.bounds[0], plan.bounds[0]) == (16, 11)
        # With a failure among the runs it is Fisher's number, from which on Boschloo's test holds for certain.
        assert plan.bounds[1] == fisher.bounds[1]
        assert boschloo_p(3, 10, 1, plan.bounds[1]) <= 0.05
        bayes = claim_plan(settings(rule="fixed", comparison="bayes", plan="allow-one"), RULE, TWO_OF_20)
        assert bayes.bounds[0] == 63
        assert predictive_at_most(2, 20, 1, bayes.bounds[1]) <= Decimal("0.05")
        assert predictive_at_most(2, 20, 1, bayes.bounds[1] - 1) > Decimal("0.05")

    @pytest.mark.parametrize(
        "baseline",
        [
            None,
            Baseline(failures=0, trials=20, kind="fresh"),
            Baseline(failures=2, trials=20, kind="fresh", population="sweep"),
        ],
    )
    def test_without_anything_to_compare_with_the_bounds_are_those_of_the_rate(
        self, baseline: Baseline | None
    ) -> None:
        assert claim_plan(settings(rule="fixed"), RULE, baseline).bounds == (29,)

    def test_strict_attempts_spend_the_risk(self) -> None:
        spends = settings(attempts_spend=True)
        assert [claim_plan(spends, RULE, None, number).bounds[0] for number in range(1, 6)] == [34, 47, 55, 60, 64]

    def test_an_unknown_plan_is_refused(self) -> None:
        with pytest.raises(UsageRefused, match="Couldn't use the plan 'most'"):
            claim_plan(settings(plan="most"), RULE, None)


class TestRisk:
    def test_it_is_the_stated_one_or_a_share_of_it(self) -> None:
        assert risk_of(settings(), RULE, 3) == "0.05"
        assert risk_of(settings(attempts_spend=True), RULE, 1).startswith("0.0303963550927013")
        assert risk_of(settings(attempts_spend=True), RerunRule(risk="0.0000001"), 9) == (
            "0.000000000750527286239539047732"
        )

    def test_a_share_is_shown_rounded_up(self) -> None:
        assert shown_risk("0.05") == "0.05"
        assert shown_risk("0.0001") == "0.0001"
        assert shown_risk(".00001") == ".00001"
        assert shown_risk("0.00001") == "0.0001"
        assert shown_risk("0.030396355") == "0.0304"

    @pytest.mark.parametrize(("fixes", "risk"), [(1, "0.0471"), (2, "0.0920"), (3, "0.1348"), (10, "0.3827")])
    def test_over_all_fixes_it_grows(self, fixes: int, risk: str) -> None:
        assert f"{risk_over_fixes(settings(), RULE, None, fixes):.4f}" == risk

    def test_it_is_that_of_the_plan_in_force(self) -> None:
        assert f"{risk_over_fixes(settings(plan='allow-one'), RULE, None, 1):.4f}" == "0.0498"
        assert f"{risk_over_fixes(settings(rule='fixed'), RULE, TWO_OF_20, 1):.6f}" == f"{0.9**68:.6f}"

    def test_what_all_fixes_spend_together_stays_below_the_stated_one(self) -> None:
        spends = settings(attempts_spend=True)
        assert risk_over_fixes(spends, RULE, None, 1) == pytest.approx(Decimal("0.9") ** 34)
        assert risk_over_fixes(spends, RULE, None, 12) <= Decimal("0.05")
        none = Decimal(1)
        for runs in (34, 47, 55):
            none *= 1 - Decimal("0.9") ** runs
        assert abs(risk_over_fixes(spends, RULE, None, 3) - (1 - none)) < Decimal("1e-25")


class TestInForce:
    def test_rows_are_read_until_the_plan_is_settled(self) -> None:
        found = in_force(settings(), ZERO, live(*clean(31)), pass_over=False)
        assert (found.result.outcome, found.result.settled_by_run, len(found.clean)) == ("accepted", 29, 29)
        assert (found.sessions, found.failures_left, found.plan) == (1, 1, ZERO)
        assert list(found.counted) == list(range(1, 32))

    def test_a_failed_run_leaves_less_to_spare(self) -> None:
        rows = live("clean", "recurred", "clean")
        allowing = plan_for("e-process", "0.10", "0.05")
        found = in_force(settings(), allowing, rows, pass_over=False)
        assert (found.result.outcome, found.failures_left, len(found.clean)) == ("undecided", 3, 2)
        refuted = in_force(settings(), ZERO, rows, pass_over=False)
        assert (refuted.result.outcome, refuted.failures_left, len(refuted.clean)) == ("refuted", 0, 1)

    def test_passing_over_is_the_cases_to_say(self) -> None:
        rows = live("clean", "failed-otherwise", "clean")
        assert in_force(settings(), ZERO, rows, pass_over=False).result.outcome == "refuted"
        lenient = in_force(settings(), ZERO, rows, pass_over=True)
        assert (lenient.result.outcome, [row.run for row in lenient.clean]) == ("undecided", [1, 3])
        assert list(lenient.counted) == [1, 2, 3]

    def test_a_number_counts_once_with_the_row_that_decides_it(self) -> None:
        rows = (*live("inconclusive", "clean"), *live("clean", session_id="s2"), *live("clean", session_id="s3"))
        found = in_force(settings(), ZERO, rows, pass_over=False)
        assert [(row.run, row.session_id) for row in found.clean] == [(1, "s2"), (2, "s1")]
        assert list(found.counted) == [1, 2]

    def test_distinct_counts_transcripts(self) -> None:
        rows = tuple(each.model_copy(update={"response_digest": "same"}) for each in live(*clean(3)))
        found = in_force(settings(independence="distinct"), ZERO, rows, pass_over=False)
        assert ([row.run for row in found.clean], found.result.missing) == ([1], (2, 3))
        assert len(in_force(settings(), ZERO, rows, pass_over=False).clean) == 3

    def test_off_counts_every_clean_run(self) -> None:
        rows = live(*clean(29), fresh=False)
        assert in_force(settings(), ZERO, rows, pass_over=False).result.outcome == "undecided"
        found = in_force(settings(independence="off"), ZERO, rows, pass_over=False)
        assert (found.result.outcome, len(found.clean)) == ("accepted", 29)


class TestSessions:
    THREE = settings(min_sessions=3)

    def test_too_few_ask_for_one_more_run_for_each_that_is_missing(self) -> None:
        found = in_force(self.THREE, ZERO, live(*clean(29)), pass_over=False)
        assert (found.result.outcome, found.plan.bounds, found.sessions) == ("undecided", (31,), 1)

    def test_the_claim_is_settled_by_the_first_run_of_the_last_session(self) -> None:
        rows = (*live(*clean(29)), *live("clean", first=30, session_id="s2"), *live("clean", first=31))
        found = in_force(self.THREE, ZERO, rows, pass_over=False)
        assert (found.result.outcome, found.plan.bounds, found.sessions) == ("undecided", (32,), 2)
        more = (*rows, *live("clean", "clean", first=32, session_id="s3"))
        settled = in_force(self.THREE, ZERO, more, pass_over=False)
        assert (settled.result.outcome, settled.result.settled_by_run, settled.sessions) == ("accepted", 32, 3)

    def test_a_failure_among_the_further_runs_counts(self) -> None:
        rows = (*live(*clean(29)), *live("recurred", first=30, session_id="s2"))
        found = in_force(self.THREE, ZERO, rows, pass_over=False)
        assert (found.result.outcome, found.result.refuted_by_run) == ("refuted", 30)

    def test_enough_sessions_change_nothing(self) -> None:
        rows = tuple(
            row for part in range(3) for row in live(*clean(10), first=10 * part + 1, session_id=f"s{part}")
        )
        found = in_force(self.THREE, ZERO, rows, pass_over=False)
        assert (found.result.outcome, found.plan, found.sessions) == ("accepted", ZERO, 3)

    def test_bounds_with_failures_are_raised_alike(self) -> None:
        plan = plan_for("allow-one", "0.10", "0.05")
        found = in_force(settings(min_sessions=2), plan, live(*clean(31)), pass_over=False)
        assert found.plan.bounds == (32, 55)


class TestNextRuns:
    @pytest.mark.parametrize(
        ("sessions", "made", "at_most", "wanted"),
        [
            (1, 0, 100, list(range(1, 30))),
            (1, 0, 5, [1, 2, 3, 4, 5]),
            (1, 27, 100, [28, 29]),
            (1, 29, 100, []),
            # What is left is spread over the sessions that are missing.
            (3, 0, 100, list(range(1, 11))),
            (3, 0, 4, [1, 2, 3, 4]),
            (3, 10, 100, list(range(11, 21))),
            (2, 29, 100, [30]),
            (3, 29, 100, [30]),
            (40, 0, 100, [1]),
        ],
    )
    def test_numbers(self, sessions: int, made: int, at_most: int, wanted: list[int]) -> None:
        asked = settings(min_sessions=sessions)
        standing = in_force(asked, ZERO, live(*clean(made)), pass_over=False)
        assert list(next_runs(asked, standing, at_most)) == wanted

    def test_holes_first_and_nothing_behind_a_refuted_claim(self) -> None:
        rows = live("clean", "inconclusive", "clean")
        standing = in_force(settings(), ZERO, rows, pass_over=False)
        assert next_runs(settings(), standing, 3) == (2, 4, 5)
        refuted = in_force(settings(), ZERO, live("clean", "recurred"), pass_over=False)
        assert next_runs(settings(), refuted, 9) == ()

    def test_a_plan_that_allows_a_failure_goes_on_behind_it(self) -> None:
        plan = plan_for("allow-one", "0.10", "0.05")
        standing = in_force(settings(), plan, live("recurred"), pass_over=False)
        assert next_runs(settings(), standing, 100) == tuple(range(2, 55))

    def test_a_repeated_transcript_is_made_again(self) -> None:
        rows = tuple(each.model_copy(update={"response_digest": "same"}) for each in live(*clean(3)))
        asked = settings(independence="distinct")
        assert next_runs(asked, in_force(asked, ZERO, rows, pass_over=False), 3) == (2, 3, 4)


class TestNeedFrom:
    def of(self, baseline: Baseline | None = None, sessions: int | None = None, **changes: Any) -> str:
        asked = settings(**changes)
        risk = risk_of(asked, RULE, 1)
        plan = claim_plan(asked, RULE, baseline)
        if sessions is not None:
            plan = plan.model_copy(update={"bounds": tuple(each + sessions for each in plan.bounds)})
        return need_from(asked, RULE, risk, plan_for(asked.plan, "0.10", risk), plan)

    def test_zero(self) -> None:
        assert self.of() == "29 rule out a 10 % rate at 5 % risk: 0.90^29 = 0.0471"

    def test_a_spent_risk(self) -> None:
        assert self.of(attempts_spend=True) == "34 rule out a 10 % rate at 3.04 % risk: 0.90^34 = 0.0278"

    def test_other_plans(self) -> None:
        assert self.of(plan="allow-one") == (
            "plan allow-one: 31 clean runs or 54 with 1 failed rule out a 10 % rate at 5 % risk: exact risk 0.0498"
        )
        assert self.of(plan="c:2") == (
            "plan c:2: 61 runs with at most 2 failed rule out a 10 % rate at 5 % risk: exact risk 0.0491"
        )
        assert self.of(plan="c:0").startswith("plan c:0: 29 clean runs rule out")

    def test_what_the_rest_of_the_rule_asks_for(self) -> None:
        zero = "29 rule out a 10 % rate at 5 % risk: 0.90^29 = 0.0471"
        assert self.of(TWO_OF_20, rule="fixed") == f"{zero}; 68 clean runs with the comparison with the baseline"
        assert self.of(sessions=2, min_sessions=3) == f"{zero}; 31 clean runs with 3 sessions"
        assert self.of(TWO_OF_20, sessions=1, rule="fixed", min_sessions=2) == (
            f"{zero}; 69 clean runs with the comparison with the baseline and 2 sessions"
        )


def test_many_runs_of_one_session_are_read_once_and_not_once_a_run() -> None:
    asked = settings(plan="c:50", min_sessions=5)
    plan = claim_plan(asked, RerunRule(), None)
    found = in_force(asked, plan, live(*clean(10_000)), pass_over=False)
    assert (found.result.outcome, found.sessions) == ("undecided", 1)
    assert found.plan.bounds == (10_003,) * 51  # 627, and 4 more at each of 2344 looks


def test_fixes_that_each_spend_the_whole_risk_are_not_solved_one_by_one() -> None:
    found = risk_over_fixes(settings(), RerunRule(), None, 1_000_000)
    assert found == 1 - (1 - risk_over_fixes(settings(), RerunRule(), None, 1)) ** 1_000_000


@pytest.mark.parametrize("independence", ["fresh", "distinct", "off"])
def test_a_run_that_two_sessions_made_counts_the_same_whichever_was_first(independence: str) -> None:
    asked = settings(min_sessions=2, independence=independence)
    plan = Plan(name="zero", bounds=(3,))
    rows = (*live(*clean(3), session_id="a"), *live("clean", first=2, session_id="b"))
    one = in_force(asked, plan, rows, pass_over=False)
    other = in_force(asked, plan, rows[::-1], pass_over=False)
    assert (one.plan, one.result, one.clean) == (other.plan, other.result, other.clean)
    assert one.sessions == 1


def one_look_at_a_time(
    asked: ClaimSettings, plan: Plan, rows: tuple[LiveRow, ...]
) -> tuple[Plan, SequentialResult]:
    """The definition: settled by too few sessions, a plan asks for one more run for each that is missing."""
    history = history_of(rows, pass_over=True)
    while True:
        result = decide(plan, history)
        read = [row.session_id for row in rows if row.verdict == "clean"][: result.clean]
        missing = asked.min_sessions - len(set(read))
        if result.outcome != "accepted" or missing <= 0:
            return plan, result
        plan = Plan(name=plan.name, bounds=tuple(bound + missing for bound in plan.bounds))


@pytest.mark.parametrize("min_sessions", [1, 2, 3])
@pytest.mark.parametrize("bounds", [(2,), (1, 3), (2, 2)])
def test_sessions_ask_for_no_other_runs_than_the_definition_does(
    bounds: tuple[int, ...], min_sessions: int
) -> None:
    asked, plan = settings(min_sessions=min_sessions), Plan(name="any", bounds=bounds)
    outcomes: tuple[AttemptVerdict, ...] = ("clean", "recurred", "failed-otherwise", "inconclusive")
    for verdicts in product(outcomes, repeat=4):
        for sessions in ("aaaa", "aabc"):
            made = zip(live(*verdicts), sessions, strict=True)
            rows = tuple(row.model_copy(update={"session_id": session}) for row, session in made)
            for given in (rows, rows[1:]):
                found = in_force(asked, plan, given, pass_over=True)
                expected_plan, expected = one_look_at_a_time(asked, plan, given)
                assert (found.result, verdicts, sessions) == (expected, verdicts, sessions)
                assert found.plan == expected_plan


def test_what_fixes_spend_is_that_of_the_rule_in_force() -> None:
    spends = settings(attempts_spend=True, rule="fixed")
    none = (1 - Decimal("0.9") ** claim_plan(spends, RULE, TWO_OF_20, 1).bounds[0]) * (
        1 - Decimal("0.9") ** claim_plan(spends, RULE, TWO_OF_20, 2).bounds[0]
    )
    assert abs(risk_over_fixes(spends, RULE, TWO_OF_20, 2) - (1 - none)) < Decimal("1e-25")
