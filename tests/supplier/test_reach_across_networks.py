"""Who reaches a supplier from another network of the machine, which is where a container is.

Two network namespaces stand in for a host and a container. What only an engine can show needs one, and says so.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_regcase.config import Project, load_project
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.session.trying.doctor import diagnose
from pytest_regcase.supplier.docker_engine import EngineSilent, ask_docker
from pytest_regcase.supplier.reach import DESKTOP
from tests.session.attempt_project import TIMING, make_project
from tests.supplier.cells import declares_of
from tests.supplier.engines import FakeDocker
from tests.supplier.serving import Serving, fault
from tests.supplier.two_networks import CHAT, OtherNetwork, other_network

COMPLETIONS = "/v1/chat/completions"


@pytest.fixture(scope="module")
def other() -> Iterator[OtherNetwork]:
    """A network that is joined to ours."""
    with other_network() as made:
        yield made


def test_the_address_and_the_token_are_the_way_in(tmp_path: Path, other: OtherNetwork) -> None:
    with Serving(tmp_path, reach=other.our_address) as serving:
        token, port = serving.process.spec.token, serving.port
        met = other.ask(
            (other.our_address, port, f"/{token}{COMPLETIONS}"),
            (other.our_address, port, COMPLETIONS),
            (other.our_address, port, f"/{token[:-1]}{COMPLETIONS}"),
            # Loopback there is not the one here.
            ("127.0.0.1", port, f"/{token}{COMPLETIONS}"),
        )
        events = serving.stop()
    assert met == ["200", "404", "404", "refused"]
    assert (
        serving.process.container["openai_base_url_container"] == f"http://{other.our_address}:{port}/{token}/v1"
    )
    asked = [each for each in events if each["event"] == "request"]
    assert [each.get("path") for each in asked] == [COMPLETIONS, None, None]


def test_loopback_alone_is_not_to_be_reached_from_there(tmp_path: Path, other: OtherNetwork) -> None:
    with Serving(tmp_path) as serving:
        path = f"/{serving.process.spec.token}{COMPLETIONS}"
        assert other.ask((other.our_address, serving.port, path)) == ["refused"]
        assert [each["event"] for each in serving.stop()] == ["listen", "exited"]


@pytest.mark.parametrize(
    ("kind", "first", "logged"),
    [("process_killed", "nothing", "killed"), ("connection_refused", "reset", "refusing")],
)
def test_a_dead_server_is_refused_from_there_too(
    tmp_path: Path, other: OtherNetwork, kind: str, first: str, logged: str
) -> None:
    with Serving(tmp_path, reach=other.our_address, fault=fault(kind, at_step=1)) as serving:
        call = (other.our_address, serving.port, f"/{serving.process.spec.token}{COMPLETIONS}")
        assert other.ask(call) == [first]
        serving.wait_logged(logged)
        assert other.ask(call) == ["refused"]
        events = serving.stop()
    facts = wire_facts(events, declares=declares_of(kind, {}), ended_by_us_at=None, last_step=None, failing_step=1)
    assert (facts.delivered, facts.why_not) == (True, None)


def test_with_docker_the_bridges_gateway_is_the_way_in(
    tmp_path: Path, other: OtherNetwork, fake_docker: FakeDocker
) -> None:
    fake_docker.engine(other.our_address)
    with Serving(tmp_path, reach="docker") as serving:
        container = serving.process.container
        # What the option makes of a container's /etc/hosts.
        name, _, address = container["container_host_args"].removeprefix("--add-host=").partition(":")
        url = container["openai_base_url_container"]
        assert url == f"http://{name}:{serving.port}/{serving.process.spec.token}/v1"
        assert other.ask((address, serving.port, f"/{serving.process.spec.token}{COMPLETIONS}")) == ["200"]
        assert serving.stop()[0]["beside_loopback"] == [other.our_address]


def test_an_agent_there_goes_through_a_simulation(tmp_path: Path, other: OtherNetwork) -> None:
    made = make_project(tmp_path, [*other.enter, sys.executable, "-m", "pytest_regcase.demo.agent", *TIMING])
    pyproject = tmp_path / "pyproject.toml"
    text = pyproject.read_text().replace("{openai_base_url}", "{openai_base_url_container}")
    pyproject.write_text(f'{text}\n[tool.regcase.supplier]\nreach = "{other.our_address}"\n')
    made = replace(made, project=load_project(tmp_path))
    killed = made.run("oom-killed-v1")
    assert (killed.verdict, killed.wire.delivered) == ("recovered", True)


# What only an engine can show.


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    """An image with nothing in it: what is run comes from this machine. Skips without an engine that answers."""
    try:
        if ask_docker("info", "--format", "{{.OperatingSystem}}").strip() == DESKTOP:
            pytest.skip("needs a Docker engine on this machine itself: this is Docker Desktop")
    except EngineSilent as silence:
        pytest.skip(f"needs a Docker engine: {silence}")
    empty = tarfile.NUL * tarfile.RECORDSIZE
    done = subprocess.run(["docker", "import", "-"], input=empty, capture_output=True, check=True)
    made = done.stdout.decode().strip()
    yield made
    subprocess.run(["docker", "rmi", "--force", made], capture_output=True, check=True)


ASKS = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "/chat/completions", sys.argv[2].encode()).status, flush=True)
"""


def containers_project(root: Path, image: str, cleanup: str) -> Project:
    """A project whose agent asks once, from a container."""
    folders = dict.fromkeys((*("/usr", "/lib", "/lib64"), sys.base_prefix))
    mounts = [f"--volume={each}:{each}:ro" for each in folders if Path(each).exists()]
    command = [
        *("docker", "run", "--name", "{attempt_label}", "{container_host_args}", *mounts, image),
        *(os.path.realpath(sys.executable), "-I", "-c", ASKS, "{openai_base_url_container}", CHAT),
    ]
    # The agent sees nothing of our environment, so neither which engine we ask.
    engine = {key: os.environ[key] for key in ("DOCKER_HOST", "DOCKER_CONTEXT") if key in os.environ}
    env = "".join(f"{key} = {json.dumps(value)}\n" for key, value in engine.items())
    (root / "pyproject.toml").write_text(
        f"""
[tool.regcase.supplier]
reach = "docker"
[tool.regcase.agents.default]
command = {json.dumps(command)}
deadline_seconds = 3
cap_seconds = 30
revision_paths = ["pyproject.toml"]
{cleanup}
[tool.regcase.agents.default.env]
{env}
"""
    )
    return load_project(root)


@pytest.mark.slow
def test_a_container_reaches_us_and_is_removed_or_named(tmp_path: Path, image: str) -> None:
    for folder, cleanup in (("left", ""), ("clean", 'cleanup = ["docker", "rm", "--force", "{attempt_label}"]')):
        (tmp_path / folder).mkdir()
        found = diagnose(containers_project(tmp_path / folder, image, cleanup), "default")
        facts = found.containers
        assert facts is not None
        left = [each.split(" ")[0] for each in facts.left]
        try:
            assert found.reached, found.last_words
            assert found.silent.wire.delivered
            assert (len(left), facts.starts, facts.connections) == (0 if cleanup else 2, "docker", 2)
            assert all(each.startswith("regcase-") for each in left)
        finally:
            if left:
                subprocess.run(["docker", "rm", "--force", *left], capture_output=True, check=True)
