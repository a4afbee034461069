"""Whatever leaves the block, the record is whole, the work is looked for, and all is put away."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.capture import read_record, record_trial
from pytest_regcase.capture import recorder as recorder_module
from pytest_regcase.errors import ImportRefused, UsageRefused, WriteError
from pytest_regcase.importers.source import read_one, read_output
from tests.capture.conftest import kinds, lines_of, predictions_of


class Cleanups:
    """Counts what was put away."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __call__(self, name: str) -> Callable[[], None]:
        return lambda: self.done.append(name)


@pytest.fixture
def cleanups() -> Cleanups:
    return Cleanups()


def test_an_edit_then_an_error_in_a_loop_of_ones_own(tmp_path: Path, tree: Path, cleanups: Cleanups) -> None:
    config = {"work_dir": tree, "model": "m"}
    with record_trial(tmp_path / "trial", task_id="calc", config=config) as trial:
        trial.add_cleanup("client", cleanups("client"))
        trial.add_cleanup("server", cleanups("server"))
        trial.step("user", "Correct calc.py.")
        trial.step("assistant", "Editing.")
        (tree / "calc.py").write_text("half\n")
        trial.model_call(error=ConnectionError("lost"))
        raise ConnectionError("lost")
    assert trial.error is not None
    assert trial.error.type == "ConnectionError"
    assert cleanups.done == ["server", "client"]
    assert kinds(tmp_path / "trial", "cleanup") == [
        {"what": "server", "status": "done"},
        {"what": "client", "status": "done"},
    ]
    found = read_one(tmp_path / "trial" / "trial.jsonl")
    assert (found.termination, found.outcome, found.failing_step) == ("error", "undetermined", 2)
    assert found.partial_patch is not None
    assert "+half" in found.partial_patch
    assert (found.submission, found.missing) == (None, ())
    assert predictions_of(tmp_path / "trial") == [
        {"instance_id": "calc", "model_name_or_path": "m", "model_patch": None, "status": "agent_error"}
    ]


def test_a_block_that_ends_well_hands_its_patch_in(tmp_path: Path, tree: Path) -> None:
    with record_trial(tmp_path / "trial", task_id="calc", config={"work_dir": tree}) as trial:
        (tree / "calc.py").write_text("whole\n")
    assert trial.error is None
    record = read_record(tmp_path / "trial")
    assert record.submission is not None
    assert record.submission.by == "harness"
    assert "+whole" in (record.submission.patch or "")
    assert (record.termination, record.partial_patch, record.agent_failed) == ("finished", None, False)
    (prediction,) = predictions_of(tmp_path / "trial")
    assert (prediction["status"], prediction["model_patch"]) == ("submitted", record.submission.patch)
    with pytest.raises(ImportRefused) as caught:
        read_one(tmp_path / "trial" / "trial.jsonl")
    assert caught.value.slug == "no-sign-of-failure"


def test_a_patch_that_the_agent_hands_in_stays_its_own(tmp_path: Path, tree: Path) -> None:
    with record_trial(tmp_path / "trial", task_id="calc", config={"work_dir": tree}) as trial:
        (tree / "calc.py").write_text("whole\n")
        trial.submission(patch="diff of its own")
    (prediction,) = predictions_of(tmp_path / "trial")
    assert prediction["model_patch"] == "diff of its own"
    assert len(kinds(tmp_path / "trial", "submission")) == 1


@pytest.mark.parametrize("base", ["another commit", "no work tree"])
def test_a_patch_that_cannot_be_captured_is_a_status_of_its_own(tmp_path: Path, tree: Path, base: str) -> None:
    config: dict[str, Any] = {"work_dir": tree, "base_commit": "main"}
    if base == "no work tree":
        config = {"work_dir": tmp_path}
    with record_trial(tmp_path / "trial", task_id="calc", config=config):
        (tree / "calc.py").write_text("work\n")
    record = read_record(tmp_path / "trial")
    assert record.patch_capture is not None
    assert record.patch_capture.status == "failed"
    assert record.error is not None
    assert (record.error.type, record.error.raised_by) == ("PatchNotCaptured", "harness")
    assert (record.agent_failed, record.submission) == (False, None)
    assert predictions_of(tmp_path / "trial")[0]["status"] == "patch_capture_failed"
    found = read_output(tmp_path / "trial" / "trial.jsonl")
    if base == "another commit":
        assert record.partial_patch is not None
        assert "+work" in record.partial_patch
        assert any("the task's base commit is main" in each for each in found.missing)
    else:
        assert any("no git work tree" in each for each in found.missing)


def test_an_error_stays_the_agents_though_its_patch_cannot_be_captured_either(tmp_path: Path) -> None:
    with record_trial(tmp_path / "trial", task_id="t", config={"work_dir": tmp_path}):
        raise ConnectionError("lost")
    record = read_record(tmp_path / "trial")
    assert record.error is not None
    assert (record.error.type, record.patch_capture_failed) == ("ConnectionError", True)
    assert predictions_of(tmp_path / "trial")[0]["status"] == "agent_error"


def test_the_agent_may_change_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with record_trial("trial", task_id="t", predictions=Path("predictions.jsonl")) as trial:
        os.chdir("elsewhere")
        trial.step("user", "where am I?")
    assert read_record(tmp_path / "trial").ended
    assert len(predictions_of(tmp_path)) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_comes_after_the_end_is_refused(tmp_path: Path) -> None:
    with record_trial(tmp_path / "trial", task_id="t") as trial:
        pass
    with pytest.raises(UsageRefused, match="the trial has ended"):
        trial.step("user", "one more thing")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
def test_interruptions_are_recorded_and_raised_again(
    tmp_path: Path, tree: Path, cleanups: Cleanups, error: BaseException
) -> None:
    def interrupted() -> None:
        with record_trial(tmp_path / "trial", task_id="t", config={"work_dir": tree}) as trial:
            trial.add_cleanup("server", cleanups("server"))
            (tree / "calc.py").write_text("half\n")
            raise error

    with pytest.raises(type(error)) as caught:
        interrupted()
    assert caught.value is error
    assert cleanups.done == ["server"]
    record = read_record(tmp_path / "trial")
    assert (record.termination, record.ended, record.agent_failed) == ("cancelled", True, True)
    assert record.error is not None
    assert record.error.type == type(error).__name__
    assert record.partial_patch is not None
    assert "+half" in record.partial_patch
    assert predictions_of(tmp_path / "trial")[0]["status"] == "agent_error"


def test_a_cancelled_task_of_asyncio(tmp_path: Path, cleanups: Cleanups) -> None:
    async def agent() -> None:
        with record_trial(tmp_path / "trial", task_id="t") as trial:
            trial.add_cleanup("server", cleanups("server"))
            await asyncio.sleep(600)

    async def main() -> None:
        task = asyncio.create_task(agent())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert cleanups.done == ["server"]
    assert read_record(tmp_path / "trial").termination == "cancelled"


class Sulky(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not today")


def test_an_exception_whose_str_raises(tmp_path: Path, cleanups: Cleanups) -> None:
    with record_trial(tmp_path / "trial", task_id="t") as trial:
        trial.add_cleanup("server", cleanups("server"))
        raise Sulky
    assert cleanups.done == ["server"]
    found = read_one(tmp_path / "trial" / "trial.jsonl")
    assert found.error is not None
    assert found.error.type == "Sulky"
    assert "its str() raised RuntimeError" in (found.error.message or "")


class _NoName(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__name__", "__qualname__"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


class _Nameless(Exception, metaclass=_NoName):
    pass


class _OddChain(Exception):
    __cause__ = property(lambda _: 1 // 0)


class _Refuses(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class _Table(Mapping[str, object]):
    def __getitem__(self, key: str) -> object:
        raise ValueError(key)

    def __iter__(self) -> Iterator[str]:
        raise ValueError

    def __len__(self) -> int:
        raise ValueError


class _Answered(Exception):
    response = _Table()
    status = 10**30


class _EndsUs(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize("kind", [_Nameless, _OddChain, _Refuses, _Answered, _EndsUs], ids=str.split("a b c d e"))
def test_whatever_an_exception_does_when_it_is_asked_it_is_no_solution(
    tmp_path: Path, tree: Path, kind: type[Exception]
) -> None:
    ends = pytest.raises(SystemExit) if kind is _EndsUs else nullcontext()
    with ends, record_trial(tmp_path / "trial", task_id="t", config={"work_dir": tree}):
        (tree / "calc.py").write_text("half\n")
        raise kind("x")
    record = read_record(tmp_path / "trial")
    assert (record.termination, record.submission, record.agent_failed) == ("error", None, True)
    assert record.error is not None
    assert record.error.type == type.__dict__["__name__"].__get__(kind)
    assert "+half" in (record.partial_patch or "")
    assert predictions_of(tmp_path / "trial")[0]["status"] == "agent_error"


def test_a_huge_chain_is_recorded_and_read_back(tmp_path: Path) -> None:
    error: Exception | None = None
    for number in range(9):
        inner, error = error, ValueError(f"{number} " + "x" * 4_000_000)
        error.__cause__ = inner
    with record_trial(tmp_path / "trial", task_id="t"):
        assert error is not None
        raise error
    found = read_one(tmp_path / "trial" / "trial.jsonl")
    assert found.missing == ()
    assert found.error is not None
    assert [(each.message or "")[:2].strip() for each in found.error.chain] == [str(n) for n in range(8, -1, -1)]


def test_a_cleanup_that_raises_stops_no_other(tmp_path: Path, cleanups: Cleanups) -> None:
    def broken() -> None:
        raise OSError("busy")

    with record_trial(tmp_path / "trial", task_id="t") as trial:
        trial.add_cleanup("first", cleanups("first"))
        trial.add_cleanup("broken", broken)
        trial.add_cleanup("sulky", lambda: (_ for _ in ()).throw(Sulky()))
        trial.add_cleanup("last", cleanups("last"))
        trial.add_cleanup("left", lambda: "kept")
    assert cleanups.done == ["last", "first"]
    record = read_record(tmp_path / "trial")
    assert [(each.what, each.status) for each in record.cleanup] == [
        ("left", "kept"),
        ("last", "done"),
        ("sulky", "failed"),
        ("broken", "failed"),
        ("first", "done"),
    ]
    assert record.cleanup[3].error == "OSError: busy"
    # A failed clean-up is no failure of the agent's.
    assert (record.termination, record.error) == ("finished", None)
    assert set(read_output(tmp_path / "trial" / "trial.jsonl").labels) == {
        "cleanup-failed:sulky",
        "cleanup-failed:broken",
    }


def test_ctrl_c_in_a_cleanup_comes_after_the_others(tmp_path: Path, cleanups: Cleanups) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    def fails() -> None:
        with record_trial(tmp_path / "trial", task_id="t") as trial:
            trial.add_cleanup("first", cleanups("first"))
            trial.add_cleanup("interrupted", interrupted)
            raise ConnectionError("lost")

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert cleanups.done == ["first"]
    record = read_record(tmp_path / "trial")
    assert (record.ended, record.termination) == (True, "error")


def test_ctrl_c_while_the_patch_is_read_still_cleans_up(
    tmp_path: Path, tree: Path, cleanups: Cleanups, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(recorder_module, "read_patch", interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        record_trial(tmp_path / "trial", task_id="t", config={"work_dir": tree}) as trial,
    ):
        trial.add_cleanup("server", cleanups("server"))
    assert cleanups.done == ["server"]
    record = read_record(tmp_path / "trial")
    assert (record.ended, record.termination, record.agent_failed) == (True, "cancelled", True)


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)


@pytest.mark.parametrize("swallowed", [True, False])
def test_a_full_disk_is_said_though_the_agent_swallows_it(
    tmp_path: Path, cleanups: Cleanups, monkeypatch: pytest.MonkeyPatch, swallowed: bool
) -> None:
    def runs_out_of_room() -> None:
        with record_trial(tmp_path / "trial", task_id="t") as trial:
            trial.add_cleanup("server", cleanups("server"))
            trial.step("user", "before")
            with monkeypatch.context() as patched:
                full_disk(patched)
                try:
                    trial.step("assistant", "lost")
                except WriteError:
                    if not swallowed:
                        raise
            raise ValueError("something else went wrong behind it")

    with pytest.raises(WriteError, match="no space left on device"):
        runs_out_of_room()
    assert cleanups.done == ["server"]
    assert [each["kind"] for each in lines_of(tmp_path / "trial")] == ["trial", "step"]
    record = read_record(tmp_path / "trial")
    assert (record.ended, record.termination) == (False, "cut-off")


def test_ctrl_c_on_a_full_disk_stays_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        with record_trial(tmp_path / "trial", task_id="t"):
            full_disk(monkeypatch)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    assert any("no space left on device" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("raised", "by"),
    [
        ("the call's own", "supplier"),
        ("wrapped", "supplier"),
        ("another", "unknown"),
    ],
)
def test_what_a_model_call_raised_is_the_suppliers(tmp_path: Path, raised: str, by: str) -> None:
    with record_trial(tmp_path / "trial", task_id="t") as trial:
        try:
            raise TimeoutError("no answer")
        except TimeoutError as error:
            trial.model_call(error=error)
            if raised == "the call's own":
                raise
            if raised == "wrapped":
                raise RuntimeError("gave up") from None
        raise ValueError("a bug")
    assert trial.error is not None
    assert trial.error.raised_by == by


def test_a_killed_trial_is_gone_on_with(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    (folder / "trial.jsonl").write_text(
        '{"kind": "trial", "schema": 1, "task_id": "t"}\n'
        '{"kind": "step", "step": 1, "role": "assistant", "text": "one"}\n'
        '{"kind": "step", "step": 1, "role": "to'
    )
    with record_trial(folder, task_id="t", reopen=True) as trial:
        assert trial.step("assistant", "two") == 2
    found = read_output(folder / "trial.jsonl")
    assert [line.text for line in found.replies] == ["one", "two"]
    assert found.termination == "finished"
    assert any("dropped" in each for each in found.missing)


@pytest.mark.parametrize(
    ("lines", "task_id", "says"),
    [
        ("", "t", "cut off"),
        ('{"kind": "trial", "schema": 1, "task_id": "t"}\n', "other", "it is of task 't'"),
        ('{"kind": "trial", "schema": 1, "task_id": "t"}\n{"kind": "end"}\n', "t", "it has ended"),
        ('{"kind": "step"}\n', "t", "none of ours"),
    ],
)
def test_what_cannot_be_gone_on_with_is_left_as_it_is(tmp_path: Path, lines: str, task_id: str, says: str) -> None:
    (tmp_path / "trial.jsonl").write_text(lines)
    with pytest.raises(UsageRefused, match=says), record_trial(tmp_path, task_id=task_id, reopen=True):
        pass
    assert (tmp_path / "trial.jsonl").read_text() == lines


def test_a_folder_holds_one_trial(tmp_path: Path) -> None:
    with record_trial(tmp_path / "trial", task_id="t"):
        pass
    before = (tmp_path / "trial" / "trial.jsonl").read_bytes()
    with pytest.raises(UsageRefused, match="never overwritten"), record_trial(tmp_path / "trial", task_id="t"):
        pass
    assert (tmp_path / "trial" / "trial.jsonl").read_bytes() == before
