"""`regcase ledger`: looks into the ledger, carries it elsewhere, sets wrong rows aside. Decides nothing."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import Commands, Words, wrapped

if TYPE_CHECKING:
    from pytest_regcase.config import Project
    from pytest_regcase.ledger.store import Ledger
    from pytest_regcase.session.ledgers.exchange import BroughtIn

_MEGABYTE = 1_000_000


@click.group(
    cls=Commands,
    epilog="""\b
Example:
  regcase ledger stats
  regcase ledger export ledger.jsonl
  regcase ledger import ledger.jsonl
""",
)
def ledger() -> None:
    """Look into the ledger, carry it elsewhere, set wrong rows aside.

    The ledger is the one of [tool.regcase] ledger, or of REGCASE_LEDGER: a path, or postgresql://user@host/database.
    """


@ledger.command(
    epilog="""\b
Example:
  regcase ledger stats
"""
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def stats(as_json: bool) -> None:
    """Say what the ledger holds."""
    from pytest_regcase.ledger.stats import ledger_stats

    with _there() as found:
        numbers = ledger_stats(found)
    if as_json:
        document = {key: value for key, value in asdict(numbers).items() if value is not None}
        document["ledger_schema"] = document.pop("schema")
        click.echo(json.dumps({"schema": 1, **document}, indent=2))
        return
    size = "" if numbers.file_bytes is None else f", {numbers.file_bytes / _MEGABYTE:.1f} MB"
    click.echo(wrapped(f"{numbers.place} (schema {numbers.schema}{size})", first=""))
    click.echo(f"  id        {numbers.ledger_id}")
    invalid = f", {numbers.invalidated} of them invalidated" if numbers.invalidated else ""
    click.echo(f"  attempts  {numbers.attempts} of {_count(numbers.cases, 'case')}{invalid}")
    for kind, verdicts in numbers.verdicts.items():
        each = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        click.echo(wrapped(each, first=f"  {kind:<11} ", further=" " * 14))
    unfinished = f", {numbers.unfinished} without an end" if numbers.unfinished else ""
    click.echo(f"  sessions  {numbers.sessions}{unfinished}")
    click.echo(f"  decisions {numbers.decisions}")
    if numbers.active is not None:
        click.echo(f"  active    {numbers.active}")
    if numbers.oldest is not None and numbers.newest is not None:
        click.echo(f"  from      {numbers.oldest[:10]} to {numbers.newest[:10]}")
    for each in numbers.merged_from:
        click.echo(f"  holds     ledger {each}")


@ledger.command(
    epilog="""\b
Example:
  regcase ledger export ledger.jsonl
  regcase ledger export | gzip > ledger.jsonl.gz
"""
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
def export(file: Path | None) -> None:
    """Write the whole ledger as JSON Lines, to FILE or to stdout.

    `regcase ledger import` brings it in elsewhere. FILE is written whole or not at all.
    """
    from pytest_regcase.session.ledgers.exchange import export_to, write_export

    with _there() as found:
        if file is None:
            write_export(found, sys.stdout)
            return
        count = export_to(found, file)
    click.echo(f"wrote {file}: {_count(count, 'attempt')}")


@ledger.command(
    name="import",
    epilog="""\b
Example:
  regcase ledger import .regcase/sessions/*/not-in-the-ledger.jsonl
  regcase ledger import ledger.jsonl
""",
)
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def import_(files: tuple[Path, ...], as_json: bool) -> None:
    """Bring in exports, and attempts that a session could not store.

    FILE is an export of a ledger, or the not-in-the-ledger.jsonl that a session left where its ledger failed. Each
    is brought in whole or not at all; bringing it in again changes nothing.
    """
    from pytest_regcase.session.ledgers.exchange import import_file

    with _opened() as (_, found):
        _tell([(lambda each=each: import_file(found, each)) for each in files], as_json)  # type: ignore[misc]


@ledger.command(
    epilog="""\b
Example:
  regcase ledger merge shard-1/ledger.sqlite3 shard-2/ledger.sqlite3
"""
)
@click.argument("ledgers", nargs=-1, required=True, metavar="LEDGER...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def merge(ledgers: tuple[str, ...], as_json: bool) -> None:
    """Bring in all that other ledgers hold; they stay as they are.

    LEDGER is a file, or a URL. The order does not matter, and merging again changes nothing.
    """
    from pytest_regcase.session.ledgers.exchange import merge_ledger

    with _opened() as (_, found):
        _tell([(lambda each=each: merge_ledger(found, each)) for each in ledgers], as_json)  # type: ignore[misc]


@ledger.command(
    epilog="""\b
Example:
  regcase ledger invalidate --session 20260520t090000-1a2b3c4d \\
    --why "the runner had the wrong model configured"
"""
)
@click.option("--attempt", "attempt_id", type=Words(), help="The id of one attempt.")
@click.option("--session", "session_id", type=Words(), help="The id of a session: all its attempts.")
@click.option("--why", type=Words(), required=True, help="The reason; it stays in the ledger.")
def invalidate(attempt_id: str | None, session_id: str | None, why: str) -> None:
    """Set wrong rows aside: they stay, and count no more.

    The reason stays with them. There is no way back, and no row is ever removed.
    """
    from pytest_regcase.errors import UnknownName
    from pytest_regcase.ledger.merge import invalidate as set_aside

    if (attempt_id is None) == (session_id is None):
        raise click.UsageError("Give one of --attempt and --session.")
    with _there() as found:
        count = set_aside(found, why=why, at=datetime.now(UTC), attempt_id=attempt_id, session_id=session_id)
    what = f"attempt {attempt_id}" if attempt_id is not None else f"session {session_id}"
    if not count:
        raise UnknownName(
            f"Couldn't invalidate {what}: the ledger has no valid row of it.\n"
            "Ids stand in the JSON report and in: regcase ledger export"
        )
    click.echo(f"invalidated {_count(count, 'attempt')} of {what}")


@ledger.command(
    epilog="""\b
Example:
  regcase ledger prune --dry-run
  regcase ledger prune --days 14
"""
)
@click.option(
    "--days", type=click.IntRange(min=0), help="Older than this. [default: keep_attempts_days, which is 30]"
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def prune(days: int | None, dry_run: bool) -> None:
    """Remove folders that old sessions left on the disk.

    They lie below .regcase/sessions and hold logs, conversations and work trees. No row of the ledger is removed:
    what was counted stays counted.
    """
    from pytest_regcase.session.ledgers.prune import prune as remove

    with _opened() as (project, found):
        limit = project.config.keep_attempts_days if days is None else days
        done = remove(project, found, days=limit, now=datetime.now(UTC), only_look=dry_run)
    verb = "would remove" if dry_run else "removed"
    click.echo(
        f"{verb} the folders of {_count(len(done.folders), 'session')} older than {_count(limit, 'day')}:"
        f" {done.bytes_freed / _MEGABYTE:.1f} MB"
    )
    for spool in done.kept_spools:
        click.echo(wrapped(f"kept {spool}: attempts that no ledger took. Bring them in, then delete the file:"))
        click.echo(f"    regcase ledger import {spool}")
    for each in done.failed:
        click.echo(wrapped(f"not removed: {each}"), err=True)
    if done.failed:
        raise SystemExit(4)


class _Opened:
    """The project and its ledger, closed at the end."""

    def __enter__(self) -> "tuple[Project, Ledger]":
        from pytest_regcase.config import load_project
        from pytest_regcase.session.gate import ledger_for

        project = load_project(Path.cwd())
        self._ledger = ledger_for(project)
        return project, self._ledger

    def __exit__(self, *_: object) -> None:
        self._ledger.close()


def _opened() -> _Opened:
    return _Opened()


def _there() -> "Ledger":
    """The project's ledger, which must be there: a look makes none."""
    from pytest_regcase.config import load_project
    from pytest_regcase.errors import UnknownName
    from pytest_regcase.ledger.store import Ledger

    found = Ledger.open_if_there(load_project(Path.cwd()).ledger_url())
    if found is None:
        raise UnknownName(
            "Couldn't open the ledger: there is none here yet.\nThe first `pytest --regcase` makes it;"
            " REGCASE_LEDGER names another one."
        )
    return found


def _tell(steps: "Sequence[Callable[[], BroughtIn]]", as_json: bool) -> None:
    """Do one after the other, and say what came in: what stands before a refused one is in the ledger."""
    done: list[dict[str, object]] = []
    for step in steps:
        name, kind, brought, notices = step()
        done.append({"name": name, "kind": kind, **asdict(brought), "notices": list(notices)})
        if as_json:
            continue
        more = f", {brought.invalidated} invalidated" if brought.invalidated else ""
        more += f", {brought.others} other new rows" if brought.others else ""
        click.echo(
            wrapped(
                f"{name} ({kind}): {brought.attempts} new, {brought.known} known{more}", first="", further="  "
            )
        )
        for notice in notices:
            click.echo(wrapped(f"note: {notice}"))
    if as_json:
        click.echo(json.dumps({"schema": 1, "brought": done}, indent=2))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
