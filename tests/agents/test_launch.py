import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.agents import launch as launch_module
from pytest_regcase.agents.launch import Launch, Places, prepare
from pytest_regcase.agents.process import AgentProcess
from pytest_regcase.config import AgentConfig
from pytest_regcase.errors import MachineryError, UsageRefused
from tests.agents.waiting import until

DUMP = "/usr/bin/env"
OPENAI = "http://127.0.0.1:40001/t0ken/v1"
ANTHROPIC = "http://127.0.0.1:40001/t0ken"
NEVER_PASSED = {
    "OPENAI_API_KEY": "sk-real",
    "ANTHROPIC_API_KEY": "sk-ant-real",
    "AWS_SECRET_ACCESS_KEY": "real",
    "GITHUB_TOKEN": "ghp_real",
    "HTTPS_PROXY": "http://user:password@proxy:3128",
    "PYTHONPATH": "/somewhere",
    "PYTHONSTARTUP": "/somewhere/else",
    "REGCASE_LEDGER": "postgresql://user:password@host/db",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "PYTEST_CURRENT_TEST": "x",
}
ALLOWED = {"PATH", "HOME", "TMPDIR", "GIT_CEILING_DIRECTORIES", "NO_PROXY", "no_proxy", "PYTHONUSERBASE"}
KEPT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC"}
RUNNER = {**KEPT, "HOME": "/home/someone", **NEVER_PASSED}


def prepared(places: Places, root: Path, config: AgentConfig, **changes: Any) -> Launch:
    told: dict[str, Any] = {
        "project_root": root,
        "task_text": "Fix {it}.\n",
        "task_id": "task-1",
        "attempt": 3,
        "seed": 3,
        "openai_base_url": OPENAI,
        "anthropic_base_url": ANTHROPIC,
        "api_key": "sk-regcase-0",
        "runner_env": RUNNER,
        **changes,
    }
    return prepare(config, "default", places, **told)


def environment_of(launch: Launch, places: Places) -> dict[str, str]:
    """Run it for real and return what `env` printed."""
    with AgentProcess.start(launch, places) as process:
        assert process.wait(30)
        assert process.exit.code == 0, places.stderr.read_text()
    return dict(line.split("=", 1) for line in places.stdout.read_text().splitlines())


def test_nothing_beyond_the_allow_list_reaches_the_agent(places: Places, tmp_path: Path) -> None:
    config = AgentConfig(
        command=(DUMP,), env={"OPENAI_BASE_URL": "{openai_base_url}", "OPENAI_API_KEY": "{api_key}"}
    )
    found = environment_of(prepared(places, tmp_path, config), places)
    assert set(found) <= ALLOWED | {"LANG", "LC_TIME", "TZ", "OPENAI_BASE_URL", "OPENAI_API_KEY"}
    assert found["OPENAI_BASE_URL"] == OPENAI
    assert found["OPENAI_API_KEY"] == "sk-regcase-0"
    assert found["LANG"] == "C.UTF-8"
    assert found["TZ"] == "UTC"
    for value in NEVER_PASSED.values():
        assert all(value not in each for each in found.values())


def test_by_default_the_list_is_applied_to_our_own_environment(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_OURS", "hunter2")
    found = environment_of(prepared(places, tmp_path, AgentConfig(command=(DUMP,)), runner_env=None), places)
    assert "A_SECRET_OF_OURS" not in found
    kept = {*launch_module.KEPT_VARIABLES, *(key for key in os.environ if key.startswith("LC_"))}
    assert set(found) <= ALLOWED | kept


def test_home_and_temporary_files_are_inside_the_attempt(places: Places, tmp_path: Path) -> None:
    found = environment_of(prepared(places, tmp_path, AgentConfig(command=(DUMP,))), places)
    for name in ("HOME", "TMPDIR"):
        folder = Path(found[name])
        assert folder.is_dir()
        assert folder.is_relative_to(places.folder)


def test_loopback_needs_no_proxy_and_the_agents_own_list_stays(places: Places, tmp_path: Path) -> None:
    config = AgentConfig(command=(DUMP,), env={"NO_PROXY": "intranet"})
    launch = prepared(places, tmp_path, config, openai_base_url="http://172.17.0.1:4/t/v1")
    assert launch.env["NO_PROXY"] == launch.env["no_proxy"] == "intranet,127.0.0.1,localhost,::1,172.17.0.1"


CONTAINER = {
    "openai_base_url_container": "http://host.docker.internal:40001/t0ken/v1",
    "anthropic_base_url_container": "http://172.17.0.1:40001/t0ken",
    "container_host_args": "--add-host=host.docker.internal:172.17.0.1",
}


def test_an_agent_in_a_container_is_told_our_address_there_and_no_proxy_for_it(
    places: Places, tmp_path: Path
) -> None:
    config = AgentConfig(
        command=("docker-run", "{container_host_args}", "-e", "A={openai_base_url_container}"),
        env={"B": "{anthropic_base_url_container}"},
        wrapper=("echo",),
    )
    launch = prepared(places, tmp_path, config, container=CONTAINER)
    assert launch.argv[1:] == (
        *("docker-run", "--add-host=host.docker.internal:172.17.0.1", "-e"),
        "A=http://host.docker.internal:40001/t0ken/v1",
    )
    assert launch.env["B"] == "http://172.17.0.1:40001/t0ken"
    assert launch.env["no_proxy"] == "127.0.0.1,localhost,::1,host.docker.internal,172.17.0.1"


@pytest.mark.parametrize("name", sorted(CONTAINER))
def test_without_a_reach_there_is_no_address_for_containers(places: Places, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageRefused) as caught:
        prepared(places, tmp_path, AgentConfig(command=("true", f"{{{name}}}")))
    assert caught.value.text == (
        f"Couldn't fill in `[tool.regcase.agents.default] command[1]`: {{{name}}} has no value: no container"
        ' reaches a supplier that listens on loopback only; set [tool.regcase.supplier] reach = "docker".\n'
        "Take it out, or run a case that has one."
    )


def test_a_live_attempt_gets_what_live_env_names_and_no_other_attempt_does(places: Places, tmp_path: Path) -> None:
    config = AgentConfig(command=(DUMP,), live_env=("GITHUB_TOKEN",))
    assert "GITHUB_TOKEN" not in prepared(places, tmp_path, config).env
    live = prepared(places, tmp_path, config, live_env={"GITHUB_TOKEN": "x", "OTHER": "y"}).env
    assert live["GITHUB_TOKEN"] == "x"
    assert "OTHER" not in live
    with pytest.raises(UsageRefused, match="GITHUB_TOKEN"):
        prepared(places, tmp_path, config, live_env={"OTHER": "y"})


def test_fills_in_command_environment_wrapper_and_cleanup(places: Places, tmp_path: Path) -> None:
    config = AgentConfig(
        command=("cat", "{task_file}", "{task}", "{task_id}", "{attempt}", "{seed}", "{work_dir}", "{out_dir}"),
        env={"URLS": "{openai_base_url} {anthropic_base_url}", "MODEL": "{model}", "PROJECT": "{project_dir}"},
        wrapper=("env", "LABEL={attempt_label}"),
        cleanup=("echo", "{attempt_label}"),
        model="m-1",
    )
    launch = prepared(places, tmp_path, config)
    label = launch.cleanup[1]
    assert launch.argv[0] == shutil.which("env", path=launch.env["PATH"])
    assert launch.argv[1:] == (
        f"LABEL={label}", "cat", str(places.task_file), "Fix {it}.\n", "task-1", "3", "3",
        str(places.work_dir), str(places.out_dir),
    )  # fmt: skip
    assert launch.env["URLS"] == f"{OPENAI} {ANTHROPIC}"
    assert launch.env["MODEL"] == "m-1"
    assert launch.env["PROJECT"] == str(tmp_path)
    assert launch.cwd == places.work_dir
    assert places.task_file.read_text() == "Fix {it}.\n"
    assert launch.placeholders["out_dir"] == str(places.out_dir)


def test_the_label_differs_between_attempts(tmp_path: Path) -> None:
    config = AgentConfig(command=("true",), cleanup=("{attempt_label}",))
    labels = {prepared(Places.below(tmp_path / each), tmp_path, config).cleanup for each in ("one", "two")}
    assert len(labels) == 2


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (AgentConfig(command=("true", "{nope}")), "command[1]"),
        (AgentConfig(command=("true",), env={"X": "{nope}"}), "env.X"),
        (AgentConfig(command=("true",), wrapper=("env", "{nope}")), "wrapper[1]"),
        (AgentConfig(command=("true",), cleanup=("{nope}",)), "cleanup[0]"),
    ],
)
def test_an_unknown_placeholder_names_its_place(
    places: Places, tmp_path: Path, config: AgentConfig, key: str
) -> None:
    with pytest.raises(UsageRefused) as caught:
        prepared(places, tmp_path, config)
    assert f"[tool.regcase.agents.default] {key}" in caught.value.text


def test_a_model_that_nobody_named_is_absent(places: Places, tmp_path: Path) -> None:
    config = AgentConfig(command=("true", "{model}"))
    with pytest.raises(UsageRefused, match="no model is configured"):
        prepared(places, tmp_path, config)
    assert prepared(places, tmp_path, config, model="given").argv[1] == "given"


def test_python_is_the_one_that_runs_us_and_finds_the_projects_modules(places: Places, tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text("import sys; print(sys.executable, *sys.argv[1:])\n")
    launch = prepared(places, tmp_path, AgentConfig(command=("python", "-m", "my_agent", "x")))
    assert launch.argv[0] == sys.executable
    with AgentProcess.start(launch, places) as process:
        assert process.wait(30)
    assert places.stdout.read_text().split() == [sys.executable, "x"]


def test_programs_beside_our_python_are_found_first(places: Places, tmp_path: Path) -> None:
    launch = prepared(places, tmp_path, AgentConfig(command=("pytest", "--version")))
    assert Path(launch.argv[0]).parent == Path(sys.executable).parent


def test_a_relative_command_is_relative_to_the_project(places: Places, tmp_path: Path) -> None:
    script = tmp_path / "run-agent"
    script.write_text("#!/bin/sh\n")
    config = AgentConfig(command=("./run-agent",))
    with pytest.raises(MachineryError, match="is not executable") as caught:
        prepared(places, tmp_path, config)
    assert str(script) in caught.value.text.replace("/./", "/")
    script.chmod(0o755)
    assert Path(prepared(places, tmp_path, config).argv[0]).samefile(script)


@pytest.mark.parametrize("word", ["no-such-program", "./no-such-program", "/no/such/program"])
def test_a_command_that_is_not_there_says_what_was_looked_for(places: Places, tmp_path: Path, word: str) -> None:
    with pytest.raises(MachineryError) as caught:
        prepared(places, tmp_path, AgentConfig(command=(word,)))
    assert caught.value.slug == "command-not-found"
    assert caught.value.text.startswith("Couldn't start agent 'default': ")
    assert word.removeprefix("./") in caught.value.text


@pytest.mark.parametrize(
    "config", [AgentConfig(), AgentConfig(command=("true",), python="m:f"), AgentConfig(command=())]
)
def test_an_agent_that_is_not_said_how_to_start_is_refused(
    places: Places, tmp_path: Path, config: AgentConfig
) -> None:
    with pytest.raises(UsageRefused, match="default"):
        prepared(places, tmp_path, config)


def test_an_agent_without_a_work_tree_does_not_find_the_repository_around_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    places = Places.below(tmp_path / ".regcase" / "attempt")
    config = AgentConfig(command=("git", "rev-parse", "--show-toplevel"))
    with AgentProcess.start(prepared(places, tmp_path, config), places) as process:
        assert process.wait(30)
        assert process.exit.code == 128
    assert until(lambda: "not a git repository" in places.stderr.read_text())


def test_a_live_attempt_with_nothing_set_is_refused_too(places: Places, tmp_path: Path) -> None:
    config = AgentConfig(command=(DUMP,), live_env=("GITHUB_TOKEN",))
    with pytest.raises(UsageRefused, match="GITHUB_TOKEN"):
        prepared(places, tmp_path, config, live_env={})
