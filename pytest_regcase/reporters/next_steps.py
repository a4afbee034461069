"""What a person can do next, from the reasons of a decision. One step a kind of reason, in a fixed order."""

from collections.abc import Iterator
from typing import NamedTuple

from pytest_regcase.records.decision import GateDecision


class Step(NamedTuple):
    """One thing to do, and the command for it where there is one."""

    text: str
    command: str | None = None


def next_steps(decision: GateDecision) -> list[Step]:
    """Return what to do next, most urgent first; nothing where nothing is needed."""
    return list(_steps(decision))


def _steps(decision: GateDecision) -> Iterator[Step]:
    by_code: dict[str, list[str]] = {}
    for reason in decision.reasons:
        by_code.setdefault(reason.code, []).append(reason.case_id or "")
    for code, step in _STEPS.items():
        if code in by_code:
            command = step.command.format(case=_named(by_code[code])) if step.command is not None else None
            yield Step(step.text, command)
    for case in decision.cases:
        claim = case.claim
        if (
            case.state == "verifying"
            and claim is not None
            and claim.clean < claim.need
            and not claim.refuted_by_run
            and case.case_id not in by_code.get("other-ledger", [])
        ):
            runs = claim.need - claim.clean
            yield Step(
                f"{case.label}: {runs} more live run{'s' * (runs > 1)} to make; each one costs model calls",
                f"pytest --regcase --regcase-profile=nightly --regcase-live={runs}",
            )
        if case.state == "verifying" and claim is not None and claim.settled:
            by = "" if case.agent is None else f" --function {case.agent}"
            yield Step(f"{case.label}: the rerun rule is met", f"regcase close {case.case_id}{by}")


def _named(case_ids: list[str]) -> str:
    ids = sorted({each for each in case_ids if each})
    return ids[0] if len(ids) == 1 else "CASE"


_STEPS = {
    "invalid-case": Step("correct what the reason names: a case file, an option, or a setting in pyproject.toml"),
    "check-broken": Step(
        "read the attempt's folder (shown above): wire.jsonl, stdout, stderr, the agent's own output;"
        " change the agent; run again"
    ),
    "causes-not-separated": Step(
        "make the agent log what the supplier's failure was (status, exception, time-out), each in words of its"
        " own; run again"
    ),
    "recurred": Step("the claimed fix does not hold; when there is a new one", "regcase fix {case}"),
    "failed-otherwise": Step("read that live run; when this failure is repaired too", "regcase fix {case}"),
    "case-regressed": Step("when there is a new fix", "regcase fix {case}"),
    "control-failed": Step(
        "see above why the control did not finish (a recorded tool that the agent does not offer, an agent that"
        " ends early): only then its simulations say something"
    ),
    "check-inconclusive": Step(
        "see whether the agent reaches the supplier and what its output shows", "regcase doctor"
    ),
    "live-inconclusive": Step(
        "read why those live runs proved nothing; the next session makes the same runs again"
    ),
    "no-session": Step(
        "run what left no session (a job that was killed before it began leaves none); then ask again",
        "regcase gate",
    ),
    "dated-ahead": Step(
        "see that the clock here and the one of the machine that ran that session are right; run again, or wait"
    ),
    "no-upstream": Step("name the supplier's base_url in [tool.regcase.upstream], or leave --regcase-live out"),
    "not-run": Step("run what was left out; options such as -k, -x, --lf and paths leave checks out"),
    "nothing-selected": Step("there is no case here yet, or none was selected", "regcase new --from-trial PATH"),
    "other-ledger": Step(
        "run where the ledger is that the fix was claimed on; if it is lost, claim the fix again and count anew",
        "regcase fix {case}",
    ),
    "flaky-over-budget": Step(
        "repair the flaky check, or let its owner set the case aside with [quarantine]",
        "regcase quarantine {case}",
    ),
    "drift-alarm": Step("see what changed since the check began to fail more often, in the agent or around it"),
    "claim-overdue": Step("make the missing live runs, or say in the case why the claim is kept open"),
    "quarantine-expired": Step(
        "repair the case, or let its owner renew or remove [quarantine] in its file", "regcase quarantine {case}"
    ),
    "too-many-quarantined": Step("repair a quarantined case before another one is set aside"),
    "flaky": Step("look at flaky checks while they are rare; the first failure is kept above"),
}
