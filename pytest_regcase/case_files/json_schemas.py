"""JSON Schemas of the files that people write, for editors: case, simulation, and `[tool.regcase]`.

Made from the models that read the files, and adapted to TOML: file spellings, no null, what a file must hold.
"""

from typing import Any, Literal

from pytest_regcase.case_files.loading import REQUIRED
from pytest_regcase.config import RegcaseConfig
from pytest_regcase.records.base import Record
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.records.simulation import Simulation

SchemaName = Literal["case", "simulation", "config"]

_MODELS: dict[SchemaName, tuple[type[Record], str]] = {
    "case": (RegressionCase, "A regression case (cases/<id>/case.toml)"),
    "simulation": (Simulation, "A simulation (fixtures/<id>.toml)"),
    "config": (RegcaseConfig, "The [tool.regcase] table of pyproject.toml"),
}


def json_schema(name: SchemaName) -> dict[str, Any]:
    """Return the JSON Schema of one kind of file. Date-times stand as strings in RFC 3339 form."""
    model, title = _MODELS[name]
    schema: dict[str, Any] = _for_toml(model.model_json_schema(by_alias=True, mode="validation"))
    if name == "case":
        for *table, key in REQUIRED:
            holder = schema["$defs"][str(table[0]).title()] if table else schema
            holder["required"] = sorted({*holder.get("required", ()), str(key)})
    elif name == "simulation":
        schema["required"] = sorted({*schema["required"], "schema"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


def _for_toml(value: Any) -> Any:
    """Leave out null, which TOML does not have, as a choice and as a default."""
    if isinstance(value, list):
        return [_for_toml(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _for_toml(each) for key, each in value.items() if not (key == "default" and each is None)}
    choices = kept.get("anyOf")
    if isinstance(choices, list):
        choices = [each for each in choices if each != {"type": "null"}]
        if len(choices) == 1:
            del kept["anyOf"]
            kept = choices[0] | kept
        else:
            kept["anyOf"] = choices
    return kept
