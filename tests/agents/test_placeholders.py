import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.agents.placeholders import WHY_ABSENT, fill
from pytest_regcase.config import PLACEHOLDERS
from pytest_regcase.errors import UsageRefused

VALUES = {name: f"<{name}>" for name in PLACEHOLDERS}


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_every_documented_placeholder_is_filled_in(name: str) -> None:
    assert fill(f"--x={{{name}}}/y", VALUES, where="command[1]") == f"--x=<{name}>/y"


def test_a_value_is_never_filled_in_again() -> None:
    values = {"task": "write {out_dir} and {nonsense}", "out_dir": "/out"}
    assert fill("{task} in {out_dir}", values, where="command[1]") == "write {out_dir} and {nonsense} in /out"


@pytest.mark.parametrize(
    "text",
    [
        "${HOME}",
        "${HOME:-{}}",
        "{{task}}",
        "{{ task }}",
        "awk '{ print }'",
        "{}",
        '{"a": {"b": [1]}}',
        "{0}",
        "{a-b}",
    ],
)
def test_braces_of_shells_templates_and_json_stay(text: str) -> None:
    assert fill(text, VALUES, where="command[1]") == text


def test_json_around_a_placeholder_stays() -> None:
    text = fill(
        '{"seed": {seed}, "out": {"dir": "{out_dir}"}}', {"seed": "7", "out_dir": "/o"}, where="command[1]"
    )
    assert json.loads(text) == {"seed": 7, "out": {"dir": "/o"}}


def test_an_unknown_placeholder_names_the_key_and_the_known_ones() -> None:
    with pytest.raises(UsageRefused) as caught:
        fill("{outdir}", VALUES, where="[tool.regcase.agents.default] command[3]")
    assert caught.value.slug == "unknown-placeholder"
    assert "[tool.regcase.agents.default] command[3]" in caught.value.text
    assert "{outdir}" in caught.value.text
    for name in PLACEHOLDERS:
        assert f"{{{name}}}" in caught.value.text


@pytest.mark.parametrize("name", sorted(WHY_ABSENT))
def test_an_absent_value_says_why(name: str) -> None:
    with pytest.raises(UsageRefused) as caught:
        fill(f"{{{name}}}", {}, where="env.X")
    assert caught.value.slug == "absent-placeholder"
    assert WHY_ABSENT[name] in caught.value.text


@given(st.text())
def test_text_without_a_brace_is_unchanged(text: str) -> None:
    plain = text.replace("{", "(")
    assert fill(plain, {}, where="x") == plain


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="{}$")))
def test_any_value_stands_where_its_placeholder_stood(value: str, around: str) -> None:
    assert fill(f"{around}{{task}}{around}", {"task": value}, where="x") == f"{around}{value}{around}"
