"""Decisions as files: whole, numbered, read-only, never rewritten."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import WriteError
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.version import Decided, Held, RestsOn
from pytest_regcase.session.candidates.decision_files import decision_files, decisions_folder, write_decision_file

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
REVISION = "sha256:" + "abcdef012345" + "6" * 52
DECISION = GateDecision(decision="fail", profile="nightly")
DECIDED = Decided(
    revision=REVISION,
    at=NOW,
    about="candidate",
    digest=digest_of(DECISION.to_plain()),
    decision=DECISION,
    rests_on=RestsOn(sessions=("s1",), held=Held(sessions=1, attempts=3, invalidated=0)),
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, RegcaseConfig.model_validate({}))


def write(project: Project, decided: Decided = DECIDED) -> Path:
    return write_decision_file(project, decided, ledger_id="the-ledger", commit="c0ffee")


def test_the_file_says_all_that_was_decided(project: Project) -> None:
    path = write(project)
    assert path == project.root / ".regcase" / "decisions" / "abcdef012345" / "0001.json"
    assert json.loads(path.read_text()) == {
        "schema": 1,
        "revision": REVISION,
        "commit": "c0ffee",
        "at": "2026-05-20T09:00:00Z",
        "ledger_id": "the-ledger",
        "digest": DECIDED.digest,
        "rests_on": {"sessions": ["s1"], "held": {"sessions": 1, "attempts": 3, "invalidated": 0}},
        "decision": DECISION.to_plain(),
    }
    assert stat.S_IMODE(path.stat().st_mode) & 0o222 == 0
    assert (project.root / ".regcase" / ".gitignore").read_text().endswith("*\n")


def test_a_second_one_is_appended_and_the_first_stays_byte_for_byte(project: Project) -> None:
    first = write(project)
    before = first.read_bytes(), first.stat().st_mtime_ns
    second = write(project, DECIDED.model_copy(update={"at": NOW + timedelta(days=1)}))
    assert second.name == "0002.json"
    assert (first.read_bytes(), first.stat().st_mtime_ns) == before
    assert sorted(each.name for each in first.parent.iterdir()) == ["0001.json", "0002.json"]


def test_the_next_number_is_behind_the_highest_one(project: Project) -> None:
    folder = decisions_folder(project, REVISION)
    folder.mkdir(parents=True)
    for name in ("9999.json", "0002.json", "notes.json", "10001.txt"):
        (folder / name).write_text("{}")
    assert write(project).name == "10000.json"
    assert [each.path.name for each in decision_files(project, REVISION)] == [
        "0002.json",
        "9999.json",
        "10000.json",
    ]


def test_two_gates_at_once_write_two_files(project: Project) -> None:
    with ThreadPoolExecutor(4) as threads:
        paths = list(threads.map(lambda _: write(project), range(8)))
    assert sorted(each.name for each in paths) == [f"{number:04d}.json" for number in range(1, 9)]
    assert all(json.loads(each.read_text())["digest"] == DECIDED.digest for each in paths)


def test_what_was_edited_is_no_longer_the_decision(project: Project) -> None:
    path = write(project)
    (found,) = decision_files(project, REVISION)
    assert found.holds(DECIDED)
    assert not found.holds(DECIDED.model_copy(update={"at": NOW + timedelta(days=1)}))
    path.chmod(0o644)
    path.write_text(path.read_text().replace('"fail"', '"pass"'))
    assert not decision_files(project, REVISION)[0].holds(DECIDED)
    path.write_text("half of a li")
    assert decision_files(project, REVISION)[0].digest is None


def test_a_disk_that_is_full_leaves_no_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=r"Couldn't write the decision into .*: No space left") as error:
        write(project)
    assert "The ledger holds it" in error.value.text
    assert list(decisions_folder(project, REVISION).iterdir()) == []


def test_of_a_revision_without_decisions_there_is_none(project: Project) -> None:
    assert decision_files(project, REVISION) == []
