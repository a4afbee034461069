"""`regcase compare`: prints which lines of logs bear on which hypothesis. Decides and writes nothing."""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.log_lines import log_document, log_lines
from pytest_regcase.cli.words import COLUMNS, wrapped

if TYPE_CHECKING:
    from pytest_regcase.evidence.compare import Compared, Hit
    from pytest_regcase.session.case_life.compare import Comparison

_SHOWN = 8
"""Places of one side of one hypothesis."""
DEFAULT_SKEW = 120


@click.command(
    epilog="""\b
Example:
  regcase compare sweep-0412-trial-37 --log kern.log --log vllm.log.gz
"""
)
@click.argument("name", metavar="CASE")
@click.option(
    "--log",
    "logs",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A log of the server, the kernel, a proxy, or a table of processes. Repeatable.",
)
@click.argument("more", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option(
    "--skew",
    type=click.FloatRange(0, 7 * 86400),
    default=DEFAULT_SKEW,
    show_default=True,
    metavar="SECONDS",
    help="How far the clocks may be apart.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def compare(name: str, logs: tuple[Path, ...], more: tuple[Path, ...], skew: float, as_json: bool) -> None:
    """Show which lines of lower-level logs bear on which hypothesis of CASE (a case file, its folder, or an id).

    Plain text, JSON lines, journal exports, each also in gzip; only lines of the observation's time count. What is
    shown are candidates, found by their wording. Nothing is written and nothing is settled: `regcase evidence`
    cites what you have checked.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.compare import compare_case

    if not logs:
        files = " ".join(map(str, more)) or "FILE"
        raise click.UsageError(f"No log was given. Give it with --log: regcase compare {name} --log {files}")
    project = load_project(Path.cwd())
    found = compare_case(project, find_case(project.case_folders, name), (*logs, *more), timedelta(seconds=skew))
    if as_json:
        click.echo(json.dumps(_document(found), indent=2))
    else:
        click.echo("\n".join(_lines(found, name)))


def _document(found: "Comparison") -> dict[str, Any]:
    from pytest_regcase.evidence.window import shown_time

    window = found.window
    return {
        "schema": 1,
        "case_id": found.case_id,
        "skew_seconds": found.skew_seconds,
        **({"window": {"start": shown_time(window.start), "end": shown_time(window.end)}} if window else {}),
        "logs": [log_document(each) for each in found.logs],
        "hypotheses": [
            {
                "id": each.hypothesis,
                "says": _says(each),
                "supports": [_hit(hit, found) for hit in each.supports],
                "refutes": [_hit(hit, found) for hit in each.refutes],
                "unplaced": [{"stance": stance, **_hit(hit, found)} for stance, hit in each.unplaced],
            }
            for each in found.hypotheses
        ],
        "notices": list(found.notices),
    }


def _hit(hit: "Hit", found: "Comparison") -> dict[str, Any]:
    from pytest_regcase.evidence.window import shown_time
    from pytest_regcase.session.case_life.compare import redacted

    document: dict[str, Any] = {
        "place": _place(hit, found),
        "sign": hit.sign.id,
        "says": hit.sign.says,
        "text": redacted([hit.text])[0],
    }
    if hit.sign.check is not None:
        document["check"] = hit.sign.check
    if hit.at is not None:
        document["at"] = shown_time(hit.at)
    return document


def _says(each: "Compared") -> str:
    if each.supports and each.refutes:
        return "both"
    return "supports" if each.supports else "refutes" if each.refutes else "silent"


def _lines(found: "Comparison", name: str) -> Iterator[str]:
    yield f"{found.case_id}: compared with {len(found.logs)} log{'' if len(found.logs) == 1 else 's'}"
    if found.window is not None:
        yield wrapped(f"counted: {found.window.says}; times without an offset are read as UTC")
    else:
        yield wrapped(
            "counted: nothing, since the observation records no time; what would bear on it is listed as not"
            " placed in time. Where a person knows the time:"
        )
        yield f"    regcase amend {name} --field observation.observed_at=TIME --why TEXT"
    for read in found.logs:
        yield from log_lines(read)
    for notice in found.notices:
        yield wrapped(f"note: {notice}")
    if not found.hypotheses:
        yield "The case has no hypotheses, so there is nothing to compare with."
        return
    for each in found.hypotheses:
        yield from _about(each, found)
    yield wrapped(
        "These are candidates, found by their wording. Silence refutes nothing. The cause status is what it was.",
        first="",
        further="",
    )
    sides = [(each, "supports", hit) for each in found.hypotheses for hit in each.supports]
    sides += [(each, "refutes", hit) for each in found.hypotheses for hit in each.refutes]
    if sides:
        first, stance, hit = sides[0]
        yield "To cite lines that you have checked:"
        yield f"  regcase evidence {name} --hypothesis {first.hypothesis} \\"
        yield f"    --{stance} {_place(hit, found)} --why TEXT"


def _about(each: "Compared", found: "Comparison") -> Iterator[str]:
    yield f"{each.hypothesis}: {_says(each)}"
    if each.silent:
        yield wrapped(
            "no line in the observation's time bears on it"
            if each.known
            else "we know no wording that would bear on it: read the logs yourself"
        )
    yield from _side("supports", each.supports, found)
    yield from _side("refutes", each.refutes, found)
    yield from _side("not placed in time", [hit for _, hit in each.unplaced], found)


def _side(label: str, hits: "Sequence[Hit]", found: "Comparison") -> Iterator[str]:
    from pytest_regcase.session.case_life.compare import redacted

    if not hits:
        return
    yield f"  {label}"
    for hit, text in zip(hits[:_SHOWN], redacted([each.text for each in hits[:_SHOWN]]), strict=True):
        yield f"    {_place(hit, found)}"
        yield f"      {_cut(text.strip(), COLUMNS - 6)}"
        check = f"; check {hit.sign.check}" if hit.sign.check is not None else ""
        yield wrapped(f"{hit.sign.says}{check}", first="      ", further="      ")
    if len(hits) > _SHOWN:
        yield f"    and {len(hits) - _SHOWN} more; --json lists all"


def _place(hit: "Hit", found: "Comparison") -> str:
    from pytest_regcase.evidence.citing import lines_text
    from pytest_regcase.importers.reading import printable
    from pytest_regcase.toml_lines import shown

    return printable(f"{shown(found.logs[hit.log].log.path)}:{lines_text(hit.first, hit.last)}")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
