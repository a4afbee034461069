"""Real processes whose clock is made fast: no clock jumps, and every wait ends by the clock.

No test looks at how long it takes: an hour that is not fast is a hang, which the limit of a process ends.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_regcase.agents.clock import variables
from pytest_regcase.supplier.agent_clock import AgentClock
from pytest_regcase.supplier.spec import ClockSpec
from tests.agents import fast_waits

SCALE = 36_000.0
"""An hour is a tenth of a second."""
LIMIT_SECONDS = 120
WAITS = Path(fast_waits.__file__)
TELLS = "import time; print(repr(time.time()), repr(time.monotonic()), flush=True)"


class Fast:
    """A clock and processes that have it."""

    def __init__(self, library: Path, folder: Path, scale: float) -> None:
        state = folder / "clock.state"
        self.clock = AgentClock(ClockSpec(str(state), scale, str(library)))
        self._own = variables(library, state, {})

    def start(self, *words: str, **env: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            words, env={**os.environ, **env, **self._own}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self, *words: str) -> str:
        with self.start(*words) as process:
            return process.communicate(timeout=LIMIT_SECONDS)[0]


@pytest.fixture
def fast(clock_library: Path, tmp_path: Path) -> Fast:
    return Fast(clock_library, tmp_path, SCALE)


@pytest.fixture(scope="module")
def waits_after(clock_library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """What every kind of wait took that began when the clock was fast."""
    fast = Fast(clock_library, tmp_path_factory.mktemp("after"), SCALE)
    fast.clock.switch()
    return json.loads(fast.read(sys.executable, str(WAITS), "after"))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def waits_before(
    clock_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[float]]]:
    """What every kind of wait took that had begun before the clock was made fast."""
    fast = Fast(clock_library, tmp_path_factory.mktemp("before"), SCALE)
    with fast.start(sys.executable, str(WAITS), "before") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        fast.clock.switch()
        yield json.loads(process.communicate(timeout=LIMIT_SECONDS)[0])


@pytest.mark.parametrize("kind", [*fast_waits.KINDS, *fast_waits.TIMERS])
def test_a_wait_for_an_hour_ends_after_an_hour(waits_after: dict[str, list[float]], kind: str) -> None:
    # A millisecond less: what a program asks for in microseconds or milliseconds is rounded by the program.
    assert min(waits_after[kind]) >= fast_waits.HOUR - 0.001


@pytest.mark.parametrize("kind", list(fast_waits.KINDS))
def test_a_wait_that_had_begun_before_goes_on_by_the_fast_clock(
    waits_before: dict[str, list[float]], kind: str
) -> None:
    assert min(waits_before[kind]) >= fast_waits.HOUR - 0.001


def test_node_waits_by_the_clock(fast: Fast) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    fast.clock.switch()
    script = """
    const wall = Date.now(), start = performance.now();
    setTimeout(() => console.log(Date.now() - wall, performance.now() - start), 3600000);
    """
    wall, elapsed = map(float, fast.read(node, "-e", script).split())
    assert min(wall, elapsed) >= 3_600_000 - 1


# Says what time it is whenever it is asked, and that no clock ever ran backwards meanwhile.
ANSWERS = """
import sys, time
last = time.time(), time.monotonic()
for line in sys.stdin:
    for _ in range(2000):
        now = time.time(), time.monotonic()
        assert now[0] >= last[0] and now[1] >= last[1], (last, now)
        last = now
    print(*map(repr, last), flush=True)
"""


@pytest.mark.parametrize("scale", [1.5, 200.0])
def test_no_clock_jumps_and_all_processes_have_the_same(clock_library: Path, tmp_path: Path, scale: float) -> None:
    fast = Fast(clock_library, tmp_path, scale)
    switched_at: float | None = None

    def monotonic() -> float:
        now = time.monotonic()
        return now if switched_at is None else now + (now - switched_at) * (scale - 1)

    def check(read: Callable[[], str]) -> None:
        """What a process says lies between what its clocks are before it is asked and after."""
        before = fast.clock.now(), monotonic()
        said = [float(word) for word in read().split()]
        after = fast.clock.now(), monotonic()
        assert before[0] <= said[0] <= after[0]
        assert before[1] <= said[1] <= after[1]

    with fast.start(sys.executable, "-c", ANSWERS) as process:
        asks, says = process.stdin, process.stdout
        assert asks is not None
        assert says is not None

        def ask() -> str:
            asks.write("\n")
            asks.flush()
            return says.readline()

        check(ask)
        switched_at = fast.clock.switch()
        for _ in range(3):
            check(ask)
        check(lambda: fast.read(sys.executable, "-c", TELLS))  # started later
        check(lambda: fast.read("sh", "-c", f"'{sys.executable}' -c '{TELLS}'; true"))  # a child of a child
        asks.close()
        assert process.wait(LIMIT_SECONDS) == 0


def test_until_then_it_is_real_time(fast: Fast) -> None:
    before = fast.clock.now()
    wall, _ = map(float, fast.read(sys.executable, "-c", TELLS).split())
    assert before <= wall <= fast.clock.now()


def test_cpu_time_is_the_kernels(fast: Fast) -> None:
    fast.clock.switch()
    cpu = fast.read(sys.executable, "-c", "import time; time.sleep(3600); print(time.process_time())")
    assert float(cpu) < 3600


def test_a_signal_ends_a_wait_and_what_is_left_is_the_agents_time(fast: Fast) -> None:
    fast.clock.switch()
    program = """
import ctypes, signal
class Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *_: None)
left = Timespec()
while True:
    signal.setitimer(signal.ITIMER_REAL, 3600)
    if libc.nanosleep(ctypes.byref(Timespec(100000, 0)), ctypes.byref(left)) == -1:
        break  # else the signal came before the sleep had begun
assert ctypes.get_errno() == 4
print(left.seconds)
"""
    assert 0 < int(fast.read(sys.executable, "-c", program)) <= 100_000 - 3600 + 1


def test_a_library_without_a_state_file_changes_nothing(clock_library: Path, tmp_path: Path) -> None:
    for name in ("missing", ""):
        done = subprocess.run(
            [sys.executable, "-c", "import time, threading; threading.Event().wait(0.01); time.sleep(0.01)"],
            env={**os.environ, **variables(clock_library, tmp_path / name, {})},
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == 0
