"""JUnit XML of a test run: one trial a testcase and attempt.

After what pytest (xunit1, xunit2) writes, and Surefire's elements for reruns. Must import no other importer.

What surprises: an exception in the call is a `failure` just as a failed assertion is; an `error` is a set-up or
tear-down, and one beside a failure is a second testcase of the same name; pytest-rerunfailures leaves each attempt
as a testcase of the same name, and the failed first one carries no failure at all.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.junit_testcases import JUnitFile, Result, Testcase
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import bare, digests_of, exception_chain, filled, refused
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import ErrorLink, Trial, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, Outcome, Termination

_CAN_SHOW: Final[tuple[Expectation, ...]] = ("log_failure", "mark_failure")
_COMMENT: Final = re.compile(rb"<!--.*?-->", re.DOTALL)
_ROOT_WITHIN_BYTES: Final = 8 * 1024
_FIRST_ELEMENT: Final = re.compile(rb"<([A-Za-z_][\w.:-]*)")
_PHASE: Final = re.compile(r'failed on (?P<phase>setup|teardown) with "(?P<said>.*)"', re.DOTALL)
_TYPED: Final = re.compile(r"(?P<type>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:: (?P<message>.*))?", re.DOTALL)
_LAST_LINE: Final = re.compile(r":\d+: (?P<type>[A-Za-z_][\w.]*)\s*\Z")
_ASSERTED: Final = frozenset({"AssertionError", "Failed", "AssertionFailedError"})
"""What a test raises to say that the outcome is wrong: the run itself did not break."""
_RERUN: Final = "the outcome: an attempt that was run again carries no failure in the file, whatever it was"
_REVISIONS: Final = ("revision", "agent_revision", "commit", "agent_commit")


class JUnit:
    """Importer of JUnit XML."""

    name = "junit"

    def handles(self, peek: Peek) -> bool:
        """Say whether its root is `testsuites` or `testsuite`."""
        if peek.kind != "file" or not peek.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            return False
        first = _FIRST_ELEMENT.search(_COMMENT.sub(b"", peek.head[:_ROOT_WITHIN_BYTES]))
        return first is not None and first[1] in (b"testsuites", b"testsuite")

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each testcase, in the order of the file; each rerun is an attempt of its own.

        Raises:
            ImportRefused: it is no XML, declares a DOCTYPE, or is too large.
        """
        for attempt in _attempts(JUnitFile(source)):
            yield _ref(attempt)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one testcase: outcome and error; a test run records no steps."""
        file = JUnitFile(source)
        attempt = next((each for each in _attempts(file) if each.key == ref.key), None)
        if attempt is None:
            raise refused("no-such-trial", source, f"no testcase in it is {ref.key}", "List it again.")
        case, outcome = attempt.case, attempt.outcome
        return Trial(
            format=JUnit.name,
            harness="pytest" if case.suite == "pytest" else None,
            task_id=attempt.task_id,
            attempt=attempt.number,
            event_id=digest_of([attempt.key, case.seconds, [vars(each) for each in case.results]]),
            event_id_from="digest",
            revision=next((found for name in _REVISIONS if (found := filled(case.properties.get(name)))), None),
            model=filled(case.properties.get("model")),
            termination=attempt.termination,
            outcome=outcome,
            outcome_from="log" if outcome != "undetermined" else None,
            error=_error(attempt.result),
            labels=_labels(attempt),
            conditions=_conditions(case),
            can_show=_CAN_SHOW,
            source_digests=digests_of(source),
            missing=(
                *((file.lost,) if file.lost is not None else ()),
                *((_RERUN,) if attempt.was_rerun else ()),
                "steps: a test run records none",
            ),
        )


@dataclass(frozen=True)
class _Attempt:
    """One testcase, told apart from those of the same name."""

    case: Testcase
    key: str
    number: int | None
    """From 1, where the file holds several of this name."""
    is_last: bool

    @property
    def result(self) -> Result | None:
        """What ended it: a failure before an error of the tear-down, an error before nothing."""
        kinds = {result.kind: result for result in reversed(self.case.results)}
        return kinds.get("failure") or kinds.get("error") or kinds.get("skipped")

    @property
    def task_id(self) -> str:
        return filled(self.case.properties.get("task_id")) or self.case.id

    @property
    def was_rerun(self) -> bool:
        """Say whether another attempt followed one that shows no failure itself."""
        return self.result is None and not self.is_last

    @property
    def outcome(self) -> Outcome:
        if self.result is None:
            return "undetermined" if self.was_rerun else "passed"
        return "failed" if self.result.kind == "failure" else "undetermined"

    @property
    def termination(self) -> Termination | None:
        """An assertion says that the run came to its end; any other exception ended it."""
        if self.result is None:
            return None
        if self.result.kind == "skipped":
            return None if _is_expected_failure(self.result) else "never-started"
        kind, _ = _type_and_message(self.result)
        return None if kind is None or kind in _ASSERTED else "error"


def _attempts(file: JUnitFile) -> list[_Attempt]:
    cases: list[Testcase] = []
    last: dict[str, Testcase] = {}
    for case in file.testcases:
        before = last.get(case.id)
        if before is not None and _is_teardown_of(case, before):
            before.results.extend(case.results)
        else:
            cases.append(case)
            last[case.id] = case
    total = Counter(case.id for case in cases)
    so_far: Counter[str] = Counter()
    taken: set[str] = set()
    found = []
    for case in cases:
        so_far[case.id] += 1
        number = so_far[case.id]
        key = case.id if number == 1 else f"{case.id}#{number}"
        while key in taken:
            key += "'"
        taken.add(key)
        found.append(_Attempt(case, key, number if total[case.id] > 1 else None, number == total[case.id]))
    return found


def _is_teardown_of(case: Testcase, before: Testcase) -> bool:
    """Say whether a testcase is the tear-down error of the failed one before it: pytest writes it apart."""
    if [result.kind for result in case.results] != ["error"]:
        return False
    phase = _PHASE.fullmatch(case.results[0].message or "")
    failed = any(result.kind == "failure" for result in before.results)
    return failed and phase is not None and phase["phase"] == "teardown"


def _ref(attempt: _Attempt) -> TrialRef:
    outcome, result = attempt.outcome, attempt.result
    refusal, why_not = None, None
    if result is None:
        refusal, why_not = "passed", "it passed"
        if attempt.was_rerun:
            refusal = "no-sign-of-failure"
            why_not = "it was run again, so it failed in some way, but the file carries no failure of it"
    elif result.kind == "skipped":
        refusal, why_not = "never-ran", "it was skipped"
        if _is_expected_failure(result):
            refusal, why_not = "no-sign-of-failure", "it is marked as an expected failure"
    kind, _ = _type_and_message(result) if result is not None and result.kind != "skipped" else (None, None)
    return TrialRef(
        key=attempt.key,
        task_id=attempt.task_id,
        attempt=attempt.number,
        termination=attempt.termination,
        outcome=outcome,
        error_type=kind,
        failed=refusal is None,
        why_not=why_not,
        refusal=refusal,
        sample=attempt.case.id,
    )


def _is_expected_failure(result: Result) -> bool:
    return result.type == "pytest.xfail"


def _type_and_message(result: Result) -> tuple[str | None, str | None]:
    """Return an exception's name and text: from attributes, else from the last line of pytest's own rendering."""
    said = result.message
    phase = _PHASE.fullmatch(said or "")
    if phase is not None:
        said = phase["said"]
    typed = _TYPED.fullmatch(said or "")
    last = _LAST_LINE.search(result.text)
    if result.type:
        kind: str | None = result.type
    elif typed is not None and (typed["message"] is not None or last is None):
        kind = typed["type"]
    else:
        kind = last["type"] if last is not None else None
    if typed is not None and kind is not None and bare(typed["type"]) == bare(kind):
        said = typed["message"]
    return bare(kind) if kind is not None else None, said


def _error(result: Result | None) -> TrialError | None:
    if result is None or result.kind == "skipped":
        return None
    kind, message = _type_and_message(result)
    return TrialError(
        type=kind,
        message=message,
        traceback=filled(result.text),
        chain=tuple(ErrorLink(type=each, message=words) for each, words in exception_chain(result.text)),
    )


def _labels(attempt: _Attempt) -> tuple[str, ...]:
    labels = []
    for result in attempt.case.results:
        phase = _PHASE.fullmatch(result.message or "")
        labels.append(f"junit:{result.kind}" + (f":{phase['phase']}" if phase is not None else ""))
        if result.kind == "skipped" and result.type:
            labels.append(f"junit:{result.type}")
    return (*labels, *(f"junit:{name}" for name in attempt.case.reruns))


def _conditions(case: Testcase) -> dict[str, Any]:
    known = {
        "test": case.id,
        "place": case.place,
        "seconds": case.seconds,
        "suite_started_at": case.suite_started_at,
        "properties": {
            name: value
            for name, value in case.properties.items()
            if value and name not in ("task_id", "model", *_REVISIONS)
        },
    }
    return {name: value for name, value in known.items() if value}
