"""`regcase budget`: prints how often each case may fail by chance so that a suite stays green. Decides nothing."""

import json
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.numbers import Share
from pytest_regcase.cli.words import labelled, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

RISK = "0.05"
"""Of a false claim that a case keeps its budget."""
AFFORDABLE_RUNS = 1000
"""Clean runs of one case; above it a budget cannot be shown case by case."""
_DIGITS = 130
"""As many as the chances of a suite are computed in."""
_FLAKE_BUDGET = "0.01"
"""The default of `flake_budget` in [tool.regcase]."""
_SUPPOSED_CORRELATION = "0.2"
_SMALLEST = Decimal("0.000001")
_SUPPOSED_REGRESSION = "0.3"


@click.command(
    epilog="""\b
Example:
  regcase budget --cases 200 --false-red 0.05 --reruns 1 --correlation 0.2
"""
)
@click.option("--cases", type=int, required=True, help="How many cases the suite has.")
@click.option("--false-red", type=Share(), required=True, help="Share of runs that may be red by chance alone.")
@click.option(
    "--reruns", type=int, default=0, show_default=True, help="Reruns of a failed case; it passes if any passes."
)
@click.option(
    "--correlation",
    type=Share(ends=True),
    default="0",
    show_default=True,
    help="Of a case's attempts: 0 independent, 1 all alike.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def budget(cases: int, false_red: str, reruns: int, correlation: str, as_json: bool) -> None:
    """Say how often each case may fail by chance so that the whole suite stays green.

    Also says how many clean runs show that a case keeps to it, and what reruns hide. Runs nothing.
    """
    from pytest_regcase.rules.rerun import clean_reruns
    from pytest_regcase.rules.suite import flake_budget, suite_green_bb

    allowed = flake_budget(false_red, cases, reruns, correlation)
    green = suite_green_bb(allowed, correlation, cases, reruns)
    runs = clean_reruns(allowed, RISK)
    # Downwards: a budget that is printed too high would allow too much.
    shown = _three_digits(allowed, ROUND_FLOOR)
    warnings = _warnings(allowed, runs, cases, reruns, correlation)
    if as_json:
        document: dict[str, Any] = {
            "schema": 1,
            "flake_budget": shown,
            "cases": cases,
            "false_red": false_red,
            "reruns": reruns,
            "correlation": correlation,
            "green_probability": _likely(green),
            "clean_reruns": runs,
            "warnings": warnings,
        }
        click.echo(json.dumps(document, indent=2))
        return
    click.echo("\n".join(_says(shown, runs, cases, false_red, reruns, correlation, warnings)))


def _says(
    shown: str, runs: int, cases: int, false_red: str, reruns: int, correlation: str, warnings: list[str]
) -> "Iterator[str]":
    from pytest_regcase.rules.exact import percent

    yield wrapped(
        f"Flake budget {shown}: each of {cases} cases may fail by chance in {percent(shown)} of its attempts, for"
        f" the suite to be red by chance in {percent(false_red)} of its runs.",
        first="",
    )
    yield labelled("formula", _formula(false_red, cases, reruns, correlation))
    yield labelled("to show", f"that one case keeps it: {runs} clean runs, at risk {percent(RISK)}")
    yield labelled("gate", _confirm(cases, false_red))
    for warning in warnings:
        yield labelled("warning", warning)


def _formula(false_red: str, cases: int, reruns: int, correlation: str) -> str:
    share = f"1 - (1 - {false_red})^(1/{cases})"
    if not reruns or not Decimal(correlation):
        return f"q = ({share})^(1/{reruns + 1})" if reruns else f"q = {share}"
    return f"the q with P(all {reruns + 1} attempts fail) = {share}, beta-binomial with correlation {correlation}"


def _confirm(cases: int, false_red: str) -> str:
    from pytest_regcase.rules.exact import percent
    from pytest_regcase.rules.suite import confirm_for

    runs = confirm_for(cases, false_red, _FLAKE_BUDGET)
    flaking = f"with cases that flake {percent(_FLAKE_BUDGET)} (the default flake_budget)"
    if not runs:
        return f"no confirm:m keeps that share {flaking}: confirm:1 is red too often already"
    return (
        f"confirm:{runs} keeps that share {flaking}: a failed check is run {runs} more"
        f" time{'s' * (runs > 1)} and is red if any of them fails"
    )


def _warnings(allowed: Decimal, runs: int, cases: int, reruns: int, correlation: str) -> list[str]:
    from pytest_regcase.rules.exact import chance, percent
    from pytest_regcase.rules.suite import rerun_pass_prob, suite_green_bb

    warnings = []
    if runs > AFFORDABLE_RUNS:
        warnings.append(
            f"{runs} clean runs of each case are not affordable: estimate the rate over the first attempts of all"
            " cases together."
        )
    if not reruns and Decimal(correlation):
        warnings.append("Without reruns it makes no difference how the attempts of a case are correlated.")
    if reruns and not Decimal(correlation):
        green = suite_green_bb(allowed, _SUPPOSED_CORRELATION, cases, reruns)
        red = 1 - max(green, _SMALLEST)  # what is left of a chance of 1e-40000 is not certain either
        warnings.append(
            "Attempts are taken as independent. If a shared outage or prompt cache correlates them by"
            f" {_SUPPOSED_CORRELATION}, the same suite is red by chance in {percent(chance(red))} of its runs."
        )
    if reruns:
        seen = 1 - rerun_pass_prob(_SUPPOSED_REGRESSION, reruns)
        warnings.append(
            f"Reruns hide regressions: a case that now fails {percent(_SUPPOSED_REGRESSION)} of its attempts is"
            f" red in {percent(chance(seen))} of the runs."
        )
    return warnings


def _three_digits(value: Decimal, rounding: str) -> str:
    return f"{value.quantize(Decimal(1).scaleb(value.adjusted() - 2), rounding=rounding):f}"


def _likely(chance: Decimal) -> str:
    """Three digits; what is not certain is not printed as 1."""
    text = _three_digits(chance, ROUND_HALF_EVEN)
    with localcontext(prec=_DIGITS):
        return text if Decimal(text) < 1 else str(1 - Decimal(_three_digits(1 - chance, ROUND_HALF_EVEN)))
