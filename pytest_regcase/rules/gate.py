"""The decision: what one session's checks and the ledger's live runs mean in one profile.

Pure: today's date and every row are handed in. It reads attempts, never exit codes or pass counts, and nothing
run, nothing selected or everything quarantined is never green. What makes one case red is in rules.gate_case.
"""

from collections.abc import Sequence

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.decision import CaseResult, GateDecision, Reason
from pytest_regcase.records.words import Decision
from pytest_regcase.rules.gate_case import case_result
from pytest_regcase.rules.gate_inputs import GateInputs
from pytest_regcase.rules.policies import Policy, policy_for, what_it_hides
from pytest_regcase.rules.quarantine import most_quarantined

SEEN_TO_BE_WRONG = frozenset(
    {
        "invalid-case",
        "check-broken",
        "causes-not-separated",
        "recurred",
        "failed-otherwise",
        "case-regressed",
        "flaky-over-budget",
        "drift-alarm",
        "quarantine-expired",
        "too-many-quarantined",
    }
)
"""Reasons that make a red decision `fail`; every other red reason is a check that did not happen: `unproven`."""


def decide(inputs: GateInputs) -> GateDecision:
    """Return pass, fail or unproven with the reasons, red ones first; `fail` beats `unproven`.

    Equal inputs give equal bytes: no clock, session id or duration goes in, nor what lies behind the first
    recurrence.

    A case whose rule cannot be decided is invalid, and the text says why.

    Raises:
        UsageRefused: there is no such policy.
    """
    policy = policy_for(inputs.policy)
    reasons: list[Reason] = [
        Reason(code="invalid-case", case_id=case_id, text=text.strip()) for case_id, text in inputs.invalid.items()
    ]
    results: list[CaseResult] = []
    for case in inputs.cases:
        try:
            result, own = case_result(case, policy, inputs)
        except UsageRefused as refused:
            reasons.append(Reason(code="invalid-case", case_id=case.case_id, text=refused.text))
            continue
        results.append(result)
        reasons.extend(_of_agent(case.agent, own))
    reasons.extend(_over_all(inputs, policy, results))
    return GateDecision(
        decision=_decision(reasons),
        profile=inputs.profile,
        policy=policy.name,
        reasons=tuple(sorted(reasons, key=_order)),
        cases=tuple(sorted(results, key=lambda each: (each.case_id, each.agent or ""))),
    )


def _of_agent(agent: str | None, reasons: Sequence[Reason]) -> Sequence[Reason]:
    """Say in the reasons of a test function whose they are: its case may have others, of its own agent."""
    if agent is None:
        return reasons
    return [each.model_copy(update={"text": f"{agent}: {each.text}"}) for each in reasons]


def _over_all(inputs: GateInputs, policy: Policy, results: Sequence[CaseResult]) -> list[Reason]:
    reasons: list[Reason] = []
    for case_id in sorted(set(inputs.lost)):
        reasons.append(
            Reason(
                code="not-run", case_id=case_id, text="its checks were planned, but the case is not there any more"
            )
        )
    planned = [check for case in inputs.cases for check in case.checks]
    if not planned and not inputs.invalid:
        reasons.append(Reason(code="nothing-selected", text="no check was selected, so nothing is shown"))
    elif planned and not any(check.tries for check in planned):
        reasons.append(Reason(code="nothing-run", text="no check was run, so nothing is shown"))
    in_service = [each for each in results if each.state != "retired"]
    left_out = {(each.case_id, each.agent): each.out_of_time for each in inputs.cases if each.left_out}
    asked = [each for each in in_service if (each.case_id, each.agent) not in left_out]
    for_time = [left_out[key] for each in in_service if (key := (each.case_id, each.agent)) in left_out]
    if (planned or not left_out) and results and all(each.quarantined for each in asked):
        out = ["quarantined"]
        out += ["retired"] * (len(in_service) < len(results))
        out += ["left out for its model calls"] * (False in for_time)
        out += ["left out for its time"] * (True in for_time)
        reasons.append(Reason(code="all-quarantined", text=f"every case is {' or '.join(out)}, so nothing gates"))
    reasons.extend(inputs.found)
    if inputs.interrupted:
        reasons.append(Reason(code="interrupted", text="the session was interrupted before its end"))
    reasons.extend(_quarantine_share(inputs, in_service))
    hidden = what_it_hides(policy)
    if hidden is not None:
        reasons.append(Reason(code="any-pass", text=hidden, red=False))
    return reasons


def _quarantine_share(inputs: GateInputs, results: Sequence[CaseResult]) -> list[Reason]:
    # A case counts once, however many functions run it beside its own agent.
    cases = {each.case_id: each.quarantined for each in results}
    quarantined = sum(cases.values())
    most = most_quarantined(len(cases), inputs.max_quarantined)
    if quarantined <= most:
        return []
    return [
        Reason(
            code="too-many-quarantined",
            text=f"{quarantined} of {len(cases)} cases are quarantined; at most {most} may be",
            red=inputs.profile != "pull-request",
        )
    ]


def _decision(reasons: Sequence[Reason]) -> Decision:
    red = [each.code for each in reasons if each.red]
    if any(code in SEEN_TO_BE_WRONG for code in red):
        return "fail"
    return "unproven" if red else "pass"


def _order(reason: Reason) -> tuple[bool, bool, str, str, str]:
    unproven = reason.red and reason.code not in SEEN_TO_BE_WRONG
    return not reason.red, unproven, reason.case_id or "", reason.code, reason.text
