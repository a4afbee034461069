"""A handover as sections of rows, for the terminal and for Markdown alike, and as a document.

Knows what the words mean to a reader; decides nothing.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_regcase.records.case import Evidence
    from pytest_regcase.records.decision import Claim
    from pytest_regcase.records.separation import Separation
    from pytest_regcase.session.case_life.handover import Handover

UNKNOWN = "unknown: no lower-level evidence is cited"


class Row(NamedTuple):
    """One row: a label where it has one, its text, and a command to copy where it has one."""

    label: str
    text: str
    command: str | None = None


class Section(NamedTuple):
    """A heading and its rows; the first section has none."""

    heading: str
    rows: Sequence[Row]


def sections(handover: "Handover") -> list[Section]:
    """Return what is told, in the order in which it is needed; a section without anything to tell is left out."""
    case = handover.loaded.case
    found = [
        Section("", list(_six(handover))),
        Section("What was observed", [Row("", case.symptom), Row("state", _state(handover))]),
        Section("Evidence", list(_evidence(handover.evidence))),
        Section("What each simulation tests, and what it does not", list(_simulations(handover))),
        Section("Where the rerun rule stands", list(_rule(handover))),
        Section("What the agent's own logs tell apart", list(_separation(handover.separation))),
        Section("Open questions", [Row("", each) for each in case.unresolved_questions]),
        Section("To run", [Row("", each.text, each.command) for each in handover.commands]),
    ]
    return [each for each in found if each.rows]


def _six(handover: "Handover") -> Iterator[Row]:
    yield Row("owner", handover.owner)
    yield Row("source_event", handover.source_event)
    yield Row("cause_status", handover.cause_status)
    yield Row("simulation_ids", ", ".join(handover.simulation_ids) or "none")
    yield Row("rerun_rule", _rule_text(handover))
    yield Row("next_decision", handover.next_decision)


def _rule_text(handover: "Handover") -> str:
    rule = handover.rerun_rule
    need = handover.clean_reruns
    runs = f"{need} clean live runs: " if need is not None else ""
    return f"{runs}failure rate below {rule.max_failure_rate} at risk {rule.risk}"


def _state(handover: "Handover") -> str:
    quarantine = handover.loaded.case.quarantine
    if quarantine is None:
        return handover.state
    return f"{handover.state}; quarantined until {quarantine.expires} by {quarantine.owner}: {quarantine.reason}"


def _evidence(evidence: "Sequence[Evidence]") -> Iterator[Row]:
    if not any(each.withdrawn is None for each in evidence):
        yield Row("", UNKNOWN)
    for each in evidence:
        what = (
            f"{each.stance} {each.hypothesis}: {each.file}, lines {each.lines}: {each.why} (cited by {each.who})"
        )
        if each.withdrawn is not None:
            what = f"withdrawn by {each.withdrawn.who} ({each.withdrawn.why}): {what}"
        yield Row(each.id, what)


def _simulations(handover: "Handover") -> Iterator[Row]:
    known = [each for each in handover.simulations if each.kind is not None]
    # The first is the trial, the same for all; what all the others share is said once, too.
    trial = known[0].does_not_test[0] if known else None
    shared = [text for text in known[0].does_not_test if len(known) > 1] if known else []
    shared = [text for text in shared if text != trial and all(text in each.does_not_test for each in known)]
    for each in handover.simulations:
        yield Row(each.id, f"tests {each.tests}")
        own = [text for text in each.does_not_test if text != trial and text not in shared]
        if own:
            yield Row("", f"limits: {'; '.join(own)}")
    yield from (Row("", f"limits of each: {text}") for text in shared)
    if trial is not None:
        yield Row("", f"no simulation tests {trial}")


def _rule(handover: "Handover") -> Iterator[Row]:
    case, claim = handover.loaded.case, handover.claim
    if handover.not_read is not None:
        yield Row("", handover.not_read)
    if not case.fix:
        yield Row("", "no fix is claimed, so no live run is counted yet")
    elif claim is not None:
        yield from _claim(claim)
    for each in handover.reasons:
        yield Row("", each)


def _claim(claim: "Claim") -> Iterator[Row]:
    where = f"fix {claim.fix_number}: {claim.clean} of {claim.need} clean live runs"
    if claim.refuted_by_run is not None:
        where += f"; run {claim.refuted_by_run} refutes it"
    yield Row("", where)
    bound = f", upper bound {claim.bound}" if claim.bound is not None else ""
    if claim.kind != "none":
        yield Row("", f"{claim.kind}{bound}")
    yield from (Row("", f"not there: {each}") for each in claim.lacks)
    if claim.would_pass_unchanged is not None:
        often = claim.would_pass_unchanged
        yield Row("", f"if nothing had changed, {claim.need} clean runs would still happen with chance {often}")
    yield from (Row("", f"note: {each}") for each in claim.warnings)


def _separation(separation: "Separation | None") -> Iterator[Row]:
    from pytest_regcase.recovery.separation import sentences

    if separation is not None:
        yield from (Row("", each) for each in sentences(separation))


def document(handover: "Handover") -> dict[str, object]:
    """Return the handover as plain JSON: the six fields first, then the rest; what is absent is left out."""
    from pytest_regcase.toml_lines import shown

    case = handover.loaded.case
    rule: dict[str, object] = dict(handover.rerun_rule.to_plain())
    rule |= {"clean_reruns": handover.clean_reruns} if handover.clean_reruns is not None else {}
    six: dict[str, object] = {
        "owner": handover.owner,
        "source_event": handover.source_event,
        "cause_status": handover.cause_status,
        "simulation_ids": list(handover.simulation_ids),
        "rerun_rule": rule,
        "next_decision": handover.next_decision,
    }
    extras: dict[str, object | None] = {
        "schema": 1,
        "id": handover.loaded.id,
        "title": case.title,
        "file": shown(handover.loaded.path),
        "symptom": case.symptom,
        "state": handover.state,
        "quarantine": None if case.quarantine is None else case.quarantine.to_sparse(),
        "evidence": [each.to_sparse() for each in handover.evidence],
        "simulations": [
            {
                "id": each.id,
                "hypothesis": each.hypothesis,
                **({"class": each.kind} if each.kind is not None else {}),
                "tests": each.tests,
                "does_not_test": list(each.does_not_test),
            }
            for each in handover.simulations
        ],
        "claim": None if handover.claim is None else handover.claim.to_sparse(),
        "reasons": list(handover.reasons),
        "ledger_not_read": handover.not_read,
        "separation": None if handover.separation is None else handover.separation.to_sparse(),
        "unresolved_questions": list(case.unresolved_questions),
        "commands": [{"text": each.text, "command": each.command} for each in handover.commands],
    }
    return six | {key: value for key, value in extras.items() if value is not None}
