from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.attempt import AttemptRecord, Digests
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.flake import (
    beta_upper,
    digests_text,
    first_attempts,
    flake_rate,
    passing_digests,
    recurrence_rate,
)
from tests.rules.attempt_samples import a_live_attempt, an_attempt, live, tries
from tests.rules.history_samples import attempts, one_digest_each

NINE = datetime(2026, 5, 20, 9, tzinfo=UTC)


def in_session(session_id: str, *verdicts: AttemptVerdict, **changes: Any) -> tuple[AttemptRecord, ...]:
    return tries(*verdicts, session_id=session_id, **changes)


def failed(rows: tuple[AttemptRecord, ...], **more: Any) -> list[bool | None]:
    return [each.failed for each in first_attempts(rows, **more)]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [("recovered", False), ("finished", False), ("not-recovered", True), ("did-not-finish", None)],
)
def test_what_a_first_attempt_says(verdict: AttemptVerdict, expected: bool | None) -> None:
    assert failed((an_attempt(verdict),)) == [expected]


@pytest.mark.parametrize("reason", ["not-delivered", "machinery-broke", "worker-crashed", "cut-short"])
def test_what_proved_nothing_is_unknown_and_never_clean(reason: str) -> None:
    """Pitfall 9: skipped and errored runs are not clean."""
    assert failed((an_attempt("inconclusive", reason=reason),)) == [None]


def test_reruns_are_not_merged_into_the_rate() -> None:
    """Pitfall 7: one session of a failure and three passed confirm runs is one failure of one, not of four."""
    rows = (
        *in_session("s1", "not-recovered", "recovered", "recovered", "recovered"),
        *in_session("s2", "recovered"),
    )
    history = first_attempts(rows)
    assert [(each.failed, each.session_id, each.confirm_passed) for each in history] == [
        (True, "s1", True),
        (False, "s2", False),
    ]
    assert [each.digests for each in history] == [digests_text(row.digests) for row in rows if row.try_number == 0]
    rate = flake_rate(history)
    assert (rate.failures, rate.attempts) == (1, 2)


def test_a_confirm_run_that_failed_or_proved_nothing_shows_no_pass() -> None:
    rows = (
        *in_session("s1", "not-recovered", "not-recovered"),
        *in_session("s2", "not-recovered", "inconclusive"),
    )
    assert [each.confirm_passed for each in first_attempts(rows)] == [False, False]


def test_a_confirm_run_of_another_session_or_revision_shows_no_pass() -> None:
    rows = (
        *in_session("s1", "not-recovered"),
        an_attempt("recovered", session_id="s2", try_number=1),
        an_attempt("recovered", session_id="s1", try_number=1, digests=Digests(case="c", agent="b")),
    )
    assert [each.confirm_passed for each in first_attempts(rows)] == [False]


def test_the_try_in_place_of_one_that_proved_nothing_is_no_first_attempt() -> None:
    assert failed(in_session("s1", "inconclusive", "recovered")) == [None]


def test_live_rows_are_no_first_attempts() -> None:
    """Pitfall 12, the one way round: live runs are not counted into the rate of a simulation."""
    rows = (a_live_attempt(1, "recurred"), an_attempt("recovered"), a_live_attempt(2, "clean", try_number=1))
    assert failed(rows) == [False]


def test_attempts_are_read_oldest_first_whatever_the_order_of_the_rows() -> None:
    east = timezone(timedelta(hours=5))
    rows = (
        an_attempt("recovered", session_id="third", started_at=NINE + timedelta(hours=2)),
        an_attempt("recovered", session_id="first", started_at=(NINE + timedelta(hours=4)).replace(tzinfo=east)),
        an_attempt("recovered", session_id="second", started_at=NINE.replace(tzinfo=None)),
    )
    assert [each.session_id for each in first_attempts(rows)] == ["first", "second", "third"]


@pytest.mark.parametrize("other", [{"case_id": "trial-38"}, {"agent": "other"}, {"scenario": "control"}])
def test_different_checks_have_no_common_history(other: dict[str, str]) -> None:
    with pytest.raises(
        ValueError, match=r"^first attempts of several cases, agents or scenarios have no common flake rate$"
    ):
        first_attempts((an_attempt("recovered"), an_attempt("recovered", **other)))


def test_where_the_control_did_not_finish_a_simulation_proved_nothing() -> None:
    rows = (
        *in_session("s1", "not-recovered", "recovered", "recovered"),
        *in_session("s2", "recovered"),
        *in_session("s3", "not-recovered", "recovered"),
    )
    control = (
        *in_session("s1", "did-not-finish", "did-not-finish", scenario="control"),
        *in_session("s2", "did-not-finish", scenario="control"),
        *in_session("s3", "finished", scenario="control"),
    )
    history = first_attempts(rows, control=control)
    assert [(each.failed, each.confirm_passed) for each in history] == [(None, False), (None, False), (True, True)]


def test_a_control_that_finished_at_its_further_try_counts_and_one_that_crashed_does_not() -> None:
    rows = (*in_session("s1", "recovered"), *in_session("s2", "recovered"))
    again = in_session("s1", "did-not-finish", "finished", scenario="control")
    crash, finished = in_session("s2", "inconclusive", "finished", scenario="control")
    control = (*reversed(again), crash.model_copy(update={"reason": "worker-crashed"}), finished)
    assert failed(rows, control=control) == [False, None]


def test_digests_are_one_text_that_is_equal_only_where_all_are() -> None:
    parts = {"case": "c", "simulation": "s", "agent": "a", "model": "m"}
    texts = [
        digests_text(Digests(**parts)),
        *(digests_text(Digests.model_validate({**parts, name: "other"})) for name in parts),
        digests_text(Digests(case="c", agent="a")),
        digests_text(Digests(case="c", simulation="s", agent="a")),
        digests_text(Digests(case="c", agent="a", model="s")),
    ]
    assert texts[0] == "c|s|a|m"
    assert texts[5] == "c||a|"
    assert len(set(texts)) == len(texts)


def test_digests_pass_where_an_attempt_or_a_confirm_run_passed() -> None:
    history = (
        *attempts("F.", "both"),
        *attempts("F", "confirmed", confirm_passed=True),
        *attempts("FF", "only-fails"),
        *attempts("?", "nothing"),
    )
    assert passing_digests(history) == {"both", "confirmed"}


def test_the_rate_with_its_exact_bounds() -> None:
    rate = flake_rate(attempts("F" * 2 + "." * 18))
    assert (rate.failures, rate.attempts, rate.unknown, rate.only_failed) == (2, 20, 0, 0)
    assert (rate.lower, rate.upper, rate.worst_case_upper) == ("0.018065", "0.282619", "0.282619")
    assert rate.estimate == "0.099757"  # (2 + 0.05) / (20 + 0.55)
    assert rate.says == "2 of 20 first attempts failed; at this look the rate is from 0.018065 to 0.282619"


def test_bounds_are_rounded_to_the_side_that_claims_less() -> None:
    for failures in range(1, 12):
        rate = flake_rate(attempts("F" * failures + "." * (30 - failures)))
        closer = flake_rate(attempts("F" * failures + "." * (30 - failures)), risk="0.0500001")
        assert rate.lower <= closer.lower
        assert rate.upper >= closer.upper
    assert flake_rate(attempts("F" + "." * 29)).lower == "0.001708"  # 0.00170834...
    assert flake_rate(attempts("." * 30)).upper == "0.095034"  # 0.09503385...: one-sided, not 0.1157


def test_a_smaller_risk_makes_wider_bounds() -> None:
    rate = flake_rate(attempts("F" * 2 + "." * 18), risk="0.01")
    assert (rate.lower, rate.upper, rate.worst_case_upper) == ("0.007591", "0.358336", "0.358336")


def test_the_default_risk_is_five_percent() -> None:
    history = attempts("F..")
    assert flake_rate(history) == flake_rate(history, risk="0.05")
    assert recurrence_rate(live("clean")) == recurrence_rate(live("clean"), risk="0.05")


def test_attempts_that_proved_nothing_are_shown_as_if_they_had_failed() -> None:
    """Pitfall 9: dropping them without a word would bend the rate to clean."""
    rate = flake_rate(attempts("." * 29 + "?"))
    assert (rate.failures, rate.attempts, rate.unknown) == (0, 29, 1)
    assert (rate.upper, rate.worst_case_upper) == ("0.098145", "0.148597")
    assert rate.says == (
        "0 of 29 first attempts failed; at this look the rate is from 0.000000 to 0.098145; 1 proved nothing: had"
        " they failed, up to 0.148597"
    )


def test_a_regression_is_no_flake() -> None:
    """What failed on digests on which nothing passed stays out of the rate, and is said."""
    rate = flake_rate((*attempts("F...", "good"), *attempts("FFF", "bad"), *attempts("..", "mended")))
    assert (rate.failures, rate.attempts, rate.only_failed) == (1, 6, 3)
    assert rate.says == (
        "1 of 6 first attempts failed; at this look the rate is from 0.008512 to 0.581804; 3 more failed on"
        " digests on which nothing passed, which is no flake"
    )


def test_nothing_observed_is_no_estimate() -> None:
    rate = flake_rate(attempts("??"))
    assert (rate.attempts, rate.unknown, rate.estimate) == (0, 2, None)
    assert (rate.lower, rate.upper, rate.worst_case_upper) == ("0.000000", "1.000000", "1.000000")


def test_half_of_the_runs_failing_is_a_rate_of_one_half_not_of_a_quarter() -> None:
    """Pitfall 22: of a check that fails half of its runs, a retry makes one "flaky verdict" in four.

    All outcomes of first attempt and one confirm run, equally often, on the same digests.
    """
    pairs: list[tuple[AttemptVerdict, ...]] = [
        ("recovered",),
        ("recovered",),
        ("not-recovered", "recovered"),
        ("not-recovered", "not-recovered"),
    ]
    rows = [row for number in range(40) for row in in_session(f"s{number}", *pairs[number % 4])]
    history = first_attempts(rows)
    flaky_verdicts = sum(each.failed is True and each.confirm_passed for each in history)
    assert flaky_verdicts / len(history) == 0.25
    rate = flake_rate(history)
    assert (rate.failures, rate.attempts) == (20, 40)


def test_a_new_revision_every_night_hides_no_flake() -> None:
    """Each attempt on digests of its own: the confirm runs show that the failures come and go."""
    rate = flake_rate(one_digest_each("..F...F...", confirm_passed=True))
    assert (rate.failures, rate.attempts, rate.only_failed) == (2, 10, 0)
    unconfirmed = flake_rate(one_digest_each("..F...F..."))
    assert (unconfirmed.failures, unconfirmed.attempts, unconfirmed.only_failed) == (0, 8, 2)


def test_the_recurrence_rate_counts_live_runs() -> None:
    rate = recurrence_rate(live("clean", "recurred", "clean", "clean"))
    assert recurrence_rate(live("recurred", "recurred", "recurred")).recurred == 3
    assert (rate.recurred, rate.runs, rate.unknown, rate.failed_otherwise) == (1, 4, 0, 0)
    assert (rate.lower, rate.upper, rate.worst_case_upper) == ("0.012741", "0.751396", "0.751396")
    assert rate.says == "the symptom came back in 1 of 4 live runs; at this look from 0.012741 to 0.751396"


def test_live_runs_that_show_nothing_of_the_symptom_are_not_clean() -> None:
    rows = (
        *live("clean", "clean", "inconclusive", "failed-otherwise", "failed-otherwise"),
        *live("clean", "recurred", first=6, fresh=False),
    )
    rate = recurrence_rate(rows)
    assert (rate.recurred, rate.runs, rate.unknown, rate.failed_otherwise) == (1, 3, 2, 2)
    assert (rate.lower, rate.upper, rate.worst_case_upper) == ("0.016952", "0.864650", "0.946625")
    assert rate.says == (
        "the symptom came back in 1 of 3 live runs; at this look from 0.016952 to 0.864650; 2 proved nothing and 2"
        " failed in another way: at worst up to 0.946625"
    )


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        ("inconclusive", "1 proved nothing and 0 failed in another way: at worst up to 0.974680"),
        ("failed-otherwise", "0 proved nothing and 1 failed in another way: at worst up to 0.974680"),
    ],
)
def test_each_kind_of_run_that_shows_nothing_is_said(verdict: AttemptVerdict, text: str) -> None:
    says = recurrence_rate(live("clean", verdict)).says
    assert says == f"the symptom came back in 0 of 1 live runs; at this look from 0.000000 to 0.950000; {text}"


@pytest.mark.parametrize("verdict", ["recovered", "not-recovered", "finished", "did-not-finish"])
def test_simulated_runs_have_no_recurrence_rate(verdict: AttemptVerdict) -> None:
    """Pitfall 12, the other way round."""
    with pytest.raises(ValueError) as caught:
        recurrence_rate(live("clean", verdict))
    assert str(caught.value) == f"{verdict!r} is the verdict of a check; only live runs have a recurrence rate"


def test_a_risk_that_is_none_is_refused() -> None:
    with pytest.raises(UsageRefused, match="risk = 1"):
        flake_rate(attempts("."), risk="1")
    with pytest.raises(UsageRefused, match="risk = 0"):
        recurrence_rate(live("clean"), risk="0")


@pytest.mark.parametrize(
    ("failures", "runs", "prior", "expected"),
    [
        (0, 30, (0.05, 0.5), 0.00881741415364732),
        (1, 50, (0.5, 0.5), 0.07553881581165989),
        (0, 100, (1, 1), 0.02922515353903906),
        (0, 0, (1, 1), 0.95),
        (2, 2, (1, 1), 0.95 ** (1 / 3)),
    ],
)
def test_beta_upper(failures: int, runs: int, prior: tuple[float, float], expected: float) -> None:
    assert beta_upper(failures, runs, prior, 0.05) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("failures", "runs", "prior"),
    [(-1, 3, (1, 1)), (4, 3, (1, 1)), (1, 3, (0, 1)), (1, 3, (1, -0.5)), (1, 3, (1, 0))],
)
def test_a_posterior_that_cannot_be(failures: int, runs: int, prior: tuple[float, float]) -> None:
    with pytest.raises(ValueError) as caught:
        beta_upper(failures, runs, prior, 0.05)
    assert str(caught.value) == f"no posterior of {failures} failures in {runs} under Beta({prior[0]}, {prior[1]})"
