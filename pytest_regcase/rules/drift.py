"""The alarm for a check that has begun to fail more often: a cumulative sum over first attempts, run after run.

Knows outcomes in time order. It sees what a single session cannot: a failure rate that rose from nearly nothing to
a share that confirm runs let pass. Source: Bernoulli CUSUM (Page 1954); between false alarms lie at least
e^threshold attempts on average.
"""

from collections.abc import Iterable, Sequence
from math import log
from typing import NamedTuple

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.base import Record
from pytest_regcase.rules.exact import Exact, proportion
from pytest_regcase.rules.flake import FirstAttempt

ATTEMPTS_BETWEEN_FALSE_ALARMS = 1000
"""At least so many on average while the rate is as it should be; simulations show far more."""
_ROUNDING = 1e-9
"""A sum of logarithms that reaches the threshold exactly may come out this much below it."""


class Cusum(NamedTuple):
    """Where the sum stands, and the highest it has been."""

    final: float
    highest: float


class Alarm(Record):
    """The failure rate of first attempts has risen."""

    session_id: str
    """The session whose attempt raised it."""
    digests: str
    """The digests it was raised on."""
    failures: int
    attempts: int
    """What raised it: failures and attempts since the sum last stood at zero."""
    usual_rate: str
    risen_rate: str
    says: str


def cusum(failed: Iterable[bool], usual_rate: Exact, risen_rate: Exact) -> Cusum:
    """Return the sum of log likelihood ratios of `risen_rate` against `usual_rate`, never below zero.

    Raises:
        UsageRefused: rates out of range, or a risen rate that is not above the usual one.
    """
    on_failure, on_pass = _steps(usual_rate, risen_rate)
    total = highest = 0.0
    for each in failed:
        total = max(0.0, total + (on_failure if each else on_pass))
        highest = max(highest, total)
    return Cusum(total, highest)


def drift_alarm(
    history: Sequence[FirstAttempt], usual_rate: Exact = "0.01", risen_rate: Exact = "0.3"
) -> Alarm | None:
    """Return the alarm that stands after the last attempt, or None.

    It is raised when the sum reaches ln(1000). It stands until the sum is back at zero (20 passes in a row at the
    defaults, however long it failed) or an attempt on other digests came out: something was changed then, and the
    sum starts anew. An attempt that proved nothing moves nothing.

    Raises:
        UsageRefused: rates out of range, or a risen rate that is not above the usual one.
    """
    on_failure, on_pass = _steps(usual_rate, risen_rate)
    threshold = log(ATTEMPTS_BETWEEN_FALSE_ALARMS)
    alarm: Alarm | None = None
    total = 0.0
    failures = attempts = 0
    for each in _since_zero(history, threshold / -on_pass):
        if each.failed is None:
            continue
        if alarm is not None and each.digests != alarm.digests:
            alarm, total, failures, attempts = None, 0.0, 0, 0
        # One by one, as the sum would else be rounded otherwise; at zero further passes change nothing.
        for _ in range(each.times):
            total = max(0.0, total + (on_failure if each.failed else on_pass))
            failures, attempts = failures + each.failed, attempts + 1
            if total == 0:
                alarm, failures, attempts = None, 0, 0
                break
            if total >= threshold - _ROUNDING:
                # Held there: else a long outage would keep the alarm up for hundreds of passes after its end.
                total = threshold
                alarm = alarm or _alarm(each, failures, attempts, usual_rate, risen_rate)
    return alarm


def _since_zero(history: Sequence[FirstAttempt], passes: float) -> list[FirstAttempt]:
    """The attempts since the sum last stood at zero for certain: since so many passes in a row.

    The sum is never above the threshold, so these bring it down from wherever it was; one more, against rounding.
    """
    found: list[FirstAttempt] = []
    in_a_row = 0
    for each in reversed(history):
        if each.failed:
            in_a_row = 0
        elif each.failed is not None:
            in_a_row += each.times
            if in_a_row > passes + 1:
                break
        found.append(each)
    return found[::-1]


def _steps(usual_rate: Exact, risen_rate: Exact) -> tuple[float, float]:
    usual, risen = proportion(usual_rate, "usual_rate"), proportion(risen_rate, "risen_rate")
    if risen <= usual:
        raise UsageRefused(
            f"Couldn't watch for drift: the risen rate {risen_rate} is not above the usual rate {usual_rate}.\n"
            "Give a risen rate above the usual one.",
            slug="rate-out-of-range",
        )
    return log(risen / usual), log((1 - risen) / (1 - usual))


def _alarm(last: FirstAttempt, failures: int, attempts: int, usual_rate: Exact, risen_rate: Exact) -> Alarm:
    return Alarm(
        session_id=last.session_id,
        digests=last.digests,
        failures=failures,
        attempts=attempts,
        usual_rate=str(usual_rate),
        risen_rate=str(risen_rate),
        says=(
            f"{failures} of {attempts} consecutive first attempts failed: more like a rate of {risen_rate} than"
            f" {usual_rate}, where alarms lie at least {ATTEMPTS_BETWEEN_FALSE_ALARMS} attempts apart on average"
        ),
    )
