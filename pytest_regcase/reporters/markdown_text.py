"""Text that comes from anywhere as Markdown that shows it and does nothing else.

GitHub's flavour, by its specification (github.github.com/gfm): every ASCII punctuation character can be escaped by
a backslash, and a pipe ends a table cell also inside a code span. Mentions, references and links are found in the
rendered text, where an escaped character is none: a zero-width space (U+200B) behind the character breaks them, as
the bots of code hosts do it.
"""

import re

from pytest_regcase.reporters.layout import one_line

_BREAK = "\u200b"
_SPECIAL = re.compile(r"[\\`*_{}\[\]|~$!]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LINKS = re.compile(
    r"@|#(?=\d)|(?i:\bgh-(?=\d))|(?i:(?<=https:)|(?<=http:)|(?<=ftp:))(?=//)|(?i:\bwww(?=\.))|(?i:\b(?:mailto|xmpp):)"
)
_AT_START = re.compile(r"^(?:[-+#=]|\d+(?=[.)]))")


def plain(text: str, most: int = 500) -> str:
    """Return `text` as one line of Markdown that renders as itself, cut to `most` characters before escaping."""
    line = clipped(one_line(text), most)
    broken = _LINKS.sub(lambda found: found[0] + _BREAK, line)
    marked = _SPECIAL.sub(lambda found: "\\" + found[0], broken)
    for char, entity in _ENTITIES.items():
        marked = marked.replace(char, entity)
    # What would begin a heading, a list or a rule at the start of a line; a number keeps its digits.
    return _AT_START.sub(lambda found: f"{found[0]}{_BREAK}" if found[0][0].isdigit() else f"\\{found[0]}", marked)


def code(text: str, most: int = 200) -> str:
    """Return `text` as a code span on one line, cut to `most` characters; nothing where there is no text.

    Inside one there are no mentions, references, links or HTML. A text with a pipe becomes `plain` text: a
    span of it would be written differently inside a table and outside.
    """
    line = clipped(one_line(text), most)
    if not line or "|" in line:
        return plain(line)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{line}{space}{fence}"


def clipped(text: str, most: int) -> str:
    """Return `text`, or its beginning with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"
