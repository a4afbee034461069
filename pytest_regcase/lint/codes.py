"""The stable codes of `regcase check`: which of them is red, and what each says.

A code is never given another meaning, and never taken back; docs/lint.md shows this table.
"""

from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from pytest_regcase.toml_lines import Key

CodeName = Literal[
    "invalid-file",
    "broken-seal",
    "duplicate-id",
    "owner-missing",
    "next-decision-missing",
    "cause-asserted",
    "quarantine-expired",
    "unknown-simulation",
    "simulation-changed",
    "fix-without-baseline",
    "call-to-review",
    "observation-changed",
    "expectation-loosened",
    "rule-loosened",
    "symptom-narrowed",
    "hypothesis-removed",
    "simulation-removed",
    "case-removed",
    "quarantine-extended",
    "baseline-changed",
    "input-changed",
    "record-removed",
    "record-edited",
    "limit-loosened",
    "case-retired",
    "not-compared",
]


class Code(NamedTuple):
    """What a code stands for."""

    red: bool
    """Whether it alone makes `regcase check` exit with 1. What is not red is there to be read."""
    says: str


CODES: Final = MappingProxyType[CodeName, Code](
    {
        "invalid-file": Code(True, "a case or simulation file holds something that is not allowed"),
        "broken-seal": Code(
            True, "the observation or a recorded file is not what was sealed, or was never sealed"
        ),
        "duplicate-id": Code(True, "two cases have one id"),
        "owner-missing": Code(True, "nobody owns the case"),
        "next-decision-missing": Code(True, "nothing says what is to be decided next"),
        "cause-asserted": Code(True, "a title, a note or a name says why it failed, and no evidence carries it"),
        "quarantine-expired": Code(True, "the quarantine has ended, and still stands in the file"),
        "unknown-simulation": Code(True, "the case names a simulation that does not exist"),
        "simulation-changed": Code(True, "a simulation has other content under its old id"),
        "fix-without-baseline": Code(True, "a fix is claimed, and nothing says how often it failed before"),
        "call-to-review": Code(False, "replies that are new drive this call of a tool, or drive a call no longer"),
        "observation-changed": Code(True, "what was observed is another thing now, and no amendment says so"),
        "expectation-loosened": Code(True, "less is expected of the agent than before"),
        "rule-loosened": Code(True, "a rule lets more failures pass than before"),
        "symptom-narrowed": Code(True, "fewer failures count as the symptom come back than before"),
        "hypothesis-removed": Code(True, "a hypothesis is gone"),
        "simulation-removed": Code(True, "a simulation is no longer run for the case"),
        "case-removed": Code(True, "a case is gone"),
        "quarantine-extended": Code(True, "a case was quarantined, or for longer than before"),
        "baseline-changed": Code(True, "the count of failures before any fix is another one now, or gone"),
        "input-changed": Code(True, "what the agent is given comes from somewhere else now, or is gone"),
        "record-removed": Code(True, "evidence, a fix, an amendment or another appended record is gone"),
        "record-edited": Code(True, "an appended record says something else now"),
        "limit-loosened": Code(True, "a floor in [tool.regcase.limits] is lower than before, or gone"),
        "case-retired": Code(False, "a case was retired: it is no longer run and judges nothing"),
        "not-compared": Code(False, "the older version cannot be read, so nothing was compared with it"),
    }
)


class Found(NamedTuple):
    """What a rule found, and the key of the file at which it stands."""

    code: CodeName
    key: Key
    text: str


class LintRow(NamedTuple):
    """One line of `regcase check`, as it is printed."""

    code: CodeName
    text: str
    file: str | None = None
    line: int | None = None
    case_id: str | None = None

    @property
    def red(self) -> bool:
        """Whether this row alone makes the check fail."""
        return CODES[self.code].red

    def to_plain(self) -> dict[str, Any]:
        """Return the row with the keys that it has, in the order of the interface."""
        values = {
            "code": self.code,
            "case_id": self.case_id,
            "file": self.file,
            "line": self.line,
            "text": self.text,
        }
        return {key: value for key, value in values.items() if value is not None}
