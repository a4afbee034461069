"""`regcase check`: prints what a linter finds in case files, by themselves and against a git revision."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.lint.codes import LintRow
    from pytest_regcase.session.reviews.check import Checked

LINT_FOUND = 1


@click.command(
    epilog="""\b
Example:
  regcase check
  regcase check cases/sweep-0412-trial-37
  regcase check --against origin/main
  regcase check --sensitivity sweep-0412-trial-37
"""
)
@click.argument("paths", nargs=-1, metavar="[PATHS]")
@click.option("--against", metavar="REF", help="Also compare the whole project with this git revision.")
@click.option(
    "--sensitivity",
    metavar="CASE",
    help="Instead, run the shipped bad agents under this case's simulations: would its expectations notice?",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def check(
    context: click.Context, paths: tuple[str, ...], against: str | None, sensitivity: str | None, as_json: bool
) -> None:
    """Check cases (all, or those in PATHS: case files, folders, ids) and simulations. No case is run.

    Finds what is not allowed in a file, a case without an owner or next decision, a note that asserts a cause
    nobody has shown, a quarantine that has ended, and more. With --against it also finds what is looser than at
    REF and has no amendment since. Calls that new replies drive are listed for a review. Exit code 1 when
    something is wrong; what is only listed is not wrong.
    """
    from pytest_regcase.config import load_project
    from pytest_regcase.session.reviews.check import check_project

    if sensitivity is not None:
        if paths or against is not None:
            raise click.UsageError("--sensitivity runs agents for one case; give it without PATHS and --against")
        from pytest_regcase.cli.sensitivity_lines import show_sensitivity

        context.exit(show_sensitivity(sensitivity, as_json=as_json))
    checked = check_project(load_project(Path.cwd()), paths, against=against)
    if as_json:
        click.echo(json.dumps([each.to_plain() for each in checked.rows], indent=2, ensure_ascii=False))
    else:
        _print(checked)
    if checked.red:
        context.exit(LINT_FOUND)


def _print(checked: "Checked") -> None:
    if checked.against is not None:
        click.echo(f"compared with {checked.against}")
    for row in checked.rows:
        click.echo(f"{_place(row)}: {row.code}" if row.file is not None else row.code)
        click.echo(wrapped(_visible(row.text)))
    listed = len(checked.rows) - checked.red
    looked_at = f"{_count(checked.cases, 'case')}, {_count(checked.simulations, 'simulation')}"
    found = f"{_count(checked.red, 'problem')}" + (f", {listed} to read" if listed else "")
    click.echo(f"{looked_at}: {found}")


def _place(row: "LintRow") -> str:
    return f"{row.file}:{row.line}" if row.line is not None else str(row.file)


def _visible(text: str) -> str:
    """Return `text` with everything that a terminal would not show, or would obey, spelt out."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
