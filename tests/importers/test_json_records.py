"""Objects of a document, a list or JSON lines: what is none is left out and said, what is around it is kept."""

import json
from pathlib import Path

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers import json_records, reading
from pytest_regcase.importers.json_records import JsonRecords, LastRecords, decoded


def write(path: Path, content: str) -> Path:
    file = path / "x"
    file.write_text(content)
    return file


def test_a_document_a_list_and_lines_give_the_same_objects(tmp_path: Path) -> None:
    items = [{"a": 1}, {"a": 2}]
    assert list(JsonRecords(write(tmp_path, json.dumps(items, indent=1)))) == [
        ("[0]", items[0]),
        ("[1]", items[1]),
    ]
    lines = JsonRecords(write(tmp_path, "\n".join(map(json.dumps, items))))
    assert list(lines) == [("line 1", items[0]), ("line 2", items[1])]
    assert list(JsonRecords(write(tmp_path, json.dumps(items[0], indent=1)))) == [("", items[0])]
    assert lines.missing == []


def test_lines_that_are_no_object_or_cut_are_said_with_their_numbers(tmp_path: Path) -> None:
    bad = "\n".join(['{"a": 1}', "42", "{", "", '{"a": NaN}', '{"a": 3'])
    records = JsonRecords(write(tmp_path, bad))
    assert [origin for origin, _ in records] == ["line 1", "line 5"]
    assert records.missing[0].startswith("line 3 is left out: it is no valid JSON")
    assert "line 6, the last one, is cut off: left out" in records.missing
    assert "1 record is no object and is left out" in records.missing
    assert any("NaN" in each for each in records.missing)


def test_more_bad_lines_than_are_named_are_counted(tmp_path: Path) -> None:
    records = JsonRecords(write(tmp_path, '{"a": 1}\n' + "{\n" * 9))
    assert len(list(records)) == 1
    assert records.missing[-1] == "4 further lines are left out"
    assert len(records.missing) == 6


def test_a_line_that_is_too_long_is_said_with_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LINE_LIMIT_BYTES", 20)
    for lines, first in (('{"a": 1}\n', "line 1"), (json.dumps("x" * 30) + '\n{"a": 1}\n', "line 2")):
        path = write(tmp_path, lines + json.dumps({"b": "x" * 30}) + '\n{"c": 2}\n')
        records = JsonRecords(path)
        assert next(iter(records))[0] == first
        assert [found for _, found in records] == [{"a": 1}, {"c": 2}]
        assert f"line {int(first[-1]) + 1} is left out: {reading.TOO_LONG}" in records.missing


@pytest.mark.parametrize(
    "content",
    ['[{"a": 1}, 2]', '{"a": 1}', '{"a": 1}\n{"a":\n{"a": NaN}\n', '{"a": [\n1]}', '{"a": 1}\n{"a": 2'],
)
def test_a_file_is_parsed_once_while_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    path = write(tmp_path, content)
    fresh = JsonRecords(path)
    wanted = list(fresh)
    last = LastRecords()
    assert list(JsonRecords(path, last=last)) == wanted
    with monkeypatch.context() as patched:
        patched.delattr(json_records, "parse_json")
        again = JsonRecords(path, last=last)
        assert list(again) == wanted
        assert again.missing == fresh.missing
    write(tmp_path, '{"b": 12345678901}')
    assert list(JsonRecords(path, last=last)) == [("line 1", {"b": 12345678901})]


@pytest.mark.parametrize(
    ("content", "is_kept"), [('{"a": 1}\n', True), ('{"a": 1}\n{"a": 2}\n', False), ("[{}]", True)]
)
def test_many_lines_of_a_large_file_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, is_kept: bool
) -> None:
    monkeypatch.setattr(json_records, "_KEPT_BYTES", 1)
    last = LastRecords()
    list(JsonRecords(write(tmp_path, content), last=last))
    assert bool(last.records) is is_kept


def test_what_was_not_read_to_its_end_is_not_kept(tmp_path: Path) -> None:
    last = LastRecords()
    path = write(tmp_path, '{"a": 1}\n{"a": 2}\n')
    next(iter(JsonRecords(path, last=last)))
    assert len(list(JsonRecords(path, last=last))) == 2


def test_lines_whose_first_one_is_bad_are_read_where_the_format_has_no_other_form(tmp_path: Path) -> None:
    path = write(tmp_path, '"x"\n{"a": 1}\n')
    assert [origin for origin, _ in JsonRecords(path, lines_only=True)] == ["line 2"]
    with pytest.raises(ImportRefused) as refusal:
        list(JsonRecords(path))
    assert refusal.value.slug == "corrupt"


@pytest.mark.parametrize(
    ("value", "found"),
    [('{"a": 1}', {"a": 1}), ("[1]", [1]), ("{a", "{a"), ("12", "12"), ([1], [1]), (None, None)],
)
def test_a_json_text_is_opened_and_any_other_value_stays(value: object, found: object) -> None:
    assert decoded(value) == found
