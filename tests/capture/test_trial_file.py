"""`trial.jsonl` on disk: killed, cut, locked, full; what was written before stays."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.capture.trial_file import TRIAL_FILE, TrialFile, records_in
from pytest_regcase.errors import UsageRefused, WriteError

RECORDS = [{"kind": "trial", "task_id": "t"}, {"kind": "step", "text": "größe"}, {"kind": "end"}]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[TrialFile]:
    file = TrialFile.create(tmp_path / "trial")
    for record in RECORDS:
        file.append(record)
    yield file
    file.close()


def test_a_record_is_on_the_disk_when_append_returns(
    tmp_path: Path, written: TrialFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(written.path.read_bytes()))
    written.append({"kind": "cleanup"})
    assert synced == [written.path.read_bytes()]
    assert list(records_in(written.path)) == [*RECORDS, {"kind": "cleanup"}]


def test_a_record_is_never_overwritten(written: TrialFile) -> None:
    before = written.path.read_bytes()
    with pytest.raises(UsageRefused, match="never overwritten") as caught:
        TrialFile.create(written.path.parent)
    assert caught.value.slug == "trial-exists"
    assert written.path.read_bytes() == before


def test_a_second_writer_is_refused(written: TrialFile) -> None:
    with pytest.raises(UsageRefused, match="another process") as caught:
        TrialFile.reopen(written.path.parent)
    assert caught.value.slug == "trial-in-use"
    written.close()
    TrialFile.reopen(written.path.parent).close()


def test_there_must_be_one_to_go_on_with(tmp_path: Path) -> None:
    with pytest.raises(UsageRefused, match=r"no trial\.jsonl"):
        TrialFile.reopen(tmp_path)


@given(cut=st.integers(min_value=1), more=st.booleans())
def test_cut_anywhere_it_is_repaired_and_gone_on_with(
    tmp_path_factory: pytest.TempPathFactory, cut: int, more: bool
) -> None:
    content = b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in RECORDS)
    kept = content[: cut % (len(content) + 1)]
    path = tmp_path_factory.mktemp("cut") / TRIAL_FILE
    path.write_bytes(kept)
    file = TrialFile.reopen(path.parent)
    if more:
        file.append({"kind": "more"})
    file.close()
    # A whole record without its line end is no half one.
    whole = [each for at, each in enumerate(RECORDS) if len(kept) >= len(_lines(at + 1)) - 1]
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    dropped = len(kept) - len(_lines(len(whole)))
    expected = whole + ([{"kind": "repaired", "dropped_bytes": dropped}] if dropped > 0 else [])
    assert found == expected + ([{"kind": "more"}] if more else [])
    assert path.read_bytes()[-1:] in (b"\n", b"")


def _lines(number: int) -> bytes:
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in RECORDS[:number])


def test_half_a_line_is_left_out_by_readers(written: TrialFile) -> None:
    with written.path.open("ab") as file:
        file.write(b'{"kind": "step", "te')
    assert list(records_in(written.path)) == RECORDS


def test_a_write_in_pieces_is_whole(written: TrialFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, bytes(content[:3])))
    written.append({"kind": "in pieces"})
    assert list(records_in(written.path))[-1] == {"kind": "in pieces"}


@pytest.mark.parametrize("at", ["before", "between", "behind"])
def test_ctrl_c_in_a_write_leaves_whole_lines(
    written: TrialFile, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    write = os.write

    def interrupted(descriptor: int, content: bytes) -> int:
        if at != "before":
            write(descriptor, bytes(content[: 5 if at == "between" else None]))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            written.append({"kind": "step"})
    written.append({"kind": "error"})
    last = [each["kind"] for each in records_in(written.path)][len(RECORDS) :]
    assert last == (["step", "error"] if at == "behind" else ["error"])


def test_after_a_failed_write_nothing_more_is_written(written: TrialFile, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written.path.read_bytes()
    write = os.write

    def full(descriptor: int, content: bytes) -> int:
        if len(content) < 12:
            raise OSError(28, "No space left on device")
        return write(descriptor, bytes(content[: len(content) - 6]))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(WriteError, match="no space left on device") as first:
            written.append({"kind": "step"})
    with pytest.raises(WriteError) as second:
        written.append({"kind": "there would be room again"})
    assert second.value is first.value
    assert first.value.exit_code == 4
    assert "3 records before are on the disk" in first.value.text
    assert written.path.read_bytes() == before


@pytest.mark.parametrize("place", ["a file is in the way", "no permission"])
def test_a_folder_that_cannot_be_made(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "trial" if place == "a file is in the way" else Path("/proc/nowhere/trial")
    with pytest.raises(WriteError, match="Couldn't record a trial in"):
        TrialFile.create(folder)


KILLED = """
import os, sys
from pathlib import Path
from pytest_regcase.capture.trial_file import TrialFile
file = TrialFile.create(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    file.append({"kind": "step", "number": number, "text": "x" * 5000})
    os.write(1, b"%d\\n" % number)
"""


def test_a_killed_process_loses_at_most_the_record_in_flight(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    told = int(said[-1]) if said[-1].endswith(b"\n") else int(said[-2])
    numbers = [each["number"] for each in records_in(folder / TRIAL_FILE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) - told in (0, 1)
    TrialFile.reopen(folder).close()
