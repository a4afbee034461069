"""`regcase amend`: changes something sealed or guarded of a case, and records why. Prints what was recorded."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import Words, wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.case_life.amend import Amended


@click.command(
    epilog="""\b
Example:
  regcase amend sweep-0412-trial-37 --field expected_recovery.max_retries=5 \\
      --why "the client library retries twice by itself"
  regcase amend sweep-0412-trial-37 --since main --why "agreed upon"
"""
)
@click.argument("name", metavar="CASE")
@click.option(
    "--field",
    "fields",
    type=Words(),
    multiple=True,
    metavar="KEY=VALUE",
    help="Change this key; may be given several times. Without it, what was edited by hand is recorded.",
)
@click.option("--why", type=Words(), required=True, help="Why it is right to change it, for the reader.")
@click.option(
    "--what", type=Words(), help="What changed in the observation, in words; needed where git cannot show it."
)
@click.option(
    "--since",
    type=Words(),
    metavar="REF",
    help="The commit that an edit by hand is compared with. [default: HEAD]",
)
@click.option(
    "--by", type=Words(), help="Who does it. [default: your name and address in git, else the user name]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def amend(
    name: str,
    fields: tuple[str, ...],
    why: str,
    what: str | None,
    since: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Change something sealed or guarded of CASE (a case file, its folder, or an id), and record it.

    Guarded are the observation, the expected recovery, the symptom match, the rerun rule, the baseline, the
    hypotheses, the task, the replies and the quarantine. Each changed key is recorded as an [[amendments]], from
    what to what; `regcase check --against` is red for a loosening without one. An observation that changed is
    sealed anew.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.amend import amend_case

    if fields and since is not None:
        raise click.UsageError("--since is for an edit by hand; with --field the change is made here.")
    project = load_project(Path.cwd())
    done = amend_case(
        project,
        find_case(project.case_folders, name),
        why=why,
        fields=fields,
        what=what,
        since=since,
        by=by,
    )
    if as_json:
        click.echo(json.dumps(_document(done), indent=2))
    else:
        _say(done)


def _document(done: "Amended") -> dict[str, object]:
    from pytest_regcase.toml_lines import shown

    return {
        "schema": 1,
        "case_id": done.case_id,
        "file": shown(done.path),
        "amendments": [each.to_sparse() for each in done.amendments],
        "counts_anew": done.counts_anew,
    }


def _say(done: "Amended") -> None:
    from pytest_regcase.toml_lines import shown

    click.echo(wrapped(f"wrote {shown(done.path)}: amended by {done.amendments[0].who}", first=""))
    for each in done.amendments:
        click.echo(wrapped(each.what))
    if any(each.old_digest is not None for each in done.amendments):
        click.echo(wrapped("the observation is sealed anew"))
    if done.counts_anew:
        click.echo(wrapped("note: live attempts are counted anew, since what they are about has changed"))
    click.echo("Next:")
    click.echo("  pytest --regcase")
