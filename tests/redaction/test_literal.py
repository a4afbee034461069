import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.errors import UsageRefused
from pytest_regcase.redaction import Literal

SECRET = 'p4/s"s\\w0rd é&'


def escaped(text: str, levels: int) -> str:
    """The text as it stands in JSON inside JSON."""
    for _ in range(levels):
        text = json.dumps(text)[1:-1]
    return text


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        escaped(SECRET, 2),
        escaped(SECRET, 3),
        json.dumps(SECRET)[1:-1].replace("/", "\\/").replace("&", "\\u0026"),
        json.dumps(SECRET)[1:-1].replace("\\u00e9", "\\u00E9"),
        quote(SECRET),
        quote(SECRET, safe=""),
    ],
)
def test_every_spelling_is_the_secret(written: str) -> None:
    assert Literal(SECRET).replaced(f"<{written}> and <{written}>", "X") == ("<X> and <X>", 2)


def test_lines_are_found_where_json_escapes_their_ends() -> None:
    secret = "first line\nsecond line"
    assert Literal(f"{secret}\n").replaced(json.dumps({"k": secret}), "X") == ('{"k": "X"}', 1)


def test_a_letter_with_a_backslash_before_it_is_another_one() -> None:
    assert Literal("north").replaced(r"\north", "X") == (r"\X", 1)
    assert Literal("a.b*c").replaced("aXb*c a.bbc", "X") == ("aXb*c a.bbc", 0)


@given(st.text(min_size=4, max_size=20).filter(lambda text: len(text.strip()) >= 4), st.integers(0, 3))
def test_whatever_it_is_it_goes_from_json_of_any_depth(secret: str, levels: int) -> None:
    secret = secret.strip("\r\n")
    if len(secret.strip()) < 4:
        return
    written: object = secret
    for _ in range(levels):
        written = json.dumps(written)
    cleaned, count = Literal(secret).replaced(str(written), "X")
    assert count >= 1
    for _ in range(levels):
        cleaned = json.loads(cleaned)
    assert secret not in cleaned or set(secret) <= {"X"}


@pytest.mark.parametrize("secret", ["", "   ", "abc", "\n\nabc\n", "     xyz   "])
def test_what_is_too_short_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(UsageRefused, match="fewer than 4 characters") as refusal:
        Literal(secret)
    assert secret.strip() == "" or secret.strip() not in refusal.value.text


def test_nothing_shows_its_value() -> None:
    literal = Literal("hunter2-the-secret")
    assert "hunter2" not in f"{literal!r} {literal}"
