"""Tables that fit a terminal; what a person copies out of them is never cut."""

from pytest_regcase.cli.tables import markdown_table, plain_markdown, table

HEAD = ("trial", "step", "signature")


def test_columns_are_aligned() -> None:
    assert list(table(HEAD, [("a", "3", "x"), ("longer", "12", "y")])) == [
        "trial   step  signature",
        "a       3     x",
        "longer  12    y",
    ]


def test_a_key_that_is_too_long_stands_alone_and_whole() -> None:
    long = "k" * 90
    lines = list(table(HEAD, [("a", "3", "x"), (long, "4", "y")]))
    assert lines == ["trial  step  signature", "a      3     x", long, "       4     y"]


def test_a_cell_cannot_be_left() -> None:
    assert list(markdown_table(("a",), [("x|y\n<b>`\\",)])) == ["| a |", "| --- |", "| x\\|y &lt;b>'\\\\ |"]
    assert plain_markdown("![p](u) *x*") == r"!\[p\](u) \*x\*"
