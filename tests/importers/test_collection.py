"""What a folder or a zip of logs holds: unique keys, whole folders, joined reports; a bad log costs no other."""

import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.collection import Entry, collect
from pytest_regcase.importers.source import read_one
from pytest_regcase.records.canonical import digest
from tests.importers.sample_importers import failed, log, sample_importers
from tests.no_access import forbid_listing

GOLD = Path(__file__).parent.parent / "gold"
MINI = GOLD / "mini-swe-agent"

__all__ = ["sample_importers"]
pytestmark = pytest.mark.usefixtures("sample_importers")


def keys(path: Path, **options: Any) -> list[str]:
    with collect(path, **options) as found:
        return [each.key for each in found.entries]


def only(path: Path) -> Entry:
    with collect(path) as found:
        (entry,) = found.entries
        return entry


def test_the_keys_of_one_log_are_its_own(tmp_path: Path) -> None:
    log(tmp_path / "a" / "x", failed("one"), failed("two"))
    assert keys(tmp_path) == keys(tmp_path / "a" / "x") == ["one", "two"]


def test_the_keys_of_a_sweep_name_the_log_and_are_unique(tmp_path: Path) -> None:
    log(tmp_path / "b" / "x", failed("one"), failed("two"))
    log(tmp_path / "a" / "x", failed("one"))
    log(tmp_path / "a" / "y", failed("one"))
    (tmp_path / "notes.txt").write_text("no log")
    found = keys(tmp_path)
    assert found == ["a/x", "a/y", "b/x::one", "b/x::two"]
    assert len(set(found)) == len(found)


def test_names_that_a_terminal_cannot_tell_apart_have_keys_of_their_own(tmp_path: Path) -> None:
    for name in ("a\x01", "a\x02", "a?"):
        log(tmp_path / name, failed())
    assert keys(tmp_path) == ["a?", "a?~2", "a?~3"]


def test_a_name_of_two_lines_is_one_line_wherever_it_is_shown(tmp_path: Path) -> None:
    log(tmp_path / "two\nlines", failed())
    log(tmp_path / "other", failed())
    log(tmp_path / "bro\nken", "BROKEN")
    with collect(tmp_path) as found:
        assert [each.key for each in found.entries] == ["other", "two?lines"]
        (lost,) = found.unreadable
    assert lost.refusal.text.startswith(f"Couldn't import {tmp_path}/bro?ken: its end is broken.\n")


def test_what_is_no_file_is_said_to_be_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("pipe", "link"):
        with pytest.raises(ImportRefused, match="neither a file nor a folder"), collect(tmp_path / name):
            pass
    log(tmp_path / "a", failed())
    assert only(tmp_path).key == "t"


def test_no_key_and_no_listing_holds_a_secret(tmp_path: Path) -> None:
    secret = "sk-" + "a1B2" * 8
    log(tmp_path / "x", failed(secret, error_type=f"Error with {secret}"), failed("sk-" + "c3D4" * 8))
    assert keys(tmp_path) == ["REDACTED-api-key-1", "REDACTED-api-key-1~2"]
    with pytest.raises(ImportRefused) as caught:
        read_one(tmp_path)
    assert "a1B2" not in caught.value.text
    assert "c3D4" not in caught.value.text
    assert read_one(tmp_path, key="REDACTED-api-key-1~2").replies[0].text == "reply of sk-" + "c3D4" * 8


def test_a_folder_that_is_taken_as_a_whole_is_not_read_again(tmp_path: Path) -> None:
    log(tmp_path / "job" / "whole", failed())
    log(tmp_path / "job" / "inner" / "x", failed())
    log(tmp_path / "other", failed())
    assert keys(tmp_path) == ["job", "other"]
    assert keys(tmp_path / "job") == ["t"]


def test_a_log_that_breaks_keeps_what_was_whole_and_loses_no_other(tmp_path: Path) -> None:
    log(tmp_path / "a", failed("one"), "BROKEN")
    log(tmp_path / "b", "MALFORMED")
    log(tmp_path / "c", failed("one"), failed("one"))
    (tmp_path / "d").write_bytes((GOLD / "inspect" / "sweep.eval").read_bytes()[:200])
    with collect(tmp_path) as found:
        assert [each.key for each in found.entries] == ["a", "c"]
        lost = [(each.path.name, each.refusal.slug) for each in found.unreadable]
    assert lost == [("a", "corrupt"), ("b", "malformed"), ("c", "malformed"), ("d", "corrupt")]


def test_strictly_the_first_bad_log_is_the_end(tmp_path: Path) -> None:
    log(tmp_path / "a", failed("one"))
    log(tmp_path / "b", "BROKEN")
    with pytest.raises(ImportRefused, match="its end is broken"), collect(tmp_path, strict=True):
        pass


def test_one_log_that_cannot_be_read_says_why_itself(tmp_path: Path) -> None:
    log(tmp_path / "a", "BROKEN")
    with pytest.raises(ImportRefused, match="its end is broken"), collect(tmp_path):
        pass
    log(tmp_path / "b", "BROKEN")
    both = r"none of its 2 logs can be read\.\n .*a: its end"
    with pytest.raises(ImportRefused, match=both) as caught, collect(tmp_path):
        pass
    assert caught.value.slug == "unreadable"


def test_a_folder_that_may_not_be_listed_loses_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path / "a", failed("one"))
    (tmp_path / "inner").mkdir()
    forbid_listing(monkeypatch, tmp_path / "inner")
    with collect(tmp_path) as found:
        assert [each.key for each in found.entries] == ["one"]
        assert [each.path.name for each in found.unreadable] == ["inner"]


def test_a_log_without_trials_is_said_to_have_none(tmp_path: Path) -> None:
    log(tmp_path / "a")
    with pytest.raises(ImportRefused) as caught, collect(tmp_path / "a"):
        pass
    assert caught.value.slug == "no-trial"


def test_progress_is_told_of_every_file_and_log(tmp_path: Path) -> None:
    log(tmp_path / "a", failed())
    log(tmp_path / "b", failed())
    told: list[tuple[int, int | None, str]] = []
    keys(tmp_path, progress=lambda *facts: told.append(facts))
    assert told == [(1, None, "a"), (2, None, "b"), (1, 2, "a"), (2, 2, "b")]


class TestZip:
    """A zip of logs that no importer takes itself."""

    @pytest.fixture
    def packed(self, tmp_path: Path) -> Path:
        with zipfile.ZipFile(tmp_path / "logs.zip", "w", zipfile.ZIP_DEFLATED) as file:
            file.write(MINI / "call_failed.traj.json", "runs/a.json")
            file.write(GOLD / "inspect" / "sweep.eval", "runs/b.eval")
        return tmp_path / "logs.zip"

    def test_its_members_are_read_as_a_folder_is(self, packed: Path) -> None:
        with collect(packed) as found:
            named = {each.key: each for each in found.entries}
            assert list(named) == ["runs/a.json", *(f"runs/b.eval::{name}#1" for name in ("good", "bad", "3"))]
            trial = found.read(named["runs/a.json"])
        assert trial.source_digests["logs.zip"] == digest(packed.read_bytes())
        assert trial.source_digests["a.json"] == digest((MINI / "call_failed.traj.json").read_bytes())

    def test_its_folder_is_gone_afterwards_and_in_no_message(
        self, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        with zipfile.ZipFile(packed, "a") as file:
            file.writestr("bad", "REF\nBROKEN\n")
        with collect(packed) as found:
            (lost,) = found.unreadable
            assert list((tmp_path / "temporary").iterdir())
        assert lost.refusal.text.startswith(f"Couldn't import {packed}/bad: its end is broken")
        assert list((tmp_path / "temporary").iterdir()) == []

    def test_a_zip_within_is_named_and_loses_no_other(self, packed: Path, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "outer.zip", "w") as file:
            file.write(packed, "inner.zip")
        within = pytest.raises(ImportRefused, match=r"outer\.zip/inner\.zip: it is a zip within")
        with within as caught, collect(tmp_path / "outer.zip"):
            pass
        assert caught.value.slug == "zip-within"
        (tmp_path / "folder").mkdir()
        log(tmp_path / "folder" / "a", failed())
        shutil.copy(packed, tmp_path / "folder" / "b.zip")
        with collect(tmp_path / "folder") as found:
            assert [each.refusal.slug for each in found.unreadable] == ["zip-within"]
            assert len(found.entries) == 1
        with collect(tmp_path / "folder", strict=True) as found:
            assert found.unreadable == []

    def test_nothing_in_it_is_a_log(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
            file.writestr("a", "text")
        with pytest.raises(ImportRefused, match="its only file") as caught, collect(tmp_path / "x.zip"):
            pass
        assert caught.value.slug == "not-recognised"


class TestJoin:
    """A record without a conversation and the trajectory of its task."""

    def test_report_and_trajectory_are_one_trial(self, tmp_path: Path) -> None:
        log(tmp_path / "a" / "traj", {"key": "t", "task_id": "x", "why_not": "?", "refusal": "no-sign-of-failure"})
        log(tmp_path / "report", failed("x", task_id="x", joins_by="x"), failed("y", task_id="y", joins_by="y"))
        with collect(tmp_path) as found:
            joined, alone = found.entries
            assert (joined.key, alone.key) == ("a/traj", "report::y")
            assert joined.ref.failed
            trial = found.read(joined)
        assert trial.outcome == "failed"
        assert len(trial.steps) == 1
        assert any("record of the same task id" in says for says in trial.missing)

    def test_the_nearest_of_two_runs_is_taken(self, tmp_path: Path) -> None:
        for run in ("m1", "m2"):
            log(tmp_path / run / "traj", {"key": run, "task_id": "x"})
        log(tmp_path / "m2" / "report", failed("r", task_id="x", joins_by="x"))
        with collect(tmp_path) as found:
            assert [(each.key, each.ref.outcome) for each in found.entries] == [
                ("m1/traj", "undetermined"),
                ("m2/traj", "failed"),
            ]

    def test_what_lies_equally_near_is_not_joined_and_said(self, tmp_path: Path) -> None:
        log(tmp_path / "traj", {"key": "1", "task_id": "x"}, {"key": "2", "task_id": "x"})
        log(tmp_path / "report", failed("r", task_id="x", joins_by="x"))
        with collect(tmp_path) as found:
            assert [each.key for each in found.entries] == ["report", "traj::1", "traj::2"]
            assert "2 trials of this task lie equally near" in found.read(found.entries[0]).missing[0]

    def test_records_of_one_task_are_one_trial_without_a_trajectory_too(self, tmp_path: Path) -> None:
        log(tmp_path / "runs" / "m" / "x" / "whole", failed("x", task_id="x", joins_by="x"))
        log(tmp_path / "report", failed("x", task_id="x", joins_by="x"), failed("y", task_id="y", joins_by="y"))
        with collect(tmp_path) as found:
            assert [each.key for each in found.entries] == ["report::y", "runs/m/x"]
            assert (
                found.read(found.entries[1])
                .missing[-1]
                .endswith("joined from the plain record of the same task id")
            )

    def test_each_run_keeps_its_own_record(self, tmp_path: Path) -> None:
        for run, outcome in (("m1", "failed"), ("m2", "passed")):
            log(tmp_path / run / "x" / "whole", {"key": "x", "task_id": "x", "joins_by": "x", "outcome": outcome})
            log(tmp_path / run / "preds", {"key": "x", "task_id": "x", "joins_by": "x"})
        log(tmp_path / "preds", {"key": "x", "task_id": "x", "joins_by": "x"})
        with collect(tmp_path) as found:
            assert {each.key: len(each.records) for each in found.entries} == {"m1/x": 1, "m2/x": 1, "preds": 0}
            assert "2 trials of this task" in found.read(found.entries[-1]).missing[-1]

    def test_records_that_contradict_one_another_are_not_taken(self, tmp_path: Path) -> None:
        log(tmp_path / "traj", {"key": "1", "task_id": "x"})
        log(tmp_path / "r1", failed("r", task_id="x", joins_by="x"))
        log(tmp_path / "r2", {"key": "r", "task_id": "x", "joins_by": "x", "outcome": "passed"})
        with collect(tmp_path) as found:
            assert len(found.entries) == 3
            assert "contradict" in found.read(found.entries[2]).missing[0]


def test_a_link_to_a_log_may_be_given_itself(tmp_path: Path) -> None:
    shutil.copy(MINI / "call_failed.traj.json", tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert only(tmp_path / "link").key == "trial"
