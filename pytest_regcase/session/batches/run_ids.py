"""Which tasks a run is asked for: ids given by hand, those of a tasks file, or both.

All is checked before anything starts. Never prints, and knows no run's folder but the names that it takes.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pytest_regcase.capture import Task, Tasks, load_tasks
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.session.batches.run_folder import RESERVED
from pytest_regcase.toml_lines import shown

DEFAULT_FILES: Final = ("tasks.toml", "tasks.jsonl")
_SHOWN: Final = 20


def tasks_of(project: Project, given: Path | None) -> Tasks:
    """Return the tasks of the file `given`, by default of ``tasks.toml`` or ``tasks.jsonl`` in the project.

    Raises:
        UsageRefused: there is no such file, or it holds no task.
        FileError: it holds something that is not allowed.
    """
    path = given
    if path is None:
        path = next((project.root / name for name in DEFAULT_FILES if (project.root / name).is_file()), None)
    if path is None:
        raise UsageRefused(
            f"Couldn't find the tasks: {shown(project.root)} has no {' and no '.join(DEFAULT_FILES)}.\n"
            "Name a tasks file: --tasks FILE."
        )
    tasks = load_tasks(path)
    if not tasks.tasks:
        raise UsageRefused(f"Couldn't run the tasks in {shown(path)}: it holds none.\nAdd a [[task]] with an id.")
    return tasks


def requested(tasks: Tasks, ids: Sequence[str]) -> tuple[Task, ...]:
    """Return the tasks that are asked for, in the order of `ids`; all of the file, in its order, without `ids`.

    Raises:
        UsageRefused: ids are empty, given twice or unknown, each with its own sentence that names them all; or one
            is a name that a run's folder needs for itself.
    """
    problems: list[str] = []
    chosen = list(ids) if ids else list(tasks.tasks)
    empty = [number for number, each in enumerate(chosen, 1) if not each.strip()]
    if empty:
        problems.append(f"id {_listed([str(each) for each in empty])} of {len(chosen)} is empty")
    twice = [each for each, times in Counter(chosen).items() if times > 1 and each.strip()]
    if twice:
        problems.append(f"asked for more than once: {_listed(twice)}")
    unknown = [each for each in dict.fromkeys(chosen) if each.strip() and each not in tasks.tasks]
    if unknown:
        problems.append(f"unknown: {_listed(unknown)}")
    reserved = [each for each in dict.fromkeys(chosen) if each in RESERVED]
    if reserved:
        problems.append(f"a name that the run's folder needs for itself: {_listed(reserved)}")
    if problems:
        says = "\n".join(f"  {each}" for each in problems)
        raise UsageRefused(
            f"Couldn't start the run, and nothing was run:\n{says}\n"
            f"{shown(tasks.path)} has {_listed(list(tasks.tasks))}.",
            slug="task-ids",
        )
    return tuple(tasks.tasks[each] for each in chosen)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
