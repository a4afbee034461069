"""What ran, by the log of a trial: the agent's revision digest, and the model's, as attempts of ours have them.

Knows git and configurations of older commits. What cannot be known gets a digest of the log's own words, which is
none of the project's: a trial of unknown revision counts for none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from pytest_regcase.agents.revision import agent_digest_at
from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import Project, read_config
from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.attempt import Digests
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial
from pytest_regcase.session.revisions.git_revision import Revision, commit_named
from pytest_regcase.toml_lines import TOML_LIMIT_BYTES, parse_toml

_COMMIT: Final = re.compile(r"(?:[\w.-]{1,80}@)?([0-9a-f]{7,64})")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_PYPROJECT: Final = "pyproject.toml"


@dataclass(frozen=True)
class Ran:
    """What a trial ran with."""

    digests: Digests
    unknown: tuple[str, ...] = ()
    """Why it is not known which revision or model that was, so that the trial counts for none of ours."""
    assumed: str | None = None
    """What was taken to be so because the log does not say otherwise."""


def digest_at(project: Project, agent_name: str, commit: str) -> tuple[str | None, str | None]:
    """Return the revision digest that an agent had at a commit, or None and why it cannot be known."""
    found = commit_named(project.root, commit)
    if found is None:
        return None, f"commit {commit[:10]} is not in this repository (is the clone shallow?)"
    config = _config_at(project, found)
    agent = config.agents.get(agent_name) if config is not None else None
    if config is None or agent is None:
        return None, f"commit {commit[:10]} configures no agent {agent_name!r}"
    folders = (*config.cases, *config.fixtures, ".regcase")
    digest = agent_digest_at(project.root, agent_name, agent, found.commit, folders)
    if digest is None:
        return None, f"commit {commit[:10]} does not hold all that is the agent's revision"
    return digest, None


class LogRevisions:
    """Tells the digests of trials by their logs. `present` are those of a live attempt made now."""

    def __init__(self, project: Project, loaded: LoadedCase, agent: str, present: Digests) -> None:
        self._project = project
        self._agent = agent
        self._present = present
        self._models = _models(project, loaded, agent)
        self._of_commit = cache(self._digest_at)

    def of(self, trial: Trial) -> Ran:
        """Return what a redacted trial ran with."""
        agent, why = self.of_revision(trial.revision)
        model, why_model, assumed = self._model(trial)
        unknown = tuple(each for each in (why, why_model) if each is not None)
        digests = Digests(
            case=self._present.case,
            agent=agent or digest_of({"revision": trial.revision, "harness": trial.harness, "from": "log"}),
            model=model,
        )
        return Ran(digests, unknown, None if unknown else assumed)

    def of_revision(self, revision: str | None) -> tuple[str | None, str | None]:
        """Return the agent digest of a revision as a log names it, or None and why it cannot be known.

        `regcase run` records the digest itself; else a commit of this repository is asked for. A commit with
        uncommitted changes is no revision that anybody can look at again.
        """
        if revision is None:
            return None, "the log names no revision"
        if _DIGEST.fullmatch(revision):
            return revision, None
        named = _COMMIT.fullmatch(revision)
        if named is None:
            dirty = revision.endswith("dirty")
            return None, f"revision {revision!r} is no commit" + (": it had changes beside one" if dirty else "")
        return self._of_commit(named[1])

    def _digest_at(self, commit: str) -> tuple[str | None, str | None]:
        return digest_at(self._project, self._agent, commit)

    def _model(self, trial: Trial) -> tuple[str | None, str | None, str | None]:
        """Return the model digest, why it is not the present one, and what was assumed."""
        upstream = self._project.config.upstream
        server = _server(trial)
        own = digest_of({"model": trial.model, "base_url": server, "from": "log"})
        if self._models and (trial.model is None or not _is_one_of(trial.model, self._models)):
            said = "the log names no model" if trial.model is None else f"the model was {trial.model}"
            return own, f"{said}, and this case's is {' or '.join(sorted(self._models))}", None
        if upstream is None or server is None:
            where = None if upstream is None else f"the model server was {upstream.base_url}, as configured"
            return self._present.model, None, where
        if server.rstrip("/") != upstream.base_url.rstrip("/"):
            return own, f"the model server was {server}, and the configured one is {upstream.base_url}", None
        return self._present.model, None, None


def _models(project: Project, loaded: LoadedCase, agent: str) -> frozenset[str]:
    """Return what the case's model is called: the configured one, else those of its own transcript."""
    configured = project.config.agents[agent].model
    if configured is not None:
        return frozenset({configured})
    return frozenset(line.model for line in loaded.transcript() or () if line.is_reply and line.model)


def _is_one_of(model: str, known: frozenset[str]) -> bool:
    """Say whether it is one of them; a log may put the provider before the name, as in ``openai/gpt-4o``."""
    plain = {model, model.rpartition("/")[2]}
    return not plain.isdisjoint(known | {each.rpartition("/")[2] for each in known})


def _server(trial: Trial) -> str | None:
    found: list[Any] = list(_values(trial.conditions, "model_base_url")) or list(
        _values(trial.conditions, "base_url")
    )
    return next((each for each in found if isinstance(each, str) and each), None)


def _values(conditions: dict[str, Any], name: str) -> Iterator[Any]:
    for key, value in conditions.items():
        if key == name:
            yield value
        elif isinstance(value, dict):
            yield from _values(value, name)


def _config_at(project: Project, revision: Revision) -> Any:
    """Return the project's configuration at a commit; None where it has none that this version reads."""
    try:
        name = revision.inside(project.root / _PYPROJECT)
        files = revision.files([name]) if name is not None else {}
        content = revision.read(files, limit_bytes=TOML_LIMIT_BYTES).get(name or "")
        if content is None:
            return None
        return read_config(parse_toml(Path(f"{revision.name}:{name}"), content))
    except (FileError, UsageRefused):
        return None
