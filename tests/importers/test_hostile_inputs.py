"""What a broken or hostile log must not do: through every importer and `regcase new`, by name.

Each format's own samples are changed in one way.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.cli import main
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import Found, find_trials, read_one
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.trial import Trial
from tests.contract.importer_contract import GOLD, gold_samples
from tests.importers.said import documents
from tests.importers.zips import STORED, Member, read_members, write_zip

SAMPLES = [each for each in gold_samples() if each.is_file()]
JSON_SAMPLES = [each for each in SAMPLES if each.read_bytes()[:1] in (b"{", b"[")]
FAILED = [each for each in JSON_SAMPLES if each.parent.name in ("inspect", "mini-swe-agent", "codex", "otlp")]
WORDLESS = {"swe-bench-instance", "swe-bench-report"}
"""Formats without free texts."""
EVAL = GOLD / "inspect" / "sweep.eval"


def title(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=title)
each_json_sample = pytest.mark.parametrize("sample", JSON_SAMPLES, ids=title)


@pytest.fixture(autouse=True)
def _empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.regcase]\n")
    monkeypatch.chdir(tmp_path / "project")


@pytest.fixture
def new(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Return `regcase new` on a log: its exit code, and all that it said."""

    def run(path: Path, *more: str) -> tuple[int, str]:
        code = main(["new", "--from-trial", str(path), "--owner", "me", *more])
        said = capfd.readouterr()
        assert "Traceback (most recent call last)" not in said.err
        assert "\x1b" not in said.out + said.err
        return code, said.out + said.err

    return run


def trials(path: Path) -> Iterator[Trial]:
    """Ask every importer whether it is its format, and read all that can be read."""
    with contextlib.suppress(ImportRefused):
        for ref in find_trials(path).refs:
            with contextlib.suppress(ImportRefused):
                trial = read_one(path, key=ref.key, failed_only=False)
                canonical_json(trial.to_sparse()).decode("utf-8")
                yield trial


def changed(sample: Path, folder: Path, change: Callable[[Any], Any]) -> Path:
    """Write the sample with each of its JSON documents changed."""
    parts = [
        json.dumps(change(json.loads(part))).encode() if part.strip().endswith((b"}", b"]")) else part
        for part in documents(sample.read_bytes())
    ]
    path = folder / sample.name
    path.write_bytes(b"\n".join(parts))
    return path


def in_texts(value: Any, put: str) -> Any:
    """Put something into each text of several words: what is free, and no word of a format."""
    if isinstance(value, dict):
        return {key: in_texts(item, put) for key, item in value.items()}
    if isinstance(value, list):
        return [in_texts(item, put) for item in value]
    return value.replace(" ", f" {put}", 1) if isinstance(value, str) and " " in value else value


# Texts and numbers that are none.


@pytest.mark.parametrize("sample", [each for each in JSON_SAMPLES if each.parent.name not in WORDLESS], ids=title)
def test_lone_surrogates_become_marks(tmp_path: Path, sample: Path) -> None:
    path = changed(sample, tmp_path, lambda value: in_texts(value, "\ud800"))
    assert b"\\ud800" in path.read_bytes()
    assert find_trials(path) == Found(find_trials(sample).importer, path, find_trials(path).refs)
    assert len(list(trials(path))) == len(list(trials(sample)))
    assert "\ufffd" in "".join(trial.model_dump_json() for trial in trials(path))


@each_json_sample
def test_numbers_that_are_none_are_absent(tmp_path: Path, sample: Path) -> None:
    def without_number(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_number(item) for key, item in value.items()}
        if isinstance(value, list):
            return [without_number(item) for item in value]
        return float("nan") if isinstance(value, float) else value

    for trial in trials(changed(sample, tmp_path, without_number)):
        json.dumps(trial.to_plain(), allow_nan=False)


@each_json_sample
def test_of_a_key_that_is_there_twice_the_last_counts(tmp_path: Path, sample: Path) -> None:
    def doubled(value: Any) -> str:
        if isinstance(value, dict):
            twice = [f"{json.dumps(key)}: null, {json.dumps(key)}: {doubled(item)}" for key, item in value.items()]
            return "{" + ", ".join(twice) + "}"
        return "[" + ", ".join(map(doubled, value)) + "]" if isinstance(value, list) else json.dumps(value)

    parts = [part for part in documents(sample.read_bytes()) if part.strip().endswith((b"}", b"]"))]
    path, plain = tmp_path / sample.name, tmp_path / "plain" / sample.name
    plain.parent.mkdir()
    path.write_text("\n".join(doubled(json.loads(part)) for part in parts))
    plain.write_text("\n".join(json.dumps(json.loads(part)) for part in parts))
    assert find_trials(path).refs == find_trials(plain).refs
    bare = [trial.model_copy(update={"source_digests": {}}) for trial in trials(path)]
    assert bare == [trial.model_copy(update={"source_digests": {}}) for trial in trials(plain)]


@each_sample
def test_bytes_that_are_no_utf_8_cost_at_most_their_record(tmp_path: Path, sample: Path) -> None:
    content = sample.read_bytes()
    at = content.rindex(b" ")
    path = tmp_path / sample.name
    path.write_bytes(content[:at] + b"\xff\xfe" + content[at:])
    list(trials(path))


@pytest.mark.parametrize("sample", FAILED, ids=title)
def test_nothing_that_a_log_says_drives_the_terminal(
    tmp_path: Path, sample: Path, new: Callable[..., tuple[int, str]]
) -> None:
    path = changed(sample, tmp_path, lambda value: in_texts(value, "\x1b]0;owned\x07\x1b[2J"))
    code, _ = new(path)
    assert code in (0, 2)
    new(path, "--failed")
    named = tmp_path / "\x1b[2Jname.json"
    named.write_bytes(b"{}")
    assert new(named)[0] == 2


# Depth.


@each_json_sample
def test_ten_thousand_levels_are_refused_or_cost_their_line(
    tmp_path: Path, sample: Path, new: Callable[..., tuple[int, str]]
) -> None:
    content = sample.read_bytes()
    first = content.index(b"{") + 1
    path = tmp_path / sample.name
    path.write_bytes(content[:first] + b'"deep": ' + b"[" * 10_000 + b"]" * 10_000 + b"," + content[first:])
    list(trials(path))
    assert new(path)[0] in (0, 2)


@pytest.mark.parametrize("opens", [b"[", b'{"a":', b'[{"role": "user", "content": ', b"<a>", b"<testsuites>"])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
def test_ten_thousand_levels_of_anything_are_refused(
    tmp_path: Path, opens: bytes, closed: bool, new: Callable[..., tuple[int, str]]
) -> None:
    ends = {b"[": b"]", b"{": b"}", b"<": b"</a>"}[opens[:1]]
    path = tmp_path / "deep"
    path.write_bytes(opens * 10_000 + (ends * 10_000 if closed else b""))
    assert new(path)[0] == 2


@pytest.mark.parametrize(
    "content",
    [
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><testsuites>&b;</testsuites>',
        b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuites><testcase name="&a;"/></testsuites>',
        b'<?xml version="1.0" encoding="utf-7"?><testsuites/>',
    ],
    ids=["entities", "a file", "an encoding"],
)
def test_xml_that_expands_or_fetches_is_refused(
    tmp_path: Path, content: bytes, new: Callable[..., tuple[int, str]]
) -> None:
    path = tmp_path / "x.xml"
    path.write_bytes(content)
    code, said = new(path)
    assert code == 2
    assert "root:" not in said


# Zips.


OUTSIDE = ["../out.json", "/out.json", "a/../../out.json", "..\\out.json", "C:\\out.json"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_member_is_written_outside(tmp_path: Path, name: str, new: Callable[..., tuple[int, str]]) -> None:
    failed = (GOLD / "mini-swe-agent" / "call_failed.traj.json").read_bytes()
    before = {each for each in tmp_path.rglob("*") if "cases" not in each.parts}
    # As an archive of logs, whose members are unpacked, and as a log of samples, whose names are labels.
    path = write_zip(tmp_path / "logs.zip", [(name, failed), ("b.traj.json", failed)], method=STORED)
    log: list[Member] = [*read_members(EVAL), (f"samples/{name}_epoch_1.json", b"{}")]
    other = write_zip(tmp_path / "x.eval", log, method=STORED)
    code, said = new(path)
    assert code == 2, said
    new(other)
    after = {each for each in tmp_path.rglob("*") if "cases" not in each.parts}
    assert after - before <= {path, other}
    assert not Path("/out.json").exists()
