"""The cases, simulations and rules of a project as an older revision has them.

Reads what git holds, checks no seal: what was wrong then was red then. Writes to a temporary folder only, never
prints.
"""

import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_regcase.case_files import CASE_FILE, LoadedCase
from pytest_regcase.case_files.loading import TRANSCRIPT
from pytest_regcase.case_files.recorded import RECORDED_LIMIT_BYTES
from pytest_regcase.config import Project, RegcaseConfig, read_config
from pytest_regcase.errors import FileError
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.session.reviews.case_calls import DrivenCall, driven_calls
from pytest_regcase.session.revisions.git_revision import Revision, StoredFile
from pytest_regcase.toml_lines import TOML_LIMIT_BYTES, TomlFile, parse_toml, validate

_PYPROJECT: Final = "pyproject.toml"


@dataclass(frozen=True)
class OlderCase:
    """A case as the revision has it."""

    case: RegressionCase
    folder: PurePosixPath
    """In the repository."""


@dataclass(frozen=True)
class OlderVersion:
    """What the revision holds of one project."""

    revision: Revision
    config: RegcaseConfig | None
    """None where its pyproject.toml cannot be read as one; the reason is among `unread`."""
    cases: Mapping[str, OlderCase]
    simulations: Mapping[str, str]
    """Digest by id."""
    files: Mapping[str, StoredFile]
    unread: tuple[str, ...] = field(default=())
    """One sentence for each file that is no case, simulation or configuration as this version reads them."""

    def calls(self, case_id: str) -> tuple[DrivenCall, ...]:
        """Return the calls that the replies of a case drove then; none where it had none, or cannot be read."""
        older = self.cases.get(case_id)
        if older is None:
            return ()
        names = {(older.folder / each).as_posix(): each for each in reply_files(older.case)}
        wanted = {name: self.files[name] for name in names if name in self.files}
        found = self.revision.read(wanted, limit_bytes=RECORDED_LIMIT_BYTES)
        with tempfile.TemporaryDirectory(prefix="regcase-") as place:
            folder = Path(place)
            for name, content in found.items():
                path = folder / names[name]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            with suppress(FileError, OSError):
                return driven_calls(LoadedCase(folder / CASE_FILE, folder, older.case))
        return ()

    def holds(self, case_id: str, name: str, content: bytes) -> bool:
        """Say whether the file `name` beside a case has this content there."""
        older = self.cases.get(case_id)
        stored = None if older is None else self.files.get((older.folder / name).as_posix())
        return stored is not None and stored.holds(content)


def reply_files(case: RegressionCase) -> tuple[str, ...]:
    """Return the names of the files beside a case from which replies are taken, before the fault and after it."""
    replies = case.replies
    before = TRANSCRIPT if replies is None or replies.source == "transcript" else replies.file
    after = replies.after_fault if replies is not None else None
    return tuple(_safe(each for each in (before, after) if each is not None))


def older_version(project: Project, revision: Revision) -> OlderVersion:
    """Read the cases, simulations and rules of `project` as `revision` has them.

    Cases are those in the folders that were configured then: one is gone also where its folder is no longer
    configured.

    Raises:
        UsageRefused: git cannot list or read them.
    """
    unread: list[str] = []
    root = _root_then(project, revision)
    listed = _listed(root, revision, (project.config,))
    pyproject = revision.inside(root / _PYPROJECT)
    config = _config(revision, pyproject, listed, unread)
    if config is not None and (config.cases, config.fixtures) != (project.config.cases, project.config.fixtures):
        listed = _listed(root, revision, (config, project.config))
    folders = {
        kind: {revision.inside(root / each) for each in names}
        for kind, names in (("cases", (config or project.config).cases), ("fixtures", _fixtures(project, config)))
    }
    named = {
        kind: {name: file for name, file in listed.items() if _is_in(PurePosixPath(name), folders[kind], kind)}
        for kind in folders
    }
    contents = revision.read({**named["cases"], **named["fixtures"]}, limit_bytes=TOML_LIMIT_BYTES)
    cases: dict[str, OlderCase] = {}
    for name in sorted(named["cases"].keys() & contents):
        case = _case(revision, name, contents[name], unread)
        folder = PurePosixPath(name).parent
        if case is not None:
            cases.setdefault(case.id or folder.name, OlderCase(case, folder))
    simulations: dict[str, str] = {}
    for name in sorted(named["fixtures"].keys() & contents):
        toml = _toml(revision, name, contents[name], unread)
        if toml is not None and isinstance(toml.data.get("id"), str):
            simulations.setdefault(toml.data["id"], digest_of(toml.data))
    return OlderVersion(revision, config, cases, simulations, listed, tuple(unread))


def _root_then(project: Project, revision: Revision) -> Path:
    """Return where the project lay then: a folder that was moved since takes nothing out of the comparison.

    It is looked for where this one has no configuration there: one of those that are no longer configured now.
    """
    here = revision.inside(project.root / _PYPROJECT)
    if here is None or here in revision.files([here]):
        return project.root
    there = {name: each for name, each in revision.files(["."]).items() if PurePosixPath(name).name == _PYPROJECT}
    for name, content in sorted(revision.read(there, limit_bytes=TOML_LIMIT_BYTES).items()):
        now = revision.top / name
        if _configures(content) and not (now.is_file() and _configures(now.read_bytes())):
            return now.parent
    return project.root


def _configures(content: bytes) -> bool:
    try:
        return "regcase" in tomllib.loads(content.decode()).get("tool", {})
    except (ValueError, RecursionError):
        return False


def _fixtures(project: Project, config: RegcaseConfig | None) -> tuple[str, ...]:
    return (*(config.fixtures if config is not None else ()), *project.config.fixtures)


def _listed(root: Path, revision: Revision, configs: Iterable[RegcaseConfig]) -> Mapping[str, StoredFile]:
    """Return the files that may matter: the configuration, and all below the folders of cases and fixtures."""
    places = [_PYPROJECT, *(each for config in configs for each in (*config.cases, *config.fixtures))]
    names = (revision.inside(root / each) for each in places)
    return revision.files(frozenset(each for each in names if each is not None))


def _config(
    revision: Revision, name: str | None, files: Mapping[str, StoredFile], unread: list[str]
) -> RegcaseConfig | None:
    if name is None or name not in files:
        return RegcaseConfig()
    content = revision.read({name: files[name]}, limit_bytes=TOML_LIMIT_BYTES).get(name, b"")
    toml = _toml(revision, name, content, unread)
    if toml is None:
        return None
    try:
        return read_config(toml)
    except FileError as error:
        unread += error.problems
        return None


def _case(revision: Revision, name: str, content: bytes, unread: list[str]) -> RegressionCase | None:
    toml = _toml(revision, name, content, unread)
    if toml is None:
        return None
    try:
        return validate(RegressionCase, toml)
    except FileError as error:
        unread += error.problems
        return None


def _toml(revision: Revision, name: str, content: bytes, unread: list[str]) -> TomlFile | None:
    try:
        return parse_toml(Path(f"{revision.name}:{name}"), content)
    except FileError as error:
        unread += error.problems
        return None


def _is_in(name: PurePosixPath, folders: Iterable[str | None], kind: str) -> bool:
    """Say whether a file is a case or simulation of one of the folders, as they are found on disk."""
    for folder in folders:
        place = PurePosixPath(folder) if folder is not None else None
        if place is None:
            continue
        if kind == "fixtures":
            if name.suffix == ".toml" and name.parent == place:
                return True
        elif (
            name.name == CASE_FILE
            and place in (name.parent, name.parent.parent)
            and not name.parent.name.startswith(".")
        ):
            return True
    return False


def _safe(names: Iterable[str]) -> Iterator[str]:
    return (
        each for each in names if not PurePosixPath(each).is_absolute() and ".." not in PurePosixPath(each).parts
    )
