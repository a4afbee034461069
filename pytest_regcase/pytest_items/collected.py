"""The lists of what every process collected, and what was planned but stands in none of them.

A check that is not run was left out by ``-k`` or ``-x``, or pytest never made an item of it: ``--ignore``, a
setting of norecursedirs, a plugin of the project. The lists, made before anything is deselected, tell which.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_regcase.pytest_items.gate_run import GateRun

SHOWN = 5
"""So many node ids are named; the reasons of the decision hold every case."""


def leave_list(session_folder: Path, process: str, node_ids: Sequence[str]) -> None:
    """Leave the list of one process (a worker's name, or main), the whole of it or none."""
    folder = session_folder / "collected"
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{process}.json"
    unfinished.write_text(json.dumps(node_ids, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, folder / f"{process}.json")


def never_collected_lines(gate: GateRun, root: Path) -> list[str]:
    """Return lines that name the planned checks of which no process made an item.

    None where no process came to the end of its collection. Node ids are relative to `root`, pytest's root
    directory.
    """
    lists = list(_lists(gate.session_folder))
    if not lists:
        return []
    found = (gate.planned(each, root) for node_ids in lists for each in node_ids)
    seen = {planned[1].key for planned in found if planned is not None}
    never = [
        f"{Path(os.path.relpath(entry.path, root)).as_posix()}::{plan.key.scenario}::{plan.key.item_name}"
        for entry in gate.entries
        for plan in entry.plans
        if plan.key not in seen
    ]
    if not never:
        return []
    named = [f"  {each}" for each in never[:SHOWN]]
    if len(never) > SHOWN:
        named.append(f"  and {len(never) - SHOWN} more")
    return ["Planned, never collected (pytest made no item of them):", *named]


def _lists(session_folder: Path) -> Iterator[list[str]]:
    for path in sorted((session_folder / "collected").glob("*.json")):
        if not path.name.startswith("."):
            yield json.loads(path.read_text(encoding="utf-8"))
