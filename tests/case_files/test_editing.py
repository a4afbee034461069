import stat
import threading
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from pytest_regcase.case_files import append_record, editing, load_case
from pytest_regcase.case_files.places_on_disk import alone
from pytest_regcase.errors import FileError, SealError, UsageRefused
from pytest_regcase.records.case import Amendment, Closed, Evidence, Fix, Reopened, Retired
from pytest_regcase.toml_lines import read_bounded
from tests.case_files.conftest import MINIMUM, WriteCase

AT = datetime(2026, 4, 13, 8, 0, 0, tzinfo=UTC)


def fix(number: int = 1, **more: object) -> Fix:
    fields: dict[str, object] = {"revision": "sha256:ab", "ledger_id": "l-1", "rows": 3, "at": AT, "by": "mina"}
    return Fix.model_validate({"number": number, **fields, **more})


def evidence(stance: str, name: str = "server-log") -> Evidence:
    return Evidence.model_validate(
        {
            "id": name,
            "hypothesis": "deadline",
            "stance": stance,
            "file": "server.log",
            "lines": "12-14",
            "digest": "sha256:" + "0" * 64,
            "quote": 'it says "deadline"\nexceeded',
            "why": "the server's own words",
            "who": "mina",
            "at": AT,
        }
    )


def test_a_record_is_text_at_the_end(write_case: WriteCase) -> None:
    path = write_case()
    before = path.read_text()
    loaded = append_record(path, "fix", fix(note="client time-out lowered"))
    assert path.read_text() == before + (
        '\n[[fix]]\nnumber = 1\nrevision = "sha256:ab"\nledger_id = "l-1"\nrows = 3\n'
        'at = 2026-04-13T08:00:00Z\nby = "mina"\nnote = "client time-out lowered"\n'
    )
    assert loaded.case.fix == load_case(path).case.fix == (fix(note="client time-out lowered"),)


def test_interleaved_records_keep_their_order_and_nested_tables(write_case: WriteCase) -> None:
    path = write_case()
    numbers = {"clean": 29, "bound": "0.0981", "by": {"sessions": 2}}
    closed = Closed(at=AT, by="mina", revision="r", numbers=numbers)
    append_record(path, "fix", fix())
    append_record(path, "closed", closed)
    append_record(path, "reopened", Reopened(at=AT, by="mina", why="it came back"))
    append_record(path, "fix", fix(2))
    append_record(path, "retired", Retired(at=AT, by="mina", why="the task is gone"))
    case = append_record(path, "amendments", Amendment(what="a", why="b", who="c", at=AT)).case
    assert [each.number for each in case.fix] == [1, 2]
    assert case.closed == (closed,)
    assert len(case.reopened) == len(case.retired) == len(case.amendments) == 1


def test_a_file_without_a_last_line_ending_gets_one_first(write_case: WriteCase) -> None:
    path = write_case()
    path.write_text(path.read_text().rstrip("\n"))
    before = path.read_bytes()
    append_record(path, "fix", fix())
    assert path.read_bytes().startswith(before + b"\n\n[[fix]]\n")


def test_windows_line_endings_are_kept_up(write_case: WriteCase) -> None:
    path = write_case(MINIMUM.replace("\n", "\r\n"))
    append_record(path, "fix", fix())
    content = path.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n")


def test_the_mode_of_the_file_is_kept_and_nothing_else_is_left(write_case: WriteCase) -> None:
    path = write_case()
    path.chmod(0o640)
    append_record(path, "fix", fix())
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["case.toml"]


def test_an_offset_is_kept_as_it_was_given(write_case: WriteCase) -> None:
    path = write_case()
    append_record(path, "fix", fix(at=AT.astimezone(timezone(timedelta(hours=2)))))
    assert "at = 2026-04-13T10:00:00+02:00" in path.read_text()


@pytest.mark.parametrize(
    ("stances", "status"), [(["supports"], "confirmed"), (["supports", "refutes"], "unknown")]
)
def test_evidence_moves_the_cause_status_and_no_other_byte_before_it(
    write_case: WriteCase, stances: list[str], status: str
) -> None:
    path = write_case(MINIMUM + '[[hypotheses]]\nid = "deadline"\n')
    before = path.read_text()
    for number, stance in enumerate(stances):
        loaded = append_record(path, "evidence", evidence(stance, f"e-{number}"))
    assert loaded.case.cause_status == status
    assert path.read_text().startswith(before.replace('"unknown"', f'"{status}"'))


def test_a_record_that_would_break_the_case_is_refused_and_leaves_it(write_case: WriteCase) -> None:
    path = write_case()
    before = path.read_bytes()
    with pytest.raises(FileError, match="names the hypothesis 'deadline'"):
        append_record(path, "evidence", evidence("supports"))
    append_record(path, "fix", fix())
    once = path.read_bytes()
    with pytest.raises(FileError, match="fix number '1' is there twice"):
        append_record(path, "fix", fix())
    assert path.read_bytes() == once != before


def test_a_record_that_was_decided_on_another_case_is_refused(write_case: WriteCase) -> None:
    path = write_case()
    seen = load_case(path).case
    append_record(path, "fix", fix(), seen=seen)
    before = path.read_bytes()
    with pytest.raises(UsageRefused, match="changed meanwhile"):
        append_record(path, "closed", Closed(at=AT, by="mina", revision="r", numbers={"clean": 29}), seen=seen)
    assert path.read_bytes() == before


def test_of_two_commands_at_once_one_is_told_and_none_is_lost(
    write_case: WriteCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_case()
    told: list[str] = []

    def other() -> None:
        try:
            append_record(path, "fix", fix(2))
        except UsageRefused as error:
            told.append(error.text)

    thread = threading.Thread(target=other)
    other_has_read = threading.Event()

    def lock(folder: Path) -> AbstractContextManager[None]:
        if threading.current_thread() is thread:
            other_has_read.set()
        return alone(folder)

    def slow(of: Path, limit: int) -> bytes:
        found = read_bounded(of, limit)
        if thread.ident is None:
            # The file has just been compared, and is not replaced yet.
            thread.start()
            assert other_has_read.wait(60)
            thread.join(0.1)
        return found

    monkeypatch.setattr(editing, "alone", lock)
    monkeypatch.setattr(editing, "read_bounded", slow)
    append_record(path, "fix", fix())
    thread.join()
    assert [each.number for each in load_case(path).case.fix] == [1]
    assert len(told) == 1
    assert "changed meanwhile" in told[0]


def test_an_unsealed_case_takes_no_record(write_case: WriteCase) -> None:
    path = write_case(sealed=False)
    with pytest.raises(SealError):
        append_record(path, "fix", fix())


def test_a_list_on_one_line_cannot_be_appended_to(write_case: WriteCase) -> None:
    path = write_case("fix = []\n" + MINIMUM)
    before = path.read_bytes()
    with pytest.raises(UsageRefused, match=r"append to \[\[fix\]\] in .*case\.toml: fix is written there"):
        append_record(path, "fix", fix())
    assert path.read_bytes() == before


def test_only_appended_tables_are_appended_to(write_case: WriteCase) -> None:
    with pytest.raises(UsageRefused, match="only evidence, fix"):
        append_record(write_case(), "hypotheses", fix())


def test_a_symbolic_link_is_not_replaced(write_case: WriteCase, tmp_path: Path) -> None:
    path = write_case()
    link = tmp_path / "case.toml"
    link.symlink_to(path)
    with pytest.raises(FileError, match="is a symbolic link"):
        append_record(link, "fix", fix())
