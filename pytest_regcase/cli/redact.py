"""`regcase redact`: removes a secret found in a case. Prints what kinds were removed and from where, never a
value."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import Words, wrapped
from pytest_regcase.records.plurals import how_many

if TYPE_CHECKING:
    from pytest_regcase.session.case_life.redact import RedactedCase

_HISTORY = (
    "The old bytes are still in the history of your version control, in its clones and in backups: revoke the"
    " secret where it was issued. Attempts kept in .regcase may hold it too."
)


# An argument may begin with hyphens, as a private key does; an error of click's would show it.
@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Example:
  regcase redact sweep-0412-trial-37
  regcase redact sweep-0412-trial-37 -    (the secret is read from stdin)
""",
)
@click.argument("name", metavar="CASE")
@click.argument("pattern", nargs=-1, metavar="[PATTERN]")
@click.option("--why", type=Words(), help="Why it is removed, for the amendment.")
@click.option(
    "--by", type=Words(), help="Who removes it. [default: your name and address in git, else the user name]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def redact(name: str, pattern: tuple[str, ...], why: str | None, by: str | None, as_json: bool) -> None:
    """Remove a secret from CASE (a case file, its folder, or an id) and from the files beside it.

    PATTERN is the secret itself, as text; "-" reads it from stdin, which keeps it out of your shell's history.
    Without PATTERN, what was recorded is searched again with the patterns of this version. All files are
    replaced or none; the observation is sealed anew, and an amendment says what was done. Version control still
    holds the old bytes: revoke the secret.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.errors import UsageRefused
    from pytest_regcase.session.case_life.redact import redact_case

    if len(pattern) > 1:
        raise UsageRefused(
            "Couldn't redact: more than one PATTERN is given.\nPut the text in quotes, or give it on stdin with -."
        )
    secret = pattern[0] if pattern else None
    if secret == "-":
        secret = sys.stdin.read()
    project = load_project(Path.cwd())
    done = redact_case(project, find_case(project.case_folders, name), secret, why=why, by=by)
    if as_json:
        click.echo(json.dumps(_document(done), indent=2))
    else:
        _print(done)


def _document(done: "RedactedCase") -> dict[str, object]:
    from pytest_regcase.toml_lines import shown

    document: dict[str, object] = {
        "schema": 1,
        "case_id": done.case_id,
        "file": shown(done.path),
        "looked_at": list(done.looked_at),
        "files": done.files,
        "redactions": done.redactions,
        "counts_anew": done.counts_anew,
        "finished": list(done.finished),
    }
    if done.amendment is not None:
        document |= {"amendment": done.amendment.to_sparse(), "digest": done.digest, "notice": _HISTORY}
    return document


def _print(done: "RedactedCase") -> None:
    from pytest_regcase.toml_lines import shown

    if done.finished:
        click.echo(wrapped(f"finished a redaction that was cut short: {', '.join(done.finished)}", first=""))
    if done.amendment is None:
        click.echo(f"nothing {'more ' if done.finished else ''}to remove: {shown(done.path)}")
        click.echo(wrapped(f"looked in {how_many(len(done.looked_at), 'file')} with the patterns of this version"))
        if done.finished:
            click.echo(wrapped(_HISTORY, first="", further=""))
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in done.redactions.items() if count)
    click.echo(f"redacted {shown(done.path)}")
    click.echo(wrapped(f"removed {kinds}"))
    for name, count in done.files.items():
        click.echo(wrapped(f"{count} in {name}"))
    click.echo(f"  sealed anew: {done.digest}")
    click.echo(wrapped(f"amendment by {done.amendment.who}: {done.amendment.why}"))
    if done.counts_anew:
        click.echo(wrapped("what the agent is given has changed: live attempts are counted anew from here"))
    click.echo(wrapped(_HISTORY, first="", further=""))
