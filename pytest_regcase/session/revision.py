"""The revision of a project's agent: one digest, whoever asks for it (a session, a claimed fix, the doctor)."""

from pytest_regcase.agents.revision import RevisionDigest, agent_digest
from pytest_regcase.config import Project
from pytest_regcase.session.plan import agent_config


def revision_of(project: Project, name: str) -> RevisionDigest:
    """Return the digest of the agent `name`, without cases, simulations and our own folder.

    Raises:
        UnknownName: no such agent is configured.
        UsageRefused: one of its `revision_paths` is not there.
    """
    not_the_agent = [*project.config.cases, *project.config.fixtures, ".regcase"]
    return agent_digest(project.root, name, agent_config(project, name), not_the_agent)
