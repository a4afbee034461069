"""Text as it goes in and out of a command: arguments that a file can hold, lines that fit a terminal.

Knows click and text; knows no command.
"""

import textwrap
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

COLUMNS = 80
_NO_BREAK = "\u00a0"


class Words(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """An argument that is written into a file: UTF-8, and not empty (to say nothing, leave the option out)."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it was given.

        Raises:
            click.BadParameter: it is empty, or not UTF-8 (Python then holds lone surrogates).
        """
        words = str(value)
        try:
            words.encode()
        except UnicodeEncodeError:
            self.fail("it is not UTF-8 text.", param, ctx)
        if not words.strip():
            self.fail("it is empty; leave the option out, or say something.", param, ctx)
        return words


class Commands(click.Group):
    """A group of commands; a slip is answered with the one that was meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called.

        Raises:
            click.UsageError: there is none of that name.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as refused:
            near = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"{refused.message} {near}".rstrip(), ctx) from None


class OneOf(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """One of some words; a slip is answered with the one that was meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word.

        Raises:
            click.BadParameter: it is none of them.
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as refused:
            near = did_you_mean(str(value), map(str, self.choices))
            self.fail(f"{refused.message} {near}".rstrip(), param, ctx)


class GivenPath(click.Path):
    """A path that says something: an unset variable of a shell is not the folder that one is in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path as it was given.

        Raises:
            click.BadParameter: it is empty, or what `click.Path` refuses.
        """
        if value == "":
            self.fail("it is empty, and would be the folder that you are in; say . for that.", param, ctx)
        return super().convert(value, param, ctx)


def wrapped(text: str, *, first: str = "  ", further: str = "    ") -> str:
    """Return `text` in lines of at most 80 columns; paths, options and other long words are never broken.

    A number and its percent sign stay together.
    """
    paragraphs = text.replace(" %", f"{_NO_BREAK}%").splitlines()
    return "\n".join(_lines(paragraphs, first, further)).replace(_NO_BREAK, " ")


def labelled(label: str, text: str) -> str:
    """Return `text` in wrapped lines beside a label of at most nine characters."""
    return wrapped(text, first=f"  {label:<9} ", further=" " * 12)


def _lines(paragraphs: "Iterable[str]", first: str, further: str) -> "Iterable[str]":
    for each in paragraphs:
        yield from textwrap.wrap(
            each,
            COLUMNS,
            initial_indent=first,
            subsequent_indent=further,
            break_long_words=False,
            break_on_hyphens=False,
        )
        first = further
