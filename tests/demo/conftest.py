"""One run of a demo agent as a process of its own, in a git work tree with half the work still to do."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.agents.work_tree import lay
from pytest_regcase.importers.source import read_output
from pytest_regcase.records.trial import Trial
from tests.agents.waiting import until

TASK = "Both functions of calc.py are wrong. Correct them."


def patience(fault: str) -> float:
    """How long an agent waits for an answer: a short time-out is for silence alone, or it meets a late answer."""
    return 0.5 if fault in ("no answer", "trickle") else 20.0


@dataclass(frozen=True)
class Ran:
    """What a run left."""

    code: int | None
    """None: the test killed it."""
    stderr: str
    out_dir: Path
    work_dir: Path

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of ``trial.jsonl``."""
        text = (self.out_dir / "trial.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The lines of one kind."""
        return [line for line in self.lines if line["kind"] == kind]

    @property
    def trial(self) -> Trial:
        """The same, read by the importer."""
        return read_output(self.out_dir)


@dataclass(frozen=True)
class Runner:
    """Runs demo agents."""

    folder: Path
    work_dir: Path

    def __call__(
        self,
        base_url: str,
        *words: str,
        behaviour: str | None = None,
        timeout: float = 20.0,
        kill_when: Callable[[], bool] | None = None,
    ) -> Ran:
        module = "pytest_regcase.demo.agent" if behaviour is None else "pytest_regcase.demo.behaviours"
        task = self.folder / "task.txt"
        task.write_text(TASK)
        command: Sequence[str] = [
            *(sys.executable, "-m", module),
            *([] if behaviour is None else [behaviour]),
            *("--task", str(task), "--out", str(self.folder / "out"), "--timeout", str(timeout)),
            *words,
        ]
        env = {
            "PATH": os.environ["PATH"],
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": "sk-regcase-test",
        }
        with subprocess.Popen(command, cwd=self.work_dir, env=env, stderr=subprocess.PIPE, text=True) as process:
            if kill_when is not None:
                reached = until(lambda: kill_when() or process.poll() is not None)
                ended_before = process.poll()
                process.kill()
                _, stderr = process.communicate()
                assert reached, "it neither ended nor came to where it was to be killed"
                return Ran(ended_before, stderr, self.folder / "out", self.work_dir)
            _, stderr = process.communicate(timeout=60)
        return Ran(process.returncode, stderr, self.folder / "out", self.work_dir)


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    source = tmp_path / "source"
    source.mkdir()
    (source / "calc.py").write_text("def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a\n")
    lay(source, tmp_path / "work")
    return Runner(tmp_path, tmp_path / "work")
