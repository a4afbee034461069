"""Where the failure is logged."""

from pytest_regcase.records.trial import TranscriptLine, TrialError
from pytest_regcase.recovery.logged import Shown, failure_shown
from tests.recovery import observed_samples as sample

SILENT = sample.finished()


def test_the_artefacts_error_comes_first() -> None:
    seen = sample.observed(written_after={"stderr": "HTTP 401"})
    assert failure_shown(seen) == ("the artefact's error", "AuthenticationError: HTTP 401: the key was rejected")


def test_a_failed_call_in_the_transcript_counts() -> None:
    named = sample.line(step=3, role="assistant", error="HTTP 401", origin="events[7]")
    assert failure_shown(sample.observed(artefact=sample.finished(named))) == (
        "the artefact's transcript (events[7])",
        "HTTP 401",
    )
    nameless = TranscriptLine(step=3, role="assistant", error="HTTP 401")
    shown = failure_shown(sample.observed(artefact=sample.finished(nameless)))
    assert shown is not None
    assert shown.place == "the artefact's transcript (step 3)"


def test_a_status_of_error_counts_and_a_graders_error_does_not() -> None:
    status = sample.trial(error=None)
    assert failure_shown(sample.observed(artefact=status)) == ("the artefact's status", "error")
    graders = sample.finished(error=TrialError(type="ScoringError", raised_by="grader"))
    assert failure_shown(sample.observed(artefact=graders)) is None


def test_text_is_read_in_a_fixed_order_and_says_its_place() -> None:
    texts = {"out/agent.log": "call failed", "stdout": "HTTP 401", "stderr": "starting\nHTTP 503"}
    assert failure_shown(sample.observed(artefact=SILENT, written_after=texts)) == ("stderr", "HTTP 503")
    del texts["stderr"]
    assert failure_shown(sample.observed(artefact=SILENT, written_after=texts)) == ("stdout", "HTTP 401")
    del texts["stdout"]
    assert failure_shown(sample.observed(artefact=None, written_after=texts)) == ("out/agent.log", "call failed")
    assert failure_shown(sample.observed(artefact=None)) is None


def test_the_answer_is_no_log_but_stderr_may_repeat_it() -> None:
    words = "the model call failed: HTTP 401"
    artefact = sample.finished(final_text=words)
    assert failure_shown(sample.observed(artefact=artefact, written_after={"stdout": words})) is None
    assert failure_shown(sample.observed(artefact=artefact, written_after={"stderr": words})) == Shown(
        "stderr", words
    )


def test_a_file_that_an_importer_read_is_not_searched() -> None:
    artefact = sample.finished(source_digests={"trial.jsonl": "sha256:00"})
    texts = {"out/trial.jsonl": '{"text": "call failed"}', "trial.jsonl": "call failed"}
    assert failure_shown(sample.observed(artefact=artefact, written_after=texts)) is None
    assert failure_shown(sample.observed(artefact=artefact, written_after={"out/my_trial.jsonl": "call failed"}))
