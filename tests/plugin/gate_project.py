"""A small project whose attempts are scripted, so that the plugin is tested without agents and suppliers."""

import json
import sys
import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_regcase.case_files import seal_case
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.session import attempt
from pytest_regcase.session.attempts.function_attempt import FunctionAttempt
from tests.conftest import loaded_outside_of
from tests.plugin.warm_pytest import warm_pytest

WITHOUT_OTHERS = [
    f"-pno:{name}"
    for name in ("randomly", "hypothesispytest", "benchmark", "pytest_cov", "timeout", "platformdirs")
]
"""Plugins that are installed with the tests' own tools; merely loading them doubles the time of a small run."""

PYPROJECT = """\
[tool.regcase]
[tool.regcase.agents.default]
command = ["python", "-m", "pytest_regcase.demo.agent", "--task", "{task_file}", "--out", "{out_dir}"]
output = "{out_dir}"
[tool.regcase.agents.other]
command = ["python", "-m", "other"]
[tool.regcase.upstream]
base_url = "http://127.0.0.1:9/v1"
"""

SIMULATION = """\
schema = 1
id = "{id}"
hypothesis = "deadline"
title = "the supplier takes the request and never answers"
cause_status = "hypothesized"
source_event = "fixture-run"
[fault]
kind = "no_answer"
"""

CASE = """\
schema = 1
id = "{id}"
title = "no answer from step 6 on"

[observation]
symptom = "model answered step 5, then stopped responding at step 6"
source_event = "eval-sweep-0412/trial-37"
cause_status = "unknown"
failing_step = {failing_step}
{hypotheses}
[handover]
owner = "eval-harness-oncall"
next_decision = "compare the server's own logs for trial 37"
"""

SCRIPTED = Path(__file__).with_name("scripted_attempts.py")
"""Becomes the project's conftest.py: it puts a scripted function in the place of `run_attempt`."""

DEEDS = frozenset({"die", "exit", "interrupt", "terminate-pytest"})
"""Words of a script that do something to the process; every other one is a verdict, or an exception."""


def write_simulation(root: Path, name: str) -> None:
    """Write a simulation into the project's fixture folder."""
    folder = root / "fixtures"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(SIMULATION.format(id=name))


def write_case(
    root: Path, case_id: str, simulations: Iterable[str], more: str = "", failing_step: int = 6
) -> Path:
    """Write a sealed case into the project's case folder; `more` is text that is added to its end."""
    hypotheses = "".join(f'\n[[hypotheses]]\nid = "h-{each}"\nsimulations = ["{each}"]\n' for each in simulations)
    folder = root / "cases" / case_id
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "case.toml"
    path.write_text(CASE.format(id=case_id, hypotheses=hypotheses, failing_step=failing_step) + more)
    seal_case(path)
    return path


class KeepsModules:
    """A plugin that notes what a run inside this process loaded, before pytester makes Python forget it.

    A module that is loaded twice has two classes of every name.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before = set(sys.modules)
        self.loaded: dict[str, ModuleType] = {}

    def pytest_unconfigure(self) -> None:
        self.loaded = {n: m for n, m in loaded_outside_of(self._root).items() if n not in self._before}


class GateProject:
    """Builds the project in pytester's folder, runs pytest in it, and reads what was left."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root = pytester.path
        (self.root / "pyproject.toml").write_text(PYPROJECT)
        (self.root / "conftest.py").write_text(SCRIPTED.read_text())
        for name in ("stall-v1", "killed-v1"):
            self.add_simulation(name)
        self.script({})

    def add_simulation(self, name: str) -> None:
        write_simulation(self.root, name)

    def add_case(
        self,
        case_id: str,
        simulations: Iterable[str] = ("stall-v1", "killed-v1"),
        more: str = "",
        failing_step: int = 6,
    ) -> Path:
        return write_case(self.root, case_id, simulations, more, failing_step)

    def claim_fix(self, case_id: str) -> None:
        """Append a claimed fix that names this project's ledger, as `regcase fix` does."""
        ledger = self.ledger()
        text = (
            "\n[[fix]]\nnumber = 1\nrevision = 'r'\n"
            f"ledger_id = '{ledger.ledger_id}'\nrows = {ledger.row_count()}\n"
            f"at = {datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}\nby = 'someone'\n"
        )
        ledger.close()
        path = self.root / "cases" / case_id / "case.toml"
        path.write_text(path.read_text() + text)

    def script(self, verdicts: dict[str, list[str]]) -> None:
        """Say what attempts of ``case::scenario`` show, call by call (live: by run); else they are good.

        Those of a marked function are named ``function::scenario``; they are scripted where the function returns.
        """
        (self.root / "script.json").write_text(json.dumps(verdicts))
        self._deeds = {word for each in verdicts.values() if isinstance(each, list) for word in each} & DEEDS

    def run(self, *args: str, regcase: bool = True, apart: bool = False) -> pytest.RunResult:
        """Run pytest: in this process, which saves the imports (most of a small run), where nothing forbids it.

        In a process of its own where `apart` asks for it, under xdist, where the script does something to the
        process, and where the project's conftest.py is not the scripted one: it may change what cannot be undone.
        """
        words = [*WITHOUT_OTHERS, *(["--regcase"] if regcase else []), *args]
        parallel = any(each.startswith("-n") for each in args)
        if parallel and "terminate-pytest" in self._deeds:
            # It ends the parent of a worker.
            return self.pytester.runpytest_subprocess(*words)
        if apart or parallel or self._deeds or not self._is_plainly_scripted:
            return self._run_apart(words)
        return self._run_inside(words)

    def _run_apart(self, words: list[str]) -> pytest.RunResult:
        started = time.perf_counter()
        ran = warm_pytest().run(words)
        print(ran.stdout)
        print(ran.stderr, file=sys.stderr)
        code: int | pytest.ExitCode = ran.returncode
        with suppress(ValueError):
            code = pytest.ExitCode(code)
        spent = time.perf_counter() - started
        return pytest.RunResult(code, ran.stdout.splitlines(), ran.stderr.splitlines(), spent)

    def _run_inside(self, words: list[str]) -> pytest.RunResult:
        keeps = KeepsModules(self.root)
        if not any(each.startswith(("--dist", "--tx")) for each in words):
            words = ["-pno:xdist", *words]  # beside it rerunfailures leaves a thread
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.resetwarnings()  # ours makes errors of them
            # The scripted conftest replaces them.
            patch.setattr(attempt, "run_attempt", attempt.run_attempt)
            patch.setattr(FunctionAttempt, "finish", FunctionAttempt.finish)
            result = self.pytester.runpytest_inprocess(*words, plugins=[keeps])
        sys.modules.update(keeps.loaded)
        return result

    @property
    def _is_plainly_scripted(self) -> bool:
        conftest = self.root / "conftest.py"
        return conftest.exists() and conftest.read_text() == SCRIPTED.read_text()

    def calls(self) -> list[dict[str, Any]]:
        """Return the attempts that were started, in order."""
        path = self.root / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def ledger(self) -> Ledger:
        return Ledger.open(f"sqlite:///{self.root / '.regcase' / 'ledger.sqlite3'}")

    def rows(self) -> list[AttemptRecord]:
        """Return the ledger's rows, or none where no ledger was made."""
        if not (self.root / ".regcase" / "ledger.sqlite3").exists():
            return []
        ledger = self.ledger()
        try:
            return [each.record for each in ledger.rows()]
        finally:
            ledger.close()

    def verdicts(self) -> dict[str, list[str]]:
        """Return the ledger's verdicts by ``case::scenario``, in the order of run and try."""
        found: dict[str, list[str]] = {}
        for row in sorted(self.rows(), key=lambda each: (each.run, each.try_number)):
            found.setdefault(f"{row.case_id}::{row.scenario}", []).append(row.verdict)
        return found
