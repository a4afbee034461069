from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_regcase.records.case import Evidence, Quarantine, RegressionCase, Withdrawal
from pytest_regcase.records.simulation import Simulation

AT = datetime(2026, 4, 13, tzinfo=UTC)


def evidence(name: str, hypothesis: str, stance: str = "supports", *, withdrawn: bool = False) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": name, "hypothesis": hypothesis, "stance": stance, "file": "a.log", "lines": "1",
        "digest": "sha256:" + "0" * 64, "quote": "q", "why": "w", "who": "m", "at": AT,
    }  # fmt: skip
    return fields | ({"withdrawn": {"why": "wrong trial", "who": "m", "at": AT}} if withdrawn else {})


def case(*cited: dict[str, Any]) -> RegressionCase:
    return RegressionCase.model_validate(
        {
            "symptom": "stopped",
            "source_event": "sweep/37",
            "hypotheses": [{"id": "deadline"}, {"id": "oom"}],
            "evidence": list(cited),
        }
    )


def test_the_plain_names_are_enough_in_python() -> None:
    made = RegressionCase.model_validate(
        {
            "symptom": "model answered step 5, then stopped responding at step 6",
            "source_event": "eval-sweep-0412/trial-37",
            "source_revision": "agent@3f9c2e1",
            "cause_status": "unknown",
            "simulation_id": "deadline-no-answer-v1",
            "expected_recovery": "log failure, stop",
            "unresolved_questions": ["why?"],
        }
    )
    assert (made.symptom, made.source_event) == (made.observation.symptom, "eval-sweep-0412/trial-37")
    assert (made.source_revision, made.cause_status) == ("agent@3f9c2e1", "unknown")
    assert made.simulation_ids == (made.simulation_id,) == ("deadline-no-answer-v1",)
    assert made.hypotheses[0].status == "hypothesized"
    assert made.expected_recovery.summary == "log failure, stop"
    assert made.expected_recovery.max_retries == 3
    assert (made.id, made.title, made.handover) == (None, None, None)


def test_no_simulation_is_no_hypothesis() -> None:
    made = RegressionCase.model_validate({"symptom": "s", "source_event": "e", "simulation_id": None})
    assert (made.hypotheses, made.simulation_id) == ((), None)


def test_plain_names_beside_an_observation_are_refused() -> None:
    with pytest.raises(ValidationError, match="symptom stand beside observation"):
        RegressionCase.model_validate({"symptom": "s", "observation": {"symptom": "s", "source_event": "e"}})


@pytest.mark.parametrize(
    ("cited", "status"),
    [
        ([], "unknown"),
        ([evidence("a", "deadline")], "confirmed"),
        ([evidence("a", "deadline"), evidence("b", "deadline")], "confirmed"),
        ([evidence("a", "deadline", "refutes")], "unknown"),
        ([evidence("a", "deadline"), evidence("b", "deadline", "refutes")], "unknown"),
        ([evidence("a", "deadline"), evidence("b", "oom")], "unknown"),
        ([evidence("a", "deadline"), evidence("b", "oom", "refutes")], "confirmed"),
        ([evidence("a", "deadline", withdrawn=True)], "unknown"),
        ([evidence("a", "deadline"), evidence("b", "deadline", "refutes", withdrawn=True)], "confirmed"),
        ([evidence("a", "deadline"), evidence("b", "oom", withdrawn=True)], "confirmed"),
    ],
)
def test_the_cause_is_confirmed_only_by_one_undisputed_hypothesis(
    cited: list[dict[str, Any]], status: str
) -> None:
    assert case(*cited).computed_cause_status == status


def test_evidence_needs_its_hypothesis_and_ids_are_unique() -> None:
    with pytest.raises(ValidationError, match="names the hypothesis 'auth', which the case has not"):
        case(evidence("a", "auth"))
    with pytest.raises(ValidationError, match="evidence 'a' is there twice"):
        case(evidence("a", "oom"), evidence("a", "oom"))


def test_what_was_withdrawn_stays_readable() -> None:
    cited = Evidence.model_validate(evidence("a", "oom", withdrawn=True))
    assert cited.quote == "q"
    assert cited.withdrawn == Withdrawal(why="wrong trial", who="m", at=AT)


def test_records_are_frozen_and_strict() -> None:
    made = case()
    with pytest.raises(ValidationError, match="frozen"):
        made.title = "x"
    with pytest.raises(ValidationError, match="unknown"):
        RegressionCase.model_validate({"symptom": "s", "source_event": "e", "unknown": 1})


@pytest.mark.parametrize(
    ("kind", "expires", "says"),
    [("broken", "2026-01-16", "at most 14 days"), ("flaky", "2025-12-31", "expires lies before since")],
)
def test_a_quarantine_ends(kind: str, expires: str, says: str) -> None:
    fields = {"owner": "a", "reason": "b", "kind": kind, "since": "2026-01-01", "expires": expires}
    with pytest.raises(ValidationError, match=says):
        Quarantine.model_validate(fields, strict=False)


def test_a_simulation_is_a_hypothesis_and_no_trial() -> None:
    made = Simulation.model_validate(
        {"id": "a-v1", "hypothesis": "auth", "title": "t", "fault": {"kind": "key_rejected", "lasts": 2}}
    )
    assert (made.cause_status, made.source_event) == ("hypothesized", "fixture-run")
    assert made.fault.heals
    with pytest.raises(ValidationError):
        made.model_validate(made.model_dump() | {"cause_status": "confirmed"})
