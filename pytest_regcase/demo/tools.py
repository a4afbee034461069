"""The demo agent's hands: one shell command, and the diff of what was changed."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

OUTPUT_LIMIT_CHARACTERS = 10_000


def run_command(command: str, work_dir: Path, seconds: float) -> str:
    """Run one shell command and return what it printed, with a last line for a failure or a time-out."""
    shell = shutil.which("bash") or "/bin/sh"
    process = subprocess.Popen(
        [shell, "-c", command],
        cwd=work_dir,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
        last_line = f"[exit code {process.returncode}]\n" if process.returncode else ""
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        last_line = f"[ended after {seconds:g} s]\n"
    text = printed.decode("utf-8", errors="replace")
    if len(text) > OUTPUT_LIMIT_CHARACTERS:
        half = OUTPUT_LIMIT_CHARACTERS // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    return text + last_line


def changes(work_dir: Path) -> str | None:
    """Return the diff of the work tree against its last commit, new files too; None where there is no git tree."""
    with tempfile.TemporaryDirectory() as folder:
        # An index of its own: looking at the work must not stage it.
        env = {**os.environ, "GIT_INDEX_FILE": os.path.join(folder, "index")}
        for words in (["read-tree", "HEAD"], ["add", "--all", "."], ["diff", "--cached", "HEAD"]):
            try:
                done = subprocess.run(
                    ["git", *words],
                    cwd=work_dir,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                )
            except FileNotFoundError:
                return None
            if done.returncode != 0:
                return None
    return done.stdout.decode("utf-8", errors="replace")
