"""Large inputs, sparse or shrinking well, so that they are made in no time; and Python without the extras.

What reads them is a process of its own, whose peak of memory is asked of the kernel.
"""

import json
import os
import sys
import zlib
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.importers.reading import DOCUMENT_LIMIT_BYTES, LINES_LIMIT_BYTES, MEBIBYTE
from tests.contract.importer_contract import GOLD, gold_samples
from tests.importers.limited import limited
from tests.importers.zips import DEFLATED, STORED, ZSTANDARD, Member, read_members, write_zip

SAMPLES = [each for each in gold_samples() if each.is_file()]
EVAL = GOLD / "inspect" / "sweep.eval"


def packed_zeros(size: int) -> bytes:
    """Deflate zeros piece by piece."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = bytes(4 * MEBIBYTE)
    return b"".join(deflate.compress(piece) for _ in range(size // len(piece))) + deflate.flush()


REFUSE = """
from pathlib import Path
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import read_one
for given in sys.argv[1:]:
    name, _, key = given.partition("::")
    try:
        read_one(Path(name), key=key or None)
        print("read")
    except ImportRefused as refusal:
        print(refusal.slug)
"""


@pytest.mark.slow
def test_zip_bombs_are_refused(tmp_path: Path) -> None:
    size = DOCUMENT_LIMIT_BYTES + 8 * MEBIBYTE
    packed = packed_zeros(size)
    bomb = raw_zip(tmp_path / "bomb.zip", "a.json", packed, size)
    liar = raw_zip(tmp_path / "liar.zip", "a.json", packed, 100)
    row = json.dumps([{"id": "a", "epoch": 1, "error": "X('')"}]).encode()
    head: list[Member] = [read_members(EVAL)[0], ("summaries.json", row)]
    log = raw_zip(tmp_path / "bomb.eval", "samples/a_epoch_1.json", packed, size, head)
    nested = write_zip(tmp_path / "nested.zip", [(f"{n}.zip", bomb.read_bytes()) for n in range(3)], method=STORED)
    many = write_zip(tmp_path / "many.zip", [(f"{n}.json", b"{}") for n in range(20_001)], method=DEFLATED)
    slugs = limited(REFUSE, bomb, liar, f"{log}::a#1", nested, many)
    assert slugs == ["too-large", "too-large", "too-large", "unreadable", "too-large"]


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
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"info": {}, "messages": [], "trajectory_format": "mini-swe-agent-1.1", "pad": "')
    os.truncate(path, 300 * MEBIBYTE)
    assert main(["new", "--from-trial", str(path), "--owner", "me"]) == 2
    said = capsys.readouterr().err
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
    line = json.loads((GOLD / "openhands" / "output.jsonl").read_bytes().split(b"\n")[0])
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


@pytest.mark.slow
def test_a_line_of_200_megabytes_costs_itself(tmp_path: Path) -> None:
    """By each way of reading lines; OpenHands lists each line, the lost one too. Alone it is not recognised."""
    listed = {"codex/turn_failed.jsonl": 1, "openhands/output.jsonl": 6, "trial-jsonl/failed.jsonl": 1}
    paths = []
    for number, name in enumerate(listed):
        paths.append(tmp_path / f"{number}.jsonl")
        content = (GOLD / name).read_bytes().rstrip(b"\n") + b"\n"
        paths[-1].write_bytes(content)
        os.truncate(paths[-1], len(content) + 200 * MEBIBYTE)
        with paths[-1].open("ab") as file:
            file.write(b"\n")
    alone = tmp_path / "alone.jsonl"
    alone.write_bytes(b"\n")
    os.truncate(alone, 200 * MEBIBYTE)
    assert limited(LIST, *paths, alone) == [*map(str, listed.values()), "not-recognised"]


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
