"""`regcase rule`: prints how many clean live runs close a case, what they prove and what not. Decides nothing."""

import json
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pytest_regcase.cli.numbers import Amount, Counts, Share
from pytest_regcase.cli.words import labelled, wrapped
from pytest_regcase.errors import UsageRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_regcase.records.case import Baseline
    from pytest_regcase.rules.claims import Requirement
    from pytest_regcase.rules.operating import Operating
    from pytest_regcase.rules.sequential import Plan

MOST_RUNS = 1_000_000_000
"""A plan that needs more clean runs than these is refused."""
_SHOWN_RATES = ("0", "0.01", "0.1", "0.2", "0.5", "1", "2")
"""Of the curve, in multiples of the rate that is ruled out."""
_PLOTTED_POINTS = 70
_PLOTTED_TO = 2.5


@click.command(
    epilog="""\b
Example:
  regcase rule --rate 0.10 --risk 0.05 --baseline 2/20 --cost-per-run 0.35
"""
)
@click.option("--rate", type=Share(), help="Failure rate to rule out.  [default: the project's, else 0.10]")
@click.option("--risk", type=Share(), help="Risk of a false claim.  [default: the project's, else 0.05]")
@click.option(
    "--baseline",
    type=Counts(),
    help="K failures of N attempts before the fix. Count every attempt, not only the one that made the case.",
)
@click.option(
    "--plan",
    "plan_name",
    help="zero (no failure), allow-one, c:<n> (at most n of a fixed number) or e-process."
    "  [default: the project's, else zero]",
)
@click.option("--cost-per-run", type=Amount(), help="Money for one run.")
@click.option("--minutes-per-run", type=Amount(), help="Minutes that one run takes.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Runs that are made at a time.")
@click.option("--plot", is_flag=True, help="Draw the curve also where stdout is no terminal.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout; never a plot.")
def rule(
    rate: str | None,
    risk: str | None,
    baseline: tuple[int, int] | None,
    plan_name: str | None,
    cost_per_run: Decimal | None,
    minutes_per_run: Decimal | None,
    jobs: int,
    plot: bool,
    as_json: bool,
) -> None:
    """Say how many clean live runs close a case, what they prove and what they do not.

    Also what they cost, and how often a plan accepts a case at each true failure rate. Runs nothing.
    """
    from pytest_regcase.records.case import Baseline
    from pytest_regcase.rules.claims import requirement
    from pytest_regcase.rules.operating import curve
    from pytest_regcase.rules.plans import plan_for

    asked = _asked(rate, risk, plan_name)
    rate, risk = asked.rate, asked.risk
    plan = plan_for(asked.plan, rate, risk)
    if plan.bounds[0] > MOST_RUNS:
        raise UsageRefused(
            f"Couldn't plan for {plan.bounds[0]} runs: nobody makes so many.\n"
            "Give a higher --rate, or a higher --risk."
        )
    before = (
        None
        if baseline is None
        else Baseline(failures=baseline[0], trials=baseline[1], kind=_kind_of(baseline[1]))
    )
    needs = requirement(
        rate,
        risk,
        baseline=before,
        for_rate=None if plan.name == "zero" else plan.bounds[0],
    )
    claim = _claim(plan, risk, before)
    rates = (float(Decimal(of) * Decimal(rate)) for of in _SHOWN_RATES)
    shown = curve(plan, [each for each in rates if each < 1])
    cost = _Cost(cost_per_run, minutes_per_run, jobs)
    if as_json:
        click.echo(json.dumps(_document(plan, rate, risk, needs, claim, shown, cost), indent=2))
        return
    says = _says(plan, rate, risk, baseline, needs, claim, shown)
    lines = [*says, *asked.lines(), *cost.lines(needs), "", *_table(shown)]
    click.echo("\n".join(lines))
    if plot or (sys.stdout is not None and sys.stdout.isatty()):  # None: it was closed before we began
        from pytest_regcase.cli.curve_plot import as_ascii, curve_plot

        top = min(1.0, _PLOTTED_TO * float(rate))
        points = curve(plan, [top * each / _PLOTTED_POINTS for each in range(_PLOTTED_POINTS + 1)])
        drawn = curve_plot(points, float(rate))
        click.echo("\n" + (drawn if _can_be_shown(drawn) else as_ascii(drawn)))
        click.echo("  The vertical line is the rate to rule out.")


def _can_be_shown(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class _Asked:
    """What is computed for, and what of it is the project's."""

    rate: str
    risk: str
    plan: str
    of_project: str | None = None

    def lines(self) -> "Iterator[str]":
        if self.of_project is not None:
            yield labelled("project", f"{self.of_project}: as [tool.regcase] says; a case's own rule wins")


def _asked(rate: str | None, risk: str | None, plan: str | None) -> _Asked:
    """Take what was not given from the project here, with its limits; from the defaults where there is none."""
    if rate is not None and risk is not None and plan is not None:
        return _Asked(rate, risk, plan)
    from pytest_regcase.config import load_project
    from pytest_regcase.session.project.rules_in_force import project_rule

    project = load_project(Path.cwd())
    own = project_rule(project)
    taken = [name for name, given in (("rate", rate), ("risk", risk), ("plan", plan)) if given is None]
    return _Asked(
        rate if rate is not None else own.max_failure_rate,
        risk if risk is not None else own.risk,
        plan if plan is not None else project.config.plan,
        None if project.pyproject is None else ", ".join(taken),
    )


def _kind_of(trials: int) -> Literal["trigger-only", "all-attempts"]:
    # One attempt is the failed one that made the case.
    return "trigger-only" if trials == 1 else "all-attempts"


class _Cost:
    """What runs cost in money and time, as far as it was said."""

    def __init__(self, per_run: Decimal | None, minutes_per_run: Decimal | None, jobs: int) -> None:
        self.per_run, self.minutes_per_run, self.jobs = per_run, minutes_per_run, jobs

    def of(self, runs: int) -> dict[str, str]:
        """What `runs` clean runs cost; `jobs` of them are made at a time."""
        costs = {}
        if self.per_run is not None:
            costs["money"] = f"{runs * self.per_run:f}"
        if self.minutes_per_run is not None:
            hours = -(-runs // self.jobs) * self.minutes_per_run / 60
            costs["hours"] = f"{hours.quantize(Decimal('0.01')):f}"
        return costs

    def lines(self, needs: "Requirement") -> "Iterator[str]":
        """A line for what closes, and one for what FIXED needs, where that is more."""
        for runs in sorted({needs.clean_reruns, needs.fixed or needs.clean_reruns}):
            costs = self.of(runs)
            parts = []
            if "money" in costs:
                parts.append(f"{costs['money']} at {self.per_run:f} a run")
            if "hours" in costs:
                parts.append(f"{costs['hours']} hours, {self.jobs} at a time")
            if parts:
                yield labelled("cost", f"of {runs} {'run' if runs == 1 else 'runs'}: {'; '.join(parts)}")


def _document(
    plan: "Plan",
    rate: str,
    risk: str,
    needs: "Requirement",
    claim: Literal["FIXED", "BOUNDED"],
    shown: "Sequence[Operating]",
    cost: _Cost,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema": 1,
        "clean_reruns": needs.clean_reruns,
        "for_rate": needs.for_rate,
        "for_comparison": needs.for_comparison,
        "fixed": needs.fixed,
        "bound": _bound(plan, rate, risk),
        "claim": claim,
        "plan": plan.name,
        "risk": risk,
        "expected_runs": {_plain(each.rate): round(each.expected_runs, 1) for each in shown},
        "would_pass_unchanged": needs.would_pass_unchanged,
        "cost": cost.of(needs.clean_reruns) or None,
        "warnings": list(needs.warnings),
    }
    return {key: value for key, value in document.items() if value is not None}


def _claim(plan: "Plan", risk: str, baseline: "Baseline | None") -> Literal["FIXED", "BOUNDED"]:
    """What an accepted case may claim, with whatever number of failures the plan accepted it."""
    from pytest_regcase.rules.claims import fails_less

    if baseline is None or not baseline.failures:
        return "BOUNDED"
    fixed = all(fails_less(baseline, failures, runs, risk) for failures, runs in enumerate(plan.bounds))
    return "FIXED" if fixed else "BOUNDED"


def _bound(plan: "Plan", rate: str, risk: str) -> str:
    """What an accepted case fails at most; where the plan may accept at several numbers, no less than the rate."""
    from pytest_regcase.rules.binomial import bound_text, upper_bound

    if len(set(plan.bounds)) > 1:
        return rate
    # Exact for a number of runs that was fixed beforehand, with as many failures as the plan allows.
    bound = upper_bound(len(plan.bounds) - 1, plan.bounds[0], risk)
    return bound_text(bound, places=3 - Decimal(rate).adjusted())


def _says(
    plan: "Plan",
    rate: str,
    risk: str,
    baseline: tuple[int, int] | None,
    needs: "Requirement",
    claim: Literal["FIXED", "BOUNDED"],
    shown: "Sequence[Operating]",
) -> "Iterator[str]":
    from pytest_regcase.rules.exact import confidence, percent

    yield wrapped(f"{_runs(plan)}: failure rate below {percent(rate)}, at risk {percent(risk)}.", first="")
    for formula in needs.formulas if plan.name == "zero" else (_formula(plan, rate, risk), *needs.formulas):
        yield labelled("formula", formula)
    compared = f"fails less than {baseline[0]} of {baseline[1]} did" if baseline else ""
    bound = _bound(plan, rate, risk)
    proved = f"{claim}: below {percent(rate)}" + (f", at most {percent(bound)}" if bound != rate else "")
    proved += f" ({confidence(risk)} confidence)"
    if claim == "FIXED":
        yield labelled("proves", f"{proved}, and it {compared}")
        yield labelled("does not", "show why: a new model or a quieter supplier lowers a failure rate as well")
    else:
        a_fifth = shown[_SHOWN_RATES.index("0.2")]
        yield labelled("proves", proved)
        yield labelled(
            "does not",
            f"show that anything changed: what fails {percent(_plain(a_fifth.rate))} of the time passes"
            f" {_share(a_fifth.accept)} of the time with no fix at all",
        )
    if needs.fixed is not None and claim != "FIXED":
        yield labelled("FIXED", f"takes {needs.fixed} clean runs: below {percent(rate)}, and {compared}")
    for warning in needs.warnings:
        yield labelled("warning", warning)


def _runs(plan: "Plan") -> str:
    first, *others = plan.bounds
    if not others:
        return "1 clean live run closes a case" if first == 1 else f"{first} clean live runs close a case"
    if first == others[-1]:
        return f"{first} live runs with at most {_failures(len(others))} close a case"
    more = ", ".join(f"{runs} with {_failures(failures)}" for failures, runs in enumerate(others, 1))
    return f"{first} clean live runs close a case, or {more}"


def _failures(number: int) -> str:
    return "1 failure" if number == 1 else f"{number} failures"


def _formula(plan: "Plan", rate: str, risk: str) -> str:
    from pytest_regcase.rules.operating import operating

    exact = operating(plan, float(rate)).accept
    if len(set(plan.bounds)) == 1:
        few = f"P(at most {len(plan.bounds) - 1} of n fail at {rate})"
        return f"{plan.bounds[0]} = smallest n with {few} <= {risk}; it is {exact:.3g}"
    return f"exact chance to be accepted at {rate} is {exact:.3g} <= {risk}"


def _table(shown: "Sequence[Operating]") -> "Iterator[str]":
    from pytest_regcase.rules.exact import percent

    rates = ["true rate", *(percent(_plain(each.rate)) for each in shown)]
    accepted = ["accepted", *(_share(each.accept) for each in shown)]
    runs = ["runs on average", *(f"{each.expected_runs:.1f}" for each in shown)]
    widths = [max(map(len, column)) for column in (rates, accepted, runs)]
    for cells in zip(rates, accepted, runs, strict=True):
        yield "  " + "   ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def _share(accept: float) -> str:
    text = f"{100 * accept:.1f} %"
    if text == "0.0 %" and accept > 0:
        return "< 0.1 %"
    return "> 99.9 %" if text == "100.0 %" and accept < 1 else text


def _plain(rate: float) -> str:
    return f"{Decimal(repr(rate)).normalize():f}"
