"""Agents on public libraries: the mini-swe-agent command line as it is, and a usual loop on two agent frameworks.

The two loops do what such loops do: they give the model a shell, take what the framework hands back as the final
answer, and hand in that with the work as a patch. Nothing is caught: what the framework raises ends the run.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

MODULES = (
    *("minisweagent.run.mini", "minisweagent.agents.interactive", "minisweagent.environments.local"),
    *("minisweagent.models.litellm_model", "pydantic_ai", "pydantic_ai.models.openai", "agents", "openai"),
)
CLIENT_SECONDS = 3.0
"""What a client waits for an answer, as in the recorded runs."""


def load() -> None:
    """Import everything that a run imports."""
    for name in MODULES:
        import_module(name)


def mini(words: list[str]) -> None:
    """Run the mini-swe-agent command line."""
    sys.argv = ["mini", *words]
    import_module("minisweagent.run.mini").app()


def pydantic_ai(words: list[str]) -> None:
    """Run a loop on pydantic-ai, over chat completions."""
    task, out = _told(words)
    framework, openai = import_module("pydantic_ai"), import_module("openai")
    models, providers = import_module("pydantic_ai.models.openai"), import_module("pydantic_ai.providers.openai")
    provider = providers.OpenAIProvider(openai_client=openai.AsyncOpenAI(timeout=CLIENT_SECONDS))
    agent = framework.Agent(models.OpenAIChatModel("regcase-model", provider=provider))
    agent.tool_plain(bash)
    _hand_in(out, agent.run_sync(task).output)


def openai_agents(words: list[str]) -> None:
    """Run a loop on openai-agents, over its default API (responses)."""
    task, out = _told(words)
    framework, openai = import_module("agents"), import_module("openai")
    # Else it sends what it does to a fixed public address.
    framework.set_tracing_disabled(True)
    framework.set_default_openai_client(openai.AsyncOpenAI(timeout=CLIENT_SECONDS), use_for_tracing=False)
    agent = framework.Agent(name="fixer", model="regcase-model", tools=[framework.function_tool(bash)])
    _hand_in(out, framework.Runner.run_sync(agent, task).final_output)


AGENTS: Mapping[str, Callable[[list[str]], None]] = {
    "mini-swe-agent": mini,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
}


def bash(command: str) -> str:
    """Run a shell command in the work folder."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30, check=False)
    return done.stdout + done.stderr


def _told(words: list[str]) -> tuple[str, Path]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options: Any = parser.parse_args(words)
    return options.task.read_text(), options.out


def _hand_in(out: Path, answer: Any) -> None:
    patch = subprocess.run(["git", "diff"], capture_output=True, text=True, check=True).stdout
    (out / "answer.json").write_text(json.dumps({"answer": answer, "patch": patch}))
