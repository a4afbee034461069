"""A small project under git for `regcase check`: one case, two simulations, a few rules; edits of its files."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from pytest_regcase.case_files import simulations
from pytest_regcase.config import load_project
from pytest_regcase.lint.codes import LintRow
from pytest_regcase.session.reviews.check import check_project

CASE_ID: Final = "trial-7"
CASE: Final = """\
schema = 1
id = "trial-7"
title = "no answer from step 2 on"
unresolved_questions = ["server deadline, or a rejected request?"]

[observation]
symptom = "model answered step 1, then stopped responding at step 2"
source_event = "sweep-9/trial-7"
cause_status = "unknown"

[baseline]
failures = 4
trials = 40
kind = "all-attempts"

[replies]
source = "script"
file = "recorded/script.jsonl"

[symptom_match]
termination = ["error", "cut-off"]
error_type = "APITimeoutError|ReadTimeout"

[[hypotheses]]
id = "slow"
simulations = ["one-v1", "two-v1"]

[[hypotheses]]
id = "other"
simulations = []

[expected_recovery]
max_retries = 3
required = ["log_failure"]

[handover]
owner = "eval-oncall"
next_decision = "compare the server's own logs with both simulations before assigning a cause"
"""
SIMULATION: Final = """\
schema = 1
id = "{name}"
hypothesis = "deadline"
title = "the supplier takes the request and never answers"

[fault]
kind = "no_answer"
"""
PYPROJECT: Final = """\
[tool.regcase]
max_failure_rate = "0.10"
risk = "0.05"
confirm = 2
min_sessions = 2
rule = "fixed"
claim_days = 14

[tool.regcase.limits]
max_retries = 5
risk = "0.05"
"""
REPLY: Final = (
    '{{"role": "assistant", "tool_calls": [{{"name": "bash", "arguments": "{{\\"command\\": \\"{}\\"}}"}}]}}\n'
)
EVIDENCE: Final = """
[[evidence]]
id = "e1"
hypothesis = "slow"
stance = "supports"
file = "server.log"
lines = "3-4"
digest = "sha256:ZEROS"
quote = "request 7 was held for 600 s"
why = "it is the same request"
who = "ada"
at = 2026-05-02T09:00:00Z
""".replace("ZEROS", "0" * 64)


def write_project(root: Path) -> None:
    """Write the project into `root`, commit it on the branch ``main``, and leave the work tree at it."""
    from pytest_regcase.case_files import seal_case

    recorded = case_path(root).parent / "recorded"
    recorded.mkdir(parents=True)
    (recorded / "script.jsonl").write_text(REPLY.format("cat sums.py"))
    case_path(root).write_text(CASE)
    seal_case(case_path(root))
    (root / "fixtures").mkdir()
    for name in ("one-v1", "two-v1"):
        (root / "fixtures" / f"{name}.toml").write_text(SIMULATION.format(name=name))
    (root / "pyproject.toml").write_text(PYPROJECT)
    git(root, "init", "-q", "--template=", "-b", "main")
    commit(root)


def case_path(root: Path) -> Path:
    """The case file of the project."""
    return root / "cases" / CASE_ID / "case.toml"


def git(root: Path, *words: str) -> str:
    """Run git in `root` without settings of the user's."""
    settings = ("-c", "user.name=ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *settings, *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def commit(root: Path) -> None:
    """Commit everything."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "as it is")


def edit(path: Path, old: str, new: str) -> None:
    """Replace `old`, which is there once, by `new`."""
    text = path.read_text()
    assert text.count(old) == 1, (old, text)
    path.write_text(text.replace(old, new))


def amendment(what: str, more: str = "", table: str = "amendments") -> str:
    """An amendment as `regcase amend` appends it."""
    return f'\n[[{table}]]\nwhat = \'{what}\'\nwhy = "agreed"\nwho = "ada"\nat = 2026-05-02T09:00:00Z\n{more}'


def append(path: Path, text: str) -> None:
    """Add `text` at the end."""
    path.write_text(path.read_text() + text)


def rows(root: Path, against: str | None = "main") -> tuple[LintRow, ...]:
    """What is found in the project."""
    return check_project(load_project(root), against=against).rows


def red(root: Path, against: str | None = "main") -> list[str]:
    """The codes of what is wrong in the project."""
    return [each.code for each in rows(root, against) if each.red]


def few_simulations(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Take the catalogue away: reading it costs more than all the rest of a check."""
    from pytest_regcase.session.reviews import check

    empty = root / "no-built-in"
    for module in (simulations, check):
        patch.setattr(module, "built_in_folder", lambda: empty)
