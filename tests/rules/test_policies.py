from fractions import Fraction
from itertools import product

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules import confirm
from pytest_regcase.rules.policies import (
    DEFAULT_POLICY,
    Policy,
    check_result,
    most_tries,
    policy_for,
    red_probability,
    wants_another,
    what_it_hides,
)

GOOD: AttemptVerdict = "recovered"
BAD: AttemptVerdict = "not-recovered"
NOTHING: AttemptVerdict = "inconclusive"
NAMES = ("first", "confirm:1", "confirm:2", "confirm:3", "fixed:1,0", "fixed:3,1", "any-pass", "any-pass:1")


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("first", Policy(kind="first")),
        ("confirm:2", Policy(kind="confirm", further=2)),
        ("confirm:10", Policy(kind="confirm", further=10)),
        ("fixed:52,2", Policy(kind="fixed", further=51, allowed=2)),
        ("fixed:1,0", Policy(kind="fixed", further=0)),
        ("any-pass", Policy(kind="any-pass", further=2)),
        ("any-pass:1", Policy(kind="any-pass", further=1)),
    ],
)
def test_a_policy_has_a_name(name: str, policy: Policy) -> None:
    assert policy_for(name) == policy
    assert policy.name == name


def test_the_default_is_two_confirm_runs() -> None:
    assert DEFAULT_POLICY == "confirm:2"
    assert policy_for("any-pass:2").name == "any-pass"


NO_POLICIES = ("", "confirm", "confirm:0", "confirm:02", "confirm:2 ", "fixed:3", "fixed:3,3", "fixed:0,0")


@pytest.mark.parametrize("name", [*NO_POLICIES, "fixed:3,01", "any-pass:0", "First", "majority"])
def test_what_is_no_policy_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(UsageRefused) as caught:
        policy_for(name)
    assert caught.value.text == (
        f"Couldn't use the gate policy {name!r}: there is none of that name.\n"
        "Allowed: first, confirm:m (m runs after a failed one), fixed:n,c (n attempts, at most c of them failed; c"
        " below n), any-pass or any-pass:r (r reruns)."
    )


@pytest.mark.parametrize(
    ("name", "tries", "more", "result"),
    [
        ("first", [GOOD], False, "passed"),
        ("first", [BAD], False, "broken"),
        ("first", [NOTHING], True, "inconclusive"),
        ("first", [NOTHING, GOOD], False, "passed"),
        ("first", [NOTHING, BAD], False, "broken"),
        ("first", [NOTHING, NOTHING], False, "inconclusive"),
        ("first", [BAD, GOOD, GOOD], False, "broken"),
        ("confirm:1", [BAD, GOOD], False, "flaky"),
        ("confirm:3", [BAD, GOOD, GOOD], True, "broken"),
        ("confirm:3", [BAD, GOOD, GOOD, GOOD], False, "flaky"),
        ("confirm:3", [BAD, GOOD, GOOD, BAD], False, "broken"),
        ("confirm:3", [GOOD], False, "passed"),
        ("fixed:3,1", [GOOD], True, "inconclusive"),
        ("fixed:3,1", [GOOD, GOOD], True, "inconclusive"),
        ("fixed:3,1", [GOOD, GOOD, GOOD], False, "passed"),
        ("fixed:3,1", [GOOD, BAD, GOOD], False, "flaky"),
        ("fixed:3,1", [BAD, BAD], False, "broken"),
        ("fixed:3,1", [BAD], True, "inconclusive"),
        ("fixed:3,0", [BAD], False, "broken"),
        ("fixed:3,1", [NOTHING, GOOD, GOOD], True, "inconclusive"),
        ("fixed:3,1", [NOTHING, GOOD, GOOD, GOOD], False, "passed"),
        ("fixed:3,1", [GOOD, NOTHING, NOTHING], True, "inconclusive"),
        ("fixed:3,1", [GOOD, NOTHING, NOTHING, GOOD], False, "inconclusive"),
        ("fixed:3,1", [BAD, NOTHING, NOTHING, BAD], False, "broken"),
        ("any-pass", [GOOD], False, "passed"),
        ("any-pass", [BAD], True, "broken"),
        ("any-pass", [BAD, BAD, BAD], False, "broken"),
        ("any-pass", [BAD, BAD], True, "broken"),
        ("any-pass", [BAD, BAD, GOOD], False, "flaky"),
        ("any-pass", [BAD, GOOD], False, "flaky"),
        ("any-pass", [NOTHING, BAD, BAD, BAD], False, "broken"),
        ("any-pass", [NOTHING, NOTHING], True, "inconclusive"),
        ("any-pass", [BAD, NOTHING, NOTHING, BAD], False, "inconclusive"),
        ("any-pass", ["did-not-finish", "finished"], False, "passed"),
        ("any-pass:1", [BAD, BAD], False, "broken"),
    ],
)
def test_tries_of_one_check(name: str, tries: list[AttemptVerdict], more: bool, result: str) -> None:
    policy = policy_for(name)
    assert wants_another(policy, tries) is more
    assert check_result(policy, tries) == result


@pytest.mark.parametrize("name", NAMES)
def test_the_first_try_is_wanted_and_live_runs_are_no_tries(name: str) -> None:
    policy = policy_for(name)
    assert wants_another(policy, [])
    with pytest.raises(ValueError, match=r"^a check without a try has no result; it was not run$"):
        check_result(policy, [])
    with pytest.raises(ValueError, match=r"^'clean' is the verdict of a live run; live runs are not confirmed$"):
        wants_another(policy, ["clean"])
    with pytest.raises(
        ValueError, match=r"^'recurred' is the verdict of a live run; live runs are not confirmed$"
    ):
        check_result(policy, ["recurred"])


@pytest.mark.parametrize("name", NAMES)
def test_no_policy_turns_a_crash_green(name: str) -> None:
    policy = policy_for(name)
    for tries in product((GOOD, BAD, NOTHING), repeat=3):
        assert check_result(policy, tries, crashed=True) in ("broken", "inconclusive")


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_tries_ends_and_only_good_ones_pass(name: str) -> None:
    policy = policy_for(name)
    seen: set[int] = set()
    for verdicts in product((GOOD, BAD, NOTHING), repeat=most_tries(policy) + 1):
        tries: list[AttemptVerdict] = []
        while wants_another(policy, tries):
            tries.append(verdicts[len(tries)])
        seen.add(len(tries))
        result = check_result(policy, tries)
        if result == "passed":
            assert BAD not in tries
        if result == "flaky":
            assert BAD in tries
            assert GOOD in tries
    assert max(seen) <= most_tries(policy)


def test_the_default_policy_is_that_of_confirm() -> None:
    policy = policy_for("confirm:2")
    for verdicts in product((GOOD, BAD, NOTHING), repeat=4):
        for length in range(1, 5):
            tries = verdicts[:length]
            assert wants_another(policy, tries) == confirm.wants_another(tries)
            assert check_result(policy, tries) == confirm.check_result(tries)


@pytest.mark.parametrize(
    ("name", "rate", "red"),
    [
        ("first", "0.3", "0.3"),
        ("confirm:2", "0.01", "0.000199"),
        ("confirm:10", "0.3", "0.29152574"),
        ("any-pass", "0.1", "0.001"),
        ("any-pass:1", "0.016", "0.000256"),
        ("fixed:1,0", "0.25", "0.25"),
        ("fixed:3,1", "0.5", "0.5"),
        ("fixed:3,0", "0.1", "0.271"),
    ],
)
def test_how_likely_it_is_red(name: str, rate: str, red: str) -> None:
    found = red_probability(policy_for(name), rate)
    assert found == Fraction(red) or abs(found - Fraction(red)) < Fraction(1, 10**8)


def test_fixed_plans_of_the_statistics_page_hold_what_they_say() -> None:
    """Red at most 5 % at the usual rate, green at most 10 % at the risen one."""
    for usual, risen, plan in (("0.01", "0.3", "12,1"), ("0.001", "0.1", "22,0"), ("0.05", "0.5", "7,1")):
        policy = policy_for(f"fixed:{plan}")
        assert red_probability(policy, usual) <= Fraction("0.05")
        assert 1 - red_probability(policy, risen) <= Fraction("0.1")


@pytest.mark.parametrize("name", NAMES)
def test_the_chance_to_be_red_is_that_of_all_rows_of_tries(name: str) -> None:
    policy, rate = policy_for(name), Fraction("0.2")
    red = Fraction(0)
    for verdicts in product((GOOD, BAD), repeat=most_tries(policy)):
        tries: list[AttemptVerdict] = []
        while wants_another(policy, tries):
            tries.append(verdicts[len(tries)])
        if check_result(policy, tries) == "broken":
            red += rate ** verdicts.count(BAD) * (1 - rate) ** verdicts.count(GOOD)
    assert red == red_probability(policy, "0.2")


def test_a_rate_out_of_range_is_refused() -> None:
    with pytest.raises(UsageRefused, match=r"Couldn't use rate = 1"):
        red_probability(policy_for("first"), "1")


def test_only_any_pass_hides_something_and_says_what() -> None:
    assert [name for name in NAMES if what_it_hides(policy_for(name))] == ["any-pass", "any-pass:1"]
    assert what_it_hides(policy_for("any-pass")) == (
        "any-pass is red only when all 3 attempts of a check fail, P(red) = f^3: one that fails 10 % of the time"
        " is red in 0.1 % of the sessions, 30 % in 2.7 %, 50 % in 12.5 %"
    )
