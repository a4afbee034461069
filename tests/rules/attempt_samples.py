"""Small attempts, cases and gate inputs with good defaults; a test names only what it is about."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from pytest_regcase.records.attempt import AttemptRecord, Digests, Draw, Finding
from pytest_regcase.records.case import Fix, Quarantine, RegressionCase, RerunRule
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import EXPECTATIONS, AttemptVerdict, Expectation, FindingStatus, Profile
from pytest_regcase.rules.flake import FirstAttempt
from pytest_regcase.rules.gate_inputs import CaseInputs, GateInputs, PlannedCheck

TODAY = date(2026, 5, 20)
FIXED_AT = datetime(2026, 5, 10, 12, tzinfo=UTC)
SIMULATION = "deadline-no-answer-v1"


def a_finding(expectation: Expectation, status: FindingStatus = "kept", **changes: Any) -> Finding:
    return Finding.model_validate({"expectation": expectation, "status": status, "says": "as expected", **changes})


def findings(broken: Sequence[Expectation] = (), unseen: Sequence[Expectation] = ()) -> tuple[Finding, ...]:
    return tuple(
        a_finding(each, "broken", code="seen", says=f"{each} did not hold")
        if each in broken
        else a_finding(each, "not-observable" if each in unseen else "kept")
        for each in EXPECTATIONS
    )


def an_attempt(verdict: AttemptVerdict, scenario: str = SIMULATION, **changes: Any) -> AttemptRecord:
    given = {
        "session_id": "s1",
        "case_id": "trial-37",
        "agent": "default",
        "run": 1,
        "try_number": 0,
        "digests": Digests(case="c", agent="a"),
        "started_at": datetime(2026, 5, 20, 9, tzinfo=UTC),
        **changes,
    }
    name = "{session_id}.{case_id}.{agent}".format(**given)
    given.setdefault("attempt_id", f"{name}.{scenario}.{given['run']}.{given['try_number']}")
    return AttemptRecord.model_validate({**given, "verdict": verdict, "scenario": scenario})


def tries(*verdicts: AttemptVerdict, scenario: str = SIMULATION, **changes: Any) -> tuple[AttemptRecord, ...]:
    """One attempt a verdict; a failed one breaks max_retries, an inconclusive one was not delivered."""
    made: list[AttemptRecord] = []
    for number, verdict in enumerate(verdicts):
        facts: dict[str, Any] = {}
        if verdict in ("recovered", "not-recovered"):
            facts["findings"] = findings(broken=["max_retries"] if verdict == "not-recovered" else [])
        if verdict == "inconclusive":
            facts["reason"] = "not-delivered"
        made.append(an_attempt(verdict, scenario, try_number=number, **{**facts, **changes}))
    return tuple(made)


def a_live_attempt(run: int, verdict: AttemptVerdict = "clean", **changes: Any) -> AttemptRecord:
    draw = Draw(fresh=True, response_digest=f"sha256:{run}", upstream_ids=(f"chatcmpl-{run}",))
    return an_attempt(verdict, "live", **{"run": run, "draw": draw, **changes})


def live(
    *verdicts: AttemptVerdict, first: int = 1, session_id: str = "s1", fresh: bool = True
) -> tuple[LiveRow, ...]:
    return tuple(
        LiveRow(run=run, verdict=verdict, session_id=session_id, fresh=fresh, response_digest=f"sha256:{run}")
        for run, verdict in enumerate(verdicts, first)
    )


def a_fix(number: int = 1, at: datetime = FIXED_AT, rows: int = 0, ledger_id: str = "here") -> Fix:
    return Fix(number=number, revision="agent@1", ledger_id=ledger_id, rows=rows, at=at, by="somebody")


def a_quarantine(expires: date = date(2026, 5, 30)) -> Quarantine:
    return Quarantine(
        owner="team-a", reason="fails on Mondays", kind="flaky", since=date(2026, 5, 1), expires=expires
    )


def a_case(case_id: str = "trial-37", **changes: Any) -> RegressionCase:
    given = {
        "id": case_id,
        "title": "no answer from step 6 on",
        "observation": {
            "symptom": "stopped responding at step 6",
            "source_event": f"sweep/{case_id}",
            "termination": "cut-off",
        },
        "handover": {"owner": "team-a", "next_decision": "compare the logs"},
        **changes,
    }
    return RegressionCase.model_validate(given)


def control(*verdicts: AttemptVerdict) -> PlannedCheck:
    return PlannedCheck(scenario="control", kind="control", tries=tries(*verdicts, scenario="control"))


def simulation(*verdicts: AttemptVerdict, name: str = SIMULATION) -> PlannedCheck:
    return PlannedCheck(scenario=name, kind="simulation", tries=tries(*verdicts, scenario=name))


def live_run(run: int, *verdicts: AttemptVerdict) -> PlannedCheck:
    return PlannedCheck(scenario="live", kind="live", run=run, tries=tries(*verdicts, scenario="live", run=run))


def first_tries(outcomes: str, digests: str = "d", confirmed: bool = True) -> tuple[FirstAttempt, ...]:
    """A letter a session, oldest first: p passed, f failed, u proved nothing.

    Confirm runs of a failed one pass where `confirmed` says so.
    """
    failed = {"p": False, "f": True, "u": None}
    return tuple(
        FirstAttempt(
            failed=failed[each],
            digests=digests,
            session_id=f"s{number}",
            confirm_passed=each == "f" and confirmed,
        )
        for number, each in enumerate(outcomes)
    )


def good_checks() -> tuple[PlannedCheck, ...]:
    return control("finished"), simulation("recovered")


def case_inputs(case: RegressionCase | None = None, **changes: Any) -> CaseInputs:
    case = case or a_case()
    given: dict[str, Any] = {
        "case_id": case.id,
        "case": case,
        "rule": RerunRule(),
        "checks": good_checks(),
        **changes,
    }
    return CaseInputs.model_validate(given)


def gate_inputs(*cases: CaseInputs, profile: Profile = "pull-request", **changes: Any) -> GateInputs:
    return GateInputs.model_validate({"profile": profile, "today": TODAY, "cases": cases, **changes})
