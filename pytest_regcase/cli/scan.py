"""`regcase scan`: says which known failures came back in a sweep. Decides nothing but its exit code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.progress import progress
from pytest_regcase.cli.tables import markdown_table, plain_markdown, table
from pytest_regcase.cli.words import GivenPath, wrapped
from pytest_regcase.records.plurals import how_many

if TYPE_CHECKING:
    from pytest_regcase.session.sweeps.scan import NewSignature, Scan

_SHOWN = 5
_LIKE = {
    "other-step": "same task, another step",
    "other-task": "another task",
    "task-not-recorded": "task not recorded",
}


@click.command(
    epilog="""\b
Example:
  regcase scan sweeps/0412
  regcase scan logs/*.eval --markdown >> $GITHUB_STEP_SUMMARY
"""
)
@click.argument("logs", nargs=-1, required=True, type=GivenPath(path_type=Path))
@click.option("--importer", metavar="NAME", help="Which format it is, where two match.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
def scan(logs: tuple[Path, ...], importer: str | None, as_json: bool, markdown: bool) -> int:
    """Say which known failures came back in LOGS, which are new, and which trials are undetermined.

    LOGS are logs, folders of logs or zips of them, in any format that `regcase new` reads. A failure came back
    where a case's symptom matches a failed trial of the case's own task. An error of the same type on
    another task, or where no task is recorded, is named as a look-alike and is no recurrence. The trials that a
    case was made of are none either. Exit code 1: a case came back whose file has it closed. Nothing is written.
    """
    from pytest_regcase.config import load_project
    from pytest_regcase.session.sweeps.scan import scan as scan_logs

    if as_json and markdown:
        raise click.UsageError("--json and --markdown cannot stand together.")
    project = load_project(Path.cwd())
    with progress() as tell:
        found = scan_logs(project, logs, importer=importer, progress=tell)
    if as_json:
        click.echo(json.dumps(_document(found), indent=2))
    else:
        click.echo("\n".join(_markdown(found) if markdown else _lines(found)))
    return 1 if found.closed_recurred else 0


def _document(found: "Scan") -> dict[str, Any]:
    return {
        "schema": 1,
        "known": [
            {
                "case_id": each.case_id,
                "state": each.state,
                "trials": each.trials,
                "since_closed": each.since_closed,
            }
            for each in found.known.values()
        ],
        "new": [
            {
                "signature": each.signature,
                "trials": each.trials,
                "looks_like": dict(sorted(each.looks_like.items())),
            }
            for each in found.new.values()
        ],
        "undetermined": found.undetermined,
        "recorded": [{"case_id": name, "trials": trials} for name, trials in sorted(found.recorded.items())],
        "not_counted": [{"trial": name, "why": why} for name, why in found.not_counted.items()],
        "passed": found.passed,
        "unreadable": [each.refusal.text for each in found.unreadable],
        "warnings": found.warnings,
    }


def _known_rows(found: "Scan") -> list[tuple[str, str, str]]:
    return [
        (
            each.case_id,
            each.state + ("" if each.since_closed or each.state != "closed" else ", trials are older"),
            str(len(each.trials)),
        )
        for each in found.known.values()
    ]


def _lines(found: "Scan") -> Iterator[str]:
    from pytest_regcase.importers.reading import printable

    if found.known:
        yield "Came back:"
        yield from table(("case", "state", "trials"), _known_rows(found))
        for known in found.known.values():
            yield f"{known.case_id}:"
            yield from _named(known.trials)
    else:
        yield "No known failure came back."
    if found.new:
        yield "New failure signatures:"
        for new in found.new.values():
            yield wrapped(printable(f"{new.signature} ({len(new.trials)})"))
            yield from _named(new.trials, indent="    ")
            if new.looks_like:
                yield wrapped(f"looks like {_alike(new)}: no recurrence of it", first="    ", further="    ")
    if found.undetermined:
        count = how_many(len(found.undetermined), "trial")
        yield f"Undetermined: {count} ended, and nothing says passed or failed."
        yield from _named(found.undetermined)
    yield from (wrapped(line, first="") for line in _remarks(found))
    if found.new:
        yield "Next: `regcase new --from-trial LOGS --all` makes one case a new signature."


def _markdown(found: "Scan") -> Iterator[str]:
    from pytest_regcase.importers.reading import printable

    yield "### Known failures that came back"
    yield ""
    if found.known:
        yield from markdown_table(
            ("case", "state", "trials", "which"),
            [
                (*row, ", ".join(known.trials[:_SHOWN]) + ("" if len(known.trials) <= _SHOWN else ", ..."))
                for row, known in zip(_known_rows(found), found.known.values(), strict=True)
            ],
        )
    else:
        yield "None."
    if found.new:
        yield ""
        yield "### New failure signatures"
        yield ""
        yield from markdown_table(
            ("signature", "trials", "looks like"),
            [(printable(each.signature), str(len(each.trials)), _alike(each)) for each in found.new.values()],
        )
    yield ""
    yield f"Undetermined: {how_many(len(found.undetermined), 'trial')}."
    for line in _remarks(found):
        yield ""
        yield plain_markdown(line)


def _remarks(found: "Scan") -> Iterator[str]:
    for name, trials in sorted(found.recorded.items()):
        yield f"Already in {name}: {how_many(len(trials), 'trial')} that the case was made of or lists."
    yield f"Passed: {how_many(found.passed, 'trial')}."
    if found.not_counted:
        reasons = list(dict.fromkeys(found.not_counted.values()))
        yield f"Not counted: {how_many(len(found.not_counted), 'trial')} ({'; '.join(reasons[:3])})."
    for each in found.unreadable:
        yield f"Not read: {' '.join(each.refusal.text.split())}"
    yield from found.warnings


def _named(trials: list[str], indent: str = "  ") -> Iterator[str]:
    for each in trials[:_SHOWN]:
        yield f"{indent}{each}"
    if len(trials) > _SHOWN:
        yield f"{indent}and {len(trials) - _SHOWN} more (--json lists all)"


def _alike(new: "NewSignature") -> str:
    return ", ".join(f"{name} ({_LIKE[like]})" for name, like in sorted(new.looks_like.items()))
