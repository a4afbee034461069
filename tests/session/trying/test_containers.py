"""What the doctor knows of agents in containers, with an engine that answers as each test says."""

import json
import sys
from pathlib import Path

import pytest

from pytest_regcase.agents.launch import Places, attempt_label
from pytest_regcase.config import Project, load_project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.session.trying import containers
from pytest_regcase.session.trying.containers import ContainerFacts, container_facts
from pytest_regcase.session.trying.doctor import diagnose
from tests.supplier.engines import NO_DAEMON, FakeDocker

PYPROJECT = """
[tool.regcase.supplier]
reach = "{reach}"
[tool.regcase.agents.default]
command = {command}
deadline_seconds = 3
cap_seconds = 30
revision_paths = ["pyproject.toml"]
{more}
"""
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the address 127.0.0.2 by itself")


def project_of(root: Path, *command: str, reach: str = "loopback", more: str = "") -> Project:
    (root / "pyproject.toml").write_text(PYPROJECT.format(reach=reach, command=json.dumps(command), more=more))
    return load_project(root)


def facts_of(project: Project, *events: str) -> ContainerFacts | None:
    return container_facts(project, project.config.agents["default"], (), [{"event": each} for each in events])


def test_nothing_is_said_or_asked_where_nothing_speaks_of_containers(
    tmp_path: Path, fake_docker: FakeDocker
) -> None:
    assert facts_of(project_of(tmp_path, "python", "-m", "dockerless")) is None
    assert fake_docker.asked == []


@pytest.mark.parametrize(
    ("command", "more", "starts"),
    [
        (("/usr/bin/docker", "run", "x"), "", "docker"),
        (("python", "a.py"), 'wrapper = ["sudo", "podman", "run", "x"]', "podman"),
        (("python", "a.py", "--name={attempt_label}"), "", None),
        (("python", "a.py"), 'env = { NAME = "{attempt_label}" }', None),
        (("python", "a.py"), 'cleanup = ["rm-all", "{attempt_label}"]', None),
    ],
)
def test_an_engines_command_or_the_label_speaks_of_containers(
    tmp_path: Path, fake_docker: FakeDocker, command: tuple[str, ...], more: str, starts: str | None
) -> None:
    fake_docker.says(ps=(0, "", ""))
    assert facts_of(project_of(tmp_path, *command, more=more), "listen", "accept", "accept") == ContainerFacts(
        reach="loopback",
        starts=starts,
        listened=(("127.0.0.1", "lo" if sys.platform == "linux" else None),),
        host=None,
        host_args=None,
        connections=2,
        open_firewall=None,
        left=(),
        not_looked_for=None,
    )


@linux_only
@pytest.mark.parametrize(
    ("program", "fix"),
    [
        ("ufw", "sudo ufw allow in on lo0 to 127.0.0.2 proto tcp"),
        ("firewall-cmd", "sudo firewall-cmd --zone=trusted --change-interface=lo0"),
        ("none", "sudo iptables -I INPUT -i lo0 -d 127.0.0.2 -p tcp -j ACCEPT"),
    ],
)
def test_the_firewall_is_opened_by_what_is_installed(
    tmp_path: Path, fake_docker: FakeDocker, monkeypatch: pytest.MonkeyPatch, program: str, fix: str
) -> None:
    fake_docker.says(ps=(0, "", ""))
    monkeypatch.setattr("shutil.which", lambda name: name if name == program else None)
    monkeypatch.setattr(containers, "interface_of", {"127.0.0.1": "lo", "127.0.0.2": "lo0"}.get)
    found = facts_of(project_of(tmp_path, "true", reach="127.0.0.2"))
    assert found is not None
    assert found.listened == (("127.0.0.1", "lo"), ("127.0.0.2", "lo0"))
    assert (found.host, found.host_args) == ("127.0.0.2", "--add-host=host.docker.internal:127.0.0.2")
    assert found.open_firewall == fix


@linux_only
def test_no_firewall_is_opened_on_an_interface_that_is_not_known(tmp_path: Path, fake_docker: FakeDocker) -> None:
    fake_docker.says(ps=(0, "", ""))
    found = facts_of(project_of(tmp_path, "true", reach="127.0.0.2"))
    assert found is not None
    assert (found.listened[-1], found.open_firewall) == (("127.0.0.2", None), None)


def test_an_engine_that_does_not_answer_is_the_reason_why_nobody_looked(
    tmp_path: Path, fake_docker: FakeDocker
) -> None:
    fake_docker.says(ps=(1, "", NO_DAEMON))
    found = facts_of(project_of(tmp_path, "docker", "run", "x"))
    assert found is not None
    assert (found.left, found.not_looked_for) == ((), f"docker ps says: {NO_DAEMON.strip()}")


def test_what_carries_the_label_of_an_attempt_is_named(tmp_path: Path, fake_docker: FakeDocker) -> None:
    # The agent "starts" a container: from then on the engine lists one of that name.
    script = f"""
import json, sys
file = {str(fake_docker.answers)!r}
told = json.load(open(file))
told["ps"] = [0, told.get("ps", [0, ""])[1] + sys.argv[1] + "\\tmy-agent\\tUp 1 second\\t\\n", ""]
json.dump(told, open(file, "w"))
"""
    fake_docker.says(ps=(0, "db\tpostgres\tUp 2 days\t\n", ""))
    found = diagnose(project_of(tmp_path, sys.executable, "-c", script, "{attempt_label}"), "default")
    assert found.containers is not None
    labels = [attempt_label(Places.below(tmp_path / str(each.folder))) for each in (found.answered, found.silent)]
    assert found.containers.left == tuple(f"{each} (my-agent, Up 1 second)" for each in labels)
    assert not found.reached


def test_an_engine_that_is_not_there_is_refused_before_anything_runs(
    tmp_path: Path, fake_docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_regcase.supplier.reach._DEFAULT_BRIDGE", "no-such-bridge")
    fake_docker.says(info=(1, "", NO_DAEMON))
    with pytest.raises(UsageRefused, match=r"Start it: sudo systemctl start docker"):
        diagnose(project_of(tmp_path, "true", reach="docker"), "default")
    assert not (tmp_path / ".regcase").exists()
