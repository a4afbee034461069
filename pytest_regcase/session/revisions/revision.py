"""The revision of a project's agent: one digest, whoever asks for it (a session, a claimed fix, the doctor)."""

from collections.abc import Mapping

from pytest_regcase.agents.revision import RevisionDigest, agent_digest
from pytest_regcase.config import Project
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.session.functions import is_function
from pytest_regcase.session.plan import agent_config


def revision_of(project: Project, name: str) -> RevisionDigest:
    """Return the digest of the agent `name`, without cases, simulations and our own folder.

    Raises:
        UnknownName: no such agent is configured.
        UsageRefused: one of its `revision_paths` is not there.
    """
    not_the_agent = [*project.config.cases, *project.config.fixtures, ".regcase"]
    return agent_digest(project.root, name, agent_config(project, name), not_the_agent)


def revision_over(agents: Mapping[str, str]) -> str:
    """Return the one digest that stands for all `agents` (name -> digest) of a session: of one agent, its own.

    Test functions are left out where a configured agent is there: which of them a session runs is a matter of
    options, and each one's digest holds the agent's.
    """
    own = configured(agents) or agents
    return next(iter(own.values())) if len(own) == 1 else digest_of(own)


def configured(agents: Mapping[str, str]) -> dict[str, str]:
    """Return `agents` (name -> digest) without test functions."""
    return {name: digest for name, digest in agents.items() if not is_function(name)}
