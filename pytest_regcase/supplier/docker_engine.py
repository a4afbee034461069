"""What the Docker engine says, through its own command. Starts and changes nothing there.

Knows the command line of Docker only. Parent side: the supplier's process never asks it.
"""

import subprocess
from collections.abc import Sequence

LIMIT_SECONDS = 20.0
"""An engine that takes longer is taken for one that does not answer."""


class EngineSilent(Exception):
    """The engine does not answer; the text says why, in Docker's own words where there are any."""


def ask_docker(*words: str) -> str:
    """Return what `docker WORDS` prints.

    Raises:
        EngineSilent: there is no such program, it failed, or it took too long.
    """
    try:
        done = subprocess.run(
            ("docker", *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise EngineSilent(f"the program docker cannot be started ({error.strerror})") from error
    except subprocess.TimeoutExpired as error:
        raise EngineSilent(f"docker {words[0]} did not answer within {LIMIT_SECONDS:g} s") from error
    if done.returncode != 0:
        said = next((line.strip() for line in done.stderr.splitlines() if line.strip()), "nothing")
        raise EngineSilent(f"docker {words[0]} says: {said}")
    return done.stdout


def what_to_do(silence: EngineSilent) -> str:
    """Return the one step that usually makes an engine answer."""
    said = str(silence)
    if "permission denied" in said.lower():
        return 'Allow yourself to ask it: sudo usermod -aG docker "$USER", then log in again'
    if "cannot be started" in said:
        return "Install Docker"
    return "Start it: sudo systemctl start docker (or start Docker Desktop)"


def containers_named(marks: Sequence[str]) -> tuple[str, ...]:
    """Return one line for each container, running or not, with one of `marks` in its name or its labels.

    Raises:
        EngineSilent: as `ask_docker`.
    """
    rows = ask_docker("ps", "--all", "--format", "{{.Names}}\t{{.Image}}\t{{.Status}}\t{{.Labels}}").splitlines()
    return tuple(
        f"{name} ({image}, {status})"
        for name, image, status, labels in (row.split("\t", 3) for row in rows)
        if any(mark in name or mark in labels for mark in marks)
    )
