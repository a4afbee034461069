"""A second network on this machine, joined to ours by one cable: what a container sees of us."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21
# Connects, asks and says in one word what it met; standard library, and nothing of ours.
CLIENT = """
import json, socket, sys
def meets(host, port, path, body):
    head = f"POST {path} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    try:
        with socket.create_connection((host, port), 10) as client:
            client.sendall(head.encode() + body.encode())
            got = b""
            while part := client.recv(65536):
                got += part
    except ConnectionRefusedError:
        return "refused"
    except ConnectionResetError:
        return "reset"
    except TimeoutError:
        return "time-out"
    return got.split(b" ")[1].decode() if got else "nothing"
print(json.dumps([meets(*each) for each in json.loads(sys.argv[1])]))
"""
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Fix it."}]})


class OtherNetwork:
    """A network namespace. Its only way out is to `our_address`."""

    def __init__(self, name: str, our_address: str) -> None:
        self.name = name
        self.our_address = our_address

    @property
    def enter(self) -> tuple[str, ...]:
        """What stands before a command that is to run there."""
        return ("ip", "netns", "exec", self.name)

    def ask(self, *calls: tuple[str, int, str]) -> list[str]:
        """Ask each (host, port, path) from there; returns statuses, or how it failed."""
        told = json.dumps([[*each, CHAT] for each in calls])
        done = subprocess.run(
            [*self.enter, sys.executable, "-I", "-S", "-c", CLIENT, told],
            capture_output=True,
            text=True,
            check=True,
        )
        answers: list[str] = json.loads(done.stdout)
        return answers


def why_there_is_none() -> str | None:
    """Say why no network can be made here."""
    if sys.platform != "linux":
        return "needs network namespaces, which only Linux has"
    words = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line
    )
    may = int(words["CapEff"], 16)
    if not (may >> _CAP_NET_ADMIN & 1 and may >> _CAP_SYS_ADMIN & 1):
        return "needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN), to make a network namespace"
    if shutil.which("ip") is None:
        return "needs the program ip (package iproute2), to make a network namespace"
    return None


@contextmanager
def other_network() -> Iterator[OtherNetwork]:
    """Make one and remove it; skip with the reason where none can be made, but fail where root runs in CI."""
    reason = why_there_is_none()
    if reason is not None:
        if os.environ.get("REGCASE_REQUIRE_HARNESS") and os.geteuid() == 0:
            pytest.fail(reason)
        pytest.skip(reason)
    number = os.getpid() % 32768
    # 198.18.0.0/15 is for tests of network equipment (RFC 2544): nobody's on any network.
    first = (198 << 24) + (18 << 16) + number * 4
    ours, theirs = (".".join(str(byte) for byte in (first + at).to_bytes(4, "big")) for at in (1, 2))
    name, cable = f"regcase-{os.getpid()}", f"rc{os.getpid()}"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", cable, "type", "veth", "peer", "name", "out", "netns", name)
        _ip("addr", "add", f"{ours}/30", "dev", cable)
        _ip("link", "set", cable, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", name, "addr", "add", f"{theirs}/30", "dev", "out")
        _ip("-n", name, "link", "set", "out", "up")
        yield OtherNetwork(name, ours)
    finally:
        # The cable goes with the end that lies there.
        _ip("netns", "del", name)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"
