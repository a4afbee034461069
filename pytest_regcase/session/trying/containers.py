"""What the doctor can say of an agent in a container: where we listened, what came in, what was left behind.

Asks the kernel and the Docker engine; changes nothing and never prints.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_regcase.agents.launch import Places, attempt_label
from pytest_regcase.config import AgentConfig, Project
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.supplier.docker_engine import EngineSilent, containers_named
from pytest_regcase.supplier.reach import interface_of, resolve

ENGINES = ("docker", "podman", "nerdctl")


@dataclass(frozen=True)
class ContainerFacts:
    """What was seen in both attempts of the doctor."""

    reach: str
    starts: str | None
    """The container engine whose command the agent's own command line starts."""
    listened: tuple[tuple[str, str | None], ...]
    """Every address, with the interface that has it."""
    host: str | None
    host_args: str | None
    connections: int
    """How many came in, on any of them."""
    open_firewall: str | None
    """The command that lets containers through to the last of the addresses; None: it is not known which."""
    left: tuple[str, ...]
    """Containers with an attempt's label that are still there."""
    not_looked_for: str | None
    """Why nobody can say whether any is."""


def container_facts(
    project: Project,
    config: AgentConfig,
    records: Sequence[AttemptRecord],
    events: Sequence[dict[str, Any]],
) -> ContainerFacts | None:
    """Return what is to be known; None where nothing speaks of containers.

    `events` are those of both wire logs.
    """
    words = (*config.wrapper, *(config.command or ()))
    starts = next((each for each in ENGINES if each in (Path(word).name for word in words)), None)
    reach = project.config.supplier.reach
    labelled = any("{attempt_label}" in each for each in (*words, *config.env.values(), *config.cleanup))
    if reach == "loopback" and starts is None and not labelled:
        return None
    found = resolve(reach)
    listened = tuple((each, interface_of(each)) for each in found.addresses)
    left: tuple[str, ...] = ()
    not_looked_for = None
    try:
        left = containers_named(_labels(project, records))
    except EngineSilent as silence:
        not_looked_for = str(silence)
    return ContainerFacts(
        reach=reach,
        starts=starts,
        listened=listened,
        host=found.container_host,
        host_args=found.container_host_args,
        connections=sum(each["event"] == "accept" for each in events),
        open_firewall=_open_firewall(*listened[-1]) if len(listened) > 1 else None,
        left=left,
        not_looked_for=not_looked_for,
    )


def _labels(project: Project, records: Sequence[AttemptRecord]) -> list[str]:
    return [attempt_label(Places.below(project.root / each.folder)) for each in records if each.folder is not None]


def _open_firewall(address: str, interface: str | None) -> str | None:
    """Return the command of the firewall front end that is installed here, else that of the kernel's own."""
    if interface is None:
        return None
    if shutil.which("ufw") is not None:
        return f"sudo ufw allow in on {interface} to {address} proto tcp"
    if shutil.which("firewall-cmd") is not None:
        return f"sudo firewall-cmd --zone=trusted --change-interface={interface}"
    return f"sudo iptables -I INPUT -i {interface} -d {address} -p tcp -j ACCEPT"
