"""What a person can do next, from the reasons of a decision. One sentence a kind of reason, in a fixed order."""

from collections.abc import Iterator

from pytest_regcase.records.decision import GateDecision


def next_steps(decision: GateDecision) -> list[str]:
    """Return what to do next, most urgent first; nothing where nothing is needed."""
    return list(_steps(decision))


def _steps(decision: GateDecision) -> Iterator[str]:
    by_code: dict[str, list[str]] = {}
    for reason in decision.reasons:
        by_code.setdefault(reason.code, []).append(reason.case_id or "")
    for code, step in _STEPS.items():
        if code in by_code:
            yield step.format(case=_named(by_code[code]))
    for case in decision.cases:
        claim = case.claim
        if (
            case.state == "verifying"
            and claim is not None
            and claim.refuted_by_run is None
            and claim.kind == "none"
        ):
            runs = claim.need - claim.clean
            yield (
                f"{case.case_id}: {runs} more live runs are needed: "
                f"pytest --regcase --regcase-profile=nightly --regcase-live={runs}"
            )


def _named(case_ids: list[str]) -> str:
    ids = sorted({each for each in case_ids if each})
    return ids[0] if len(ids) == 1 else "CASE"


_STEPS = {
    "invalid-case": "correct the case file; each line above names the place and what is allowed there",
    "check-broken": "read what the attempt left (see: above: wire.jsonl, stdout, stderr, the agent's output),"
    " change the agent, run again",
    "recurred": "the claimed fix does not hold; when there is a new one: regcase fix {case}",
    "failed-otherwise": "read that live run; when it is repaired too: regcase fix {case}",
    "case-regressed": "when there is a new fix: regcase fix {case}",
    "control-failed": "make the agent finish without a fault first; its control says nothing about recovery",
    "check-inconclusive": "`regcase doctor` says whether the agent reaches the supplier and what its output shows",
    "live-inconclusive": "check [tool.regcase.upstream]; the same runs are made again in the next session",
    "not-run": "run the checks that were left out (options such as -k, -x or --lf leave checks out)",
    "nothing-selected": "select at least one case: pytest --regcase, or pytest --regcase PATH",
    "claim-overdue": "make the missing live runs, or take the claim back",
    "quarantine-expired": "repair the case, or let its owner renew or remove [quarantine] in its file",
    "too-many-quarantined": "repair quarantined cases before another one is set aside",
    "flaky": "look at flaky checks while they are rare; their first failure is kept",
}
