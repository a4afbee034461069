from pathlib import Path

import pytest

from pytest_regcase.errors import FileError
from pytest_regcase.toml_lines import parse_toml, read_toml, shown

PATH = Path("case.toml")


def problems(content: bytes) -> list[str]:
    with pytest.raises(FileError) as caught:
        parse_toml(PATH, content)
    return caught.value.problems


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a = 1\nb = \n", "case.toml:2: not valid TOML: Invalid value (column 5)"),
        (b"a = 1\n\na = 2\n", "case.toml:3: not valid TOML: Cannot overwrite a value (column 6)"),
        (b'a = 1\nb = "x', "case.toml:2: not valid TOML: Unterminated string"),
        (b"a = 1\nb = '\xff'", "case.toml:2: byte 0xff is not UTF-8"),
        (b"\xef\xbb\xbfa = 1", "case.toml:1: starts with a byte order mark; save the file as UTF-8 without one"),
        (
            b"a = 1\nb = 2026-01-01T00:00:00\n",
            "case.toml:2: b = 2026-01-01T00:00:00 has no offset; write it with Z",
        ),
        (b"a = 1\n[x]\nb = [{ c = 10:00:00 }]\n", "case.toml:3: x.b[1].c = 10:00:00 is a time without a date"),
        (b"a = " + b"[" * 20_000 + b"]" * 20_000, "case.toml: is nested too deeply"),
        (b".".join([b"a"] * 200) + b" = 1", "case.toml: is nested deeper than 32 levels"),
    ],
)
def test_what_cannot_be_read_names_the_line(content: bytes, says: str) -> None:
    (problem,) = problems(content)
    assert problem.startswith(says)


def test_every_date_time_without_an_offset_is_named() -> None:
    assert len(problems(b"a = 2026-01-01T00:00:00\nb = 2026-01-02 00:00:00\n")) == 2


def test_sizes_are_bounded_before_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"#" * 2000)
    monkeypatch.setattr(Path, "open", None)
    with pytest.raises(FileError, match=r"has 2,000 bytes; at most 1,000 are read"):
        read_toml(path, limit_bytes=1000)


def test_what_is_no_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no such file"):
        read_toml(tmp_path / "a.toml")
    with pytest.raises(FileError, match="is not a regular file"):
        read_toml(tmp_path)


def test_a_path_is_shown_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(tmp_path / "a" / "b") == str(tmp_path / "a" / "b")
    monkeypatch.chdir(tmp_path)
    assert shown(tmp_path / "a" / "b") == "a/b"


def test_a_number_that_python_does_not_read_is_an_error_of_the_file() -> None:
    (says,) = problems(b"a = 1\nb = " + b"9" * 5000 + b"\n")
    assert says.startswith("case.toml: not valid TOML: Exceeds the limit")


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "0x" + "f" * 6000])
def test_a_number_beyond_those_of_toml_is_an_error(number: str) -> None:
    (says,) = problems(f"a = 1\nb = [{number}]\n".encode())
    assert says == "case.toml:2: b[1] is a whole number of more than 64 bits; write it as text, in quotes"


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_the_largest_numbers_of_toml_are_read(number: int) -> None:
    assert parse_toml(PATH, f"a = {number}".encode()).data == {"a": number}


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_that_has_no_utc_is_an_error(time: str) -> None:
    (says,) = problems(f"[a]\nb = {time}\n".encode())
    assert says == f"case.toml:2: a.b = {time} lies outside the years 1 to 9999 in UTC"
