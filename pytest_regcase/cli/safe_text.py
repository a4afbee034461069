"""Text of a case as a person may see it: without secrets, with nothing that a terminal would obey.

Knows text; knows no command. The redaction loads when it is asked for.
"""

from collections.abc import Iterable

_TABS = 4


def visible(text: str) -> str:
    """Return `text` with everything that a terminal would not show, or would obey, spelt out."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text.expandtabs(_TABS)
    )


def redacted(texts: Iterable[str]) -> list[str]:
    """Return `texts` without secrets; what one of them shows to be a secret is removed from all."""
    from pytest_regcase.redaction import Redactor

    given = list(texts)
    redactor = Redactor()
    for each in given:
        redactor.learn(each)
    return [redactor.text(each) for each in given]


def redacted_document(document: object) -> object:
    """Return a plain JSON document whose strings are redacted; its keys stay."""
    strings = list(dict.fromkeys(_strings(document)))
    known = dict(zip(strings, redacted(strings), strict=True))
    return _with(document, known)


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _with(value: object, known: dict[str, str]) -> object:
    if isinstance(value, str):
        return known[value]
    if isinstance(value, dict):
        return {key: _with(each, known) for key, each in value.items()}
    return [_with(each, known) for each in value] if isinstance(value, list) else value
