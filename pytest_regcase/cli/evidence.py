"""`regcase evidence`: cites lower-level evidence in a case, or withdraws it. Prints what was written."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import Words, wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.case_life.evidence import Written

GENUINE = "Whether the cited file is genuine, and of that trial, is the reviewer's call: nothing here can tell."
_PLACE = "FILE:LINES"


@click.command(
    epilog="""\b
Example:
  regcase evidence sweep-0412-trial-37 --hypothesis resource-exhaustion \\
    --supports kern.log:120-123 --why "pid 4242 was the model server"
  regcase evidence sweep-0412-trial-37 --withdraw ev-1 --why "another host"
"""
)
@click.argument("name", metavar="CASE")
@click.option(
    "--hypothesis", type=Words(), metavar="ID", help="The hypothesis of the case that the lines bear on."
)
@click.option("--supports", type=Words(), metavar=_PLACE, help="Lines that support it, as in kern.log:120-123.")
@click.option("--refutes", type=Words(), metavar=_PLACE, help="Lines that refute it.")
@click.option("--withdraw", "withdrawn", type=Words(), metavar="EVIDENCE", help="Withdraw this citation instead.")
@click.option("--why", type=Words(), required=True, help="What the lines show, or why the citation is withdrawn.")
@click.option(
    "--why-outside", type=Words(), help="Why lines count that are not of the observation's time, or have none."
)
@click.option(
    "--who",
    "--by",
    "who",
    type=Words(),
    help="Who cites or withdraws. [default: your name and address in git, else the user name]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def evidence(
    name: str,
    hypothesis: str | None,
    supports: str | None,
    refutes: str | None,
    withdrawn: str | None,
    why: str,
    why_outside: str | None,
    who: str | None,
    as_json: bool,
) -> None:
    """Cite lines of a lower-level log in CASE (a case file, its folder, or an id), or withdraw a citation.

    The lines are copied into the case file, without secrets, with the file's digest; the cause status is computed
    anew. What a simulation or an attempt of ours produced is refused. Evidence is withdrawn, never deleted.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.evidence import cite, withdraw

    place = _checked(hypothesis, supports, refutes, withdrawn, why_outside)
    project = load_project(Path.cwd())
    path = find_case(project.case_folders, name)
    if withdrawn is not None:
        written = withdraw(project, path, withdrawn, why=why, who=who)
    else:
        written = cite(
            project,
            path,
            hypothesis=hypothesis or "",
            stance="supports" if supports is not None else "refutes",
            place=place,
            why=why,
            why_outside=why_outside,
            who=who,
        )
    if as_json:
        click.echo(json.dumps(_document(written), indent=2))
    else:
        click.echo("\n".join(_lines(written)))


def _checked(
    hypothesis: str | None,
    supports: str | None,
    refutes: str | None,
    withdrawn: str | None,
    why_outside: str | None,
) -> str:
    """Return the place that is to be cited; the empty text where one is withdrawn."""
    given = [each for each in (supports, refutes) if each is not None]
    if withdrawn is not None:
        if given or hypothesis is not None or why_outside is not None:
            raise click.UsageError("--withdraw takes --why and --who alone: a citation is withdrawn as it is.")
        return ""
    if len(given) != 1 or hypothesis is None:
        raise click.UsageError("Give --hypothesis ID and one of --supports and --refutes, or --withdraw EVIDENCE.")
    return given[0]


def _document(written: "Written") -> dict[str, object]:
    from pytest_regcase.toml_lines import shown

    return {
        "schema": 1,
        "case_id": written.case_id,
        "file": shown(written.path),
        "evidence": written.evidence.to_sparse(),
        "cause_status": {"before": written.before, "after": written.after},
        "redactions": written.redactions,
        "notices": [*written.notices, GENUINE],
    }


def _lines(written: "Written") -> Iterator[str]:
    from pytest_regcase.toml_lines import shown

    found = written.evidence
    yield f"wrote {shown(written.path)}"
    if found.withdrawn is not None:
        yield wrapped(f"{found.id} withdrawn by {found.withdrawn.who}: {found.withdrawn.why}")
    else:
        yield wrapped(f"{found.id}: {found.file}:{found.lines} {found.stance} {found.hypothesis}, by {found.who}")
        yield from (f"    {_cut(line)}" for line in found.quote.splitlines())
        removed = ", ".join(f"{count} {kind}" for kind, count in written.redactions.items() if count)
        if removed:
            yield wrapped(f"removed before it was written: {removed}")
    if found.why_outside is not None and found.withdrawn is None:
        yield wrapped(f"not of the observation's time, and counted because: {found.why_outside}")
    yield from (wrapped(f"note: {notice}") for notice in written.notices)
    was = f", was {written.before}" if written.before != written.after else ", as before"
    yield f"cause status: {written.after}{was}"
    if found.withdrawn is None:
        yield wrapped(GENUINE, first="", further="")


def _cut(line: str) -> str:
    return line if len(line) <= 76 else f"{line[:73]}..."
