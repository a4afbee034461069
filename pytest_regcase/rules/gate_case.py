"""How one case comes out, and what of it is red in the session's profile (the table of the design, section 10).

Pure. Knows one case at a time; rules.gate puts cases together.
"""

from pytest_regcase.records.decision import CaseResult, Reason, ScenarioResult
from pytest_regcase.records.words import CaseState
from pytest_regcase.rules.gate_checks import SAYS_WHY, check_scenario
from pytest_regcase.rules.gate_inputs import CaseInputs, GateInputs
from pytest_regcase.rules.gate_live import LiveStanding, live_scenario, live_standing
from pytest_regcase.rules.lifecycle import case_state, in_utc, last_fix


def case_result(case: CaseInputs, inputs: GateInputs) -> tuple[CaseResult, list[Reason]]:
    """Return how the case came out and its reasons; those of a quarantined case are never red by themselves."""
    live = live_standing(case)
    state = case_state(case.case, recurred=live.recurred)
    scenarios = _checks(case)
    shown = live_scenario(case, live)
    result = CaseResult(
        case_id=case.case_id,
        state=state,
        quarantined=case.case.quarantine is not None,
        scenarios=(*scenarios, *([shown] if shown is not None else [])),
        claim=live.claim,
    )
    reasons = [
        *(reason for scenario in scenarios for reason in _check_reasons(case.case_id, scenario)),
        *_not_run(case, live),
        *_live_reasons(case, live, state, inputs),
    ]
    if result.quarantined:
        reasons = [each.model_copy(update={"red": False}) for each in reasons]
        reasons.append(_quarantine_reason(case, inputs))
    return result, reasons


def _checks(case: CaseInputs) -> tuple[ScenarioResult, ...]:
    control = next((each for each in case.checks if each.kind == "control"), None)
    control_result = None if control is None else check_scenario(control)
    # A control that was made and did not finish; one that was not run is a reason of its own and says nothing
    # here.
    failed = control_result is not None and control_result.run > 0 and control_result.result != "passed"
    return tuple(
        check_scenario(each, control_failed=failed and each.kind == "simulation")
        for each in case.checks
        if each.kind != "live"
    )


def _check_reasons(case_id: str, scenario: ScenarioResult) -> list[Reason]:
    name = scenario.name
    if scenario.result == "broken":
        what = ", ".join(dict.fromkeys(each.expectation for each in scenario.broken)) or "the expected recovery"
        times = scenario.counts.get("not-recovered", 0)
        confirmed = "" if times > 1 else ", not confirmed by a further run"
        text = f"{name}: {what} broken in {times} of {scenario.run} attempts{confirmed}"
        return [Reason(code="check-broken", case_id=case_id, text=text)]
    if scenario.result == "flaky":
        text = f"{name}: FLAKY, failed once and passed both confirm runs"
        return [Reason(code="flaky", case_id=case_id, text=text, red=False)]
    if scenario.result == "inconclusive":
        code = "control-failed" if scenario.why == SAYS_WHY["control-failed"] else "check-inconclusive"
        return [Reason(code=code, case_id=case_id, text=f"{name}: proved nothing, {scenario.why}")]
    return []


def _not_run(case: CaseInputs, live: LiveStanding) -> list[Reason]:
    if not case.checks:
        if case.costs_model_calls:
            text = "not run: its replies cost model calls, which this session may not make (--regcase-live=N)"
            return [Reason(code="needs-live", case_id=case.case_id, text=text, red=False)]
        return [Reason(code="not-run", case_id=case.case_id, text="none of its checks was planned")]
    due = [each for each in case.checks if each.kind != "live" or not live.stopped_before(each.run)]
    left = [f"live {each.run}" if each.kind == "live" else each.scenario for each in due if not each.tries]
    if not left:
        return []
    named = ", ".join(left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
    return [
        Reason(code="not-run", case_id=case.case_id, text=f"{len(left)} of {len(due)} planned not run: {named}")
    ]


def _live_reasons(case: CaseInputs, live: LiveStanding, state: CaseState, inputs: GateInputs) -> list[Reason]:
    reasons: list[Reason] = []
    gates = inputs.profile != "pull-request"
    claim, name = live.claim, case.case_id
    if live.recurred and claim is not None:
        text = f"the symptom came back in live run {live.recurred_run}; red until a new fix is claimed"
        reasons.append(Reason(code="recurred", case_id=name, text=text, red=gates))
    elif state == "regressed":
        text = "regressed: it was reopened and no fix has been claimed since"
        reasons.append(Reason(code="case-regressed", case_id=name, text=text, red=gates))
    elif live.result is not None and live.result.refuted_by_run is not None and state == "verifying":
        text = f"live run {live.result.refuted_by_run} failed in another way; the claimed fix does not hold"
        reasons.append(Reason(code="failed-otherwise", case_id=name, text=text, red=gates))
    elif state == "verifying" and claim is not None:
        reasons.append(_verifying(case, live, inputs))
    if case.fix_is_of_another_ledger:
        text = "the ledger that the last fix was claimed on is not this one; live runs counted there are not here"
        reasons.append(Reason(code="other-ledger", case_id=name, text=text, red=False))
    if case.live_set_aside and claim is not None:
        text = (
            f"live runs since fix {claim.fix_number} that do not count: {case.live_set_aside}; the agent's"
            " revision, the case or the model was another one when they were made"
        )
        reasons.append(Reason(code="set-aside", case_id=name, text=text, red=False))
    repeats = [str(row.run) for row in case.live if row.verdict == "clean" and not row.fresh]
    if repeats:
        text = (
            f"clean live run {', '.join(repeats)}: not counted, no draw of its own; the upstream's response ids"
            " were absent or seen before (a cache, or a canned server?)"
        )
        reasons.append(Reason(code="repeated-draws", case_id=name, text=text, red=False))
    if live.identical:
        text = "all clean live runs gave the same transcript; they may be one draw repeated"
        reasons.append(Reason(code="identical-transcripts", case_id=name, text=text, red=False))
    if live.inconclusive_now:
        count = len(live.inconclusive_now)
        text = f"{count} live run{'s' * (count > 1)} of this session proved nothing ({live.why_inconclusive})"
        reasons.append(Reason(code="live-inconclusive", case_id=name, text=text))
    return reasons


def _verifying(case: CaseInputs, live: LiveStanding, inputs: GateInputs) -> Reason:
    claim, fix = live.claim, last_fix(case.case)
    assert claim is not None
    assert fix is not None
    where = f"fix {claim.fix_number} verifying: {claim.clean} of {claim.need} clean live runs"
    if claim.kind == "BOUNDED":
        return Reason(
            code="verifying",
            case_id=case.case_id,
            text=f"{where}; that rules out a rate of {claim.max_rate} at risk {claim.risk}",
            red=False,
        )
    days = (inputs.today - in_utc(fix.at).date()).days
    if inputs.profile == "nightly" and days > inputs.claim_days:
        text = f"{where}, {days} days after the claim; at most {inputs.claim_days} days are allowed"
        return Reason(code="claim-overdue", case_id=case.case_id, text=text)
    # A release claims what it ships: until a claim is bounded, it is a claim without evidence.
    return Reason(code="verifying", case_id=case.case_id, text=where, red=inputs.profile == "release")


def _quarantine_reason(case: CaseInputs, inputs: GateInputs) -> Reason:
    quarantine = case.case.quarantine
    assert quarantine is not None
    if inputs.today > quarantine.expires:
        text = f"its quarantine expired on {quarantine.expires}; owner {quarantine.owner}: {quarantine.reason}"
        red = inputs.profile == "nightly"
        return Reason(code="quarantine-expired", case_id=case.case_id, text=text, red=red)
    why = f"owner {quarantine.owner}: {quarantine.reason}"
    text = f"quarantined ({quarantine.kind}) until {quarantine.expires}, {why}"
    return Reason(code="quarantined", case_id=case.case_id, text=text, red=False)
