"""The tasks of a run: a TOML file with `[[task]]` tables, or JSON lines with a task each.

Knows both forms, and where in the file an error is. Runs nothing; opens `text_file` only when it is asked for.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationError

from pytest_regcase.capture.task_steps import TaskStep, step_problems
from pytest_regcase.capture.trial_config import why_no_task_id
from pytest_regcase.errors import FileError, UnknownName, UsageRefused, did_you_mean
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.toml_lines import Key, at_line, complaint, read_bounded, read_toml, validate

TASKS_LIMIT_BYTES: Final = 64 * 1024 * 1024
TEXT_LIMIT_BYTES: Final = 4 * 1024 * 1024


def _is_a_task_id(value: str) -> str:
    why_not = why_no_task_id(value)
    if why_not is not None:
        raise ValueError(f"{json.dumps(value)} is no task id: {why_not}")
    return value


class Task(Record):
    """One task: what the agent is asked, and on what."""

    id: Annotated[str, AfterValidator(_is_a_task_id)]
    text: str | None = None
    text_file: str | None = None
    """In the place of `text`; relative to the tasks file."""
    repo: str | None = None
    """A local git repository, relative to the tasks file: the agent gets a work tree of it."""
    base_commit: str | None = None
    agent: str | None = None
    """A name in ``[tool.regcase.agents]``."""
    steps: Many[TaskStep] = Field(default=(), alias="step")
    folder: Path = Field(default=Path(), exclude=True, strict=False)
    """What relative names are relative to; no part of the document."""

    def read_text(self) -> str | None:
        """Return what the agent is asked, None where the task does not say.

        Raises:
            FileError: `text_file` cannot be read, or is no UTF-8.
        """
        if self.text_file is None:
            return self.text
        path = self.folder / self.text_file
        try:
            return read_bounded(path, TEXT_LIMIT_BYTES).decode("utf-8")
        except UnicodeDecodeError as error:
            raise FileError([at_line(path, None, "is not UTF-8")]) from error

    @property
    def repository(self) -> Path | None:
        """Where the repository is."""
        return None if self.repo is None else self.folder / self.repo

    def to_document(self) -> dict[str, Any]:
        """Return the keys that a file needs: those that are not as they would be without it."""
        found = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if self.steps:
            found["step"] = [each.to_document() for each in self.steps]
        return found


def serialise_task(task: Task) -> bytes:
    """Return the task as canonical JSON: a line of a tasks file."""
    return canonical_json(task.to_document())


class _TasksFile(Record):
    task: Many[Task] = ()


@dataclass(frozen=True)
class Tasks:
    """What a tasks file holds, in its order."""

    path: Path
    tasks: dict[str, Task]

    def task(self, task_id: str) -> Task:
        """Return one task.

        Raises:
            UnknownName: there is none of this id.
        """
        if task_id not in self.tasks:
            raise UnknownName(
                f"Couldn't find the task {task_id!r}: {self.path} has none of this id.\n"
                f"{did_you_mean(task_id, self.tasks)}It has {', '.join(self.tasks) or 'no task at all'}."
            )
        return self.tasks[task_id]


def load_tasks(path: Path) -> Tasks:
    """Read a tasks file: ``.toml``, or ``.jsonl`` with one task a line.

    Raises:
        FileError: one line a problem, with file and line: what was found, and what is allowed.
        UsageRefused: another suffix.
    """
    if path.suffix == ".toml":
        problems, tasks = _from_toml(path)
    elif path.suffix == ".jsonl":
        problems, tasks = _from_json_lines(path)
    else:
        raise UsageRefused(
            f"Couldn't read the tasks in {path}: its name ends in {path.suffix or 'nothing'}.\n"
            "Name a .toml file with [[task]] tables, or a .jsonl file with a task each line."
        )
    if problems:
        raise FileError(problems)
    return Tasks(path, {task.id: task.model_copy(update={"folder": path.absolute().parent}) for task in tasks})


def _from_toml(path: Path) -> tuple[list[str], list[Task]]:
    toml = read_toml(path, limit_bytes=TASKS_LIMIT_BYTES)
    tasks = list(validate(_TasksFile, toml, required=[("task",)]).task)
    found: list[tuple[Key, str]] = []
    seen: set[str] = set()
    for index, task in enumerate(tasks):
        if task.id in seen:
            found.append((("task", index, "id"), _twice(task)))
        seen.add(task.id)
        found.extend((("task", index, *key), says) for key, says in _problems(task))
    places = toml.places()
    return [at_line(path, places.line(key), says) for key, says in found], tasks


def _from_json_lines(path: Path) -> tuple[list[str], list[Task]]:
    problems: list[str] = []
    tasks: list[Task] = []
    seen: set[str] = set()
    for number, line in enumerate(read_bounded(path, TASKS_LIMIT_BYTES).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            task = Task.model_validate_json(json.dumps(json.loads(line)), by_alias=True, by_name=False)
        except ValidationError as error:
            problems.append(at_line(path, number, complaint(Task, error)))
        except (ValueError, RecursionError) as error:
            problems.append(at_line(path, number, f"is not JSON: {error}"))
        else:
            if task.id in seen:
                problems.append(at_line(path, number, _twice(task)))
            seen.add(task.id)
            problems.extend(at_line(path, number, says) for _, says in _problems(task))
            tasks.append(task)
    return problems, tasks


def _twice(task: Task) -> str:
    return f'id = "{task.id}" is that of an earlier task; allowed: one that no other has'


def _problems(task: Task) -> Iterator[tuple[Key, str]]:
    if "folder" in task.model_fields_set:
        yield ("folder",), "folder is not said but known: that of the tasks file; allowed: leave it out"
    if task.text is not None and task.text_file is not None:
        yield ("text_file",), "text_file beside text; allowed: one of them"
    if task.base_commit is not None and task.repo is None:
        yield ("base_commit",), "base_commit without repo; allowed: beside a repo"
    for index, key, says in step_problems(task.steps):
        yield ("step", index, key), says
