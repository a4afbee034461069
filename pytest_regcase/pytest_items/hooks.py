"""Calls the hooks that a project may have: they are asked before anything is planned, in every process alike.

The specifications stand in the plugin module, which is always loaded. What may come back is decided in
session.project.hooked.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_regcase.config import Project
from pytest_regcase.errors import RegcaseError, UsageRefused
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.session.functions import with_agent
from pytest_regcase.session.planning import opening
from pytest_regcase.session.planning.opening import CaseEntry
from pytest_regcase.session.project.hooked import hooked_agent, tightened

_PLANNING = ("pytest_regcase_agent", "pytest_regcase_expectations")


class ProjectHooks:
    """The hooks of one process of a gate run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._hook = config.hook
        self._at_planning = {name: self._count(name) for name in _PLANNING}
        self._changed: set[str] = set()

    @property
    def changed(self) -> tuple[str, ...]:
        """What they changed for this session, in words, sorted."""
        return tuple(sorted(self._changed))

    def load(self, paths: Iterable[Path]) -> tuple[CaseEntry, ...]:
        """Load case files as `opening.load_entries` does, each with what hooks expect beyond it."""
        entries = opening.load_entries(paths)
        if not self._at_planning["pytest_regcase_expectations"]:
            return entries
        return tuple(self._tightened(each) for each in entries)

    def project(self, project: Project, files: Iterable[Path], agent: str | None) -> Project:
        """Return the project with the agents that hooks gave in the place of configured ones.

        Asked for all cases of the project besides `files`: an agent has one revision a session, so all the cases
        that name it have to get the same entry.

        Raises:
            UsageRefused: a hook raised, returned what cannot be, or gives one agent two entries.
        """
        if not self._at_planning["pytest_regcase_agent"]:
            return project
        given: dict[str, tuple[str, object]] = {}
        changed = project
        paths = [*files, *opening.chosen_files(project, None)]
        for entry in opening.load_entries({each.resolve(): each for each in paths}.values()):
            if entry.loaded is None:
                continue
            name, case_id = agent or entry.loaded.case.agent, entry.loaded.id
            try:
                found = self._hook.pytest_regcase_agent(case=entry.loaded.case, name=name)
            except Exception as error:
                raise _raised("pytest_regcase_agent", case_id, error) from error
            config = None if found is None else hooked_agent(name, case_id, found)
            other_id, other = given.setdefault(name, (case_id, config))
            if other != config:
                raise UsageRefused(
                    f"Couldn't take what pytest_regcase_agent returned: the agent {name!r} has one entry for"
                    f" {other_id} and another for {case_id}.\n"
                    "An agent has one revision a session: return the same for both, or let them name two agents."
                )
            if config is not None:
                changed = with_agent(changed, name, config)
                self._changed.add(f"the agent {name}")
        return changed

    def finished(self, record: AttemptRecord) -> str | None:
        """Tell that an attempt is stored; return what a hook raised, in words."""
        try:
            self._hook.pytest_regcase_attempt_finished(record=record)
        except Exception as error:
            return f"pytest_regcase_attempt_finished raised {type(error).__name__}: {error}"
        return None

    def refuse_late_ones(self) -> None:
        """Refuse hooks in a conftest.py that was found after everything was planned: nobody asked them.

        Raises:
            pytest.UsageError: there is one.
        """
        for name in _PLANNING:
            if self._count(name) > self._at_planning[name]:
                raise pytest.UsageError(
                    f"Couldn't use the hook {name} of a conftest.py in a folder below: cases are planned before it"
                    " is read. Move the hook to the conftest.py of the root folder, or to a plugin."
                )

    def _count(self, name: str) -> int:
        return len(getattr(self._hook, name).get_hookimpls())

    def _tightened(self, entry: CaseEntry) -> CaseEntry:
        if entry.loaded is None:
            return entry
        loaded = entry.loaded
        try:
            try:
                asked = self._hook.pytest_regcase_expectations(case=loaded.case)
            except Exception as error:
                raise _raised("pytest_regcase_expectations", loaded.id, error) from error
            for each in asked:
                if each is not None:
                    loaded = tightened(loaded, each)
        except RegcaseError as error:
            return replace(entry, loaded=None, problems=tuple(error.text.splitlines()))
        if loaded.case.expected_recovery != entry.loaded.case.expected_recovery:
            self._changed.add(f"the expectations of {loaded.id}")
        return replace(entry, loaded=loaded)


def _raised(hook: str, case_id: str, error: Exception) -> UsageRefused:
    return UsageRefused(
        f"Couldn't ask {hook} for {case_id}: it raised {type(error).__name__}: {error}.\nCorrect the hook."
    )
