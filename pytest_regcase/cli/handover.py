"""`regcase handover`: prints what someone who was not there needs to act on a case. Writes nothing."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.safe_text import redacted, redacted_document, visible
from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.cli.handover_text import Row, Section

_LABEL = len("simulation_ids")


@click.command(
    epilog="""\b
Example:
  regcase handover sweep-0412-trial-37
  regcase handover sweep-0412-trial-37 --markdown > handover.md
"""
)
@click.argument("name", metavar="CASE")
@click.option("--markdown", is_flag=True, help="As Markdown, for an issue or a message.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def handover(name: str, markdown: bool, as_json: bool) -> None:
    """Hand CASE (a case file, its folder, or an id) over to someone who was not there.

    First owner, source_event, cause_status, simulation_ids, rerun_rule and next_decision; then the evidence, or
    that there is none, what each simulation tests and what not, where the rerun rule stands, open questions, and
    the commands to run. Nothing is run and nothing is written.
    """
    from pytest_regcase.case_files import find_case, load_case
    from pytest_regcase.cli.handover_text import document, sections
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.handover import handover_of

    if markdown and as_json:
        raise click.UsageError("--markdown and --json are two forms of the same; choose one.")
    project = load_project(Path.cwd())
    loaded = load_case(find_case(project.case_folders, name))
    found = handover_of(project, loaded)
    if as_json:
        click.echo(json.dumps(redacted_document(document(found)), indent=2))
        return
    title, told = _safe(f"{loaded.id}: {loaded.case.title}", sections(found))
    click.echo("\n".join(_markdown(title, told) if markdown else _terminal(title, told)))


def _safe(title: str, given: "Sequence[Section]") -> "tuple[str, list[Section]]":
    """Return the same without secrets, and with nothing that a terminal would obey."""
    clean = iter([visible(each) for each in redacted([title, *(row.text for each in given for row in each.rows)])])
    head = next(clean)
    return head, [each._replace(rows=[row._replace(text=next(clean)) for row in each.rows]) for each in given]


def _terminal(title: str, given: "Sequence[Section]") -> Iterator[str]:
    yield wrapped(title, first="")
    for section in given:
        if section.heading:
            yield ""
            yield section.heading
        for row in section.rows:
            yield from _row(row, labels=not section.heading)


def _row(row: "Row", *, labels: bool) -> Iterator[str]:
    if labels:
        yield wrapped(row.text, first=f"  {row.label:<{_LABEL}}  ", further=" " * (_LABEL + 4))
    else:
        text = f"{row.label}: {row.text}" if row.label else row.text
        yield wrapped(text + (":" if row.command is not None else ""))
    if row.command is not None:
        yield f"    {row.command}"


def _markdown(title: str, given: "Sequence[Section]") -> Iterator[str]:
    yield f"# {_escaped(title)}"
    for section in given:
        yield ""
        if section.heading:
            yield f"## {_escaped(section.heading)}"
            yield ""
        for row in section.rows:
            label = f"**{_escaped(row.label)}**: " if row.label else ""
            code = f": `{row.command}`" if row.command is not None else ""
            yield f"- {label}{_escaped(row.text)}{code}"


def _escaped(text: str) -> str:
    """What a log or a person wrote cannot become a heading, a link, an image or HTML."""
    for each in "\\`*_[]<>#|~":
        text = text.replace(each, f"\\{each}")
    return text
