from pathlib import Path

import pytest

from pytest_regcase.case_files import load_simulations
from pytest_regcase.config import Project, RegcaseConfig, load_project
from pytest_regcase.errors import UnknownName
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.session.attempts.unfinished import attempt_digests, unfinished_record
from pytest_regcase.session.planning import opening
from tests.plugin.gate_project import PYPROJECT, write_case, write_simulation


def _project(folder: Path) -> Project:
    (folder / "pyproject.toml").write_text(PYPROJECT)
    write_simulation(folder, "stall-v1")
    return load_project(folder)


def _open(project: Project, *, live_new: int = 0) -> opening.Opened:
    with Ledger.open(project.ledger_url()) as ledger:
        return opening.open_session(
            project,
            opening.chosen_files(project, None),
            load_simulations(project),
            ledger,
            profile="pull-request",
            live_new=live_new,
            agent=None,
        )


def test_files_are_the_configured_ones_or_those_at_or_below_given_paths(tmp_path: Path) -> None:
    project = _project(tmp_path)
    first = write_case(tmp_path, "case-1", [])
    second = write_case(tmp_path, "case-2", [])
    third = write_case(tmp_path / "elsewhere", "case-3", [])
    assert opening.chosen_files(project, None) == [first, second]
    assert opening.chosen_files(project, [tmp_path]) == [first, second]
    assert opening.chosen_files(project, [second, first.parent]) == [first, second]
    assert opening.chosen_files(project, [tmp_path / "elsewhere" / "cases"]) == [third]
    assert opening.chosen_files(project, [tmp_path / "pyproject.toml", tmp_path / "nothing"]) == []


def test_a_session_plans_every_scenario_and_writes_nothing(tmp_path: Path) -> None:
    project = _project(tmp_path)
    write_case(tmp_path, "case-1", ["stall-v1"])
    opened = _open(project)
    keys = [str(key) for key in opening.session_row(project, opened).planned]
    assert keys == ["case-1::control::check", "case-1::stall-v1::check"]
    assert opened.snapshot.ledger_is_new
    assert set(opened.snapshot.agent_digests) == {"default"}
    assert opened.notices
    assert not opening.sessions_folder(project).exists()


def test_a_worker_plans_the_same_from_the_snapshot(tmp_path: Path) -> None:
    project = _project(tmp_path)
    write_case(tmp_path, "case-1", ["stall-v1"])
    write_case(tmp_path, "case-2", ["no-such-v1"])
    opened = _open(project)
    files = opening.chosen_files(project, None)
    again = opening.plan_entries(project, opening.load_entries(files), load_simulations(project), opened.snapshot)
    assert [(each.path, each.plans, each.problems) for each in again] == [
        (each.path, each.plans, each.problems) for each in opened.entries
    ]


def test_what_does_not_load_or_cannot_be_planned_keeps_its_reasons(tmp_path: Path) -> None:
    project = _project(tmp_path)
    write_case(tmp_path, "case-1", []).write_text("nonsense")
    write_case(tmp_path, "case-2", ["no-such-v1"])
    write_case(tmp_path, "case-3", [])
    broken, unknown, good = _open(project).entries
    assert broken.loaded is None
    assert "case-1/case.toml" in broken.problems[0]
    assert "no-such-v1" in unknown.problems[0]
    assert not unknown.plans
    assert not good.problems


def test_cases_of_one_id_are_all_invalid_and_name_one_another(tmp_path: Path) -> None:
    _project(tmp_path)
    first = write_case(tmp_path, "case-1", [])
    copy = tmp_path / "cases" / "copy" / "case.toml"
    copy.parent.mkdir()
    copy.write_text(first.read_text())
    entries = opening.load_entries([first, copy])
    assert [each.loaded for each in entries] == [None, None]
    assert "copy/case.toml" in entries[0].problems[0]
    assert "case-1/case.toml" in entries[1].problems[0]


def test_session_ids_sort_by_time_and_differ() -> None:
    ids = [opening.new_session_id() for _ in range(50)]
    assert len(set(ids)) == 50
    stamps = [each.split("-")[0] for each in ids]
    assert stamps == sorted(stamps)


def test_an_unfinished_attempt_counts_under_the_digests_of_its_plan(tmp_path: Path) -> None:
    project = _project(tmp_path)
    write_case(tmp_path, "case-1", ["stall-v1"])
    opened = _open(project)
    (entry,) = opened.entries
    assert entry.loaded is not None
    simulation = load_simulations(project)["stall-v1"]
    record = unfinished_record(
        project,
        entry.loaded,
        simulation,
        entry.plans[1],
        opened.snapshot,
        try_number=2,
        why="worker-crashed",
        text="it ended without a word",
    )
    assert record.digests == attempt_digests(project, entry.loaded, simulation, entry.plans[1], opened.snapshot)
    assert (record.verdict, record.reason, record.try_number) == ("inconclusive", "worker-crashed", 2)
    assert record.key == entry.plans[1].key


def test_git_leaves_our_folder_alone_and_a_file_of_the_users_stays(tmp_path: Path) -> None:
    project = Project(root=tmp_path, config=RegcaseConfig())
    folder = opening.sessions_folder(project) / "one"
    opening.make_session_folder(project, folder)
    ignore = tmp_path / ".regcase" / ".gitignore"
    assert folder.is_dir()
    assert ignore.read_text().splitlines()[-1] == "*"
    ignore.write_text("!ledger.sqlite3\n")
    opening.make_session_folder(project, opening.sessions_folder(project) / "two")
    assert ignore.read_text() == "!ledger.sqlite3\n"


def test_live_attempts_on_a_wire_that_nobody_speaks_are_refused(tmp_path: Path) -> None:
    table = "[tool.regcase.upstream]\n"
    (tmp_path / "pyproject.toml").write_text(PYPROJECT.replace(table, table + 'wire = "gemini"\n'))
    project = load_project(tmp_path)
    assert _open(project).entries == ()
    with pytest.raises(UnknownName, match="the wire 'gemini'"):
        _open(project, live_new=1)
