"""What `regcase doctor` prints about containers: why none reaches us, and which were left. Decides nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.trying.containers import ContainerFacts

PORT = 8765
IMAGE = "curlimages/curl"


def way_in(facts: "ContainerFacts", agent: str) -> Iterator[str]:
    """Say what was tried and how to find what keeps a container of this agent from us."""
    if facts.host is None or facts.host_args is None:
        yield from _lines(
            f"Its command starts {facts.starts}, and no container sees loopback, where alone we listen. In"
            " pyproject.toml:"
        )
        yield "    [tool.regcase.supplier]"
        # The address that "docker" finds is the one of Docker's own bridge.
        where = '"docker"' if facts.starts == "docker" else '"ADDRESS"  # one of this machine'
        yield f"    reach = {where}"
        yield from _arguments(agent)
        return
    where = " and ".join(each if name is None else f"{each} ({name})" for each, name in facts.listened)
    came = "no connection came in" if not facts.connections else f"connections that came in: {facts.connections}"
    yield from _lines(f'Tried, with reach = "{facts.reach}": we listened on {where}; {came}.')
    yield from _lines("See what a container meets, in two terminals:")
    engine = facts.starts or "docker"
    yield f"    regcase serve --reach {facts.reach} --port {PORT}"
    yield f"    {engine} run --rm {facts.host_args} {IMAGE} -sS -m 5 http://{facts.host}:{PORT}/"
    yield from _lines('"There is nothing here.": it reaches us, and the agent does not use the address.')
    yield from _arguments(agent)
    yield from _lines("No such host: {container_host_args} is missing before the image's name.")
    if facts.open_firewall is not None:
        yield from _lines("A time-out: a firewall of this machine drops what containers send. Let it through:")
        yield f"    {facts.open_firewall}"


def left_behind(facts: "ContainerFacts | None", agent: str) -> Iterator[str]:
    """Name the containers that outlived their attempt, and say how none will.

    Not with ``--rm``: the engine then removes at the end too, and the slower of the two fails (moby/moby#34877).
    """
    if facts is None:
        return
    if facts.left:
        yield from _lines(f"Left running or stopped: {', '.join(facts.left)}.")
        yield from _lines(
            "Name its containers {attempt_label} (docker run --name, without --rm), and have them removed, in"
            f" [tool.regcase.agents.{agent}]:"
        )
        yield '    cleanup = ["docker", "rm", "--force", "{attempt_label}"]'
    elif facts.not_looked_for is not None:
        yield from _lines(f"Whether a container was left behind cannot be said: {facts.not_looked_for}.")


def _arguments(agent: str) -> Iterator[str]:
    yield from _lines(f"Start it with these arguments, in [tool.regcase.agents.{agent}] command:")
    yield '    "--name", "{attempt_label}", "{container_host_args}",'
    yield '    "-e", "OPENAI_BASE_URL={openai_base_url_container}", "-e", "OPENAI_API_KEY={api_key}",'


def _lines(text: str) -> list[str]:
    return wrapped(text).splitlines()
