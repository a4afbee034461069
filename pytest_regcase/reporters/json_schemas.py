"""JSON Schemas of what a gate writes for machines: the JSON report and the decision. Made from the records."""

from typing import Any, Literal

from pytest_regcase.records.base import Record
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.reporters.json_report import JsonReport

DocumentName = Literal["report", "decision"]

_MODELS: dict[DocumentName, tuple[type[Record], str]] = {
    "report": (JsonReport, "What `pytest --regcase --regcase-report=PATH.json` writes"),
    "decision": (GateDecision, "What `regcase gate --json` prints, and `gate` in a JSON report"),
}


def document_schema(name: DocumentName) -> dict[str, Any]:
    """Return the JSON Schema of one document, as it is written: every key is there, an absent value is null."""
    model, title = _MODELS[name]
    schema = model.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}
