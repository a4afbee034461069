"""What a broken or hostile log must not do: through every importer and `regcase new`, by name.

Each format's own samples are changed in one way. Large files are sparse or shrink well, so they are made in no time;
what reads them is a process of its own, whose peak of memory is asked of the kernel.
"""

import contextlib
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.cli import main
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.reading import DOCUMENT_LIMIT_BYTES, LINES_LIMIT_BYTES, MEBIBYTE
from pytest_regcase.importers.source import Found, find_trials, read_one
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.trial import Trial
from tests.conftest import REPOSITORY
from tests.contract.importer_contract import gold_samples
from tests.importers.said import documents
from tests.importers.zips import DEFLATED, STORED, ZSTANDARD, Member, read_members, write_zip

SAMPLES = [each for each in gold_samples() if each.is_file()]
JSON_SAMPLES = [each for each in SAMPLES if each.read_bytes()[:1] in (b"{", b"[")]
FAILED = [each for each in JSON_SAMPLES if each.parent.name in ("inspect", "mini-swe-agent", "codex", "otlp")]
EVAL = SAMPLES[0].parent.parent / "inspect" / "sweep.eval"


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
        for ref in found(path).refs:
            with contextlib.suppress(ImportRefused):
                trial = read_one(path, key=ref.key, failed_only=False)
                canonical_json(trial.to_sparse()).decode("utf-8")
                yield trial


def found(path: Path) -> Found:
    return find_trials(path)


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


@each_json_sample
def test_lone_surrogates_become_marks(tmp_path: Path, sample: Path) -> None:
    path = changed(sample, tmp_path, lambda value: in_texts(value, "\ud800"))
    assert b"\\ud800" in path.read_bytes()
    assert found(path) == Found(found(sample).importer, path, found(path).refs)
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
        assert "NaN" not in trial.model_dump_json()


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
    assert found(path).refs == found(plain).refs
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
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><testsuites>&b;</testsuites>',
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


def packed_zeros(size: int) -> bytes:
    """Deflate zeros piece by piece."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = bytes(4 * MEBIBYTE)
    return b"".join(deflate.compress(piece) for _ in range(size // len(piece))) + deflate.flush()


OUTSIDE = ["../out.json", "/out.json", "a/../../out.json", "..\\out.json", "C:\\out.json", "a/\x00/out.json"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_member_is_written_outside(tmp_path: Path, name: str, new: Callable[..., tuple[int, str]]) -> None:
    failed = (SAMPLES[0].parent.parent / "mini-swe-agent" / "call_failed.traj.json").read_bytes()
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


LIMITS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
"""


def limited(code: str, *arguments: object) -> list[str]:
    """Run code in a process with bounded time and memory; return the words that it says."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITS + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


REFUSE = """
from pathlib import Path
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import read_one
for name in sys.argv[1:]:
    try:
        read_one(Path(name))
        print("read")
    except ImportRefused as refusal:
        print(refusal.slug)
"""


def test_zip_bombs_are_refused(tmp_path: Path) -> None:
    start = read_members(EVAL)[:1]
    size = DOCUMENT_LIMIT_BYTES + 8 * MEBIBYTE
    bomb = raw_zip(tmp_path / "bomb.zip", "a.json", packed_zeros(size), size)
    liar = raw_zip(tmp_path / "liar.zip", "a.json", packed_zeros(size), 100)
    log = raw_zip(tmp_path / "bomb.eval", "samples/a_epoch_1.json", packed_zeros(size), size, start)
    nested = write_zip(tmp_path / "nested.zip", [(f"{n}.zip", bomb.read_bytes()) for n in range(3)], method=STORED)
    many = write_zip(tmp_path / "many.zip", [(f"{n}.json", b"{}") for n in range(20_001)], method=DEFLATED)
    slugs = limited(REFUSE, bomb, liar, log, nested, many)
    assert slugs == ["too-large", "too-large", "too-large", "not-recognised", "too-large"]


def raw_zip(path: Path, name: str, packed: bytes, size: int, before: list[Member] | None = None) -> Path:
    """Write a zip with one member that is packed already, and says of itself that it is of `size`."""
    marker = b"\x00" * 16
    write_zip(path, [*(before or []), (name, marker)], method=STORED)
    content = path.read_bytes()
    stored = b"\x08\x00"
    start = content.index(name.encode()) - 30
    end = content.rindex(b"PK\x01\x02")
    facts = (len(packed)).to_bytes(4, "little") + size.to_bytes(4, "little")
    local = content[start : start + 8] + stored + content[start + 10 : start + 18] + facts + content[start + 26 :]
    local = local[: 30 + len(name)] + packed
    central = content[end:]
    central = central[:10] + stored + central[12:20] + facts + central[28:]
    first = content.index(b"PK\x01\x02")
    earlier = content[first:end]
    close = central.index(b"PK\x05\x06")
    begins = start + len(local)
    tail = central[close : close + 16] + begins.to_bytes(4, "little") + central[close + 20 :]
    path.write_bytes(content[:start] + local + earlier + central[:close] + tail)
    return path


# Size.


def test_a_document_over_the_limit_is_refused_with_its_size_and_the_way_out(
    tmp_path: Path, new: Callable[..., tuple[int, str]]
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"info": {}, "messages": [], "trajectory_format": "mini-swe-agent-1.1", "pad": "')
    os.truncate(path, 300 * MEBIBYTE)
    code, said = new(path)
    assert code == 2
    assert "300 MiB" in said
    assert "256 MiB" in said
    assert "JSON lines" in said


READ = """
import re
from pathlib import Path
from pytest_regcase.importers.source import find_trials, read_one
path, key = Path(sys.argv[1]), sys.argv[2]
refs = find_trials(path).refs
trial = read_one(path, key=key, failed_only=False)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
own = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(len(refs), trial.task_id, int(own[1]) if own else peak)
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads a process's own peak of memory from /proc")


@linux
@pytest.mark.slow
def test_one_sample_out_of_a_gigabyte_of_json_lines_needs_little_memory(tmp_path: Path) -> None:
    """Lines of a mebibyte; most of the file is holes that are no JSON, which costs one note and no memory."""
    line = json.loads((SAMPLES[0].parent.parent / "openhands" / "output.jsonl").read_bytes().split(b"\n")[0])
    path = tmp_path / "output.jsonl"
    with path.open("wb") as file:
        for number in range(40):
            record = {**line, "instance_id": f"calc__calc-{number}", "pad": "x" * MEBIBYTE}
            file.write(json.dumps(record).encode() + b"\n")
        for _ in range(480):
            file.seek(2 * MEBIBYTE, os.SEEK_CUR)
            file.write(b"\n")
        assert 0.9 * LINES_LIMIT_BYTES < file.tell() <= LINES_LIMIT_BYTES
    listed, task, peak = limited(READ, path, "calc__calc-39")
    assert (int(listed), task) == (520, "calc__calc-39")
    assert int(peak) < 100 * 1024


LINES = sorted({each.parent.name: each for each in JSON_SAMPLES if each.suffix == ".jsonl"}.values())


@pytest.mark.slow
def test_a_line_of_200_megabytes_costs_itself(tmp_path: Path) -> None:
    """Of every format in lines; as a log of its own it is not recognised."""
    whole = []
    for number, sample in enumerate(LINES):
        path = tmp_path / f"{number}.jsonl"
        content = sample.read_bytes().rstrip(b"\n") + b"\n"
        path.write_bytes(content)
        os.truncate(path, len(content) + 200 * MEBIBYTE)
        with path.open("ab") as file:
            file.write(b"\n")
        whole.append(path)
    alone = tmp_path / "alone.jsonl"
    alone.write_bytes(b"\n")
    os.truncate(alone, 200 * MEBIBYTE)
    told = limited(LIST, *whole, alone)
    assert told == [*(f"{len(find_trials(each).refs)}" for each in LINES), "not-recognised"]


LIST = """
from pathlib import Path
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one
for name in sys.argv[1:]:
    try:
        refs = find_trials(Path(name)).refs
        for ref in refs[:1]:
            read_one(Path(name), key=ref.key, failed_only=False)
        print(len(refs))
    except ImportRefused as refusal:
        print(refusal.slug)
"""

# Without extras.

WITHOUT_EXTRAS = """
import importlib.abc
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(",") or name == "compression.zstd":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
from pathlib import Path
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.collection import collect
for name in sys.argv[2:]:
    try:
        with collect(Path(name)) as found:
            for entry in found.entries:
                found.read(entry)
        print("read")
    except ImportRefused as refusal:
        print(refusal.slug, "pytest-regcase[inspect]" in refusal.text)
"""
EXTRAS = (
    "zstandard,psycopg,ziglang,hypothesis,xdist,jsonschema,yaml,minisweagent,inspect_ai,openai,anthropic,httpx,"
    "pydantic_ai,agents,detect_secrets"
)


def test_without_extras_every_format_but_zstandard_members_is_read(tmp_path: Path) -> None:
    packed = [each for each in SAMPLES if each.suffix == ".eval"]
    deflated = write_zip(tmp_path / "deflated.eval", read_members(EVAL), method=DEFLATED)
    others = [deflated, *(each for each in gold_samples() if each not in packed)]
    assert limited(WITHOUT_EXTRAS, EXTRAS, *others) == ["read"] * len(others)
    told = limited(WITHOUT_EXTRAS, EXTRAS, *packed)
    assert told == ["zstandard-missing", "True"] * len(packed)
    assert ZSTANDARD in {method for each in packed for method in methods(each)}


def methods(path: Path) -> set[int]:
    content = path.read_bytes()
    return {content[at + 8] for at in range(len(content) - 10) if content[at : at + 4] == b"PK\x03\x04"}
