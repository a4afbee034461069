"""`regcase fingerprints`: prints what has to be logged to tell each hypothesis class apart. Decides nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.log_lines import log_document, log_lines
from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.evidence.signs import Sign
    from pytest_regcase.session.case_life.compare import ClassNeeds, Fingerprints

_LOGS = {
    "kernel": "the kernel's log, with wall-clock times (journalctl -k)",
    "service": "the service or container manager's log (journalctl -u, docker events)",
    "server": "the model server's own log, or a proxy's, a time on each line",
    "access": "an access log: time, path, status, size",
    "processes": "the state of processes and containers, dated (docker inspect, ps)",
}


@click.command(
    epilog="""\b
Example:
  regcase fingerprints
  regcase fingerprints --log kern.log --log vllm.log.gz
"""
)
@click.option(
    "--log",
    "logs",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Say what of it is in this log, at any time. Repeatable.",
)
@click.argument("more", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def fingerprints(logs: tuple[Path, ...], more: tuple[Path, ...], as_json: bool) -> None:
    """Say, per hypothesis class, what has to be logged to tell it apart from the others.

    The sentences are those of the simulations; the signs are wordings that `regcase compare` looks for. With
    --log, each sign is said to be there or not: what is in no log of yours cannot be told apart, whatever happens.
    """
    from pytest_regcase.config import load_project
    from pytest_regcase.errors import UsageRefused
    from pytest_regcase.session.case_life.compare import fingerprints as fingerprints_of

    if more and not logs:
        raise UsageRefused(f"Couldn't tell what {more[0]} is for.\nName logs with --log FILE.")
    found = fingerprints_of(load_project(Path.cwd()), (*logs, *more))
    if as_json:
        click.echo(json.dumps(_document(found), indent=2))
    else:
        click.echo("\n".join(_lines(found)))


def _document(found: "Fingerprints") -> dict[str, Any]:
    return {
        "schema": 1,
        "logs": [log_document(each) for each in found.logs],
        "classes": [
            {
                "id": each.hypothesis,
                "signs": [_sign(sign, found) for sign in each.signs],
                "supports": _sentences(each, "supports"),
                "refutes": _sentences(each, "refutes"),
            }
            for each in found.classes
        ],
    }


def _sign(sign: "Sign", found: "Fingerprints") -> dict[str, Any]:
    document: dict[str, Any] = {"id": sign.id, "logs": sorted(sign.logs), "says": sign.says}
    if found.logs:
        document["found"] = [_place(read.log.path, lines) for read, lines in found.found(sign)]
    return document


def _lines(found: "Fingerprints") -> Iterator[str]:
    for read in found.logs:
        yield from log_lines(read, window=False)
    for each in found.classes:
        yield each.hypothesis
        if not each.signs:
            yield wrapped("no wording that a machine can find: only a reader can tell it")
        for kind, what in _LOGS.items():
            mine = [sign for sign in each.signs if kind in sign.logs]
            if mine:
                yield wrapped(f"{what}:")
                yield from (line for sign in mine for line in _about(sign, found))
        for label, sentences in (
            ("would support it:", _sentences(each, "supports")),
            ("would refute it:", _sentences(each, "refutes")),
        ):
            if sentences:
                yield f"  {label}"
                yield from (wrapped(sentence, first="    - ", further="      ") for sentence in sentences)
    if found.logs:
        yield wrapped(
            "That a sign is there says nothing of any trial: `regcase compare` keeps to its time.", first=""
        )


def _about(sign: "Sign", found: "Fingerprints") -> Iterator[str]:
    if not found.logs:
        yield wrapped(sign.says, first="    - ", further="      ")
        return
    places = found.found(sign)
    yield wrapped(sign.says, first="    + " if places else "    - not there: ", further="      ")
    yield from (f"      {_place(read.log.path, lines)}" for read, lines in places)


def _sentences(each: "ClassNeeds", side: str) -> list[str]:
    """Return what the simulations of the class say, each sentence once."""
    return list(dict.fromkeys(sentence for one in each.simulations for sentence in getattr(one.fingerprint, side)))


def _place(path: Path, lines: str) -> str:
    from pytest_regcase.importers.reading import printable
    from pytest_regcase.toml_lines import shown

    return printable(f"{shown(path)}:{lines}")
