"""What a case's live runs claim so far, in words and numbers."""

from typing import Any

import pytest

from pytest_regcase.records.decision import Claim
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.gate import decide
from tests.rules.attempt_samples import a_case, a_fix, case_inputs, gate_inputs, live

OUTPUT = {"symptom": "wrong answer", "source_event": "e", "termination": "finished"}


def clean(count: int) -> list[AttemptVerdict]:
    return ["clean"] * count


def baseline(failures: int, trials: int, **changes: Any) -> dict[str, Any]:
    return {"failures": failures, "trials": trials, "kind": "all-attempts", **changes}


def in_sessions(*counts: int) -> tuple[LiveRow, ...]:
    """Clean runs, that many in each session."""
    rows: list[LiveRow] = []
    for number, count in enumerate(counts):
        rows += live(*clean(count), first=len(rows) + 1, session_id=f"s{number}")
    return tuple(rows)


def with_transcripts(*sizes: int) -> tuple[LiveRow, ...]:
    """Clean runs with transcripts of which each is there so many times."""
    digests = [f"t{number}" for number, size in enumerate(sizes) for _ in range(size)]
    rows = in_sessions(len(digests))
    return tuple(row.model_copy(update={"response_digest": each}) for row, each in zip(rows, digests, strict=True))


def claim(rows: tuple[LiveRow, ...], fix_number: int = 1, other_ledger: bool = False, **changes: Any) -> Claim:
    """The claim under settings and a case that differ from the default ones in `changes`."""
    names = ("plan", "rule", "comparison", "min_sessions", "attempts_spend", "independence")
    settings = {name: changes.pop(name) for name in names if name in changes}
    case = case_inputs(
        a_case(fix=(a_fix(fix_number),), **changes),
        live=rows,
        claims=settings,
        fix_is_of_another_ledger=other_ledger,
    )
    found = decide(gate_inputs(case)).cases[0].claim
    assert found is not None
    return found


class TestKind:
    @pytest.mark.parametrize(
        ("runs", "before", "kind"),
        [
            (28, None, "none"),
            (29, None, "BOUNDED"),
            (29, baseline(2, 20), "BOUNDED"),
            (29, baseline(1, 1), "FIXED"),
            (19, baseline(1, 1), "IMPROVED"),
            (18, baseline(1, 1), "none"),
            (2, baseline(5, 5), "IMPROVED"),
            (28, baseline(0, 20), "NOT REPRODUCED"),
            (29, baseline(0, 20), "BOUNDED"),
            (29, baseline(1, 1, population="sweep"), "BOUNDED"),
        ],
    )
    def test_a_word_for_what_is_shown(self, runs: int, before: dict[str, Any] | None, kind: str) -> None:
        given: dict[str, Any] = {} if before is None else {"baseline": before}
        assert claim(in_sessions(runs), **given).kind == kind

    def test_the_p_value_and_how_it_was_got(self) -> None:
        found = claim(in_sessions(29), baseline=baseline(20, 200))
        assert found.p_value == "0.0587"
        assert found.compared is not None
        assert found.compared.startswith("not shown to fail less than before (20 of 200, ")
        assert found.compared.endswith("= 0.0587)")
        assert claim(in_sessions(29)).p_value is None
        assert claim(in_sessions(29)).compared is None
        assert claim((), baseline=baseline(20, 200)).p_value is None
        bayes = claim(in_sessions(29), baseline=baseline(20, 200), comparison="bayes")
        assert bayes.p_value not in (None, found.p_value)

    def test_a_refuted_claim_claims_nothing(self) -> None:
        found = claim(live(*clean(20), "recurred"), baseline=baseline(5, 5))
        assert (found.kind, found.settled, found.lacks, found.warnings) == ("none", False, (), ())
        assert (found.p_value, found.compared, found.bound) == (None, None, None)
        assert (found.clean, found.failures, found.refuted_by_run) == (20, 0, 21)
        assert claim(live("recurred"), baseline=baseline(0, 20)).kind == "none"

    def test_one_clean_run_says_little_and_not_nothing(self) -> None:
        found = claim(in_sessions(1), baseline=baseline(20, 200))
        assert (found.bound, found.p_value) == ("0.9500", "0.9005")
        assert claim(()).bound is None

    def test_what_proved_nothing_counts_against_the_claim(self) -> None:
        rows = live("inconclusive", *clean(11))
        assert claim(rows).bound == "0.3387"
        assert claim(rows, baseline=baseline(5, 5)).p_value == "0.0010"
        assert claim(live(*clean(11)), baseline=baseline(5, 5)).p_value == "0.0003"


class TestRule:
    def test_bounded_is_enough_unless_the_rule_says_otherwise(self) -> None:
        found = claim(in_sessions(29), baseline=baseline(2, 20))
        assert (found.rule, found.settled, found.need, found.lacks) == ("bounded", True, 29, ())
        assert found.need_from == "29 rule out a 10 % rate at 5 % risk: 0.90^29 = 0.0471"

    def test_fixed_makes_the_comparison_compulsory(self) -> None:
        asked: dict[str, Any] = {"rule": "fixed", "baseline": baseline(2, 20)}
        short = claim(in_sessions(29), **asked)
        assert (short.rule, short.kind, short.settled, short.need, short.clean) == ("fixed", "none", False, 68, 29)
        assert short.lacks == ("fewer failures than in the baseline: p = 0.1616, at most 0.05 is asked for",)
        enough = claim(in_sessions(68), **asked)
        assert (enough.kind, enough.settled, enough.lacks) == ("FIXED", True, ())
        assert enough.p_value == "0.0497"

    def test_a_refuted_claim_lacks_nothing(self) -> None:
        asked: dict[str, Any] = {"rule": "fixed", "baseline": baseline(2, 20)}
        assert claim(live("clean", "recurred"), min_sessions=3, **asked).lacks == ()

    def test_the_risk_over_all_fixes_is_that_of_the_rule_in_force(self) -> None:
        assert claim((), rule="fixed", baseline=baseline(2, 20)).risk_over_fixes == "0.0008"

    @pytest.mark.parametrize("before", [None, baseline(0, 20), baseline(2, 20, population="sweep")])
    def test_fixed_is_never_settled_without_failures_to_compare_with(self, before: dict[str, Any] | None) -> None:
        given: dict[str, Any] = {} if before is None else {"baseline": before}
        found = claim(in_sessions(100), rule="fixed", **given)
        assert (found.kind, found.settled, found.need) == ("BOUNDED", False, 29)
        assert found.lacks == ("a baseline of live runs of this task with a failure in it, for the comparison",)

    def test_sessions_are_enforced_when_they_are_asked_for(self) -> None:
        short = claim(in_sessions(29), min_sessions=3)
        assert (short.kind, short.settled, short.need) == ("none", False, 31)
        assert short.lacks == ("clean runs from 3 sessions; so far 1",)
        assert claim(in_sessions(29, 1, 1), min_sessions=3).settled
        assert claim(in_sessions(10, 10, 9), min_sessions=3).need == 29

    def test_the_ledger_of_the_fix_is_needed(self) -> None:
        found = claim(in_sessions(29), fix_number=2, other_ledger=True)
        assert (found.kind, found.settled, found.clean) == ("none", False, 29)
        assert found.lacks == ("the ledger that fix 2 was claimed on",)
        improved = claim(in_sessions(29), other_ledger=True, baseline=baseline(5, 5))
        assert (improved.kind, improved.settled, improved.compared) == ("none", False, None)

    def test_one_transcript_is_one_draw_where_the_symptom_is_in_the_output(self) -> None:
        found = claim(with_transcripts(29), observation=OUTPUT)
        assert (found.kind, found.settled, found.distinct) == ("none", False, 1)
        assert found.lacks == ("transcripts that differ: all 29 clean runs gave the same one",)
        assert claim(with_transcripts(28, 1), observation=OUTPUT).settled
        assert claim(with_transcripts(29)).settled
        assert claim(with_transcripts(1), observation=OUTPUT).lacks == ()
        assert claim(with_transcripts(2), observation=OUTPUT).lacks == (
            "transcripts that differ: all 2 clean runs gave the same one",
        )
        nothing_recorded = tuple(row.model_copy(update={"response_digest": None}) for row in in_sessions(29))
        assert not claim(nothing_recorded, observation=OUTPUT).settled
        assert claim(with_transcripts(29), observation=OUTPUT, independence="off").settled


class TestPlans:
    def test_one_failure_is_allowed_where_the_plan_allows_one(self) -> None:
        rows = live("clean", "recurred", *clean(52))
        found = claim(rows, plan="allow-one")
        assert (found.plan, found.kind, found.settled) == ("allow-one", "BOUNDED", True)
        assert (found.need, found.clean, found.failures, found.refuted_by_run) == (53, 53, 1, None)
        assert found.bound == "0.0849"
        again = claim((*live("clean", "recurred", "clean", "recurred"),), plan="allow-one")
        assert (again.kind, again.failures, again.refuted_by_run) == ("none", 1, 4)

    def test_the_plan_decides_and_not_one_look(self) -> None:
        found = claim(in_sessions(30), plan="allow-one")
        assert (found.kind, found.need, found.bound) == ("none", 31, "0.0951")

    @pytest.mark.parametrize(("number", "need", "over"), [(1, 34, "0.0279"), (3, 55, "0.0377")])
    def test_strict_attempts_spend_the_risk(self, number: int, need: int, over: str) -> None:
        found = claim(in_sessions(29), fix_number=number, attempts_spend=True)
        assert (found.attempts_spend, found.need, found.risk_over_fixes) == (True, need, over)
        assert found.risk != "0.05"

    def test_the_risk_over_all_fixes_is_always_there(self) -> None:
        assert claim(()).risk_over_fixes == "0.0472"
        assert claim((), fix_number=3).risk_over_fixes == "0.1348"
        assert claim((), fix_number=3).fix_number == 3


class TestWarnings:
    def test_sessions(self) -> None:
        one = (
            "all clean runs come from 1 session: what a session shares (an outage, a model snapshot) they share"
            " too; 3 or more say more"
        )
        assert claim(in_sessions(29)).warnings == (one,)
        assert claim(in_sessions(20, 9)).warnings == (one.replace("1 session:", "2 sessions:"),)
        assert claim(in_sessions(10, 10, 9)).warnings == ()
        assert claim(in_sessions(28)).warnings == ()

    def test_an_unasked_independence(self) -> None:
        unverified = "UNVERIFIED: whether the clean runs are independent draws was not asked (independence = off)"
        found = claim(live("clean", "clean", fresh=False), independence="off")
        assert (found.independence, found.clean, found.warnings) == ("off", 2, (unverified,))

    def test_transcripts_that_repeat(self) -> None:
        few = (
            "30 clean runs gave 3 transcripts, worth 1.15 different ones: the true number of draws lies in between"
        )
        allowing: dict[str, Any] = {"plan": "allow-one"}
        assert claim(with_transcripts(28, 1, 1), **allowing).warnings == (few,)
        assert claim(with_transcripts(2, 2), **allowing).warnings == ()
        assert claim(with_transcripts(3, 2), **allowing).warnings == (
            "5 clean runs gave 2 transcripts, worth 1.92 different ones: the true number of draws lies in between",
        )
        assert claim(with_transcripts(5), **allowing).warnings == ()

    def test_of_the_baseline(self) -> None:
        found = claim(in_sessions(10, 10, 9), baseline=baseline(1, 1, kind="trigger-only"))
        assert [each.split(".")[0] for each in found.warnings] == ["The baseline is the trial that made the case"]

    def test_nothing_is_said_of_runs_that_were_not_made(self) -> None:
        assert claim((), baseline=baseline(1, 1, kind="trigger-only"), independence="off").warnings == ()


def test_one_draw_repeated_shows_neither_a_bound_nor_an_improvement() -> None:
    rows = with_transcripts(68)
    found = claim(rows, rule="fixed", observation=OUTPUT, baseline=baseline(2, 20))
    assert (found.kind, found.settled, found.clean) == ("none", False, 68)
    assert (found.bound, found.p_value, found.compared) == (None, None, None)
    # Where the supplier draws, equal transcripts are only a note.
    assert claim(rows, rule="fixed", baseline=baseline(2, 20)).kind == "FIXED"


@pytest.mark.parametrize(
    ("before", "chance"),
    [
        (baseline(1, 1, kind="trigger-only"), None),
        (baseline(0, 9), None),
        (baseline(1, 20000), "0.9986"),
        (baseline(1, 200), "0.86"),
    ],
)
def test_what_would_pass_unchanged_is_said_where_the_baseline_has_a_rate(before: Any, chance: str | None) -> None:
    assert claim(in_sessions(29), baseline=before).would_pass_unchanged == chance


def test_it_is_said_of_the_clean_runs_that_are_needed() -> None:
    rows = live("recurred", *clean(20))
    found = claim(rows, plan="allow-one", baseline=baseline(20, 200))
    assert (found.need, found.would_pass_unchanged) == (53, "0.0038")  # 0.9^53, not 0.9^31
