import tomllib
from datetime import date, datetime
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from pytest_regcase.case_files import SchemaName, json_schema, load_case, new_case_text, seal_text
from pytest_regcase.records.case import RegressionCase
from tests.case_files.conftest import MINIMUM, WriteCase
from tests.case_files.test_new_case import case
from tests.case_files.test_simulations import SIMULATION


def as_json(value: Any) -> Any:
    """What an editor makes of TOML: date-times are strings."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    return value.isoformat() if isinstance(value, datetime | date) else value


def check(name: SchemaName, text: str) -> None:
    jsonschema.Draft202012Validator(json_schema(name)).validate(as_json(tomllib.loads(text)))


@pytest.mark.parametrize("name", get_args(SchemaName))
def test_each_is_a_schema_without_null(name: SchemaName) -> None:
    schema = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "'null'" not in str(schema)
    assert "'default': None" not in str(schema)


def test_what_we_read_and_write_is_valid(write_case: WriteCase) -> None:
    check("case", write_case().read_text())
    check("case", seal_text(new_case_text(case())))
    check("simulation", SIMULATION)


def test_this_project_is_valid(repository: Path) -> None:
    config = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["regcase"]
    jsonschema.Draft202012Validator(json_schema("config")).validate(config)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('id = "sweep-0412-trial-37"\n', ""),
        ('cause_status = "unknown"\n', ""),
        ('"unknown"', '"maybe"'),
        ("title", "titel"),
        ('owner = "eval-harness-oncall"\n', ""),
        ("schema = 1\n", ""),
        ("schema = 1\n", 'schema = 1\nsymptom = "x"\n'),
        ("schema = 1\n", "schema_version = 1\n"),
    ],
)
def test_what_we_refuse_is_not(old: str, new: str) -> None:
    assert old in MINIMUM
    with pytest.raises(jsonschema.ValidationError):
        check("case", MINIMUM.replace(old, new))


def test_every_key_of_the_model_is_in_the_schema(write_case: WriteCase) -> None:
    names = {field.alias or name for name, field in RegressionCase.model_fields.items()}
    assert set(json_schema("case")["properties"]) == names
    assert load_case(write_case()).case.schema_version == 1
