"""A git repository with an agent, one sealed case and sweeps of trials that are written by hand."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pytest_regcase.case_files import LoadedCase, append_record, load_case, seal_case
from pytest_regcase.config import Project, load_project
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.case import Fix
from pytest_regcase.session.gate import ledger_for
from pytest_regcase.session.revisions.revision import revision_of
from pytest_regcase.session.sweeps.count import Count, count

ID = "no-answer"
TASK = "calc-1"
FIXED_AT = datetime(2026, 5, 18, 12, tzinfo=UTC)
SWEPT_AT = FIXED_AT + timedelta(days=1)
PYPROJECT = """\
[tool.regcase]

[tool.regcase.agents.default]
command = ["my-agent"]
revision_paths = ["agent.py"]
"""
CASE = f"""\
schema = 1
id = "{ID}"
title = "no usable reply at step 3"

[observation]
symptom = "model answered step 2, then gave no usable reply at step 3: APITimeoutError was raised"
source_event = "h/run-0/{TASK}/attempt-1#trial-37-of-the-first-sweep"
source_revision = "SOURCE"
cause_status = "unknown"
task_id = "{TASK}"
failing_step = 3
termination = "error"

[symptom_match]
termination = ["error"]
error_type = "APITimeoutError"
no_reply = true

[handover]
owner = "eval-harness-oncall"
next_decision = "compare the server's own logs"

[handover.rerun_rule]
max_failure_rate = "0.50"
risk = "0.05"
"""
"""Five clean runs close it: 0.5 ** 5 <= 0.05."""


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=root, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


@dataclass(frozen=True)
class CountProject:
    """The project, and the commits before and after the fix."""

    root: Path
    broken: str
    fixed: str

    @property
    def project(self) -> Project:
        return load_project(self.root)

    @property
    def path(self) -> Path:
        return self.root / "cases" / ID / "case.toml"

    @property
    def case(self) -> LoadedCase:
        return load_case(self.path)

    def claim(self, *, at: datetime = FIXED_AT) -> None:
        """Claim the next fix at the present revision."""
        with ledger_for(self.project) as found:
            fix = Fix(
                number=len(self.case.case.fix) + 1,
                revision=revision_of(self.project, "default").digest,
                ledger_id=found.ledger_id,
                rows=found.row_count(),
                at=at,
                by="mina",
            )
        append_record(self.path, "fix", fix, seen=self.case.case)

    def count(self, *logs: Path, **given: Any) -> Count:
        return count(self.project, self.path, logs, **given)

    def rows(self) -> list[AttemptRecord]:
        with ledger_for(self.project) as ledger:
            return [each.record for each in ledger.rows()]


def make_count_project(root: Path, case: str = CASE, pyproject: str = PYPROJECT) -> CountProject:
    """Write the project: one commit with the fault, one with the fix."""
    path = root / "cases" / ID / "case.toml"
    path.parent.mkdir(parents=True)
    (root / "pyproject.toml").write_text(pyproject)
    (root / "agent.py").write_text("timeout = 600\n")
    (root / ".gitignore").write_text(".regcase/\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "broken")
    broken = git(root, "rev-parse", "HEAD")
    (root / "agent.py").write_text("timeout = 30\n")
    git(root, "commit", "-qam", "fixed")
    path.write_text(case.replace("SOURCE", broken))
    seal_case(path)
    return CountProject(root, broken, git(root, "rev-parse", "HEAD"))


@dataclass(frozen=True)
class Made:
    """One trial as our recorder writes it; it is clean unless something says otherwise."""

    number: int
    revision: str | None
    error: str | None = None
    raised_by: str = "supplier"
    termination: str | None = "finished"
    outcome: str = "undetermined"
    task: str = TASK
    replies: int = 4
    run_id: str | None = "run-1"
    model: str | None = None
    with_ids: bool = True
    at: datetime | None = None
    conditions: dict[str, Any] = field(default_factory=dict)
    ended: bool = True

    def lines(self) -> list[dict[str, Any]]:
        began = self.at or SWEPT_AT + timedelta(minutes=self.number)
        found: list[dict[str, Any]] = [
            {
                "kind": "trial",
                "schema": 1,
                "harness": "h 1.0",
                "run_id": self.run_id,
                "task_id": self.task,
                "attempt": self.number,
                "event_id": f"trial-number-{self.number:04}-{self.run_id}",
                "revision": self.revision,
                "model": self.model,
                "started_at": began.isoformat(),
                "conditions": self.conditions,
            },
            {"kind": "step", "step": 0, "role": "user", "text": "do it"},
        ]
        for step in range(1, self.replies + 1):
            call = {"id": f"c{self.number}-{step}", "name": "bash", "arguments": json.dumps({"n": self.number})}
            line = {"kind": "step", "step": step, "role": "assistant", "tool_calls": [call]}
            if self.with_ids:
                line["response_id"] = f"chatcmpl-{self.run_id}-{self.number}-{step}"
            found += [
                line,
                {"kind": "step", "step": step, "role": "tool", "tool_call_id": call["id"], "text": "ok"},
            ]
        if self.error is not None:
            found.append({"kind": "error", "type": self.error, "message": "it broke", "raised_by": self.raised_by})
        if self.ended:
            ended = (began + timedelta(seconds=30)).isoformat()
            termination = "error" if self.error is not None else self.termination
            found.append({"kind": "end", "termination": termination, "outcome": self.outcome, "ended_at": ended})
        return [{key: value for key, value in line.items() if value is not None} for line in found]

    def write(self, folder: Path) -> Path:
        path = folder / f"trial-{self.run_id}-{self.number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines()))
        return path


def recurred(number: int, revision: str | None, **given: Any) -> Made:
    """A trial in which the symptom came back."""
    return Made(number, revision, error="APITimeoutError", replies=2, **given)


def sweep(folder: Path, trials: Sequence[Made]) -> Path:
    """Write the trials into a folder, one log each."""
    for each in trials:
        each.write(folder)
    return folder
