"""What the ledger's first attempts say of the checks of one case, for whoever wants to know.

Asks the rules that the gate asks, over the same histories; decides nothing, never prints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.rules.changepoint import present_segment
from pytest_regcase.rules.drift import Alarm, drift_alarm
from pytest_regcase.rules.flake import FirstAttempt, FlakeRate, flake_rate
from pytest_regcase.rules.quarantine import NoProposal, Proposal, propose
from pytest_regcase.session.functions import is_function
from pytest_regcase.session.ledgers.history import check_histories
from pytest_regcase.session.project.rules_in_force import rerun_rule

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger


@dataclass(frozen=True)
class CheckStanding:
    """How one control or simulation came out on its first attempts, over all sessions."""

    scenario: str
    """With the name of the test function, where one runs it beside the case's agent."""
    rate: FlakeRate
    """Of the present segment: since its rate last changed with what was run."""
    found: Proposal | NoProposal
    """Whether it is flaky beyond the budget."""
    alarm: Alarm | None
    """Stands while it fails more often than it did."""

    @property
    def over_budget(self) -> bool:
        """Say whether it is shown to be flaky beyond the budget."""
        return isinstance(self.found, Proposal)

    @property
    def fails_always(self) -> bool:
        """Say whether it only fails: a regression until shown otherwise, never a flake."""
        return isinstance(self.found, NoProposal) and self.found.code == "only-fails"


def check_standings(project: Project, loaded: LoadedCase, ledger: "Ledger") -> tuple[CheckStanding, ...]:
    """Return the standing of the case's present simulations, as far as its agent or a test function ever ran them.

    A control has none: it fails no first attempt, it only proves nothing.

    Raises:
        LedgerError: the ledger cannot be read.
        UsageRefused: a flake budget or risk that is no proportion.
    """
    from pytest_regcase.ledger.functions import check_functions

    rule = {"budget": project.config.flake_budget, "risk": rerun_rule(project, loaded.case).risk}
    found: list[CheckStanding] = []
    for agent in (loaded.case.agent, *check_functions(ledger, loaded.id)):
        histories = check_histories(ledger, loaded.id, agent)
        found += (
            check_standing(check_name(loaded, agent, name), histories[name], **rule)
            for name in loaded.case.simulation_ids
            if name in histories
        )
    return tuple(found)


def check_name(loaded: LoadedCase, agent: str, scenario: str) -> str:
    """Return what one check is called: by its scenario, with the test function that ran it where one did."""
    return scenario if agent == loaded.case.agent else f"{scenario} ({agent})"


def check_standing(scenario: str, history: Sequence[FirstAttempt], *, budget: str, risk: str) -> CheckStanding:
    """Return the standing of one check from its first attempts, oldest first.

    Raises:
        UsageRefused: a flake budget or risk that is no proportion.
    """
    rate = flake_rate(history[present_segment(history) :], risk=risk)
    return CheckStanding(scenario, rate, propose(history, budget=budget, risk=risk), drift_alarm(history))


class CheckRows(NamedTuple):
    """The attempts of one simulation by one agent, and those of that agent's control."""

    name: str
    """As `check_name` gives it."""
    rows: list[AttemptRecord]
    control: list[AttemptRecord]


def check_rows(loaded: LoadedCase, ledger: "Ledger") -> Iterator[CheckRows]:
    """Yield each present simulation of the case that its agent, or a test function, ever ran.

    Whole rows, as a fold knows no times: for the few cases that are, or were, quarantined.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    made: dict[str, dict[str, list[AttemptRecord]]] = {loaded.case.agent: {}}
    for _, each in ledger.rows(case_ids=[loaded.id]):
        made.setdefault(each.agent, {}).setdefault(each.scenario, []).append(each)
    for agent, by_scenario in made.items():
        if agent == loaded.case.agent or is_function(agent):
            control = by_scenario.get("control", [])
            for name in loaded.case.simulation_ids:
                if name in by_scenario:
                    yield CheckRows(check_name(loaded, agent, name), by_scenario[name], control)
