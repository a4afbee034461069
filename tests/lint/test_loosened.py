"""Which changes loosen a case. The whole command is tested beside git, in tests/session."""

from typing import Any

import pytest

from pytest_regcase.lint.loosened import loosened_problems, loosenings
from pytest_regcase.records.case import RegressionCase, RerunRule

CONFIGURED = (RerunRule(), RerunRule())
PLAIN: dict[str, Any] = {
    "symptom": "no reply at step 6",
    "source_event": "sweep/37",
    "symptom_match": {"termination": ["error", "cut-off"], "error_type": "APITimeoutError|ReadTimeout"},
    "hypotheses": [{"id": "slow", "simulations": ["one-v1"]}, {"id": "other"}],
    "expected_recovery": {"required": ["log_failure"], "stop_within_seconds": 60},
    "handover": {"owner": "ada", "next_decision": "read the log"},
}


def case(**changes: Any) -> RegressionCase:
    return RegressionCase.model_validate({**PLAIN, **changes})


def handover(**rule: str) -> dict[str, Any]:
    return {**PLAIN["handover"], "rerun_rule": rule}


def found(now: RegressionCase, before: RegressionCase | None = None) -> list[str]:
    return [each.code for each in loosenings(before or case(), now, configured=CONFIGURED)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"title": "another title"},
        {"expected_recovery": {"required": ["log_failure"], "max_retries": 2}},
        {"expected_recovery": {"required": ["log_failure"], "stop_within_seconds": 30.5}},
        {"expected_recovery": {"required": ["mark_failure", "log_failure"]}},
        {"expected_recovery": {"required": ["log_failure"], "summary": "in other words"}},
        {"expected_recovery": {"required": ["log_failure"], "when": {"deadline": {"max_retries": 1}}}},
        {"symptom_match": None},
        {"symptom_match": {"termination": ["cut-off", "error", "limit"]}},
        {"symptom_match": {"error_type": "ReadTimeout|RetryError|APITimeoutError"}},
        {"handover": handover(risk="0.01")},
        {"handover": handover(max_failure_rate="0.1", risk="0.050")},
        {"handover": {"owner": "another", "next_decision": "read another log"}},
        {"hypotheses": [*PLAIN["hypotheses"], {"id": "third", "simulations": ["one-v1"]}]},
        {"hypotheses": [{"id": "slow"}, {"id": "other", "simulations": ["one-v1"]}]},
        {"baseline": {"failures": 1, "trials": 9, "kind": "fresh"}},
        {"task": {"text_file": "recorded/task.txt"}},
        {"replies": {"source": "transcript", "after_fault": "recorded/after.jsonl"}},
    ],
)
def test_what_is_as_strict_or_stricter_is_no_loosening(changes: dict[str, Any]) -> None:
    assert found(case(**changes)) == []


@pytest.mark.parametrize(
    "error_type",
    [
        "never(none|APITimeoutError|ReadTimeout|none)",
        "never[none|APITimeoutError|ReadTimeout|]",
        r"never\(|(none|APITimeoutError|ReadTimeout|none)",
        "(?x)never#|APITimeoutError|ReadTimeout",
        "(?=never)(none|APITimeoutError|ReadTimeout|none)",
        "ReadTimeout",
    ],
)
def test_old_alternatives_in_brackets_are_no_alternatives(error_type: str) -> None:
    assert found(case(symptom_match={"error_type": error_type})) == ["symptom-narrowed"]


@pytest.mark.parametrize("more", ["|OSError", r"|\(x\)", "|(a|b)c", "|[|]"])
def test_a_further_alternative_narrows_nothing(more: str) -> None:
    old = "(?:Read|Connect)Timeout|APITimeoutError"
    before, now = (case(symptom_match={"error_type": each}) for each in (old, old + more))
    assert found(now, before) == []


def test_a_class_that_loses_what_the_rest_asks_as_well_loses_nothing() -> None:
    before = case(expected_recovery={"max_retries": 2, "when": {"deadline": {"max_retries": 2}}})
    now = case(expected_recovery={"max_retries": 2, "when": {"deadline": {"stop_within_seconds": 9}}})
    assert found(now, before) == []
    assert found(before.model_copy(update={"expected_recovery": case().expected_recovery}), before) == [
        "expectation-loosened",
        "expectation-loosened",
    ]


@pytest.mark.parametrize("key", ["max_failure_rate", "risk"])
def test_a_rate_of_the_case_is_compared_with_that_of_the_project_where_it_had_none(key: str) -> None:
    strict = (RerunRule(max_failure_rate="0.02", risk="0.02"), RerunRule(max_failure_rate="0.02", risk="0.02"))
    own = case(handover=handover(**{"max_failure_rate": "0.02", "risk": "0.02", key: "0.03"}))
    assert [each.code for each in loosenings(case(), own, configured=strict)] == ["rule-loosened"]
    # It is taken out: what the project says holds, and that is stricter.
    assert list(loosenings(own, case(), configured=strict)) == []
    assert "rule-loosened" in [each.code for each in loosenings(own, case(), configured=CONFIGURED)]


def test_a_source_that_is_spelt_out_is_no_other_source() -> None:
    assert found(case(replies={"source": "transcript"})) == []
    assert found(case(replies={"source": "pass-through"})) == ["input-changed"]
    assert found(case(), case(task={"text_file": "a.txt", "work_tree": "tree"})) == ["input-changed"] * 2


def test_an_observation_that_was_never_sealed_was_not_settled() -> None:
    now = case(symptom="no reply at step 7")
    assert list(loosened_problems(case(), now, configured=CONFIGURED)) == []
    sealed = case(seal={"observation": "sha256:" + "0" * 64})
    assert [each.code for each in loosened_problems(sealed, now, configured=CONFIGURED)] == ["observation-changed"]


def test_a_removed_hypothesis_is_placed_at_what_is_left() -> None:
    now = case(hypotheses=[{"id": "other"}])
    (problem,) = loosened_problems(case(), now, configured=CONFIGURED)
    assert (problem.code, problem.key) == ("hypothesis-removed", ("hypotheses",))
    fewer = case(hypotheses=[{"id": "other"}, {"id": "slow"}])
    (problem,) = loosened_problems(case(), fewer, configured=CONFIGURED)
    assert (problem.code, problem.key) == ("simulation-removed", ("hypotheses", 1, "simulations"))


def test_an_occurrence_stays_listed() -> None:
    before = case(occurrences=[{"source_event": "sweep/41"}, {"source_event": "sweep/42"}])
    now = case(occurrences=[{"source_event": "sweep/42"}, {"source_event": "sweep/43"}])
    (problem,) = loosened_problems(before, now, configured=CONFIGURED)
    assert problem.code == "record-removed"
    assert '[[occurrences]] "sweep/41" is gone' in problem.text
