"""Attempts and a decision as names and values for a JUnit file. Knows no XML."""

from collections.abc import Iterator, Sequence

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import GateDecision, Reason
from pytest_regcase.reporters.junit_file import Properties
from pytest_regcase.reporters.layout import one_line


def check_properties(attempts: Sequence[AttemptRecord], decision: GateDecision | None = None) -> Properties:
    """Return what the tries of one check showed, the last one's facts first; nothing where there was no try.

    ``regcase.result`` is what the decision calls the check, once there is a decision.
    """
    return tuple(_check(sorted(attempts, key=lambda each: each.try_number), decision)) if attempts else ()


def suite_properties(decision: GateDecision | None, troubles: Sequence[str] = ()) -> Properties:
    """Return the decision and each of its reasons; ``regcase.trouble`` is what kept it from being counted."""
    found: list[tuple[str, str]] = []
    if decision is not None:
        found += [("decision", decision.decision), ("profile", decision.profile), ("policy", decision.policy)]
        found += [("reason" if each.red else "note", f"{each.code}: {_said(each)}") for each in decision.reasons]
    found += [("trouble", one_line(each)) for each in troubles]
    return tuple((f"regcase.{name}", value) for name, value in found)


def why_red(decision: GateDecision | None, troubles: Sequence[str] = ()) -> str | None:
    """Return why a run is red, a line a reason; None where it is green."""
    if decision is None:
        return "\n".join(["no decision could be made", *troubles])
    red = [_said(each) for each in decision.reasons if each.red]
    if decision.decision == "pass" and not troubles:
        return None
    head = f"{decision.decision} (profile {decision.profile}, {decision.policy})"
    return "\n".join([f"{head}: {red[0] if red else troubles[0]}", *red[1:], *troubles])


def _said(reason: Reason) -> str:
    text = one_line(reason.text)
    named = reason.case_id is None or text.startswith(reason.case_id)
    return text if named else f"{reason.case_id}: {text}"


def _check(tries: Sequence[AttemptRecord], decision: GateDecision | None) -> Iterator[tuple[str, str]]:
    last = tries[-1]
    yield "regcase.case", last.case_id
    yield "regcase.scenario", last.scenario
    yield "regcase.run", str(last.run)
    yield "regcase.agent", last.agent
    yield "regcase.verdict", _verdict(last)
    yield "regcase.tries", ", ".join(_verdict(each) for each in tries)
    result = _result(last, decision)
    if result is not None:
        yield "regcase.result", result
    broken = dict.fromkeys(finding.expectation for each in tries for finding in each.broken)
    if broken:
        yield "regcase.broken", ", ".join(broken)
    if last.wire.delivered is not None:
        yield "regcase.delivered", str(last.wire.delivered).lower()
    for name, value in last.digests:
        if value is not None:
            yield f"regcase.digest.{name}", value
    for each in tries:
        if each.folder is not None:
            yield "regcase.folder", each.folder


def _verdict(record: AttemptRecord) -> str:
    return record.verdict if record.reason is None else f"{record.verdict} ({record.reason})"


def _result(last: AttemptRecord, decision: GateDecision | None) -> str | None:
    """What the decision calls the check; a live run counts for its case and has no result of its own."""
    if decision is None or last.scenario == "live":
        return None
    named = [
        scenario.result
        for case in decision.cases
        if case.label == last.case_label
        for scenario in case.scenarios
        if scenario.name == last.scenario
    ]
    return named[0] if len(named) == 1 else None
