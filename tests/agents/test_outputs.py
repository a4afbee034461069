import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_regcase.agents import outputs
from pytest_regcase.agents.launch import Places
from pytest_regcase.agents.outputs import declared, mark, read_place, sizes, written_after
from pytest_regcase.config import AgentConfig
from pytest_regcase.errors import UsageRefused


def test_sizes_are_bytes_by_name(places: Places) -> None:
    places.stdout.write_text("grüße\n", encoding="utf-8")
    places.stderr.write_text("")
    (places.out_dir / "sub").mkdir()
    (places.out_dir / "sub" / "run.log").write_text("ä", encoding="utf-8")
    assert sizes(places) == {"stdout": 8, "stderr": 0, "out/sub/run.log": 2}
    assert mark(places).sizes_bytes == sizes(places)


def test_what_is_not_there_yet_has_no_size(places: Places) -> None:
    assert sizes(places) == {}


def test_only_what_was_written_after_counts(places: Places) -> None:
    places.stdout.write_text("attempt_timeout = 3\n")
    (places.out_dir / "quiet.log").write_text("before\n")
    before = mark(places)
    with places.stdout.open("a") as file:
        file.write("request timed out\n")
    (places.out_dir / "late.log").write_text("new file\n")
    expected = {"stdout": "request timed out\n", "out/late.log": "new file\n"}
    assert written_after(places, before) == expected
    assert written_after(places, before.sizes_bytes) == expected


def test_bytes_are_counted_not_characters(places: Places) -> None:
    places.stdout.write_text("ö" * 100, encoding="utf-8")
    before = mark(places)
    with places.stdout.open("a", encoding="utf-8") as file:
        file.write("ü!")
    assert written_after(places, before) == {"stdout": "ü!"}


@pytest.mark.parametrize("atomically", [True, False])
@pytest.mark.parametrize("grows", [True, False])
def test_a_file_that_is_written_anew_is_left_out(places: Places, atomically: bool, grows: bool) -> None:
    path = places.out_dir / "run.traj.json"
    path.write_text(json.dumps({"messages": ["one"], "calls": 1}))
    before = mark(places)
    text = json.dumps({"messages": ["one", "an error"] if grows else [], "calls": 2})
    if atomically:
        other = places.out_dir / "unfinished"
        other.write_text(text)
        other.replace(path)
    else:
        path.write_text(text)
    assert written_after(places, before) == {}


def test_a_long_file_that_is_written_anew_is_noticed_at_either_end(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "_PROBE_BYTES", 10)
    path = places.out_dir / "log"
    path.write_text("a" * 100)
    before = mark(places)
    path.write_text("a" * 95 + "b" * 20)
    assert written_after(places, before) == {}
    path.write_text("b" + "a" * 99 + "more")
    assert written_after(places, before) == {}
    path.write_text("a" * 100 + "more")
    assert written_after(places, before) == {"out/log": "more"}


def test_of_a_long_text_the_end_is_kept(places: Places) -> None:
    before = mark(places)
    places.stderr.write_text("x" * 1000 + "the end")
    assert written_after(places, before, 7) == {"stderr": "the end"}


def test_what_is_no_text_is_left_out(places: Places) -> None:
    before = mark(places)
    (places.out_dir / "log.eval").write_bytes(b"PK\3\4\0\0error")
    (places.out_dir / "latin.log").write_bytes("größe".encode("latin-1"))
    assert written_after(places, before) == {
        "out/latin.log": "gr\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}e"
    }


def test_links_are_not_followed(places: Places, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (places.out_dir / "link").symlink_to(tmp_path / "secret")
    (places.out_dir / "folder").symlink_to(tmp_path)
    os.mkfifo(places.out_dir / "pipe")
    assert sizes(places) == {}


def test_the_number_of_files_is_bounded(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MAX_FILES", 3)
    for number in range(5):
        (places.out_dir / f"{number}").write_text("x")
    assert list(sizes(places)) == ["out/0", "out/1", "out/2"]


def test_a_declared_log_elsewhere_counts_once(places: Places) -> None:
    log = places.work_dir / "agent.log"
    log.write_text("before\n")
    inside = places.out_dir / "agent.log"
    inside.write_text("")
    before = mark(places, log=log)
    assert before.sizes_bytes == {"log": 7, "out/agent.log": 0}
    assert mark(places, log=inside).sizes_bytes == {"out/agent.log": 0}
    log.write_text("before\nafter\n")
    assert written_after(places, before, log=log) == {"log": "after\n"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(first=st.binary(max_size=300), then=st.binary(max_size=300))
def test_appended_text_is_found_whatever_it_is(places: Places, first: bytes, then: bytes) -> None:
    places.stdout.write_bytes(first)
    before = mark(places)
    with places.stdout.open("ab") as file:
        file.write(then)
    found = written_after(places, before)
    if then and b"\0" not in then:
        assert found == {"stdout": then.decode("utf-8", errors="replace")}
    else:
        assert found == {}


DOCUMENT = {
    "patch": "diff --git",
    "empty": "",
    "none": None,
    "info": {"exit_status": "Submitted", "a/b": {"~": "odd"}},
    "list": ["x", {"y": [1, 2.5, True]}],
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/patch", "diff --git"),
        ("/empty", ""),
        ("/none", None),
        ("/info/exit_status", "Submitted"),
        ("/info/a~1b/~0", "odd"),
        ("/list/0", "x"),
        ("/list/1", '{"y": [1, 2.5, true]}'),
        ("/list/1/y/1", "2.5"),
        ("/list/9", None),
        ("/list/-1", None),
        ("/list/x", None),
        ("/no/such", None),
        ("/patch/deeper", None),
    ],
)
def test_reads_a_value_by_pointer(places: Places, pointer: str, value: str | None) -> None:
    (places.out_dir / "answer.json").write_text(json.dumps(DOCUMENT))
    placeholders = {"out_dir": str(places.out_dir)}
    assert read_place("{out_dir}/answer.json#" + pointer, places, placeholders, "submission") == value


def test_a_plain_path_is_the_whole_text(places: Places) -> None:
    (places.work_dir / "answer.txt").write_text("42\n")
    assert read_place("answer.txt", places, {}, "answer") == "42\n"


@pytest.mark.parametrize("content", [None, "{half", "[" * 100_000])
def test_what_cannot_be_read_is_absent(places: Places, content: str | None) -> None:
    if content is not None:
        (places.work_dir / "answer.json").write_text(content)
    assert read_place("answer.json#/patch", places, {}, "submission") is None


def test_a_pipe_is_not_waited_for(places: Places) -> None:
    os.mkfifo(places.work_dir / "pipe")
    assert read_place("pipe", places, {}, "answer") is None


def test_an_unknown_placeholder_names_the_key(places: Places) -> None:
    with pytest.raises(UsageRefused, match="status"):
        declared(AgentConfig(command=("x",), status="{nope}/status"), places, {})


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, {}),
        ({"submission": "none.txt"}, {"submission_declared": True}),
        (
            {"answer": "text", "status": "text"},
            {"answer": "t", "answer_declared": True, "status": "t", "status_declared": True},
        ),
    ],
)
def test_declared_but_missing_is_not_undeclared(
    places: Places, config: dict[str, Any], expected: dict[str, Any]
) -> None:
    (places.work_dir / "text").write_text("t")
    (places.out_dir / "answer.txt").write_text("only a python agent's function returns this")
    found = declared(AgentConfig(command=("x",), **config), places, {}).model_dump(exclude_defaults=True)
    assert found == expected
