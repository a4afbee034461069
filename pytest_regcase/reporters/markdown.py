"""The decision as Markdown for a comment on a pull request or a step summary: reasons, what to do, one row a case.

Whatever an agent or a case file says is shown and does nothing (`markdown_text`), and the whole stays below what
GitHub takes for a comment; what is left out is said.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import CaseResult, GateDecision, Reason, ScenarioResult
from pytest_regcase.reporters.markdown_text import code, plain
from pytest_regcase.reporters.next_steps import next_steps
from pytest_regcase.reporters.terminal import WORDS, counted, details, telling
from pytest_regcase.rules.gate import SEEN_TO_BE_WRONG

LIMIT_BYTES = 64_000
"""GitHub refuses a comment of more than 65,536 characters; bytes of UTF-8 are the stricter measure."""

_REASON_BYTES = 24_000
_NEXT_BYTES = 6_000
_REST_BYTES = 300
_LOOKS_A_ROW = 8
_REST = "the JSON report (`--regcase-report=decision.json`) has everything"

_Made = Mapping[tuple[str, str], list[AttemptRecord]]


class MarkdownReporter:
    """Writes Markdown, at most `LIMIT_BYTES` of it; the cases that need a look come first."""

    suffix = ".md"

    def write(self, decision: GateDecision, attempts: Sequence[AttemptRecord]) -> str:
        """Return the report."""
        made: dict[tuple[str, str], list[AttemptRecord]] = {}
        for each in sorted(attempts, key=lambda one: (one.run, one.try_number)):
            made.setdefault((each.case_label, each.scenario), []).append(each)
        parts = [
            f"## regcase: {decision.decision.upper()}",
            f"Profile `{decision.profile}`, {code(decision.policy)}: {plain(counted(decision))}.",
        ]
        parts += _section("Why", [_reason(each) for each in decision.reasons], _REASON_BYTES, "reasons")
        parts += _section("Next", list(_next(decision)), _NEXT_BYTES, "steps")
        used = sum(_bytes(each) + 2 for each in parts)
        rows = [_row(each, made) for each in sorted(decision.cases, key=_urgency(decision))]
        head = "| case | state | checks | what to look at |\n| --- | --- | --- | --- |"
        if rows:
            table, rest = _fitting(rows, LIMIT_BYTES - used - _bytes(head) - _REST_BYTES, "cases")
            parts += ["### Cases", "\n".join([head, *table]), *rest]
        return "\n\n".join(parts) + "\n"


def _section(title: str, lines: list[str], most_bytes: int, what: str) -> Iterator[str]:
    if lines:
        kept, rest = _fitting(lines, most_bytes, what)
        yield f"### {title}"
        yield "\n".join(kept)
        yield from rest


def _fitting(lines: Sequence[str], most_bytes: int, what: str) -> tuple[list[str], list[str]]:
    """Return the lines that fit, and a sentence about the others where there are any."""
    kept: list[str] = []
    for line in lines:
        most_bytes -= _bytes(line) + 1
        if most_bytes < 0:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    return kept, [f"… and {left} more {what} that have no room here; {_REST}."] if left else []


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _reason(reason: Reason) -> str:
    kind = "note" if not reason.red else "**FAIL**" if reason.code in SEEN_TO_BE_WRONG else "**UNPROVEN**"
    first, *others = reason.text.splitlines() or [""]
    # The text of a file error names its file itself.
    named = reason.case_id is not None and not first.startswith(reason.case_id)
    text = "<br>".join(plain(each) for each in (first, *others) if each.strip())
    return f"- {kind} {code(reason.case_id or '')}: {text}" if named else f"- {kind} {text}"


def _next(decision: GateDecision) -> Iterator[str]:
    for step in next_steps(decision):
        yield f"- {plain(step.text)}" + (f": {code(step.command)}" if step.command is not None else "")


def _urgency(decision: GateDecision) -> "_Order":
    return _Order({each.case_id for each in decision.reasons if each.red})


class _Order:
    """Sorts cases: red ones, then those with anything that did not pass, then the others; each by id."""

    def __init__(self, red: Iterable[str | None]) -> None:
        self._red = frozenset(red)

    def __call__(self, case: CaseResult) -> tuple[bool, bool, str]:
        return case.case_id not in self._red, not any(map(_needs_a_look, case.scenarios)), case.label


def _needs_a_look(scenario: ScenarioResult) -> bool:
    return scenario.result not in ("passed", "counted")


def _row(case: CaseResult, made: _Made) -> str:
    state = f"{case.state}, quarantined" if case.quarantined else case.state
    results = Counter(each.result for each in case.scenarios if each.name != "live")
    checks = ", ".join(f"{results[key]} {word}" for key, (word, _) in WORDS.items() if results[key])
    broken = [each for each in case.scenarios if _needs_a_look(each)]
    looks = [_look(case, each, made) for each in broken[:_LOOKS_A_ROW]]
    looks += [f"… and {len(broken) - _LOOKS_A_ROW} more"] if len(broken) > _LOOKS_A_ROW else []
    if case.claim is not None and case.state not in ("closed", "retired"):
        looks.append(f"fix {case.claim.fix_number}: {case.claim.clean} of {case.claim.need} clean live runs")
    return f"| {code(case.label)} | {state} | {checks or 'none'} | {'<br>'.join(looks)} |"


def _look(case: CaseResult, scenario: ScenarioResult, made: _Made) -> str:
    """The scenario, its result, and the facts of the attempt that shows it."""
    attempt = telling(scenario, list(made.get((case.label, scenario.name), ())))
    said = [plain(each, 200) for each in details(case, scenario)[:1]]
    if attempt is not None and scenario.result == "inconclusive" and attempt.says is not None:
        said = [plain(attempt.says, 300)]
    elif attempt is not None:
        said += [plain(each.says, 200) for each in attempt.broken[:3]]
    if attempt is not None and attempt.folder is not None:
        said.append(code(attempt.folder))
    return f"{code(scenario.name)} {WORDS[scenario.result][0]}: {'; '.join(said)}".removesuffix(": ")
