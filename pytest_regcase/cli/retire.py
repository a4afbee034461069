"""`regcase retire`: takes a case out of service and keeps its file. Prints what was written and how to go back."""

from pathlib import Path

import click

from pytest_regcase.cli.life_lines import say_appended
from pytest_regcase.cli.words import Words


@click.command(
    epilog="""\b
Example:
  regcase retire sweep-0412-trial-37 --why "the task is gone"
"""
)
@click.argument("name", metavar="CASE")
@click.option("--why", type=Words(), required=True, help="Why nobody needs it any more, for the reader.")
@click.option(
    "--by", type=Words(), help="Who does it. [default: your name and address in git, else the user name]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def retire(name: str, why: str, by: str | None, as_json: bool) -> None:
    """Retire CASE (a case file, its folder, or an id).

    Appends a [[retired]]: from then on the case is listed, and neither run nor judged. Its file stays, since a
    case that is deleted takes its observation with it.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.life import retire_case

    project = load_project(Path.cwd())
    done = retire_case(project, find_case(project.case_folders, name), why=why, by=by)
    back = ("To bring it back:", f"regcase reopen {done.case_id} --why ...")
    say_appended(done, "retired", back, as_json=as_json)
