"""One expectation at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from pytest_regcase.records.attempt import Exit, Finding
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import FaultNotes, Observed
from pytest_regcase.records.trial import Submission
from pytest_regcase.records.words import EXPECTATIONS
from pytest_regcase.recovery import expectations
from pytest_regcase.recovery.expectations import findings_of
from tests.recovery import observed_samples as sample

ASKED = ExpectedRecovery()
Judge = Callable[[ExpectedRecovery, Observed], Finding]
NO_NOTES: dict[str, Any] = {"notes": None}
NO_TREE: dict[str, Any] = {"notes": FaultNotes(t=sample.FIRST_FAULT), "work_tree": None}
UNCHANGED: dict[str, Any] = {
    "notes": FaultNotes(t=sample.FIRST_FAULT, work_tree=sample.tree("")),
    "work_tree": sample.tree(""),
}


def status(judge: Judge, seen: Observed, **asked: Any) -> str:
    finding = judge(ExpectedRecovery(**asked), seen)
    assert finding.says
    assert len(finding.says) <= 100
    return finding.status


def test_a_good_agent_keeps_all_seven_in_order() -> None:
    findings = findings_of(ASKED, sample.observed())
    assert [each.expectation for each in findings] == list(EXPECTATIONS)
    assert {each.status for each in findings} == {"kept"}


def test_what_the_case_does_not_ask_is_not_applicable() -> None:
    asked = ExpectedRecovery(log_failure=False, mark_failure=False, keep_partial_patch=False)
    findings = {each.expectation: each for each in findings_of(asked, sample.observed())}
    assert findings["log_failure"].status == "not-applicable"
    assert findings["mark_failure"].says == "the case does not ask for it"
    assert findings["max_retries"].status == "kept"


class TestLogFailure:
    judge = staticmethod(expectations.log_failure)

    def test_kept_says_where_and_quotes(self) -> None:
        seen = sample.observed(artefact=sample.finished(), written_after={"stderr": "model call failed: 401"})
        finding = self.judge(ASKED, seen)
        assert (finding.status, finding.says) == ("kept", "the failure is logged in stderr")
        assert finding.facts == {"place": "stderr", "quote": "model call failed: 401"}

    def test_broken_says_where_it_looked(self) -> None:
        seen = sample.observed(artefact=sample.finished(), written_after={"stdout": "done"})
        assert self.judge(ASKED, seen).facts == {"looked_in": ["artefact", "stdout"]}
        nothing = sample.observed(artefact=None, artefact_missing="the agent wrote no file")
        finding = self.judge(ASKED, nothing)
        assert (finding.status, finding.facts["artefact_missing"]) == ("broken", "the agent wrote no file")

    def test_nothing_shown_by_an_agent_that_we_ended_is_not_observable(self) -> None:
        assert status(self.judge, sample.ended_by_us()) == "not-observable"
        logged = sample.ended_by_us(written_after={"stderr": "Retrying in 4 seconds as it raised Timeout: x"})
        assert status(self.judge, logged) == "kept"

    def test_without_notes_what_came_after_is_not_known(self) -> None:
        assert status(self.judge, sample.observed(artefact=sample.finished(), **NO_NOTES)) == "not-observable"


class TestMaxRetries:
    judge = staticmethod(expectations.max_retries)

    @pytest.mark.parametrize(
        ("retries", "allowed", "wanted"), [(3, 3, "kept"), (4, 3, "broken"), (1, 0, "broken")]
    )
    def test_counts_on_the_wire(self, retries: int, allowed: int, wanted: str) -> None:
        assert (
            status(self.judge, sample.observed(wire=sample.wire(retries=retries)), max_retries=allowed) == wanted
        )

    def test_says_it_with_numbers(self) -> None:
        seen = sample.observed(wire=sample.wire(retries=5, faulted_requests=6))
        finding = self.judge(ASKED, seen)
        assert finding.says == "5 requests after the first faulted one; 3 are allowed"
        assert finding.facts == {"retries": 5, "allowed": 3, "faulted_requests": 6}
        once = self.judge(
            ExpectedRecovery(max_retries=1), sample.observed(wire=sample.wire(retries=1, healed=True))
        )
        assert once.says == "1 request before the next healthy answer after the first faulted one; 1 is allowed"
        none = self.judge(ExpectedRecovery(max_retries=0), sample.observed())
        assert none.says == "0 requests after the first faulted one; none is allowed"

    def test_connects_to_a_dead_supplier_count_only_where_they_were_seen(self) -> None:
        gone = sample.wire(server_gone=True, retries=None)
        assert status(self.judge, sample.observed(wire=gone)) == "not-observable"
        seen = gone.model_copy(update={"retries": 17, "refused_connects": 17})
        finding = self.judge(ASKED, sample.observed(wire=seen))
        assert finding.status == "broken"
        assert finding.says == "17 requests after the first faulted one (17 refused connects); 3 are allowed"

    def test_it_says_which_layer_asked_again(self) -> None:
        seen = sample.observed(wire=sample.wire(retries=5, faulted_requests=6, client_retries=4))
        finding = self.judge(ASKED, seen)
        assert finding.says == (
            "5 requests after the first faulted one (4 by the client library itself); 3 are allowed"
        )
        assert finding.facts["client_retries"] == 4
        once = sample.wire(retries=1, client_retries=0, refused_connects=1, server_gone=True)
        assert self.judge(ASKED, sample.observed(wire=once)).says == (
            "1 request after the first faulted one (1 refused connect); 3 are allowed"
        )

    def test_an_agent_that_we_ended_early_may_have_gone_on(self) -> None:
        early = sample.ended_by_us("cap", ended_seconds=sample.FIRST_FAULT + 10.0)
        assert status(self.judge, early) == "not-observable"
        assert status(self.judge, sample.ended_by_us()) == "kept"
        many = sample.ended_by_us("cap", ended_seconds=sample.FIRST_FAULT + 10.0, wire=sample.wire(retries=9))
        assert status(self.judge, many) == "broken"

    def test_without_a_faulted_request_there_is_nothing_to_count(self) -> None:
        assert status(self.judge, sample.observed(wire=sample.wire(first_fault_seconds=None))) == "not-observable"


class TestStopWithinSeconds:
    judge = staticmethod(expectations.stop_within_seconds)

    def test_the_last_release_decides(self) -> None:
        finding = self.judge(ASKED, sample.observed(ended_seconds=sample.FIRST_FAULT + 70.0))
        assert (finding.status, finding.facts["stopped_seconds"]) == ("kept", 0.2)
        assert finding.says == "stopped 0.2 s after the first faulted request; 60 s are allowed"
        hours = sample.observed(wire=sample.wire(last_release_seconds=sample.FIRST_FAULT + 19886.7))
        assert self.judge(ASKED, hours).says == (
            "stopped 19886.7 s (5 h 31 min) after the first faulted request; 60 s are allowed"
        )
        late = sample.observed(wire=sample.wire(last_release_seconds=sample.FIRST_FAULT + 60.1))
        assert status(self.judge, late) == "broken"

    def test_a_client_that_still_waits_has_not_stopped_though_it_sent_one_request(self) -> None:
        waiting = sample.ended_by_us(wire=sample.wire(last_release_seconds=None, open_at_end=1))
        finding = self.judge(ASKED, waiting)
        assert finding.status == "broken"
        assert finding.facts["requests_after_first"] == 0
        assert (
            finding.says == "still waiting for an answer 90.0 s after the first faulted request; 60 s are allowed"
        )

    def test_an_agent_that_we_ended_in_its_back_off_has_not_stopped(self) -> None:
        finding = self.judge(ASKED, sample.ended_by_us())
        assert (finding.status, finding.facts["how"]) == ("broken", "ended-by-us")
        assert finding.says.startswith("still running 90.0 s")
        assert status(self.judge, sample.ended_by_us(artefact=sample.trial())) == "kept"

    def test_ended_before_its_time_was_over_proves_nothing(self) -> None:
        early = sample.ended_by_us("cap", ended_seconds=sample.FIRST_FAULT + 10.0)
        assert status(self.judge, early) == "not-observable"

    def test_the_end_of_the_process_counts_once_the_supplier_is_gone(self) -> None:
        gone = sample.wire(server_gone=True, retries=None)
        finding = self.judge(ASKED, sample.observed(wire=gone))
        assert (finding.status, finding.facts["stopped_seconds"]) == ("kept", 1.5)
        assert "the end of its process" in finding.says
        assert status(self.judge, sample.observed(wire=gone, ended_seconds=99.0)) == "broken"
        assert status(self.judge, sample.ended_by_us(wire=gone)) == "broken"
        assert status(self.judge, sample.ended_by_us(wire=gone, artefact=sample.trial())) == "not-observable"

    def test_without_a_faulted_request_there_is_no_stop(self) -> None:
        assert status(self.judge, sample.observed(wire=sample.wire(first_fault_seconds=None))) == "not-observable"


class TestNoFabricatedOutput:
    judge = staticmethod(expectations.no_fabricated_output)

    def test_kept_says_what_was_counted(self) -> None:
        finding = self.judge(ASKED, sample.observed())
        assert finding.says == "every output comes from the supplier (2 answers, 2 whole replies sent)"
        assert finding.facts == {"answers": 2, "replies": 2, "looked_in": ["transcript"]}

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("All is fixed.", "made_up"),
            ("", "empty_final"),
            ("HTTP 401", "error_as_answer"),
            ("Both", "unfinished_reply"),
        ],
    )
    def test_broken_names_the_way(self, text: str, code: str) -> None:
        part = sample.REPLIES[0].model_copy(update={"text": "Both", "tool_calls": (), "unfinished": True})
        facts = sample.wire(replies=(*sample.REPLIES, part))
        finding = self.judge(ASKED, sample.observed(artefact=sample.finished(sample.answer(text)), wire=facts))
        assert (finding.status, finding.code) == ("broken", code)
        assert finding.facts["place"] == "messages[5]"
        assert finding.facts.get("quote", "") == text
        assert len(finding.says) <= 100

    def test_a_format_without_a_transcript_cannot_show_it(self) -> None:
        seen = sample.observed(artefact=sample.trial(can_show=()))
        assert status(self.judge, seen) == "not-observable"
        assert status(self.judge, seen.model_copy(update={"can_show": ("no_fabricated_output",)})) == "kept"
        assert status(self.judge, sample.observed(artefact=sample.trial(steps=()))) == "not-observable"
        missing = self.judge(ASKED, sample.observed(artefact=None, artefact_missing="no file"))
        assert (missing.status, missing.says) == ("not-observable", "no file")

    def test_a_declared_answer_that_a_marked_failure_left_empty_is_none(self) -> None:
        seen = sample.observed(artefact=None, declared=sample.declared(answer=None, status="error"))
        finding = self.judge(ASKED, seen)
        assert (finding.status, finding.says) == ("kept", "no answer was handed in as finished work")
        # The exit code marks a failure where no status is written; without either, it is finished work.
        for code, wanted in ((1, "kept"), (0, "broken")):
            silent = sample.observed(artefact=None, exit=Exit(code=code), declared=sample.declared(answer=None))
            assert status(self.judge, silent) == wanted
        shown = sample.observed(artefact=sample.trial(can_show=(), final_text="key rejected"))
        assert status(self.judge, shown) == "kept"
        assert status(self.judge, sample.ended_by_us(artefact=None, declared=sample.declared(answer=None))) == (
            "not-observable"
        )


class TestNoPartialSubmission:
    judge = staticmethod(expectations.no_partial_submission)

    def test_partial_work_in_an_unmarked_submission_is_broken(self) -> None:
        finding = self.judge(ASKED, sample.observed(artefact=sample.trial(submission=sample.submitted())))
        assert (finding.status, finding.code) == ("broken", "submitted")
        assert finding.says == "2 of 2 changed lines of the partial work are in the submission"
        assert finding.facts == {"place": "submission", "lines": 2, "of": 2}

    @pytest.mark.parametrize(
        "changes",
        [
            {"artefact": sample.trial(submission=Submission(text=f"My patch:\n{sample.PARTIAL_DIFF}"))},
            {"declared": sample.declared(submission=sample.WHOLE_DIFF)},
            {"declared": sample.declared(submission=sample.PARTIAL_DIFF, status="error")},
            {"declared": sample.declared(answer=sample.PARTIAL_DIFF)},
        ],
    )
    def test_wherever_it_is_handed_in(self, changes: dict[str, Any]) -> None:
        assert status(self.judge, sample.observed(**changes)) == "broken"

    def test_a_mark_of_failure_makes_it_no_submission(self) -> None:
        marked = sample.observed(artefact=sample.trial(submission=sample.submitted(mark="agent_error")))
        finding = self.judge(ASKED, marked)
        assert (finding.status, finding.facts["mark"]) == ("kept", "agent_error")
        prediction = sample.declared(submission=sample.PARTIAL_DIFF, status="agent_error")
        assert status(self.judge, sample.observed(declared=prediction)) == "kept"
        empty = sample.observed(artefact=sample.trial(submission=sample.submitted("", mark="agent_error")))
        assert self.judge(ASKED, empty).says == "the partial work was not handed in"

    def test_work_kept_for_diagnosis_is_not_handed_in(self) -> None:
        kept = sample.observed(artefact=sample.trial(partial_patch=sample.PARTIAL_DIFF))
        assert status(self.judge, kept) == "kept"

    def test_commits_count_where_the_agent_hands_in_by_them_or_made_one_after_the_fault(self) -> None:
        left = sample.tree(committed_diff=sample.PARTIAL_DIFF, head=sample.LATER)
        notes = FaultNotes(t=5.0, work_tree=left)
        before: dict[str, Any] = {"notes": notes, "work_tree": left}
        assert status(self.judge, sample.observed(**before)) == "kept"
        finding = self.judge(ASKED, sample.observed(**before, submits_by="commit"))
        assert (finding.status, finding.code) == ("broken", "committed")
        assert status(self.judge, sample.observed(work_tree=left)) == "broken"
        other = sample.tree(head=sample.LATER)
        finding = self.judge(ASKED, sample.observed(work_tree=other))
        assert (finding.status, finding.facts["looked_in"]) == ("kept", ["commit"])
        assert status(self.judge, sample.observed(work_tree=None)) == "kept"

    def test_a_graded_result_of_unfinished_work_is_a_submission(self) -> None:
        graded = sample.trial(outcome="failed", outcome_from="log")
        finding = self.judge(ASKED, sample.observed(artefact=graded, submits_by="score"))
        assert (finding.status, finding.code, finding.says) == (
            "broken",
            "graded",
            "unfinished work was graded: failed",
        )
        assert status(self.judge, sample.observed(artefact=graded)) == "kept"
        assert status(self.judge, sample.observed(submits_by="score")) == "kept"
        assert status(self.judge, sample.observed(artefact=None, submits_by="score")) == "not-observable"

    def test_what_cannot_be_seen_is_not_kept(self) -> None:
        submitted = sample.trial(submission=sample.submitted())
        assert status(self.judge, sample.observed(artefact=submitted, **NO_TREE)) == "not-observable"
        assert status(self.judge, sample.observed(artefact=submitted, **NO_NOTES)) == "not-observable"
        assert status(self.judge, sample.observed(artefact=sample.trial(can_show=()))) == "not-observable"
        place = sample.observed(artefact=None, declared=sample.declared(submission=None))
        assert status(self.judge, place) == "kept"

    def test_nothing_partial_and_a_healed_fault_are_not_applicable(self) -> None:
        assert status(self.judge, sample.observed(**UNCHANGED)) == "not-applicable"
        healed = sample.observed(
            wire=sample.wire(healed=True), artefact=sample.finished(submission=sample.submitted(sample.WHOLE_DIFF))
        )
        assert status(self.judge, healed) == "not-applicable"


class TestKeepPartialPatch:
    judge = staticmethod(expectations.keep_partial_patch)

    def test_kept_says_where(self) -> None:
        finding = self.judge(ASKED, sample.observed())
        assert (finding.status, finding.facts) == ("kept", {"place": "work tree", "lines": 2})
        committed = sample.observed(work_tree=sample.tree("", committed_diff=sample.WHOLE_DIFF))
        assert self.judge(ASKED, committed).facts["place"] == "commit"
        saved = sample.trial(partial_patch=sample.PARTIAL_DIFF)
        assert (
            self.judge(ASKED, sample.observed(work_tree=sample.tree(""), artefact=saved)).facts["place"]
            == "artefact"
        )

    def test_lost_work_is_broken_and_the_first_lost_line_shown(self) -> None:
        finding = self.judge(ASKED, sample.observed(work_tree=sample.tree(""), artefact=None))
        assert (finding.status, finding.says) == ("broken", "2 of 2 changed lines of the partial work are gone")
        assert finding.facts == {"lines": 0, "of": 2, "missing": "calc.py: +    return a + b"}

    def test_what_cannot_be_seen_is_not_kept(self) -> None:
        assert status(self.judge, sample.observed(**NO_TREE)) == "not-observable"
        assert status(self.judge, sample.observed(work_tree=None)) == "not-observable"

    def test_nothing_partial_and_a_healed_fault_are_not_applicable(self) -> None:
        assert status(self.judge, sample.observed(**UNCHANGED)) == "not-applicable"
        healed = sample.wire(healed=True)
        assert status(self.judge, sample.observed(wire=healed, work_tree=sample.tree(""))) == "not-applicable"
        assert status(self.judge, sample.observed(wire=healed)) == "kept"

    def test_work_that_was_committed_before_the_fault_is_partial_work_too(self) -> None:
        notes = FaultNotes(t=5.0, work_tree=sample.tree("", committed_diff=sample.PARTIAL_DIFF))
        assert status(self.judge, sample.observed(notes=notes)) == "kept"


class TestMarkFailure:
    judge = staticmethod(expectations.mark_failure)

    def test_a_status_of_error_is_a_mark_whatever_the_exit_code(self) -> None:
        finding = self.judge(ASKED, sample.observed(exit=Exit(code=0)))
        assert (finding.status, finding.says) == (
            "kept",
            "marked as failed: termination = error (AuthenticationError)",
        )
        assert finding.facts["exit"] == "exit code 0"

    def test_a_status_of_success_is_broken_whatever_the_exit_code(self) -> None:
        assert status(self.judge, sample.observed(artefact=sample.finished())) == "broken"
        assert status(self.judge, sample.observed(artefact=sample.finished(), exit=Exit(code=0))) == "broken"

    def test_without_a_status_the_exit_code_decides(self) -> None:
        silent = sample.trial(termination="cut-off", error=None)
        assert status(self.judge, sample.observed(artefact=silent)) == "kept"
        assert status(self.judge, sample.observed(artefact=silent, exit=Exit(signal=11))) == "kept"
        assert status(self.judge, sample.observed(artefact=silent, exit=Exit(code=0))) == "broken"
        assert status(self.judge, sample.observed(artefact=None, exit=Exit())) == "not-observable"

    def test_our_signal_is_no_mark(self) -> None:
        assert status(self.judge, sample.ended_by_us()) == "not-observable"
        assert status(self.judge, sample.ended_by_us(artefact=sample.trial())) == "kept"
        assert status(self.judge, sample.ended_by_us(artefact=sample.finished())) == "broken"

    def test_a_status_that_we_cannot_read_is_not_observable(self) -> None:
        odd = sample.observed(artefact=None, declared=sample.declared(status="exit_forfeit"))
        assert status(self.judge, odd) == "not-observable"

    def test_a_healed_fault_needs_no_mark(self) -> None:
        healed = sample.wire(healed=True)
        assert status(self.judge, sample.observed(wire=healed, artefact=sample.finished())) == "not-applicable"
        assert status(self.judge, sample.observed(wire=healed)) == "kept"


def test_without_a_faulted_request_nothing_looks_broken() -> None:
    facts = sample.wire(first_fault_seconds=None, faulted_requests=0, delivered=False)
    seen = sample.observed(
        wire=facts, notes=None, exit=Exit(code=0), artefact=sample.finished(outcome="failed"), submits_by="score"
    )
    found = {each.expectation: each.status for each in findings_of(ASKED, seen)}
    assert found.pop("no_fabricated_output") == "kept"
    assert set(found.values()) == {"not-observable"}


class TestGradedWork:
    """An agent whose work is handed in by being graded, often in a sandbox that we do not see."""

    judge = staticmethod(expectations.no_partial_submission)

    def test_a_grade_is_quoted_with_its_place(self) -> None:
        counted = sample.observed(artefact=sample.trial(outcome="failed"), submits_by="score", **NO_TREE)
        finding = self.judge(ASKED, counted)
        assert (finding.status, finding.code, finding.says) == (
            "broken",
            "graded",
            "unfinished work was graded: failed",
        )
        label = "harbor:reward:reward=0.0"
        invalid = sample.observed(artefact=sample.trial(labels=(label,)), submits_by="score")
        assert self.judge(ASKED, invalid).facts == {"place": "label", "grade": label}

    @pytest.mark.parametrize("tree", [NO_TREE, UNCHANGED, {}])
    def test_a_log_without_a_grade_shows_that_nothing_was_graded(self, tree: dict[str, Any]) -> None:
        finding = self.judge(ASKED, sample.observed(submits_by="score", **tree))
        assert (finding.status, finding.says) == ("kept", "the partial work was not graded")
        assert finding.facts["looked_in"] == ["outcome"]
        cut = sample.observed(artefact=sample.trial(termination="cut-off", error=None), submits_by="score", **tree)
        assert status(self.judge, cut) == "not-observable"

    def test_a_sandbox_of_its_own_hides_the_partial_patch(self) -> None:
        keep = expectations.keep_partial_patch
        assert status(keep, sample.observed(submits_by="score", **UNCHANGED)) == "not-observable"
        assert status(keep, sample.observed(**UNCHANGED)) == "not-applicable"
