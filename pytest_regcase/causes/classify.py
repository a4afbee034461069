"""Says the cause of a failure from its whole chain.

Must not import a client library: classes are told by their names. Decides by the table and nothing else.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pytest_regcase.causes.chain import Link, links_of
from pytest_regcase.causes.table import CLUES, FOREIGN, OUTER_DEADLINE, Clue
from pytest_regcase.records.base import Record
from pytest_regcase.records.trial import ErrorLink, TrialError
from pytest_regcase.records.words import FailureCauseWord

_ORDER: tuple[FailureCauseWord, ...] = ("key_budget", "key_auth", "transient", "unknown")
_SAYS_MORE = frozenset({"oom", "context_length", "content_filter", "process_death"})
_REFUSALS = frozenset({400, 404, 422})
"""Statuses that refuse the request itself: words about a time-out in their text are about something else."""


class FailureCause(Record):
    """What a failure is, as far as its own words tell. A label to act on, not evidence."""

    cause: FailureCauseWord
    kind: str
    """Finer: budget, auth; rate_limit, overloaded, not_ready, timeout, connection, server_error; oom,
    context_length, content_filter, process_death, not_found, bad_request; unknown."""
    said: str | None = None
    """The words that decided; absent where nothing did."""


class _Found(NamedTuple):
    clue: Clue
    said: str


def classify_failure(error: "BaseException | TrialError | ErrorLink | Mapping[str, object] | str") -> FailureCause:
    """Return the cause of `error`: an exception, a recorded error, its text, or a mapping.

    A mapping may hold type, message, status_code, code, error_type, body and chain (a list of the like, outermost
    first). Every link is read, and of one link what is structured before its text, and that before its class and
    status. Over the chain key_budget wins over key_auth, that over transient, that over unknown, and of equals the
    deepest link; but a bare server error gives way to a link that says what went wrong inside. What a tool or the
    environment says is no evidence. Never raises.
    """
    found = [each for link in links_of(error) if (each := _read(link)) is not None]
    if any(each.clue.kind in _SAYS_MORE for each in found):
        found = [each for each in found if each.clue.kind != "server_error"]
    if not found:
        return FailureCause(cause="unknown", kind="unknown")
    first = min(_ORDER.index(each.clue.cause) for each in found)
    of_cause = [each for each in found if each.clue.cause == _ORDER[first]]
    telling = [each for each in of_cause if each.clue.kind not in ("server_error", "bad_request")] or of_cause
    return FailureCause(cause=telling[-1].clue.cause, kind=telling[-1].clue.kind, said=telling[-1].said)


def _read(link: Link) -> _Found | None:
    if FOREIGN.search(link.text) or any(FOREIGN.search(each) for each in link.types[:1]):
        return None
    for clue in CLUES:
        for code in link.codes:
            if clue.says_code(code):
                return _Found(clue, f"code {code}")
    text = OUTER_DEADLINE.sub(" ", link.text)
    for clue in CLUES:
        if clue.cause == "transient" and link.status in _REFUSALS:
            continue
        words = clue.in_text(text)
        if words is not None:
            return _Found(clue, words)
    cut_short = text != link.text
    for clue in CLUES:
        if clue.kind == "timeout" and cut_short:
            continue
        for name in link.names:
            if clue.says_type(name):
                return _Found(clue, name)
        if link.status in clue.statuses:
            return _Found(clue, f"status {link.status}")
        for code in link.codes:
            if clue.says_bare_code(code):
                return _Found(clue, f"code {code}")
    return None
