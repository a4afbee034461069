"""TOML files with places: read, checked against a model, and every error with its file and line.

Knows TOML's syntax and how a model's complaints read to a person; knows no case and no project.
"""

from pytest_regcase.toml_lines.places import Key, Places, Span, dotted, places_of
from pytest_regcase.toml_lines.reading import (
    INT_MAX,
    INT_MIN,
    TOML_LIMIT_BYTES,
    TomlFile,
    at_line,
    parse_toml,
    read_bounded,
    read_toml,
    shown,
)
from pytest_regcase.toml_lines.validation import complaint, validate

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "TOML_LIMIT_BYTES",
    "Key",
    "Places",
    "Span",
    "TomlFile",
    "at_line",
    "complaint",
    "dotted",
    "parse_toml",
    "places_of",
    "read_bounded",
    "read_toml",
    "shown",
    "validate",
]
