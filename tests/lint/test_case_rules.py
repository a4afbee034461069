from datetime import date
from typing import Any

import pytest

from pytest_regcase.lint.case_rules import case_problems, handover_problems
from pytest_regcase.lint.codes import Found
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.records.words import HypothesisClass

TODAY = date(2026, 5, 10)
KNOWN: dict[str, HypothesisClass] = {"deadline-no-answer-v1": "deadline", "oom-killed-v1": "resource-exhaustion"}
AT = "2026-05-02T09:00:00Z"
GUESS = "we think it was a timeout, please add a retry"
FIX = {"number": 1, "revision": "r", "ledger_id": "l", "rows": 0, "at": AT, "by": "ada"}
QUARANTINE = {"owner": "ada", "reason": "3 of 20 failed", "kind": "flaky", "since": "2026-05-01"}
NOTE = {"at": AT, "by": "ada", "why": GUESS}
BASELINE = {"failures": 1, "trials": 9, "kind": "fresh"}


def case(**more: Any) -> RegressionCase:
    plain = {
        "title": "no answer from step 6 on",
        "symptom": "the server ran out of memory",  # sealed: what was observed is not judged
        "source_event": "sweep/37",
        "hypotheses": [
            {"id": "deadline", "simulations": ["deadline-no-answer-v1"]},
            {"id": "memory", "simulations": ["oom-killed-v1"]},
        ],
        "handover": {"owner": "ada", "next_decision": "compare the server's own logs before assigning a cause"},
    }
    return RegressionCase.model_validate({**plain, **more}, strict=False)


def found(**more: Any) -> list[Found]:
    return list(case_problems(case(**more), today=TODAY, simulations=KNOWN))


def test_a_case_in_order_has_no_problem() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"title": "server OOM-killed because the server ran out of memory"}, ("title",)),
        ({"unresolved_questions": ["which step?", GUESS]}, ("unresolved_questions", 1)),
        ({"handover": {"owner": "ada", "next_decision": GUESS}}, ("handover", "next_decision")),
        (
            {"quarantine": {**QUARANTINE, "reason": GUESS, "expires": "2026-05-12"}},
            ("quarantine", "reason"),
        ),
        ({"fix": [{**FIX, "note": GUESS}], "baseline": BASELINE}, ("fix", 0, "note")),
        ({"amendments": [{"what": "x", "why": GUESS, "who": "ada", "at": AT}]}, ("amendments", 0, "why")),
        ({"reopened": [NOTE]}, ("reopened", 0, "why")),
        ({"retired": [NOTE]}, ("retired", 0, "why")),
        ({"hypotheses": [{"id": "confirmed-oom", "simulations": []}]}, ("hypotheses", 0, "id")),
    ],
)
def test_a_guess_is_found_wherever_a_person_writes(more: dict[str, Any], key: tuple[str | int, ...]) -> None:
    (problem,) = found(**more)
    assert (problem.code, problem.key) == ("cause-asserted", key)


def test_it_says_what_to_do_instead() -> None:
    (problem,) = found(title=GUESS)
    assert problem.text == (
        'title says why it failed ("it was a timeout"), and the evidence does not carry that; say what was seen,'
        " ask it as a question, or cite a log with `regcase evidence`"
    )


def evidence(hypothesis: str, **more: Any) -> dict[str, Any]:
    digest = "sha256:" + "0" * 64
    words = {
        "file": "server.log",
        "lines": "3",
        "digest": digest,
        "quote": "q",
        "why": "w",
        "who": "ada",
        "at": AT,
    }
    return {"id": f"for-{hypothesis}", "hypothesis": hypothesis, "stance": "supports", **words, **more}


def test_what_the_evidence_carries_may_be_said() -> None:
    assert found(title=GUESS, evidence=[evidence("deadline")]) == []
    (problem,) = found(title=GUESS, evidence=[evidence("memory")])
    assert "does not carry that, which supports resource-exhaustion; say" in problem.text
    both = [evidence("deadline"), evidence("memory")]
    assert [each.code for each in found(title=GUESS, evidence=both)] == ["cause-asserted"]
    withdrawn = evidence("deadline", withdrawn={"why": "another host", "who": "ada", "at": AT})
    assert [each.code for each in found(title=GUESS, evidence=[withdrawn])] == ["cause-asserted"]


def test_a_simulation_that_does_not_exist() -> None:
    hypotheses = [{"id": "deadline", "simulations": ["oom-killed-v1", "deadline-no-anwser-v1", "zzz"]}]
    first, second = found(hypotheses=hypotheses)
    assert (first.code, first.key) == ("unknown-simulation", ("hypotheses", 0, "simulations", 1))
    assert first.text.endswith('did you mean "deadline-no-answer-v1"?')
    assert second.text == 'there is no simulation "zzz"; `regcase simulations` lists those there are'


def test_a_quarantine_ends_with_the_day_that_it_names() -> None:
    assert found(quarantine={**QUARANTINE, "expires": TODAY.isoformat()}) == []
    (problem,) = found(quarantine={**QUARANTINE, "expires": "2026-05-09"})
    assert (problem.code, problem.key) == ("quarantine-expired", ("quarantine", "expires"))


def test_a_claimed_fix_needs_a_baseline() -> None:
    (problem,) = found(fix=[FIX, {**FIX, "number": 2}])
    assert (problem.code, problem.key) == ("fix-without-baseline", ("fix", 1))
    assert found(fix=[FIX], baseline=BASELINE) == []


def test_a_retired_case_needs_nothing_to_be_run() -> None:
    retired = [{"at": "2026-06-01T00:00:00Z", "by": "ada", "why": "the task is gone"}]
    more = {"fix": [FIX], "quarantine": {**QUARANTINE, "expires": "2026-05-09"}, "retired": retired}
    assert found(**more, hypotheses=[{"id": "gone", "simulations": ["gone-v1"]}]) == []


@pytest.mark.parametrize("said", ["", "  ", "TODO", "tbd.", "N/A", "?", "unknown", "-"])
def test_a_placeholder_is_no_handover(said: str) -> None:
    codes = [each.code for each in handover_problems({"handover": {"owner": said, "next_decision": said}})]
    assert codes == ["owner-missing", "next-decision-missing"]


@pytest.mark.parametrize(
    "data", [{"handover": {"owner": "ada", "next_decision": "read the log"}}, {"handover": 3}]
)
def test_what_is_said_or_is_no_table_at_all_is_not_missing(data: dict[str, Any]) -> None:
    assert list(handover_problems(data)) == []


def test_a_file_without_a_handover_has_neither() -> None:
    assert len(list(handover_problems({}))) == 2
