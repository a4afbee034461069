"""Sets a user's project up: a complete `[tool.regcase]`, and what git must know of recorded files and ledgers.

Adds text at the end of files; what stands there is never changed. Never prints.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from pytest_regcase.case_files import refuse_link, replace_file
from pytest_regcase.config import read_config
from pytest_regcase.errors import FileError, UnknownName, UsageRefused, did_you_mean
from pytest_regcase.toml_lines import TOML_LIMIT_BYTES, parse_toml, read_bounded, shown

GIT_ATTRIBUTES = "cases/**/recorded/** -text"
GIT_IGNORE = ".regcase/"

_HEAD = """\
[tool.regcase]
cases = ["cases"]
fixtures = ["fixtures"]  # simulations of your own; the built-in ones are always there

# The real supplier, for live attempts (`--regcase-live=N`):
# [tool.regcase.upstream]
# base_url = "https://api.example.com/v1"
# api_key_env = "OPENAI_API_KEY"
# wire = "openai-chat"  # or "openai-responses"; "anthropic-messages" with base_url = "https://api.anthropic.com"

[tool.regcase.agents.@NAME@]
"""

_BUDGETS = """\
deadline_seconds = 90  # after the first faulted request; above any case's stop_within_seconds
cap_seconds = 600  # the whole attempt
"""

PRESETS = {
    "mini-swe-agent": """\
# The time-out (s) and the number of tries are the agent's own settings: use those that you run it with.
command = [
  "mini", "-y", "--exit-immediately",
  "-m", "openai/{model}",
  "-t", "{task}",
  "-o", "{out_dir}/trajectory.traj.json",
  "-c", "mini.yaml",
  "-c", "model.model_kwargs.timeout=15",
]
output = "{out_dir}"
# What ends a healthy run: the command that mini-swe-agent takes for a submission.
closing_reply = { tool_calls = [
  { name = "bash", arguments = '{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}' },
] }
# revision_paths = ["prompts", "mini.yaml"]  # what an agent revision is; without it the whole git tree
"""
    + _BUDGETS
    + """\
[tool.regcase.agents.@NAME@.env]
OPENAI_BASE_URL = "{openai_base_url}"
OPENAI_API_KEY = "{api_key}"
LITELLM_LOCAL_MODEL_COST_MAP = "True"  # else it fetches a price list when it starts
MSWEA_CONFIGURED = "true"  # no set-up dialogue
MSWEA_COST_TRACKING = "ignore_errors"  # the model has no price
MSWEA_GLOBAL_CONFIG_DIR = "{out_dir}/mini-config"
MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT = "1"  # each try is up to 3 requests of the client library
""",
    "inspect": """\
# my_task.py stands for your own task; it gets the case's text as its argument task_file. An agent starts in a
# folder of its own, so the path begins at the project's.
# The limits on retries and time are the agent's own settings: use those that you run it with.
command = [
  "inspect", "eval", "{project_dir}/my_task.py",
  "-T", "task_file={task_file}",
  "--model", "openai/{model}",
  "-M", "responses_api=false",
  "--log-dir", "{out_dir}",
  "--display", "plain",
  "--max-retries", "2",
  "--attempt-timeout", "15",
]
output = "{out_dir}"
# What ends a healthy run: the submit tool of Inspect's own agents.
closing_reply = { tool_calls = [{ name = "submit", arguments = '{"answer": "Done."}' }] }
submits_by = "score"  # what it leaves is handed in by being scored
# revision_paths = ["my_task.py"]  # what an agent revision is; without it the whole git tree
"""
    + _BUDGETS
    + """\
[tool.regcase.agents.@NAME@.env]
OPENAI_BASE_URL = "{openai_base_url}"
OPENAI_API_KEY = "{api_key}"
""",
    "python": """\
# A function of yours, called in a child process: def solve(request) -> None | str. `request` has task, task_id,
# work_dir, out_dir, openai_base_url, anthropic_base_url, api_key and model.
python = "my_agent:solve"
output = "{out_dir}"  # what it writes there is read as a trial
revision_paths = ["my_agent.py"]  # what an agent revision is: add prompts, tools, a lock file
"""
    + _BUDGETS
    + """\
[tool.regcase.agents.@NAME@.env]  # all that it sees, beside what every program needs
OPENAI_BASE_URL = "{openai_base_url}"
OPENAI_API_KEY = "{api_key}"
""",
}
"""Harness -> the entry of an agent that it runs."""


@dataclass(frozen=True)
class SetUp:
    """What was written and what held the lines already."""

    written: tuple[Path, ...]
    unchanged: tuple[Path, ...]


def set_up(folder: Path, *, harness: str, agent: str = "default") -> SetUp:
    """Write the entry of `harness` into ``pyproject.toml``, and the lines for git; each only once.

    Raises:
        UnknownName: nothing is known of that harness.
        UsageRefused: there is a `[tool.regcase]` already, or `agent` is no name for an agent.
        FileError: the pyproject.toml that is there is broken, or one of the files is none or a link.
        WriteError: the file system refuses.
    """
    project = folder / "pyproject.toml"
    entry = _with_entry(project, agent_entry(harness, agent))
    contents: dict[Path, bytes] = {}
    unchanged: list[Path] = []
    for name, line in ((".gitattributes", GIT_ATTRIBUTES), (".gitignore", GIT_IGNORE)):
        path = folder / name
        old = read_bounded(path, TOML_LIMIT_BYTES) if path.exists() else b""
        if line.encode() in [each.strip() for each in old.splitlines()]:
            unchanged.append(path)
        else:
            contents[path] = _added(old, line + "\n")
    # Last: with it there a second call is refused, so what a first one could not write would never be.
    contents[project] = entry
    for path in contents:
        refuse_link(path)
    for path, content in contents.items():
        replace_file(path, content)
    return SetUp((project, *(path for path in contents if path != project)), tuple(unchanged))


def agent_entry(harness: str, agent: str) -> str:
    """Return the text of a whole `[tool.regcase]` with one agent.

    Raises:
        UnknownName: nothing is known of that harness.
        UsageRefused: `agent` is no name for an agent.
    """
    if harness not in PRESETS:
        raise UnknownName(
            f"Couldn't find the harness {harness!r}: there is no entry for it.\n"
            f"{did_you_mean(harness, PRESETS)}Known: {', '.join(PRESETS)}."
        )
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", agent):
        raise UsageRefused(
            f"Couldn't name the agent {agent!r}: that is no name for one.\n"
            "Use lower-case letters, digits and hyphens, with a letter or digit first."
        )
    return (_HEAD + PRESETS[harness]).replace("@NAME@", agent)


def _with_entry(path: Path, entry: str) -> bytes:
    old = read_bounded(path, TOML_LIMIT_BYTES) if path.exists() else b""
    tools = parse_toml(path, old).data.get("tool")
    if isinstance(tools, dict) and "regcase" in tools:
        raise UsageRefused(
            f"Couldn't set the project up: {shown(path)} has a [tool.regcase] already, and it is not changed.\n"
            "Add what is missing by hand; `regcase schema config` lists every key."
        )
    new = _added(old, ("\n" if old.strip() else "") + entry)
    try:
        toml = parse_toml(path, new)
    except FileError:
        # What is there was read just now, so an error's line would be one that the file does not have.
        raise UsageRefused(
            f"Couldn't set the project up: {shown(path)} cannot take it, since tool is written there in a form"
            " that no [tool.regcase] can be added to.\nWrite what stands under tool as [tool.NAME] tables."
        ) from None
    read_config(toml)
    return new


def _added(old: bytes, text: str) -> bytes:
    newline = b"\r\n" if b"\r\n" in old else b"\n"
    end = b"" if not old or old.endswith(b"\n") else newline
    return old + end + text.encode().replace(b"\n", newline)
