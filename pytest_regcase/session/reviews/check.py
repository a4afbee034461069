"""Checks the files of a project as a reviewer would: by themselves, and against an older revision.

Reads files, git and, where its file is at hand, the ledger; runs no case, writes nothing, never prints. What is
wrong is for the rules in lint to say.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from pytest_regcase.case_files import (
    CASE_FILE,
    LoadedCase,
    LoadedSimulation,
    built_in_folder,
    check_case,
    duplicate_ids,
    find_case,
    find_case_files,
    load_simulation,
    load_simulations,
)
from pytest_regcase.case_files.recorded import RECORDED_LIMIT_BYTES
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import FileError, LedgerError, SealError, UsageRefused
from pytest_regcase.lint.case_rules import case_problems, handover_problems
from pytest_regcase.lint.codes import CodeName, Found, LintRow
from pytest_regcase.lint.loosened import loosened_problems
from pytest_regcase.lint.loosened_config import config_problems
from pytest_regcase.records.case import RerunRule
from pytest_regcase.records.words import HypothesisClass
from pytest_regcase.session.reviews.case_calls import DrivenCall, driven_calls
from pytest_regcase.session.reviews.catalogue import entry_of
from pytest_regcase.session.reviews.older_version import OlderVersion, older_version, reply_files
from pytest_regcase.session.revisions.git_revision import last_commit, open_revision
from pytest_regcase.toml_lines import TomlFile, read_bounded, read_toml, shown

_PLACE: Final = re.compile(r"(?P<file>.+?):(?:(?P<line>\d+):)? (?P<says>.*)", re.DOTALL)
_STAND_IN: Final = "not written"
_LONGEST_CALL: Final = 160


@dataclass(frozen=True)
class Checked:
    """What was looked at, and what was found."""

    rows: tuple[LintRow, ...]
    """By file and line."""
    cases: int
    simulations: int
    against: str | None = None
    """The revision that was read, in words."""

    @property
    def red(self) -> int:
        """How many rows make the check fail."""
        return sum(each.red for each in self.rows)


@dataclass(frozen=True)
class _ReadCase:
    """A case file as far as it could be read."""

    path: Path
    toml: TomlFile | None
    loaded: LoadedCase | None

    @property
    def id(self) -> str:
        if self.loaded is not None:
            return self.loaded.id
        found = self.toml.data.get("id") if self.toml is not None else None
        return found if isinstance(found, str) else self.path.parent.name

    def row(self, found: Found) -> LintRow:
        line = self.toml.places().line(found.key) if self.toml is not None else None
        return LintRow(found.code, found.text, shown(self.path), line, self.id)


def check_project(
    project: Project, names: Sequence[str] = (), *, against: str | None = None, today: date | None = None
) -> Checked:
    """Check the cases of `project` (or those that `names` say: files, folders, ids) and its simulations.

    With `against`, a git revision, the whole project is compared with it too: what is looser now is found unless
    an amendment since then names it. Without it, only calls that new replies drive are told from those of the last
    commit. The date of today is that of UTC.

    Raises:
        UnknownName: a name means no case.
        UsageRefused: both names and a revision are given, or git cannot tell the revision.
        FileError: a folder of cases cannot be listed.
    """
    if names and against is not None:
        raise UsageRefused(
            "Couldn't compare single cases with a revision: a case that is gone has no path.\n"
            "Leave the paths out; --against compares the whole project."
        )
    revision = open_revision(project.root, against) if against is not None else None
    older = older_version(project, revision) if revision is not None else _last_version(project)
    rows: list[LintRow] = []
    simulations = _simulations(project, rows)
    cases = [_read_case(path, rows) for path in _case_paths(project, names)]
    classes: dict[str, HypothesisClass] = {name: each.simulation.hypothesis for name, each in simulations.items()}
    day = today if today is not None else datetime.now(UTC).date()
    for each in cases:
        if each.loaded is not None:
            rows += map(each.row, case_problems(each.loaded.case, today=day, simulations=classes))
    for error in duplicate_ids([each.loaded for each in cases if each.loaded is not None]):
        rows += (_row("duplicate-id", problem) for problem in error.problems)
    rows += _changed_since_counted(project, simulations)
    if older is not None:
        if revision is not None:
            rows += _compared(project, older, cases, simulations)
        rows += _new_calls(older, cases)
    return Checked(
        rows=tuple(sorted(set(rows), key=lambda each: (each.file or "", each.line or 0, each.code, each.text))),
        cases=len(cases),
        simulations=len(simulations),
        against=None if revision is None else revision.described,
    )


# reading


def _case_paths(project: Project, names: Sequence[str]) -> list[Path]:
    if not names:
        return find_case_files(project.case_folders)
    fixtures = {each.resolve() for each in project.fixture_folders}
    found: dict[Path, Path] = {}
    for name in names:
        path = Path(name)
        below = find_case_files([path]) if path.is_dir() else []
        if not below and path.is_file() and path.resolve().parent in fixtures:
            continue  # simulations are all looked at anyway
        for each in below or [find_case(project.case_folders, name)]:
            found.setdefault(each.resolve(), each)
    return sorted(found.values())


def _read_case(path: Path, rows: list[LintRow]) -> _ReadCase:
    try:
        toml = read_toml(path)
    except FileError as error:
        rows += (_row("invalid-file", each, path, path.parent.name) for each in error.problems)
        return _ReadCase(path, None, None)
    read = _ReadCase(path, toml, None)
    missing = list(handover_problems(toml.data))
    rows += map(read.row, missing)
    try:
        read = replace(read, loaded=check_case(_with_handover(toml, missing)))
    except FileError as error:
        code: CodeName = "broken-seal" if isinstance(error, SealError) else "invalid-file"
        rows += (_row(code, each, path, read.id) for each in error.problems)
    return read


def _with_handover(toml: TomlFile, missing: Sequence[Found]) -> TomlFile:
    """Put something where the handover says nothing: that is told already, and the rest is to be read too."""
    if not missing:
        return toml
    handover = {**toml.data.get("handover", {}), **{str(each.key[1]): _STAND_IN for each in missing}}
    return TomlFile(toml.path, {**toml.data, "handover": handover}, toml.text)


def _simulations(project: Project, rows: list[LintRow]) -> dict[str, LoadedSimulation]:
    try:
        found = load_simulations(project)
    except FileError as error:
        rows += (_row("invalid-file", each) for each in error.problems)
        found = {}
        for folder in (built_in_folder(), *project.fixture_folders):
            for path in sorted(folder.glob("*.toml")):
                with suppress(FileError):
                    loaded = load_simulation(path)
                    found.setdefault(loaded.simulation.id, loaded)
    own = {each.resolve() for each in project.fixture_folders}
    for loaded in found.values():
        if loaded.path.resolve().parent in own:
            try:
                entry_of(loaded.simulation)
            except FileError as error:
                rows += (_row("invalid-file", each, loaded.path) for each in error.problems)
    return found


def _row(code: CodeName, problem: str, path: Path | None = None, case_id: str | None = None) -> LintRow:
    """Take a line of an error apart: ``file:line: says``; where it names no file, it is about `path`."""
    own = shown(path) if path is not None else None
    place = _PLACE.fullmatch(problem)
    if place is None or not (place["line"] or place["file"] == own or "/" in place["file"]):
        return LintRow(code, problem, own, None, case_id)
    return LintRow(code, place["says"], place["file"], int(place["line"]) if place["line"] else None, case_id)


def _last_version(project: Project) -> OlderVersion | None:
    commit = last_commit(project.root)
    if commit is None:
        return None
    try:
        return older_version(project, commit)
    except UsageRefused:
        return None


# rules that need more than one file


def _changed_since_counted(project: Project, simulations: Mapping[str, LoadedSimulation]) -> Iterator[LintRow]:
    """Compare with what the ledger's attempts were made with. Only a ledger's file is looked at, no server."""
    url = project.ledger_url()
    if not url.startswith("sqlite:///") or not Path(url.removeprefix("sqlite:///")).is_file():
        return
    from pytest_regcase.ledger.store import Ledger

    try:
        with Ledger.open(url) as ledger:
            counted = ledger.simulation_digests()
    except LedgerError as error:
        yield LintRow("not-compared", f"simulations with the ledger: {error.text.splitlines()[0]}")
        return
    for name, digests in sorted(counted.items()):
        now = simulations.get(name)
        if now is not None and now.digest not in digests:
            yield LintRow(
                "simulation-changed",
                f'the attempts of "{name}" in the ledger were made with other content; take the edit back, or give'
                " it a new id (and its file the same name)",
                shown(now.path),
            )


def _compared(
    project: Project,
    older: OlderVersion,
    cases: Sequence[_ReadCase],
    simulations: Mapping[str, LoadedSimulation],
) -> Iterator[LintRow]:
    name = older.revision.name
    yield from (_row("not-compared", f"{each} (nothing was compared with it)") for each in older.unread)
    then = older.config if older.config is not None else project.config
    pyproject = read_toml(project.pyproject) if project.pyproject is not None else None
    for found in config_problems(then, project.config):
        line = pyproject.places().line(found.key) if pyproject is not None else None
        yield LintRow(found.code, found.text, shown(project.pyproject or project.root / "pyproject.toml"), line)
    configured = (_rule(then), _rule(project.config))
    now = {each.id: each for each in cases}
    for case_id, old in older.cases.items():
        each = now.get(case_id)
        if each is None:
            text = (
                f"the case is gone since {name}; bring it back. One that is out of service stays as a file, after"
                f" `regcase retire {case_id}`"
            )
            yield LintRow("case-removed", text, shown(older.revision.top / old.folder / CASE_FILE), None, case_id)
        elif each.loaded is not None:
            yield from map(each.row, loosened_problems(old.case, each.loaded.case, configured=configured))
    for simulation_id, digest in older.simulations.items():
        found_now = simulations.get(simulation_id)
        if found_now is not None and found_now.digest != digest:
            text = (
                f'"{simulation_id}" is another simulation than at {name}; take the edit back, or give it a new id'
                " (and its file the same name), so that no count mixes the two"
            )
            yield LintRow("simulation-changed", text, shown(found_now.path))


def _rule(config: RegcaseConfig) -> RerunRule:
    return RerunRule(max_failure_rate=config.max_failure_rate, risk=config.risk)


def _new_calls(older: OlderVersion, cases: Sequence[_ReadCase]) -> Iterator[LintRow]:
    """Yield each call of replies that differ from the older version, unless it was driven there too."""
    for each in cases:
        loaded = each.loaded
        if loaded is None or loaded.case.passes_through:
            continue
        names = [name for name in reply_files(loaded.case) if (loaded.folder / name).is_file()]
        if all(older.holds(each.id, name, _content(loaded.folder / name)) for name in names):
            continue
        known = Counter(map(_driven, older.calls(each.id)))
        for call in driven_calls(loaded):
            if known[_driven(call)]:
                known[_driven(call)] -= 1
                continue
            name = names[-1] if call.after_fault else names[0]
            yield LintRow("call-to-review", _call(call, each.id), shown(loaded.folder / name), None, each.id)
        gone = known.total()
        if gone and names:
            calls, are = ("call", "is") if gone == 1 else ("calls", "are")
            text = f"{gone} {calls} that {older.revision.name} drove {are} gone"
            yield LintRow("call-to-review", text, shown(loaded.folder / names[0]), None, each.id)


def _driven(call: DrivenCall) -> tuple[object, ...]:
    return call.after_fault, call.kind, call.name, call.arguments


def _call(call: DrivenCall, case_id: str) -> str:
    what = call.name if call.kind == "call" else "text with commands"
    shown_arguments = " ".join(call.arguments.split())
    if len(shown_arguments) > _LONGEST_CALL:
        more = len(shown_arguments) - _LONGEST_CALL
        shown_arguments = f"{shown_arguments[:_LONGEST_CALL]}... ({more} more: `regcase show {case_id} --calls`)"
    where = "after the fault, reply" if call.after_fault else "step"
    notes = "".join(f"; it {note}" for note in call.notes)
    return f"{where} {call.step} drives {what}: {shown_arguments}{notes}"


def _content(path: Path) -> bytes:
    return read_bounded(path, RECORDED_LIMIT_BYTES)
