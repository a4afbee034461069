"""From ledger rows and planned keys to the gate's decision; the only place that puts the two together.

Reads the ledger, writes nothing, prints nothing. What counts is decided in rules; here is which rows are handed
in.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pytest_regcase.case_files import LoadedCase, LoadedSimulation, load_simulations
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord, Digests
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import LiveRow, SessionRow, SessionSnapshot
from pytest_regcase.records.words import ScenarioKind
from pytest_regcase.rules import gate
from pytest_regcase.rules.gate_inputs import CaseInputs, GateInputs, PlannedCheck
from pytest_regcase.rules.independence import fresh_draws
from pytest_regcase.rules.lifecycle import last_fix
from pytest_regcase.session.ledger_history import check_histories
from pytest_regcase.session.plan import agent_name
from pytest_regcase.session.rules_in_force import claim_settings, gate_policy, rerun_rule
from pytest_regcase.session.separation import case_separation
from pytest_regcase.session.unfinished import attempt_digests

if TYPE_CHECKING:  # a process that only plans must not load SQLAlchemy
    from pytest_regcase.ledger.store import Ledger


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
    """Return for each case with a claimed fix its live rows that count, oldest first; empty where none does.

    A row counts when it has the present digests of case, agent and model and came after the last fix: behind the
    fix's row count in the ledger that the fix names, by date in any other.
    """
    since = _live_since_fix(project, cases, ledger, snapshot)
    return {name: each.counting for name, each in since.items()}


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
    claims = claim_settings(project)
    inputs: list[CaseInputs] = []
    for loaded in cases:
        if loaded.id in problems:
            continue
        since = live.get(loaded.id, _SinceFix())
        inputs.append(
            CaseInputs(
                case_id=loaded.id,
                case=loaded.case,
                rule=rerun_rule(project, loaded.case),
                claims=claims,
                checks=tuple(
                    _check(project, loaded, key, known, snapshot, made.get(key, []))
                    for key in row.planned
                    if key.case_id == loaded.id
                ),
                live=since.counting,
                live_set_aside=since.set_aside,
                recurred_set_aside=since.recurred_set_aside,
                fix_is_of_another_ledger=not since.ledger_is_at_hand,
                separation=case_separation(project, loaded, known, snapshot, partial(_newest, ledger)),
                first_attempts=check_histories(ledger, loaded.id, agent_name(loaded, snapshot)),
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
            policy=gate_policy(project).name,
            claim_days=project.config.claim_days,
            max_quarantined=project.config.max_quarantined,
            flake_budget=project.config.flake_budget,
            quarantine=project.config.quarantine,
            interrupted=interrupted,
        )
    )


class _SinceFix(NamedTuple):
    """The live rows of a case since its last claimed fix."""

    counting: tuple[LiveRow, ...] = ()
    set_aside: int = 0
    """How many have other digests."""
    recurred_set_aside: int = 0
    """How many of these show the symptom."""
    ledger_is_at_hand: bool = True
    """This is the ledger that the fix was claimed on, with at least the rows that it had then."""


def _newest(ledger: "Ledger", key: AttemptKey, digests: Digests) -> Iterator[AttemptRecord]:
    from pytest_regcase.ledger.lookup import newest

    return newest(ledger, key.case_id, key.agent, key.scenario, digests)


def _live_since_fix(
    project: Project, cases: Sequence[LoadedCase], ledger: "Ledger", snapshot: SessionSnapshot
) -> dict[str, _SinceFix]:
    from pytest_regcase.ledger.lookup import held_rows

    claimed = [each for each in cases if each.case.fix]
    held = held_rows(ledger) if claimed else {}
    return {each.id: _since_fix(project, each, ledger, held, snapshot) for each in claimed}


def _since_fix(
    project: Project,
    loaded: LoadedCase,
    ledger: "Ledger",
    held: Mapping[str, int],
    snapshot: SessionSnapshot,
) -> _SinceFix:
    from pytest_regcase.ledger.lookup import live_attempts, set_aside, since_fix

    fix = last_fix(loaded.case)
    assert fix is not None
    name = agent_name(loaded, snapshot)
    plan = AttemptPlan(key=AttemptKey(case_id=loaded.id, agent=name, scenario="live"), kind="live")
    present = attempt_digests(project, loaded, None, plan, snapshot)
    since = since_fix(held, ledger_id=fix.ledger_id, rows=fix.rows, at=fix.at)
    rows = live_attempts(ledger, loaded.id, name, present, since)
    counting: list[LiveRow] = []
    # Freshness is judged over every row that shares a draw: an answer seen before the fix is no new one after it.
    for (_, record, after), fresh in zip(rows, fresh_draws([each.record for each in rows]), strict=True):
        if not after or record.agent != name or record.digests != present:
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
    others = set_aside(ledger, loaded.id, name, present, since)
    return _SinceFix(tuple(counting), others.rows, others.recurred, since.at_hand)


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
