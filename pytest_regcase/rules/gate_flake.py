"""What the first attempts of earlier sessions say about a case's checks: over budget, drifting, to be quarantined.

Pure. A single failure that confirm runs did not bear out is never red by itself; here is what makes it red.
"""

from collections.abc import Iterator

from pytest_regcase.records.decision import Reason, ScenarioResult
from pytest_regcase.rules.drift import drift_alarm
from pytest_regcase.rules.gate_inputs import CaseInputs, GateInputs
from pytest_regcase.rules.quarantine import Proposal, propose


def flake_reasons(case: CaseInputs, scenarios: tuple[ScenarioResult, ...], inputs: GateInputs) -> list[Reason]:
    """Return what the ledger's first attempts add to this session's checks.

    A check that is FLAKY now is red outside of pull requests where its scenario is over the flake budget (by the
    rule of quarantine: 20 first attempts, an exact bound) or the drift alarm stands. Where it is not FLAKY now,
    both are notes. A quarantined case is proposed no more.

    Raises:
        UsageRefused: a flake budget that is not strictly between 0 and 1.
    """
    return [reason for each in scenarios for reason in _of(case, each, inputs)]


def _of(case: CaseInputs, scenario: ScenarioResult, inputs: GateInputs) -> Iterator[Reason]:
    history = case.first_attempts.get(scenario.name)
    if not history or not any(each.failed for each in history):
        return
    red = scenario.flaky and inputs.profile != "pull-request"
    found = propose(history, budget=inputs.flake_budget, risk=case.rule.risk)
    if isinstance(found, Proposal):
        if scenario.flaky:
            text = f"{scenario.name}: FLAKY, and over its budget; {found.says}"
            yield Reason(code="flaky-over-budget", case_id=case.case_id, text=text, red=red)
        if case.case.quarantine is None:
            text = f"{scenario.name}: {_hint(found, inputs)}"
            yield Reason(code="quarantine-proposed", case_id=case.case_id, text=text, red=False)
    alarm = drift_alarm(history)
    if alarm is not None:
        text = f"{scenario.name}: it fails more often than it did; {alarm.says}"
        yield Reason(code="drift-alarm", case_id=case.case_id, text=text, red=red)


def _hint(found: Proposal, inputs: GateInputs) -> str:
    if inputs.quarantine == "manual":
        return f"{found.says}. Its owner may quarantine it"
    return (
        f'{found.says}. Proposed, and written nowhere: [quarantine] kind = "flaky", reason = "{found.failures} of'
        f' {found.attempts} first attempts failed"'
    )
