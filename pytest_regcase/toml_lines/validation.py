"""Turns a table into a model, and what pydantic complains about into sentences with a line.

Knows how a model's fields are spelt in files; knows no particular model.
"""

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from pytest_regcase.errors import FileError
from pytest_regcase.toml_lines.places import Key, dotted
from pytest_regcase.toml_lines.reading import TomlFile, at_line

M = TypeVar("M", bound=BaseModel)

_SHOWN_VALUE = 60


def validate(model: type[M], toml: TomlFile, table: Sequence[str] = (), *, required: Sequence[Key] = ()) -> M:
    """Return the `table` of `toml` as a `model`.

    Only the names that files use are taken; other spellings that the model has for Python are unknown keys here.
    `required` names keys that a file must hold although the model has a default for them.

    Raises:
        FileError: one line a problem, unknown keys first: file, line, what was found, what is allowed.
    """
    data: Any = toml.data
    for part in table:
        data = data.get(part, {}) if isinstance(data, Mapping) else {}
    if not isinstance(data, Mapping):
        raise FileError([toml.problem(tuple(table), f"{'.'.join(table)} is {_kind(data)}; allowed: a table")])
    # Names that a before-validator would take from Python code are not names of the file format.
    known = _names(model)
    complaints = [_Complaint((key,), "extra_forbidden", data[key], {}, "") for key in data if key not in known]
    complaints += [_Complaint(key, "missing", None, {}, "") for key in required if _is_missing(data, key)]
    made: M | None = None
    try:
        made = model.model_validate(
            {key: value for key, value in data.items() if key in known}, by_alias=True, by_name=False
        )
    except ValidationError as error:
        complaints += [
            _Complaint(tuple(each["loc"]), each["type"], each["input"], each.get("ctx", {}), each["msg"])
            for each in error.errors(include_url=False)
        ]
    if complaints or made is None:
        raise FileError(_sentences(model, toml, tuple(table), complaints))
    return made


def complaint(model: type[BaseModel], error: ValidationError) -> str:
    """Return the first of a model's complaints as one sentence, for values that did not come from TOML."""
    first = sorted(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")[0]
    each = _Complaint(tuple(first["loc"]), first["type"], first["input"], first.get("ctx", {}), first["msg"])
    if each.type == "extra_forbidden":
        return _unknown(model, each, (), ())[0]
    if each.type == "missing":
        return f'"{dotted(each.loc)}" is missing; it is required'
    return _wrong(each.loc, (), [each])


class _Complaint(NamedTuple):
    loc: Key
    type: str
    found: Any
    context: Mapping[str, Any]
    message: str


def _is_missing(data: Mapping[str, Any], key: Key) -> bool:
    """Say whether `key` is missing in a table that is there (a missing table is a complaint of its own)."""
    inside: Any = data
    for part in key[:-1]:
        inside = inside.get(part) if isinstance(inside, Mapping) else None
    return isinstance(inside, Mapping) and key[-1] not in inside


def _sentences(model: type[BaseModel], toml: TomlFile, table: Key, complaints: list[_Complaint]) -> list[str]:
    places = toml.places()
    missing = list(dict.fromkeys(each.loc for each in complaints if each.type == "missing"))
    unknown: list[tuple[int, str]] = []
    for each in complaints:
        if each.type == "extra_forbidden":
            absent = [str(loc[-1]) for loc in missing if loc[:-1] == each.loc[:-1]]
            says, meant = _unknown(model, each, table, absent)
            if meant is not None:
                missing.remove((*each.loc[:-1], meant))
            unknown.append((places.line(table + each.loc) or 0, says))
    others: list[tuple[int, str]] = []
    for inside in dict.fromkeys(loc[:-1] for loc in missing):
        names = [f'"{loc[-1]}"' for loc in missing if loc[:-1] == inside]
        where = f" in [{dotted(table + inside)}]" if table + inside else ""
        says = "is missing{}; it is required" if len(names) == 1 else "are missing{}; they are required"
        others.append((places.line(table + inside) or 0, f"{', '.join(names)} {says.format(where)}"))
    wrong: dict[Key, list[_Complaint]] = {}
    for each in complaints:
        if each.type not in ("extra_forbidden", "missing"):
            # Several complaints about one value are the branches of one choice.
            wrong.setdefault(places.known(table + each.loc), []).append(each)
    for place, branches in wrong.items():
        others.append((places.line(place) or 0, _wrong(place, table, branches)))
    return [at_line(toml.path, line or None, says) for line, says in sorted(unknown) + sorted(others)]


def _unknown(
    model: type[BaseModel], complaint: _Complaint, table: Key, absent: Sequence[str]
) -> tuple[str, str | None]:
    """Return the sentence on an unknown key, and the required key that it stands for."""
    key = str(complaint.loc[-1])
    inside = table + complaint.loc[:-1]
    says = f'unknown key "{key}"' + (f" in [{dotted(inside)}]; " if inside else "; ")
    allowed = _names_at(model, complaint.loc[:-1])
    near = difflib.get_close_matches(key, absent, 1)
    if near:
        return f'{says}did you mean "{near[0]}"? It is required.', near[0]
    if complaint.loc[:-1] and key in _names(model):
        return f"{says}it belongs above the first [table] header", None
    if not complaint.loc[:-1]:
        homes = [name for name in _names(model) if key in _names_at(model, (name,))]
        if homes:
            return f"{says}it belongs in [{dotted((*table, homes[0]))}]", None
    near = difflib.get_close_matches(key, allowed, 1)
    if near:
        return f'{says}did you mean "{near[0]}"?', None
    return says + "allowed: " + (", ".join(allowed) or "no keys"), None


def _wrong(place: Key, table: Key, branches: Sequence[_Complaint]) -> str:
    first = branches[0]
    if first.type == "value_error":
        says = first.message.removeprefix("Value error, ")
        return f"{dotted(place)}: {says}" if place else says
    if first.loc[-1:] == ("[key]",):
        return f'unknown key "{first.found}" in [{dotted((table + first.loc)[:-2])}]; allowed: {_limit(first)}'
    key = ("[key]",)
    limits = dict.fromkeys(
        f"a table with the key {_limit(each)}" if each.loc[-1:] == key else _limit(each) for each in branches
    )
    return f"{dotted(place) or 'the whole'} = {_value(first.found)}; allowed: {' or '.join(limits)}"


_PATTERNS = {
    r"^[a-z0-9][a-z0-9-]*$": "lower-case letters, digits and hyphens, with a letter or digit first",
    r"^sha256:[0-9a-f]{64}$": '"sha256:" and 64 hexadecimal digits',
    r"^(0?\.[0-9]+|0|1|1\.0+|0\.[0-9]+)$": 'a decimal number from 0 to 1 in quotes, such as "0.10"',
}

_TYPES = {
    "string_type": "a string in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "an array [...]",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "datetime_type": "a date-time with an offset, such as 2026-04-12T09:31:07Z (no quotes)",
    "date_type": "a date, such as 2026-04-12 (no quotes)",
}

_LIMITS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "literal_error": lambda context: str(context["expected"]).replace("'", '"'),
    "string_pattern_mismatch": lambda context: _PATTERNS.get(
        context["pattern"], f"text that matches {context['pattern']}"
    ),
    "string_too_short": lambda _: "text, not an empty string",
    "string_too_long": lambda context: f"at most {context['max_length']} characters",
    "greater_than_equal": lambda context: f"{context['ge']:g} or more",
    "greater_than": lambda context: f"more than {context['gt']:g}",
    "less_than_equal": lambda context: f"at most {context['le']:g}",
    "less_than": lambda context: f"less than {context['lt']:g}",
}


def _limit(complaint: _Complaint) -> str:
    if complaint.type in _LIMITS:
        return _LIMITS[complaint.type](complaint.context)
    return _TYPES.get(complaint.type, complaint.message)


def _value(value: Any) -> str:
    if isinstance(value, dict | list):
        return _kind(value)
    if isinstance(value, date):
        return value.isoformat()
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 3] + "..."


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    return "an array" if isinstance(value, list) else _value(value)


def _names_at(model: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    annotation: Any = model
    for part in loc:
        annotation = _step(annotation, part)
    for option in _options(annotation):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return _names(option)
    return []


def _names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items() if not field.exclude]


def _step(annotation: Any, part: int | str) -> Any:
    for option in _options(annotation):
        if isinstance(option, type) and issubclass(option, BaseModel):
            for name, field in option.model_fields.items():
                if (field.alias or name) == part:
                    return field.annotation
        if get_origin(option) is tuple and isinstance(part, int):
            return get_args(option)[0]
        if get_origin(option) is dict and isinstance(part, str):
            return get_args(option)[1]
    return None


def _options(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _options(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [one for option in get_args(annotation) for one in _options(option)]
    return [annotation]
