"""A project whose sessions are stored by hand, as pytest would store them: planned, attempted, ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_regcase.case_files import load_simulations
from pytest_regcase.config import Project, load_project
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptPlan
from pytest_regcase.records.words import AttemptVerdict, Profile
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.gate import ledger_for
from pytest_regcase.session.planning.opening import agent_digests, chosen_files, open_session, session_row
from tests.plugin.gate_project import PYPROJECT, write_case, write_simulation
from tests.rules.attempt_samples import an_attempt, findings

CASE = "trial-37"
SIMULATION = "stall-v1"
_GOOD: dict[str, AttemptVerdict] = {"control": "finished", "simulation": "recovered"}


class CandidateProject:
    """One case with one simulation, and an agent whose revision is a file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        head, default, rest = PYPROJECT.partition("[tool.regcase.agents.default]\n")
        (root / "pyproject.toml").write_text(f'{head}{default}revision_paths = ["agent.py"]\n{rest}')
        self.change_agent("first")
        write_simulation(root, SIMULATION)
        self.change_case(6)

    @property
    def project(self) -> Project:
        """The project as its files are now."""
        return load_project(self.root)

    @property
    def revision(self) -> str:
        """The revision of the agent as it is now."""
        return agent_digests(self.project, {"default"})[0]["default"]

    def change_agent(self, text: str) -> None:
        """Make another revision of the agent."""
        (self.root / "agent.py").write_text(f"# {text}\n")

    def change_case(self, failing_step: int) -> None:
        """Give the case another digest."""
        write_case(self.root, CASE, [SIMULATION], failing_step=failing_step)

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Open its ledger."""
        with ledger_for(self.project) as ledger:
            yield ledger

    def session(
        self,
        *,
        broken: bool = False,
        shard: str | None = None,
        profile: Profile = "pull-request",
        ends: bool = True,
        **changes: Any,
    ) -> str:
        """Store a session of the agent as it is now; with `broken` the simulation is never recovered from."""
        project = self.project
        simulations = load_simulations(project)
        with self.ledger() as ledger:
            opened = open_session(
                project,
                chosen_files(project, None),
                simulations,
                ledger,
                profile=profile,
                live_new=0,
                agent=None,
                shard=shard,
            )
            row = session_row(project, opened).model_copy(update=changes)
            ledger.start_session(row)
            for entry in opened.entries:
                for plan in entry.plans:
                    fails = broken and plan.kind == "simulation"
                    for number in range(3 if fails else 1):
                        assert entry.loaded is not None
                        digests = attempt_digests(
                            project, entry.loaded, simulations.get(plan.key.scenario), plan, opened.snapshot
                        )
                        ledger.append(_attempt(plan, row.session_id, number, fails=fails, digests=digests))
            if ends:
                ledger.finish_session(row.session_id, datetime.now(UTC))
        return row.session_id


def _attempt(plan: AttemptPlan, session_id: str, number: int, *, fails: bool, digests: Any) -> Any:
    return an_attempt(
        "not-recovered" if fails else _GOOD[plan.kind],
        plan.key.scenario,
        case_id=plan.key.case_id,
        session_id=session_id,
        try_number=number,
        started_at=datetime.now(UTC),
        digests=digests,
        findings=findings(["max_retries"] if fails else []) if plan.kind == "simulation" else (),
    )
