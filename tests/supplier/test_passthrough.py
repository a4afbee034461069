import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.protocol import Call, Reply
from pytest_regcase.supplier.spec import PassThrough
from pytest_regcase.supplier.wires.anthropic_messages import AnthropicMessages
from pytest_regcase.supplier.wires.openai_chat import OpenAIChat
from pytest_regcase.supplier.wires.openai_responses import OpenAIResponses
from tests.supplier.serving import LIMIT_SECONDS, TWO_STEPS, Serving, fault
from tests.supplier.speaking import Speaker

ASK = [{"role": "user", "content": "Fix it."}]
Answers = Callable[[socket.socket], None]


class Upstream:
    """A server that keeps every request and lets the test answer by hand, one connection a request."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.answers: list[Answers] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/api/v1"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(LIMIT_SECONDS)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(LIMIT_SECONDS)
                self.requests.append(_read_request(connection))
                self.answers.pop(0)(connection)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < sum(lengths):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


def reply(text: str, *calls: Call, number: int = 1) -> Reply:
    return Reply(f"chatcmpl-up-{number}", "m", 1, text, calls)


def answers(status: str, body: bytes, content_type: str = "application/json") -> Answers:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


def healthy(given: Reply) -> Answers:
    return answers("200 OK", b"".join(OpenAIChat().render(given, False)))


def passing(upstream: Upstream) -> dict[str, Any]:
    return {"pass_through": PassThrough(upstream.base_url, api_key_env="REGCASE_TEST_KEY")}


def test_requests_go_up_with_the_real_key_and_answers_come_down_uncut(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGCASE_TEST_KEY", "sk-real")
    upstream.answers = [healthy(reply("first", Call("u1", "bash", "{}"))), healthy(reply("second", number=2))]
    with Serving(tmp_path, env_key="REGCASE_TEST_KEY", lines=TWO_STEPS, **passing(upstream)) as serving:
        with serving.client() as client:
            first = client.chat(
                ASK, headers="Authorization: Bearer sk-agent\r\nX-Api-Key: sk-agent\r\nX-Own: kept\r\n"
            )
            second = client.chat([*ASK, {"role": "user", "content": "next"}], temperature=0.25)
        events = serving.stop()
    assert [each.json["choices"][0]["message"]["content"] for each in (first, second)] == ["first", "second"]
    head, _, body = upstream.requests[1].partition(b"\r\n\r\n")
    assert json.loads(body)["temperature"] == 0.25
    assert upstream.requests[0].startswith(b"POST /api/v1/chat/completions HTTP/1.1\r\n")
    assert b"authorization: Bearer sk-real" in head
    assert b"x-own: kept" in upstream.requests[0]
    assert not any(b"sk-agent" in each for each in upstream.requests)
    for path in tmp_path.iterdir():
        assert b"sk-real" not in path.read_bytes()
    facts = wire_facts(events, declares=None, ended_by_us_at=None, last_step=2, failing_step=3)
    assert facts.upstream_ids == ("chatcmpl-up-1", "chatcmpl-up-2")
    assert [(each.step, each.origin, each.text) for each in facts.replies] == [
        (1, "upstream", "first"),
        (2, "upstream", "second"),
    ]
    assert facts.replies[0].tool_calls[0].name == "bash"
    assert facts.steps_reached == 2
    assert facts.upstream_failures == ()


def test_a_stream_is_passed_on_piece_by_piece(tmp_path: Path, upstream: Upstream) -> None:
    events = list(OpenAIChat().render(reply("streamed", Call("u1", "bash", '{"a": 1}')), True))
    may_go_on = threading.Event()

    def stream(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events[0])
        assert may_go_on.wait(LIMIT_SECONDS)
        connection.sendall(b"".join(events[1:]))

    upstream.answers = [stream]
    with Serving(tmp_path, **passing(upstream)) as serving:
        with serving.client() as client:
            client.ask(ASK, stream=True)
            first = b""
            while events[0] not in first:
                first += client.socket.recv(65536)
            may_go_on.set()
            rest = first + client.rest_until(b"0\r\n\r\n")
        log = serving.stop()
    assert rest.endswith(b"\r\n0\r\n\r\n")
    sent = next(each for each in log if each["event"] == "sent")
    assert (sent["text"], sent["complete"]) == ("streamed", True)
    assert sent["tool_calls"] == [{"id": "u1", "name": "bash", "arguments": '{"a": 1}'}]


def cut(content_type: str, body: bytes) -> Answers:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: 9999\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        (answers("429 Too Many", b'{"error": {"code": "rate_limit_exceeded"}}'), 429, "429 (rate_limit_exceeded)"),
        (answers("503 No", b"<html>", "text/html"), 503, "answered 503"),
        (answers("200 OK", b'{"error": {"type": "overloaded"}}'), 200, "200 with an error in it (overloaded)"),
        (answers("200 OK", b'{"choices": []}'), 200, "200 without a choice"),
        (socket.socket.close, 502, "closed the connection before it answered"),
    ],
)
def test_failures_are_passed_on_and_said_in_words(
    tmp_path: Path, upstream: Upstream, answer: Answers, status: int, says: str
) -> None:
    upstream.answers = [answer]
    with Serving(tmp_path, **passing(upstream)) as serving:
        with serving.client() as client:
            assert client.chat(ASK).status == status
        facts = wire_facts(serving.stop(), declares=None, ended_by_us_at=None, last_step=None, failing_step=2)
    assert len(facts.upstream_failures) == 1
    assert says in facts.upstream_failures[0]
    assert facts.replies == ()
    assert facts.steps_reached == 1


def test_an_answer_that_breaks_off_is_cut_for_the_agent_too(tmp_path: Path, upstream: Upstream) -> None:
    half = b"".join(list(OpenAIChat().render(reply("half an answer"), True))[:2])
    upstream.answers = [cut("text/event-stream", half)]
    with Serving(tmp_path, **passing(upstream)) as serving:
        with serving.client() as client:
            client.ask(ASK, stream=True)
            assert half in client.rest()
        facts = wire_facts(serving.stop(), declares=None, ended_by_us_at=None, last_step=None)
    assert facts.upstream_failures == ("the upstream closed the connection in the middle of its answer",)
    (unfinished,) = facts.replies
    assert unfinished.unfinished
    assert unfinished.text == "half an answer"


def test_an_upstream_that_is_not_there_is_a_502(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        through = PassThrough(f"http://127.0.0.1:{nobody.getsockname()[1]}/v1")
        with Serving(tmp_path, pass_through=through) as serving:
            with serving.client() as client:
                answer = client.chat(ASK)
            facts = wire_facts(serving.stop(), declares=None, ended_by_us_at=None, last_step=None)
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_failed")
    assert facts.upstream_failures == ("the upstream refused the connection",)


def test_a_stall_is_left_to_the_agents_own_time_out(tmp_path: Path, upstream: Upstream) -> None:
    let_go = threading.Event()

    def stall(connection: socket.socket) -> None:
        let_go.set()
        assert connection.recv(1) == b"", "the agent let go, so we let go of the upstream"

    upstream.answers = [stall]
    with Serving(tmp_path, **passing(upstream)) as serving:
        with serving.client() as client:
            client.ask(ASK)
            assert let_go.wait(LIMIT_SECONDS)
        serving.wait_logged("closed")
        events = serving.stop()
    facts = wire_facts(events, declares=None, ended_by_us_at=None, last_step=None)
    assert facts.upstream_failures == ("the upstream had not answered when the agent let go",)
    assert next(each for each in events if each["event"] == "closed")["by"] == "peer"
    assert facts.last_release_seconds is not None


def test_a_fault_is_injected_at_its_step_of_a_passed_through_conversation(
    tmp_path: Path, upstream: Upstream
) -> None:
    upstream.answers = [healthy(reply("one"))]
    with Serving(tmp_path, **passing(upstream), fault=fault("key_rejected", at_step=2)) as serving:
        with serving.client() as client:
            assert client.chat(ASK).status == 200
            assert client.chat([*ASK, {"role": "user", "content": "more"}]).status == 401
        serving.stop()
    assert len(upstream.requests) == 1


def test_what_is_no_model_request_is_passed_on_and_fails_no_trial(tmp_path: Path, upstream: Upstream) -> None:
    upstream.answers = [answers("200 OK", b'{"data": ["real"]}'), answers("404 No", b"{}")]
    with Serving(tmp_path, **passing(upstream)) as serving:
        with serving.client() as client:
            assert client.get(serving.path + "/models").json == {"data": ["real"]}
            assert client.get(serving.path + "/files?limit=2").status == 404
        facts = wire_facts(serving.stop(), declares=None, ended_by_us_at=None, last_step=None)
    assert upstream.requests[1].startswith(b"GET /api/v1/files?limit=2 HTTP/1.1")
    assert facts.requests == 0
    assert facts.upstream_failures == ()


def test_an_upstream_url_that_is_none_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no http or https URL"):
        Serving(tmp_path, pass_through=PassThrough("ftp://x"))


@pytest.mark.parametrize("ending", ["", "/", "/v1"])
def test_an_anthropic_upstream_is_reached_by_the_base_url_that_its_clients_take(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("REGCASE_TEST_KEY", "sk-real")
    message = b"".join(AnthropicMessages().render(Reply("msg_1", "m", 1, "hello"), False))
    upstream.answers = [answers("200 OK", message)]
    through = PassThrough(
        upstream.base_url.removesuffix("/v1") + ending, "anthropic-messages", api_key_env="REGCASE_TEST_KEY"
    )
    with Serving(tmp_path, env_key="REGCASE_TEST_KEY", pass_through=through) as serving:
        with serving.client() as client:
            answer = Speaker("anthropic-messages").ask(client, headers="x-api-key: sk-agent\r\n")
        facts = wire_facts(serving.stop(), declares=None, ended_by_us_at=None, last_step=None)
    assert answer.json["content"] == [{"type": "text", "text": "hello"}]
    assert upstream.requests[0].startswith(b"POST /api/v1/messages HTTP/1.1\r\n")
    assert b"x-api-key: sk-real" in upstream.requests[0]
    assert b"sk-agent" not in upstream.requests[0]
    assert (facts.upstream_ids, facts.upstream_failures) == (("msg_1",), ())


def test_what_an_upstream_keeps_itself_is_left_to_it(tmp_path: Path, upstream: Upstream) -> None:
    response = b"".join(OpenAIResponses().render(Reply("resp_up", "m", 1, "hello"), False))
    upstream.answers = [answers("200 OK", response), answers("200 OK", response)]
    through = PassThrough(upstream.base_url, "openai-responses")
    with Serving(tmp_path, pass_through=through) as serving:
        with serving.client() as client:
            for previous in ("resp_of_another_day", "resp_up"):
                speaker = Speaker("openai-responses", tools=False)
                assert speaker.ask(client, previous_response_id=previous).status == 200
        facts = wire_facts(serving.stop(), declares=None, ended_by_us_at=None, last_step=None)
    assert all(b"previous_response_id" in each for each in upstream.requests)
    assert (facts.requests, facts.side_calls, facts.upstream_failures) == (2, 0, ())


def test_a_header_that_gives_the_key_back_is_not_handed_on(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGCASE_TEST_KEY", "sk-real")
    body = b"".join(OpenAIChat().render(reply("first"), False))
    head = f"HTTP/1.1 200 OK\r\nX-Echo: key sk-real\r\nX-Kept: yes\r\nContent-Length: {len(body)}\r\n\r\n"
    upstream.answers = [lambda connection: connection.sendall(head.encode() + body)]
    with (
        Serving(tmp_path, env_key="REGCASE_TEST_KEY", **passing(upstream)) as serving,
        serving.client() as client,
    ):
        headers = client.chat(ASK).headers
    assert headers["x-kept"] == "yes"
    assert "x-echo" not in headers
