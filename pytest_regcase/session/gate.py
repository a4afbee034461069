"""From ledger rows and planned keys to the gate's decision; the only place that puts the two together.

Reads the ledger, writes nothing, prints nothing. What counts is decided in rules; here is which rows are handed
in.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from pytest_regcase.case_files import LoadedCase, LoadedSimulation, load_simulations
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord, Digests
from pytest_regcase.records.decision import GateDecision, Reason
from pytest_regcase.records.session import SessionRow, SessionSnapshot
from pytest_regcase.records.words import Profile, ScenarioKind
from pytest_regcase.rules import gate
from pytest_regcase.rules.gate_inputs import CaseInputs, GateInputs, PlannedCheck
from pytest_regcase.rules.lifecycle import case_state, is_retired
from pytest_regcase.session.attempts.separation import case_separation
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.functions import (
    for_function,
    function_digest,
    is_function,
    is_unknown,
    unknown_functions,
)
from pytest_regcase.session.ledgers.history import check_histories
from pytest_regcase.session.ledgers.probation import probation_reasons
from pytest_regcase.session.plan import agent_name
from pytest_regcase.session.planning.last_attempts import last_attempts, still_red
from pytest_regcase.session.planning.since_fix import SinceFix, live_since_fix
from pytest_regcase.session.project.rules_in_force import claim_settings, gate_policy, rerun_rule

if TYPE_CHECKING:  # a process that only plans must not load SQLAlchemy
    from pytest_regcase.ledger.store import Ledger


def ledger_for(project: Project) -> "Ledger":
    """Open the project's ledger; the caller closes it.

    Raises:
        LedgerError: it cannot be opened or written; the text says why and what to do.
    """
    from pytest_regcase.ledger.store import Ledger

    return Ledger.open(project.ledger_url())


def decide_session(
    project: Project,
    cases: Sequence[LoadedCase],
    ledger: "Ledger",
    row: SessionRow,
    *,
    snapshot: SessionSnapshot,
    invalid: Mapping[str, str] | None = None,
    simulations: Mapping[str, LoadedSimulation] | None = None,
    beside: Sequence[LoadedCase] = (),
    interrupted: bool = False,
    today: date | None = None,
) -> GateDecision:
    """Decide over the one session `row`, in its profile; see `decide_sessions`."""
    return decide_sessions(
        project,
        cases,
        ledger,
        [row],
        profile=row.profile,
        snapshot=snapshot,
        invalid=invalid,
        simulations=simulations,
        beside=beside,
        interrupted=interrupted,
        today=today,
    )


def decide_sessions(
    project: Project,
    cases: Sequence[LoadedCase],
    ledger: "Ledger",
    rows: Sequence[SessionRow],
    *,
    profile: Profile,
    snapshot: SessionSnapshot,
    invalid: Mapping[str, str] | None = None,
    simulations: Mapping[str, LoadedSimulation] | None = None,
    found: Sequence[Reason] = (),
    beside: Sequence[LoadedCase] = (),
    interrupted: bool = False,
    today: date | None = None,
) -> GateDecision:
    """Decide over the sessions `rows` as over one: all their planned keys, each with the attempts that its own
    session made of it, and the live rows since each last fix.

    `cases` are those that were asked about, `invalid` the ones that did not load or could not be planned, by id or
    path. Of `beside` only what test functions ran is decided. `found` is what no attempt shows, such as a shard
    that left no session; `interrupted` says that one of the sessions did not come to its own end. Without `today`
    it is the machine's.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    known = load_simulations(project) if simulations is None else simulations
    planned = list(dict.fromkeys(key for row in rows for key in row.planned))
    by_functions = {key.case_id for key in planned if is_function(key.agent)}
    without_agent = {
        each.id
        for each in cases
        if each.id in by_functions and agent_name(each, snapshot) not in project.config.agents
    }
    # Only functions run these: that their agent is not configured is no problem then.
    problems = {name: text for name, text in (invalid or {}).items() if name not in without_agent}
    made = _attempts_of(ledger, rows)
    live = live_since_fix(project, cases, ledger, snapshot)
    of_case: dict[str, list[AttemptKey]] = {}
    for key in planned:
        if not is_function(key.agent):
            of_case.setdefault(key.case_id, []).append(key)
    left_out = {case_id for row in rows for case_id in row.left_out} - of_case.keys()
    inputs: list[CaseInputs] = []
    red_before: list[Reason] = []
    for loaded in cases:
        if loaded.id in problems or loaded.id in without_agent:
            continue
        # What another agent did, where the case names a new one since, shows nothing of this one.
        agent = agent_name(loaded, snapshot)
        own = [key for key in of_case.get(loaded.id, ()) if key.agent == agent]
        checks = _checks(project, loaded, own, known, snapshot, made)
        since = live.get(loaded.id, SinceFix())
        last = last_attempts(project, loaded, known, snapshot, ledger) if loaded.id in left_out else {}
        red_before += still_red(loaded, last)
        inputs.append(
            _inputs(project, loaded, known, snapshot, ledger, checks, since).model_copy(
                update={
                    "out_of_time": loaded.id in left_out,
                    "attempted_before": loaded.id in left_out and all(last.values()),
                }
            )
        )
    inputs += _functions(project, [*cases, *beside], ledger, planned, known, snapshot, made)
    accounted = {each.case_id for each in inputs} | set(problems)
    return gate.decide(
        GateInputs(
            profile=profile,
            today=today or date.today(),
            cases=tuple(inputs),
            invalid=problems,
            lost=tuple(sorted({key.case_id for key in planned if not is_unknown(key)} - accounted)),
            policy=gate_policy(project).name,
            claim_days=project.config.claim_days,
            max_quarantined=project.config.max_quarantined,
            flake_budget=project.config.flake_budget,
            quarantine=project.config.quarantine,
            found=(
                *found,
                *unknown_functions(planned),
                *red_before,
                *_live_not_made(project, cases, rows, live),
                *probation_reasons(
                    project, cases, ledger, {row.session_id for row in rows}, red=profile != "pull-request"
                ),
            ),
            interrupted=interrupted,
        )
    )


def _functions(
    project: Project,
    cases: Sequence[LoadedCase],
    ledger: "Ledger",
    planned: Sequence[AttemptKey],
    known: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
    made: Mapping[AttemptKey, Sequence[AttemptRecord]],
) -> Iterator[CaseInputs]:
    """What test functions ran: each counts as an agent of its case, beside the case's own."""
    by_id = {each.id: each for each in cases}
    memory: dict[str, str] = {}
    keys: dict[tuple[str, str], list[AttemptKey]] = {}
    for key in planned:
        if is_function(key.agent) and key.case_id in by_id:
            keys.setdefault((key.case_id, key.agent), []).append(key)
    for (case_id, function), own in keys.items():
        loaded = by_id[case_id]
        digest = function_digest(project, loaded, snapshot, function, memory)
        own_project, own_snapshot = for_function(project, loaded, snapshot, function, digest)
        checks = _checks(own_project, loaded, own, known, own_snapshot, made)
        since = live_since_fix(own_project, [loaded], ledger, own_snapshot).get(case_id, SinceFix())
        inputs = _inputs(own_project, loaded, known, own_snapshot, ledger, checks, since)
        yield inputs.model_copy(update={"agent": function})


def _inputs(
    project: Project,
    loaded: LoadedCase,
    known: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
    ledger: "Ledger",
    checks: tuple[PlannedCheck, ...],
    since: "SinceFix",
) -> CaseInputs:
    return CaseInputs(
        case_id=loaded.id,
        case=loaded.case,
        rule=rerun_rule(project, loaded.case),
        claims=claim_settings(project),
        checks=checks,
        live=since.counting,
        live_set_aside=since.set_aside,
        recurred_set_aside=since.recurred_set_aside,
        fix_is_of_another_ledger=not since.ledger_is_at_hand,
        separation=case_separation(project, loaded, known, snapshot, partial(_newest, ledger)),
        first_attempts=check_histories(ledger, loaded.id, agent_name(loaded, snapshot)),
        costs_model_calls=loaded.case.passes_through and snapshot.live_new == 0,
    )


def _live_not_made(
    project: Project, cases: Sequence[LoadedCase], rows: Sequence[SessionRow], live: Mapping[str, "SinceFix"]
) -> Iterator[Reason]:
    """Live runs that were asked for and are due, where nothing is there to run them against or to count them."""
    if not any(row.live_new for row in rows):
        return
    no_upstream = project.config.upstream is None
    for loaded in cases:
        claimed = live.get(loaded.id) if case_state(loaded.case, recurred=False) == "verifying" else None
        red = loaded.case.quarantine is None
        if is_retired(loaded.case):
            continue
        if claimed is not None and not claimed.ledger_is_at_hand:
            text = (
                "live runs were asked for and none is made: the ledger that its last fix was claimed on is not at"
                " hand, and no number of runs on another one settles the claim"
            )
            yield Reason(code="other-ledger", case_id=loaded.id, text=text, red=red)
        elif no_upstream and (claimed is not None or loaded.case.passes_through):
            text = "live runs were asked for and cannot be made: [tool.regcase.upstream] is not configured"
            yield Reason(code="no-upstream", case_id=loaded.id, text=text, red=red)


def _attempts_of(ledger: "Ledger", rows: Sequence[SessionRow]) -> dict[AttemptKey, list[AttemptRecord]]:
    """The attempts of planned keys, each of the first session that planned it: two of them are no tries of one."""
    made: dict[AttemptKey, list[AttemptRecord]] = {}
    taken: set[AttemptKey] = set()
    for row in rows:
        own = set(row.planned) - taken
        taken |= own
        for _, record in ledger.rows(session_id=row.session_id):
            if record.key in own:
                made.setdefault(record.key, []).append(record)
    return made


def _newest(
    ledger: "Ledger", case_id: str, agent: str, scenarios: Mapping[str, Digests]
) -> Mapping[str, Iterator[AttemptRecord]]:
    from pytest_regcase.ledger.lookup import newest

    return newest(ledger, case_id, agent, scenarios)


def _checks(
    project: Project,
    loaded: LoadedCase,
    keys: Sequence[AttemptKey],
    simulations: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
    made: Mapping[AttemptKey, Sequence[AttemptRecord]],
) -> tuple[PlannedCheck, ...]:
    return tuple(_check(project, loaded, key, simulations, snapshot, made.get(key, ())) for key in keys)


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
