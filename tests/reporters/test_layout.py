from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.reporters.layout import one_line, painted, wrapped

SETTINGS = settings(deadline=None, derandomize=True)
WORDS = st.lists(st.text(alphabet="abc/-", min_size=1, max_size=120), min_size=1, max_size=12).map(" ".join)


@SETTINGS
@given(WORDS, st.integers(20, 90), st.integers(0, 10), st.integers(0, 10))
def test_wrapping_keeps_every_character_and_the_width(text: str, width: int, first: int, then: int) -> None:
    lines = wrapped(text, width, first=" " * first, then=" " * then)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == text.replace(" ", "")


def test_a_path_breaks_after_a_slash() -> None:
    assert wrapped("see a/long/path/to/a/folder now", 14) == ["see", "a/long/path/", "to/a/folder", "now"]


def test_a_word_without_a_slash_breaks_where_it_must() -> None:
    assert wrapped("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_an_empty_text_is_one_line() -> None:
    assert wrapped("", 10, first="  - ") == ["  -"]


def test_control_characters_become_spaces() -> None:
    assert one_line("a\n\tb\x1b[31m c\x00") == "a b [31m c"


def test_paint_is_left_out_without_colour() -> None:
    assert painted("red", "31", colour=False) == "red"
    assert painted("red", "31", colour=True) == "\x1b[31mred\x1b[0m"
