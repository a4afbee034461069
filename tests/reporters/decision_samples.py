"""One decision with everything in it, made by the gate itself, and the attempts that it was made from."""

from pytest_regcase.records.attempt import AttemptRecord, Finding
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.words import AttemptVerdict, Profile
from pytest_regcase.rules.gate import decide
from pytest_regcase.rules.gate_inputs import CaseInputs, PlannedCheck
from tests.rules.attempt_samples import (
    a_case,
    a_fix,
    a_quarantine,
    an_attempt,
    case_inputs,
    control,
    findings,
    gate_inputs,
    live,
    simulation,
    tries,
)

BASELINE = {"failures": 20, "trials": 200, "kind": "all-attempts"}


def broken_attempts(case_id: str) -> tuple[AttemptRecord, ...]:
    found = list(findings(unseen=["keep_partial_patch", "no_partial_submission"]))
    found[1] = Finding(
        expectation="max_retries",
        status="broken",
        code="too_many",
        says="7 requests followed the first faulted one (at 0.4 s to 31.8 s); 3 are allowed",
    )
    found[6] = Finding(
        expectation="mark_failure",
        status="broken",
        code="unmarked",
        says='the artefact\'s status is "Submitted" and the exit code is 0',
    )
    return tuple(
        an_attempt(
            "not-recovered",
            case_id=case_id,
            try_number=number,
            findings=found,
            says="max_retries broken",
            folder=f".regcase/sessions/20260520t091201-9f2c11ab/attempts/{case_id}.deadline-no-answer-v1.1.{number}",
        )
        for number in range(3)
    )


def everything(profile: Profile = "pull-request") -> tuple[GateDecision, list[AttemptRecord]]:
    broken = broken_attempts("sweep-0412-trial-37")
    off = tries(
        "inconclusive",
        "inconclusive",
        scenario="hidden-rejection-v1",
        case_id="a-case",
        reason="off-the-prefix",
        says="request 2 offers no tool named bash, which recorded step 2 calls",
        folder=".regcase/sessions/20260520t091201-9f2c11ab/attempts/a-case.hidden-rejection-v1.1.0",
    )
    flaky = tries("not-recovered", "recovered", "recovered", scenario="oom-killed-v1", case_id="a-case")
    nine_clean: list[AttemptVerdict] = ["clean"] * 9
    cases: list[CaseInputs] = [
        case_inputs(
            a_case("sweep-0412-trial-37"),
            checks=(
                control("finished"),
                PlannedCheck(scenario="deadline-no-answer-v1", kind="simulation", tries=broken),
                simulation("recovered", name="oom-server-error-v1"),
                simulation(name="auth-rejected-v1"),
            ),
        ),
        case_inputs(
            a_case("a-case"),
            checks=(
                control("finished"),
                PlannedCheck(scenario="hidden-rejection-v1", kind="simulation", tries=off),
                PlannedCheck(scenario="oom-killed-v1", kind="simulation", tries=flaky),
            ),
        ),
        case_inputs(
            a_case("claimed", fix=(a_fix(2),), baseline=BASELINE),
            live=(*live(*nine_clean), *live("inconclusive", "clean", "clean", first=10, session_id="s2")),
        ),
        case_inputs(a_case("came-back", fix=(a_fix(),)), live=live("clean", "recurred")),
        case_inputs(
            a_case("noisy", quarantine=a_quarantine()),
            checks=(control("finished"), simulation("not-recovered", "not-recovered", "recovered")),
        ),
    ]
    invalid = {"cases/bad/case.toml": "cases/bad/case.toml:12: unknown key `symptomm`; did you mean `symptom`?"}
    return decide(gate_inputs(*cases, profile=profile, invalid=invalid)), [*broken, *off, *flaky]
