"""`regcase close`: closes a case where the rerun rule is met. Prints the numbers, or what is missing."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import Words, wrapped

if TYPE_CHECKING:
    from pytest_regcase.records.decision import Claim
    from pytest_regcase.session.case_life.close import Closing

REFUSED = 1
"""Exit code where the claim does not hold, or not yet."""


@click.command(
    epilog="""\b
Example:
  regcase close sweep-0412-trial-37
"""
)
@click.argument("name", metavar="CASE")
@click.option(
    "--by", type=Words(), help="Who closes it. [default: your name and address in git, else the user name]"
)
@click.option("--function", metavar="NODE", help="Over the live runs of this test function, as pytest names it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def close(name: str, by: str | None, function: str | None, as_json: bool) -> None:
    """Close CASE (a case file, its folder, or an id), if the rerun rule is met.

    Appends a [[closed]] with the numbers that the claim stands on. Refused, with exit code 1, while clean live
    runs are missing, after a recurrence, and where the ledger that the fix was claimed on is not at hand: a lost
    ledger gives fresh chances. A closed case is guarded from then on. Nothing is run now.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.close import close_case

    project = load_project(Path.cwd())
    closing = close_case(project, find_case(project.case_folders, name), function=function, by=by)
    if as_json:
        click.echo(json.dumps(_document(closing), indent=2))
    elif closing.closed is not None and closing.claim is not None:
        _say_closed(closing, closing.claim)
    else:
        _say_refused(closing)
    if closing.closed is None:
        raise SystemExit(REFUSED)


def _document(closing: "Closing") -> dict[str, object]:
    from pytest_regcase.toml_lines import shown

    document: dict[str, object] = {
        "schema": 1,
        "case_id": closing.case_id,
        "file": shown(closing.path),
        "fix_number": closing.fix_number,
    }
    if closing.closed is not None:
        document["closed"] = closing.closed.to_plain()
    if closing.claim is not None:
        document["claim"] = closing.claim.to_sparse()
    return {**document, "refused": list(closing.refused), "notes": list(closing.notes)}


def _say_closed(closing: "Closing", claim: "Claim") -> None:
    from pytest_regcase.rules.exact import percent
    from pytest_regcase.toml_lines import shown

    assert closing.closed is not None
    click.echo(f"wrote {shown(closing.path)}: closed by {closing.closed.by}")
    numbers = (
        f"fix {claim.fix_number}: {claim.clean} of {claim.need} clean live runs. {claim.kind}: failure rate below"
        f" {percent(claim.max_rate)} at {percent(claim.risk)} risk"
    )
    click.echo(wrapped(numbers + (f", upper bound {claim.bound}" if claim.bound is not None else "")))
    if claim.would_pass_unchanged is not None:
        often = percent(claim.would_pass_unchanged)
        click.echo(
            wrapped(f"if nothing had changed, {claim.need} clean runs would still happen {often} of the time")
        )
    for each in (*claim.warnings, *closing.notes):
        click.echo(wrapped(f"note: {each}"))
    click.echo(
        wrapped("From here on it is guarded: its simulations run in every gate, and one recurrence is red.")
    )


def _say_refused(closing: "Closing") -> None:
    first, *others = closing.refused
    click.echo(wrapped(f"Couldn't close {closing.case_id}: {first}.", first="", further="  "), err=True)
    for each in others:
        click.echo(wrapped(each), err=True)
    for each in closing.notes:
        click.echo(wrapped(f"note: {each}"), err=True)
    text, command = _next(closing)
    click.echo(wrapped(text, first="", further="  "), err=True)
    if command is not None:
        click.echo(f"  {command}", err=True)


def _next(closing: "Closing") -> tuple[str, str | None]:
    claim = closing.claim
    if claim is None:
        return "Correct the rule; nothing was written.", None
    if claim.refuted_by_run is not None:
        return "Nothing was written. When there is another fix:", f"regcase fix {closing.case_id}"
    runs = claim.need - claim.clean
    if not claim.lacks and runs > 0:
        return (
            "Nothing was written. The missing runs cost model calls:",
            f"pytest --regcase --regcase-profile=nightly --regcase-live={runs}",
        )
    if any("ledger" in each for each in claim.lacks):
        return (
            "Nothing was written. Close it where that ledger is (REGCASE_LEDGER names one); if it is lost, claim"
            " the fix again and count anew:",
            f"regcase fix {closing.case_id}",
        )
    return "Nothing was written. See what counts and why:", f"regcase handover {closing.case_id}"
