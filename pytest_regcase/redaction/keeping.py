"""What a person wants to keep although it looks like a secret, and why.

Knows kinds and regular expressions. What was kept, how often and why goes into the case.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.case import Kept

KINDS: Final = frozenset(
    {"api_key", "bearer_token", "cookie", "email", "home_path", "json_web_token", "masked_key", "private_key"}
    | {"secret_value", "url_credentials", "user_name"}
)
"""The kinds that a redactor finds by itself."""


class Keep:
    """Words that are a kind, or a regular expression that must match the whole of what would be removed."""

    def __init__(self, words: Sequence[str] = (), why: str | None = None) -> None:
        """Take the words of `--keep`, and the reason, which must be given with them.

        Raises:
            UsageRefused: words without a reason, a reason without words, or one that is no kind and no regular
                expression.
        """
        if words and not (why and why.strip()):
            raise UsageRefused(
                "Couldn't keep what looks like a secret: no reason is given, and the case records it.\n"
                "Say it with --keep-reason."
            )
        if why and why.strip() and not words:
            raise UsageRefused(
                "Couldn't use --keep-reason: nothing is to be kept.\nSay with --keep what it is the reason for."
            )
        self._why = why
        self._kinds = frozenset(words) & KINDS
        self._patterns: dict[str, re.Pattern[str]] = {}
        for each in words:
            if each not in KINDS:
                try:
                    self._patterns[each] = re.compile(each)
                except re.error as error:
                    raise UsageRefused(
                        f"Couldn't keep what --keep says: it is no kind and no regular expression ({error.msg}).\n"
                        f"Kinds: {', '.join(sorted(KINDS))}."
                    ) from None

    def matched(self, kind: str, secret: str) -> str | None:
        """Return the word that keeps `secret`; None where none does."""
        if kind in self._kinds:
            return kind
        return next((word for word, pattern in self._patterns.items() if pattern.fullmatch(secret)), None)

    def records(self, kept: Mapping[str, int]) -> tuple[Kept, ...]:
        """Return what a case records of it; `kept` as `Redactor.kept` has it."""
        return tuple(Kept(what=what, count=count, why=self._why or "") for what, count in sorted(kept.items()))

    def unused(self, kept: Mapping[str, int]) -> tuple[str, ...]:
        """Return the words that kept nothing, as they were given."""
        return tuple(sorted((self._kinds | set(self._patterns)) - set(kept)))
