"""What `regcase ledger` says, writes and refuses."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.session import SessionRow
from tests.rules.attempt_samples import a_live_attempt, an_attempt

NOW = datetime.now(UTC)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.regcase]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def filled(root: Path) -> Path:
    """The project with a ledger of three attempts."""
    with Ledger.open(f"sqlite:///{root / '.regcase' / 'ledger.sqlite3'}") as ledger:
        ledger.start_session(SessionRow(session_id="s1", started_at=NOW - timedelta(days=40), profile="nightly"))
        ledger.append(an_attempt("finished", "control"))
        ledger.append(an_attempt("recovered"))
        ledger.append(a_live_attempt(1, "recurred"))
    return root


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert all(len(line) <= 80 or "/" in line for line in captured.out.splitlines())
    return captured.out


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def spool(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines))
    return path


def line_of(run: int) -> str:
    return json.dumps(a_live_attempt(run, session_id="lost").to_plain()) + "\n"


class TestStats:
    @pytest.mark.usefixtures("filled")
    def test_the_numbers_are_said(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ledger", "stats"]) == 0
        out = said(capsys)
        assert "attempts  3 of 1 case\n" in out
        assert "live        1 recurred\n" in out
        assert "sessions  1, 1 without an end\n" in out

    @pytest.mark.usefixtures("filled")
    def test_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ledger", "stats", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["schema"] == 1
        assert document["verdicts"]["simulation"] == {"recovered": 1}
        assert (document["attempts"], document["invalidated"], document["unfinished"]) == (3, 0, 1)

    def test_a_look_makes_no_ledger(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ledger", "stats"]) == 2
        assert "there is none here yet" in refused(capsys)
        assert not (root / ".regcase").exists()

    def test_garbage(self, filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (filled / ".regcase" / "ledger.sqlite3").write_bytes(b"no database" * 1000)
        assert main(["ledger", "stats"]) == 4
        assert "the file is no SQLite database" in refused(capsys)


class TestExportAndImport:
    def test_an_export_comes_in_elsewhere_once(
        self, filled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["ledger", "export", "all.jsonl"]) == 0
        assert said(capsys) == "wrote all.jsonl: 3 attempts\n"
        monkeypatch.setenv("REGCASE_LEDGER", "other.sqlite3")
        assert main(["ledger", "import", "all.jsonl"]) == 0
        assert said(capsys) == "all.jsonl (export): 3 new, 0 known, 1 other new rows\n"
        assert main(["ledger", "import", "all.jsonl", "--json"]) == 0
        (brought,) = json.loads(capsys.readouterr().out)["brought"]
        assert (brought["kind"], brought["attempts"], brought["known"]) == ("export", 0, 3)
        assert main(["ledger", "export"]) == 0
        again = capsys.readouterr().out.splitlines()
        assert again[1:] == (filled / "all.jsonl").read_text().splitlines()[1:]

    def test_a_spool_comes_in_without_its_half_line(
        self, filled: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = spool(filled / "spool.jsonl", line_of(1), line_of(2), line_of(3)[:70])
        assert main(["ledger", "import", path.name]) == 0
        out = said(capsys)
        assert out.startswith("spool.jsonl (spool): 2 new, 0 known\n")
        assert "line 3 was cut off" in out

    @pytest.mark.parametrize(
        ("lines", "says"),
        [
            (["{]\n"], "spool.jsonl:1: it is no line of JSON"),
            ([line_of(1), "[1]\n"], "spool.jsonl:2: it is no JSON object"),
            ([line_of(1), '{"kind": "x"}\n'], "spool.jsonl:2: it is no attempt"),
            ([line_of(1)[:50]], "spool.jsonl:1: it is no line of JSON"),
            (['{"kind": "ledger", "schema": 2}\n', "{}\n"], "spool.jsonl:2: kind None is none of an export"),
        ],
    )
    def test_what_is_neither_is_refused_whole(
        self, filled: Path, capsys: pytest.CaptureFixture[str], lines: list[str], says: str
    ) -> None:
        spool(filled / "spool.jsonl", *lines)
        assert main(["ledger", "import", "spool.jsonl"]) == 2
        assert says in refused(capsys)
        assert main(["ledger", "stats", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["attempts"] == 3

    @pytest.mark.usefixtures("filled")
    def test_no_such_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ledger", "import", "nowhere.jsonl"]) == 2
        assert "nowhere.jsonl: No such file" in refused(capsys)

    @pytest.mark.usefixtures("filled")
    def test_a_place_that_cannot_be_written(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ledger", "export", "nowhere/all.jsonl"]) == 4
        assert "Couldn't write" in refused(capsys)


class TestMerge:
    @pytest.mark.usefixtures("filled")
    def test_shards(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setenv("REGCASE_LEDGER", "all.sqlite3")
        for _ in range(2):
            assert main(["ledger", "merge", ".regcase/ledger.sqlite3"]) == 0
        first, again = capsys.readouterr().out.split("ledger.sqlite3 ")[1:]
        assert first.startswith("(ledger): 3 new, 0 known, 1 other new rows")
        assert again.startswith("(ledger): 0 new, 3 known")
        assert main(["ledger", "stats"]) == 0
        assert "  holds     ledger " in said(capsys)

    @pytest.mark.parametrize(
        ("place", "says"),
        [("nowhere.sqlite3", "there is no such file"), (".regcase/ledger.sqlite3", "it is this very ledger")],
    )
    @pytest.mark.usefixtures("filled")
    def test_what_cannot_be_merged(self, capsys: pytest.CaptureFixture[str], place: str, says: str) -> None:
        assert main(["ledger", "merge", place]) == 2
        assert says in refused(capsys)


class TestInvalidate:
    @pytest.mark.usefixtures("filled")
    def test_a_session_is_set_aside_with_the_reason(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ledger", "invalidate", "--session", "s1", "--why", "wrong model"]) == 0
        assert said(capsys) == "invalidated 3 attempts of session s1\n"
        assert main(["ledger", "export"]) == 0
        assert capsys.readouterr().out.count('"invalidated_why":"wrong model"') == 3

    @pytest.mark.usefixtures("filled")
    def test_one_attempt(self, capsys: pytest.CaptureFixture[str]) -> None:
        attempt = "s1.trial-37.default.control.1.0"
        assert main(["ledger", "invalidate", "--attempt", attempt, "--why", "x"]) == 0
        assert main(["ledger", "invalidate", "--attempt", attempt, "--why", "x"]) == 2
        assert "the ledger has no valid row of it" in capsys.readouterr().err

    @pytest.mark.parametrize("which", [[], ["--attempt", "a", "--session", "b"]])
    @pytest.mark.usefixtures("filled")
    def test_neither_or_both(self, capsys: pytest.CaptureFixture[str], which: list[str]) -> None:
        assert main(["ledger", "invalidate", *which, "--why", "x"]) == 2
        assert "Give one of --attempt and --session" in refused(capsys)


class TestPrune:
    @pytest.fixture
    def folders(self, filled: Path) -> Path:
        """An old session, a new one, one that the ledger does not know, an old one with a spool."""
        sessions = filled / ".regcase" / "sessions"
        for name in ("s1", "new", "unknown-old", "unknown-spool"):
            (sessions / name / "attempts").mkdir(parents=True)
            (sessions / name / "attempts" / "log").write_text("x" * 1000)
        (sessions / "unknown-spool" / "not-in-the-ledger.jsonl").write_text(line_of(7))
        old = (NOW - timedelta(days=31)).timestamp()
        for name in ("unknown-old", "unknown-spool"):
            os.utime(sessions / name, (old, old))
        return sessions

    def test_old_folders_go_and_rows_stay(self, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ledger", "prune"]) == 0
        out = said(capsys)
        assert out.startswith("removed the folders of 2 sessions older than 30 days: 0.0 MB\n")
        assert "regcase ledger import" in out
        assert sorted(each.name for each in folders.iterdir()) == ["new", "unknown-spool"]
        assert main(["ledger", "stats", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["attempts"] == 3

    def test_a_dry_run_removes_nothing(self, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ledger", "prune", "--dry-run", "--days", "0"]) == 0
        assert said(capsys).startswith("would remove the folders of 3 sessions older than 0 days")
        assert len(list(folders.iterdir())) == 4

    def test_a_link_is_not_followed(self, folders: Path, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "precious").write_text("x")
        (folders / "s1").rename(tmp_path / "away")
        (folders / "s1").symlink_to(elsewhere)
        assert main(["ledger", "prune", "--days", "0"]) == 0
        assert (elsewhere / "precious").exists()
