from typing import Any

import pytest

from pytest_regcase.records.attempt import Said
from pytest_regcase.records.observed import Declared
from pytest_regcase.records.trial import TrialError
from pytest_regcase.recovery.said import said_of
from tests.recovery.observed_samples import answer, line, observed, trial, wire

TRACE = 'Traceback (most recent call last):\n  File "a.py", line {line}, in ask\nE: refused\n'


def said(**changes: Any) -> Said:
    found = said_of(observed(**changes))
    assert found is not None
    return found


def failed(error: str) -> Any:
    return line(step=3, role="assistant", error=error, origin="messages[5]")


def test_equal_logs_give_equal_digests_and_another_message_does_not() -> None:
    assert said() == said()
    other = said(artefact=trial(error=TrialError(type="AuthenticationError", message="HTTP 403: no")))
    assert other.message != said().message
    assert other.whole != said().whole
    assert other.artefact != said().artefact


def test_a_stack_trace_changes_the_whole_and_not_the_message() -> None:
    one = said(written_after={"stderr": TRACE.format(line=1)})
    other = said(written_after={"stderr": TRACE.format(line=2)})
    assert one.message == other.message
    assert one.whole != other.whole
    assert one.artefact == other.artefact
    assert one.counted == ("artefact", "stderr")


def test_the_traceback_and_the_chain_of_an_error_are_no_message() -> None:
    plain = TrialError(type="E", message="refused")
    deeper = plain.model_copy(update={"traceback": "a.py line 1"})
    assert said(artefact=trial(error=plain)).message == said(artefact=trial(error=deeper)).message
    assert said(artefact=trial(error=plain)).whole != said(artefact=trial(error=deeper)).whole


def test_what_differs_from_run_to_run_changes_nothing() -> None:
    def run(number: int) -> Said | None:
        text = f"2026-11-29 23:0{number}:00 gave up on http://127.0.0.1:400{number}/tok{number} in /runs/{number}"
        return said_of(
            observed(written_after={"stderr": text}), ((f"/runs/{number}", "<path>"), (f"/tok{number}", "/<url>"))
        )

    assert run(1) == run(2)


def test_stderr_stdout_log_and_other_files_count_and_are_named() -> None:
    texts = {"stdout": "a", "out/x.txt": "b", "stderr": "c", "log": "d", "out/y.txt": "e", "out/empty.txt": " \n"}
    assert said(written_after=texts).counted == ("artefact", "stderr", "stdout", "log", "files")
    nothing = trial(error=None, termination=None, steps=())
    assert said(artefact=nothing, written_after={}).counted == ()


def test_a_file_that_the_importer_read_counts_as_the_artefact_alone() -> None:
    read = trial(source_digests={"trial.jsonl": "sha256:1"})
    one = said(artefact=read, written_after={"out/trial.jsonl": "run 1"})
    assert one == said(artefact=read, written_after={"out/trial.jsonl": "run 2"})


def test_a_null_answer_is_not_an_empty_one() -> None:
    nothing, empty = said(artefact=trial(answer(None))), said(artefact=trial(answer("")))
    assert nothing.message != empty.message
    declared = [said(declared=Declared(answer=text, answer_declared=True)) for text in (None, "")]
    assert declared[0].message != declared[1].message


def test_failed_calls_count_wherever_they_stand_and_earlier_replies_do_not() -> None:
    assert said(artefact=trial(failed("timed out"))) != said(artefact=trial(failed("refused")))
    before = [trial(steps=(line(step=1, role="assistant", text=text),)) for text in ("one", "another")]
    assert said(artefact=before[0]) == said(artefact=before[1])


def test_a_graders_error_says_nothing_of_the_supplier() -> None:
    grader = trial(error=TrialError(type="E", message="x", raised_by="grader"))
    assert said(artefact=grader) == said(artefact=trial(error=None))


def test_without_a_faulted_request_there_is_nothing_to_compare() -> None:
    assert said_of(observed(wire=wire(first_fault_seconds=None, delivered=False))) is None


def test_very_long_logs_are_compared_as_far_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_regcase.recovery.said.LIMIT_CHARACTERS", 10)
    assert said(written_after={"stderr": "x" * 10, "stdout": "one"}) == said(
        written_after={"stderr": "x" * 12, "stdout": "two"}
    )
