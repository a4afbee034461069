"""Properties of case files that hold for every text, not for the samples alone."""

import tempfile
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.case_files import (
    append_record,
    load_case,
    observation_digest,
    seal_case,
    seal_text,
    write_new_case,
)
from pytest_regcase.errors import RegcaseError
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.case import Fix, RegressionCase
from pytest_regcase.toml_lines import dotted, parse_toml, places_of
from tests.case_files.conftest import MINIMUM

# What TOML can hold: no lone surrogates.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SENTENCE = TEXT.filter(bool)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False), TEXT, INSTANTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SENTENCE, inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(SENTENCE, VALUES, max_size=4)


def without_empty(value: Any) -> Any:
    """What a case file keeps: an empty value is absent."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ([], {})}
    return [without_empty(each) for each in value] if isinstance(value, list) else value


@given(INSTANTS, OFFSETS, OFFSETS)
def test_equal_instants_have_equal_canonical_json(at: datetime, here: timezone, there: timezone) -> None:
    assert canonical_json({"at": at.astimezone(here)}) == canonical_json({"at": at.astimezone(there)})


@given(TABLES)
def test_the_order_of_keys_does_not_count(table: dict[str, Any]) -> None:
    assert canonical_json(dict(reversed(table.items()))) == canonical_json(table)


@settings(max_examples=60, deadline=None)
@given(symptom=SENTENCE, labels=st.lists(TEXT, max_size=3), conditions=TABLES, note=SENTENCE, at=INSTANTS)
def test_what_is_written_is_what_is_read(
    symptom: str, labels: list[str], conditions: dict[str, Any], note: str, at: datetime
) -> None:
    case = RegressionCase.model_validate(
        {
            "id": "a",
            "title": symptom,
            "unresolved_questions": [note],
            "observation": {
                "symptom": symptom,
                "source_event": note,
                "observed_at": at,
                "labels": labels,
                "conditions": conditions,
                "redactions": {note: 1},
            },
            "handover": {"owner": note, "next_decision": symptom},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        (path,) = write_new_case(Path(folder) / "a", case, {})
        read = load_case(path).case
    expected = without_empty(conditions)
    assert read.observation.conditions == expected
    assert read.model_copy(update={"seal": None, "observation": None}) == case.model_copy(
        update={"observation": None}
    )
    assert read.observation.model_copy(update={"conditions": {}}) == case.observation.model_copy(
        update={"conditions": {}}
    )


@settings(max_examples=60, deadline=None)
@given(
    comment=st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30),
    newline=st.sampled_from(["\n", "\r\n"]),
    end=st.sampled_from(["", "\n", "\n\n\n", "# last"]),
    notes=st.lists(SENTENCE, min_size=1, max_size=3),
    at=INSTANTS,
    offset=OFFSETS,
)
def test_appending_never_changes_an_earlier_byte(
    comment: str, newline: str, end: str, notes: list[str], at: datetime, offset: timezone
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.toml"
        path.write_bytes(f"# {comment}\n{MINIMUM}# {comment}\n".replace("\n", newline).encode())
        seal_case(path)
        path.write_bytes(path.read_bytes() + end.encode())
        fixes = []
        for number, note in enumerate(notes, 1):
            before = path.read_bytes()
            fixes.append(
                Fix(
                    number=number,
                    revision=note,
                    ledger_id="l",
                    rows=0,
                    at=at.astimezone(offset),
                    by=note,
                    note=note,
                )
            )
            loaded = append_record(path, "fix", fixes[-1])
            assert path.read_bytes().startswith(before)
        assert loaded.case.fix == tuple(fixes)


@settings(max_examples=100, deadline=None)
@given(TABLES, st.sampled_from(["\n", "\r\n"]))
def test_sealing_adds_a_seal_and_changes_nothing_else(table: dict[str, Any], newline: str) -> None:
    observation = {"symptom": "s", "source_event": "e", "cause_status": "unknown", "conditions": table}
    text = tomlkit.dumps({"a": 1, "observation": observation, "b": {"c": table}}).replace("\n", newline)
    before = tomllib.loads(text)
    after = tomllib.loads(seal_text(text))
    assert after.pop("seal") == {"observation": observation_digest(before["observation"])}
    assert after == before


@settings(max_examples=100, deadline=None)
@given(TABLES)
def test_every_key_of_every_text_has_its_place(table: dict[str, Any]) -> None:
    text = tomlkit.dumps(table)
    places = places_of(text)

    def check(value: Any, key: tuple[int | str, ...]) -> None:
        if key:
            assert places.known(key) == key, dotted(key)
        if isinstance(value, dict):
            for name, item in value.items():
                check(item, (*key, name))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                check(item, (*key, index))
        elif key in places.values:
            span = places.values[key]
            assert tomllib.loads("x = " + text[span.start : span.end])["x"] == value

    check(tomllib.loads(text), ())


def refusal(call: Callable[[], object]) -> str | None:
    """What a call is refused with; None where it is not. Any other exception is a failure of the test."""
    try:
        call()
    except RegcaseError as error:
        return error.text
    return None


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text("[]{}=.,\"'#\n ab1_-:TZ", max_size=60).map(str.encode)))
def test_any_bytes_are_read_or_refused_in_one_clear_way(content: bytes) -> None:
    said = refusal(lambda: parse_toml(Path("case.toml"), content).places())
    assert said is None or said.startswith("case.toml:")


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(MINIMUM) - 1), st.text("x\"'[]=\n#", max_size=2))
def test_a_slip_of_the_hand_is_seen_or_harmless(at: int, typed: str) -> None:
    sealed = seal_text(MINIMUM)
    edited = sealed[:at] + typed + sealed[at + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.toml"
        path.write_text(edited)
        said = refusal(lambda: load_case(path))
    if said is None:
        observation = tomllib.loads(edited)["observation"]
        assert observation == tomllib.loads(sealed)["observation"]
    else:
        assert said.startswith(str(path))
