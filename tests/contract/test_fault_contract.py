"""The contract over every registered fault, and what counts as not delivered on a real socket.

A third party's fault runs through the contract by inheriting it (see `fault_contract`).
"""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from pytest_regcase import registry
from pytest_regcase.records.wire import Delivery, WireFacts
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.inject import fault_spec
from pytest_regcase.supplier.memory import cgroup_candidates, group_name
from pytest_regcase.supplier.spec import FaultSpec
from tests.conftest import REPOSITORY
from tests.contract.fault_contract import FaultContract
from tests.supplier.cells import SHORT, ask, declares_of, look, simulation
from tests.supplier.serving import LIMIT_SECONDS, TWO_STEPS, RawClient, Serving, echoing

ASK = [{"role": "user", "content": "Fix it."}]


class TestEveryRegisteredFault(FaultContract):
    @pytest.fixture(params=sorted(registry.names("faults")))
    def kind(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


def facts_of(kind: str, serving: Serving, **settings: object) -> WireFacts:
    return wire_facts(
        serving.stop(),
        declares=declares_of(kind, {**SHORT.get(kind, {}), **settings}),
        ended_by_us_at=None,
        last_step=None,
        failing_step=1,
    )


@pytest.mark.parametrize(
    ("kind", "settings", "wrong", "says"),
    [
        ("reset_before_answer", {}, "Closes", "ended with fin, declared was rst"),
        ("closed_without_answer", {}, "Resets", "ended with rst, declared was fin"),
        ("no_answer", {}, "Closes", "was not held"),
        ("process_killed", {}, "Closes", "was not killed"),
        ("process_killed", {"request_unread": True}, "Kills", "ended with fin, declared was rst"),
        ("memory_exhausted", {}, "Kills", "nothing shows that the supplier's memory ran out"),
        ("connection_refused", {}, "Resets", "the port was not closed"),
        ("mid_stream_stall", {}, "SendsAHead", "0 parts of the body were sent"),
        ("headers_then_silence", {}, "Stalls", "where a head alone was declared"),
        ("byte_trickle", {}, "Stalls", "1 parts of the body were sent, declared were at least 2"),
        ("slow_answer", {"seconds": 9.0}, "Answers", "declared: not before 9.0"),
        ("body_too_short", {}, "Answers", "a whole one or none was sent"),
        ("server_out_of_memory", {}, "Answers", "answered 200, declared was 500"),
        ("process_killed", {}, "KillsAndLeavesAListener", "still takes connections"),
        ("connection_refused", {}, "RefusesAndLeavesAListener", "still takes connections"),
    ],
)
def test_a_fault_that_does_something_else_is_not_delivered(
    kind: str,
    settings: dict[str, object],
    wrong: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY), prepend=os.pathsep)
    fault = FaultSpec(kind, f"tests.contract.wrong_faults:{wrong}", at_step=1)
    with Serving(tmp_path, fault=fault) as serving:
        with serving.client() as client:
            ask(client, serving, "openai-chat", streaming=False)
            if wrong in ("SendsAHead", "Stalls"):
                # It comes some time after the request is logged: a client that goes before gets none of it.
                body: Literal["some", "none"] = "some" if wrong == "Stalls" else "none"
                look(client, serving, Delivery(answer="partial", then="held", body=body), requests=1)
            else:
                look(client, serving, Delivery(answer="complete", then="answered"), requests=1)
        serving.wait_for(lambda: {"closed", "killed"} & {each["event"] for each in serving.events()})
        facts = facts_of(kind, serving, **settings)
    assert facts.delivered is False
    assert says in (facts.why_not or "")
    assert not any(each["say"] == "trouble" for each in serving.said)


def test_a_fault_set_too_late_is_not_delivered(tmp_path: Path) -> None:
    late = fault_spec(simulation("key_rejected", at=9), failing_step=3, lines=TWO_STEPS)
    with Serving(tmp_path, lines=TWO_STEPS, failing_step=3, fault=late) as serving:
        with serving.client() as client:
            history = echoing(ASK, client.chat(ASK), "old")
            client.chat(echoing(history, client.chat(history), "new"))
        facts = facts_of("key_rejected", serving)
    assert facts.delivered is False
    assert "the agent came as far as step 3" in (facts.why_not or "")


def test_a_fault_that_was_never_let_go_is_not_delivered(tmp_path: Path) -> None:
    held_back = fault_spec(simulation("key_rejected"), failing_step=1)
    with Serving(tmp_path, proceeds=False, fault=held_back) as serving:
        with serving.client() as client:
            client.ask(ASK)
            serving.wait_said("first-fault")
        facts = facts_of("key_rejected", serving)
    assert (facts.delivered, facts.why_not) == (False, "no answer of the fault was sent")


class Unwilling(RawClient):
    """A client whose kernel takes a few bytes, and who reads nothing until it is told to."""

    def __init__(self, port: int, path: str) -> None:
        self.path, self._rest = path, b""
        self.socket = socket.socket()
        self.socket.settimeout(LIMIT_SECONDS)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))


LONG = "word " * 60_000


@pytest.mark.parametrize("kind", ["mid_stream_stall", "reset_mid_stream", "body_too_short"])
def test_what_the_client_never_acknowledged_is_not_delivered(kind: str, tmp_path: Path) -> None:
    spec = fault_spec(simulation(kind, {"text": LONG}), failing_step=1)
    with Serving(tmp_path, fault=spec) as serving:
        with Unwilling(serving.port, serving.path) as client:
            client.ask(ASK)
            serving.wait_said("first-fault")
            if kind == "mid_stream_stall":
                came = b""
                while not came.partition(b"\r\n\r\n")[2]:
                    # Byte by byte: some of the body is under way, and most of it never arrives.
                    came += (one := client.socket.recv(1))
                    assert one, came
            else:
                serving.wait_logged("closed")
        serving.wait_logged("closed")
        facts = facts_of(kind, serving, text=LONG)
    assert facts.delivered is False
    assert "bytes were not acknowledged" in (facts.why_not or "")


def test_what_is_acknowledged_late_is_delivered(tmp_path: Path) -> None:
    # Asked right after the write, the kernel would say that most of it had not arrived.
    spec = fault_spec(simulation("body_too_short", {"text": LONG}), failing_step=1)
    with Serving(tmp_path, fault=spec) as serving:
        with Unwilling(serving.port, serving.path) as client:
            client.ask(ASK)
            serving.wait_logged("sent")
            assert len(client.rest()) > len(LONG) // 2
        facts = facts_of("body_too_short", serving, text=LONG)
    assert (facts.delivered, facts.why_not) == (True, None)


def test_memory_that_runs_out_is_proven_by_the_kernels_own_count(tmp_path: Path) -> None:
    with Serving(tmp_path, fault=fault_spec(simulation("memory_exhausted"), failing_step=1)) as serving:
        pid = serving.process._child.pid
        with serving.client() as client:
            client.ask(ASK)
            assert client.rest() == b""
        serving.wait_said("exited")
        events = serving.events()
        facts = facts_of("memory_exhausted", serving)
    assert (facts.delivered, facts.why_not) == (True, None)
    limit = next(each for each in events if each["event"] == "memory")
    killed = next(each for each in events if each["event"] == "killed")
    if limit["limit"] == "cgroup":
        assert facts.memory == "kernel-kill"
        assert killed["oom_kills"] == 1
        assert not any((each / group_name(pid)).exists() for each in cgroup_candidates()), "the group is removed"
    else:
        assert facts.memory == "address-space"
        assert "oom_kills" not in killed
    assert (serving.process.exit_code, killed["by"]) == (-9, "fault")
    assert not any(each["say"] == "trouble" for each in serving.said)


def test_without_a_cgroup_a_failed_allocation_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No group can be made where there is no such folder.
    (tmp_path / "no_groups.py").write_text(
        "from pathlib import Path\n"
        "from pytest_regcase.supplier import memory\n"
        "from pytest_regcase.supplier.faults.server_deaths import MemoryExhausted\n"
        "memory.cgroup_candidates = lambda: iter([Path('/nonexistent')])\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    fault = FaultSpec("memory_exhausted", "no_groups:MemoryExhausted", at_step=1)
    with Serving(tmp_path / "attempt", fault=fault) as serving:
        with serving.client() as client:
            client.ask(ASK)
            assert client.rest() == b""
        serving.wait_said("exited")
        events = serving.events()
        facts = facts_of("memory_exhausted", serving)
    assert (facts.delivered, facts.memory) == (True, "address-space")
    killed = next(each for each in events if each["event"] == "killed")
    assert "oom_kills" not in killed, "no kernel kill is claimed"
    assert any("allocation failed" in each.get("says", "") for each in events)


def test_a_third_partys_fault_runs_through_the_contract(tmp_path: Path) -> None:
    (tmp_path / "half_close.py").write_text(
        "from pytest_regcase.supplier.protocol import NoSettings\n"
        "class Sulks:\n"
        "    kind = 'sulks'\n"
        "    settings_model = NoSettings\n"
        "    def __init__(self, settings): pass\n"
        "    def declares(self, wire, streaming):\n"
        "        from pytest_regcase.records.wire import Delivery, NotApplicable\n"
        "        if wire != 'openai-chat':\n"
        "            return NotApplicable(reason='it sulks in chats only')\n"
        "        return Delivery(answer='complete', status=418, then='answered')\n"
        "    async def inject(self, exchange): await exchange.send_body(418, b'no', 'text/plain')\n"
    )
    info = tmp_path / "sulks-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sulks\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pytest_regcase.faults]\nsulks = half_close:Sulks\n")
    (tmp_path / "test_sulks.py").write_text(
        "import pytest\n"
        "from tests.contract.fault_contract import FaultContract\n"
        "class TestSulks(FaultContract):\n"
        "    @pytest.fixture\n"
        "    def kind(self): return 'sulks'\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "test_sulks.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])},
        capture_output=True,
        text=True,
        check=False,
    )
    # A whole 418 is what it does, so the one log that is to show something else shows it.
    assert "1 failed, 10 passed" in done.stdout, done.stdout
    assert "test_what_it_did_not_do_is_not_delivered[teapot]" in done.stdout
