"""A project on disk with one sealed case, and live attempts that are written into its ledger by hand."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_regcase.case_files import LoadedCase, load_case, seal_case
from pytest_regcase.config import Project, load_project
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, Draw
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.gate import ledger_for
from pytest_regcase.session.gating.standing import snapshot_of_now
from tests.rules.attempt_samples import an_attempt

ID = "sweep-0412-trial-37"
PYPROJECT = """\
[tool.regcase.agents.default]
command = ["my-agent"]
revision_paths = ["agent.py"]
"""
CASE = f"""\
schema = 1
id = "{ID}"
title = "no answer from step 6 on"
unresolved_questions = ["a deadline, or a rejected key?"]

[observation]  # sealed
symptom = "model answered step 5, then stopped responding at step 6"
source_event = "eval-sweep-0412/trial-37"
cause_status = "unknown"
observed_at = 2026-04-12T09:31:07Z
failing_step = 6

[[hypotheses]]
id = "deadline"
simulations = ["deadline-no-answer-v1"]

[[hypotheses]]
id = "key"
simulations = ["auth-rejected-v1"]

[expected_recovery]
max_retries = 3

[handover]
owner = "eval-harness-oncall"
next_decision = "compare the server's own logs for trial 37"

[handover.rerun_rule]
max_failure_rate = "0.50"
risk = "0.30"
"""
"""Two clean runs close it: 0.5 ** 2 <= 0.3."""


@dataclass(frozen=True)
class LifeProject:
    """The project, and its one case."""

    root: Path
    path: Path
    project: Project

    @property
    def case(self) -> LoadedCase:
        """The case as its file has it now."""
        return load_case(self.path)

    def new_revision(self) -> None:
        """Change the agent."""
        path = self.root / "agent.py"
        path.write_text(path.read_text() + "# changed\n")

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Open its ledger."""
        with ledger_for(self.project) as ledger:
            yield ledger

    def live(self, *verdicts: AttemptVerdict, first: int = 1, session_id: str = "s1", **changes: Any) -> None:
        """Store live attempts of the present digests, one a verdict."""
        with self.ledger() as ledger:
            for run, verdict in enumerate(verdicts, first):
                draw = Draw(fresh=True, response_digest=f"sha256:{run}", upstream_ids=(f"{session_id}-{run}",))
                self._store(ledger, "live", verdict, session_id=session_id, run=run, draw=draw, **changes)

    def attempt(self, scenario: str, verdict: AttemptVerdict, **changes: Any) -> None:
        """Store one attempt; of a simulation, its own digests do not matter here."""
        with self.ledger() as ledger:
            self._store(ledger, scenario, verdict, **changes)

    def _store(self, ledger: Ledger, scenario: str, verdict: AttemptVerdict, **changes: Any) -> None:
        key = AttemptKey(case_id=ID, agent="default", scenario=scenario, run=changes.get("run", 1))
        snapshot = snapshot_of_now(self.project, [self.case], ledger)
        plan = AttemptPlan(key=key, kind="live")
        digests = attempt_digests(self.project, self.case, None, plan, snapshot)
        given = {"digests": digests, "started_at": datetime(2026, 5, 20, 9, tzinfo=UTC), **changes}
        assert ledger.append(an_attempt(verdict, scenario, case_id=ID, **given))

    def session(self, session_id: str) -> None:
        """Store the row of a nightly session."""
        with self.ledger() as ledger:
            ledger.start_session(
                SessionRow(
                    session_id=session_id, started_at=datetime(2026, 5, 20, 9, tzinfo=UTC), profile="nightly"
                )
            )


def make_life_project(root: Path, text: str = CASE, more: Sequence[str] = ()) -> LifeProject:
    """Write the project and seal its case; `more` are lines for its configuration."""
    path = root / "cases" / "trial-37" / "case.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    seal_case(path)
    (root / "pyproject.toml").write_text("\n".join(["[tool.regcase]", *more, PYPROJECT]))
    (root / "agent.py").write_text("x = 1\n")
    return LifeProject(root, path, load_project(root))
