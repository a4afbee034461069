"""Test functions marked `regcase`: which case each runs, and its attempts as parameters of the fixture `regcase`.

A function is called once an attempt, so node ids have pytest's own form: ``test_x[deadline-no-answer-v1]``. What
cannot be right about a mark is one failing item with one clear text; everything else runs.
"""

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from pytest_regcase.case_files import find_case_files
from pytest_regcase.config import Project
from pytest_regcase.errors import RegcaseError
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.session.functions import for_function, function_digest
from pytest_regcase.session.plan import plan_case
from pytest_regcase.session.planning import opening
from pytest_regcase.session.planning.opening import CaseEntry

HOW = '@pytest.mark.regcase("CASE-ID") on a function with the argument `regcase`'


@dataclass(frozen=True)
class PlannedFunction:
    """A marked function that can run: its case, and everything by which its attempts are made and counted."""

    agent: str
    digest: str
    entry: CaseEntry
    plans: tuple[AttemptPlan, ...]
    project: Project
    """With the function among its agents."""
    snapshot: SessionSnapshot
    """In which the function is the agent of its case."""


@dataclass(frozen=True)
class WrongMark:
    """A marked function that cannot run."""

    agent: str
    text: str

    @property
    def key(self) -> AttemptKey:
        """What is planned of it and never run: whoever decides over the ledger later sees that it is not there."""
        return AttemptKey(case_id=self.agent, agent=self.agent, scenario="control")


class WrongMarkError(Exception):
    """What is wrong with a mark, in words."""


class MarkedFunctions:
    """Finds and plans the marked functions of this process."""

    def __init__(self, gate: GateRun) -> None:
        self._gate = gate
        self._memory: dict[str, str] = {}
        self._planned: dict[str, PlannedFunction | WrongMark] = {}

    def of(self, function: pytest.Item) -> PlannedFunction | WrongMark:
        """Return the plan of a marked function; `function` is an item of it, or its definition."""
        agent = self._agent(function)
        if agent not in self._planned:
            try:
                self._planned[agent] = self._plan(function, agent)
            except WrongMarkError as wrong:
                self._planned[agent] = WrongMark(agent, str(wrong))
        return self._planned[agent]

    def refuse(self, function: pytest.Item, text: str) -> WrongMark:
        """Say that a marked function cannot run, whatever was planned of it."""
        agent = self._agent(function)
        self._planned[agent] = WrongMark(agent, text)
        return WrongMark(agent, text)

    @property
    def planned(self) -> tuple[PlannedFunction, ...]:
        """The functions that can run."""
        return tuple(each for each in self._planned.values() if isinstance(each, PlannedFunction))

    @property
    def wrong(self) -> tuple[WrongMark, ...]:
        """The functions that cannot."""
        return tuple(each for each in self._planned.values() if isinstance(each, WrongMark))

    def _agent(self, function: pytest.Item) -> str:
        """Return the function's name as an agent: the same whatever the current folder and the parameters are."""
        file = Path(os.path.relpath(function.path, self._gate.project.root)).as_posix()
        names = function.nodeid.split("::")[1:]
        callspec = getattr(function, "callspec", None)
        if callspec is not None and names:
            names[-1] = names[-1].removesuffix(f"[{callspec.id}]")
        return "::".join([file, *names])

    def _plan(self, function: pytest.Item, agent: str) -> PlannedFunction:
        gate = self._gate
        entry = self._entry(_case_id(function))
        loaded = entry.loaded
        assert loaded is not None
        digest = function_digest(gate.project, loaded, gate.snapshot, agent, self._memory)
        project, snapshot = for_function(gate.project, loaded, gate.snapshot, agent, digest)
        try:
            plans = plan_case(project, loaded, gate.simulations, snapshot)
        except RegcaseError as error:
            raise WrongMarkError(error.text) from error
        rests = (
            snapshot.profile == "release" or loaded.id in snapshot.left_out or not self._is_in_shard(entry.path)
        )
        return PlannedFunction(agent, digest, entry, () if rests else plans, project, snapshot)

    def _entry(self, case_id: str) -> CaseEntry:
        """Return the case of that id, wherever in the project it is: paths may name tests and no case."""
        entry = self._asked_for.get(case_id) or self._anywhere.get(case_id)
        if entry is not None:
            if entry.problems and not entry.agent_is_missing:
                raise WrongMarkError("\n".join(entry.problems))
            return entry
        known = sorted(each.loaded.id for each in self._all if each.loaded is not None)
        near = difflib.get_close_matches(case_id, known, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known) or 'none'}."
        raise WrongMarkError(f"Couldn't find the case {case_id!r} that the mark names.\n{hint}")

    @cached_property
    def _asked_for(self) -> dict[str, CaseEntry]:
        return _by_name(self._gate.entries)

    @cached_property
    def _anywhere(self) -> dict[str, CaseEntry]:
        return _by_name(self._all)

    @cached_property
    def _all(self) -> tuple[CaseEntry, ...]:
        return self._gate.load(find_case_files(self._gate.project.case_folders))

    def _is_in_shard(self, path: Path) -> bool:
        shard = self._gate.snapshot.shard
        if shard is None or self._gate.entry_of(path) is not None:
            return True
        return path.resolve() not in self._files and path in self._in_shard

    @cached_property
    def _files(self) -> frozenset[Path]:
        return frozenset(each.resolve() for each in self._gate.files)

    @cached_property
    def _in_shard(self) -> frozenset[Path]:
        entries = opening.in_shard(self._gate.project, self._all, self._gate.snapshot.shard)
        return frozenset(each.path for each in entries)


def _by_name(entries: tuple[CaseEntry, ...]) -> dict[str, CaseEntry]:
    """The first entry of each id; one that does not load has the name of its folder."""
    return {each.path.parent.name if each.loaded is None else each.loaded.id: each for each in reversed(entries)}


def _case_id(function: pytest.Item) -> str:
    """Return the one case id that the marks of a function give."""
    ids: set[str] = set()
    for mark in function.iter_markers("regcase"):
        if mark.kwargs:
            raise WrongMarkError(f"Couldn't read the mark: it takes no {next(iter(mark.kwargs))}=.\nWrite {HOW}.")
        if not mark.args:
            raise WrongMarkError(f"Couldn't read the mark: it names no case.\nWrite {HOW}.")
        if not all(isinstance(each, str) for each in mark.args):
            raise WrongMarkError(f"Couldn't read the mark: {mark.args[0]!r} is no case id.\nWrite {HOW}.")
        ids.update(mark.args)
        if len(mark.args) > 1:
            break
    if len(ids) > 1:
        named = ", ".join(sorted(ids))
        raise WrongMarkError(
            f"Couldn't choose a case: the function is marked with several ({named}).\nWrite a function for each."
        )
    return next(iter(ids))


def why_nothing(function: PlannedFunction) -> str:
    """Say why no attempt of a function is planned."""
    snapshot, loaded = function.snapshot, function.entry.loaded
    assert loaded is not None
    if snapshot.profile == "release":
        return "not run: a release decides over what the ledger holds"
    if loaded.case.retired:
        return f"not run: the case {loaded.id} is retired"
    if loaded.id in snapshot.left_out:
        return f"not run: the case {loaded.id} did not fit into the minutes of this session"
    if loaded.case.passes_through and snapshot.live_new == 0:
        return f"not run: the replies of {loaded.id} cost model calls (--regcase-live=N)"
    return f"not run: the case {loaded.id} belongs to another shard"


def ids(plans: tuple[AttemptPlan, ...]) -> Iterator[str]:
    """Yield the parameter ids of a function's attempts."""
    for plan in plans:
        yield f"live-{plan.key.item_name}" if plan.kind == "live" else plan.key.scenario
