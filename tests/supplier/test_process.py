import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_regcase.errors import MachineryError, UsageRefused
from pytest_regcase.supplier.process import SupplierProcess
from pytest_regcase.supplier.spec import FaultSpec, PassThrough, SupplierSpec
from tests.supplier.cells import is_refused
from tests.supplier.serving import LIMIT_SECONDS, Serving, fault

ASK = [{"role": "user", "content": "Fix it."}]


def spec(folder: Path, **changes: object) -> SupplierSpec:
    return SupplierSpec(wire_log=str(folder / "wire.jsonl"), t0=time.monotonic(), token="t", **changes)  # type: ignore[arg-type]


def test_base_urls_hold_port_and_token(tmp_path: Path) -> None:
    with SupplierProcess.start(spec(tmp_path)) as process:
        assert process.anthropic_base_url == f"http://127.0.0.1:{process.port}/t"
        assert process.openai_base_url == f"http://127.0.0.1:{process.port}/t/v1"
        assert not is_refused(process.port)
        assert process.read_messages() == []


def test_after_the_kill_connects_are_refused_and_no_stranger_gets_the_port(tmp_path: Path) -> None:
    with Serving(tmp_path, fault=fault("process_killed", at_step=1)) as serving:
        with serving.client() as client:
            client.ask(ASK)
            # The request was read, so the kernel ends the connection with FIN and no reset.
            assert client.rest() == b""
        serving.wait_said("exited")
        assert serving.process.exit_code == -signal.SIGKILL
        assert is_refused(serving.port)
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", serving.port))
        events = serving.stop()
    assert [each["event"] for each in events] == ["listen", "accept", "request", "killed", "exited"]
    assert events[-2]["by"] == "fault"
    assert events[-2]["connect"] == "refused"
    assert events[-1]["code"] == -signal.SIGKILL
    assert not any(each["say"] == "trouble" for each in serving.said)


def test_a_kill_by_somebody_else_is_trouble_and_no_fault(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        os.kill(serving.process._child.pid, signal.SIGKILL)
        serving.wait_said("exited")
        assert any(each["say"] == "trouble" for each in serving.said)
        killed = next(each for each in serving.stop() if each["event"] == "killed")
    assert killed["by"] == "other"


def test_stop_ends_the_child_and_completes_the_log_once(tmp_path: Path) -> None:
    process = SupplierProcess.start(spec(tmp_path))
    process.stop()
    log = (tmp_path / "wire.jsonl").read_bytes()
    process.stop()
    assert process.closed
    assert process.exit_code == 0
    assert (tmp_path / "wire.jsonl").read_bytes() == log
    assert json.loads(log.splitlines()[-1])["event"] == "exited"
    assert is_refused(process.port)


def test_a_child_that_cannot_start_says_why(tmp_path: Path) -> None:
    broken = spec(tmp_path, fault=FaultSpec("x", "no_such_module:X", at_step=1))
    with pytest.raises(MachineryError, match="no_such_module"):
        SupplierProcess.start(broken)


def test_a_reach_that_is_not_there_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageRefused, match="every address of this machine"):
        SupplierProcess.start(spec(tmp_path, reach="0.0.0.0"))
    assert list(tmp_path.iterdir()) == []


def test_a_child_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from pytest_regcase.supplier.process import SupplierProcess\n"
        "from pytest_regcase.supplier.spec import SupplierSpec\n"
        "s = SupplierSpec(wire_log=sys.argv[1], t0=time.monotonic(), token='t')\n"
        "p = SupplierProcess.start(s)\n"
        "print(p.port, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "wire.jsonl")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout as stdout:
        port = int(stdout.readline())
    assert not is_refused(port)
    parent.kill()
    parent.wait()
    limit = time.monotonic() + LIMIT_SECONDS
    while not is_refused(port):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_the_child_sees_nothing_of_our_environment_but_the_key_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_SECRET", "s3cret")
    monkeypatch.setenv("UPSTREAM_KEY", "sk-upstream")
    through = PassThrough("http://127.0.0.1:1/v1", api_key_env="UPSTREAM_KEY")
    with SupplierProcess.start(spec(tmp_path, pass_through=through), env_key="UPSTREAM_KEY") as process:
        seen = Path(f"/proc/{process._child.pid}/environ")
        if seen.exists():
            assert b"s3cret" not in seen.read_bytes()
            assert b"UPSTREAM_KEY=sk-upstream" in seen.read_bytes()
    for path in tmp_path.iterdir():
        assert b"sk-upstream" not in path.read_bytes()
