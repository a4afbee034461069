"""`regcase history`: tells the story of a case or a revision, oldest first. Decides and writes nothing."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.safe_text import redacted, redacted_document, visible
from pytest_regcase.cli.words import Words, wrapped
from pytest_regcase.records.moments import utc_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_regcase.session.case_life.history import Event
    from pytest_regcase.session.ledgers.flakiness import CheckStanding


@click.command(
    epilog="""\b
Example:
  regcase history sweep-0412-trial-37
  regcase history --version 3f9c2e1a77d0
"""
)
@click.argument("name", metavar="[CASE]", required=False)
@click.option("--version", "revision", type=Words(), metavar="REV", help="Of a revision of the agent instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def history(name: str | None, revision: str | None, as_json: bool) -> None:
    """Tell the story of CASE (a case file, its folder, or an id), oldest first; times are in UTC.

    Claimed fixes, closes, reopenings, amendments, evidence and what was withdrawn, each with who and why; and what
    every session of the ledger showed of it. With --version, of REV (a digest, at least 7 digits of one, or a git
    revision that a session was run on): its sessions, all decisions, when it was active, and how it did as a
    candidate, also when its branch is gone. Nothing is run and nothing is written.
    """
    if (name is None) == (revision is None):
        raise click.UsageError("Give either CASE or --version REV.")
    if name is not None:
        _of_case(name, as_json=as_json)
    elif revision is not None:
        _of_revision(revision, as_json=as_json)


def _of_case(name: str, *, as_json: bool) -> None:
    from pytest_regcase.case_files import find_case, load_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.history import case_history
    from pytest_regcase.session.gating.standing import reading_ledger, standing
    from pytest_regcase.session.ledgers.flakiness import check_standings

    project = load_project(Path.cwd())
    loaded = load_case(find_case(project.case_folders, name))
    ledger, not_read = reading_ledger(project)
    try:
        events = case_history(loaded, ledger)
        found = standing(project, [loaded], ledger)
        checks = () if ledger is None else check_standings(project, loaded, ledger)
    finally:
        if ledger is not None:
            ledger.close()
    state, not_read = found.state(loaded), not_read or found.not_read
    if as_json:
        document: dict[str, object] = {"schema": 1, "case_id": loaded.id, "state": state}
        document |= {"ledger_not_read": not_read} if not_read is not None else {}
        document["events"] = [_plain(each) for each in events]
        document["checks"] = [_check(each) for each in checks]
        click.echo(json.dumps(redacted_document(document), indent=2))
        return
    click.echo(wrapped(f"{loaded.id}: {visible(loaded.case.title or '')} ({state})", first=""))
    _tell(events)
    if not events:
        click.echo("  nothing is recorded of it yet beside the observation")
    if checks:
        click.echo("Of its first attempts, over all sessions:")
    for check in checks:
        click.echo(wrapped(f"{check.scenario}: {check.rate.says}"))
        if check.over_budget:
            click.echo(wrapped(f"flaky over its budget: regcase quarantine {loaded.id}", first="    "))
        if check.alarm is not None:
            click.echo(wrapped(f"drift alarm: {check.alarm.says}", first="    "))
    if not_read is not None:
        click.echo(wrapped(f"note: {not_read}", first=""))


def _of_revision(name: str, *, as_json: bool) -> None:
    from pytest_regcase.config import load_project
    from pytest_regcase.errors import UnknownName
    from pytest_regcase.reporters.terminal import summary_lines
    from pytest_regcase.session.candidates.revision_history import revision_history
    from pytest_regcase.session.gating.standing import reading_ledger
    from pytest_regcase.session.revisions.versions import find_revision

    project = load_project(Path.cwd())
    ledger, not_read = reading_ledger(project)
    if ledger is None:
        raise UnknownName(f"Couldn't find revision {name!r}: {not_read}.\nREGCASE_LEDGER names another ledger.")
    with ledger:
        found = revision_history(project, ledger, find_revision(project, ledger, name))
    notices = [*found.revision.notices, *found.notices]
    if as_json:
        document: dict[str, object] = {"schema": 1, "revision": found.revision.digest, "active": found.is_active}
        document |= {"agents": dict(found.revision.agents), "commits": list(found.revision.commits)}
        document |= {"notices": notices} if notices else {}
        document["events"] = [_plain(each) for each in found.events]
        click.echo(json.dumps(redacted_document(document), indent=2))
        return
    click.echo(found.revision.digest + (" (active)" if found.is_active else ""))
    _tell(found.events)
    for each in notices:
        click.echo(wrapped(f"note: {each}", first=""))
    if found.evaluation is not None:
        click.echo("\nas a candidate, decided last:")
        for line in redacted(summary_lines(found.evaluation.decision, found.attempts)):
            click.echo(visible(line))


def _tell(events: "Sequence[Event]") -> None:
    for each, text in zip(events, redacted(_text(each) for each in events), strict=True):
        click.echo(wrapped(visible(text), first=f"  {each.at:%Y-%m-%d %H:%M}  ", further=" " * 20))


def _text(event: "Event") -> str:
    said = f"{event.kind}: {event.says}"
    said += f"; by {event.who}" if event.who is not None else ""
    return said + (f": {event.why}" if event.why is not None else "")


def _plain(event: "Event") -> dict[str, object]:
    plain: dict[str, object] = {"at": utc_text(event.at), "kind": event.kind}
    plain |= {key: value for key, value in (("who", event.who), ("why", event.why)) if value is not None}
    return {**plain, "says": event.says, **event.facts}


def _check(check: "CheckStanding") -> dict[str, object]:
    alarm = {"drift_alarm": check.alarm.to_sparse()} if check.alarm is not None else {}
    rate = check.rate.to_sparse()
    return {"scenario": check.scenario, "flake_rate": rate, "over_budget": check.over_budget, **alarm}
