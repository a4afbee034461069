from datetime import UTC, date, datetime
from typing import Any

from pytest_regcase.pytest_items.failure_text import attempt_lines, quarantined_text
from pytest_regcase.records.attempt import AttemptRecord, Digests, Finding
from pytest_regcase.records.case import Quarantine


def _record(**facts: Any) -> AttemptRecord:
    return AttemptRecord.model_validate(
        {
            "attempt_id": "a-1",
            "session_id": "s-1",
            "case_id": "case-1",
            "agent": "default",
            "scenario": "stall-v1",
            "digests": Digests(case="c", agent="a"),
            "started_at": datetime.now(UTC),
            "verdict": "not-recovered",
            "folder": "some/folder",
            **facts,
        }
    )


def test_broken_findings_are_shown_and_kept_ones_are_not() -> None:
    findings = (
        Finding(expectation="log_failure", status="kept", says="it is in stderr"),
        Finding(expectation="max_retries", status="broken", says="5 requests, 3 allowed"),
    )
    assert attempt_lines(_record(findings=findings, says="max_retries"), "another try follows") == [
        "case-1 stall-v1, first try: not-recovered; another try follows",
        "  max_retries: 5 requests, 3 allowed",
        "  attempt: some/folder",
    ]


def test_what_proves_nothing_says_why() -> None:
    record = _record(verdict="inconclusive", reason="not-delivered", says="two\nlines", try_number=1, folder=None)
    assert attempt_lines(record, "the check did not happen") == [
        "case-1 stall-v1, try 2: inconclusive (not-delivered); the check did not happen",
        "  two",
        "  lines",
    ]


def test_words_of_an_agent_steer_neither_the_terminal_nor_a_runner() -> None:
    says = "it raised \x1b[31mOSError\x07: no\r::stop-commands::now\n  ##[error]x"
    record = _record(verdict="inconclusive", reason="not-delivered", says=says, folder=None)
    assert attempt_lines(record, "the check did not happen")[1:] == [
        "  it raised  [31mOSError : no",
        "  | ::stop-commands::now",
        "  | ##[error]x",
    ]


def test_what_proves_nothing_does_not_show_findings_that_count_for_nothing() -> None:
    findings = (Finding(expectation="mark_failure", status="broken", says="the exit code is 0"),)
    record = _record(
        verdict="inconclusive", reason="not-delivered", says="no request met the fault", findings=findings
    )
    assert attempt_lines(record, "the check did not happen")[1:] == [
        "  no request met the fault",
        "  attempt: some/folder",
    ]


def test_a_live_attempt_is_named_by_its_run() -> None:
    lines = attempt_lines(_record(scenario="live", run=7, verdict="recurred"), "the symptom came back")
    assert lines[0] == "case-1 live, run 7: recurred; the symptom came back"


def test_a_quarantined_failure_names_owner_and_end() -> None:
    quarantine = Quarantine(
        owner="somebody", reason="a flaky sandbox", kind="flaky", since=date(2026, 1, 1), expires=date(2026, 2, 1)
    )
    assert quarantined_text(_record(), quarantine) == (
        "case-1 stall-v1: not-recovered, quarantined until 2026-02-01 (owner somebody): a flaky sandbox"
    )
