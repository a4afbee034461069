"""How an agent is started: its folders, its command, and the only variables that it sees.

Knows the configuration of one agent and the places of one attempt. Starts nothing itself, and imports no supplier:
base URLs and the throw-away key come in as text.
"""

import hashlib
import json
import os
import shutil
import site
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from pytest_regcase.agents.placeholders import fill
from pytest_regcase.config import AgentConfig
from pytest_regcase.errors import MachineryError, UsageRefused

KEPT_VARIABLES = ("LANG", "LANGUAGE", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
"""Copied from the runner besides PATH and LC_*. Some Pythons do not start without LD_LIBRARY_PATH."""


@dataclass(frozen=True)
class Places:
    """The files and folders of one attempt. All absolute, all below `folder`."""

    folder: Path
    work_dir: Path
    """The agent's working folder."""
    out_dir: Path
    """Where the agent's own log and answer belong."""
    task_file: Path
    stdout: Path
    stderr: Path

    @classmethod
    def below(cls, folder: Path) -> "Places":
        """Return the usual places below `folder`; makes none of them."""
        folder = folder.absolute()
        return cls(
            folder=folder,
            work_dir=folder / "work",
            out_dir=folder / "out",
            task_file=folder / "task.txt",
            stdout=folder / "stdout.txt",
            stderr=folder / "stderr.txt",
        )


@dataclass(frozen=True)
class Launch:
    """What `AgentProcess.start` starts."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    placeholders: Mapping[str, str]
    """What `fill` replaces in this attempt; one without a value is not in it."""
    cleanup: tuple[str, ...] = ()
    """A command to run after the attempt, filled in; empty: none."""
    agent_only: Mapping[str, str] = field(default_factory=dict)
    """Variables for the agent and not for the clean-up: of `clock.py` and `connect_audit.py`."""


def prepare(
    config: AgentConfig,
    name: str,
    places: Places,
    *,
    project_root: Path,
    task_text: str | None,
    task_id: str | None,
    attempt: int | str,
    seed: int | None,
    openai_base_url: str,
    anthropic_base_url: str,
    api_key: str,
    container: Mapping[str, str] = MappingProxyType({}),
    model: str | None = None,
    live_env: Mapping[str, str] | None = None,
    runner_env: Mapping[str, str] | None = None,
) -> Launch:
    """Make the attempt's folders and return how to start the agent in them.

    `container` holds the placeholders for an agent in a container; empty where none reaches the supplier.
    `live_env` is where a live attempt takes the variables from that the agent's own `live_env` names; None for any
    other attempt.
    `runner_env` is where PATH and the like come from, by default `os.environ`. A relative command is relative to
    `project_root`; a first word ``python`` is the Python that runs us.
    Raises UsageRefused for what the configuration asks in vain, MachineryError where the command is not there.
    """
    if (config.command is None) == (config.python is None):
        raise UsageRefused(
            f"Couldn't start agent {name!r}: give exactly one of `command` and `python`.\n"
            f"See [tool.regcase.agents.{name}] in pyproject.toml."
        )
    possible = {
        "task_file": None if task_text is None else str(places.task_file),
        "task": task_text,
        "task_id": task_id,
        "attempt": str(attempt),
        "seed": None if seed is None else str(seed),
        "work_dir": str(places.work_dir),
        "out_dir": str(places.out_dir),
        "project_dir": str(project_root),
        "openai_base_url": openai_base_url,
        "anthropic_base_url": anthropic_base_url,
        **container,
        "attempt_label": attempt_label(places),
        "api_key": api_key,
        "model": model if model is not None else config.model,
    }
    values = {key: value for key, value in possible.items() if value is not None}

    def filled(text: str, key: str) -> str:
        return fill(text, values, where=f"[tool.regcase.agents.{name}] {key}")

    for folder in (places.work_dir, places.out_dir, _home(places), _temporary(places)):
        folder.mkdir(parents=True, exist_ok=True)
    if task_text is not None:
        places.task_file.write_text(task_text, encoding="utf-8")

    runner = os.environ if runner_env is None else runner_env
    env = _environment(runner, places)
    if config.command is not None:
        words = [filled(word, f"command[{at}]") for at, word in enumerate(config.command)]
        if words and words[0] == "python":
            words[0] = sys.executable
            # What `python -m agent` finds in the project's folder it finds here too, though it starts elsewhere.
            env["PYTHONPATH"] = str(project_root)
    else:
        words = _python_words(config, places, values, project_root)
    env.update({key: filled(value, f"env.{key}") for key, value in config.env.items()})
    env.update(_live_variables(config, name, live_env))
    env.update(_without_proxy(env, [value for key, value in values.items() if "_base_url" in key]))
    wrapper = [filled(word, f"wrapper[{at}]") for at, word in enumerate(config.wrapper)]
    argv = [*wrapper, *words]
    if not argv or not argv[0]:
        raise UsageRefused(f"Couldn't start agent {name!r}: its `command` is empty.\nName a program.")
    argv[0] = _program(argv[0], name, project_root, env.get("PATH", ""))
    return Launch(
        argv=tuple(argv),
        env=env,
        cwd=places.work_dir,
        placeholders=values,
        cleanup=tuple(filled(word, f"cleanup[{at}]") for at, word in enumerate(config.cleanup)),
    )


def _environment(runner: Mapping[str, str], places: Places) -> dict[str, str]:
    """Return the allow-list: nothing else of the runner's environment reaches the agent."""
    own_programs = str(Path(sys.executable).parent)
    env = {
        "PATH": os.pathsep.join([own_programs, runner.get("PATH", os.defpath)]),
        "HOME": str(_home(places)),
        "TMPDIR": str(_temporary(places)),
        # An agent without a work tree must not find, let alone commit to, the repository that we run in.
        "GIT_CEILING_DIRECTORIES": str(places.folder),
    }
    if site.ENABLE_USER_SITE:
        # HOME is a throw-away one, but packages that the user installed for herself are there all the same.
        env["PYTHONUSERBASE"] = site.getuserbase()
    env.update({key: runner[key] for key in runner if key in KEPT_VARIABLES or key.startswith("LC_")})
    return env


def _without_proxy(env: Mapping[str, str], base_urls: Sequence[str]) -> dict[str, str]:
    """Return NO_PROXY in both spellings: a proxy that the agent is configured for must not see our traffic."""
    named = [host for key in ("NO_PROXY", "no_proxy") for host in env.get(key, "").split(",")]
    ours = ["127.0.0.1", "localhost", "::1", *(urlsplit(url).hostname or "" for url in base_urls)]
    hosts = ",".join(dict.fromkeys(host.strip() for host in [*named, *ours] if host.strip()))
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def _live_variables(config: AgentConfig, name: str, live_env: Mapping[str, str] | None) -> dict[str, str]:
    if live_env is None:
        return {}
    missing = [each for each in config.live_env if each not in live_env]
    if missing:
        raise UsageRefused(
            f"Couldn't start a live attempt of agent {name!r}: {', '.join(missing)} (named in its `live_env`) "
            "is not set here.\nSet it, or take it out of `live_env`."
        )
    return {each: live_env[each] for each in config.live_env}


def _python_words(config: AgentConfig, places: Places, values: Mapping[str, str], project_root: Path) -> list[str]:
    call = places.folder / "request.json"
    call.write_text(
        json.dumps(
            {
                "call": config.python,
                "project_root": str(project_root),
                "request": {
                    "task": values.get("task"),
                    "task_id": values.get("task_id"),
                    "work_dir": str(places.work_dir),
                    "out_dir": str(places.out_dir),
                    "openai_base_url": values["openai_base_url"],
                    "anthropic_base_url": values["anthropic_base_url"],
                    "api_key": values["api_key"],
                    "model": values.get("model"),
                },
            },
            indent=2,
        ),
        encoding="utf-8",
    )
    # -P: files of the work tree must not stand in for modules of the agent.
    return [sys.executable, "-P", "-m", "pytest_regcase.agents.python_runner", str(call)]


def _program(word: str, name: str, project_root: Path, path: str) -> str:
    """Return the full path of the program, or say what was looked for and where."""
    looked_for = word
    if os.sep in word and not os.path.isabs(word):
        looked_for = str(project_root / word)
    found = shutil.which(looked_for, path=path)
    if found is not None:
        return found
    if os.sep in looked_for:
        reason = "is not executable" if os.path.isfile(looked_for) else "is not there"
        raise MachineryError(
            f"Couldn't start agent {name!r}: {looked_for} {reason}.\n"
            f"Give [tool.regcase.agents.{name}] a command that can be started.",
            slug="command-not-found",
        )
    raise MachineryError(
        f"Couldn't start agent {name!r}: no program {word!r} on the path.\n"
        f"Install it, or give its full path. Looked in {path}.",
        slug="command-not-found",
    )


def _home(places: Places) -> Path:
    return places.folder / "home"


def _temporary(places: Places) -> Path:
    return places.folder / "tmp"


def attempt_label(places: Places) -> str:
    """Return a name for containers that no other attempt on this machine has."""
    return "regcase-" + hashlib.sha256(str(places.folder).encode()).hexdigest()[:12]
