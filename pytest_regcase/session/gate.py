"""From ledger rows and planned keys to the gate's decision; the only place that puts the two together.

Reads the ledger, writes nothing, prints nothing. What counts is decided in rules; here is which rows are handed
in.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from pytest_regcase.case_files import LoadedCase, LoadedSimulation, load_simulations
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import LiveRow, SessionRow, SessionSnapshot
from pytest_regcase.records.words import ScenarioKind
from pytest_regcase.rules import gate
from pytest_regcase.rules.gate_inputs import CaseInputs, GateInputs, PlannedCheck
from pytest_regcase.rules.independence import fresh_draws
from pytest_regcase.rules.lifecycle import in_utc, last_fix
from pytest_regcase.rules.sequential import plan_for
from pytest_regcase.session.plan import agent_name
from pytest_regcase.session.rules_in_force import rerun_rule
from pytest_regcase.session.unfinished import attempt_digests

if TYPE_CHECKING:  # a process that only plans must not load SQLAlchemy
    from pytest_regcase.ledger.store import Ledger, LedgerRow


def ledger_for(project: Project) -> "Ledger":
    """Open the project's ledger; the caller closes it.

    Raises:
        LedgerError: it cannot be opened or written; the text says why and what to do.
    """
    from pytest_regcase.ledger.store import Ledger

    return Ledger.open(project.ledger_url())


def live_rows(
    project: Project, cases: Sequence[LoadedCase], ledger: "Ledger", snapshot: SessionSnapshot
) -> dict[str, tuple[LiveRow, ...]]:
    """Return for each case with a claimed fix its live rows that count, in ledger order; empty where none does.

    A row counts when it has the present digests of case, agent and model and came after the last fix: behind the
    fix's row count in the ledger that the fix names, by date in any other.
    """
    return {name: since.counting for name, since in _live_since_fix(project, cases, ledger, snapshot).items()}


def decide_session(
    project: Project,
    cases: Sequence[LoadedCase],
    ledger: "Ledger",
    row: SessionRow,
    *,
    snapshot: SessionSnapshot,
    invalid: Mapping[str, str] | None = None,
    simulations: Mapping[str, LoadedSimulation] | None = None,
    interrupted: bool = False,
    today: date | None = None,
) -> GateDecision:
    """Decide over the session `row`: its planned keys, its rows in the ledger, and the live rows since each last
    fix.

    `cases` are those the session was asked about, `invalid` the ones that did not load or could not be planned, by
    id or path. `interrupted` says that the session did not come to its own end. Without `today` it is the
    machine's.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    problems = dict(invalid or {})
    known = load_simulations(project) if simulations is None else simulations
    made: dict[AttemptKey, list[AttemptRecord]] = {}
    for _, record in ledger.rows(session_id=row.session_id):
        made.setdefault(record.key, []).append(record)
    live = _live_since_fix(project, cases, ledger, snapshot)
    inputs: list[CaseInputs] = []
    for loaded in cases:
        if loaded.id in problems:
            continue
        rule = rerun_rule(project, loaded.case)
        try:
            plan_for(project.config.plan, rule.max_failure_rate, rule.risk)
        except UsageRefused as error:
            problems[loaded.id] = error.text
            continue
        fix = last_fix(loaded.case)
        inputs.append(
            CaseInputs(
                case_id=loaded.id,
                case=loaded.case,
                rule=rule,
                plan=project.config.plan,
                checks=tuple(
                    _check(project, loaded, key, known, snapshot, made.get(key, []))
                    for key in row.planned
                    if key.case_id == loaded.id
                ),
                live=live[loaded.id].counting if loaded.id in live else (),
                live_set_aside=live[loaded.id].set_aside if loaded.id in live else 0,
                fix_is_of_another_ledger=fix is not None and fix.ledger_id != ledger.ledger_id,
                costs_model_calls=loaded.case.passes_through and snapshot.live_new == 0,
            )
        )
    accounted = {each.case_id for each in inputs} | set(problems)
    return gate.decide(
        GateInputs(
            profile=row.profile,
            today=today or date.today(),
            cases=tuple(inputs),
            invalid=problems,
            lost=tuple(sorted({key.case_id for key in row.planned} - accounted)),
            claim_days=project.config.claim_days,
            max_quarantined=project.config.max_quarantined,
            interrupted=interrupted,
        )
    )


class _SinceFix(NamedTuple):
    """The live rows of a case since its last claimed fix."""

    counting: tuple[LiveRow, ...]
    set_aside: int
    """How many have other digests."""


def _live_since_fix(
    project: Project, cases: Sequence[LoadedCase], ledger: "Ledger", snapshot: SessionSnapshot
) -> dict[str, _SinceFix]:
    claimed = [each for each in cases if each.case.fix]
    by_case: dict[str, list[LedgerRow]] = {each.id: [] for each in claimed}
    for row in ledger.rows(case_ids=list(by_case), scenario="live"):
        by_case[row.record.case_id].append(row)
    return {each.id: _since_fix(project, each, by_case[each.id], ledger, snapshot) for each in claimed}


def _since_fix(
    project: Project,
    loaded: LoadedCase,
    rows: Sequence["LedgerRow"],
    ledger: "Ledger",
    snapshot: SessionSnapshot,
) -> _SinceFix:
    fix = last_fix(loaded.case)
    assert fix is not None
    name = agent_name(loaded, snapshot)
    plan = AttemptPlan(key=AttemptKey(case_id=loaded.id, agent=name, scenario="live"), kind="live")
    present = attempt_digests(project, loaded, None, plan, snapshot)
    same_ledger = fix.ledger_id == ledger.ledger_id
    counting: list[LiveRow] = []
    set_aside = 0
    # Freshness is judged over all live rows of the case: an answer seen before the fix is no new draw after it.
    for (seq, record), fresh in zip(rows, fresh_draws([each.record for each in rows]), strict=True):
        after = seq > fix.rows if same_ledger else in_utc(record.started_at) >= in_utc(fix.at)
        if not after or record.agent != name:
            continue
        if record.digests != present:
            set_aside += 1
            continue
        counting.append(
            LiveRow(
                run=record.run,
                verdict=record.verdict,
                session_id=record.session_id,
                fresh=fresh,
                response_digest=None if record.draw is None else record.draw.response_digest,
            )
        )
    return _SinceFix(tuple(counting), set_aside)


def _check(
    project: Project,
    loaded: LoadedCase,
    key: AttemptKey,
    simulations: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
    made: Sequence[AttemptRecord],
) -> PlannedCheck:
    kind = _kind(key)
    simulation = simulations.get(key.scenario) if kind == "simulation" else None
    hypothesis = None if simulation is None else simulation.simulation.hypothesis
    plan = AttemptPlan(key=key, kind=kind, hypothesis=hypothesis)
    present = attempt_digests(project, loaded, simulation, plan, snapshot)
    # A row of other digests was made before somebody edited the case or the simulation: it shows something else.
    tries = tuple(each for each in made if each.digests == present)
    return PlannedCheck(scenario=key.scenario, kind=kind, run=key.run, tries=tries)


def _kind(key: AttemptKey) -> ScenarioKind:
    if key.scenario == "control":
        return "control"
    return "live" if key.scenario == "live" else "simulation"
