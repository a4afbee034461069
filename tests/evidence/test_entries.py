"""Lines get a time only where one can be told."""

import gzip
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.evidence import log_lines
from pytest_regcase.evidence.entries import Entry, Log
from pytest_regcase.evidence.journal import VALUE_LIMIT_BYTES
from pytest_regcase.evidence.log_lines import LogUnreadable, read_lines

NEAR = datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)
AT = datetime(2026, 4, 12, 9, 31, 4, tzinfo=UTC)
US = int(AT.timestamp() * 1e6)


def entries(path: Path, content: bytes | str) -> list[Entry]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(Log.open(path).entries(NEAR))


def test_a_line_without_a_time_inherits_that_of_the_line_before(tmp_path: Path) -> None:
    found = entries(
        tmp_path / "x",
        "Traceback\n"
        "ERROR 04-12 09:31:04 [core.py:1] died\n"
        "  EngineDeadError: x\n"
        'INFO:     10.0.0.7:1 - "POST /v1/messages HTTP/1.1" 500\n',
    )
    assert [(each.at, each.inherited) for each in found] == [(None, False), (AT, False), (AT, True), (AT, True)]
    # A traceback's lines are the server's, as the line that they go on from.
    assert [each.told.kind for each in found] == ["other", "server", "server", "access"]


def test_seconds_since_boot_are_no_time_unless_the_log_says_when_that_was(tmp_path: Path) -> None:
    kill = "[  100.250000] Out of memory: Killed process 1 (x)\n  and more\n"
    assert [each.at for each in entries(tmp_path / "x", kill)] == [None, None]
    set_at = int(AT.timestamp()) - 100
    clock = f"[    0.250000] rtc_cmos 00:04: setting system clock to 2026-04-12T09:29:24 UTC ({set_at})\n"
    assert [each.at for each in entries(tmp_path / "x", clock + kill)][1:] == [AT, AT]


def test_a_journal_export_is_read_record_by_record(tmp_path: Path) -> None:
    binary = b"two\nlines"
    found = entries(
        tmp_path / "x",
        b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=%d\n_TRANSPORT=kernel\nMESSAGE=Out of memory\n\n"
        b"__CURSOR=s=2\n__REALTIME_TIMESTAMP=%d\nMESSAGE\n%s%s\nSYSLOG_IDENTIFIER=vllm\n\n"
        b"__CURSOR=s=3\nMESSAGE=no time" % (US, US, len(binary).to_bytes(8, "little"), binary),
    )
    assert [(each.first, each.last, each.at) for each in found] == [(1, 4, AT), (6, 11, AT), (13, 14, None)]
    assert [each.told.kind for each in found] == ["kernel", "server", "other"]
    assert found[1].text == "two\nlines"


def test_a_damaged_journal_export_is_refused(tmp_path: Path) -> None:
    huge = (VALUE_LIMIT_BYTES + 1).to_bytes(8, "little")
    with pytest.raises(LogUnreadable, match="damaged"):
        entries(tmp_path / "x", b"__CURSOR=s=1\nMESSAGE\n" + huge + b"x" * 20 + b"\n")


def test_a_table_of_processes_is_of_the_date_above_it(tmp_path: Path) -> None:
    found = entries(
        tmp_path / "x", "Sun Apr 12 09:31:04 UTC 2026\n  PID STAT COMMAND\n 4242 Z    [python3] <defunct>\n"
    )
    assert [(each.at, each.told.kind) for each in found[1:]] == [(AT, "processes")] * 2
    (only, *_) = entries(tmp_path / "y", "CONTAINER ID   IMAGE\n3f2a  vllm  2026-04-12 08:00:00  Exited (137)\n")
    assert only.at is None


def test_the_state_of_containers_has_no_time_of_its_own(tmp_path: Path) -> None:
    found = entries(tmp_path / "x", '[{\n "Created": "2026-04-12T08:00:00Z",\n "OOMKilled": true,\n')
    assert {each.at for each in found} == {None}


def test_gzip_is_read_and_counts_as_its_text_does(tmp_path: Path) -> None:
    line = b"Apr 12 09:31:04 gpu1 kernel: Out of memory\n"
    (entry,) = entries(tmp_path / "x.log", gzip.compress(line))
    assert (entry.first, entry.at, entry.told.kind) == (1, AT, "kernel")


def test_the_rest_of_a_line_that_is_too_long_is_dropped_and_the_next_keeps_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lines, "LINE_LIMIT_BYTES", 8)
    path = tmp_path / "x"
    path.write_bytes(b"a" * 30 + b"\nshort\n12345678\nlast")
    assert [(each.number, each.text) for each in read_lines(path)] == [
        (1, "a" * 8),
        (2, "short"),
        (3, "12345678"),
        (4, "last"),
    ]


def test_what_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LogUnreadable, match="no such file"):
        list(read_lines(tmp_path / "none"))
    with pytest.raises(LogUnreadable, match="no plain file"):
        list(read_lines(tmp_path))
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        file.write(b"x" * 1000)
    (tmp_path / "half.gz").write_bytes(packed.getvalue()[:15])
    with pytest.raises(LogUnreadable):
        list(read_lines(tmp_path / "half.gz"))
    (tmp_path / "big").write_bytes(b"x\n" * 10)
    monkeypatch.setattr(log_lines, "LOG_LIMIT_BYTES", 10)
    with pytest.raises(LogUnreadable, match="larger than"):
        list(read_lines(tmp_path / "big"))
