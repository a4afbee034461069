"""Test functions as agents: what they are called, which settings hold for them, what a revision of one is.

A function counts as an agent of its own, whose name is the path of its file and its name in it, as pytest writes
them. Everything that plans, counts and decides takes it for an agent: it gets a project that has that agent, and a
snapshot that asks for it. Never prints.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pytest_regcase.agents.revision import agent_digest
from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import AgentConfig, Project
from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.decision import Reason
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.session.plan import agent_name

_SEPARATOR = "::"
_SETTINGS = "settings"
"""Stands for the name where the case's agent is not configured, so that the defaults hold."""


def is_function(agent: str) -> bool:
    """Say whether an agent's name is that of a test function; a configured one holds no colon."""
    return _SEPARATOR in agent


def is_unknown(key: AttemptKey) -> bool:
    """Say whether a key stands for test functions of which nobody knows what they run: it has no case's name."""
    return key.case_id == key.agent


def unknown_functions(planned: Iterable[AttemptKey]) -> Iterator[Reason]:
    """Yield why a decision is not green for a function whose mark is wrong, and for a file that skips itself."""
    for name in sorted({key.agent for key in planned if is_unknown(key)}):
        text = "functions marked `regcase` here were not run (the file skips itself)"
        if is_function(name):
            text = "the function could not be run; see its mark"
        yield Reason(code="not-run", text=f"{name}: {text}")


def with_agent(project: Project, name: str, config: AgentConfig) -> Project:
    """Return the project with one more agent, or with another entry for one."""
    agents = {**project.config.agents, name: config}
    return replace(project, config=project.config.model_copy(update={"agents": agents}))


def function_settings(project: Project, loaded: LoadedCase, snapshot: SessionSnapshot) -> AgentConfig:
    """Return the settings of a function that runs this case: those of the case's agent, else the defaults.

    What starts that agent and says where its output lies is left out: the function runs and attaches by itself.
    """
    config = project.config.agents.get(agent_name(loaded, snapshot), AgentConfig())
    nothing = dict.fromkeys(
        ("command", "python", "output", "importer", "submission", "answer", "status", "transcript", "log")
    )
    # No clock of its own: it lives in a process that is not started for it.
    return config.model_copy(
        update={**nothing, "env": {}, "live_env": (), "wrapper": (), "cleanup": (), "time_scale": 1}
    )


def function_digest(
    project: Project, loaded: LoadedCase, snapshot: SessionSnapshot, function: str, memory: dict[str, str]
) -> str:
    """Return the revision of a function: its file, and the revision of the case's agent, whose settings it has.

    Where that agent is not configured: what git tracks, as for an agent without `revision_paths`. `memory` keeps
    what is the same for many functions of one session.
    """
    name = agent_name(loaded, snapshot)
    settings = snapshot.agent_digests.get(name) or memory.get(name)
    if settings is None:
        # A session that was asked for tests alone has looked at no case's agent.
        settings = memory[name] = _revision_of_settings(project, name)
    file = function.partition(_SEPARATOR)[0]
    if file not in memory:
        memory[file] = _digest_of_file(project.root / file)
    return digest_of({"function": function, "file": memory[file], "settings": settings})


def for_function(
    project: Project, loaded: LoadedCase, snapshot: SessionSnapshot, function: str, digest: str
) -> tuple[Project, SessionSnapshot]:
    """Return project and snapshot in which that function, of that revision, is the agent of the case."""
    own = with_agent(project, function, function_settings(project, loaded, snapshot))
    return own, snapshot.model_copy(
        update={
            "agent": function,
            "agent_digests": {**snapshot.agent_digests, function: digest},
            "live": {loaded.id: snapshot.live_of_functions.get(live_key(loaded.id, digest), ())},
        }
    )


def live_key(case_id: str, digest: str) -> str:
    """Return the key of a function's live runs of a case in the snapshot; the digest names the function too."""
    return f"{case_id} {digest}"


def _revision_of_settings(project: Project, name: str) -> str:
    """As `revision` has it of the agent `name`; where that is not configured, of one that sets nothing."""
    not_the_agent = [*project.config.cases, *project.config.fixtures, ".regcase"]
    config = project.config.agents.get(name)
    if config is None:
        return agent_digest(project.root, _SETTINGS, AgentConfig(), not_the_agent).digest
    return agent_digest(project.root, name, config, not_the_agent).digest


def _digest_of_file(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        # A function whose file is gone has no attempts of the present revision.
        return "gone"
