"""`regcase serve` as a user meets it: a process, a client that knows only what was printed, Ctrl-C."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from pytest_regcase.cli import main
from pytest_regcase.supplier.port import bound_socket
from pytest_regcase.supplier.wire_log import read_wire_log
from tests.session.attempt_project import make_project

LIMIT_SECONDS = 120.0
HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3}  ")


class Serving:
    """A running `regcase serve`."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        code = "import sys; from pytest_regcase.cli import main; sys.exit(main(['serve', *sys.argv[1:]]))"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        self.wait_for("Ctrl-C ends it.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        self._reader.join()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, words: str) -> None:
        limit = time.monotonic() + LIMIT_SECONDS
        while words not in self.text:
            assert time.monotonic() < limit, self.text
            assert self.process.poll() is None, self.text
            time.sleep(0.01)

    def variable(self, name: str) -> str:
        (found,) = re.findall(rf"^export {name}=(.*)$", self.text, re.MULTILINE)
        return str(found)

    def post(self, body: Any, path: str = "/chat/completions") -> tuple[int, Any]:
        """Ask as a client that has the exported variables."""
        request = urllib.request.Request(
            self.variable("OPENAI_BASE_URL") + path,
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.variable('OPENAI_API_KEY')}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                request, timeout=LIMIT_SECONDS
            ) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def end(self, number: int = signal.SIGINT) -> int:
        """Interrupt it; returns the exit code, and all lines are there."""
        self.process.send_signal(number)
        code = self.process.wait(LIMIT_SECONDS)
        self._reader.join(LIMIT_SECONDS)
        return code

    def happened(self) -> list[str]:
        """Return the lines of the log, without the time."""
        return [LINE.sub("", each) for each in self.lines if LINE.match(each)]

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in stdout:
                self.lines.append(line.rstrip("\n"))


@pytest.fixture
def calc(tmp_path: Path) -> Path:
    """A project with the case calc-step-3: two scripted replies with calls, then the failing step."""
    make_project(tmp_path, [sys.executable, "-c", ""])
    return tmp_path


def test_a_fixed_answer_then_what_the_wire_shows(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        for prompt in ("One.", "Another conversation."):
            status, answer = serving.post({**HELLO, "messages": [{"role": "user", "content": prompt}]})
            assert status == 200
            assert answer["choices"][0]["message"]["content"] == "This is a fixed answer of regcase serve."
        assert serving.variable("OPENAI_BASE_URL") == serving.variable("ANTHROPIC_BASE_URL") + "/v1"
        assert serving.variable("ANTHROPIC_API_KEY").startswith("sk-regcase-")
        assert serving.end() == 130
        log = serving.text.rpartition("wire log: ")[2]
        assert read_wire_log(tmp_path / log)[-1]["event"] == "exited"
        assert serving.lines[-3:] == ["2 model requests", "no fault was asked for", f"wire log: {log}"]
        assert not list((tmp_path / ".regcase").glob("**/*.sqlite3"))


def a_free_port() -> int:
    """Find one below those that kernels give away: of these another process may get it, once it is let go."""
    while True:
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), bound_socket(port):
            return port


def test_a_fault_is_logged_and_its_delivery_said(tmp_path: Path) -> None:
    port = a_free_port()
    with Serving(tmp_path, "--simulation", "rate-limited-v1", "--port", str(port)) as serving:
        assert serving.variable("OPENAI_BASE_URL").startswith(f"http://127.0.0.1:{port}/")
        assert [serving.post(HELLO)[0] for _ in range(3)] == [429, 429, 429]
        assert serving.end(signal.SIGTERM) == 130
        happened = serving.happened()
        assert happened[0] == "request 1: openai-chat, not streaming, step 1, meets the fault"
        assert re.fullmatch(r"request 1: fault rate_limited, status 429, \d+ bytes, whole", happened[1])
        assert happened[2].startswith("request 1: connection closed by ")
        assert "3 model requests, 3 met the fault, 2 retries after the first that did\n" in serving.text + "\n"
        assert "the fault was delivered" in serving.lines


def test_a_case_is_replayed_and_its_fault_comes_at_its_step(calc: Path) -> None:
    with Serving(calc, "calc-step-3", "--simulation", "auth-rejected-v1", "--wire", "openai-chat") as serving:
        assert "replies: 2 of calc-step-3, once; then the agent's closing reply" in serving.lines
        assert "fault: auth-rejected-v1 from step 3 on: the supplier rejects the key with 401" in serving.lines
        messages: list[Any] = [{"role": "user", "content": "Fix it."}]
        for step in (1, 2):
            status, answer = serving.post({"model": "m", "messages": messages, "tools": TOOLS})
            assert status == 200
            message = answer["choices"][0]["message"]
            assert message["content"] == f"Step {step} of the recorded trial."
            (call,) = message["tool_calls"]
            messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "ok"}]
        assert serving.post({"model": "m", "messages": messages, "tools": TOOLS})[0] == 401
        assert serving.post({"model": "m", "messages": [], "input": "x"}, "/responses")[0] == 404
        assert serving.end() == 130
        assert any("scripted reply, status 200" in each and "calls bash" in each for each in serving.happened())
        assert "the fault was delivered" in serving.lines


def test_a_killed_supplier_leaves_its_port_refused_until_the_end(tmp_path: Path) -> None:
    with Serving(tmp_path, "--simulation", "oom-killed-v1") as serving:
        for _ in range(2):
            with pytest.raises((urllib.error.URLError, ConnectionError)):
                serving.post(HELLO)
        serving.wait_for("the supplier's process was killed (a connect now: refused)")
        assert serving.end() == 130
        assert "the fault was delivered" in serving.lines


def test_a_fault_that_never_came_is_not_called_delivered(calc: Path) -> None:
    with Serving(calc, "calc-step-3", "--simulation", "auth-rejected-v1") as serving:
        assert serving.post({**HELLO, "tools": TOOLS})[0] == 200
        assert serving.end() == 130
        assert "the fault was NOT delivered: no request met the fault" in " ".join(serving.text.split())


def test_a_proxy_of_the_shell_is_told_to_keep_out(tmp_path: Path) -> None:
    with Serving(tmp_path, HTTPS_PROXY="http://proxy.example:3128") as serving:
        assert serving.variable("NO_PROXY") == '"127.0.0.1,$NO_PROXY"'
        serving.end()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the address 127.0.0.2 by itself")
def test_what_a_container_is_to_be_started_with_is_printed(tmp_path: Path) -> None:
    with Serving(tmp_path, "--reach", "127.0.0.2") as serving:
        at = serving.lines.index("listens on 127.0.0.1 and 127.0.0.2; for a container:")
        base, key = serving.variable("ANTHROPIC_BASE_URL"), serving.variable("OPENAI_API_KEY")
        there = base.replace("127.0.0.1", "127.0.0.2")
        assert serving.lines[at + 1 : at + 7] == [
            "  --add-host=host.docker.internal:127.0.0.2",
            f"  -e OPENAI_BASE_URL={there}/v1",
            f"  -e OPENAI_API_KEY={key}",
            f"  -e ANTHROPIC_BASE_URL={there}",
            f"  -e ANTHROPIC_API_KEY={key}",
            "  -e NO_PROXY=127.0.0.2",
        ]
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{there}/v1/models") as answer:
            assert answer.status == 200
        assert serving.end() == 130


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--reach", "0.0.0.0"], 'Couldn\'t listen for reach = "0.0.0.0": it is every address of this machine'),
        (["no-such-case"], "Couldn't find the case 'no-such-case'"),
        (["--simulation", "no-such-v1"], "Couldn't find the simulation 'no-such-v1'"),
        (["--wire", "smoke-signals"], "Couldn't find the wire 'smoke-signals'"),
        (
            ["--wire", "openai-chat", "--simulation", "credit-too-low-v1"],
            "Couldn't serve credit-too-low-v1: not on openai-chat: only Anthropic's API",
        ),
        (["--port", "70000"], "70000 is not in the range"),
    ],
)
def test_what_cannot_be_served_is_refused(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""
    assert not (tmp_path / ".regcase").exists()


def test_a_port_that_is_taken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with bound_socket() as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    assert capsys.readouterr().err == (
        f"Couldn't listen on port {port}: Address already in use.\nName another one, or none: --port.\n"
    )


def test_replies_of_a_real_supplier_need_one(
    calc: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = calc / "cases" / "calc-step-3" / "case.toml"
    text = case.read_text().replace('source = "script"\nfile = "recorded/script.jsonl"', 'source = "pass-through"')
    case.write_text(text)
    monkeypatch.chdir(calc)
    assert main(["serve", "calc-step-3"]) == 2
    assert "its replies are those of a real supplier" in capsys.readouterr().err
