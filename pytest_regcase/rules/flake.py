"""How often a check fails on its first attempt though nothing changed, and how often a live run shows the symptom.

The two rates are kept apart: the flake rate is about simulations and controls, the recurrence rate about live
runs, and neither type takes the other's rows. Knows attempt rows and counts; nothing of budgets, quarantine or
gates. Bounds hold for a number of attempts that was fixed beforehand: re-read after every session, one of them is
wrong sooner or later, which is why their texts say "at this look".
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal
from typing import NamedTuple, Protocol

from pytest_regcase.records.attempt import Digests
from pytest_regcase.records.base import Record
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import AttemptVerdict, InconclusiveReason
from pytest_regcase.rules.binomial import POPULATION_PRIOR, bound_text, lower_bound, upper_bound
from pytest_regcase.rules.confirm import FAILED, GOOD, check_result
from pytest_regcase.rules.exact import Exact
from pytest_regcase.rules.lifecycle import in_utc

_PLACES = 6
_LAST_PLACE = Decimal("0.000001")


class CheckRow(Protocol):
    """What a rate needs of one attempt of a control or simulation; an `AttemptRecord` has it all."""

    @property
    def case_id(self) -> str:
        """The case."""

    @property
    def agent(self) -> str:
        """The agent's name."""

    @property
    def scenario(self) -> str:
        """``control`` or a simulation's id."""

    @property
    def session_id(self) -> str:
        """The session that made it."""

    @property
    def try_number(self) -> int:
        """0 is the first attempt."""

    @property
    def digests(self) -> Digests:
        """What was run."""

    @property
    def started_at(self) -> datetime:
        """When."""

    @property
    def verdict(self) -> AttemptVerdict:
        """What it showed."""

    @property
    def reason(self) -> InconclusiveReason | None:
        """Why it showed nothing."""


class FirstAttempt(NamedTuple):
    """How the first attempt of a check came out in one session, or in several in a row where it was the same.

    A tuple and no record: a gate reads tens of thousands.
    """

    failed: bool | None
    """None: it proved nothing. Never read as clean, and never as a failure."""
    digests: str
    """What was run, in one comparable text: case, simulation, agent and model."""
    session_id: str
    confirm_passed: bool = False
    """A confirm run after it passed: these digests can pass. Never counted in a rate."""
    times: int = 1
    """It stands for so many sessions in a row, the last of which is named."""


class FirstAttemptCounts(NamedTuple):
    """How many first attempts of a history came out how."""

    failures: int
    """On digests that also pass."""
    attempts: int
    """On digests that also pass: those that passed or failed."""
    unknown: int
    """On any digests: those that proved nothing."""
    only_failed: int
    """On digests on which nothing passed."""


@dataclass(slots=True)
class DigestsTally:
    """How first attempts on the same digests came out."""

    failures: int = 0
    passes: int = 0
    unknown: int = 0
    can_pass: bool = False
    """A first attempt or a confirm run passed."""


class FlakeRate(Record):
    """The share of first attempts that failed on digests that also pass."""

    failures: int
    attempts: int
    """First attempts that passed or failed; those of `unknown` and `only_failed` are not among them."""
    unknown: int
    """First attempts that proved nothing."""
    only_failed: int
    """First attempts on digests on which nothing passed: a regression until shown otherwise, never flake."""
    lower: str
    """Exact one-sided lower bound at this look, rounded down."""
    upper: str
    """Exact one-sided upper bound at this look, rounded up."""
    worst_case_upper: str
    """The upper bound had every unknown attempt failed."""
    estimate: str | None
    """Mean under the population prior; None without an attempt."""
    says: str


class RecurrenceRate(Record):
    """The share of live runs in which the symptom came back."""

    recurred: int
    runs: int
    """Runs that were clean, as draws of their own, or showed the symptom."""
    unknown: int
    """Runs that proved nothing, or were clean and no draw of their own."""
    failed_otherwise: int
    """Runs that failed in another way: they may never have got as far as the symptom."""
    lower: str
    upper: str
    worst_case_upper: str
    """The upper bound had every unknown or otherwise failed run shown the symptom."""
    says: str


def first_attempts(rows: Iterable[CheckRow], *, control: Iterable[CheckRow] = ()) -> tuple[FirstAttempt, ...]:
    """Return the first attempts of one control or simulation, oldest first; the session breaks a tie.

    Only try 0 counts: confirm runs are made because something failed, so counting them would bend the rate. Live
    rows are left out. With the rows of its `control`, a simulation's attempt is unknown where the control of its
    session did not finish, as in the gate.

    Raises:
        ValueError: rows of several scenarios, agents or cases. Their rates are different rates.
    """
    checks = sorted(
        (row for row in rows if row.scenario != "live"), key=lambda row: (in_utc(row.started_at), row.session_id)
    )
    if len({(row.case_id, row.agent, row.scenario) for row in checks}) > 1:
        raise ValueError("first attempts of several cases, agents or scenarios have no common flake rate")
    lost = _sessions_without_control(control)
    confirmed = {
        (row.session_id, digests_text(row.digests))
        for row in checks
        if row.try_number > 0 and row.verdict in GOOD and row.session_id not in lost
    }
    return tuple(
        FirstAttempt(
            failed=None if row.session_id in lost else _failed(row),
            digests=digests_text(row.digests),
            session_id=row.session_id,
            confirm_passed=(row.session_id, digests_text(row.digests)) in confirmed,
        )
        for row in checks
        if row.try_number == 0
    )


def condensed(history: Iterable[FirstAttempt]) -> tuple[FirstAttempt, ...]:
    """Return the same history with one entry for first attempts in a row that passed alike, or proved nothing.

    No rule tells the two apart. A failure keeps its entry: it is what a person looks for.
    """
    found: list[FirstAttempt] = []
    for each in history:
        before = found[-1] if found else None
        if before is not None and not each.failed and _alike(before, each):
            found[-1] = each._replace(times=before.times + each.times)
        else:
            found.append(each)
    return tuple(found)


def digests_text(digests: Digests) -> str:
    """Return everything that a count belongs to as one text, equal exactly where all of it is equal."""
    return "|".join(each or "" for each in (digests.case, digests.simulation, digests.agent, digests.model))


def passing_digests(history: Iterable[FirstAttempt]) -> frozenset[str]:
    """Return the digests on which a first attempt or a confirm run passed."""
    return frozenset(each.digests for each in history if each.failed is False or each.confirm_passed)


def by_digests(history: Iterable[FirstAttempt]) -> dict[str, DigestsTally]:
    """Return how the first attempts came out on each of their digests, those that came first first."""
    tallies: dict[str, DigestsTally] = {}
    for failed, digests, _, confirm_passed, times in history:
        tally = tallies.get(digests)
        if tally is None:
            tally = tallies[digests] = DigestsTally()
        if failed is None:
            tally.unknown += times
        elif failed:
            tally.failures += times
        else:
            tally.passes += times
        if confirm_passed or failed is False:
            tally.can_pass = True
    return tallies


def first_attempt_counts(tallies: Collection[DigestsTally]) -> FirstAttemptCounts:
    """Return the counts that a flake rate is made of: failures are flake only on digests that also pass."""
    failures = sum(each.failures for each in tallies if each.can_pass)
    return FirstAttemptCounts(
        failures=failures,
        attempts=failures + sum(each.passes for each in tallies),
        unknown=sum(each.unknown for each in tallies),
        only_failed=sum(each.failures for each in tallies) - failures,
    )


def flake_rate(history: Iterable[FirstAttempt], *, risk: Exact = "0.05") -> FlakeRate:
    """Return how often the first attempts of `history` failed on digests that also pass.

    It pools what it is given: cut it to one segment first (`rules.changepoint.present_segment`). Attempts on
    digests on which nothing passed are left out and counted by themselves. Bounds: Clopper-Pearson, one-sided, at
    `risk` each.

    Raises:
        UsageRefused: a risk that is not strictly between 0 and 1.
    """
    failures, attempts, unknown, only_failed = first_attempt_counts(by_digests(history).values())
    lower, upper, worst = _bounds(failures, attempts, unknown, risk)
    says = f"{failures} of {attempts} first attempts failed; at this look the rate is from {lower} to {upper}"
    if unknown:
        says += f"; {unknown} proved nothing: had they failed, up to {worst}"
    if only_failed:
        says += f"; {only_failed} more failed on digests on which nothing passed, which is no flake"
    return FlakeRate(
        failures=failures,
        attempts=attempts,
        unknown=unknown,
        only_failed=only_failed,
        lower=lower,
        upper=upper,
        worst_case_upper=worst,
        estimate=_estimate(failures, attempts) if attempts else None,
        says=says,
    )


def recurrence_rate(rows: Iterable[LiveRow], *, risk: Exact = "0.05") -> RecurrenceRate:
    """Return how often the symptom came back in live runs.

    A clean run that is no draw of its own repeats evidence and is unknown; a recurrence counts whatever drew it.

    Raises:
        ValueError: the verdict of a control or simulation. Simulated runs say nothing about this rate.
        UsageRefused: a risk that is not strictly between 0 and 1.
    """
    clean = recurred = unknown = otherwise = 0
    for row in rows:
        if row.verdict == "recurred":
            recurred += 1
        elif row.verdict == "failed-otherwise":
            otherwise += 1
        elif row.verdict == "clean" and row.fresh:
            clean += 1
        elif row.verdict in ("clean", "inconclusive"):
            unknown += 1
        else:
            raise ValueError(f"{row.verdict!r} is the verdict of a check; only live runs have a recurrence rate")
    runs = clean + recurred
    lower, upper, worst = _bounds(recurred, runs, unknown + otherwise, risk)
    says = f"the symptom came back in {recurred} of {runs} live runs; at this look from {lower} to {upper}"
    if unknown or otherwise:
        says += f"; {unknown} proved nothing and {otherwise} failed in another way: at worst up to {worst}"
    return RecurrenceRate(
        recurred=recurred,
        runs=runs,
        unknown=unknown,
        failed_otherwise=otherwise,
        lower=lower,
        upper=upper,
        worst_case_upper=worst,
        says=says,
    )


def beta_upper(failures: int, attempts: int, prior: tuple[float, float], risk: float) -> float:
    """Return the 1 - `risk` quantile of the rate's posterior Beta(a + failures, b + passes).

    A credible bound under `prior`, below the exact one where the prior expects good checks: for ranking, not for
    claims.

    Raises:
        ValueError: counts that cannot be, or a prior without density.
    """
    a, b = prior
    if not 0 <= failures <= attempts or min(a, b) <= 0:
        raise ValueError(f"no posterior of {failures} failures in {attempts} under Beta({a}, {b})")
    from scipy.special import betainccinv

    return float(betainccinv(a + failures, b + attempts - failures, risk))


def _alike(one: FirstAttempt, other: FirstAttempt) -> bool:
    return (one.failed, one.digests, one.confirm_passed) == (other.failed, other.digests, other.confirm_passed)


def _failed(row: CheckRow) -> bool | None:
    if row.verdict in FAILED:
        return True
    return False if row.verdict in GOOD else None


def _sessions_without_control(control: Iterable[CheckRow]) -> frozenset[str]:
    """The sessions whose control was tried and did not pass."""
    tries: dict[str, list[CheckRow]] = {}
    for row in control:
        tries.setdefault(row.session_id, []).append(row)
    return frozenset(session for session, made in tries.items() if not _passed(made))


def _passed(tries: Sequence[CheckRow]) -> bool:
    in_order = sorted(tries, key=lambda row: row.try_number)
    crashed = any(row.reason == "worker-crashed" for row in in_order)
    return check_result([row.verdict for row in in_order], crashed=crashed) == "passed"


def _bounds(failures: int, attempts: int, unknown: int, risk: Exact) -> tuple[str, str, str]:
    lower = lower_bound(failures, attempts, risk).quantize(_LAST_PLACE, rounding=ROUND_FLOOR)
    upper = bound_text(upper_bound(failures, attempts, risk), _PLACES)
    worst = bound_text(upper_bound(failures + unknown, attempts + unknown, risk), _PLACES)
    return str(lower), upper, worst


def _estimate(failures: int, attempts: int) -> str:
    a, b = map(Decimal, POPULATION_PRIOR)
    return str(((failures + a) / (attempts + a + b)).quantize(_LAST_PLACE))
