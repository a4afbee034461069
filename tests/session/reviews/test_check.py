"""`regcase check` without a revision: files, the ledger, and what is new since the last commit."""

import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_simulation
from pytest_regcase.config import load_project
from pytest_regcase.errors import UnknownName
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.lint.codes import LintRow
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.session.reviews.check import check_project
from tests.session.reviews.checked_project import (
    CASE_ID,
    append,
    case_path,
    edit,
    few_simulations,
    red,
    rows,
    write_project,
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written")
    write_project(root)
    shutil.rmtree(root / ".git")
    return root


@pytest.fixture
def project(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, in the current folder and in no repository."""
    root = tmp_path / "project"
    shutil.copytree(written, root)
    monkeypatch.chdir(root)
    monkeypatch.delenv("REGCASE_LEDGER", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    few_simulations(root, monkeypatch)
    return root


def only(root: Path) -> LintRow:
    (row,) = rows(root, None)
    return row


def test_a_project_in_order(project: Path) -> None:
    checked = check_project(load_project(project))
    assert (checked.rows, checked.cases, checked.simulations, checked.red) == ((), 1, 2, 0)


def test_an_owner_who_is_not_there_does_not_hide_the_rest(project: Path) -> None:
    edit(case_path(project), 'owner = "eval-oncall"\n', "")
    edit(case_path(project), "no answer from step 2 on", "it was a timeout")
    edit(case_path(project), '"one-v1", "two-v1"', '"one-v1", "three-v1"')
    found = rows(project, None)
    text = case_path(project).read_text()
    lines = {each.code: each.line for each in found}
    assert lines == {
        "cause-asserted": text[: text.index("title =")].count("\n") + 1,
        "unknown-simulation": text[: text.index('"one-v1"')].count("\n") + 1,
        "owner-missing": text[: text.index("[handover]")].count("\n") + 1,
    }
    assert {(each.file, each.case_id) for each in found} == {(f"cases/{CASE_ID}/case.toml", CASE_ID)}


def test_each_problem_of_an_invalid_file_is_a_row(project: Path) -> None:
    edit(case_path(project), "max_retries = 3", "max_retires = 3")
    edit(case_path(project), "failures = 4", "failures = -4")
    first, second = rows(project, None)
    assert (first.code, second.code) == ("invalid-file", "invalid-file")
    assert first.text.startswith("baseline.failures = -4; allowed:")
    assert 'did you mean "max_retries"?' in second.text
    assert (first.line, second.line) == (12, 33)


def test_a_file_that_is_no_toml(project: Path) -> None:
    append(case_path(project), "= 3\n")
    row = only(project)
    assert (row.code, row.file, row.case_id) == ("invalid-file", f"cases/{CASE_ID}/case.toml", CASE_ID)
    assert row.text.startswith("not valid TOML")


def test_a_broken_seal_and_a_changed_recording(project: Path) -> None:
    edit(case_path(project), "stopped responding at step 2", "was slow at step 2")
    assert set(red(project, None)) == {"broken-seal"}


def test_two_cases_of_one_id(project: Path) -> None:
    shutil.copytree(case_path(project).parent, project / "cases" / "copy")
    found = rows(project, None)
    assert [(each.code, each.file) for each in found] == [
        ("duplicate-id", "cases/copy/case.toml"),
        ("duplicate-id", f"cases/{CASE_ID}/case.toml"),
    ]


def test_a_bad_simulation_does_not_make_the_good_ones_unknown(project: Path) -> None:
    path = project / "fixtures" / "three-v1.toml"
    path.write_text((project / "fixtures" / "one-v1.toml").read_text().replace("no_answer", "no_such_fault"))
    found = rows(project, None)
    assert {each.code for each in found} == {"invalid-file"}
    assert {each.file for each in found} == {"fixtures/three-v1.toml"}
    assert len(found) == 2  # the kind, and the id that is not the file's name


def test_a_setting_that_its_fault_has_not(project: Path) -> None:
    append(project / "fixtures" / "one-v1.toml", "\n[fault.settings]\nloudness = 11\n")
    row = only(project)
    assert row.code == "invalid-file"
    assert "loudness" in row.text


def test_a_quarantine_that_ended(project: Path) -> None:
    quarantine = '[quarantine]\nowner = "ada"\nreason = "3 of 20"\nkind = "flaky"\nsince = 2026-05-01\n'
    edit(case_path(project), "[handover]", f"{quarantine}expires = 2026-05-10\n[handover]")
    on_the_day = check_project(load_project(project), today=date(2026, 5, 10))
    assert on_the_day.rows == ()
    after = check_project(load_project(project), today=date(2026, 5, 11))
    assert [each.code for each in after.rows] == ["quarantine-expired"]


def counted(project: Path, digest: str) -> None:
    record = {
        "attempt_id": "a1",
        "session_id": "s1",
        "case_id": CASE_ID,
        "agent": "default",
        "scenario": "one-v1",
        "run": 1,
        "try": 0,
        "planned_total": 1,
        "digests": {"case": "sha256:c", "simulation": digest, "agent": "sha256:a"},
        "started_at": datetime(2026, 5, 1, tzinfo=UTC),
        "verdict": "recovered",
    }
    with Ledger.open(load_project(project).ledger_url()) as ledger:
        ledger.append(AttemptRecord.model_validate(record))


def test_a_simulation_that_changed_since_it_was_counted(project: Path) -> None:
    path = project / "fixtures" / "one-v1.toml"
    (project / ".regcase").mkdir()
    counted(project, load_simulation(path).digest)
    assert rows(project, None) == ()
    append(path, "lasts = 2\n")
    row = only(project)
    assert (row.code, row.file, row.red) == ("simulation-changed", "fixtures/one-v1.toml", True)


def test_no_ledger_is_made_and_a_broken_one_is_said(project: Path) -> None:
    assert rows(project, None) == ()
    assert not (project / ".regcase").exists()
    (project / ".regcase").mkdir()
    (project / ".regcase" / "ledger.sqlite3").write_text("no database at all, and long enough to be looked into")
    row = only(project)
    assert (row.code, row.red) == ("not-compared", False)
    assert row.text.startswith("simulations with the ledger: Couldn't open the ledger")


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        (CASE_ID, 1),
        (f"cases/{CASE_ID}", 1),
        (f"cases/{CASE_ID}/case.toml", 1),
        ("cases", 2),
        ("fixtures/one-v1.toml", 0),
    ],
)
def test_what_is_named_is_checked(project: Path, name: str, cases: int) -> None:
    shutil.copytree(case_path(project).parent, project / "cases" / "other")
    edit(project / "cases" / "other" / "case.toml", f'id = "{CASE_ID}"', 'id = "other"')
    assert check_project(load_project(project), [name]).cases == cases


@pytest.mark.parametrize("name", ["nowhere", "recorded", "fixtures"])
def test_a_name_that_means_no_case(project: Path, name: str) -> None:
    with pytest.raises(UnknownName, match=f"Known: {CASE_ID}"):
        check_project(load_project(project), [name])
