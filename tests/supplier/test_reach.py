"""What each `reach` means on a machine, with engines that answer in different ways, and what listens then."""

import errno
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.port import HOST, bound_socket, bound_sockets, try_connect
from pytest_regcase.supplier.reach import Reach, interface_of, resolve
from tests.supplier.cells import declares_of, is_refused
from tests.supplier.engines import NO_DAEMON, FakeDocker
from tests.supplier.serving import Serving, fault

ASK = [{"role": "user", "content": "Fix it."}]
BESIDE = "127.0.0.2"
"""On Linux the whole of 127.0.0.0/8 is this machine: a second address that every machine has."""
linux_only = pytest.mark.skipif(sys.platform != "linux", reason=f"only Linux has the address {BESIDE} by itself")
ELSEWHERE = "203.0.113.9"
"""Of a network that is for documentation: nobody's."""


def test_loopback_is_reached_by_no_container() -> None:
    assert resolve("loopback") == Reach((HOST,), None, None)
    assert resolve("loopback").placeholders(1, "t") == {}


@linux_only
def test_an_address_is_listened_on_beside_loopback_and_named_to_containers() -> None:
    found = resolve(BESIDE)
    assert found.addresses == (HOST, BESIDE)
    assert found.placeholders(8765, "t0ken") == {
        "openai_base_url_container": "http://127.0.0.2:8765/t0ken/v1",
        "anthropic_base_url_container": "http://127.0.0.2:8765/t0ken",
        "container_host_args": "--add-host=host.docker.internal:127.0.0.2",
    }


def test_loopback_by_its_address_is_for_containers_on_the_hosts_own_network() -> None:
    assert resolve(HOST) == Reach((HOST,), HOST, "--add-host=host.docker.internal:127.0.0.1")


@pytest.mark.parametrize(
    ("reach", "says"),
    [
        ("0.0.0.0", "every address of this machine, also those in networks that you do not know of"),
        ("::", "no IPv4 address"),
        ("*", "no IPv4 address"),
        ("", "no IPv4 address"),
        ("localhost", "no IPv4 address"),
        ("172.17.0.1:80", "no IPv4 address"),
        ("224.0.0.1", "no address of one machine"),
        ("255.255.255.255", "no address of this machine"),
        (ELSEWHERE, "no address of this machine"),
    ],
)
def test_what_is_no_address_of_ours_is_refused(reach: str, says: str) -> None:
    with pytest.raises(UsageRefused) as caught:
        resolve(reach)
    first, second = caught.value.text.split("\n")
    assert first == f'Couldn\'t listen for reach = "{reach}": it is {says}.'
    assert second.startswith('Allowed: "loopback", "docker", or one IPv4 address of this machine')


@linux_only
def test_docker_is_the_gateway_of_the_engines_bridge(fake_docker: FakeDocker) -> None:
    fake_docker.engine(BESIDE)
    found = resolve("docker")
    assert found.addresses == (HOST, BESIDE)
    assert found.placeholders(8765, "t0ken") == {
        "openai_base_url_container": "http://host.docker.internal:8765/t0ken/v1",
        "anthropic_base_url_container": "http://host.docker.internal:8765/t0ken",
        "container_host_args": "--add-host=host.docker.internal:127.0.0.2",
    }


@linux_only
def test_a_bridge_whose_gateway_is_not_said_is_asked_of_the_kernel(fake_docker: FakeDocker) -> None:
    fake_docker.engine(None, bridge="lo")
    assert resolve("docker").container_host_args == "--add-host=host.docker.internal:127.0.0.1"


def test_docker_desktop_hands_on_to_loopback(fake_docker: FakeDocker) -> None:
    fake_docker.engine("172.17.0.1", system="Docker Desktop")
    assert resolve("docker") == Reach(
        (HOST,), "host.docker.internal", "--add-host=host.docker.internal:host-gateway"
    )
    assert fake_docker.asked == ["info --format {{.OperatingSystem}}"]


def test_a_bridge_on_another_machine_is_refused(fake_docker: FakeDocker) -> None:
    fake_docker.engine(ELSEWHERE)
    with pytest.raises(UsageRefused) as caught:
        resolve("docker")
    assert caught.value.text.startswith(
        f"Couldn't listen for containers, reach = \"docker\": {ELSEWHERE}, which the engine's bridge has, is no"
        " address of this machine: the engine is rootless, in a virtual machine, or on another host.\n"
        'Name an address of this machine that its containers reach, reach = "ADDRESS"'
    )


def no_bridge_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_regcase.supplier.reach._DEFAULT_BRIDGE", "no-such-bridge")


@pytest.mark.parametrize(
    ("said", "reason", "fix"),
    [
        (
            {"info": (1, "", NO_DAEMON)},
            f"docker info says: {NO_DAEMON.strip()}",
            "Start it: sudo systemctl start docker",
        ),
        (
            {"info": (1, "", "permission denied while trying to connect to the Docker daemon socket\n")},
            "docker info says: permission denied while trying to connect to the Docker daemon socket",
            'Allow yourself to ask it: sudo usermod -aG docker "$USER", then log in again. Or name',
        ),
        (
            {"info": (0, "Debian\n", ""), "network": (1, "[]\n", "Error: No such network: bridge\n")},
            "docker network says: Error: No such network: bridge",
            "Start it",
        ),
        (
            {"info": (0, "Debian\n", ""), "network": (0, "[]\n", "")},
            "docker network inspect bridge says what we cannot read",
            "Start it",
        ),
        (
            {"info": (0, "Debian\n", ""), "network": (0, '[{"IPAM": {"Config": []}}]\n', "")},
            "the engine names no IPv4 gateway of its bridge, and no-such-bridge has no address here",
            "Start it",
        ),
    ],
)
def test_an_engine_that_does_not_say_is_told_with_what_to_do(
    fake_docker: FakeDocker, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], reason: str, fix: str
) -> None:
    no_bridge_here(monkeypatch)
    fake_docker.says(**said)
    with pytest.raises(UsageRefused) as caught:
        resolve("docker")
    first, second = caught.value.text.split("\n")
    assert first == (
        f'Couldn\'t find the address that containers reach, for reach = "docker": {reason}; and there is no'
        " interface no-such-bridge."
    )
    assert second.startswith(fix)
    assert 'Or name an address of this machine that its containers reach, reach = "ADDRESS"' in second


def test_without_the_program_docker_it_is_to_be_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_bridge_here(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageRefused) as caught:
        resolve("docker")
    assert "the program docker cannot be started (No such file or directory)" in caught.value.text
    assert "\nInstall Docker. Or name an address" in caught.value.text


@linux_only
def test_a_bridge_is_enough_where_the_engine_may_not_be_asked(
    fake_docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_regcase.supplier.reach._DEFAULT_BRIDGE", "lo")
    assert resolve("docker").container_host_args == "--add-host=host.docker.internal:127.0.0.1"


@linux_only
def test_the_interface_of_an_address_is_named() -> None:
    assert interface_of(HOST) == "lo"
    assert interface_of(ELSEWHERE) is None


@linux_only
def test_one_port_is_held_on_every_address() -> None:
    held = bound_sockets((HOST, BESIDE))
    try:
        port = held[0].getsockname()[1]
        assert [each.getsockname() for each in held] == [(HOST, port), (BESIDE, port)]
        assert try_connect(port, (HOST, BESIDE)) == "refused"
        held[1].listen()
        assert (try_connect(port), try_connect(port, (HOST, BESIDE))) == ("refused", "accepted")
    finally:
        for each in held:
            each.close()


@linux_only
def test_a_free_port_is_free_on_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = bound_socket, []

    def taken_twice(port: int = 0, host: str = HOST) -> socket.socket:
        asked.append(host)
        if host == BESIDE and asked.count(BESIDE) < 3:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        # What is free beside loopback is another matter here.
        return real(port if host == HOST else 0, host)

    monkeypatch.setattr("pytest_regcase.supplier.port.bound_socket", taken_twice)
    for each in bound_sockets((HOST, BESIDE)):
        each.close()
    assert asked == [HOST, BESIDE] * 3
    asked.clear()
    with pytest.raises(OSError, match="in use"):
        bound_sockets((HOST, BESIDE), 1024)
    assert asked in ([HOST, BESIDE], [HOST])


@linux_only
def test_by_default_loopback_alone_is_listened_on(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        assert not is_refused(serving.port)
        assert is_refused(serving.port, BESIDE)
        assert serving.process.container == {}
        assert "beside_loopback" not in serving.events()[0]


@linux_only
@pytest.mark.parametrize("kind", ["process_killed", "connection_refused"])
def test_what_is_refused_is_refused_on_every_address(tmp_path: Path, kind: str) -> None:
    with Serving(tmp_path, reach=BESIDE, fault=fault(kind, at_step=1)) as serving:
        assert serving.events()[0]["beside_loopback"] == [BESIDE]
        assert not is_refused(serving.port)
        assert not is_refused(serving.port, BESIDE)
        with serving.client() as client:
            client.ask(ASK)
            serving.wait_logged("killed" if kind == "process_killed" else "refusing")
        assert is_refused(serving.port)
        assert is_refused(serving.port, BESIDE)
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind((BESIDE, serving.port))
        events = serving.stop()
    facts = wire_facts(events, declares=declares_of(kind, {}), ended_by_us_at=None, last_step=None, failing_step=1)
    assert (facts.delivered, facts.why_not) == (True, None)


@linux_only
def test_one_address_that_still_takes_connections_is_no_dead_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def somebody_listens_there(port: int, hosts: Sequence[str] = (HOST,)) -> str:
        return "accepted" if BESIDE in hosts else try_connect(port, hosts)

    monkeypatch.setattr("pytest_regcase.supplier.process.try_connect", somebody_listens_there)
    with Serving(tmp_path, reach=BESIDE, fault=fault("process_killed", at_step=1)) as serving:
        with serving.client() as client:
            client.ask(ASK)
            serving.wait_logged("killed")
        events = serving.stop()
    facts = wire_facts(
        events, declares=declares_of("process_killed", {}), ended_by_us_at=None, last_step=None, failing_step=1
    )
    assert facts.delivered is False
    assert "still takes connections" in (facts.why_not or "")


@linux_only
def test_a_port_that_is_taken_beside_loopback_cannot_be_had(tmp_path: Path) -> None:
    with socket.create_server((BESIDE, 0)) as taken, pytest.raises(OSError, match="in use"):
        Serving(tmp_path, reach=BESIDE, port=taken.getsockname()[1])
