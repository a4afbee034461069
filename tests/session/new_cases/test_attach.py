"""The part of a lower-level log that lies in a trial's time, and nothing where that cannot be told."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.evidence import log_lines
from pytest_regcase.records.trial import TranscriptLine, Trial
from pytest_regcase.redaction import Redactor
from pytest_regcase.session.new_cases import attach as attaching
from pytest_regcase.session.new_cases.attach import attach, window_of


def at(minute: int, second: int = 0) -> datetime:
    return datetime(2026, 4, 12, 9, minute, second, tzinfo=UTC)


def trial(**facts: Any) -> Trial:
    defaults = {"format": "x", "event_id": "e", "event_id_from": "recorded"}
    return Trial(**{**defaults, **facts})


TIMED = trial(started_at=at(20), ended_at=at(30))


def log(path: Path, *minutes: int) -> Path:
    path.write_text("".join(f"2026-04-12 09:{each:02}:00 line {each}\n  and more\n" for each in minutes))
    return path


def taken(path: Path, of: Trial = TIMED) -> str:
    ((name, content),) = attach(of, [path], Redactor()).files.items()
    assert name.startswith("recorded/attached/")
    return content.decode()


def refused(path: Path, of: Trial = TIMED) -> UsageRefused:
    with pytest.raises(UsageRefused) as caught:
        attach(of, [path], Redactor())
    return caught.value


@pytest.mark.parametrize(
    ("of", "start", "end"),
    [
        (TIMED, at(18), at(32)),
        (trial(ended_at=at(30)), at(13), at(32)),
        (trial(started_at=at(30)), at(13), at(32)),
        (
            trial(
                steps=(
                    TranscriptLine(step=1, role="user", at=at(25)),
                    TranscriptLine(step=1, role="tool", at=at(28)),
                )
            ),
            at(23),
            at(30),
        ),
        (trial(started_at=at(20), steps=(TranscriptLine(step=1, role="user", at=at(28)),)), at(18), at(30)),
    ],
)
def test_the_window_is_the_trials_time_and_two_minutes(of: Trial, start: datetime, end: datetime) -> None:
    window = window_of(of)
    assert window is not None
    assert (window.start, window.end) == (start, end)
    assert "2 minutes on either side" in window.says


def test_without_a_time_nothing_can_be_taken(tmp_path: Path) -> None:
    error = refused(log(tmp_path / "x.log", 25), trial())
    assert error.slug == "no-time"
    assert "records no time" in error.text
    assert attach(trial(), [], Redactor()).files == {}


def test_lines_without_a_time_follow_the_line_before(tmp_path: Path) -> None:
    path = log(tmp_path / "x.log", 10, 18, 25, 32, 33)
    assert [line for line in taken(path).splitlines() if line.startswith("2026")] == [
        f"2026-04-12 09:{each}:00 line {each}" for each in (18, 25, 32)
    ]
    assert taken(path).count("  and more\n") == 3


def test_gzip_and_json_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "server.jsonl.gz"
    lines = [{"ts": at(minute).timestamp(), "msg": f"m{minute}"} for minute in (10, 25, 40)]
    path.write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in lines).encode()))
    files = attach(TIMED, [path], Redactor()).files
    assert list(files) == ["recorded/attached/server.jsonl"]
    assert files["recorded/attached/server.jsonl"].count(b"\n") == 1
    assert b"m25" in files["recorded/attached/server.jsonl"]


def test_what_lies_outside_is_refused_with_the_times_of_the_log(tmp_path: Path) -> None:
    error = refused(log(tmp_path / "x.log", 1, 5))
    assert error.slug == "outside-the-window"
    for says in (
        "2026-04-12T09:18:00Z to 2026-04-12T09:32:00Z",
        "from 2026-04-12T09:01:00Z to 2026-04-12T09:05:00Z",
    ):
        assert says in error.text


@pytest.mark.parametrize("content", [b"", b"no time\nhere\n", b"\x00\x01\x02"])
def test_a_log_without_times_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.log").write_bytes(content)
    assert refused(tmp_path / "x.log").slug == "no-time"


def test_a_log_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "x.gz"
    broken.write_bytes(gzip.compress(b"2026-04-12 09:25:00 x\n" * 100)[:-20])
    assert refused(broken).slug == "not-attached"
    assert refused(tmp_path).slug == "not-attached"
    assert refused(tmp_path / "absent").slug == "not-attached"


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "PART_LIMIT_BYTES", 30)
    assert "lie in its recorded time" in refused(log(tmp_path / "x.log", 25, 26)).text
    monkeypatch.setattr(log_lines, "LOG_LIMIT_BYTES", 10)
    assert "larger than" in refused(log(tmp_path / "x.log", 1, 2)).text


def test_it_is_redacted_with_the_trials_own_redactor(tmp_path: Path) -> None:
    path = tmp_path / "alice's log.txt"
    path.write_text("2026-04-12 09:25:00 in /home/alice/x, by alice\n")
    redactor = Redactor()
    redactor.learn("/home/alice/y")
    redactor.text("/home/alice/y")
    attached = attach(TIMED, [path], redactor)
    ((name, content),) = attached.files.items()
    assert b"alice" not in content
    assert "alice" not in name
    assert attached.redactions == {"home_path": 1, "user_name": 1 + 1}


def test_two_logs_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    logs = [log(tmp_path / "x.log", 25), log(tmp_path / "a" / "x.log", 25)]
    with pytest.raises(UsageRefused, match="another attached file has its name"):
        attach(TIMED, logs, Redactor())
