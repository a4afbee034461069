"""The testcases of a JUnit XML file, one after the other, within bounds.

Knows the elements that pytest (xunit1, xunit2) and Surefire write; makes no trial of them; imports no importer.
A DOCTYPE is refused, so no entity can be declared, expanded or fetched. What is whole before a break is kept.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from xml.parsers import expat

from pytest_regcase.importers.reading import DEPTH_LIMIT, printable, read_document, refused
from pytest_regcase.records.plurals import how_many

ResultKind = Literal["failure", "error", "skipped"]
_RESULTS: Final[dict[str, ResultKind]] = {"failure": "failure", "error": "error", "skipped": "skipped"}
_RERUNS: Final = frozenset({"rerunFailure", "rerunError", "flakyFailure", "flakyError"})
"""Surefire's own: earlier attempts of the testcase that they stand in."""


@dataclass
class Result:
    """One `failure`, `error` or `skipped` of a testcase."""

    kind: ResultKind
    type: str | None
    message: str | None
    text: str = ""


@dataclass
class Testcase:
    """One testcase as it stands in the file."""

    __test__ = False

    classname: str
    name: str
    seconds: str | None
    place: str | None
    """File and line, which xunit1 keeps."""
    suite: str | None
    suite_started_at: str | None
    results: list[Result] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    reruns: list[str] = field(default_factory=list)
    """Names of the elements that tell of earlier attempts."""

    @property
    def id(self) -> str:
        """What a person calls it: class and name, as in pytest's own short form."""
        return f"{self.classname}::{self.name}" if self.classname else self.name


class JUnitFile:
    """The testcases of a file, and in `lost` what its breaking off has cost, in words."""

    def __init__(self, path: Path) -> None:
        self.testcases: list[Testcase] = []
        self.lost: str | None = None
        self._path = path
        self._depth = 0
        self._suites: list[tuple[str | None, str | None]] = []
        self._case: Testcase | None = None
        self._result: Result | None = None
        self._texts: list[str] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._said
        self._read()

    def _read(self) -> None:
        # In one piece: fed bit by bit, older expats look at a long token again from its start with every bit.
        content = read_document(self._path)
        try:
            self._parser.Parse(content, True)
        except (expat.ExpatError, ValueError, LookupError) as error:  # the latter two of its encoding
            why = f"it is no whole XML document ({printable(str(error))})"
            if not self.testcases:
                raise refused("corrupt", self._path, why, "Copy it again from where it was written.") from error
            self.lost = f"{why}: {how_many(len(self.testcases), 'whole testcase')} before that, the rest is lost"

    def _doctype(self, *_: object) -> None:
        raise refused(
            "doctype",
            self._path,
            "it declares a DOCTYPE, which can make a reader fetch or expand what is not in the file",
            "No test runner writes one. If you trust the file, take the declaration out.",
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise refused(
                "corrupt", self._path, f"it is nested deeper than {DEPTH_LIMIT}", "Check what wrote the file."
            )
        given = attributes.get
        if tag == "testsuite":
            self._suites.append((given("name"), given("timestamp")))
        elif tag == "testcase":
            suite, started_at = self._suites[-1] if self._suites else (None, None)
            place = ":".join(each for each in (given("file"), given("line")) if each) or None
            self._case = Testcase(
                given("classname", ""), given("name", ""), given("time"), place, suite, started_at
            )
        elif self._case is None:
            return
        elif tag in _RESULTS:
            self._result = Result(_RESULTS[tag], given("type"), given("message"))
            self._texts = []
            self._case.results.append(self._result)
        elif tag in _RERUNS:
            self._case.reruns.append(tag)
        elif tag == "property" and (name := given("name")):
            self._case.properties[name] = given("value", "")

    def _said(self, text: str) -> None:
        if self._result is not None:
            self._texts.append(text)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testsuite" and self._suites:
            self._suites.pop()
        elif tag == "testcase" and self._case is not None:
            self.testcases.append(self._case)
            self._case = None
        elif tag in _RESULTS and self._result is not None:
            self._result.text = "".join(self._texts)
            self._result = None
