"""What must hold for the rules whatever the numbers are."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.records.words import AttemptVerdict, Profile
from pytest_regcase.rules.binomial import bound_text, upper_bound
from pytest_regcase.rules.confirm import check_result, most_tries, wants_another
from pytest_regcase.rules.gate import SEEN_TO_BE_WRONG, decide
from pytest_regcase.rules.rerun import clean_reruns
from pytest_regcase.rules.sequential import Plan, RunOutcome, wanted_runs
from pytest_regcase.rules.sequential import decide as read_runs
from tests.rules.attempt_samples import a_case, a_fix, case_inputs, control, gate_inputs, live, simulation

SETTINGS = settings(deadline=None, derandomize=True)
RATES = st.integers(1, 999).map(lambda each: f"{Decimal(each) / 1000}")
RISKS = st.integers(1, 999).map(lambda each: f"{Decimal(each) / 1000}")
OUTCOMES: st.SearchStrategy[RunOutcome] = st.sampled_from(["clean", "failed", "unknown", "passed-over"])
HISTORIES = st.dictionaries(st.integers(1, 12), OUTCOMES)
PLANS = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(
    lambda steps: Plan(name="any", bounds=tuple(sum(steps[: index + 1]) for index in range(len(steps))))
)
CHECK_VERDICTS: st.SearchStrategy[AttemptVerdict] = st.sampled_from(["recovered", "not-recovered", "inconclusive"])
LIVE_VERDICTS: st.SearchStrategy[AttemptVerdict] = st.sampled_from(
    ["clean", "clean", "clean", "recurred", "failed-otherwise", "inconclusive"]
)

PROFILES: st.SearchStrategy[Profile] = st.sampled_from(["pull-request", "nightly", "release"])


@SETTINGS
@given(RATES, RISKS)
def test_clean_reruns_is_the_smallest_number_that_does(rate: str, risk: str) -> None:
    runs = clean_reruns(rate, risk)
    left = 1 - Fraction(rate)
    assert runs >= 1
    assert left**runs <= Fraction(risk)
    assert runs == 1 or left ** (runs - 1) > Fraction(risk)


@SETTINGS
@given(st.integers(0, 40), st.integers(1, 40), RISKS)
def test_upper_bounds_are_monotone_and_never_below_the_share(failures: int, further: int, risk: str) -> None:
    attempts = failures + further
    bound = upper_bound(failures, attempts, risk)
    assert 0 < bound <= 1
    assert upper_bound(failures + 1, attempts, risk) >= bound
    assert upper_bound(failures, attempts + 1, risk) <= bound
    assert Decimal(bound_text(bound)) >= bound - Decimal("1e-12")


@SETTINGS
@given(RATES, RISKS)
def test_as_many_clean_runs_as_asked_for_bound_the_rate(rate: str, risk: str) -> None:
    assert upper_bound(0, clean_reruns(rate, risk), risk) <= Decimal(rate) + Decimal("1e-12")


@SETTINGS
@given(PLANS, HISTORIES)
def test_a_settled_history_stays_settled_whatever_comes_behind(plan: Plan, history: dict[int, RunOutcome]) -> None:
    result = read_runs(plan, history)
    last = max(history, default=0)
    for outcome in ("clean", "failed", "unknown"):
        further = read_runs(plan, {**history, last + 1: outcome})
        if result.outcome != "undecided":
            assert further == result


@SETTINGS
@given(PLANS, HISTORIES, st.randoms(use_true_random=False))
def test_the_order_in_which_runs_end_changes_nothing(
    plan: Plan, history: dict[int, RunOutcome], random: object
) -> None:
    items = list(history.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert read_runs(plan, dict(items)) == read_runs(plan, history)


@SETTINGS
@given(PLANS, HISTORIES)
def test_the_wanted_runs_being_clean_settle_the_claim(plan: Plan, history: dict[int, RunOutcome]) -> None:
    further: dict[int, RunOutcome] = dict.fromkeys(wanted_runs(plan, history, 1000), "clean")
    if further:
        assert read_runs(plan, {**history, **further}).outcome == "accepted"


@SETTINGS
@given(st.lists(CHECK_VERDICTS, min_size=most_tries(), max_size=most_tries()))
def test_a_check_never_passes_on_a_later_try_after_a_failure(verdicts: list[AttemptVerdict]) -> None:
    tries: list[AttemptVerdict] = []
    while wants_another(tries):
        tries.append(verdicts[len(tries)])
    if "not-recovered" in tries:
        assert check_result(tries) != "passed"
    if tries.count("not-recovered") > 1:
        assert check_result(tries) == "broken"


@SETTINGS
@given(
    st.lists(CHECK_VERDICTS, max_size=4),
    st.lists(CHECK_VERDICTS, max_size=4),
    st.lists(LIVE_VERDICTS, max_size=6),
    PROFILES,
)
def test_a_decision_is_green_exactly_when_nothing_is_red(
    one: list[AttemptVerdict], other: list[AttemptVerdict], rows: list[AttemptVerdict], profile: Profile
) -> None:
    checks = (control("finished"), simulation(*one, name="one"), simulation(*other, name="other"))
    cases = case_inputs(a_case(fix=(a_fix(),)), checks=checks, live=live(*rows)), case_inputs(a_case("second"))
    forward = decide(gate_inputs(*cases, profile=profile))
    backward = decide(gate_inputs(*reversed(cases), profile=profile))
    assert forward.model_dump_json() == backward.model_dump_json()
    red = [each.code for each in forward.reasons if each.red]
    assert (forward.decision == "pass") is (not red)
    assert (forward.decision == "fail") is any(code in SEEN_TO_BE_WRONG for code in red)
    if not one or not other:
        assert forward.decision != "pass"
    if profile != "pull-request" and "recurred" in rows:
        assert forward.decision == "fail"
