"""`regcase check --sensitivity`: prints which bad agents a case's expectations would let pass. Decides nothing."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.progress import progress
from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.reviews.sensitivity import Sensitivity, Tried

LET_PASS = 1
UNPROVEN = 3
_WORDS = {
    "caught": "caught",
    "let-pass": "LET PASS",
    "not-asked": "not asked",
    "not-provoked": "not provoked",
    "not-shown": "NOT SHOWN",
}


def show_sensitivity(name: str, *, as_json: bool) -> int:
    """Run the bad agents for the case of that name, print what came of it, and return the exit code.

    0: each is noticed, or does nothing bad under these simulations; 1: at least one would pass; 3: nothing is
    known of at least one.
    """
    from pytest_regcase.case_files import find_case, load_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.reviews.sensitivity import sensitivity_of

    project = load_project(Path.cwd())
    loaded = load_case(find_case(project.case_folders, name))
    if not as_json:
        click.echo(f"Running the shipped bad agents for {loaded.id}; this takes a minute or more ...", err=True)
    with progress("running") as tell:
        found = sensitivity_of(project, loaded, tell=tell)
    click.echo(json.dumps(_document(found), indent=2) if as_json else "\n".join(_lines(found)))
    if found.let_pass:
        return LET_PASS
    return UNPROVEN if found.not_shown else 0


def _document(found: "Sensitivity") -> dict[str, Any]:
    return {"schema": 1, **asdict(found)}


def _lines(found: "Sensitivity") -> Iterator[str]:
    clock = (
        "" if found.time_scale == 1 else f", in {found.watched_seconds / found.time_scale:.0f} s by its fast clock"
    )
    yield wrapped(
        f"{found.case_id}: {len(found.tried)} bad agents under {', '.join(found.simulations)}: {found.attempts}"
        f" attempts at a small built-in task, each with {found.watched_seconds:g} s after the fault{clock}. The"
        " case's expectations and simulations count here, its own replies and agent do not.",
        first="",
        further="  ",
    )
    for name, why in found.left_out.items():
        yield wrapped(f"left out: {name} ({why})")
    width = max(len(each.behaviour) for each in found.tried)
    for each in found.tried:
        head = f"  {each.behaviour:<{width}}  {_WORDS[each.status]}"
        yield wrapped(f"{head}{_because(each)}", first="", further=" " * (width + 6))
        if each.status in ("let-pass", "not-shown"):
            yield wrapped(each.does, first=" " * (width + 6), further=" " * (width + 6))
    yield from _verdict(found)


def _because(each: "Tried") -> str:
    if each.status == "caught":
        return f" by {', '.join(each.caught_by)}"
    if each.status == "not-provoked":
        return ": these simulations give it no occasion"
    if each.status == "not-shown":
        return f": {each.troubles[0]}"
    whys = {gap.why: None for gap in each.gaps}
    return f": {'; '.join(whys)}"


def _verdict(found: "Sensitivity") -> Iterator[str]:
    if found.let_pass:
        names = ", ".join(each.behaviour for each in found.let_pass)
        yield wrapped(
            f"This case would call bad agents recovered: {names}."
            " Switch the expectation on, or lower the budget, in [expected_recovery].",
            first="",
            further="",
        )
    elif not found.not_shown:
        yield "This case can fail: no bad agent that showed itself would pass."
    if found.not_shown:
        names = ", ".join(each.behaviour for each in found.not_shown)
        yield wrapped(f"Nothing is known of {names}: run again on a quieter machine.", first="", further="")
