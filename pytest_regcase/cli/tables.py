"""Tables that fit 80 columns without colour, and the same as Markdown. Knows text alone."""

from collections.abc import Iterator, Sequence

from pytest_regcase.cli.words import COLUMNS

_GAP = "  "


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose first column is what a person copies: it is never cut.

    Where a row is too wide, its first cell stands on a line of its own, the others below the heads.
    """
    others = [max(len(row[place]) for row in (head, *rows)) for place in range(1, len(head))]
    room = COLUMNS - sum(others) - len(_GAP) * len(others)
    first = max((len(row[0]) for row in (head, *rows) if len(row[0]) <= room), default=len(head[0]))
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row[1:], others, strict=True)]
        if len(row[0]) <= first:
            yield _GAP.join([row[0].ljust(first), *cells]).rstrip()
        else:
            yield row[0]
            yield _GAP.join([" " * first, *cells]).rstrip()


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; what a log wrote cannot leave its cell."""
    for row in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(map(plain_markdown, row)) + " |"


def plain_markdown(text: str) -> str:
    """Return words as Markdown that shows them as they are, on one line: no cell, tag, link or emphasis."""
    for mark in "\\|[]*":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;").replace("\n", " ").replace("`", "'")
