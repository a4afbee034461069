"""Reads simulation files: the built-in catalogue, and a project's own.

Knows which faults are registered by name; imports none of them, and does not know what their settings mean.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_regcase.case_files.loading import check_version
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError, UnknownName, did_you_mean
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.registry import names
from pytest_regcase.toml_lines import TomlFile, at_line, read_toml, shown, validate


@dataclass(frozen=True)
class LoadedSimulation:
    """A simulation, where it was read, and the digest that its attempts are counted under."""

    path: Path
    simulation: Simulation
    digest: str


def load_simulations(project: Project) -> dict[str, LoadedSimulation]:
    """Return the built-in simulations and those of the project's fixture folders, by id, sorted.

    Raises:
        FileError: a file holds something that is not allowed, or one id has two contents; both paths are shown.
    """
    found: dict[str, LoadedSimulation] = {}
    problems: list[str] = []
    for folder in (built_in_folder(), *project.fixture_folders):
        for path in sorted(folder.glob("*.toml")):
            try:
                loaded = load_simulation(path)
            except FileError as error:
                problems.extend(each for each in error.problems if each not in problems)
                continue
            other = found.setdefault(loaded.simulation.id, loaded)
            if other.digest != loaded.digest:
                problems.append(
                    at_line(
                        path,
                        None,
                        f'the id "{loaded.simulation.id}" is also that of {shown(other.path)}, with other content;'
                        " allowed: one content an id (a changed simulation is a new version, with a new id)",
                    )
                )
    if problems:
        raise FileError(problems)
    return dict(sorted(found.items()))


def find_simulation(project: Project, name: str) -> LoadedSimulation:
    """Return the simulation with that id: a built-in one, or one of the project's.

    Raises:
        UnknownName: there is none.
        FileError: its file holds something that is not allowed, or the id has two contents.
    """
    folders = {folder.resolve() for folder in (built_in_folder(), *project.fixture_folders)}
    is_id = re.fullmatch("[a-z0-9][a-z0-9-]{0,99}", name) is not None
    paths = [path for folder in folders if is_id and (path := folder / f"{name}.toml").is_file()]
    if len(paths) == 1:
        return load_simulation(paths[0])
    # Reading them all tells two contents of one id apart from two copies.
    known = load_simulations(project) if paths else {}
    if name not in known:
        ids = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
        raise UnknownName(
            f"Couldn't find the simulation {name!r}: no fixture has that id.\n"
            f"{did_you_mean(name, ids)}`regcase simulations` lists them."
        )
    return known[name]


def load_simulation(path: Path) -> LoadedSimulation:
    """Read one simulation file.

    Its digest is that of its canonical JSON: comments and layout do not count, every key does.

    Raises:
        FileError: it holds something that is not allowed; one line a problem, with file and line.
    """
    toml = read_toml(path)
    check_version(toml)
    simulation = validate(Simulation, toml, required=(("schema",),))
    problems = list(_wrong_words(toml, simulation))
    if problems:
        raise FileError(problems)
    return LoadedSimulation(path=path, simulation=simulation, digest=digest_of(toml.data))


def built_in_folder() -> Path:
    """Return the folder of the built-in catalogue: inside the package, or beside it in an editable install."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "fixtures"
    return inside if inside.is_dir() else package.parent / "fixtures"


def _wrong_words(toml: TomlFile, simulation: Simulation) -> Iterator[str]:
    if simulation.id != toml.path.stem:
        yield toml.problem(
            ("id",), f'id = "{simulation.id}"; allowed: "{toml.path.stem}", the name of the file without .toml'
        )
    fault = simulation.fault
    known = names("faults")
    if fault.kind not in known:
        yield toml.problem(
            ("fault", "kind"), f'fault.kind = "{fault.kind}"; allowed: {", ".join(known) or "none"}'
        )
    # A table without its one key is no place at all.
    first = fault.at.get("request", 0) if isinstance(fault.at, dict) else fault.at
    if isinstance(first, int) and first < 1:
        yield toml.problem(
            ("fault", "at"),
            f'fault.at = {fault.at}; allowed: "failing-step", a step from 1, or {{ request = N }} from 1',
        )
