"""From `reach` to the addresses that a supplier listens on, and to what a container is told to find it there.

Parent side: it asks the kernel and, for `docker`, the engine. It never listens, and never on all addresses.

Facts: on Linux a container comes to the host by the address of a bridge, and loopback is out of its sight
(docker/for-linux#264); the name `host.docker.internal` is known there only where `--add-host` gives it. The word
`host-gateway` for its address is the default bridge's unless the engine is configured otherwise (moby/moby#40007),
and in rootless mode not the host's (moby/moby#47684): so we name the address that we listen on. Docker Desktop
knows the name by itself and hands connections to it on to the host's own loopback.
"""

import json
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pytest_regcase.config import REACHES, why_no_reach
from pytest_regcase.errors import UsageRefused
from pytest_regcase.supplier.docker_engine import EngineSilent, ask_docker, what_to_do
from pytest_regcase.supplier.port import HOST

CONTAINER_NAME = "host.docker.internal"
DESKTOP = "Docker Desktop"
_DEFAULT_BRIDGE = "docker0"
_SIOCGIFADDR = 0x8915


@dataclass(frozen=True)
class Reach:
    """Where a supplier listens, and how a container finds it."""

    addresses: tuple[str, ...] = (HOST,)
    container_host: str | None = None
    """The host in a container's base URLs; None: no container reaches us."""
    container_host_args: str | None = None
    """What `docker run` needs so that a container knows that host."""

    def placeholders(self, port: int, token: str) -> dict[str, str]:
        """Return the placeholders for an agent in a container; none where no container reaches us."""
        if self.container_host is None or self.container_host_args is None:
            return {}
        url = f"http://{self.container_host}:{port}/{token}"
        return {
            "openai_base_url_container": f"{url}/v1",
            "anthropic_base_url_container": url,
            "container_host_args": self.container_host_args,
        }


def resolve(reach: str) -> Reach:
    """Return what `reach` means on this machine now.

    Raises:
        UsageRefused: it is none of those that there are, the address is not this machine's, or it is all of them;
            for `docker` also where nothing says what the bridge's address is.
    """
    if reach == "loopback":
        return Reach()
    if reach == "docker":
        address = _docker_address()
        if address is None:
            return Reach((HOST,), CONTAINER_NAME, f"--add-host={CONTAINER_NAME}:host-gateway")
        return _beside_loopback(address, CONTAINER_NAME)
    why_not = why_no_reach(reach)
    if why_not is None and not _is_ours(reach):
        why_not = "no address of this machine"
    if why_not is not None:
        raise UsageRefused(
            f'Couldn\'t listen for reach = "{reach}": it is {why_not}.\nAllowed: {REACHES}{_here()}.'
        )
    return _beside_loopback(reach, reach)


def interface_of(address: str) -> str | None:
    """Return the name of the interface that has this address; None where that is not seen (it is on Linux)."""
    return next((name for name, each in _interfaces() if each == address), None)


def _beside_loopback(address: str, container_host: str) -> Reach:
    addresses = tuple(dict.fromkeys((HOST, address)))
    return Reach(addresses, container_host, f"--add-host={CONTAINER_NAME}:{address}")


def _is_ours(address: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
            # Nothing is sent. A network's broadcast address can be bound, but not connected to.
            probe.connect((address, 9))
        except OSError:
            return False
        return True


def _docker_address() -> str | None:
    """Return the address of this machine on Docker's default bridge; None: Docker Desktop needs none."""
    try:
        address = _address_by_engine()
    except EngineSilent as silence:
        # Whoever may not ask the engine can still be reached by what others start there.
        address = _address_of(_DEFAULT_BRIDGE)
        if address is None:
            raise UsageRefused(
                f'Couldn\'t find the address that containers reach, for reach = "docker": {silence}; and there is'
                f" no interface {_DEFAULT_BRIDGE}.\n{what_to_do(silence)}. Or name an address of this machine that"
                f' its containers reach, reach = "ADDRESS"{_here()}.'
            ) from silence
    if address is not None and not _is_ours(address):
        raise UsageRefused(
            f"Couldn't listen for containers, reach = \"docker\": {address}, which the engine's bridge has, is no"
            " address of this machine: the engine is rootless, in a virtual machine, or on another host.\n"
            f'Name an address of this machine that its containers reach, reach = "ADDRESS"{_here()}.'
        )
    return address


@cache
def _address_by_engine() -> str | None:
    """Ask the engine, once a process: every attempt has a supplier. An engine that was silent is asked again.

    Raises:
        EngineSilent: it does not say.
    """
    if ask_docker("info", "--format", "{{.OperatingSystem}}").strip() == DESKTOP:
        return None
    try:
        (network,) = json.loads(ask_docker("network", "inspect", "bridge"))
        # Right after its start an engine may name the subnet alone.
        gateways = [each.get("Gateway", "") for each in network["IPAM"]["Config"] or ()]
        bridge = (network.get("Options") or {}).get("com.docker.network.bridge.name", _DEFAULT_BRIDGE)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise EngineSilent("docker network inspect bridge says what we cannot read") from error
    address = next((each for each in gateways if "." in each), None) or _address_of(bridge)
    if address is None:
        raise EngineSilent(f"the engine names no IPv4 gateway of its bridge, and {bridge} has no address here")
    return address


def _here() -> str:
    found = ", ".join(f"{address} ({name})" for name, address in _interfaces() if address != HOST)
    return f"; here: {found}" if found else ""


def _interfaces() -> Iterator[tuple[str, str]]:
    for _, name in socket.if_nameindex():
        address = _address_of(name)
        if address is not None:
            yield name, address


def _address_of(interface: str) -> str | None:
    """Return the first IPv4 address of an interface, as Linux has it (netdevice(7)); elsewhere None."""
    if sys.platform != "linux":
        return None
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            found = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(found[20:24])
