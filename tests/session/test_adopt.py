"""From a path to a written case: all of it or nothing, never over another one."""

import os
import shutil
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import FileError, ImportRefused, UsageRefused
from pytest_regcase.records.canonical import digest
from pytest_regcase.session import adopt as adopting
from pytest_regcase.session.adopt import adopt
from tests.no_access import forbid_listing

GOLD = Path(__file__).parent.parent / "gold"
FAILED = GOLD / "mini-swe-agent" / "call_failed.traj.json"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(root=tmp_path, config=RegcaseConfig())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with what may be in one, and what may not."""
    folder = tmp_path / "tree"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    (folder / "calc.py").write_text("def add(a, b): return a - b\n")
    (folder / "src" / "run.sh").write_text("#!/bin/sh\n")
    os.chmod(folder / "src" / "run.sh", 0o755)
    (folder / "src" / "link").symlink_to("run.sh")
    (folder / "src" / "linked").symlink_to("../src")
    return folder


def everything_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_written_case_loads_and_is_what_was_returned(project: Project) -> None:
    adopted = adopt(project, FAILED, owner="me", case_id="trial-37", title="no answer at step 3")
    assert adopted.folder == project.root / "cases" / "trial-37"
    loaded = load_case(adopted.folder)
    assert loaded.case.observation == adopted.case.observation
    assert loaded.case.title == "no answer at step 3"
    assert loaded.case.handover is not None
    assert loaded.case.handover.owner == "me"
    assert len(loaded.reply_lines()) == 6
    assert loaded.task_text() == "add() in calc.py subtracts"
    assert loaded.work_tree() is None
    assert adopted.written[0].name == "case.toml"
    assert all(path.is_file() for path in adopted.written)
    assert loaded.case.observation.source_digests == {FAILED.name: digest(FAILED.read_bytes())}
    assert any("tool calls" in sentence for sentence in adopted.warnings)
    assert any("--work-tree" in sentence for sentence in adopted.warnings)


def test_the_same_source_gives_the_same_bytes(project: Project, tmp_path: Path) -> None:
    first = adopt(project, FAILED, owner="me", case_id="one", cases=tmp_path / "a")
    second = adopt(project, FAILED, owner="me", case_id="one", cases=tmp_path / "b")
    assert [path.read_bytes() for path in first.written] == [path.read_bytes() for path in second.written]


def test_a_work_tree_is_copied_as_plain_files(project: Project, tree: Path) -> None:
    adopted = adopt(project, FAILED, owner="me", case_id="one", work_tree=tree)
    copied = adopted.folder / "recorded" / "work_tree"
    assert everything_below(copied) == ["calc.py", "src", "src/run.sh"]
    assert os.access(copied / "src" / "run.sh", os.X_OK)
    assert not os.access(copied / "calc.py", os.X_OK)
    assert load_case(adopted.folder).work_tree() == copied
    assert "2 links and special files of the work tree are left out" in adopted.warnings
    assert not any("work_tree" in name for name in adopted.case.observation.recorded)


def test_a_taken_id_is_refused_with_a_free_one(project: Project) -> None:
    adopt(project, FAILED, owner="me", case_id="one")
    before = (project.root / "cases" / "one" / "case.toml").read_bytes()
    adopt(project, FAILED, owner="me", case_id="one-2")
    with pytest.raises(UsageRefused, match="--id one-3") as caught:
        adopt(project, FAILED, owner="someone else", case_id="one")
    assert caught.value.slug == "id-taken"
    assert (project.root / "cases" / "one" / "case.toml").read_bytes() == before


def test_the_same_trial_twice_is_noticed(project: Project) -> None:
    adopt(project, FAILED, owner="me")
    with pytest.raises(UsageRefused, match="this very trial"):
        adopt(project, FAILED, owner="me")


@pytest.mark.parametrize("case_id", ["", "Upper", "a/b", "../x", "-x", "a.b", "x" * 101, "ä"])
def test_an_id_that_is_none_is_refused(project: Project, case_id: str) -> None:
    with pytest.raises(UsageRefused, match="lower-case"):
        adopt(project, FAILED, owner="me", case_id=case_id)


@pytest.mark.parametrize("problem", ["absent", "empty", "large", "crowded", "secret"])
def test_nothing_is_written_when_the_work_tree_cannot_be_taken(
    project: Project, tree: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    if problem == "absent":
        shutil.rmtree(tree)
    elif problem == "empty":
        shutil.rmtree(tree)
        tree.mkdir()
    elif problem == "large":
        monkeypatch.setattr(adopting, "WORK_TREE_LIMIT_BYTES", 10)
    elif problem == "crowded":
        monkeypatch.setattr(adopting, "WORK_TREE_LIMIT_FILES", 1)
    else:
        (tree / ".env").write_text("OPENAI_API_KEY=" + "sk-" + "a1B2" * 8)
    with pytest.raises(UsageRefused) as caught:
        adopt(project, FAILED, owner="me", work_tree=tree)
    assert "a1B2" not in caught.value.text
    assert not (project.root / "cases").exists()


def test_home_paths_in_a_work_tree_are_no_secrets(project: Project, tree: Path) -> None:
    (tree / "notes").write_text("see /home/alice/x, mail ada@mail.corp.io")
    assert adopt(project, FAILED, owner="me", work_tree=tree).folder.is_dir()


def test_a_refused_trial_writes_nothing(project: Project) -> None:
    with pytest.raises(ImportRefused):
        adopt(project, GOLD / "mini-swe-agent" / "submitted.traj.json", owner="me")
    assert not (project.root / "cases").exists()


def test_a_persons_word_is_recorded_as_one(project: Project) -> None:
    adopted = adopt(project, GOLD / "mini-swe-agent" / "submitted.traj.json", owner="me", outcome="failed")
    seen = load_case(adopted.folder).case.observation
    assert (seen.outcome, seen.outcome_from, seen.termination) == ("failed", "person", "finished")
    assert seen.symptom.endswith("a person says that it failed")


def test_a_persons_word_against_the_log_keeps_the_logs_label(project: Project) -> None:
    adopted = adopt(project, GOLD / "inspect" / "sweep.eval", owner="me", outcome="failed", sample="good")
    seen = adopted.case.observation
    assert (seen.outcome, seen.outcome_from) == ("failed", "person")
    assert "inspect:score:includes=C" in seen.labels
    assert any("against" in sentence for sentence in adopted.warnings)


def test_a_persons_word_on_a_log_that_says_failed_too_changes_nothing(project: Project) -> None:
    adopted = adopt(project, GOLD / "inspect" / "limit.eval", owner="me", outcome="failed")
    assert (adopted.case.observation.outcome, adopted.case.observation.outcome_from) == ("failed", "log")


def test_redactions_count_what_was_written(project: Project, tmp_path: Path) -> None:
    key = "sk-" + "a1B2" * 8
    source = tmp_path / "x.json"
    source.write_text(
        FAILED.read_text()
        .replace("Look first.", f"Look first. {key}")
        .replace("no answer within 3 s", f"no answer in /home/alice/x {key}")
    )
    adopted = adopt(project, source, owner="me", case_id="one", title=f"leaks {key}")
    written = "".join(path.read_text() for path in adopted.written)
    assert key not in written
    assert "alice" not in written
    assert adopted.redactions == {"api_key": 2, "home_path": 1}
    assert written.count("REDACTED-api-key-1") == 3  # the title is a person's and not in the observation's counts
    assert any("placeholder" in sentence for sentence in adopted.warnings)


def test_a_disk_that_fails_leaves_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise FileError(["no"])

    monkeypatch.setattr(adopting, "write_new_case", full)
    with pytest.raises(FileError):
        adopt(project, FAILED, owner="me")
    assert not (project.root / "cases").exists()


def test_a_name_that_is_a_secret_is_no_file_of_a_work_tree(project: Project, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ("sk-" + "proj-" + "Ab3" * 12)).write_bytes(b"\0")
    with pytest.raises(UsageRefused, match="holds what looks like a secret") as caught:
        adopt(project, FAILED, owner="me", work_tree=tmp_path / "tree")
    assert "Ab3" not in caught.value.text


def test_a_source_whose_name_is_not_utf_8_is_read(project: Project, tmp_path: Path) -> None:
    source = tmp_path / "t\udcff.traj.json"
    shutil.copy(FAILED, source)
    adopted = adopt(project, source, owner="me")
    (name,) = load_case(adopted.folder).case.observation.source_digests
    assert name == "t\ufffd.traj.json"


def test_a_work_tree_is_taken_whole_or_not_at_all(
    project: Project, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_listing(monkeypatch, tree / "src")
    with pytest.raises(UsageRefused, match=r"Couldn't take the work tree .*: permission denied: .*src\."):
        adopt(project, FAILED, owner="me", work_tree=tree)
    assert not (project.root / "cases").exists()
