from dataclasses import replace

import pytest

from pytest_regcase.cli.container_lines import left_behind, way_in
from pytest_regcase.session.trying.containers import ContainerFacts

LOOPBACK = ContainerFacts(
    reach="loopback",
    starts="docker",
    listened=(("127.0.0.1", "lo"),),
    host=None,
    host_args=None,
    connections=0,
    open_firewall=None,
    left=(),
    not_looked_for=None,
)
DOCKER = replace(
    LOOPBACK,
    reach="docker",
    listened=(("127.0.0.1", "lo"), ("172.17.0.1", "docker0")),
    host="host.docker.internal",
    host_args="--add-host=host.docker.internal:172.17.0.1",
    open_firewall="sudo ufw allow in on docker0 to 172.17.0.1 proto tcp",
)


def test_where_loopback_alone_is_listened_on_the_reach_is_the_fix() -> None:
    assert "\n".join(way_in(LOOPBACK, "mine")) == (
        "  Its command starts docker, and no container sees loopback, where alone we\n"
        "    listen. In pyproject.toml:\n"
        "    [tool.regcase.supplier]\n"
        '    reach = "docker"\n'
        "  Start it with these arguments, in [tool.regcase.agents.mine] command:\n"
        '    "--name", "{attempt_label}", "{container_host_args}",\n'
        '    "-e", "OPENAI_BASE_URL={openai_base_url_container}", "-e", "OPENAI_API_KEY={api_key}",'
    )


def test_another_engine_has_another_bridge() -> None:
    lines = list(way_in(replace(LOOPBACK, starts="podman"), "mine"))
    assert '    reach = "ADDRESS"  # one of this machine' in lines
    assert lines[0].startswith("  Its command starts podman,")


def test_what_was_tried_and_what_to_run_is_said() -> None:
    assert "\n".join(way_in(DOCKER, "mine")) == (
        '  Tried, with reach = "docker": we listened on 127.0.0.1 (lo) and 172.17.0.1\n'
        "    (docker0); no connection came in.\n"
        "  See what a container meets, in two terminals:\n"
        "    regcase serve --reach docker --port 8765\n"
        "    docker run --rm --add-host=host.docker.internal:172.17.0.1 curlimages/curl -sS -m 5"
        " http://host.docker.internal:8765/\n"
        '  "There is nothing here.": it reaches us, and the agent does not use the\n'
        "    address.\n"
        "  Start it with these arguments, in [tool.regcase.agents.mine] command:\n"
        '    "--name", "{attempt_label}", "{container_host_args}",\n'
        '    "-e", "OPENAI_BASE_URL={openai_base_url_container}", "-e", "OPENAI_API_KEY={api_key}",\n'
        "  No such host: {container_host_args} is missing before the image's name.\n"
        "  A time-out: a firewall of this machine drops what containers send. Let it\n"
        "    through:\n"
        "    sudo ufw allow in on docker0 to 172.17.0.1 proto tcp"
    )


def test_an_address_whose_interface_is_not_seen_has_no_firewall_line() -> None:
    facts = replace(
        DOCKER, reach="10.1.2.3", starts=None, listened=(("10.1.2.3", None),), connections=2, open_firewall=None
    )
    text = "\n".join(way_in(facts, "mine"))
    assert text.startswith(
        '  Tried, with reach = "10.1.2.3": we listened on 10.1.2.3; connections that came\n    in: 2.\n'
    )
    assert "    regcase serve --reach 10.1.2.3 --port 8765" in text
    assert "    docker run --rm" in text
    assert "firewall" not in text


def test_containers_that_were_left_are_named_with_the_way_to_have_none() -> None:
    facts = replace(DOCKER, left=("regcase-0a (my-agent, Up 3 seconds)", "regcase-0b (my-agent, Created)"))
    assert "\n".join(left_behind(facts, "mine")) == (
        "  Left running or stopped: regcase-0a (my-agent, Up 3 seconds), regcase-0b\n"
        "    (my-agent, Created).\n"
        "  Name its containers {attempt_label} (docker run --name, without --rm), and\n"
        "    have them removed, in [tool.regcase.agents.mine]:\n"
        '    cleanup = ["docker", "rm", "--force", "{attempt_label}"]'
    )


@pytest.mark.parametrize("facts", [None, DOCKER])
def test_where_none_was_left_nothing_is_said(facts: ContainerFacts | None) -> None:
    assert list(left_behind(facts, "mine")) == []


def test_where_nobody_could_look_that_is_said() -> None:
    assert list(left_behind(replace(DOCKER, not_looked_for="docker ps says: no"), "mine")) == [
        "  Whether a container was left behind cannot be said: docker ps says: no."
    ]
