import errno
import math
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, new_case_text, seal_case, write_new_case
from pytest_regcase.errors import FileError, UsageRefused, WriteError
from pytest_regcase.records.canonical import digest
from pytest_regcase.records.case import RegressionCase
from tests.case_files.conftest import MINIMUM, WriteCase

TRANSCRIPT = b'{"role": "user", "text": "do it"}\n{"role": "assistant", "text": "done"}\n'
FILES = {
    "recorded/transcript.jsonl": TRANSCRIPT,
    "recorded/task.txt": b"do it\n",
    "recorded/work_tree/run": b"#!\n",
}


def case(**more: object) -> RegressionCase:
    fields: dict[str, object] = {
        "id": "trial-37",
        "title": "no answer from step 2 on",
        "observation": {
            "symptom": "stopped",
            "source_event": "sweep/37",
            "cause_status": "unknown",
            "observed_at": datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC),
            "failing_step": 2,
            "error": {"type": "APITimeoutError"},
            "labels": ["infra:x"],
            "conditions": {"limits": {"steps": 40, "cost": None}, "concurrency": 4, "odd": [1, None]},
            "redactions": {"api_key": 2},
        },
        "unresolved_questions": ["why?"],
        "task": {"text_file": "recorded/task.txt", "work_tree": "recorded/work_tree"},
        "hypotheses": [{"id": "deadline", "simulations": ["deadline-no-answer-v1"]}],
        "handover": {"owner": "oncall", "next_decision": "look"},
    }
    return RegressionCase.model_validate(fields | more)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    paths = write_new_case(tmp_path / "cases" / "trial-37", case(), FILES, executable=["recorded/work_tree/run"])
    assert paths[0] == tmp_path / "cases/trial-37/case.toml"
    assert sorted(each.relative_to(paths[0].parent).as_posix() for each in paths[1:]) == sorted(FILES)
    loaded = load_case(paths[0])
    assert loaded.case.title == "no answer from step 2 on"
    assert loaded.case.hypotheses == case().hypotheses
    assert loaded.case.observation.recorded == {
        name: digest(FILES[name]) for name in ("recorded/transcript.jsonl", "recorded/task.txt")
    }
    assert loaded.case.observation.conditions == {"limits": {"steps": 40}, "concurrency": 4, "odd": "[1, null]"}
    assert [line.step for line in loaded.reply_lines()] == [0, 1]
    tree = loaded.work_tree()
    assert tree is not None
    assert stat.S_IMODE((tree / "run").stat().st_mode) & 0o100
    assert [each.name for each in (tmp_path / "cases").iterdir()] == ["trial-37"]


def test_the_file_reads_well_from_its_top() -> None:
    text = new_case_text(case())
    assert text.startswith("#:schema ../../regcase-case.schema.json\n# A regression case.")
    order = ["schema = 1", "id =", "title =", "agent =", "unresolved_questions", "[observation]"]
    order += ["[observation.error]", "[task]", "[[hypotheses]]", "[expected_recovery]"]
    order += ["[expected_recovery.when.auth]", "[handover]"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert max(len(line) for line in text.splitlines()) <= 115


def test_an_absent_value_is_absent(tmp_path: Path) -> None:
    plain = case(
        observation={"symptom": "s", "source_event": "e"}, task=None, hypotheses=[], unresolved_questions=[]
    )
    text = new_case_text(plain)
    for key in ("outcome", "termination", "error", "harness", "task", "baseline", "hypotheses", "unresolved"):
        assert key not in text
    (path,) = write_new_case(tmp_path / "trial-37", plain, {})
    assert load_case(path).case.observation.outcome is None


def test_a_number_that_is_none_leaves_no_key() -> None:
    observation = {"symptom": "s", "source_event": "e", "conditions": {"temperature": math.nan, "top_p": 1.0}}
    text = new_case_text(case(observation=observation))
    assert "top_p = 1.0" in text
    assert "temperature" not in text


def test_an_empty_set_of_tighter_classes_stays_empty(tmp_path: Path) -> None:
    (path,) = write_new_case(tmp_path / "a", case(expected_recovery={"when": {}}, task=None), {})
    assert load_case(path).case.expected_recovery.when == {}


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    (tmp_path / "trial-37").mkdir()
    with pytest.raises(UsageRefused, match="it exists already"):
        write_new_case(tmp_path / "trial-37", case(), FILES)
    assert list((tmp_path / "trial-37").iterdir()) == []


@pytest.mark.parametrize("absent", ["id", "title", "handover"])
def test_a_file_asks_for_what_python_need_not(tmp_path: Path, absent: str) -> None:
    with pytest.raises(UsageRefused, match=f"it has no {absent}"):
        write_new_case(tmp_path / "a", case(**{absent: None}), FILES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"../out.txt": b""}, "leaves the case's folder"),
        (
            FILES | {"recorded/transcript.jsonl": b"no json\n"},
            r"/a/recorded/transcript\.jsonl:1: is not a JSON object",
        ),
        ({}, '"recorded/task.txt" is not beside the case file'),
    ],
)
def test_a_refused_case_leaves_nothing_behind(tmp_path: Path, files: dict[str, bytes], says: str) -> None:
    with pytest.raises(FileError, match=says):
        write_new_case(tmp_path / "cases" / "a", case(), files)
    assert list((tmp_path / "cases").iterdir()) == []


def test_a_digest_that_the_case_states_must_fit(tmp_path: Path) -> None:
    observation = {"symptom": "s", "source_event": "e", "recorded": {"recorded/task.txt": "sha256:" + "0" * 64}}
    with pytest.raises(UsageRefused, match="states the digest"):
        write_new_case(tmp_path / "a", case(observation=observation), FILES)


def test_a_case_by_hand_is_as_valid_as_a_written_one(write_case: WriteCase, tmp_path: Path) -> None:
    by_hand = load_case(write_case())
    (path,) = write_new_case(tmp_path / "written", by_hand.case.model_copy(update={"seal": None}), {})
    written = load_case(path)
    assert written.case == by_hand.case
    assert written.digest_for("auth", "simulation") == by_hand.digest_for("auth", "simulation")
    assert not seal_case(path).changed
    assert MINIMUM in by_hand.path.read_text()


def test_a_folder_that_cannot_be_made_is_said_and_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"Couldn't write .*/file/cases/one: not a directory\."):
        write_new_case(tmp_path / "file" / "cases" / "one", case(), FILES)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=r"Couldn't write .*cases/one: no space left on device\.") as caught:
        write_new_case(tmp_path / "cases" / "one", case(), FILES)
    assert ".tmp" not in caught.value.text
    assert list((tmp_path / "cases").iterdir()) == []


def test_numbers_beyond_those_of_toml_are_written_as_text(tmp_path: Path) -> None:
    made = case()
    observation = made.observation.model_copy(update={"conditions": {"limit": 2**64, "all": [1, -(2**64)]}})
    write_new_case(tmp_path / "one", made.model_copy(update={"observation": observation}), FILES)
    read = load_case(tmp_path / "one").case.observation.conditions
    assert read == {"limit": str(2**64), "all": [1, str(-(2**64))]}
