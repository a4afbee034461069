import tomllib

import pytest

from pytest_regcase.toml_lines import Key, dotted, places_of

TEXT = """\
# a comment with [brackets] and "quotes"
a.b = 1
"quoted key" = { x = 1, "y z" = [1, 2] }
many = [
  "one, ] # not a comment",   # a comment, ]
  { deep = ['''
two
''', "]"] },
]
text = \"\"\"first \\\"\"\" still
last\"\"\"\"

[[table]]  # first
name = 'literal \\'
[table.inner]
at = 1979-05-27 07:32:00Z
[[table.items]]
n = 1
[[table.items]]
n = 2
[[table]]
name = "second"
[table.inner]
at = 1
[other . "x.y"]
z = true
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("a",), 2),
        (("a", "b"), 2),
        (("quoted key",), 3),
        (("quoted key", "y z", 1), 3),
        (("many",), 4),
        (("many", 0), 5),
        (("many", 1, "deep"), 6),
        (("many", 1, "deep", 1), 8),
        (("text",), 10),
        (("table", 0), 13),
        (("table", 0, "name"), 14),
        (("table", 0, "inner", "at"), 16),
        (("table", 0, "items", 1, "n"), 20),
        (("table", 1), 21),
        (("table", 1, "inner", "at"), 24),
        (("other", "x.y", "z"), 26),
        (("table", 1, "absent", "deeper"), 21),
        (("absent",), None),
    ],
)
def test_each_key_has_its_line(key: Key, line: int | None) -> None:
    tomllib.loads(TEXT)
    assert places_of(TEXT).line(key) == line
    assert places_of(TEXT.replace("\n", "\r\n")).line(key) == line


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("many", 0), '"one, ] # not a comment"'),
        (("text",), '"""first \\""" still\nlast""""'),
        (("table", 0, "inner", "at"), "1979-05-27 07:32:00Z"),
        (("quoted key",), '{ x = 1, "y z" = [1, 2] }'),
        (("other", "x.y", "z"), "true"),
    ],
)
def test_a_value_has_its_place(key: Key, value: str) -> None:
    span = places_of(TEXT).values[key]
    assert TEXT[span.start : span.end] == value


def test_headers_come_in_the_order_of_the_text() -> None:
    places = places_of(TEXT)
    assert [key for key, _ in places.headers][:3] == [
        ("table", 0),
        ("table", 0, "inner"),
        ("table", 0, "items", 0),
    ]
    assert all(TEXT[span.start] == "[" and TEXT[span.end - 1] == "]" for _, span in places.headers)


def test_what_the_walker_cannot_follow_ends_it_quietly() -> None:
    assert places_of('a = 1\nb = "never ends').line(("a",)) == 1


def test_a_key_reads_as_toml_and_counts_as_a_person() -> None:
    assert dotted(("a", 0, "b-c", "d e", 1)) == 'a[1].b-c."d e"[2]'
