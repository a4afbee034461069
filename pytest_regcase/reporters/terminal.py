"""The terminal summary: a decision as lines of at most 80 columns, readable without colour.

Order: what ran, what broke with its facts, what proved nothing, what differs from the recording, what the logs
tell apart, claimed fixes, quarantine, what to do next, and last the reasons and the decision. The same lines for
the same facts, with and without xdist.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pytest_regcase.records.attempt import AttemptRecord, WireSummary
from pytest_regcase.records.decision import CaseResult, Claim, GateDecision, Reason, ScenarioResult
from pytest_regcase.recovery.separation import sentences
from pytest_regcase.reporters.layout import BOLD, GREEN, RED, YELLOW, painted, wrapped
from pytest_regcase.reporters.next_steps import next_steps
from pytest_regcase.rules.exact import percent
from pytest_regcase.rules.gate import SEEN_TO_BE_WRONG

Result = Literal["passed", "broken", "flaky", "inconclusive", "not-run", "counted"]

WORDS: Mapping[Result, tuple[str, str]] = {
    "passed": ("passed", GREEN),
    "broken": ("BROKEN", RED),
    "flaky": ("FLAKY", YELLOW),
    "inconclusive": ("INCONCLUSIVE", RED),
    "not-run": ("NOT RUN", RED),
    "counted": ("counted", BOLD),
}
"""Scenario result -> the word in the table and its colour. What needs a look is in capitals."""

_DECISION_COLOURS = {"pass": GREEN, "fail": RED, "unproven": RED}
_WORD_WIDTH = max(len(word) for word, _ in WORDS.values())
_NAME_WIDTH_LIMIT = 28
_SHOWN_ELSEWHERE = frozenset({"flaky", "quarantined", "verifying"})
"""Notes that have a section of their own; they are repeated among the reasons only when they are red."""


def summary_lines(
    decision: GateDecision, attempts: Sequence[AttemptRecord] = (), *, width: int = 80, colour: bool = False
) -> list[str]:
    """Return the summary of one session.

    `attempts` are the session's; the facts of what broke come from them, since the decision holds no measurement.
    """
    by_scenario: dict[tuple[str, str], list[AttemptRecord]] = {}
    for each in sorted(attempts, key=lambda one: (one.run, one.try_number)):
        by_scenario.setdefault((each.case_label, each.scenario), []).append(each)
    sections = [
        _table(decision, width, colour=colour),
        _scenarios("What broke", ("broken",), decision, by_scenario, width),
        _scenarios(_flaky_title(decision.policy), ("flaky",), decision, by_scenario, width),
        _scenarios("What proved nothing", ("inconclusive",), decision, by_scenario, width),
        _differences(decision, attempts, width),
        _separations(decision, width),
        _claims(decision, width),
        _quarantined(decision, width),
        _next(decision, width),
        _reasons(decision, width, colour=colour),
    ]
    return [line for section in sections if section for line in (*section, "")][:-1]


def _flaky_title(policy: str) -> str:
    name, _, runs = policy.partition(":")
    if name != "confirm":
        return f"Flaky: failed, and not red under {policy}"
    which = {"1": "the confirm run", "2": "both confirm runs"}.get(runs, f"all {runs} confirm runs")
    return f"Flaky: failed once, then passed {which}"


def _table(decision: GateDecision, width: int, *, colour: bool) -> list[str]:
    names = [len(each.name) for case in decision.cases for each in case.scenarios]
    name_width = min(max(names, default=0), _NAME_WIDTH_LIMIT)
    lines: list[str] = []
    for case in decision.cases:
        quarantined = ", quarantined: does not gate" if case.quarantined else ""
        lines.extend(wrapped(f"{case.label}  ({case.state}{quarantined})", width, then="    "))
        for scenario in case.scenarios:
            lines.extend(_row(case, scenario, name_width, width, colour=colour))
        if not case.scenarios:
            lines.append("  not run any more" if case.state == "retired" else "  nothing was planned")
    for each in decision.reasons:
        if each.code == "invalid-case":
            lines.extend(wrapped(each.case_id or "", width, then="    "))
            lines.append(
                f"  {painted('INVALID', RED, colour=colour)}  nothing of it was run; the reason stands below"
            )
    return lines


def _row(
    case: CaseResult, scenario: ScenarioResult, name_width: int, width: int, *, colour: bool
) -> Iterator[str]:
    word, code = WORDS[scenario.result]
    said = details(case, scenario)
    name = f"  {scenario.name:<{name_width}}  "
    if len(scenario.name) > name_width:
        yield from wrapped(scenario.name, width, first="  ")
        name = " " * (name_width + 4)
    if not said:
        yield name + painted(word, code, colour=colour)
        return
    # Wrapped as if the word were blank: colour codes take no column.
    blank = " " * (len(name) + _WORD_WIDTH + 2)
    first, *others = [line for detail in said for line in wrapped(detail, width, first=blank)]
    yield name + painted(f"{word:<{_WORD_WIDTH}}", code, colour=colour) + first[len(name) + _WORD_WIDTH :]
    yield from others


def details(case: CaseResult, scenario: ScenarioResult) -> list[str]:
    """Return what stands beside a scenario's result, most important first."""
    if scenario.name == "live" and case.claim is not None:
        return [f"{case.claim.clean} of {case.claim.need} clean{_stopped(case.claim)}"]
    if scenario.result in ("inconclusive", "not-run"):
        return [scenario.why] if scenario.why is not None else []
    parts: list[str] = []
    if scenario.result in ("broken", "flaky"):
        parts.append(", ".join(dict.fromkeys(each.expectation for each in scenario.broken)))
    if scenario.checked is not None:
        unseen = f", cannot see: {', '.join(scenario.cannot_see)}" if scenario.cannot_see else ""
        parts.append(f"checked {scenario.checked} of {scenario.checked_of}{unseen}")
    return [each for each in parts if each]


def _stopped(claim: Claim) -> str:
    return "" if claim.refuted_by_run is None else f", stopped by run {claim.refuted_by_run}"


def _scenarios(
    title: str,
    results: tuple[str, ...],
    decision: GateDecision,
    by_scenario: dict[tuple[str, str], list[AttemptRecord]],
    width: int,
) -> list[str]:
    lines: list[str] = []
    for case in decision.cases:
        for scenario in case.scenarios:
            if scenario.result in results:
                made = by_scenario.get((case.label, scenario.name), [])
                lines.extend(_scenario(case, scenario, made, width))
    return [title, *lines] if lines else []


def _scenario(case: CaseResult, scenario: ScenarioResult, made: list[AttemptRecord], width: int) -> Iterator[str]:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(scenario.counts.items()))
    yield from wrapped(
        f"{case.label}, {scenario.name}: {_many(scenario.run, 'attempt')} ({counts})",
        width,
        first="  ",
        then="      ",
    )
    shown = telling(scenario, made)
    if scenario.result == "inconclusive":
        reason = shown.says if shown is not None and shown.says else scenario.why or "no reason is recorded"
        yield from wrapped(reason, width, first="    ")
    else:
        yield from _findings(scenario, shown, width)
    if shown is not None and shown.folder is not None:
        yield from wrapped(shown.folder, width, first="    see: ", then="      ")


def telling(scenario: ScenarioResult, made: list[AttemptRecord]) -> AttemptRecord | None:
    """Return the attempt whose facts are shown: the first that shows what the scenario came out as."""
    if scenario.result == "inconclusive":
        nothing = [each for each in made if each.verdict in ("inconclusive", "did-not-finish")]
        return next(iter(nothing), made[0] if made else None)
    return next((each for each in made if each.broken), None)


def _findings(scenario: ScenarioResult, shown: AttemptRecord | None, width: int) -> Iterator[str]:
    told: dict[tuple[str, str | None], str] = {}
    if shown is not None:
        told = {(each.expectation, each.code): each.says for each in shown.broken}
    for each in scenario.broken:
        code = f" ({each.code})" if each.code else ""
        says = told.get((each.expectation, each.code), each.says)
        yield from wrapped(f"{each.expectation}{code}: {says}", width, first="    ", then="      ")


def _differences(decision: GateDecision, attempts: Sequence[AttemptRecord], width: int) -> list[str]:
    """One line a case, from the attempt that came furthest: all of a case replay the same recording."""
    by_case: dict[str, list[WireSummary]] = {}
    for each in attempts:
        if each.wire.differences:
            by_case.setdefault(each.case_label, []).append(each.wire)
    lines: list[str] = []
    for case in decision.cases:
        made = by_case.get(case.label)
        if made:
            furthest = max(made, key=lambda wire: len(wire.requests_a_step))
            text = f"{case.label}: {'; '.join(furthest.differences)}"
            lines.extend(wrapped(text, width, first="  ", then="      "))
    return ["Today's agent beside the recording", *lines] if lines else []


def _separations(decision: GateDecision, width: int) -> list[str]:
    """Per case: what its logs cannot separate, then what that rests on."""
    lines: list[str] = []
    for case in decision.cases:
        *found, rests_on = sentences(case.separation) if case.separation is not None else ("",)
        if rests_on:
            text = "; ".join(found) or rests_on
            lines.extend(wrapped(f"{case.label}: {text}", width, first="  ", then="      "))
            lines.extend(wrapped(rests_on, width, first="    ", then="      ") if found else ())
    return ["What the agent's own logs tell apart", *lines] if lines else []


def _claims(decision: GateDecision, width: int) -> list[str]:
    lines: list[str] = []
    for case in decision.cases:
        if case.claim is not None and case.state not in ("closed", "retired"):
            for index, text in enumerate(claim_lines(case.label, case.claim)):
                lines.extend(wrapped(text, width, first="    " if index else "  ", then="      "))
    return ["Claimed fixes", *lines] if lines else []


def claim_lines(case_id: str, claim: Claim) -> Iterator[str]:
    """Yield where a claimed fix stands, and how each number was got; the first line names the case."""
    allowed = f", {_many(claim.failures, 'failed run')} that plan {claim.plan} allows" if claim.failures else ""
    where = f"{claim.clean} of {claim.need} clean live runs{allowed}{_stopped(claim)}"
    yield f"{case_id}, fix {claim.fix_number}: {where}"
    if claim.refuted_by_run is not None:
        return
    yield claim.need_from
    yield from _claimed(claim)
    if claim.compared is not None:
        yield f"beside the baseline: {claim.compared}"
    if claim.clean:
        yield f"fresh draws {claim.fresh}, distinct transcripts {claim.distinct}, sessions {claim.sessions}"
    if claim.missing:
        named = ", ".join(str(each) for each in claim.missing[:5])
        more = f" and {len(claim.missing) - 5} more" if len(claim.missing) > 5 else ""
        yield f"to be made again, since they proved nothing: run {named}{more}"
    for each in claim.lacks:
        yield f"not there yet: {each}"
    if claim.would_pass_unchanged is not None:
        often = percent(claim.would_pass_unchanged)
        yield f"if nothing had changed, {claim.need} clean runs would still happen {often} of the time"
    if claim.risk_over_fixes is not None:
        one = "this fix" if claim.fix_number == 1 else f"one of {claim.fix_number} fixes"
        yield f"risk that {one} passes by luck: {percent(claim.risk_over_fixes)}"
    for each in claim.warnings:
        yield f"note: {each}"


def _claimed(claim: Claim) -> Iterator[str]:
    """The word for what is shown so far, and the bound that goes with it."""
    below = f"failure rate below {percent(claim.max_rate)}, upper bound {claim.bound}"
    if claim.kind == "BOUNDED":
        yield f"BOUNDED: {below}"
    elif claim.kind == "FIXED":
        yield f"FIXED: {below}, and it fails less than before"
    elif claim.kind != "none":
        what = "it fails less than before" if claim.kind == "IMPROVED" else "nothing failed in the baseline"
        yield f"{claim.kind}: {what}; the rate is not bounded yet"
    if claim.bound is not None and claim.kind not in ("BOUNDED", "FIXED"):
        worst = ", what proved nothing taken as failed" if claim.missing else ""
        yield f"upper bound so far, at this look only{worst}: {claim.bound}"


def _quarantined(decision: GateDecision, width: int) -> list[str]:
    lines = [
        line
        for each in decision.reasons
        if each.code in ("quarantined", "quarantine-expired")
        for line in wrapped(f"{each.case_id}: {each.text}", width, first="  ", then="      ")
    ]
    return ["Quarantined: run and reported, does not gate", *lines] if lines else []


def _next(decision: GateDecision, width: int) -> list[str]:
    lines: list[str] = []
    for step in next_steps(decision):
        lines.extend(wrapped(step.text + (":" if step.command else ""), width, first="  - "))
        if step.command is not None:
            lines.extend(wrapped(step.command, width, first="      "))
    return ["Next", *lines] if lines else []


def _reasons(decision: GateDecision, width: int, *, colour: bool) -> list[str]:
    lines: list[str] = []
    for each in decision.reasons:
        if not each.red and each.code in _SHOWN_ELSEWHERE:
            continue
        kind = "note" if not each.red else "FAIL" if each.code in SEEN_TO_BE_WRONG else "UNPROVEN"
        for index, text in enumerate(_texts(each)):
            lines.extend(wrapped(text, width, first=f"  {'' if index else kind:<8}  "))
    head = f"{decision.decision.upper()} (profile {decision.profile}, {decision.policy}): {counted(decision)}"
    first, *others = wrapped(head, width, then="    ")
    return [
        *(["Reasons", *lines] if lines else []),
        painted(first, _DECISION_COLOURS[decision.decision], colour=colour),
        *others,
    ]


def _texts(reason: Reason) -> list[str]:
    """The reason's lines; those of a file error name their file themselves."""
    first, *others = reason.text.splitlines() or [""]
    if reason.case_id is not None and not first.startswith(reason.case_id):
        first = f"{reason.case_id}: {first}"
    return [first, *others]


def counted(decision: GateDecision) -> str:
    """Return how many cases and checks there are, and how the checks of the gating cases came out."""
    gating = [case for case in decision.cases if not case.quarantined]
    results = Counter(each.result for case in gating for each in case.scenarios if each.name != "live")
    named = [f"{results[key]} {word.lower()}" for key, (word, _) in WORDS.items() if results[key]]
    parts = [
        _many(len({case.case_id for case in decision.cases}), "case"),
        f"{_many(results.total(), 'check')}: {', '.join(named) or 'none'}",
    ]
    invalid = sum(each.code == "invalid-case" for each in decision.reasons)
    if invalid:
        parts.append(f"{_many(invalid, 'invalid case')} beside them")
    quarantined = {case.case_id for case in decision.cases if case.quarantined}
    if quarantined:
        parts.append(f"{len(quarantined)} quarantined beside them")
    return ", ".join(parts)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
