import tomllib

import pytest

from pytest_regcase.case_files.rewriting import add_redactions, replace_digests, rewrite_strings
from pytest_regcase.errors import UsageRefused
from pytest_regcase.toml_lines import Key

DIGEST = "sha256:" + "a" * 64
TEXT = f"""\
# a secret in a comment
title = "a secret \\"in quotes\\""  # and a secret behind it
"key secret" = 1
list = ["one", "secret", {{ deep = 'secret' }}]
digest = "{DIGEST}"
lines = \"\"\"
secret
\"\"\"
at = 2026-04-12T09:31:07Z
[secret-table]
x = "secret"
"""


def changed(key: Key, value: str) -> str:
    return value.replace("secret", "gone")


def test_each_string_is_rewritten_and_nothing_else() -> None:
    seen: list[Key] = []

    def note(key: Key, value: str) -> str:
        seen.append(key)
        return changed(key, value)

    text = rewrite_strings(TEXT, note, lambda outside: outside)
    before, after = tomllib.loads(TEXT), tomllib.loads(text)
    assert after["title"] == 'a gone "in quotes"'
    assert after["list"] == ["one", "gone", {"deep": "gone"}]
    assert after["lines"] == "gone\n"
    assert after["secret-table"] == {"x": "gone"}
    assert (after["digest"], after["at"]) == (before["digest"], before["at"])
    assert seen == [("title",), ("list", 0), ("list", 1), ("list", 2, "deep"), ("lines",), ("secret-table", "x")]
    assert text.splitlines()[0] == "# a secret in a comment"


def test_what_stands_outside_of_values_is_rewritten_apart() -> None:
    text = rewrite_strings(TEXT, lambda _, value: value, lambda outside: outside.replace("secret", "gone"))
    assert tomllib.loads(text)["gone-table"] == {"x": "secret"}
    assert tomllib.loads(text)["key gone"] == 1
    assert text.startswith("# a gone in a comment\n")
    assert "# and a gone behind it" in text
    assert "'secret'" in text


def test_nothing_to_do_changes_no_byte() -> None:
    assert rewrite_strings(TEXT, lambda _, value: value, lambda outside: outside) == TEXT


def test_digests_are_replaced_where_they_stand() -> None:
    text = f'[a]\n"x/y" = "{DIGEST}"  # of it\nz = "{DIGEST}"\n'
    new = "sha256:" + "b" * 64
    assert replace_digests(text, {("a", "x/y"): new}) == f'[a]\n"x/y" = "{new}"  # of it\nz = "{DIGEST}"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[observation]\nx = 1\n[seal]\ny = 1\n", {"api_key": 2, "email": 1}),
        ("[observation]\nx = 1\n\n# on the seal\n[seal]\ny = 1\n", {"api_key": 2, "email": 1}),
        ("[observation]\nx = 1\n", {"api_key": 2, "email": 1}),
        ("[observation.redactions]\napi_key = 3 # keys\n[seal]\ny = 1\n", {"api_key": 5, "email": 1}),
        ("[observation.redactions] # of what\ncookie = 3\n", {"cookie": 3, "api_key": 2, "email": 1}),
        ("[observation.redactions]", {"api_key": 2, "email": 1}),
        ("[observation]\nredactions = { api_key = 1 }\n", {"api_key": 3, "email": 1}),
        ("[observation]\nredactions.api_key = 1\nredactions.email = 4\n", {"api_key": 3, "email": 5}),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_counts_are_added_to_what_is_there(text: str, expected: dict[str, int], newline: str) -> None:
    text = text.replace("\n", newline)
    new = add_redactions(text, {"api_key": 2, "email": 1})
    assert tomllib.loads(new)["observation"]["redactions"] == expected
    assert set(tomllib.loads(new)) == set(tomllib.loads(text))
    assert newline == "\r\n" or "\r" not in new
    for line in text.splitlines():
        if "#" in line:
            assert line.split("#")[1] in new
    assert "# on the seal\n[seal]" in new.replace("\r", "") or "# on the seal" not in text


@pytest.mark.parametrize(
    "text", ["[observation]\nredactions.cookie = 1\nredactions.email = 1\n", "observation = { x = 1 }\n"]
)
def test_a_form_that_nothing_can_be_added_to_is_refused(text: str) -> None:
    with pytest.raises(UsageRefused, match="nothing can be"):
        add_redactions(text, {"api_key": 2, "email": 1})
