"""Runs code in a process of its own, whose time and memory are bounded."""

import subprocess
import sys

from tests.conftest import REPOSITORY

LIMITS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
"""


def limited(code: str, *arguments: object) -> list[str]:
    """Run code in a process with bounded time and memory; return the words that it says."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITS + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
