"""The types of steps that we bring, and what each does. Importing this fills the table of `step_types`.

Knows processes, archives and the recorder; decides nothing about the order, or about what a failure means.
"""

import asyncio
import inspect
import os
import shutil
import tarfile
import time
from collections.abc import AsyncIterable, Awaitable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Final

from pytest_regcase.agents.launch import Launch, Places
from pytest_regcase.agents.placeholders import fill
from pytest_regcase.agents.process import SUPERVISOR_LOG, AgentProcess
from pytest_regcase.capture.step_types import StepContext, step_type
from pytest_regcase.errors import MachineryError, RegcaseError
from pytest_regcase.records.attempt import Exit

ARTIFACTS: Final = "artifacts"
COMMAND_SECONDS: Final = 3600.0
"""A command of a step that takes longer is ended, and the step has failed."""
_SAID_CHARACTERS: Final = 2000
_LOOK_SECONDS: Final = 0.2


class StepFailed(RegcaseError):
    """A step could not do what it is there for."""

    slug = "step-failed"


@step_type("start_environment", role="other")
def start_environment(context: StepContext) -> None:
    """Start the environment and note where its work tree stands."""
    trial, environment = context.trial, context.environment

    def stop() -> str | None:
        captured = trial.patch_capture is not None and trial.patch_capture.status == "captured"
        return environment.stop(keep_work=not captured and trial.work_dir is not None)

    # Before the start: one that fails half-way leaves something behind too.
    trial.add_cleanup(environment.name, stop)
    trial.watch_work_tree(environment.start(trial.folder), trial.config.base_commit)


@step_type("prompt_agent", role="agent")
def prompt_agent(context: StepContext) -> None:
    """Run the agent; a coroutine or generator is run to its end, an asynchronous one in a loop of its own."""
    answer = context.agent(context.trial)
    if inspect.isawaitable(answer):
        asyncio.run(_awaited(answer))
    elif inspect.isasyncgen(answer):
        asyncio.run(_exhausted(answer))
    elif inspect.isgenerator(answer):
        for _ in answer:
            pass


async def _awaited(answer: Awaitable[object]) -> None:
    await answer


async def _exhausted(answer: AsyncIterable[object]) -> None:
    async for _ in answer:
        pass


@step_type("capture_patch", role="evidence")
def capture_patch(context: StepContext) -> None:
    """Read the agent's work from its work tree."""
    context.trial.capture_patch()


@step_type("snapshot_environment", role="evidence")
def snapshot_environment(context: StepContext) -> None:
    """Pack the work tree into ``artifacts/<step>.tar.gz``."""
    work_dir = context.trial.work_dir
    if work_dir is None:
        raise StepFailed("Couldn't take a snapshot of the work tree: there is none.\nStart an environment before.")
    _pack(work_dir, context)


@step_type("snapshot_agent_state", role="evidence")
def snapshot_agent_state(context: StepContext) -> None:
    """Pack what the agent wrote for itself (``out_dir``) into ``artifacts/<step>.tar.gz``."""
    _pack(context.trial.out_dir, context)


@step_type("collect_artifacts", role="evidence")
def collect_artifacts(context: StepContext) -> None:
    """Copy the files that `paths` names, below the work tree, into ``artifacts/<step>/``; each must be there."""
    work_dir = context.trial.work_dir
    if work_dir is None:
        raise StepFailed("Couldn't collect artifacts: there is no work tree.\nStart an environment before.")
    root = work_dir.resolve()
    target = context.trial.folder / ARTIFACTS / context.step.id
    for pattern in context.step.paths:
        found = [each for each in sorted(root.glob(pattern)) if each.is_file()]
        if not found:
            raise StepFailed(f"Couldn't collect {pattern}: no such file below {work_dir}.\nCheck `paths`.")
        for each in found:
            if not each.resolve().is_relative_to(root):
                raise StepFailed(
                    f"Couldn't collect {each}: it is a link that points out of the work tree.\nLeave it."
                )
            copy = target / each.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(each, copy)


@step_type("grade", role="grader")
def grade(context: StepContext) -> None:
    """Score the agent's work: `command` exits with 0 for passed and 1 for failed; anything else is no score."""
    if context.step.command:
        _score(context)
    elif context.grade is not None:
        context.grade(context.trial)


@step_type("run_code", role="other")
def run_code(context: StepContext) -> None:
    """Run `command` in the work tree. An exit code that is not 0 fails the step; a grader's 1 is a score."""
    if context.role == "grader":
        _score(context)
        return
    code, said = _run(context)
    if code != 0:
        raise StepFailed(f"Couldn't run step {context.step.id}: its command ended with {code}.\n{said}")


def _score(context: StepContext) -> None:
    code, said = _run(context)
    if code not in (0, 1):
        raise StepFailed(f"Couldn't grade: the command of step {context.step.id} ended with {code}.\n{said}")
    context.trial.verification(context.step.id, code == 0, exit_code=code)


def _run(context: StepContext) -> tuple[int, str]:
    """Run the step's command; return its exit code and its last words. All of it is ``artifacts/<step>.txt``.

    Whatever it started is ended with it, also where our own process is killed meanwhile. The code of one that a
    signal ended is that signal's number, negative.
    """
    trial, step = context.trial, context.step
    filled = {"out_dir": str(trial.out_dir.absolute()), "task_id": trial.task_id}
    if trial.work_dir is not None:
        filled["work_dir"] = str(trial.work_dir)
    words = tuple(fill(word, filled, where=f"command of step {step.id}") for word in step.command)
    log = _artifact(context, ".txt")
    places = replace(Places.below(log.parent), stdout=log, stderr=log)
    launch = Launch(words, os.environ, trial.work_dir or Path.cwd(), {})
    try:
        exit_ = _watched(launch, places, context.stop)
    except MachineryError as error:
        raise StepFailed(f"Couldn't run step {step.id}: {error.text}") from error
    if exit_ is None:
        raise StepFailed(
            f"Couldn't run step {step.id}: its command took longer than {COMMAND_SECONDS:g} s.\nSee {log}."
        )
    with log.open("rb") as said:
        said.seek(max(0, log.stat().st_size - _SAID_CHARACTERS))
        last = said.read().decode("utf-8", errors="replace").strip()
    return exit_.code if exit_.code is not None else -(exit_.signal or 0), last


def _watched(launch: Launch, places: Places, stop: Event | None) -> Exit | None:
    """Run a command to its end; None where it took too long."""
    until = time.monotonic() + COMMAND_SECONDS
    try:
        with AgentProcess.start(launch, places) as process:
            while not process.wait(max(0.0, min(_LOOK_SECONDS, until - time.monotonic()))):
                if stop is not None and stop.is_set():
                    raise KeyboardInterrupt
                if time.monotonic() >= until:
                    return None
            return process.exit
    finally:
        (places.folder / SUPERVISOR_LOG).unlink(missing_ok=True)


def _pack(folder: Path, context: StepContext) -> None:
    def without_git(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if ".git" in Path(entry.name).parts else entry

    with tarfile.open(_artifact(context, ".tar.gz"), "w:gz") as archive:
        archive.add(folder, arcname=".", filter=without_git)


def _artifact(context: StepContext, suffix: str) -> Path:
    folder = context.trial.folder / ARTIFACTS
    folder.mkdir(exist_ok=True)
    return folder / f"{context.step.id}{suffix}"
