import time
from pathlib import Path

import pytest

from pytest_regcase.supplier.wire_log import WireLog, read_wire_log


def test_what_is_written_is_read_and_none_is_left_out(tmp_path: Path) -> None:
    log = WireLog(tmp_path / "wire.jsonl", time.monotonic())
    log.write("sent", t=1.5, conn=1, text="Ä\ud800", step=None, complete=False)
    log.close()
    assert read_wire_log(tmp_path / "wire.jsonl") == (
        {"t": 1.5, "event": "sent", "conn": 1, "text": "Ä\ud800", "complete": False},
    )


def test_a_log_is_appended_to(tmp_path: Path) -> None:
    for _ in range(2):
        log = WireLog(tmp_path / "wire.jsonl", 0.0)
        log.write("listen")
        log.close()
    assert [each["event"] for each in read_wire_log(tmp_path / "wire.jsonl")] == ["listen", "listen"]


def test_half_a_last_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_text('{"t": 0, "event": "listen"}\n{"t": 1, "ev')
    assert [each["event"] for each in read_wire_log(path)] == ["listen"]


@pytest.mark.parametrize("line", ["nonsense", "[1]"])
def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path, line: str) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_text(f'{line}\n{{"t": 1, "event": "listen"}}\n')
    with pytest.raises(ValueError, match=r"wire\.jsonl:1"):
        read_wire_log(path)


def test_no_file_has_no_events(tmp_path: Path) -> None:
    assert read_wire_log(tmp_path / "wire.jsonl") == ()
