"""Starts a gate run in one process: the controller opens the session, a worker is handed it."""

import os
from pathlib import Path
from typing import cast

import pytest

from pytest_regcase.case_files import load_simulations
from pytest_regcase.config import Project, load_project
from pytest_regcase.errors import RegcaseError
from pytest_regcase.pytest_items import settings
from pytest_regcase.pytest_items.collection import Items
from pytest_regcase.pytest_items.function_calls import FunctionCalls
from pytest_regcase.pytest_items.gate_run import GateRun, from_controller, to_worker
from pytest_regcase.pytest_items.hooks import ProjectHooks
from pytest_regcase.pytest_items.long_lived import LongLived
from pytest_regcase.pytest_items.neighbours import refuse_neighbours
from pytest_regcase.pytest_items.termination import Termination
from pytest_regcase.pytest_items.workers import Workers, leave_pid
from pytest_regcase.session.planning import opening


def start(config: pytest.Config) -> None:
    """Make this process take part in a gate run.

    Raises:
        pytest.UsageError: options contradict one another, or configuration, simulations or ledger cannot be used.
    """
    asked = settings.read_options(config)
    settings.refuse_conflicts(config)
    refuse_neighbours(config)
    settings.keep_crashed_workers_down(config)
    termination = Termination()
    hooks = ProjectHooks(config)
    try:
        gate = _handed(config, hooks) if settings.is_worker(config) else _opened(config, asked, hooks, termination)
    except RegcaseError as error:
        raise pytest.UsageError(error.text) from error
    settings.add_case_folders(config, gate.project.case_folders)
    decides = settings.decides(config)
    config.pluginmanager.register(Items(gate, with_tests=asked.with_tests, leaves_lists=decides), "regcase-items")
    config.pluginmanager.register(FunctionCalls(gate, hooks, leaves_lists=decides), "regcase-functions")
    config.pluginmanager.register(LongLived(), "regcase-long-lived")
    termination.install()
    if settings.is_worker(config):
        termination.follow_parent()
    config.add_cleanup(termination.restore)


def _handed(config: pytest.Config, hooks: ProjectHooks) -> GateRun:
    """Plan in a worker, from what the controller handed over."""
    workerinput = cast("dict[str, str]", config.workerinput)  # type: ignore[attr-defined]
    snapshot, root, files = from_controller(workerinput["regcase"])
    project = hooks.project(load_project(root), files, snapshot.agent)
    simulations = load_simulations(project)
    entries = opening.in_shard(project, hooks.load(files), snapshot.shard)
    entries = opening.plan_entries(project, entries, simulations, snapshot)
    gate = GateRun(project, snapshot, simulations, entries, settings.confirms(config), tuple(files), hooks.load)
    leave_pid(gate.session_folder, workerinput["workerid"])
    return gate


def _opened(
    config: pytest.Config, asked: settings.Asked, hooks: ProjectHooks, termination: Termination
) -> GateRun:
    """Open the session in the controller, and register what only the controller has."""
    from pytest_regcase.ledger.store import Ledger
    from pytest_regcase.pytest_items.controller import Controller
    from pytest_regcase.pytest_items.github import GitHub
    from pytest_regcase.pytest_items.header import header_lines
    from pytest_regcase.pytest_items.junit import JUnit
    from pytest_regcase.pytest_items.progress import Progress
    from pytest_regcase.reporters.report_file import ReportFile
    from pytest_regcase.session.gating.github_actions import GitHubActions

    reports = [ReportFile(each) for each in asked.reports]
    project = _project(config)
    simulations = load_simulations(project)
    files = opening.chosen_files(project, settings.given_paths(config))
    project = hooks.project(project, files, asked.agent)
    ledger = Ledger.open(project.ledger_url())
    try:
        opened = opening.open_session(
            project,
            files,
            simulations,
            ledger,
            profile=asked.profile,
            live_new=asked.live_new,
            agent=asked.agent,
            shard=asked.shard,
            max_minutes=asked.max_minutes,
            load=hooks.load,
        )
        header = header_lines(
            opened, project, ledger, minutes=asked.max_minutes, options=settings.shrinking_options(config)
        )
    except BaseException:
        ledger.close()
        raise
    gate = GateRun(
        project,
        opened.snapshot,
        simulations,
        opened.entries,
        settings.confirms(config),
        tuple(files),
        hooks.load,
        kept={},
    )
    if not settings.decides(config):
        ledger.close()
        config.pluginmanager.register(Header(header), "regcase-header")
        return gate
    opening.make_session_folder(gate.project, gate.session_folder)
    controller = Controller(
        gate,
        ledger,
        opening.session_row(project, opened).model_copy(update={"hooked": hooks.changed}),
        header=header,
        reports=reports,
        hooks=hooks,
        termination=termination,
    )
    actions = GitHubActions.found_in(os.environ)
    if actions is not None:
        config.pluginmanager.register(GitHub(actions, controller), "regcase-github")
    if config.getoption("xmlpath", None):
        config.pluginmanager.register(JUnit(gate, controller, config), "regcase-junit")
    config.pluginmanager.register(controller, "regcase-controller")
    config.pluginmanager.register(Progress(controller, config), "regcase-progress")
    config.pluginmanager.register(
        Workers(to_worker(opened.snapshot, project.root, files), gate.session_folder), "regcase-workers"
    )
    return gate


class Header:
    """The header of a run that decides nothing."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def pytest_report_header(self) -> list[str]:
        """Say what would run."""
        return [*self._lines, "regcase: this run makes no attempt, decides nothing and counts nothing"]


def _project(config: pytest.Config) -> Project:
    """Find the project from where pytest was called, else from its root directory."""
    project = load_project(config.invocation_params.dir)
    if project.pyproject is None and config.rootpath != Path(config.invocation_params.dir):
        return load_project(config.rootpath)
    return project
