"""`regcase history`: prints the story of a case, oldest first. Decides nothing, writes nothing."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.safe_text import redacted, redacted_document, visible
from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.history import Event


@click.command(
    epilog="""\b
Example:
  regcase history sweep-0412-trial-37
"""
)
@click.argument("name", metavar="CASE")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def history(name: str, as_json: bool) -> None:
    """Tell the story of CASE (a case file, its folder, or an id), oldest first; times are in UTC.

    Claimed fixes, closes, reopenings, amendments, evidence and what was withdrawn, each with who and why; and what
    every session of the ledger showed of it. Nothing is run and nothing is written.
    """
    from pytest_regcase.case_files import find_case, load_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.history import case_history
    from pytest_regcase.session.standing import reading_ledger, standing

    project = load_project(Path.cwd())
    loaded = load_case(find_case(project.case_folders, name))
    ledger, not_read = reading_ledger(project)
    try:
        events = case_history(loaded, ledger)
        found = standing(project, [loaded], ledger)
    finally:
        if ledger is not None:
            ledger.close()
    state, not_read = found.state(loaded), not_read or found.not_read
    if as_json:
        document: dict[str, object] = {"schema": 1, "case_id": loaded.id, "state": state}
        document |= {"ledger_not_read": not_read} if not_read is not None else {}
        document["events"] = [_plain(each) for each in events]
        click.echo(json.dumps(redacted_document(document), indent=2))
        return
    click.echo(wrapped(f"{loaded.id}: {visible(loaded.case.title or '')} ({state})", first=""))
    rows = [(each, _text(each)) for each in events]
    for (each, _), text in zip(rows, redacted(text for _, text in rows), strict=True):
        click.echo(wrapped(visible(text), first=f"  {each.at:%Y-%m-%d %H:%M}  ", further=" " * 20))
    if not events:
        click.echo("  nothing is recorded of it yet beside the observation")
    if not_read is not None:
        click.echo(wrapped(f"note: {not_read}", first=""))


def _text(event: "Event") -> str:
    said = f"{event.kind}: {event.says}"
    said += f"; by {event.who}" if event.who is not None else ""
    return said + (f": {event.why}" if event.why is not None else "")


def _plain(event: "Event") -> dict[str, object]:
    plain: dict[str, object] = {"at": event.at.isoformat().replace("+00:00", "Z"), "kind": event.kind}
    plain |= {key: value for key, value in (("who", event.who), ("why", event.why)) if value is not None}
    return {**plain, "says": event.says, **event.facts}
