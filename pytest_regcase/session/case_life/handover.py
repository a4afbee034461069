"""What someone who was not there needs to act on a case: gathered from its file, its simulations and the ledger.

Reads only, runs nothing, claims nothing that is not recorded. Never prints.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pytest_regcase.case_files import LoadedCase, LoadedSimulation, load_simulations
from pytest_regcase.config import Project
from pytest_regcase.errors import RegcaseError
from pytest_regcase.records.case import Evidence, RerunRule
from pytest_regcase.records.decision import Claim
from pytest_regcase.records.separation import Separation
from pytest_regcase.records.words import CaseState, CauseStatus, HypothesisClass
from pytest_regcase.rules.lifecycle import last_fix
from pytest_regcase.session.gating.standing import Standing, reading_ledger, standing
from pytest_regcase.session.project.rules_in_force import plan_in_force, rerun_rule
from pytest_regcase.toml_lines import shown

_NOT_TOLD: Final = frozenset({"not-run", "verifying"})
"""Codes of reasons that a handover does not repeat: nothing is planned in a look, and the claim is shown."""


@dataclass(frozen=True)
class TestedSimulation:
    """One simulation of the case, and what a run of it can show."""

    __test__ = False  # no test class, whatever its name begins with

    id: str
    hypothesis: str
    """The case's hypothesis that names it."""
    kind: HypothesisClass | None
    """None where no such simulation is there."""
    tests: str
    does_not_test: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """Something to run, as it can be copied, and what for."""

    text: str
    command: str


@dataclass(frozen=True)
class Handover:
    """A case as it is handed over; the six fields of INTERFACES first."""

    owner: str
    source_event: str
    cause_status: CauseStatus
    simulation_ids: tuple[str, ...]
    rerun_rule: RerunRule
    next_decision: str

    loaded: LoadedCase
    state: CaseState
    clean_reruns: int | None
    """How many clean live runs the rule asks for; None where it is none that can be decided."""
    evidence: tuple[Evidence, ...]
    """All citations, the withdrawn ones too."""
    simulations: tuple[TestedSimulation, ...]
    claim: Claim | None
    reasons: tuple[str, ...]
    """What the gate says of its live runs and of its state."""
    not_read: str | None
    """Why the ledger says nothing, where it does not."""
    separation: Separation | None
    commands: tuple[Command, ...]


def handover_of(project: Project, loaded: LoadedCase) -> Handover:
    """Return what is to be handed over of a case.

    Raises:
        FileError: a simulation file holds something that is not allowed.
    """
    case = loaded.case
    simulations = load_simulations(project)
    ledger, not_read = reading_ledger(project)
    try:
        found = (
            standing(project, [loaded], ledger, simulations) if ledger is not None else Standing(None, not_read)
        )
    finally:
        if ledger is not None:
            ledger.close()
    state, claim, result = found.state(loaded), found.claim(loaded.id), found.result(loaded.id)
    fix = last_fix(case)
    try:
        need = plan_in_force(project, case, 1 if fix is None else fix.number).bounds[0]
    except RegcaseError:
        need = None
    assert case.handover is not None
    return Handover(
        owner=case.handover.owner,
        source_event=case.source_event,
        cause_status=case.computed_cause_status,
        simulation_ids=case.simulation_ids,
        rerun_rule=rerun_rule(project, case),
        next_decision=case.handover.next_decision,
        loaded=loaded,
        state=state,
        clean_reruns=claim.need if claim is not None else need,
        evidence=case.evidence,
        simulations=tuple(_tested(loaded, simulations)),
        claim=claim,
        reasons=tuple(each.text for each in found.reasons(loaded.id) if each.code not in _NOT_TOLD),
        not_read=found.not_read,
        separation=None if result is None else result.separation,
        commands=tuple(_commands(loaded, state, claim, need)),
    )


def _tested(loaded: LoadedCase, simulations: dict[str, LoadedSimulation]) -> Iterator[TestedSimulation]:
    not_the_trial = f"what happened in {loaded.case.source_event}"
    for hypothesis in loaded.case.hypotheses:
        for name in hypothesis.simulations:
            known = simulations.get(name)
            if known is None:
                yield TestedSimulation(name, hypothesis.id, None, "nothing: there is no such simulation here", ())
                continue
            simulation = known.simulation
            yield TestedSimulation(
                name,
                hypothesis.id,
                simulation.hypothesis,
                f"whether the agent recovers as expected when {simulation.title}",
                (not_the_trial, *simulation.unresolved_questions),
            )


def _commands(loaded: LoadedCase, state: CaseState, claim: Claim | None, need: int | None) -> Iterator[Command]:
    name, path = loaded.id, shlex.quote(shown(loaded.path))
    if state == "retired":
        yield Command("bring it back into service", f'regcase reopen {name} --why "..."')
        yield Command("see what happened so far", f"regcase history {name}")
        return
    if loaded.case.passes_through:
        costs = "run its control and simulations; a real supplier answers them, so each costs model calls"
        yield Command(costs, f"pytest --regcase --regcase-profile=nightly --regcase-live=1 {path}")
    else:
        yield Command("run its control and simulations; no model, no money", f"pytest --regcase {path}")
    yield Command("review every tool call that its replies drive, before they run", f"regcase show {name} --calls")
    if loaded.case.hypotheses:
        yield Command("hold lower-level logs against its hypotheses", f"regcase compare {name} --log LOG")
    if state in ("open", "regressed"):
        yield Command("when a fix is there, claim it", f'regcase fix {name} --note "..."')
    if state == "verifying":
        missing = (need or 0) if claim is None else claim.need - claim.clean
        if missing > 0 and (claim is None or claim.refuted_by_run is None):
            live = f"pytest --regcase --regcase-profile=nightly --regcase-live={missing} {path}"
            yield Command(f"make the {missing} missing live runs; each one costs model calls", live)
        yield Command("close it, once the rule is met", f"regcase close {name}")
    if state in ("verifying", "closed"):
        yield Command("when the symptom comes back", f'regcase reopen {name} --why "..."')
    yield Command("see what happened so far", f"regcase history {name}")
