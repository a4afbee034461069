"""How one case comes out, and what of it is red in the session's profile (the table of the design, section 10).

Pure. Knows one case at a time; rules.gate puts cases together.
"""

from collections.abc import Iterator

from pytest_regcase.records.decision import CaseResult, Claim, Reason, ScenarioResult
from pytest_regcase.records.words import CaseState
from pytest_regcase.rules.claim_plan import shown_risk
from pytest_regcase.rules.gate_checks import SAYS_WHY, check_scenario
from pytest_regcase.rules.gate_flake import flake_reasons
from pytest_regcase.rules.gate_inputs import CaseInputs, GateInputs
from pytest_regcase.rules.gate_live import LiveStanding, live_scenario, live_standing
from pytest_regcase.rules.independence import counting_draws
from pytest_regcase.rules.lifecycle import case_state, in_utc, last_fix
from pytest_regcase.rules.policies import Policy


def case_result(case: CaseInputs, policy: Policy, inputs: GateInputs) -> tuple[CaseResult, list[Reason]]:
    """Return how the case came out and its reasons; those of a quarantined or retired case are never red by
    themselves.

    Raises:
        UsageRefused: the rule in force is none that can be decided.
    """
    live = live_standing(case)
    state = case_state(case.case, recurred=live.recurred)
    scenarios = _checks(case, policy)
    shown = live_scenario(case, live)
    result = CaseResult(
        case_id=case.case_id,
        agent=case.agent,
        state=state,
        quarantined=case.case.quarantine is not None,
        scenarios=(*scenarios, *([shown] if shown is not None else [])),
        claim=live.claim,
        separation=case.separation,
    )
    if state == "retired":
        return result, [_retired(case)]
    reasons = [
        *(reason for scenario in scenarios for reason in _check_reasons(case.case_id, scenario, policy)),
        *flake_reasons(case, scenarios, inputs),
        *_separation(case),
        *_not_run(case, live),
        *_live_reasons(case, live, state, inputs),
    ]
    if result.quarantined:
        reasons = [each.model_copy(update={"red": False}) for each in reasons]
        reasons.append(_quarantine_reason(case, inputs))
    return result, reasons


def _checks(case: CaseInputs, policy: Policy) -> tuple[ScenarioResult, ...]:
    control = next((each for each in case.checks if each.kind == "control"), None)
    control_result = None if control is None else check_scenario(control, policy)
    # A control that was made and did not finish; one that was not run is a reason of its own and says nothing
    # here.
    failed = control_result is not None and control_result.run > 0 and control_result.result != "passed"
    return tuple(
        check_scenario(each, policy, control_failed=failed and each.kind == "simulation")
        for each in case.checks
        if each.kind != "live"
    )


def _check_reasons(case_id: str, scenario: ScenarioResult, policy: Policy) -> list[Reason]:
    name = scenario.name
    failed = sum(count for verdict, count in scenario.counts.items() if verdict == "not-recovered")
    if scenario.result == "broken":
        what = ", ".join(dict.fromkeys(each.expectation for each in scenario.broken)) or "the expected recovery"
        asks_again = policy.kind in ("confirm", "any-pass")
        confirmed = ", not confirmed by a further run" if failed == 1 and asks_again else ""
        text = f"{name}: {what} broken in {failed} of {scenario.run} attempts{confirmed}"
        return [Reason(code="check-broken", case_id=case_id, text=text)]
    if scenario.result == "flaky":
        text = (
            f"{name}: FLAKY, failed in {failed} of {scenario.run} attempts, which {policy.name} does not call red"
        )
        return [Reason(code="flaky", case_id=case_id, text=text, red=False)]
    if scenario.result == "inconclusive":
        code = "control-failed" if scenario.why == SAYS_WHY["control-failed"] else "check-inconclusive"
        return [Reason(code=code, case_id=case_id, text=f"{name}: proved nothing, {scenario.why}")]
    return []


def _separation(case: CaseInputs) -> Iterator[Reason]:
    """The finding of the case as a whole, where it asks that its logs separate causes."""
    finding = case.separation.finding if case.separation is not None else None
    if finding is None or finding.status in ("kept", "not-applicable"):
        return
    text = f"{finding.expectation}: {finding.says}"
    if finding.status == "broken":
        yield Reason(code="causes-not-separated", case_id=case.case_id, text=text)
    else:
        red = finding.expectation in case.case.expected_recovery.required
        yield Reason(code="separation-not-seen", case_id=case.case_id, text=text, red=red)


def _not_run(case: CaseInputs, live: LiveStanding) -> list[Reason]:
    if not case.checks:
        if case.out_of_time:
            text = "not run: it did not fit into the minutes of this session"
            if case.attempted_before:
                text += "; it ran as it is now in an earlier one"
                return [Reason(code="out-of-time", case_id=case.case_id, text=text, red=False)]
            return [Reason(code="not-run", case_id=case.case_id, text=f"{text}, and it never ran as it is now")]
        if case.left_out:
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
    standing = _standing(case, live, state, inputs)
    return [
        *([] if standing is None else [standing]),
        *_set_aside(case, live.claim, state),
        *_repeats(case, live),
        *_inconclusive(case, live),
    ]


def _standing(case: CaseInputs, live: LiveStanding, state: CaseState, inputs: GateInputs) -> Reason | None:
    """The one reason that says where the claim stands; None where there is none, or nothing happened since."""
    gates = inputs.profile != "pull-request"
    if live.recurred_run is not None:
        text = f"the symptom came back in live run {live.recurred_run}; red until a new fix is claimed"
        return Reason(code="recurred", case_id=case.case_id, text=text, red=gates)
    if live.recurred_elsewhere:
        text = (
            "the symptom came back since the last fix was claimed, when the agent's revision, the case or the"
            " model was another one; red until a new fix is claimed"
        )
        return Reason(code="recurred", case_id=case.case_id, text=text, red=gates)
    if state == "regressed":
        text = "regressed: it was reopened and no fix has been claimed since"
        return Reason(code="case-regressed", case_id=case.case_id, text=text, red=gates)
    if state != "verifying" or live.claim is None:
        return None
    if live.stopping_run is not None:
        text = f"live run {live.stopping_run} failed in another way; the claimed fix does not hold"
        return Reason(code="failed-otherwise", case_id=case.case_id, text=text, red=gates)
    return _verifying(case, live, live.claim, inputs)


def _verifying(case: CaseInputs, live: LiveStanding, claim: Claim, inputs: GateInputs) -> Reason:
    where = f"fix {claim.fix_number} verifying: {claim.clean} of {claim.need} clean live runs"
    if live.allowed_run is not None:
        where += f", the symptom came back in run {live.allowed_run}, which plan {claim.plan} allows"
    if claim.settled:
        text = f"{where}; that rules out a rate of {claim.max_rate} at risk {shown_risk(claim.risk)}"
        return Reason(code="verifying", case_id=case.case_id, text=text, red=False)
    if claim.lacks:
        where += f"; not there: {'; '.join(claim.lacks)}"
    fix = last_fix(case.case)
    assert fix is not None
    days = (inputs.today - in_utc(fix.at).date()).days
    # A day ahead is another time zone; more is a slip of the pen that would keep the claim young for ever.
    if inputs.profile == "nightly" and days < -1:
        text = f"{where}; it is dated {-days} days ahead"
        return Reason(code="claim-overdue", case_id=case.case_id, text=text)
    if inputs.profile == "nightly" and days > inputs.claim_days:
        text = f"{where}, {days} days after the claim; at most {inputs.claim_days} days are allowed"
        return Reason(code="claim-overdue", case_id=case.case_id, text=text)
    # A release claims what it ships: until a claim is settled, it is a claim without evidence.
    return Reason(code="verifying", case_id=case.case_id, text=where, red=inputs.profile == "release")


def _set_aside(case: CaseInputs, claim: Claim | None, state: CaseState) -> Iterator[Reason]:
    """Live runs that are not here, or here and of something else."""
    # What a closed case was closed on stands in its file.
    if case.fix_is_of_another_ledger and state != "closed":
        text = (
            "the ledger that the last fix was claimed on is not this one, or it has lost rows since; live runs"
            " counted there are not here, so the claim stays undecided"
        )
        yield Reason(code="other-ledger", case_id=case.case_id, text=text, red=False)
    if case.live_set_aside and claim is not None:
        text = (
            f"live runs since fix {claim.fix_number} that do not count: {case.live_set_aside}; the agent's"
            " revision, the case or the model was another one when they were made"
        )
        yield Reason(code="set-aside", case_id=case.case_id, text=text, red=False)


def _repeats(case: CaseInputs, live: LiveStanding) -> Iterator[Reason]:
    """Clean runs that are no evidence of their own, or may be none."""
    independence = case.claims.independence
    repeats = [str(row.run) for row in case.live if row.verdict == "clean" and not row.fresh]
    if repeats and independence != "off":
        text = (
            f"clean live run {', '.join(repeats)}: not counted, no draw of its own; the upstream's response ids"
            " were absent or seen before (a cache, or a canned server?)"
        )
        yield Reason(code="repeated-draws", case_id=case.case_id, text=text, red=False)
    counting = counting_draws(case.live, independence)
    same = [str(row.run) for place, row in enumerate(case.live) if row.fresh and not counting[place].fresh]
    if same:
        text = (
            f"clean live run {', '.join(same)}: not counted, its transcript is missing or is that of a run with a"
            " lower number (independence = distinct)"
        )
        yield Reason(code="repeated-transcripts", case_id=case.case_id, text=text, red=False)
    if live.identical:
        text = "all clean live runs gave the same transcript; they may be one draw repeated"
        yield Reason(code="identical-transcripts", case_id=case.case_id, text=text, red=False)


def _inconclusive(case: CaseInputs, live: LiveStanding) -> list[Reason]:
    count = len(live.inconclusive_now)
    if not count:
        return []
    text = f"{count} live run{'s' * (count > 1)} of this session proved nothing ({live.why_inconclusive})"
    return [Reason(code="live-inconclusive", case_id=case.case_id, text=text)]


def _retired(case: CaseInputs) -> Reason:
    last = max(case.case.retired, key=lambda each: in_utc(each.at))
    text = f"retired on {in_utc(last.at).date()} by {last.by}: {last.why}"
    return Reason(code="retired", case_id=case.case_id, text=text, red=False)


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
