"""One sample out of a log of 200 by `regcase` and by Inspect's own reader, in one run: time and memory.

Ratios are asserted, never times: the two take turns, and the median of several rounds counts. Ours is counted with
telling the format among all importers, listing the samples and digesting the log; theirs is the reading alone.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from time import process_time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pytest_regcase.importers import reading
from pytest_regcase.importers.source import read_one
from tests.importers.zips import ZSTANDARD, read_members, write_zip

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read as Linux has it")

SAMPLES, ROUNDS, REPEATS = 200, 15, 10
AT_MOST = 1.0
SWEEP = Path(__file__).parent.parent / "tests" / "gold" / "inspect" / "sweep.eval"
SAMPLE = f"bad-{SAMPLES // 2}"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished log of 200 failed samples, each with ten times the events of our small one."""
    contents = dict(read_members(SWEEP))
    record = json.loads(contents["samples/bad_epoch_1.json"])
    *events, error = record["events"]
    record["events"] = [each | {"uuid": f"{each.get('uuid')}-{n}"} for n in range(REPEATS) for each in events]
    record["events"].append(error)
    row = next(each for each in json.loads(contents["summaries.json"]) if each["id"] == "bad")
    names = [f"bad-{number}" for number in range(SAMPLES)]
    members = [
        ("_journal/start.json", contents["_journal/start.json"]),
        *((f"samples/{name}_epoch_1.json", json.dumps(record | {"id": name}).encode()) for name in names),
        ("summaries.json", json.dumps([row | {"id": name} for name in names]).encode()),
        ("header.json", contents["header.json"]),
    ]
    return write_zip(tmp_path_factory.mktemp("log") / "sweep.eval", members, method=ZSTANDARD)


def ours(log: Path) -> str:
    reading._digest_of_version.cache_clear()  # a log is digested for the first time only once
    trial = read_one(log, sample=SAMPLE)
    assert len(trial.replies) == 2 * REPEATS
    return str(trial.task_id)


def theirs(log: Path) -> str:
    # By name: the type checker runs where no harness is installed.
    sample = import_module("inspect_ai.log").read_eval_log_sample(str(log), SAMPLE, 1)
    assert sum(each.event == "model" for each in sample.events) >= 2 * REPEATS
    return f"greeting/{sample.id}"


def test_time_of_one_sample(benchmark: BenchmarkFixture, log: Path, tell: Callable[[str], None]) -> None:
    pytest.importorskip("inspect_ai", reason="needs the `harness` extra: inspect_ai is not installed")
    assert ours(log) == theirs(log)
    rounds: list[tuple[float, float]] = []

    def one_round() -> None:
        took = []
        for read in (ours, theirs):
            started = process_time()
            read(log)
            took.append(process_time() - started)
        rounds.append((took[0], took[1]))

    benchmark.pedantic(one_round, rounds=ROUNDS)  # type: ignore[no-untyped-call]
    ratio = median(one / other for one, other in rounds)
    mine, other = (median(each) * 1000 for each in zip(*rounds, strict=True))
    tell(f"one sample of {SAMPLES}: {mine:.1f} ms, Inspect {other:.1f} ms, ratio {ratio:.2f} (at most {AT_MOST})")
    assert ratio <= AT_MOST


PEAK = """
import re, sys
from pathlib import Path
from benchmarks.test_bench_importers import ours, theirs
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
# Both sides have their modules loaded; what is looked at is reading.
if sys.argv[1] == "theirs":
    import inspect_ai.log
else:
    from pytest_regcase import registry
    for name in registry.names("importers"):
        registry.load("importers", name)
before = peak()
{"ours": ours, "theirs": theirs}[sys.argv[1]](Path(sys.argv[2]))
print(before, peak())
"""


def test_memory_of_one_sample(log: Path, tell: Callable[[str], None]) -> None:
    pytest.importorskip("inspect_ai", reason="needs the `harness` extra: inspect_ai is not installed")
    peaks: dict[str, int] = {}
    grown: dict[str, int] = {}
    for who in ("ours", "theirs"):
        command = [sys.executable, "-c", PEAK, who, str(log)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        before, peaks[who] = map(int, done.stdout.split())
        grown[who] = peaks[who] - before
    tell(
        f"its peak of memory: {peaks['ours'] / 1024:.0f} MiB, Inspect {peaks['theirs'] / 1024:.0f} MiB;"
        f" by reading alone {grown['ours'] / 1024:.1f} and {grown['theirs'] / 1024:.1f} MiB"
    )
    assert peaks["ours"] < peaks["theirs"]
    assert grown["ours"] < grown["theirs"]
