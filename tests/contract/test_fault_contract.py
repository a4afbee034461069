"""What every registered fault must do on a real socket, and what counts as not delivered.

A third party's fault runs through it by being registered.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.records.case import Simulation
from pytest_regcase.records.wire import NotApplicable, WireEvent, WireFacts
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.inject import declares_for, fault_spec
from pytest_regcase.supplier.spec import FaultSpec
from tests.supplier.serving import LIMIT_SECONDS, TWO_STEPS, Response, Serving, echoing

ASK = [{"role": "user", "content": "Fix it."}]
LINES = TWO_STEPS[:3]
KINDS = sorted(registry.names("faults"))
STREAMING = [pytest.param(False, id="whole"), pytest.param(True, id="stream")]


def simulation(kind: str, **fault: Any) -> Simulation:
    return Simulation.model_validate(
        {"id": "x-v1", "hypothesis": "hidden", "title": "t", "fault": {"kind": kind, **fault}}
    )


def read(kind: str, events: tuple[WireEvent, ...], *, ended: float | None = None) -> WireFacts:
    return wire_facts(
        events,
        declares=declares_for(simulation(kind)),
        ended_by_us_at=ended,
        last_step=1,
        failing_step=2,
    )


def meet(serving: Serving, *, streaming: bool) -> bytes:
    """Follow the recorded step, ask for the failing one, and return every byte that came, up to the end."""
    with serving.client() as client:
        history = echoing(ASK, client.chat(ASK), "old")
        client.ask(history, stream=streaming, headers="Connection: close\r\n")
        client.socket.settimeout(0.5)
        received = b""
        try:
            while data := client.socket.recv(65536):
                received += data
        except TimeoutError:
            pass
    serving.wait_for(lambda: {"closed", "exited"} & {each["event"] for each in serving.events()})
    return received


@pytest.mark.parametrize("streaming", STREAMING)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_delivered_as_declared(kind: str, streaming: bool, tmp_path: Path) -> None:
    declared = declares_for(simulation(kind))("openai-chat", streaming)
    if isinstance(declared, NotApplicable):
        pytest.skip(declared.reason)
    spec = fault_spec(simulation(kind), failing_step=2, lines=LINES)
    with Serving(tmp_path, lines=LINES, failing_step=2, fault=spec) as serving:
        received = meet(serving, streaming=streaming)
        facts = read(kind, serving.stop())
    assert (facts.delivered, facts.why_not) == (True, None)
    assert facts.faulted_requests == 1
    assert facts.retries == (None if declared.then == "killed" else 0)
    assert facts.steps_reached == 2
    assert facts.asked_for_failing_step
    assert [each.text for each in facts.replies] == ["Looking."], "what a fault sends is no reply"
    assert facts.last_release_seconds is not None
    assert (received == b"") == (declared.answer == "none")
    if declared.answer == "complete":
        assert int(received.split(b" ", 2)[1]) == declared.status
    assert facts.server_gone == (declared.then == "killed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_set_too_late_is_not_delivered(kind: str, tmp_path: Path) -> None:
    spec = fault_spec(simulation(kind, at=9), failing_step=2, lines=LINES)
    with Serving(tmp_path, lines=LINES, failing_step=2, fault=spec) as serving:
        meet(serving, streaming=False)
        facts = read(kind, serving.stop())
    assert facts.delivered is False
    assert "as far as step 2" in (facts.why_not or "")


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "no_answer"])
def test_a_fault_that_was_never_let_go_is_not_delivered(kind: str, tmp_path: Path) -> None:
    spec = fault_spec(simulation(kind), failing_step=2, lines=LINES)
    with Serving(tmp_path, proceeds=False, lines=LINES, failing_step=2, fault=spec) as serving:
        assert meet(serving, streaming=False) == b""
        facts = read(kind, serving.stop())
    assert facts.delivered is False
    assert facts.why_not


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_that_does_something_else_is_not_delivered(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "liar.py").write_text(
        "from pytest_regcase.supplier.protocol import NoSettings\n"
        "class Liar:\n"
        f"    kind = {kind!r}\n"
        "    settings_model = NoSettings\n"
        "    def __init__(self, settings): pass\n"
        "    async def inject(self, exchange): await exchange.send_error(418, 'teapot')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    liar = FaultSpec(kind, "liar:Liar", at_step=2)
    with Serving(tmp_path / "attempt", lines=LINES, failing_step=2, fault=liar) as serving:
        assert b" 418 " in meet(serving, streaming=False)
        facts = read(kind, serving.stop())
    assert facts.delivered is False


@pytest.mark.parametrize("streaming", STREAMING)
@pytest.mark.parametrize("kind", [each for each in KINDS if each != "process_killed"])
def test_a_fault_heals_after_as_many_requests_as_it_was_told(kind: str, streaming: bool, tmp_path: Path) -> None:
    spec = fault_spec(simulation(kind, lasts=2), failing_step=2, lines=LINES)
    with Serving(tmp_path, lines=LINES, failing_step=2, fault=spec) as serving:
        with serving.client() as client:
            history = echoing(ASK, client.chat(ASK), "old")
        for _ in range(2):
            with serving.client() as client:
                client.ask(history, stream=streaming, headers="Connection: close\r\n")
                if kind == "no_answer":
                    client.hears_nothing_for(0.2)
                else:
                    client.rest()
        with serving.client() as client:
            assert client.chat(history).json["choices"][0]["message"]["content"] == "Done."
        facts = read(kind, serving.stop())
    assert (facts.delivered, facts.healed, facts.faulted_requests, facts.retries) == (True, True, 2, 2)


def test_a_listener_that_is_open_elsewhere_makes_a_kill_undelivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fault leaves a process behind that has the listener too: connects go on after the kill.
    (tmp_path / "leaky.py").write_text(
        "import os, time\n"
        "from pytest_regcase.supplier.protocol import NoSettings\n"
        "class Leaky:\n"
        "    kind = 'process_killed'\n"
        "    settings_model = NoSettings\n"
        "    def __init__(self, settings): pass\n"
        "    async def inject(self, exchange):\n"
        "        if os.fork() == 0:\n"
        "            os.close(0); os.close(1); time.sleep(3); os._exit(0)\n"
        "        exchange.kill_process()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    leaky = FaultSpec("process_killed", "leaky:Leaky", at_step=2)
    with Serving(tmp_path / "attempt", lines=LINES, failing_step=2, fault=leaky) as serving:
        meet(serving, streaming=False)
        facts = read("process_killed", serving.stop())
    assert facts.delivered is False
    assert "still takes connections" in (facts.why_not or "")


def test_an_answer_that_the_client_never_acknowledged_is_not_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More bytes than both kernels hold, and a client that never reads.
    (tmp_path / "wordy.py").write_text(
        "from pytest_regcase.supplier.protocol import NoSettings\n"
        "class Wordy:\n"
        "    kind = 'server_out_of_memory'\n"
        "    settings_model = NoSettings\n"
        "    def __init__(self, settings): pass\n"
        "    async def inject(self, exchange):\n"
        "        exchange._connection._writable.wait = lambda: __import__('asyncio').sleep(0)\n"
        "        await exchange.send_error(500, 'x', 'x' * 30_000_000)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    wordy = FaultSpec("server_out_of_memory", "wordy:Wordy", at_step=2)
    with (
        Serving(tmp_path / "attempt", lines=LINES, failing_step=2, fault=wordy) as serving,
        serving.client() as client,
    ):
        history = echoing(ASK, client.chat(ASK), "old")
        client.ask(history)
        serving.wait_logged("sent", 2)
        events = serving.stop()
    facts = read("server_out_of_memory", events)
    assert facts.delivered is False
    assert "not acknowledged" in (facts.why_not or "")


def test_the_empty_answer_is_empty_and_accounted_for(tmp_path: Path) -> None:
    spec = fault_spec(simulation("empty_answer"), failing_step=2, lines=LINES)
    with Serving(tmp_path, lines=LINES, failing_step=2, fault=spec) as serving:
        with serving.client() as client:
            history = echoing(ASK, client.chat(ASK), "old")
            whole: Response = client.chat(history)
            events = client.chat(history, stream=True).events
        facts = read("empty_answer", serving.stop())
    assert whole.json["choices"][0]["message"]["content"] == ""
    assert whole.json["choices"][0]["finish_reason"] == "stop"
    assert [each["choices"][0]["delta"].get("content") for each in events[:-1]] == ["", None]
    assert events[-1] == "[DONE]"
    assert facts.fault_texts == ("", "")
    assert facts.retries == 1


@pytest.mark.parametrize(
    ("kind", "status", "code", "says"),
    [
        ("key_rejected", 401, "invalid_api_key", "Incorrect API key provided"),
        ("server_out_of_memory", 500, None, "CUDA out of memory. Tried to allocate"),
    ],
)
def test_error_bodies_are_those_of_the_real_thing(
    kind: str, status: int, code: str | None, says: str, tmp_path: Path
) -> None:
    spec = fault_spec(simulation(kind), failing_step=1)
    with Serving(tmp_path, fault=spec) as serving, serving.client() as client:
        answer = client.chat(ASK)
    assert answer.status == status
    assert json.loads(answer.body)["error"]["code"] == code
    assert says in answer.json["error"]["message"]


def test_after_a_kill_the_client_is_refused_at_once(tmp_path: Path) -> None:
    spec = fault_spec(simulation("process_killed"), failing_step=1)
    with Serving(tmp_path, fault=spec) as serving:
        with serving.client() as client:
            client.ask(ASK)
            assert client.rest() == b""
        serving.wait_said("exited")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", serving.port), timeout=LIMIT_SECONDS)


def test_faults_are_imported_without_pydantic() -> None:
    entries = [registry.names("faults")[each].module for each in KINDS]
    code = f"import sys, {', '.join(entries)}; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
