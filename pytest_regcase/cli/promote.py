"""`regcase promote`: makes a revision active. Prints what is active now; whether it may is decided elsewhere."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import Words, wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.revisions.versions import Promoted


@click.command(
    epilog="""\b
Example:
  regcase gate --candidate HEAD
  regcase promote HEAD --why "goes out with release 4.2"
"""
)
@click.argument("name", metavar="REV")
@click.option("--why", type=Words(), help="What it is made active for, for the reader.")
@click.option(
    "--by", type=Words(), help="Who does it. [default: your name and address in git, else the user name]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def promote(name: str, why: str | None, by: str | None, as_json: bool) -> None:
    """Make the agent's revision REV active: the one that is in use.

    REV is a digest, at least 7 digits of one, or a git revision that a session was run on. Refused (exit code 1)
    unless the last `regcase gate --candidate` of this very digest passed, and the ledger holds nothing of it that
    came later. What is active is recorded in the ledger alone, with who and why; no entry is ever replaced.
    """
    from pytest_regcase.config import load_project
    from pytest_regcase.session.gating.gate_over import one_ledger
    from pytest_regcase.session.revisions.versions import find_revision
    from pytest_regcase.session.revisions.versions import promote as make_active

    project = load_project(Path.cwd())
    with one_ledger(project, ()) as ledger:
        revision = find_revision(project, ledger, name)
        done = make_active(project, ledger, revision, by=by, why=why)
    if as_json:
        click.echo(json.dumps(_document(done), indent=2))
        return
    for notice in revision.notices:
        click.echo(wrapped(f"note: {notice}", first=""))
    for line in _lines(done):
        click.echo(wrapped(line, first="", further="  "))


def _lines(done: "Promoted") -> list[str]:
    from pytest_regcase.session.revisions.versions import moment_text, shown_digest

    active = shown_digest(done.version.active)
    if not done.changed:
        who = f", by {done.version.who}" if done.version.who is not None else ""
        return [f"{active} is active already, since {moment_text(done.version.since)}{who}; nothing was changed"]
    before = "nothing was active before" if done.before is None else f"before: {shown_digest(done.before.active)}"
    lines = [f"{active} is active now ({before}); recorded for {done.version.who}"]
    if done.decided is not None:
        at, profile = moment_text(done.decided.at), done.decided.decision.profile
        lines += [f"it passed as a candidate on {at} ({profile}):", f"  regcase history --version {active}"]
    return lines


def _document(done: "Promoted") -> dict[str, object]:
    version = done.version.to_sparse()
    document = {"schema": 1, "changed": done.changed, **version}
    return document | ({"before": done.before.active} if done.before is not None and done.changed else {})
