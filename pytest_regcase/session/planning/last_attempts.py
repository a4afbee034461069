"""When each check of a case was last attempted as it is, by whichever revision, and whether it came out well."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.decision import Reason
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.rules.policies import check_result
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.plan import plan_case
from pytest_regcase.session.project.rules_in_force import gate_policy

if TYPE_CHECKING:  # a process that only plans must not load SQLAlchemy
    from pytest_regcase.ledger.store import Ledger


class LastAttempt(NamedTuple):
    """The last session that attempted a check."""

    at: datetime
    came_out_well: bool
    """What its tries say together was not red."""


def last_attempts(
    project: Project,
    loaded: LoadedCase,
    simulations: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
    ledger: "Ledger",
) -> dict[AttemptKey, LastAttempt | None]:
    """Return by check when it was last attempted on the case and the simulation as they are; None: never.

    Raises:
        RegcaseError: the case cannot be planned.
        LedgerError: the ledger cannot be read.
    """
    from pytest_regcase.ledger.timing import last_attempt

    policy = gate_policy(project)
    found: dict[AttemptKey, LastAttempt | None] = {}
    for plan in plan_case(project, loaded, simulations, snapshot):
        if plan.kind == "live":
            continue
        digests = attempt_digests(project, loaded, simulations.get(plan.key.scenario), plan, snapshot)
        last = last_attempt(
            ledger,
            case_id=loaded.id,
            scenario=plan.key.scenario,
            case_digest=digests.case,
            simulation_digest=digests.simulation,
        )
        found[plan.key] = None
        if last is not None:
            result = check_result(policy, last.verdicts, crashed=last.crashed)
            found[plan.key] = LastAttempt(last.at, result in ("passed", "flaky"))
    return found


def still_red(loaded: LoadedCase, last: Mapping[AttemptKey, LastAttempt | None]) -> Iterator[Reason]:
    """Say of a case without room that it was red when it last ran: it is red until it runs again."""
    red = ", ".join(key.scenario for key, each in last.items() if each is not None and not each.came_out_well)
    if red:
        text = f"not run: it did not fit into the minutes of this session, and {red} was red when it last ran"
        yield Reason(code="not-run", case_id=loaded.id, text=text, red=loaded.case.quarantine is None)
