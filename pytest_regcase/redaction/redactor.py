"""One redactor a trial: the same secret gets the same placeholder everywhere in it, and is counted each time.

Knows texts and plain data. Values never reach a count, a message or an exception. Reads no files.
"""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pytest_regcase.redaction.beside_names import hides, replace_beside_names, strength_of
from pytest_regcase.redaction.keeping import Keep
from pytest_regcase.redaction.patterns import BASIC, SHAPES
from pytest_regcase.redaction.persons import EMAIL, GENERIC_USERS, HOME_PATH, LOGIN
from pytest_regcase.redaction.placeholders import placeholder

PERSONAL: Final = frozenset({"home_path", "user_name", "email"})
"""Kinds that are no secrets."""

_USERS_LIMIT: Final = 200
_DEPTH_LIMIT: Final = 6
_STRING: Final = re.compile(r'(?P<inner>(?:[^"\\\n]|\\[^\n])*+)(?P<closed>")?')
"""A string of JSON from behind its quote; where nothing closes it, the rest of the line."""
_KEY_BEFORE: Final = re.compile(r'"([A-Za-z0-9_.-]{2,80})"\s{0,3}:\s{0,3}\Z')


class Redactor:
    """Replaces secrets in texts that belong together.

    Call `learn` with every text first: a user name found in a home path then also goes where it stands alone.
    `keep` says what stays; what did is counted in `kept`. `numbers_taken` are the placeholders that are there
    already (`placeholders.numbers_taken`).
    """

    def __init__(self, *, keep: Keep | None = None, numbers_taken: Mapping[str, int] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        """What stayed, by the words of `keep`."""
        self._keep = keep or Keep()
        self._placeholders: dict[tuple[str, str], str] = {}
        self._numbers: Counter[str] = Counter(numbers_taken)
        self._users: set[str] = set()
        self._alone: re.Pattern[str] | None = None

    def learn(self, text: str) -> None:
        """Note the user names that home paths and logins in `text` show; at most 200, then no more."""
        for pattern in (HOME_PATH, LOGIN):
            for found in pattern.finditer(text):
                name = found["secret"]
                if len(name) >= 3 and name.lower() not in GENERIC_USERS and len(self._users) < _USERS_LIMIT:
                    self._users.add(name)
                    self._alone = None

    def learn_value(self, value: Any) -> None:
        """Do what `learn` does with every text in plain data."""
        if isinstance(value, str):
            self.learn(value)
        elif isinstance(value, Mapping):
            for item in value.values():
                self.learn_value(item)
        elif isinstance(value, list | tuple):
            for item in value:
                self.learn_value(item)

    def text(self, text: str, *, persons: bool = True) -> str:
        """Return `text` without secrets; what was removed is added to `counts`.

        Without `persons`, home paths, addresses and user names stay.
        """
        return self._text(text, persons, 0)

    def value(self, value: Any) -> Any:
        """Return plain data without secrets, in keys too; what stands under a secret's name goes as a whole."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            named = value.get("name", value.get("key"))
            beside = strength_of(named) if isinstance(named, str) else None
            return {
                self.text(str(key)): self._whole(item)
                if isinstance(item, str) and hides(beside if key == "value" else strength_of(str(key)), item)
                else self.value(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return type(value)(self.value(item) for item in value)
        return value

    def replace(self, kind: str, secret: str) -> str:
        """Return what stands in the place of `secret`, and count it."""
        return self._replaced(kind, kind, secret)

    def _text(self, text: str, persons: bool, depth: int) -> str:
        if "\\" in text and '"' in text and depth < _DEPTH_LIMIT:
            # Escapes split what the patterns look for, so strings of JSON are read first.
            text = self._strings(text, persons, depth + 1)
        lowered = text.lower()
        for shape in SHAPES:
            if any(each in lowered for each in shape.needs):
                text = shape.pattern.sub(self._replacing(shape.kind, shape.kind), text)
        if "basic" in lowered:
            text = BASIC.sub(self._replacing("bearer_token", "bearer_token", _is_name_and_password), text)
        text = replace_beside_names(text, partial(self._replaced, "secret_value", "secret_value"))
        if not persons:
            return text
        # Before e-mail addresses: a home folder may be named like one.
        text = HOME_PATH.sub(self._replacing("home_path", "user"), text)
        if "@" in text:
            text = EMAIL.sub(self._replacing("email", "email"), text)
        text = LOGIN.sub(self._replacing("user_name", "user", _is_person), text)
        if self._users:
            text = self._users_alone().sub(self._replacing("user_name", "user"), text)
        return text

    def _strings(self, text: str, persons: bool, depth: int) -> str:
        """Return `text` with its strings of JSON redacted as what they mean, and everything else as it was."""
        kept: list[str] = []
        done = at = 0
        while (at := text.find('"', at)) >= 0:
            found = _STRING.match(text, at + 1)
            end = found.end() if found is not None else at + 1
            if found is not None and found["closed"] and "\\" in found["inner"]:
                named = _KEY_BEFORE.search(text, max(at - 90, 0), at)
                cleaned = self._string(found["inner"], named[1] if named is not None else "", persons, depth)
                if cleaned is not None:
                    kept += (text[done:at], cleaned)
                    done = end
            at = end
        return "".join((*kept, text[done:])) if kept else text

    def _string(self, inner: str, name: str, persons: bool, depth: int) -> str | None:
        """Return the string in its quotes, redacted; None where there is nothing to redact."""
        try:
            meant = json.loads(f'"{inner}"', strict=False)
        except ValueError:
            return None
        if strength_of(name) == "password" and hides("password", meant):
            cleaned = self._whole(meant)
        else:
            cleaned = self._text(meant, persons, depth)
        if cleaned == meant:
            return None
        # Half of a surrogate pair can only be written as an escape.
        return json.dumps(cleaned, ensure_ascii=inner.isascii() or not _can_be_encoded(cleaned))

    def _whole(self, value: str) -> str:
        return self._replaced("secret_value", "secret_value", value)

    def _users_alone(self) -> re.Pattern[str]:
        if self._alone is None:
            names = sorted(self._users, key=lambda each: (-len(each), each))
            self._alone = re.compile(
                rf"(?<![A-Za-z0-9_])(?P<secret>{'|'.join(map(re.escape, names))})(?![A-Za-z0-9_])"
            )
        return self._alone

    def _replacing(
        self, kind: str, named: str, only: Callable[[str], bool] | None = None
    ) -> "Callable[[re.Match[str]], str]":
        def replace(found: re.Match[str]) -> str:
            whole, secret = found.group(), found["secret"]
            if only is not None and not only(secret):
                return whole
            start, end = found.span("secret")
            around = found.start()
            return whole[: start - around] + self._replaced(kind, named, secret) + whole[end - around :]

        return replace

    def _replaced(self, kind: str, named: str, secret: str) -> str:
        reason = self._keep.matched(kind, secret)
        if reason is not None:
            self.kept[reason] += 1
            return secret
        self.counts[kind] += 1
        key = (named, secret)
        if key not in self._placeholders:
            self._numbers[named] += 1
            self._placeholders[key] = placeholder(named, self._numbers[named])
        return self._placeholders[key]


def redact(text: str) -> tuple[str, dict[str, int]]:
    """Return `text` without secrets and home paths, and how many were removed by kind.

    Doing it twice changes nothing more.
    """
    redactor = Redactor()
    redactor.learn(text)
    return redactor.text(text), dict(redactor.counts)


def secrets_in(text: str) -> dict[str, int]:
    """Return the kinds and numbers of secrets in `text`, leaving out personal paths and addresses."""
    redactor = Redactor()
    redactor.text(text, persons=False)
    return dict(redactor.counts)


def _is_person(name: str) -> bool:
    return name.lower() not in GENERIC_USERS


def _is_name_and_password(text: str) -> bool:
    """Say whether Basic credentials decode to ``name:password`` (RFC 7617)."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    return ":" in decoded and decoded.isprintable()


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
