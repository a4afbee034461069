from pathlib import Path

import pytest

from pytest_regcase.case_files import read_transcript, recorded, tree_digest
from pytest_regcase.errors import FileError


def lines(path: Path, text: str, **more: int) -> list[int]:
    path.write_text(text)
    return [line.step for line in read_transcript(path, **more)]


def test_steps_that_are_written_stay_and_others_are_counted(tmp_path: Path) -> None:
    text = (
        '{"step": 0, "role": "system"}\n{"role": "user"}\n{"step": 4, "role": "assistant"}\n'
        '{"role": "tool"}\n{"role": "assistant", "error": "time-out"}\n{"role": "assistant"}\n'
    )
    assert lines(tmp_path / "a", text) == [0, 0, 4, 4, 5, 5]


def test_a_first_step_of_another_number(tmp_path: Path) -> None:
    assert lines(tmp_path / "a", '{"role": "assistant"}\n{"role": "assistant"}', first_step=6) == [6, 7]


def test_two_replies_of_one_step_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r":2: the reply of step 1 comes after that of step 1"):
        lines(tmp_path / "a", '{"role": "assistant", "step": 1}\n{"role": "assistant", "step": 1}\n')


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "is not a JSON object"),
        ("[1]", "is not a JSON object"),
        ('{"role": "assistant", "txet": "x"}', 'unknown key "txet"; did you mean "text"'),
        ('{"text": "x"}', '"role" is missing'),
        ('{"role": "assistant", "step": "1"}', 'step = "1"; allowed: a whole number'),
        ('{"role": "assistant", "origin": "x"}', 'unknown key "origin"'),
    ],
)
def test_a_bad_line(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(FileError) as caught:
        lines(tmp_path / "a.jsonl", '{"role": "user"}\n' + line)
    assert caught.value.problems[0].startswith(f"{tmp_path}/a.jsonl:2: {says}")


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "LINE_LIMIT_BYTES", 20)
    with pytest.raises(FileError, match=":1: has 32 bytes; allowed: 20 a line"):
        lines(tmp_path / "a", '{"role": "user", "text": "abcd"}')
    monkeypatch.setattr(recorded, "RECORDED_LIMIT_BYTES", 10)
    with pytest.raises(FileError, match="has 32 bytes; at most 10 are read"):
        read_transcript(tmp_path / "a")


class TestTreeDigest:
    def test_names_contents_and_execution_count(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("x")
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "c").write_text("y")
        seen = {tree_digest(tmp_path)}
        (tmp_path / "a").rename(tmp_path / "d")
        seen.add(tree_digest(tmp_path))
        (tmp_path / "d").write_text("z")
        seen.add(tree_digest(tmp_path))
        (tmp_path / "d").chmod(0o755)
        seen.add(tree_digest(tmp_path))
        assert len(seen) == 4

    def test_empty_folders_and_reading_rights_do_not(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("x")
        before = tree_digest(tmp_path)
        (tmp_path / "empty").mkdir()
        (tmp_path / "a").chmod(0o600)
        assert tree_digest(tmp_path) == before

    def test_links_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("/etc/hosts")
        with pytest.raises(FileError, match="is a symbolic link"):
            tree_digest(tmp_path)

    def test_size_is_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "a").write_text("xx")
        (tmp_path / "b").write_text("xx")
        monkeypatch.setattr(recorded, "WORK_TREE_LIMIT_BYTES", 3)
        with pytest.raises(FileError, match="is too large"):
            tree_digest(tmp_path)

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileError, match="there is no such folder"):
            tree_digest(tmp_path / "a")


def test_what_is_no_json_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"a:1: is not a JSON object: .*hex escape") as caught:
        lines(tmp_path / "a", '{"role": "user", "text": "\\ud800"}\n')
    assert "allowed" not in caught.value.text


@pytest.mark.parametrize("step", ["", '"step": 1, '])
def test_a_time_without_an_offset_is_an_error(tmp_path: Path, step: str) -> None:
    with pytest.raises(
        FileError, match=r"a:1: at = 2026-01-01T00:00:00 has no offset; write it with Z or \+hh:mm"
    ):
        lines(tmp_path / "a", "{" + step + '"role": "user", "at": "2026-01-01T00:00:00"}\n')
    assert lines(tmp_path / "a", '{"role": "user", "at": "2026-01-01T00:00:00+02:00"}\n') == [0]
