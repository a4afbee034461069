"""A run before it starts: what is asked for, with which agents, under which conditions; all of it checked.

Writes `run.json` and puts aside what is run again. Starts no agent, and never prints.
"""

import os
import platform
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_regcase.agents.git_commands import run_git
from pytest_regcase.capture import Task
from pytest_regcase.case_files import read_transcript
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import TranscriptLine
from pytest_regcase.records.words import RunKind
from pytest_regcase.session.batches.command_agent import needs_a_supplier
from pytest_regcase.session.batches.reached import reached
from pytest_regcase.session.batches.run_folder import Manifest, Resumption, RunFolder, TaskOfRun
from pytest_regcase.session.batches.run_ids import requested, tasks_of
from pytest_regcase.session.plan import agent_config
from pytest_regcase.session.revisions.revision import revision_of

_STAND_IN_AGENT = "pytest_regcase.demo"


@dataclass(frozen=True)
class Wanted:
    """What a person asked for on the command line."""

    out: Path
    ids: tuple[str, ...] = ()
    tasks_file: Path | None = None
    agent: str = "default"
    """For tasks that name none."""
    seed: int | None = None
    replies: Path | None = None
    """A script by which a stand-in answers in the place of the real supplier."""
    controlled: bool = False
    resume: bool = False
    crashed: bool = False
    """With `resume`: run again what crashed."""


@dataclass(frozen=True)
class Batch:
    """A run that can start."""

    folder: RunFolder
    manifest: Manifest
    to_run: tuple[Task, ...]
    """In the order in which they were asked for; each with its base commit."""
    seed: int
    replies: tuple[TranscriptLine, ...] | None = None

    def agent_of(self, task: Task) -> str:
        """Return the name of the agent that runs this task."""
        return self.manifest.tasks[task.id].agent


def plan_batch(project: Project, wanted: Wanted) -> Batch:
    """Check a run and return what there is to do. The folder must be locked by whoever calls.

    Raises:
        UsageRefused: the ids, an agent, a repository, or the folder cannot be taken; nothing is written.
        FileError: the tasks file, a script or `run.json` holds something that is not allowed.
        UnknownName: there is no such agent.
        WriteError: `run.json` cannot be written.
    """
    return _resumed(project, wanted) if wanted.resume else _new(project, wanted)


def _new(project: Project, wanted: Wanted) -> Batch:
    folder = RunFolder(wanted.out)
    tasks = tasks_of(project, wanted.tasks_file)
    chosen = requested(tasks, wanted.ids)
    _check_texts(chosen)
    replies = _replies(wanted.replies)
    _check_agents(project, chosen, wanted.agent, stand_in=replies is not None)
    runs = {each.id: _task_of_run(each, wanted.agent) for each in chosen}
    seed = wanted.seed if wanted.seed is not None else secrets.randbelow(2**31)
    names = list(dict.fromkeys(each.agent for each in runs.values()))
    manifest = Manifest(
        kind=_kind(project, names, wanted),
        requested=tuple(runs),
        started_at=datetime.now(UTC),
        tasks_file=os.path.relpath(tasks.path, wanted.out),
        conditions=_conditions(project, names, seed, wanted.replies),
        tasks=runs,
    )
    folder.make()
    folder.write(manifest)
    return Batch(folder, manifest, _with_commits(chosen, manifest), seed, replies)


def _resumed(project: Project, wanted: Wanted) -> Batch:
    folder = RunFolder(wanted.out)
    manifest = folder.manifest()
    tasks = tasks_of(project, wanted.tasks_file or wanted.out / manifest.tasks_file)
    if wanted.ids and wanted.ids != tuple(manifest.requested):
        raise UsageRefused(
            f"Couldn't go on with the run in {wanted.out}: it was asked for other ids than these.\n"
            "Leave them out: the run knows its own. Other tasks are another run."
        )
    chosen = requested(tasks, manifest.requested)
    if (wanted.replies is not None or wanted.controlled) and manifest.kind == "real":
        raise UsageRefused(
            f"Couldn't go on with the run in {wanted.out}: it is a real one, and a stand-in would make it none.\n"
            "Start a controlled run of its own, in another folder."
        )
    replies = _replies(wanted.replies)
    if replies is None and "replies" in manifest.conditions:
        raise UsageRefused(
            f"Couldn't go on with the run in {wanted.out}: its supplier was a stand-in.\n"
            f"Say --replies {manifest.conditions['replies'].get('file', 'FILE')} again."
        )
    _check_agents(project, chosen, wanted.agent, stand_in=replies is not None)
    seed = int(manifest.conditions.get("seed", 0))
    names = list(dict.fromkeys(each.agent for each in manifest.tasks.values()))
    now = _conditions(project, names, seed, wanted.replies)
    changed = {key: value for key, value in now.items() if manifest.conditions.get(key) != value}
    again = {"not_reached", "interrupted", *(("agent_error",) if wanted.crashed else ())}
    due = [each for each in chosen if reached(folder, each.id).status in again]
    manifest = manifest.model_copy(
        update={
            "resumed": (
                *manifest.resumed,
                Resumption(at=datetime.now(UTC), crashed=wanted.crashed, conditions_changed=changed),
            )
        }
    )
    if due:
        folder.write(manifest)
    for each in due:
        folder.put_aside(each.id)
    return Batch(folder, manifest, _with_commits(due, manifest), seed, replies)


def _check_texts(tasks: Sequence[Task]) -> None:
    problems: list[str] = []
    for each in tasks:
        try:
            each.read_text()
        except FileError as error:
            problems += error.problems
    if problems:
        raise FileError(problems)


def _with_commits(tasks: Sequence[Task], manifest: Manifest) -> tuple[Task, ...]:
    return tuple(each.model_copy(update={"base_commit": manifest.tasks[each.id].base_commit}) for each in tasks)


def _replies(path: Path | None) -> tuple[TranscriptLine, ...] | None:
    return None if path is None else read_transcript(path)


def _task_of_run(task: Task, default_agent: str) -> TaskOfRun:
    repository = task.repository
    commit = None
    if repository is not None:
        words = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{task.base_commit or 'HEAD'}^{{commit}}",
        ]
        commit = run_git(words, cwd=repository, may_fail=True).strip() if repository.is_dir() else ""
        if not commit:
            what = f"commit {task.base_commit}" if task.base_commit else "commit at all"
            why = f"{repository} has no {what}" if repository.is_dir() else f"there is no folder {repository}"
            raise UsageRefused(
                f"Couldn't start the run, and nothing was run: task {task.id}: {why}.\n"
                "Correct `repo` and `base_commit` of the task, or fetch the commit."
            )
    return TaskOfRun(agent=task.agent or default_agent, repo=task.repo, base_commit=commit)


def _check_agents(project: Project, tasks: Sequence[Task], default: str, *, stand_in: bool) -> None:
    for name in dict.fromkeys(each.agent or default for each in tasks):
        config = agent_config(project, name)
        upstream = project.config.upstream
        if not stand_in and upstream is None and needs_a_supplier(config):
            raise UsageRefused(
                f"Couldn't start the run, and nothing was run: agent {name!r} asks for the address of a supplier,"
                " and there is no [tool.regcase.upstream].\nAdd one to pyproject.toml, or let a stand-in answer:"
                " --replies FILE."
            )
        key = upstream.api_key_env if upstream is not None and not stand_in else None
        needed = [*([key] if key is not None else []), *(config.live_env if not stand_in else ())]
        missing = [each for each in needed if not os.environ.get(each)]
        if missing:
            raise UsageRefused(
                f"Couldn't start the run, and nothing was run: {', '.join(missing)}, which agent {name!r} or its"
                " supplier needs, is not set.\nSet it where the run is started."
            )


def _kind(project: Project, names: Sequence[str], wanted: Wanted) -> RunKind:
    """Say whether a stand-in is at work: one that a person declares, our own supplier, or our own demo agent."""
    own_agent = any(
        any(_STAND_IN_AGENT in word for word in (*(config.command or ()), config.python or ""))
        for config in (agent_config(project, name) for name in names)
    )
    return "controlled" if wanted.controlled or wanted.replies is not None or own_agent else "real"


def _conditions(project: Project, names: Sequence[str], seed: int, replies: Path | None) -> dict[str, Any]:
    upstream = project.config.upstream if replies is None else None
    found: dict[str, Any] = {
        "agents": {name: _agent(project, name) for name in names},
        "versions": {
            "pytest-regcase": version("pytest-regcase"),
            "python": platform.python_version(),
            "platform": sys.platform,
        },
        "seed": seed,
    }
    if upstream is not None:
        found["upstream"] = {"base_url": upstream.base_url, "wire": upstream.wire}
    if replies is not None:
        digest = digest_of([line.to_sparse() for line in read_transcript(replies)])
        found["replies"] = {"file": str(replies), "digest": digest}
    return found


def _agent(project: Project, name: str) -> dict[str, Any]:
    config = agent_config(project, name)
    found = {
        "revision": revision_of(project, name).digest,
        "command": list(config.command) if config.command is not None else None,
        "python": config.python,
        "model": config.model,
        "limits": {"cap_seconds": config.live_cap_seconds or config.cap_seconds},
    }
    return {key: value for key, value in found.items() if value is not None}
