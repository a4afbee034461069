"""The published schemas take what is really written, and nothing that only looks like it."""

import json
from typing import Any, get_args

import jsonschema
import pytest

from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.words import Profile
from pytest_regcase.reporters.json_report import JsonReporter
from pytest_regcase.reporters.json_schemas import DocumentName, document_schema
from pytest_regcase.rules.gate import decide
from tests.reporters.decision_samples import everything
from tests.rules.attempt_samples import gate_inputs

NOTHING = decide(gate_inputs())


def check(name: DocumentName, document: Any) -> None:
    jsonschema.Draft202012Validator(document_schema(name)).validate(document)


@pytest.mark.parametrize("name", get_args(DocumentName))
def test_each_is_a_schema_that_describes_what_is_in_it(name: DocumentName) -> None:
    schema = document_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"]
    assert schema["properties"]["schema"]["const"] == 1
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("profile", get_args(Profile))
def test_real_reports_are_valid(profile: Profile) -> None:
    decision, attempts = everything(profile)
    for each in (decision, NOTHING):
        check("decision", json.loads(json.dumps(each.to_plain())))
        check("report", json.loads(JsonReporter().write(each, attempts)))
        check("report", json.loads(JsonReporter().write(each, [])))


@pytest.mark.parametrize(
    ("key", "value"),
    [("decision", "green"), ("schema", 2), ("policy", None), ("more", 1), ("cases", [{"case_id": "a"}])],
)
def test_another_document_is_not(key: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check("decision", {**NOTHING.to_plain(), key: value})


def test_a_report_reads_back_as_what_was_decided() -> None:
    decision, attempts = everything()
    document = json.loads(JsonReporter().write(decision, attempts))
    assert GateDecision.model_validate_json(json.dumps(document["gate"])) == decision
