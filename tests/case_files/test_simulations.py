from pathlib import Path

import pytest

from pytest_regcase.case_files import (
    LoadedSimulation,
    find_simulation,
    load_simulation,
    load_simulations,
    simulations,
)
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import FileError, UnknownName

SIMULATION = """\
schema = 1
id = "stall-v1"
hypothesis = "deadline"
title = "the supplier never answers"

[fault]
kind = "no_answer"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a fixture folder, and an empty built-in catalogue."""
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "built-in").mkdir()
    monkeypatch.setattr(simulations, "built_in_folder", lambda: tmp_path / "built-in")
    return Project(root=tmp_path, config=RegcaseConfig())


def write(folder: Path, text: str = SIMULATION, name: str = "stall-v1") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def problem(path: Path) -> str:
    with pytest.raises(FileError) as caught:
        load_simulation(path)
    (found,) = caught.value.problems
    return found.replace(str(path), "s.toml")


def test_built_in_and_own_simulations_by_id(project: Project) -> None:
    write(project.root / "built-in")
    own = write(project.root / "fixtures", SIMULATION.replace("stall-v1", "another"), "another")
    found = load_simulations(project)
    assert list(found) == ["another", "stall-v1"]
    assert isinstance(found["another"], LoadedSimulation)
    assert found["another"].path == own
    assert found["stall-v1"].simulation.cause_status == "hypothesized"
    assert found["stall-v1"].simulation.unresolved_questions == ("this fixture tests one hypothesis only",)


def test_one_id_with_two_contents_shows_both_paths(project: Project) -> None:
    first = write(project.root / "built-in")
    write(project.root / "fixtures", "# the same content\n" + SIMULATION)
    assert load_simulations(project)["stall-v1"].path == first
    second = write(project.root / "fixtures", SIMULATION.replace("never answers", "answers late"))
    with pytest.raises(FileError) as caught:
        load_simulations(project)
    assert str(first) in caught.value.text
    assert caught.value.text.startswith(f"{second}: ")


def test_every_key_but_no_comment_is_in_the_digest(project: Project) -> None:
    folder = project.root / "fixtures"
    one = load_simulation(write(folder)).digest
    assert load_simulation(write(folder, "# why\n" + SIMULATION)).digest == one
    assert load_simulation(write(folder, SIMULATION + "lasts = 2\n")).digest != one


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("stall-v1", "stall-v2", 's.toml:2: id = "stall-v2"; allowed: "stall-v1", the name of the file'),
        ("no_answer", "no_anser", 's.toml:7: fault.kind = "no_anser"; allowed: '),
        ('"no_answer"', '"no_answer"\nat = 0', "s.toml:8: fault.at = 0; allowed: "),
        ('"no_answer"', '"no_answer"\nat = { request = 0 }', "s.toml:8: fault.at = {'request': 0}; allowed: "),
        ('"no_answer"', '"no_answer"\nat = {}', "s.toml:8: fault.at = {}; allowed: "),
        (
            '"no_answer"',
            '"no_answer"\nat = "now"',
            's.toml:8: fault.at = "now"; allowed: "failing-step" or a whole number or a table',
        ),
        (
            "deadline",
            "dead-line",
            's.toml:3: hypothesis = "dead-line"; allowed: "deadline", "resource-exhaustion"',
        ),
        ("schema = 1\n", "", 's.toml: "schema" is missing; it is required'),
        ("schema = 1", "schema = 9", "s.toml:1: schema = 9 is newer"),
        ("[fault]", 'cause_status = "confirmed"\n[fault]', 's.toml:6: cause_status = "confirmed"; allowed: "hyp'),
        ("[fault]", "[fault]\nkinds = 1", 's.toml:7: unknown key "kinds" in [fault]; did you mean "kind"?'),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in SIMULATION
    assert problem(write(tmp_path, SIMULATION.replace(old, new))).startswith(says)


def test_all_broken_files_are_named_at_once(project: Project) -> None:
    write(project.root / "fixtures", "x = 1\n", "a")
    write(project.root / "fixtures", "y = \n", "b")
    with pytest.raises(FileError) as caught:
        load_simulations(project)
    assert {each.split(":")[0].rsplit("/", 1)[1] for each in caught.value.problems} == {"a.toml", "b.toml"}


def test_the_catalogue_lies_in_the_package_or_beside_it(repository: Path) -> None:
    assert simulations.built_in_folder() in (repository / "fixtures", repository / "pytest_regcase" / "fixtures")


def test_every_built_in_simulation_loads(repository: Path) -> None:
    found = load_simulations(Project(root=repository, config=RegcaseConfig()))
    assert {"deadline", "resource-exhaustion", "auth", "hidden"} <= {
        each.simulation.hypothesis for each in found.values()
    }


def test_one_is_found_by_its_id(project: Project) -> None:
    write(project.root / "fixtures")
    assert find_simulation(project, "stall-v1") == load_simulations(project)["stall-v1"]
    for name in ("nothing-v1", "../fixtures/stall-v1", "", "x" * 5000):
        with pytest.raises(UnknownName, match="`regcase simulations` lists them"):
            find_simulation(project, name)


def test_two_contents_of_one_id_are_refused_there_too(project: Project) -> None:
    write(project.root / "fixtures")
    write(project.root / "built-in")
    assert find_simulation(project, "stall-v1").simulation.id == "stall-v1"
    write(project.root / "built-in", SIMULATION.replace("never answers", "is slow"))
    with pytest.raises(FileError, match="one content an id"):
        find_simulation(project, "stall-v1")
