"""The supplier against a bare h11 server with the same replies, in one run. Ratios are asserted, never times.

A loaded machine slows both alike: the two take turns, request by request and start by start, and the median of
several rounds counts.
"""

import gc
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.agent_run import BASH, HEADERS, Agent, RawClient, recording
from benchmarks.servers import TOKEN, Server, bare, supplier
from pytest_regcase.supplier.wire_log import read_wire_log

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="CPU and memory of a child are read as Linux has it"
)

AT_MOST = 1.5
STEPS, WARM_UP = 40, 5
ROUNDS = 9
MIB = 1024 * 1024

Tell = Callable[[str], None]


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """A new folder a server."""
    return (tmp_path / str(number) for number in range(1000))


def told(what: str, ours: list[float], others: list[float], unit: str, scale: float) -> tuple[float, str]:
    ratio = median(one / other for one, other in zip(ours, others, strict=True))
    each = f"{median(ours) * scale:.0f} {unit}, bare {median(others) * scale:.0f} {unit}"
    return ratio, f"{what}: {each}, ratio {ratio:.2f} (at most {AT_MOST})"


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_cpu_a_request(
    benchmark: BenchmarkFixture, folders: Iterator[Path], tell: Tell, *, streaming: bool
) -> None:
    lines = recording(STEPS)
    spent: tuple[list[float], list[float]] = ([], [])

    def servers() -> tuple[tuple[Server, Server], dict[str, Any]]:
        return (supplier(next(folders), lines, steps=STEPS), bare(next(folders), lines)), {}

    def one_run_each(*both: Server) -> None:
        agents = [Agent(each.port, streaming=streaming) for each in both]
        for _ in range(WARM_UP):
            for agent in agents:
                agent.go_on()
        before = [each.cpu() for each in both]
        for step in range(STEPS - WARM_UP):
            # In turns, and each of them first as often.
            for agent in agents if step % 2 else reversed(agents):
                agent.go_on()
        for server, seconds, since in zip(both, spent, before, strict=True):
            seconds.append((server.cpu() - since) / (STEPS - WARM_UP))

    def stop(*both: Server) -> None:
        for each in both:
            each.stop()

    benchmark.pedantic(one_run_each, setup=servers, teardown=stop, rounds=ROUNDS)
    ratio, line = told(f"CPU a request, {'streamed' if streaming else 'whole'} answers", *spent, "us", 1e6)
    tell(line)
    benchmark.extra_info["ratio"] = ratio
    assert ratio <= AT_MOST, line


def test_start_up(benchmark: BenchmarkFixture, folders: Iterator[Path], tell: Tell) -> None:
    lines = recording(STEPS)
    spent: tuple[list[float], list[float]] = ([], [])

    def start_both() -> None:
        with supplier(next(folders), lines, steps=STEPS) as ours:
            spent[0].append(ours.start_cpu)
        with bare(next(folders), lines) as other:
            spent[1].append(other.start_cpu)

    # The first of all compiles what no other run has compiled.
    benchmark.pedantic(start_both, rounds=2 * ROUNDS, warmup_rounds=1)
    ratio, line = told("CPU from the exec until it listens", *[each[1:] for each in spent], "ms", 1e3)
    tell(line)
    benchmark.extra_info["ratio"] = ratio
    assert ratio <= AT_MOST, line


def test_both_answer_alike(folders: Iterator[Path]) -> None:
    lines = recording(2)
    for streaming in (False, True):
        with supplier(next(folders), lines, steps=2) as ours, bare(next(folders), lines) as other:
            both = [Agent(each.port, streaming=streaming) for each in (ours, other)]
            for _ in range(2):
                mine, its = (each.go_on() for each in both)
                assert [*mine.headers] == [*its.headers]
                assert shape(mine.body, streaming=streaming) == shape(its.body, streaming=streaming)


def shape(body: bytes, *, streaming: bool) -> list[Any]:
    """Return what is sent, piece by piece, without what no two servers can have alike."""
    texts = [each.removeprefix(b"data: ") for each in body.split(b"\n\n") if each] if streaming else [body]
    found = [json.loads(each) if each != b"[DONE]" else None for each in texts]
    return [
        each and {key: value for key, value in each.items() if key not in ("created", "usage")} for each in found
    ]


def test_32_connections_at_once(folders: Iterator[Path]) -> None:
    count, rounds = 32, 20
    with supplier(next(folders), (), steps=0) as server, ExitStack() as stack:
        clients = [stack.enter_context(RawClient(server.port, f"/{TOKEN}/v1")) for _ in range(count)]
        digests: list[str] = []
        for turn in range(rounds):
            for number, client in enumerate(clients):
                # All of them are asked before the first is read.
                question = {"role": "user", "content": f"{number}, {turn}"}
                body = {"model": f"m-{number}-{turn}", "messages": [question], "tools": [BASH]}
                client.post(json.dumps(body).encode(), headers=HEADERS)
            for number, client in enumerate(clients):
                answer = client.response()
                assert answer.status == 200
                assert answer.json["model"] == f"m-{number}-{turn}"
                assert answer.json["choices"][0]["message"]["content"] in ("Done.", "OK")
                digests.append("sha256:" + hashlib.sha256(answer.raw).hexdigest())
    (log,) = {path for path in next(folders).parent.glob("*/wire.jsonl")}
    events = read_wire_log(log)
    assert sum(each["event"] == "accept" for each in events) == count
    sent = [each for each in events if each["event"] == "sent"]
    assert all(each["complete"] for each in sent)
    assert sorted(each["digest"] for each in sent) == sorted(digests)


def test_10_000_requests_leave_no_memory_behind(folders: Iterator[Path], tell: Tell) -> None:
    requests, warm_up = 10_000, 500
    lines = recording(requests + warm_up)
    with supplier(next(folders), lines, steps=requests + warm_up) as server:
        # It shows the latest messages only: what it forgets must not stay with us either.
        agent = Agent(server.port, streaming=False, shown=4)
        for _ in range(warm_up):
            agent.go_on()
        before = server.resident()
        for _ in range(requests):
            agent.go_on()
        grown = (server.resident() - before) / MIB
    line = f"memory after {requests:,} requests over one connection: {grown:+.1f} MiB (at most 10)"
    tell(line)
    assert grown <= 10, line


def test_cpu_grows_with_the_conversation_and_not_with_its_square(folders: Iterator[Path], tell: Tell) -> None:
    short, long, measured = 250, 1000, 40
    with supplier(next(folders), recording(long), steps=long) as server:
        agent = Agent(server.port, streaming=False, output="ok")
        spent = []
        for end in (short, long):
            while agent.step < end - measured:
                agent.go_on()
            gc.collect()
            since = server.cpu()
            while agent.step < end:
                agent.go_on()
            spent.append((server.cpu() - since) / measured)
    ratio = spent[1] / spent[0]
    line = f"CPU a request at {2 * long:,} messages against {2 * short:,}: {ratio:.1f} times (at most 6)"
    tell(line)
    assert ratio <= 6, line
