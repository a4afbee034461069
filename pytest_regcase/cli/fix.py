"""`regcase fix`: records that a fix is claimed. Prints what was written and what to run next."""

import json
from pathlib import Path

import click

from pytest_regcase.cli.words import Words, wrapped


@click.command(
    epilog="""\b
Example:
  regcase fix sweep-0412-trial-37 --note "client time-out lowered to 30 s"
"""
)
@click.argument("name", metavar="CASE")
@click.option("--note", type=Words(), help="What was changed, for the reader.")
@click.option(
    "--by", type=Words(), help="Who claims it. [default: your name and address in git, else the user name]"
)
@click.option(
    "--revision", type=Words(), help="What is claimed to be fixed. [default: the digest of the case's agent]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def fix(name: str, note: str | None, by: str | None, revision: str | None, as_json: bool) -> None:
    """Claim that CASE (a case file, its folder, or an id) is fixed.

    Appends a [[fix]] to the case file. From here on live attempts count: the claim holds once enough of them are
    clean, and one recurrence refutes it. Nothing is run now.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.fix import claim_fix
    from pytest_regcase.toml_lines import shown

    project = load_project(Path.cwd())
    claim = claim_fix(project, find_case(project.case_folders, name), revision=revision, by=by, note=note)
    if as_json:
        document = {
            "schema": 1,
            "case_id": claim.case_id,
            "file": shown(claim.path),
            "fix": claim.fix.to_plain(),
            "need": claim.need,
            "notices": list(claim.notices),
        }
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"wrote {shown(claim.path)}: fix {claim.fix.number}, claimed by {claim.fix.by}")
    click.echo(wrapped(f"revision {claim.fix.revision}"))
    click.echo(f"  ledger {claim.fix.ledger_id}, {claim.fix.rows} attempts so far")
    for notice in claim.notices:
        click.echo(wrapped(f"note: {notice}"))
    needs = (
        f"The claim needs {claim.need} clean live attempts: failure rate below {claim.max_failure_rate}"
        f" at risk {claim.risk}."
    )
    click.echo(wrapped(needs, first="", further="  "))
    click.echo("Next:")
    click.echo(f"  pytest --regcase --regcase-profile=nightly --regcase-live={claim.need}")
