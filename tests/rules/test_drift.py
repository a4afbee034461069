import random
from math import log

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules import drift
from pytest_regcase.rules.drift import Alarm, cusum, drift_alarm
from pytest_regcase.rules.exact import Exact
from tests.rules.history_samples import attempts, one_digest_each


def bits(text: str) -> list[bool]:
    return [sign == "F" for sign in text]


@pytest.mark.parametrize(
    ("text", "usual", "risen", "final", "highest"),
    [
        ("." * 20 + "F.F", "0.01", "0.3", 6.45577015523908, 6.45577015523908),
        ("F" + "." * 10 + "F", "0.01", "0.3", 3.4011973816621555, 3.4011973816621555),
        ("..FF.F", "0.02", "0.2", 6.7048144349854475, 6.7048144349854475),
        ("FF..", "0.01", "0.3", 2 * log(30) + 2 * log(0.7 / 0.99), 2 * log(30)),
        ("....", "0.01", "0.3", 0.0, 0.0),
        ("", "0.01", "0.3", 0.0, 0.0),
    ],
)
def test_cusum(text: str, usual: str, risen: str, final: float, highest: float) -> None:
    found = cusum(bits(text), usual, risen)
    assert found.final == pytest.approx(final, abs=1e-9)
    assert found.highest == pytest.approx(highest, abs=1e-9)


@pytest.mark.parametrize("risen", ["0.01", "0.005"])
def test_a_risen_rate_must_lie_above_the_usual_one(risen: str) -> None:
    with pytest.raises(UsageRefused) as caught:
        drift_alarm(attempts("."), "0.01", risen)
    assert caught.value.slug == "rate-out-of-range"
    assert caught.value.text == (
        f"Couldn't watch for drift: the risen rate {risen} is not above the usual rate 0.01.\n"
        "Give a risen rate above the usual one."
    )
    with pytest.raises(UsageRefused, match="is not above"):
        cusum([True], "0.01", risen)


@pytest.mark.parametrize(
    ("usual", "risen", "named"), [("0", "0.3", "usual_rate = 0"), ("0.01", "1", "risen_rate = 1")]
)
def test_rates_out_of_range_are_named(usual: Exact, risen: Exact, named: str) -> None:
    with pytest.raises(UsageRefused, match=f"^Couldn't use {named}:"):
        drift_alarm(attempts("."), usual, risen)


def test_the_alarm_says_what_raised_it() -> None:
    history = attempts("." * 50 + "F.F..F")
    assert drift_alarm(history[:-1]) is None
    assert drift_alarm(history) == Alarm(
        session_id="d-55",
        digests="d",
        failures=3,
        attempts=6,
        usual_rate="0.01",
        risen_rate="0.3",
        says=(
            "3 of 6 consecutive first attempts failed: more like a rate of 0.3 than 0.01, where alarms lie at"
            " least 1000 attempts apart on average"
        ),
    )


def test_the_defaults_are_one_percent_and_thirty() -> None:
    history = attempts("FFF")
    assert drift_alarm(history) == drift_alarm(history, "0.01", "0.3")
    assert drift_alarm(history, "0.05", "0.3") is None


def test_two_failures_side_by_side_are_no_alarm_and_a_third_is() -> None:
    assert drift_alarm(attempts("." * 9 + "FF")) is None
    assert drift_alarm(attempts("." * 9 + "FFF")) is not None
    # Each pass takes a little back: 10 of them between failures, and nothing adds up.
    assert drift_alarm(attempts(("F" + "." * 10) * 20)) is None


def test_a_sum_that_comes_to_the_threshold_exactly_raises_it() -> None:
    """3 x ln(0.1/0.01) is ln(1000); sums of logarithms may come out a hair below."""
    assert drift_alarm(attempts("FF"), "0.01", "0.1") is None
    assert drift_alarm(attempts("FFF"), "0.01", "0.1") is not None
    # 0.001 below the threshold is below it.
    assert drift_alarm(attempts("FFF"), "0.01", "0.0999") is None


def test_reaching_the_threshold_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "ATTEMPTS_BETWEEN_FALSE_ALARMS", 30)
    monkeypatch.setattr(drift, "_ROUNDING", 0.0)
    assert drift_alarm(attempts("F")) is not None


def test_the_alarm_names_the_attempt_that_raised_it_and_keeps_to_it() -> None:
    raised = drift_alarm(attempts("FFF"))
    assert raised is not None
    assert drift_alarm(attempts("FFF...F.F")) == raised


def test_it_stands_until_twenty_passes_in_a_row_brought_the_sum_back() -> None:
    for failures in (3, 200):
        history = "F" * failures
        assert drift_alarm(attempts(history + "." * 19)) is not None
        assert drift_alarm(attempts(history + "." * 20)) is None
    assert drift_alarm(attempts("FFF" + "." * 19 + "F" + "." * 10)) is not None


def test_after_it_is_gone_the_count_starts_anew() -> None:
    history = attempts("F..F" + "." * 20 + "FF")
    assert drift_alarm(history) is None
    alarm = drift_alarm(attempts("FFF" + "." * 25 + "F.FF"))
    assert alarm is not None
    assert (alarm.failures, alarm.attempts, alarm.session_id) == (3, 4, "d-31")


def test_a_change_ends_it_and_the_sum_starts_anew() -> None:
    broken = attempts("." * 30 + "FFFF", "broken")
    assert drift_alarm(broken) is not None
    assert drift_alarm((*broken, *attempts(".", "mended"))) is None
    assert drift_alarm((*broken, *attempts("FF", "mended"))) is None
    again = drift_alarm((*broken, *attempts("FFF", "mended")))
    assert again is not None
    assert (again.digests, again.failures, again.attempts) == ("mended", 3, 3)


def test_what_proved_nothing_neither_raises_nor_ends_it() -> None:
    """Pitfall 9: unknown is neither a failure nor a pass."""
    assert drift_alarm(attempts("?" * 50)) is None
    assert drift_alarm((*attempts("FFF" + "?" * 50, "d"), *attempts("?", "e"))) == drift_alarm(attempts("FFF"))
    alarm = drift_alarm(attempts("F?F?F"))
    assert alarm is not None
    assert alarm.attempts == 3


def test_a_slow_drift_over_many_revisions_is_seen() -> None:
    """Confirm runs let a rate of 30 % pass as flaky half of the time; over the runs it adds up."""
    assert drift_alarm(one_digest_each("." * 40 + "F..F..F")) is not None
    assert drift_alarm(one_digest_each("F" + "." * 99) * 5) is None


def test_false_alarms_are_rare_and_a_real_rise_is_seen_soon() -> None:
    chance = random.Random(1)

    def thousand(rate: float) -> list[bool]:
        return [chance.random() < rate for _ in range(1000)]

    quiet = sum(cusum(thousand(0.01), "0.01", "0.3").highest > log(1000) for _ in range(60))
    # On average at least 1000 attempts apart; measured about 18,000, so about 3 in 60 thousands.
    assert quiet <= 12
    delays = []
    for _ in range(300):
        failed: list[bool] = []
        while cusum(failed, "0.01", "0.3").highest <= log(1000):
            failed.append(chance.random() < 0.3)
        delays.append(len(failed))
    assert 8 < sum(delays) / len(delays) < 12
