"""How long attempts will take: as long as the newest ones in the ledger did, else as long as they may."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_regcase.case_files import LoadedSimulation
from pytest_regcase.config import AgentConfig, Project
from pytest_regcase.records.attempt import AttemptPlan
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.session.planning.last_attempts import last_attempts
from pytest_regcase.session.planning.minutes import CaseTime, left_out

if TYPE_CHECKING:  # a process that only plans must not load SQLAlchemy
    from pytest_regcase.ledger.store import Ledger
    from pytest_regcase.session.planning.opening import CaseEntry


class Expected(NamedTuple):
    """What planned attempts take one after another, without confirm runs."""

    seconds: float
    by_cap: int
    """So many of the attempts are of no known time, and counted with the agent's cap."""


def expected_time(project: Project, plans: Iterable[AttemptPlan], ledger: "Ledger") -> Expected:
    """Return how long `plans` will take.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    from pytest_regcase.ledger.timing import mean_seconds

    known: dict[tuple[str, str], Mapping[str, float]] = {}
    seconds, by_cap = 0.0, 0
    for plan in plans:
        of = plan.key.case_id, plan.key.agent
        if of not in known:
            known[of] = mean_seconds(ledger, *of)
        mean = known[of].get(plan.key.scenario)
        if mean is None:
            agent = project.config.agents.get(plan.key.agent) or AgentConfig()
            live = agent.live_cap_seconds if plan.kind == "live" else None
            mean, by_cap = live or agent.cap_seconds, by_cap + 1
        seconds += mean
    return Expected(seconds, by_cap)


def cases_without_room(
    project: Project,
    entries: "Sequence[CaseEntry]",
    simulations: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
    ledger: "Ledger",
    minutes: float,
) -> tuple[str, ...]:
    """Return the ids of the planned cases that do not fit into `minutes`; see `minutes` for which those are.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    times: list[CaseTime] = []
    for entry in entries:
        if entry.loaded is None or not entry.plans:
            continue
        last = last_attempts(project, entry.loaded, simulations, snapshot, ledger).values()
        # What did not come out well is as urgent as what never ran.
        every = [each.at for each in last if each is not None and each.came_out_well]
        whole = min(every) if every and len(every) == len(last) else None
        times.append(CaseTime(entry.loaded.id, expected_time(project, entry.plans, ledger).seconds, whole))
    return left_out(times, minutes)
