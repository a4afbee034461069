"""`regcase simulations`: prints the catalogue. Decides nothing."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from pytest_regcase.cli.words import OneOf, wrapped
from pytest_regcase.records.words import HypothesisClass

if TYPE_CHECKING:
    from pytest_regcase.records.simulation import FaultSettings
    from pytest_regcase.session.reviews.catalogue import CatalogueEntry

CLASSES: tuple[str, ...] = get_args(HypothesisClass)


@click.command(
    epilog="""\b
Example:
  regcase simulations
  regcase simulations --class deadline
  regcase simulations --json

\b
Classes:
  deadline, resource-exhaustion, auth, budget, rate-limit, overload, network,
  malformed, process-death, context, hidden
"""
)
@click.option(
    "--class",
    "hypothesis",
    type=OneOf(CLASSES),
    metavar="CLASS",
    help="Only those of one hypothesis class.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def simulations(hypothesis: HypothesisClass | None, as_json: bool) -> None:
    """List the simulations: the built-in ones and the project's own.

    Each injects ONE hypothesised cause into the agent's model supplier. It says nothing about any trial.
    """
    from pytest_regcase import registry
    from pytest_regcase.config import load_project
    from pytest_regcase.session.reviews.catalogue import catalogue

    entries = catalogue(load_project(Path.cwd()), hypothesis)
    if as_json:
        click.echo(json.dumps([_document(each) for each in entries], indent=2))
    else:
        click.echo("\n".join(_lines(entries, tuple(registry.names("wires")))))


def _document(entry: "CatalogueEntry") -> dict[str, Any]:
    simulation = entry.simulation
    return {
        "id": simulation.id,
        "hypothesis": simulation.hypothesis,
        "title": simulation.title,
        "fault": simulation.fault.model_dump(mode="json", include={"kind", "at", "lasts"}),
        "wires": list(entry.wires),
        "sources": list(simulation.sources),
    }


def _lines(entries: "Sequence[CatalogueEntry]", known: Sequence[str]) -> Iterator[str]:
    for each in CLASSES:
        group = [entry for entry in entries if entry.simulation.hypothesis == each]
        if group:
            yield f"{each} ({len(group)})"
            for entry in group:
                yield f"  {entry.simulation.id}"
                yield wrapped(f"{entry.simulation.title}{_brackets(_notes(entry, known))}", first="    ")
    yield f"{len(entries)} simulations; each tests one hypothesis and says nothing about any trial."


def _brackets(notes: Iterable[str]) -> str:
    text = "; ".join(notes)
    return f" [{text}]" if text else ""


def _notes(entry: "CatalogueEntry", known: Sequence[str]) -> Iterator[str]:
    """Say what is not the usual: some wires or streams only, another place, a fault that heals."""
    if not entry.wires:
        yield "on no installed wire"
    elif len(entry.wires) < len(known):
        yield f"only {', '.join(entry.wires)}"
    if entry.wires and not entry.whole:
        yield "only in streams"
    if entry.wires and not entry.streaming:
        yield "only outside of streams"
    fault: FaultSettings = entry.simulation.fault
    if isinstance(fault.at, dict):
        yield f"from request {fault.at['request']} on"
    elif isinstance(fault.at, int):
        yield f"from step {fault.at} on"
    if fault.lasts != "for-ever":
        yield f"heals after {fault.lasts} request{'' if fault.lasts == 1 else 's'}"
