"""Connects of a Python agent to its supplier, noted in the agent's own process; `connect_hook` does the noting.

Lays the hook into an attempt's folder and reads what it noted. What the numbers mean is `recovery.connects`.
"""

import json
from collections.abc import Iterable, Mapping
from os import pathsep
from pathlib import Path
from urllib.parse import urlsplit

SOURCE = Path(__file__).with_name("connect_hook.py")
HOOK_NAME = "sitecustomize.py"
"""What every Python imports at its start from the first folder of its path that has one."""
LOG_NAME = "connects.jsonl"


def lay(folder: Path, base_url: str, t0: float) -> None:
    """Write the hook for the supplier at `base_url` into `folder`; the wire log's `t` counts from `t0`."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    url = urlsplit(base_url)
    told = (str(folder), str(folder / LOG_NAME), (url.hostname, "localhost"), url.port, t0)
    call = f"\n\ninstall({', '.join(map(repr, told))})\n"
    (folder / HOOK_NAME).write_text(SOURCE.read_text("utf-8") + call, "utf-8")


def variables(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return what to set beside `env` so that an agent in Python, and what it starts, runs the hook.

    A Python that ignores its environment (``-I``, ``-E``, ``-S``) does not, and notes nothing.
    """
    return {"PYTHONPATH": pathsep.join(filter(None, (str(folder.absolute()), env.get("PYTHONPATH"))))}


def connects(folder: Path) -> tuple[float, ...] | None:
    """Return the `t` of every connect, on the agent's clock and in order; None where none was noted."""
    try:
        lines = (folder / LOG_NAME).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    return tuple(sorted(_moments(lines))) or None


def _moments(lines: Iterable[str]) -> Iterable[float]:
    for line in lines:
        # The agent can write there too; and a kill may leave half a line.
        try:
            yield float(json.loads(line)["t"])
        except (ValueError, TypeError, LookupError):
            continue
