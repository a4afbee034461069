"""What nobody may do to a supplier, and what it never writes down."""

import socket
import sys
from pathlib import Path

import pytest

from pytest_regcase.supplier.connection import MAX_BODY_BYTES
from pytest_regcase.supplier.spec import PassThrough
from tests.supplier.serving import Serving

ASK = [{"role": "user", "content": "Fix it."}]
MEGABYTE = 1024 * 1024
HEADERS = (
    "Authorization: Bearer sk-of-the-agent\r\nX-Api-Key: sk-ant-of-the-agent\r\nCookie: session=c00kie\r\n"
    "X-Internal: what-a-header-says\r\n"
)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's list of listeners is read as Linux has it")
def test_loopback_is_all_that_is_listened_on(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        tables = [each.read_text() for each in Path("/proc/net").glob("tcp*")]
        rows = [row.split() for row in "".join(tables).splitlines()]
        # State 0A is LISTEN; addresses are hexadecimal, in the byte order of the machine.
        here = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{serving.port:04X}")]
    loopback = int.from_bytes(socket.inet_aton("127.0.0.1"), sys.byteorder)
    assert here == [f"{loopback:08X}:{serving.port:04X}"]


def test_without_the_token_there_is_nothing(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        with serving.client() as client:
            for start in ("", "/", f"/{serving.process.spec.token[:-1]}", f"/{serving.process.spec.token}x"):
                client.post(b"{}", path=f"{start}/v1/chat/completions", headers=HEADERS)
                answer = client.response()
                assert (answer.status, "choices" in answer.json) == (404, False)
        assert [each for each in serving.stop() if "conversation" in each] == []


def test_a_request_body_is_bounded(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        with serving.client() as client:
            head = f"POST {serving.path}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {10**12}\r\n\r\n"
            client.socket.sendall(head.encode())
            for _ in range(MAX_BODY_BYTES // MEGABYTE + 1):
                client.socket.sendall(b" " * MEGABYTE)
            assert client.response().status == 413
        with serving.client() as client:
            assert client.chat(ASK).status == 200


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read as Linux tells it")
def test_a_request_head_is_bounded_and_nothing_is_kept_of_what_follows(tmp_path: Path) -> None:
    def kept() -> int:
        status = Path(f"/proc/{serving.process._child.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    with Serving(tmp_path) as serving, serving.client() as client:
        before = kept()
        client.socket.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * MEGABYTE)
        assert client.response().status == 400
        for _ in range(64):
            client.socket.sendall(b"a" * MEGABYTE)
        # The last of it is in the kernel still; what was read before would be here.
        assert kept() - before < 24 * MEGABYTE


def test_no_header_and_no_key_is_in_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGCASE_TEST_KEY", "sk-of-the-upstream")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        through = PassThrough(f"http://127.0.0.1:{nobody.getsockname()[1]}/v1", api_key_env="REGCASE_TEST_KEY")
        for name, upstream in (("ours", None), ("through", through)):
            serving = Serving(tmp_path / name, env_key="REGCASE_TEST_KEY", pass_through=upstream)
            with serving, serving.client() as client:
                assert client.chat(ASK, headers=HEADERS).status == (200 if upstream is None else 502)
                client.post(b"{", headers=HEADERS)
                client.response()
                client.post(b"{}", path=f"/sk-of-the-agent{serving.path}", headers=HEADERS)
                client.response()
    written = [each for each in tmp_path.glob("*/*") if each.is_file()]
    assert {each.name for each in written} == {"wire.jsonl", "supplier.json", "supplier.stderr"}
    for file in written:
        text = file.read_text()
        for secret in ("sk-of-the-agent", "sk-ant-of-", "sk-of-the-upstream", "c00kie", "what-a-header-says"):
            assert secret not in text, f"{secret} in {file.name}"


def test_nobody_else_on_the_machine_can_read_the_token(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        token = serving.process.spec.token
    holding = [each for each in tmp_path.iterdir() if token in each.read_text()]
    assert [each.name for each in holding] == ["supplier.json"]
    assert holding[0].stat().st_mode & 0o077 == 0
