"""`regcase reopen`: records that a case is not fixed after all. Prints what was written and what is next."""

from pathlib import Path

import click

from pytest_regcase.cli.life_lines import say_appended
from pytest_regcase.cli.words import Words


@click.command(
    epilog="""\b
Example:
  regcase reopen sweep-0412-trial-37 --why "came back in sweep 0501"
"""
)
@click.argument("name", metavar="CASE")
@click.option("--why", type=Words(), required=True, help="What speaks against the fix, for the reader.")
@click.option(
    "--by", type=Words(), help="Who does it. [default: your name and address in git, else the user name]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def reopen(name: str, why: str, by: str | None, as_json: bool) -> None:
    """Reopen CASE (a case file, its folder, or an id).

    Appends a [[reopened]]: a closed, claimed or retired case is regressed from then on, also for who has no
    ledger, until a new fix is claimed.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.life import reopen_case

    project = load_project(Path.cwd())
    done = reopen_case(project, find_case(project.case_folders, name), why=why, by=by)
    say_appended(done, "reopened", ("When there is a new fix:", f"regcase fix {done.case_id}"), as_json=as_json)
