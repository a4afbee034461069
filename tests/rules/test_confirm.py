from itertools import product

import pytest

from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.confirm import check_result, most_tries, wants_another

GOOD: AttemptVerdict = "recovered"
BAD: AttemptVerdict = "not-recovered"
NOTHING: AttemptVerdict = "inconclusive"


@pytest.mark.parametrize(
    ("tries", "more", "result"),
    [
        ([GOOD], False, "passed"),
        (["finished"], False, "passed"),
        ([BAD], True, "broken"),
        ([BAD, GOOD], True, "broken"),
        ([BAD, BAD], True, "broken"),
        ([BAD, GOOD, GOOD], False, "flaky"),
        ([BAD, BAD, GOOD], False, "broken"),
        ([BAD, GOOD, BAD], False, "broken"),
        ([BAD, BAD, BAD], False, "broken"),
        # What proved nothing gets one further try, which stands in its place.
        ([NOTHING], True, "inconclusive"),
        (["did-not-finish"], True, "inconclusive"),
        ([NOTHING, GOOD], False, "passed"),
        (["did-not-finish", "finished"], False, "passed"),
        (["did-not-finish", "did-not-finish"], False, "inconclusive"),
        ([NOTHING, NOTHING], False, "inconclusive"),
        ([NOTHING, BAD], True, "broken"),
        ([NOTHING, BAD, GOOD], True, "broken"),
        ([NOTHING, BAD, GOOD, GOOD], False, "flaky"),
        ([NOTHING, BAD, GOOD, BAD], False, "broken"),
        # So does a confirm run; a second one that proves nothing is neither passed nor failed.
        ([BAD, NOTHING], True, "broken"),
        ([BAD, NOTHING, GOOD], True, "broken"),
        ([BAD, NOTHING, GOOD, GOOD], False, "flaky"),
        ([BAD, GOOD, NOTHING, GOOD], False, "flaky"),
        ([BAD, GOOD, NOTHING, NOTHING], False, "inconclusive"),
        ([NOTHING, BAD, NOTHING, GOOD], False, "inconclusive"),
        ([NOTHING, BAD, NOTHING, BAD], False, "broken"),
    ],
)
def test_tries_of_one_check(tries: list[AttemptVerdict], more: bool, result: str) -> None:
    assert wants_another(tries) is more
    assert check_result(tries) == result


def test_the_first_try_is_wanted_and_without_it_there_is_no_result() -> None:
    assert wants_another([])
    with pytest.raises(ValueError, match=r"^a check without a try has no result; it was not run$"):
        check_result([])


def test_no_try_turns_a_crash_green() -> None:
    assert check_result([NOTHING, GOOD], crashed=True) == "inconclusive"
    assert check_result([BAD, NOTHING, GOOD, GOOD], crashed=True) == "inconclusive"
    assert check_result([BAD, NOTHING, BAD, GOOD], crashed=True) == "broken"


def test_live_runs_are_not_confirmed() -> None:
    with pytest.raises(ValueError, match=r"^'clean' is the verdict of a live run; live runs are not confirmed$"):
        wants_another(["clean"])
    with pytest.raises(ValueError, match=r"^'clean' is the verdict of a live run; live runs are not confirmed$"):
        check_result(["recovered", "clean"])


@pytest.mark.parametrize(
    ("confirm_runs", "tries", "more", "result"),
    [
        (1, [BAD], True, "broken"),
        (1, [BAD, GOOD], False, "flaky"),
        (1, [BAD, BAD], False, "broken"),
        (3, [BAD, GOOD, GOOD], True, "broken"),
        (3, [BAD, GOOD, GOOD, GOOD], False, "flaky"),
        (3, [BAD, GOOD, NOTHING, GOOD, GOOD], False, "flaky"),
        (3, [BAD, GOOD, GOOD, BAD], False, "broken"),
        (3, [GOOD], False, "passed"),
    ],
)
def test_any_number_of_confirm_runs(
    confirm_runs: int, tries: list[AttemptVerdict], more: bool, result: str
) -> None:
    assert wants_another(tries, confirm_runs) is more
    assert check_result(tries, confirm_runs=confirm_runs) == result
    assert most_tries(confirm_runs) == 2 + confirm_runs


def test_every_row_of_tries_ends() -> None:
    """Whatever the tries show, there are at most four, and two confirm runs follow every failed first attempt."""
    for verdicts in product((GOOD, BAD, NOTHING), repeat=most_tries() + 1):
        tries: list[AttemptVerdict] = []
        while wants_another(tries):
            tries.append(verdicts[len(tries)])
        assert 1 <= len(tries) <= most_tries()
        standing = [each for each in tries if each != NOTHING]
        if standing and standing[0] == BAD:
            assert len(tries) >= 3
        if check_result(tries) == "flaky":
            assert tries.count(GOOD) == 2
