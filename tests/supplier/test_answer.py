"""The framing of an answer: what goes out in one write, and that a body ends once."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from pytest_regcase.supplier.answer import Answer
from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.wire_log import WireLog


class Writes:
    """A connection that keeps what it is given."""

    http_1_0 = takes_no_body = False
    keep_alive = True

    def __init__(self) -> None:
        self.made: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self.made.append(data)


@pytest.fixture
def writes() -> Writes:
    return Writes()


@pytest.fixture
def answer(writes: Writes, tmp_path: Path) -> Answer:
    return Answer(cast(ClientConnection, writes), WireLog(tmp_path / "wire.jsonl", 0.0), request=1, step=1)


@pytest.mark.parametrize("events", [(b"a", b"b"), (b"a",)])
def test_the_end_goes_out_with_the_last_event(answer: Answer, writes: Writes, events: tuple[bytes, ...]) -> None:
    asyncio.run(answer.send_events(events))
    *before, last = (b"1\r\n%s\r\n" % each for each in events)
    assert writes.made[1:] == [*before, last + b"0\r\n\r\n"]
    assert answer.complete


def test_a_stream_of_no_events_ends_too(answer: Answer, writes: Writes) -> None:
    asyncio.run(answer.send_events(()))
    assert writes.made[1:] == [b"0\r\n\r\n"]


def test_a_body_ends_once(answer: Answer, writes: Writes) -> None:
    """A fault of somebody else's may end what its last event has ended."""

    async def twice() -> None:
        await answer.send_events([b"a"])
        await answer.finish()

    asyncio.run(twice())
    assert b"".join(writes.made).count(b"0\r\n\r\n") == 1


def test_the_smallest_part_is_counted_as_it_goes_out(answer: Answer) -> None:
    async def parts() -> None:
        await answer.start(200, None)
        assert (answer.parts, answer.smallest_part) == (0, None)
        for data in (b"abc", b"d", b"ef"):
            await answer.piece(data)

    asyncio.run(parts())
    assert (answer.parts, answer.smallest_part) == (3, len(b"1\r\nd\r\n"))
