import json

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.registry import load
from pytest_regcase.reporters.json_report import JsonReporter
from pytest_regcase.reporters.protocol import Reporter
from tests.reporters.decision_samples import everything


def test_it_holds_the_decision_and_every_attempt() -> None:
    decision, attempts = everything()
    document = json.loads(JsonReporter().write(decision, attempts))
    assert document["schema"] == 1
    assert GateDecision.model_validate_json(json.dumps(document["gate"])) == decision
    read = [AttemptRecord.model_validate_json(json.dumps(each)) for each in document["attempts"]]
    assert {each.attempt_id for each in read} == {each.attempt_id for each in attempts}


def test_the_order_in_which_attempts_ended_changes_nothing() -> None:
    decision, attempts = everything()
    assert JsonReporter().write(decision, attempts) == JsonReporter().write(decision, attempts[::-1])


def test_it_is_found_by_its_entry_point() -> None:
    reporter: Reporter = load("reporters", "json")()
    assert reporter.suffix == ".json"
