"""What the commands print that append a record to a case's life. Knows no command."""

import json
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.case_life.life import Appended


def say_appended(done: "Appended", what: str, then: tuple[str, str], *, as_json: bool) -> None:
    """Print what was appended, the state that the file gives now, and what comes next with its command."""
    from pytest_regcase.toml_lines import shown

    if as_json:
        document = {
            "schema": 1,
            "case_id": done.case_id,
            "file": shown(done.path),
            "state": done.state,
            "at": done.at.isoformat(),
            "by": done.by,
        }
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(wrapped(f"wrote {shown(done.path)}: {what} by {done.by}; it is {done.state} now", first=""))
    text, command = then
    click.echo(text)
    click.echo(f"  {command}")
