"""Workflow commands of GitHub Actions that put a decision's reasons beside the case files they are about.

Wire format by GitHub's "Workflow commands" page and the toolkit's `command.ts`: ``::error file=..,line=..::text``,
``%``, CR and LF escaped everywhere, ``:`` and ``,`` in properties too. GitHub shows at most ten errors and ten
warnings a step, so the tenth says what the others would. Pure: files come in as text.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pytest_regcase.records.decision import CaseResult, GateDecision, Reason
from pytest_regcase.reporters.markdown_text import clipped
from pytest_regcase.toml_lines import Key, places_of

SHOWN_A_STEP = 10
"""How many annotations of one level GitHub shows of one step."""

_TEXT_LIMIT = 2000
_WARNS = (
    "recurred",
    "case-regressed",
    "failed-otherwise",
    "drift-alarm",
    "flaky-over-budget",
    "quarantine-expired",
    "too-many-quarantined",
    "flaky",
    "other-ledger",
    "separation-not-seen",
    "quarantine-proposed",
    "left-out",
)
"""The notes that are worth a warning, most important first; the others stand in the summary only."""

_OF_THE_FIX = frozenset(
    {
        "recurred",
        "failed-otherwise",
        "verifying",
        "claim-overdue",
        "other-ledger",
        "set-aside",
        "live-inconclusive",
        "repeated-draws",
        "repeated-transcripts",
        "identical-transcripts",
    }
)
_FILE_ERROR = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): (?P<says>.*)", re.DOTALL)


class CaseText(NamedTuple):
    """A case file as it is."""

    path: str
    """As written on a command line."""
    text: str


class _Annotation(NamedTuple):
    level: str
    title: str
    says: str
    file: str | None = None
    line: int | None = None

    def command(self) -> str:
        places = [("file", self.file), ("line", self.line), ("title", self.title)]
        named = ",".join(f"{key}={_property(str(value))}" for key, value in places if value is not None)
        return f"::{self.level} {named}::{_data(clipped(self.says, _TEXT_LIMIT))}"


def annotations(
    decision: GateDecision | None,
    files: Mapping[str, CaseText],
    *,
    in_repository: Callable[[str], str | None] = lambda path: path,
    troubles: Sequence[str] = (),
) -> list[str]:
    """Return one line an annotation: what is red as errors, most important first, then what warns.

    `files` are the case files by case id. `in_repository` returns a path relative to the repository's root; None
    for one outside. `troubles` make a run red whatever the decision says.
    """
    errors = [_Annotation("error", "regcase", each) for each in troubles]
    if decision is None:
        errors.append(_Annotation("error", "regcase", "no decision could be made"))
        return _at_most(errors)
    cases = {each.case_id: each for each in decision.cases}

    def placed(reason: Reason, level: str) -> list[_Annotation]:
        return _placed(reason, level, cases.get(reason.case_id or ""), files, in_repository)

    for reason in decision.reasons:
        if reason.red:
            errors += placed(reason, "error")
    notes = [each for each in decision.reasons if not each.red and each.code in _WARNS]
    notes.sort(key=lambda each: _WARNS.index(each.code))
    warnings = [each for note in notes for each in placed(note, "warning")]
    return [*_at_most(errors), *_at_most(warnings)]


def _placed(
    reason: Reason,
    level: str,
    case: CaseResult | None,
    files: Mapping[str, CaseText],
    in_repository: Callable[[str], str | None],
) -> list[_Annotation]:
    """The annotations of one reason: one, or one a problem of a file that does not load."""
    title = f"regcase {reason.code}" + (f": {reason.case_id}" if reason.case_id is not None else "")
    file = files.get(reason.case_id or "")
    if reason.code == "invalid-case":
        found = [_FILE_ERROR.fullmatch(line) for line in reason.text.splitlines()]
        named = [each for each in found if each is not None]
        if named and len(named) == len(found):
            return [
                _Annotation(level, title, each["says"], in_repository(each["file"]), int(each["line"]))
                for each in named
            ]
    path = in_repository(file.path) if file is not None else None
    if file is None or path is None:
        says = reason.text if reason.case_id is None else f"{reason.case_id}: {reason.text}"
        return [_Annotation(level, title, says)]
    return [_Annotation(level, title, reason.text, path, _line(reason, case, file.text))]


def _line(reason: Reason, case: CaseResult | None, text: str) -> int:
    """The line of the case file that the reason is about; 1 where no line says more than another."""
    data: dict[str, Any] = {}
    with suppress(ValueError, RecursionError):  # edited since it was read: the file still is the place
        data = tomllib.loads(text)
    return places_of(text).line(_key(reason, case, data)) or 1


def _key(reason: Reason, case: CaseResult | None, data: Mapping[str, Any]) -> Key:
    if reason.code in ("quarantined", "quarantine-expired"):
        return ("quarantine", "expires")
    last = {name: len(data.get(name, ())) - 1 for name in ("fix", "reopened")}
    if reason.code in _OF_THE_FIX and last["fix"] >= 0:
        return ("fix", last["fix"])
    if reason.code == "case-regressed" and last["reopened"] >= 0:
        return ("reopened", last["reopened"])
    if reason.code in ("causes-not-separated", "separation-not-seen"):
        return ("expected_recovery", "required")
    scenario = _scenario(reason, case)
    for place, hypothesis in enumerate(data.get("hypotheses", ())):
        if scenario is not None and scenario in hypothesis.get("simulations", ()):
            return ("hypotheses", place, "simulations")
    return ("observation",)


def _scenario(reason: Reason, case: CaseResult | None) -> str | None:
    """The scenario that the reason names first."""
    named = [
        (found.start(), each.name)
        for each in (case.scenarios if case is not None else ())
        if (found := re.search(rf"(?<![\w-]){re.escape(each.name)}(?![\w-])", reason.text)) is not None
    ]
    return min(named)[1] if named else None


def _at_most(found: Sequence[_Annotation]) -> list[str]:
    if len(found) <= SHOWN_A_STEP:
        return [each.command() for each in found]
    shown, rest = found[: SHOWN_A_STEP - 1], found[SHOWN_A_STEP - 1 :]
    says = "\n".join([f"and {len(rest)} more:", *(f"{each.title}: {each.says}" for each in rest)])
    return [each.command() for each in (*shown, _Annotation(rest[0].level, "regcase", says))]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
