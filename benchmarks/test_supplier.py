"""The supplier against a bare h11 server with the same replies, in one run. Ratios are asserted, never times.

A loaded machine slows both alike: the two take turns, request by request and start by start, and the median of
several rounds counts.
"""

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

from benchmarks.agent_run import HEADERS, Agent, recording
from benchmarks.servers import TOKEN, Server, bare, supplier
from pytest_regcase.supplier.wire_log import read_wire_log
from tests.supplier.serving import BASH, RawClient

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="CPU and memory are read as Linux has them")

AT_MOST = 1.5
STEPS, WARM_UP = 40, 5
ROUNDS = 11
CONNECTIONS = 32
REQUESTS, AT_MOST_MIB = 10_000, 10


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """A new folder a server."""
    return (tmp_path / str(number) for number in range(1000))


class Pairs:
    """What the two servers took, round by round."""

    def __init__(self, what: str, unit: str, scale: float) -> None:
        self.ours: list[float] = []
        self.bare: list[float] = []
        self._what, self._unit, self._scale = what, unit, scale

    @property
    def ratio(self) -> float:
        return median(one / other for one, other in zip(self.ours, self.bare, strict=True))

    def __str__(self) -> str:
        ours, other = (f"{median(each) * self._scale:.0f} {self._unit}" for each in (self.ours, self.bare))
        return f"{self._what}: {ours}, the bare server {other}, ratio {self.ratio:.2f} (at most {AT_MOST})"


@pytest.mark.parametrize("answers", ["whole", "streamed"])
def test_cpu_a_request(
    benchmark: BenchmarkFixture, folders: Iterator[Path], tell: Callable[[str], None], answers: str
) -> None:
    lines = recording(STEPS)
    pairs = Pairs(f"CPU a request, answers {answers}", "us", 1e6)

    def servers() -> tuple[tuple[Server, Server], dict[str, Any]]:
        return (supplier(next(folders), lines, steps=STEPS), bare(next(folders), lines)), {}

    def one_run_each(*both: Server) -> None:
        with ExitStack() as stack:
            agents = [stack.enter_context(Agent(each.port, streaming=answers == "streamed")) for each in both]
            for _ in range(WARM_UP):
                for agent in agents:
                    agent.go_on()
            before = [each.cpu() for each in both]
            for step in range(STEPS - WARM_UP):
                # In turns, and each of them first as often.
                for agent in agents if step % 2 else reversed(agents):
                    agent.go_on()
            ours, other = (each.cpu() - since for each, since in zip(both, before, strict=True))
            pairs.ours.append(ours / (STEPS - WARM_UP))
            pairs.bare.append(other / (STEPS - WARM_UP))

    def stop(*both: Server) -> None:
        for each in both:
            each.stop()

    benchmark.pedantic(one_run_each, setup=servers, teardown=stop, rounds=ROUNDS)  # type: ignore[no-untyped-call]
    benchmark.extra_info["ratio"] = pairs.ratio
    tell(str(pairs))
    assert pairs.ratio <= AT_MOST, str(pairs)


def test_start_up(benchmark: BenchmarkFixture, folders: Iterator[Path], tell: Callable[[str], None]) -> None:
    lines = recording(STEPS)
    pairs = Pairs("CPU from the exec until it listens", "ms", 1e3)

    def start_both() -> None:
        with supplier(next(folders), lines, steps=STEPS) as ours:
            pairs.ours.append(ours.start_cpu)
        with bare(next(folders), lines) as other:
            pairs.bare.append(other.start_cpu)

    # The very first start compiles what was not compiled yet; the median leaves it out.
    benchmark.pedantic(start_both, rounds=2 * ROUNDS)  # type: ignore[no-untyped-call]
    benchmark.extra_info["ratio"] = pairs.ratio
    tell(str(pairs))
    assert pairs.ratio <= AT_MOST, str(pairs)


@pytest.mark.parametrize("answers", ["whole", "streamed"])
def test_both_answer_alike(folders: Iterator[Path], answers: str) -> None:
    lines, streaming = recording(2), answers == "streamed"
    with (
        supplier(next(folders), lines, steps=2) as ours,
        bare(next(folders), lines) as other,
        Agent(ours.port, streaming=streaming) as mine,
        Agent(other.port, streaming=streaming) as its,
    ):
        for _ in range(2):
            one, another = mine.go_on(), its.go_on()
            assert set(one.headers) == set(another.headers)
            assert parts(one.body) == parts(another.body)


def parts(body: bytes) -> list[Any]:
    """Return the JSON documents that were sent, without what no two servers can have alike."""
    datas = [each.removeprefix(b"data: ") for each in body.split(b"\n\n") if each]
    found = [json.loads(each) if each != b"[DONE]" else {} for each in datas]
    return [{key: value for key, value in each.items() if key not in ("created", "usage")} for each in found]


def test_many_connections_at_once(folders: Iterator[Path]) -> None:
    folder, digests = next(folders), []
    with supplier(folder, (), steps=0) as server, ExitStack() as stack:
        clients = [stack.enter_context(RawClient(server.port, f"/{TOKEN}/v1")) for _ in range(CONNECTIONS)]
        for turn in range(20):
            for number, client in enumerate(clients):
                # All of them are asked before the first is read.
                question = {"role": "user", "content": f"{number}, {turn}"}
                body = {"model": f"m-{number}-{turn}", "messages": [question], "tools": [BASH]}
                client.post(json.dumps(body).encode(), headers=HEADERS)
            for number, client in enumerate(clients):
                answer = client.response()
                assert (answer.status, answer.json["model"]) == (200, f"m-{number}-{turn}")
                assert answer.json["choices"][0]["message"]["content"] in ("Done.", "OK")
                digests.append("sha256:" + hashlib.sha256(answer.raw).hexdigest())
    events = read_wire_log(folder / "wire.jsonl")
    assert sum(each["event"] == "accept" for each in events) == CONNECTIONS
    sent = [each for each in events if each["event"] == "sent"]
    assert all(each["complete"] for each in sent)
    assert sorted(each["digest"] for each in sent) == sorted(digests)


def test_many_requests_leave_no_memory_behind(folders: Iterator[Path], tell: Callable[[str], None]) -> None:
    warm_up = 500
    steps = REQUESTS + warm_up
    # The latest messages only: what the agent forgets must not stay with us either.
    with (
        supplier(next(folders), recording(steps), steps=steps) as server,
        Agent(server.port, streaming=False, shown=4) as agent,
    ):
        for _ in range(warm_up):
            agent.go_on()
        before = server.resident()
        for _ in range(REQUESTS):
            agent.go_on()
        grown = (server.resident() - before) / 2**20
    line = f"memory after {REQUESTS:,} requests on one connection: {grown:+.1f} MiB (at most {AT_MOST_MIB})"
    tell(line)
    assert grown <= AT_MOST_MIB, line


def test_cost_follows_the_length_of_the_conversation(folders: Iterator[Path], tell: Callable[[str], None]) -> None:
    # Four times the messages, four times the cost of each request; 16 times would be the square. The median of the
    # requests, since the two lengths come one after the other and cannot take turns.
    short, long, measured, at_most = 250, 1000, 40, 6
    spent: list[float] = []
    with (
        supplier(next(folders), recording(long), steps=long) as server,
        Agent(server.port, streaming=False, output="ok") as agent,
    ):
        for end in (short, long):
            while agent.step < end - measured:
                agent.go_on()
            requests: list[float] = []
            while agent.step < end:
                since = server.cpu()
                agent.go_on()
                requests.append(server.cpu() - since)
            spent.append(median(requests))
    ratio = spent[1] / spent[0]
    line = f"CPU a request of {2 * long:,} messages to one of {2 * short:,}: {ratio:.1f} times (at most {at_most})"
    tell(line)
    assert ratio <= at_most, line
