"""A gate over a ledger of a million attempts: about half a second of CPU, well below the aim of one.

100 cases with a control and three simulations, 2,500 sessions (two a day), 1 % noise; the agent's revision changes
every 20 sessions. One run with the history not folded yet (once in the life of a ledger), then as it is nightly.
"""

import json
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.ledger.columns import attempt_columns
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, Said
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow, SessionSnapshot
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.gate import decide_session
from tests.rules.attempt_samples import a_case, a_fix, an_attempt

CASES = 100
SIMULATIONS = ("one-v1", "two-v1", "three-v1")
SESSIONS = 2500
SESSIONS_A_REVISION = 20
NOISE = 0.01
NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
Tell = Callable[[str], None]


class Suite:
    """The project, and the rows of its sessions."""

    def __init__(self, root: Path, ledger_id: str) -> None:
        config: dict[str, Any] = {"agents": {"default": {"command": ["agent"]}}}
        self.project = Project(root, RegcaseConfig.model_validate(config))
        self.snapshot = SessionSnapshot(
            session_id=self.session(SESSIONS - 1),
            folder=str(root),
            ledger_id=ledger_id,
            agent_digests={"default": self.revision(SESSIONS - 1)},
        )
        self.simulations = {name: self.simulation(root, name) for name in SIMULATIONS}
        fix = a_fix(ledger_id=ledger_id, rows=CASES * 4 * SESSIONS // 2)
        hypotheses = [{"id": f"h-{name}", "simulations": [name]} for name in SIMULATIONS]
        self.cases = [
            LoadedCase(root / name / "case.toml", root / name, a_case(id=name, fix=(fix,), hypotheses=hypotheses))
            for name in (f"case-{number:03d}" for number in range(CASES))
        ]

    def simulation(self, root: Path, name: str) -> LoadedSimulation:
        made = {"id": name, "hypothesis": "deadline", "title": "t", "fault": {"kind": "no_answer"}}
        return LoadedSimulation(root / f"{name}.toml", Simulation.model_validate(made), f"sha256:{name * 10}")

    def session(self, number: int) -> str:
        return f"{NOW - timedelta(hours=12 * (SESSIONS - number)):%Y%m%dt%H%M%S}-{number:08x}"

    def revision(self, number: int) -> str:
        return f"sha256:{number // SESSIONS_A_REVISION:064x}"

    def keys(self) -> tuple[AttemptKey, ...]:
        return tuple(
            AttemptKey(case_id=case.id, agent="default", scenario=scenario)
            for case in self.cases
            for scenario in ("control", *SIMULATIONS)
        )

    def templates(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], bool]]:
        """For each check its row when it passes and when it fails."""
        for case in self.cases:
            for scenario in ("control", *SIMULATIONS):
                kind = "control" if scenario == "control" else "simulation"
                simulation = self.simulations.get(scenario)
                hypothesis = None if simulation is None else simulation.simulation.hypothesis
                key = AttemptKey(case_id=case.id, agent="default", scenario=scenario)
                plan = AttemptPlan(key=key, kind=kind, hypothesis=hypothesis)  # type: ignore[arg-type]
                digests = attempt_digests(self.project, case, simulation, plan, self.snapshot)
                said = Said(message="m", whole="w", artefact="a")
                same = {"case_id": case.id, "digests": digests, "said": said}
                good = an_attempt("finished" if kind == "control" else "recovered", scenario, **same)
                bad = good if kind == "control" else an_attempt("not-recovered", scenario, **same)
                yield attempt_columns(good), attempt_columns(bad), kind == "control"

    def rows(self, sessions: range) -> Iterator[dict[str, Any]]:
        luck = random.Random(sessions.start)
        templates = list(self.templates())
        for number in sessions:
            session, revision = self.session(number), self.revision(number)
            at = (NOW - timedelta(hours=12 * (SESSIONS - number))).isoformat()
            for place, (good, bad, _) in enumerate(templates):
                values = bad if luck.random() < NOISE else good
                record = values["record"].replace('"session_id":"s1"', f'"session_id":"{session}"', 1)
                record = record.replace(self.snapshot.agent_digests["default"], revision)
                yield values | {
                    "session_id": session,
                    "attempt_id": f"{session}.{place}",
                    "started_at": at,
                    "agent_digest": revision,
                    "record": record,
                }

    def decide(self, ledger: Ledger) -> GateDecision:
        row = SessionRow(
            session_id=self.snapshot.session_id, started_at=NOW, profile="nightly", planned=self.keys()
        )
        return decide_session(
            self.project,
            self.cases,
            ledger,
            row,
            snapshot=self.snapshot,
            simulations=self.simulations,
            today=NOW.date(),
        )


@pytest.mark.slow
def test_a_gate_over_a_million_attempts(tmp_path: Path, tell: Tell) -> None:
    path = tmp_path / "ledger.sqlite3"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        suite = Suite(tmp_path, ledger.ledger_id)
        started = time.monotonic()
        _fill(path, suite.rows(range(SESSIONS)))
        made = time.monotonic() - started
        count = ledger.row_count()
        assert count == CASES * 4 * SESSIONS
        first_seconds, first_decision = _timed(lambda: suite.decide(ledger))
        times = [_timed(lambda: suite.decide(ledger))[0] for _ in range(5)]
        seconds, decision = min(times), suite.decide(ledger)
        assert decision == first_decision
        assert json.dumps(decision.to_plain())
        size = path.stat().st_size / 1_000_000
        tell(f"a gate over {count:,} attempts ({size:,.0f} MB, made in {made:.0f} s) answers in {seconds:.2f} s")
        tell(f"  the first gate ever, which folds the whole history: {first_seconds:.1f} s")


def _fill(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """Store the rows fast: without the indexes, which are made afterwards, and without waiting for the disk."""
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA synchronous = OFF")
    indexes = file.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall()
    file.execute("BEGIN")
    for name, _ in indexes:
        file.execute(f"DROP INDEX {name}")
    first = next(rows)
    names = ", ".join(first)
    insert = f"INSERT INTO attempts ({names}) VALUES ({', '.join(':' + name for name in first)})"
    file.executemany(insert, chain([first], rows))
    for _, statement in indexes:
        file.execute(statement)
    file.execute("COMMIT")
    file.close()


def _timed(work: Callable[[], GateDecision]) -> tuple[float, GateDecision]:
    started = time.process_time()
    found = work()
    return time.process_time() - started, found
