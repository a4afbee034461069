from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_regcase.case_files.guarded import (
    ABSENT,
    Change,
    appended_since,
    guarded_changes,
    guarded_values,
    is_amended,
)
from pytest_regcase.records.case import Amendment, RegressionCase
from tests.rules.attempt_samples import a_case, a_quarantine

AT = datetime(2026, 4, 13, 8, tzinfo=UTC)


def amendment(what: str, old_digest: str | None = None) -> Amendment:
    return Amendment(what=what, why="w", who="mina", at=AT, old_digest=old_digest)


def hypotheses(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "simulations": [f"{name}-v1"]} for name in names]


def texts(before: RegressionCase, now: RegressionCase) -> list[str]:
    return [each.text for each in guarded_changes(before, now)]


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (
            {"expected_recovery": {"max_retries": 3}},
            {"expected_recovery": {"max_retries": 5}},
            ["expected_recovery.max_retries 3 -> 5"],
        ),
        # What is taken out has its default then: a looser one is a change, the same one is none.
        ({"expected_recovery": {"max_retries": 1}}, {}, ["expected_recovery.max_retries 1 -> 3"]),
        ({"expected_recovery": {"max_retries": 3}}, {}, []),
        (
            {"hypotheses": hypotheses("deadline", "key")},
            {"hypotheses": hypotheses("key")},
            ['hypotheses.deadline.simulations ["deadline-v1"] -> absent'],
        ),
        ({"hypotheses": hypotheses("deadline", "key")}, {"hypotheses": hypotheses("key", "deadline")}, []),
        (
            {"symptom_match": {"error_type": "Timeout|Reset"}},
            {"symptom_match": {"error_type": "Timeout"}},
            ['symptom_match.error_type "Timeout|Reset" -> "Timeout"'],
        ),
        ({"title": "a"}, {"title": "b", "unresolved_questions": ["why?"]}, []),
    ],
)
def test_each_guarded_key_that_differs_is_named_with_both_values(
    before: dict[str, Any], now: dict[str, Any], says: list[str]
) -> None:
    assert texts(a_case(**before), a_case(**now)) == says


def test_the_rerun_rule_is_guarded_and_the_rest_of_the_handover_is_not() -> None:
    before = a_case(handover={"owner": "a", "next_decision": "x"})
    now = a_case(handover={"owner": "b", "next_decision": "y", "rerun_rule": {"risk": "0.20"}})
    assert texts(before, now) == [
        'handover.rerun_rule.max_failure_rate absent -> "0.10"',
        'handover.rerun_rule.risk absent -> "0.20"',
    ]


def test_a_quarantine_is_named_key_by_key() -> None:
    changes = guarded_changes(a_case(), a_case(quarantine=a_quarantine()))
    assert Change("quarantine.expires", ABSENT, '"2026-05-30"') in changes
    assert {each.key.partition(".")[0] for each in changes} == {"quarantine"}


def test_the_cause_status_and_appended_records_are_no_guarded_keys() -> None:
    values = guarded_values(a_case(amendments=[amendment("a")]))
    assert "observation.symptom" in values
    assert not [key for key in values if key.endswith("cause_status") or key.startswith("amendments")]


def test_the_last_link_of_a_chain_is_enough_and_an_earlier_one_is_not() -> None:
    chain = [amendment("expected_recovery.max_retries 3 -> 5"), amendment("expected_recovery.max_retries 5 -> 7")]
    change = Change("expected_recovery.max_retries", "3", "7")
    assert is_amended(change, chain, old_seal=None)
    assert not is_amended(change, chain[:1], old_seal=None)
    assert not is_amended(Change("expected_recovery.max_retries_x", "3", "7"), chain, old_seal=None)


def test_the_observation_is_amended_by_what_took_the_place_of_its_seal() -> None:
    seal = "sha256:" + "1" * 64
    change = Change("observation.failing_step", "6", "7")
    assert is_amended(change, [amendment("removed 1 api_key from case.toml", seal)], old_seal=seal)
    assert not is_amended(change, [amendment(change.text)], old_seal=seal)
    assert not is_amended(change, [amendment(change.text, "sha256:" + "2" * 64)], old_seal=seal)
    assert not is_amended(change, [amendment(change.text)], old_seal=None)


def test_only_amendments_that_were_not_there_count() -> None:
    before = a_case(amendments=[amendment("a")])
    now = a_case(amendments=[amendment("a"), amendment("b")])
    assert [each.what for each in appended_since(before, now)] == ["b"]
