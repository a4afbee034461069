import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_regcase import registry
from tests.supplier.serving import TWO_STEPS, RawClient, Serving, assistant, call, echoing, fault

ASK = [{"role": "user", "content": "Fix it."}]


def test_two_steps_and_the_closing_reply_come_over_one_connection(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS, failing_step=3) as serving:
        with serving.client() as client:
            first = client.chat(ASK)
            history = echoing(ASK, first, "old")
            second = client.chat(history)
            history = echoing(history, second, "new")
            third = client.chat(history)
        serving.wait_said("control-reached")
        serving.wait_logged("closed")
        events = serving.stop()
    messages = [each.json["choices"][0]["message"] for each in (first, second, third)]
    assert [each["content"] for each in messages] == ["Looking.", "Fixing.", "Done."]
    assert messages[0]["tool_calls"][0]["id"] == "c1"
    assert [each["event"] for each in events] == [
        *("listen", "accept", "request", "sent", "request", "sent", "request", "sent", "closed", "exited")
    ]
    assert [each["from"] for each in events if each["event"] == "sent"] == ["replay", "replay", "filler"]
    (closed,) = [each for each in events if each["event"] == "closed"]
    assert (closed["by"], closed["how"], closed["unacknowledged"]) == ("peer", "fin", 0)
    assert "held_seconds" not in closed
    assert events[-1]["code"] == 0


def test_the_log_holds_the_keys_of_the_interface_and_no_others(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS) as serving:
        with serving.client() as client:
            client.chat(ASK, headers="x-stainless-retry-count: 0\r\nAuthorization: Bearer sk-agent\r\n")
        events = serving.stop()
    assert "sk-agent" not in serving.log.read_text()
    request = next(each for each in events if each["event"] == "request")
    assert set(request) == {
        *("t", "event", "conn", "request", "step", "wire", "path", "streaming", "body_bytes", "body_digest"),
        *("conversation", "side_call", "client_retry", "phase"),
    }
    assert request["path"] == "/v1/chat/completions"
    sent = next(each for each in events if each["event"] == "sent")
    assert set(sent) == {
        *("t", "event", "conn", "request", "step", "from", "status", "bytes", "digest", "complete"),
        *("text", "tool_calls"),
    }


def test_the_bytes_that_are_logged_are_the_bytes_that_came(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS) as serving:
        with serving.client() as client:
            client.ask(ASK, stream=True, headers="")
            client.socket.shutdown(1)
            raw = client.rest()
        events = serving.stop()
    sent = next(each for each in events if each["event"] == "sent")
    assert sent["bytes"] == len(raw)
    assert raw.startswith(b"HTTP/1.1 200 OK\r\n")
    assert raw.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


def test_a_stream_holds_text_calls_and_no_usage_unless_asked(tmp_path: Path) -> None:
    lines = (assistant(1, call("a", "x" * 60), call("b"), text="word " * 20),)
    with Serving(tmp_path, lines=lines) as serving, serving.client() as client:
        events = client.chat(ASK, stream=True).events
        # A retry of the client's: the same reply once more, this time with usage.
        again = client.chat(
            ASK, stream=True, stream_options={"include_usage": True}, headers="x-stainless-retry-count: 1\r\n"
        ).events
    deltas = [each["choices"][0]["delta"] for each in events[:-1]]
    assert "".join(each.get("content") or "" for each in deltas) == "word " * 20
    assert [each["tool_calls"][0].get("id") for each in deltas if "tool_calls" in each].count(None) > 0
    assert events[-1] == "[DONE]"
    assert again[-2]["choices"] == []
    assert again[-2]["usage"]["completion_tokens"] > 0


def test_a_wrong_token_is_refused_and_counts_as_nothing(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS) as serving:
        with serving.client() as client:
            client.post(b"{}", path="/guess/v1/chat/completions")
            assert client.response().status == 404
            assert client.chat(ASK).json["choices"][0]["message"]["content"] == "Looking."
        events = serving.stop()
    refused = [each for each in events if each.get("request") == 1]
    assert [each["event"] for each in refused] == ["request", "sent"]
    assert "conversation" not in refused[0]
    assert "path" not in refused[0]
    assert refused[1]["from"] == "refusal"


@pytest.mark.parametrize(
    ("path", "status"), [("/nothing", 404), ("/models", 200), ("/models/m", 200), ("/chat/completions", 405)]
)
def test_other_paths_and_methods_are_answered_like_the_real_api(tmp_path: Path, path: str, status: int) -> None:
    with Serving(tmp_path) as serving, serving.client() as client:
        answer = client.get(serving.path + path)
        assert answer.status == status
        assert answer.headers["content-type"] == "application/json"
        assert ("error" in answer.json) == (status != 200)


def test_malformed_json_gets_the_error_body_and_the_connection_lives(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS) as serving, serving.client() as client:
        client.post(b"{")
        answer = client.response()
        assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
        assert client.chat(ASK).status == 200


def test_garbage_is_refused_and_the_supplier_lives(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS) as serving:
        with RawClient(serving.port, serving.path) as garbage:
            garbage.socket.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            assert garbage.rest().startswith(b"HTTP/1.1 400 ")
        with serving.client() as client:
            assert client.chat(ASK).status == 200
        assert not any(each["say"] == "trouble" for each in serving.said)


def test_http_1_0_gets_a_stream_without_chunks(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS) as serving, serving.client() as client:
        body = json.dumps({"model": "m", "messages": ASK, "stream": True, "tools": []})
        client.post(body.encode(), version="1.0")
        answer = client.response()
        assert answer.headers["connection"] == "close"
        assert answer.events[-1] == "[DONE]"


def test_a_request_is_held_in_silence_until_the_client_lets_go(tmp_path: Path) -> None:
    with Serving(tmp_path, fault=fault("no_answer", at_step=1)) as serving:
        with serving.client() as client:
            client.ask(ASK)
            serving.wait_said("first-fault")
            assert client.hears_nothing_for(0.1)
        serving.wait_logged("closed")
        events = serving.stop()
    closed = next(each for each in events if each["event"] == "closed")
    assert (closed["by"], closed["how"], closed["request"], closed["step"]) == ("peer", "fin", 1, 1)
    assert closed["held_seconds"] >= 0.1
    assert not any(each["event"] == "sent" for each in events)


def test_a_reset_of_the_client_is_told_from_its_end(tmp_path: Path) -> None:
    with Serving(tmp_path, fault=fault("no_answer", at_step=1)) as serving:
        with serving.client() as client:
            client.ask(ASK)
            serving.wait_said("first-fault")
            client.socket.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER of zero seconds: a reset
        serving.wait_logged("closed")
        closed = next(each for each in serving.stop() if each["event"] == "closed")
    assert (closed["by"], closed["how"]) == ("peer", "rst")


def test_what_is_still_open_at_the_end_is_closed_by_us(tmp_path: Path) -> None:
    with Serving(tmp_path, fault=fault("no_answer", at_step=1)) as serving, serving.client() as client:
        client.ask(ASK)
        serving.wait_said("first-fault")
        events = serving.stop()
        closed = next(each for each in events if each["event"] == "closed")
        assert closed["by"] == "us"
        assert closed["held_seconds"] > 0
        assert client.rest() == b""


def test_nobody_is_answered_between_the_first_fault_and_proceed(tmp_path: Path) -> None:
    with (
        Serving(tmp_path, proceeds=False, lines=TWO_STEPS[:2], fault=fault("key_rejected", at_step=2)) as serving,
        serving.client() as client,
        serving.client() as other,
    ):
        history = echoing(ASK, client.chat(ASK))
        client.ask(history)
        serving.wait_said("first-fault")
        other.ask(ASK, tools=())
        assert client.hears_nothing_for(0.2)
        assert other.hears_nothing_for(0.2)
        serving.process.proceed()
        assert client.response().status == 401
        assert other.response().json["choices"][0]["message"]["content"] == "OK"


def test_a_departure_is_said_and_logged(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS, fault=fault("no_answer", at_step=2)) as serving:
        with serving.client() as client:
            client.chat(ASK)
            client.chat([*ASK, {"role": "user", "content": "again"}])
        serving.wait_said("off-the-prefix")
        events = serving.stop()
    assert any(each.get("off_prefix") for each in events)
    assert not any(each.get("phase") == "faulted" for each in events)


def test_a_fault_that_breaks_is_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_fault.py").write_text(
        "from pytest_regcase.supplier.protocol import NoSettings\n"
        "class Broken:\n"
        "    kind = 'broken'\n"
        "    settings_model = NoSettings\n"
        "    def __init__(self, settings): pass\n"
        "    async def inject(self, exchange): raise RuntimeError('no')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    from pytest_regcase.supplier.spec import FaultSpec

    broken = FaultSpec("broken", "broken_fault:Broken", at_step=1)
    with Serving(tmp_path / "attempt", fault=broken) as serving, serving.client() as client:
        client.ask(ASK)
        assert client.rest() == b""
        serving.wait_said("trouble")
        assert "RuntimeError: no" in next(each["text"] for each in serving.said if each["say"] == "trouble")


def test_the_child_loads_no_records_and_no_pydantic() -> None:
    modules = sorted({each.module for group in ("faults", "wires") for each in registry.names(group).values()})
    code = (
        "import sys, pytest_regcase.supplier.server as s\n"
        f"import {', '.join(modules)}\n"
        "heavy = ('pydantic', 'pytest', 'sqlalchemy', 'scipy', 'rich', 'click')\n"
        "print([m for m in sys.modules if m.startswith((*heavy, 'pytest_regcase.records'))\n"
        "       and not m.startswith('pytest_regcase.supplier') and m != 'pytest_regcase'])\n"
    )
    # -S would hide the installation; a coverage or pytest hook in the environment may not load anything here.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("resets", [False, True])
def test_who_lets_go_as_the_fault_is_let_go_did_not_meet_the_kill(tmp_path: Path, resets: bool) -> None:
    kill = fault("process_killed", at_step=1)
    with Serving(tmp_path, proceeds=False, fault=kill) as serving:
        client = serving.client()
        client.ask(ASK)
        serving.wait_said("first-fault")
        # Both are there when it looks again.
        os.kill(serving.process._child.pid, signal.SIGSTOP)
        if resets:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.socket.close()
        serving.process.proceed()
        os.kill(serving.process._child.pid, signal.SIGCONT)
        serving.wait_logged("closed")
        events = serving.stop()
    assert not any(each["event"] == "killed" for each in events)
    (closed,) = [each for each in events if each["event"] == "closed"]
    assert (closed["by"], closed["how"]) == ("peer", "rst" if resets else "fin")


@pytest.mark.parametrize("path", ["/models", "/chat/completions", "/nothing"])
def test_an_answer_to_head_is_a_head_alone(tmp_path: Path, path: str) -> None:
    with Serving(tmp_path, lines=TWO_STEPS) as serving, serving.client() as client:
        client.socket.sendall(f"HEAD {client.path}{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        client.socket.shutdown(socket.SHUT_WR)
        raw = client.rest()
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"Content-Length: " in head
    assert body == b""


def test_a_retry_count_that_is_none_is_passed_over(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=TWO_STEPS) as serving, serving.client() as client:
        answer = client.chat(ASK, headers=f"x-stainless-retry-count: {'9' * 5000}\r\n")
    assert answer.status == 200


def test_a_connection_that_was_slowed_down_while_a_request_was_held_goes_on(tmp_path: Path) -> None:
    late = fault("slow_answer", at_step=1, lasts=1, settings={"seconds": 0.3})
    long = [{"role": "user", "content": "x" * 3_000_000}]
    with Serving(tmp_path, fault=late) as serving, serving.client() as client:
        client.ask(ASK)
        client.ask(long)
        assert client.response().status == 200
        assert client.response().status == 200
