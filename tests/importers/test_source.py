"""What a path holds is told by content; each refusal has its own slug, and names what to do."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers import recognise
from pytest_regcase.importers.protocol import Importer, Peek
from pytest_regcase.importers.source import find_trials, read_one, read_output
from pytest_regcase.records.trial import Trial, TrialRef
from tests.no_access import forbid_listing

GOLD = Path(__file__).parent.parent / "gold"
FAILED = GOLD / "mini-swe-agent" / "call_failed.traj.json"


def refused(path: Path, **choice: Any) -> ImportRefused:
    with pytest.raises(ImportRefused) as caught:
        read_one(path, **choice)
    return caught.value


@pytest.mark.parametrize(
    ("name", "importer"),
    [
        ("mini-swe-agent/call_failed.traj.json", "mini-swe-agent"),
        ("inspect/sweep.eval", "inspect"),
        ("inspect/sweep.json", "inspect"),
        ("trial-jsonl/failed.jsonl", "trial-jsonl"),
    ],
)
def test_the_format_is_told_by_content_not_by_name(tmp_path: Path, name: str, importer: str) -> None:
    path = tmp_path / "something.txt"
    shutil.copyfile(GOLD / name, path)
    found = find_trials(path)
    assert (found.importer, found.path) == (importer, path)
    assert found.refs


def test_a_folder_is_searched(tmp_path: Path) -> None:
    place = tmp_path / "out" / "logs"
    place.mkdir(parents=True)
    (tmp_path / "agent.stderr").write_text("noise")
    shutil.copyfile(FAILED, place / "x")
    assert read_one(tmp_path).termination == "error"
    assert find_trials(tmp_path).path == place / "x"


def test_a_sweep_may_be_nested_deep(tmp_path: Path) -> None:
    place = tmp_path.joinpath(*"abcdefghijkl")
    place.mkdir(parents=True)
    shutil.copyfile(FAILED, place / "x")
    assert read_one(tmp_path).termination == "error"


def test_hidden_and_linked_files_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    shutil.copyfile(FAILED, tmp_path / ".hidden" / "x")
    (tmp_path / "link").symlink_to(FAILED)
    (tmp_path / "linked").symlink_to(FAILED.parent)
    assert refused(tmp_path).slug == "not-recognised"


def test_nothing_recognised_says_what_was_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"some": "thing"}')
    error = refused(path)
    assert error.slug == "not-recognised"
    for name in registry.names("importers"):
        assert name in error.text
    assert refused(tmp_path).slug == "not-recognised"


def test_there_is_no_such_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "no").slug == "no-such-file"


def test_several_failed_trials_of_a_folder_are_listed_by_key(tmp_path: Path) -> None:
    shutil.copyfile(FAILED, tmp_path / "one")
    shutil.copyfile(GOLD / "inspect" / "sweep.eval", tmp_path / "two")
    error = refused(tmp_path)
    assert error.slug == "several-trials"
    assert "--trial KEY" in error.text
    assert "  one: error" in error.text
    assert "  two::bad#1: error" in error.text
    assert "good" not in error.text
    assert read_one(tmp_path, key="one").format == "mini-swe-agent"
    assert read_one(tmp_path, key="two::bad#1").format == "inspect"
    assert read_one(tmp_path, sample="bad").format == "inspect"
    assert read_one(tmp_path, importer="mini-swe-agent").format == "mini-swe-agent"


def test_one_failed_trial_among_many_logs_needs_no_choice(tmp_path: Path) -> None:
    shutil.copyfile(FAILED, tmp_path / "one")
    shutil.copyfile(GOLD / "mini-swe-agent" / "submitted.traj.json", tmp_path / "two")
    assert read_one(tmp_path).termination == "error"


def test_one_log_is_asked_for_where_several_are_there(tmp_path: Path) -> None:
    shutil.copyfile(FAILED, tmp_path / "one")
    shutil.copyfile(FAILED, tmp_path / "two")
    for content, slug in ((FAILED, "several-files"), (GOLD / "inspect" / "sweep.eval", "two-formats")):
        shutil.copyfile(content, tmp_path / "two")
        with pytest.raises(ImportRefused) as caught:
            find_trials(tmp_path)
        assert caught.value.slug == slug
        assert "  one: mini-swe-agent\n  two: " in caught.value.text


def test_a_crowded_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognise, "FILES_LIMIT", 3)
    for number in range(4):
        (tmp_path / str(number)).write_text("x")
    assert refused(tmp_path).slug == "too-many-files"


class Greedy:
    """An importer that takes everything."""

    name = "greedy"

    def handles(self, peek: Peek) -> bool:
        return peek.kind != "folder"

    def list_trials(self, source: Path) -> Iterator[TrialRef]:  # noqa: ARG002 - the protocol's signature
        yield TrialRef(key="x", failed=True)

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - the protocol's signature
        # As a third party's might: the event id is not one.
        return Trial.model_validate({"format": "greedy", "event_id": 1, "event_id_from": "recorded"})


@pytest.fixture
def greedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real_names, real_load = registry.names, registry.load
    monkeypatch.setattr(registry, "names", lambda group: {**real_names(group), "greedy": None})
    monkeypatch.setattr(
        registry, "load", lambda group, name: Greedy if name == "greedy" else real_load(group, name)
    )


@pytest.mark.usefixtures("greedy")
def test_two_formats_that_match_one_file_are_named(tmp_path: Path) -> None:
    error = refused(FAILED)
    assert error.slug == "two-formats"
    assert "mini-swe-agent" in error.text
    assert "greedy" in error.text


@pytest.mark.usefixtures("greedy")
def test_a_trial_that_cannot_be_one_is_refused_as_malformed(tmp_path: Path) -> None:
    assert refused(FAILED, importer="greedy").slug == "malformed"


def test_a_trial_that_is_not_there_is_answered_with_those_that_are() -> None:
    error = refused(GOLD / "inspect" / "sweep.eval", sample="nothing")
    assert error.slug == "no-such-trial"
    for sample in ("good", "bad", "3"):
        assert f"  {sample} epoch 1: " in error.text


def test_an_agents_output_is_read_whatever_its_outcome() -> None:
    assert read_output(GOLD / "mini-swe-agent" / "submitted.traj.json").termination == "finished"
    with pytest.raises(ImportRefused) as caught:
        read_output(GOLD / "inspect" / "sweep.eval")
    assert caught.value.slug == "several-trials"


def test_what_an_attempt_wrote_beside_its_trial_is_about_it(tmp_path: Path) -> None:
    shutil.copy(GOLD / "trial-jsonl" / "failed.jsonl", tmp_path / "trial.jsonl")
    prediction = {"instance_id": "x", "model_name_or_path": "m", "model_patch": None, "status": "agent_error"}
    (tmp_path / "predictions.jsonl").write_text(json.dumps(prediction) + "\n")
    trial = read_output(tmp_path)
    assert trial.format == "trial-jsonl"
    assert trial.submission is not None
    assert trial.submission.mark == "agent_error"
    shutil.copy(FAILED, tmp_path / "other.traj.json")  # an agent may keep a log of its own as well
    assert read_output(tmp_path).format == "trial-jsonl"
    (tmp_path / "trial.jsonl").unlink()
    assert read_output(tmp_path).format == "mini-swe-agent"
    shutil.copy(FAILED, tmp_path / "third.traj.json")
    with pytest.raises(ImportRefused, match="it holds 3 trials, and an attempt has exactly one") as caught:
        read_output(tmp_path)
    assert "with `importer`" in caught.value.text


def test_every_refusal_has_two_parts() -> None:
    for error in (refused(GOLD), refused(GOLD / "no"), refused(GOLD / "mini-swe-agent" / "submitted.traj.json")):
        assert error.text.startswith("Couldn't import ")
        assert error.text.count("\n") >= 1
        assert error.exit_code == 2


def test_a_logs_words_cannot_drive_a_terminal(tmp_path: Path) -> None:
    document = json.loads((GOLD / "inspect" / "sweep.json").read_text())
    document["samples"][0]["id"] = "\x1b[2Jgone"
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    assert "\x1b" not in refused(path, sample="none").text


def test_ours_are_importers() -> None:
    for name in registry.names("importers"):
        importer = registry.load("importers", name)()
        assert isinstance(importer, Importer)
        assert importer.name == name


def test_a_folder_that_may_not_be_listed_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(FAILED, tmp_path / "a.traj.json")
    (tmp_path / "inner").mkdir()
    forbid_listing(monkeypatch, tmp_path / "inner")
    with pytest.raises(ImportRefused, match=r"Couldn't import .*inner: permission denied\.") as caught:
        find_trials(tmp_path)
    assert caught.value.slug == "unreadable"
