import asyncio
import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.port import bound_socket
from pytest_regcase.supplier.wire_log import WireLog
from tests.supplier.serving import RawClient, Response, Serving


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder: Path = tmp_path_factory.mktemp("connection")
    with Serving(folder) as running:
        yield running


@pytest.fixture
def client(serving: Serving) -> Iterator[RawClient]:
    with serving.client() as connected:
        yield connected


def asking(client: RawClient, model: str, headers: str = "", version: str = "1.1") -> bytes:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello."}]}).encode()
    named = f"Host: x\r\nContent-Length: {len(body)}\r\n{headers}"
    return f"POST {client.path}/chat/completions HTTP/{version}\r\n{named}\r\n".encode() + body


def model_of(answer: Response) -> str:
    return str(answer.json["model"])


def test_requests_that_come_in_one_piece_are_answered_in_their_order(client: RawClient) -> None:
    third = asking(client, "c")
    client.socket.sendall(asking(client, "a") + asking(client, "b") + third[:40])
    assert [model_of(client.response()) for _ in range(2)] == ["a", "b"]
    client.socket.sendall(third[40:])
    assert model_of(client.response()) == "c"


def test_a_request_may_come_byte_by_byte(client: RawClient) -> None:
    for each in asking(client, "a"):
        client.socket.sendall(bytes([each]))
    assert model_of(client.response()) == "a"


def test_a_body_in_chunks_is_read_whole(client: RawClient) -> None:
    body = asking(client, "a").partition(b"\r\n\r\n")[2]
    head = f"POST {client.path}/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (body[:7], body[7:]))
    client.socket.sendall(head.encode() + chunks + b"0\r\n\r\n" + asking(client, "b"))
    assert [model_of(client.response()) for _ in range(2)] == ["a", "b"]


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ("Connection: close\r\n", "1.1"),
        ("connection: Keep-Alive , CLOSE\r\n", "1.1"),
        ("Connection: keep-alive\r\nConnection: close\r\n", "1.1"),
        ("Connection: upgrade, close\r\nUpgrade: h2c\r\n", "1.1"),
        ("", "1.0"),
        ("Connection: keep-alive\r\n", "1.0"),
    ],
)
def test_a_connection_that_is_not_to_be_kept_ends_with_the_answer(
    client: RawClient, headers: str, version: str
) -> None:
    client.socket.sendall(asking(client, "a", headers, version))
    answer = client.response()
    assert (model_of(answer), answer.headers["connection"]) == ("a", "close")
    assert client.rest() == b""


@pytest.mark.parametrize("headers", ["", "Connection: keep-alive\r\n", "Connection: Upgrade\r\nUpgrade: h2c\r\n"])
def test_any_other_connection_is_kept(client: RawClient, headers: str) -> None:
    for model in ("a", "b"):
        client.socket.sendall(asking(client, model, headers))
        answer = client.response()
        assert model_of(answer) == model
        assert "connection" not in answer.headers


def test_a_connect_changes_no_protocol(client: RawClient) -> None:
    client.socket.sendall(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n")
    assert client.response().status == 404
    client.socket.sendall(asking(client, "a"))
    assert model_of(client.response()) == "a"


def test_who_says_the_end_right_behind_a_request_gets_its_answer(client: RawClient) -> None:
    client.socket.sendall(asking(client, "a"))
    client.socket.shutdown(socket.SHUT_WR)
    assert model_of(client.response()) == "a"
    assert client.rest() == b""


def test_small_parts_of_an_answer_are_sent_at_once() -> None:
    # With Nagle's algorithm each streamed answer waits for the client's delayed acknowledgement: 40 ms.
    async def no_delay() -> int:
        loop = asyncio.get_running_loop()
        accepted: asyncio.Future[int] = loop.create_future()

        class Looking(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                handle = transport.get_extra_info("socket")
                accepted.set_result(handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

        server = await loop.create_server(Looking, sock=bound_socket())
        with socket.create_connection(server.sockets[0].getsockname()):
            found = await accepted
        server.close()
        await server.wait_closed()
        return found

    assert asyncio.run(no_delay())


@pytest.mark.parametrize("ends_by", ["close", "finish"])
def test_a_reset_that_the_loop_has_not_seen_is_the_client_s_end(ends_by: str, tmp_path: Path) -> None:
    # Found by a streaming agent that resets while we end: the kernel refused our end, and the supplier broke.
    async def end_after_a_reset() -> None:
        loop = asyncio.get_running_loop()
        served: asyncio.Future[None] = loop.create_future()

        async def serve(connection: ClientConnection) -> None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()  # a reset, while this loop runs nothing but us
            try:
                await (connection.close("fin") if ends_by == "close" else connection.finish())
            except BaseException as error:
                served.set_exception(error)
            else:
                served.set_result(None)

        log = WireLog(tmp_path / "wire.jsonl", t0=time.monotonic())
        server = await loop.create_server(lambda: ClientConnection(1, log, serve), sock=bound_socket())
        peer = socket.create_connection(server.sockets[0].getsockname())
        await served
        server.close()
        await server.wait_closed()
        log.close()

    asyncio.run(end_after_a_reset())
    events = [json.loads(line) for line in (tmp_path / "wire.jsonl").read_text().splitlines()]
    (closed,) = [each for each in events if each["event"] == "closed"]
    assert (closed["by"], closed["how"]) == ("peer", "rst")
