"""One redactor a trial: the same secret gets the same placeholder everywhere in it, and is counted each time.

Knows texts and `Trial`. Values never reach a count, a message or an exception. Reads no files.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pytest_regcase.records.trial import Trial
from pytest_regcase.redaction.patterns import (
    EMAIL,
    GENERIC_USERS,
    HOME_PATH,
    PLACEHOLDER_PREFIX,
    SECRET_KEY,
    SHAPES,
)

# Our own words, digests and numbers: nothing foreign can stand there.
_LEFT_ALONE = frozenset(
    {"format", "event_id", "event_id_from", "outcome", "outcome_from", "termination", "can_show"}
    | {"redactions", "role", "raised_by", "by"}
)
_PERSONAL = frozenset({"home_path", "user_name", "email"})


class Redactor:
    """Replaces secrets in texts that belong together.

    Call `learn` with every text first: a user name found in a home path then also goes where it stands alone.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._placeholders: dict[tuple[str, str], str] = {}
        self._kinds: Counter[str] = Counter()
        self._users: set[str] = set()

    def learn(self, text: str) -> None:
        """Note the user names that home paths in `text` show."""
        for found in HOME_PATH.finditer(text):
            name = found["secret"]
            if len(name) >= 3 and name.lower() not in GENERIC_USERS:
                self._users.add(name)

    def text(self, text: str) -> str:
        """Return `text` without secrets; what was removed is added to `counts`."""
        for shape in SHAPES:
            text = shape.pattern.sub(self._replacing(shape.kind, shape.kind), text)
        # Before e-mail addresses: a home folder may be named like one.
        text = HOME_PATH.sub(self._replacing("home_path", "user"), text)
        text = EMAIL.pattern.sub(self._replacing(EMAIL.kind, EMAIL.kind), text)
        for name in sorted(self._users, key=lambda each: (-len(each), each)):
            if name in text:
                alone = rf"(?<![A-Za-z0-9_])(?P<secret>{re.escape(name)})(?![A-Za-z0-9_])"
                text = re.sub(alone, self._replacing("user_name", "user"), text)
        return text

    def value(self, value: Any) -> Any:
        """Return plain data without secrets, in keys too; what stands under a secret's name goes as a whole."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self._under_secret_name(item)
                if SECRET_KEY.fullmatch(str(key))
                else self.value(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return type(value)(self.value(item) for item in value)
        return value

    def _under_secret_name(self, value: Any) -> Any:
        if isinstance(value, str) and value and not value.startswith(PLACEHOLDER_PREFIX):
            return self._placeholder("secret_value", "secret_value", value)
        return self.value(value)

    def _replacing(self, kind: str, named: str) -> "Callable[[re.Match[str]], str]":
        def replace(found: re.Match[str]) -> str:
            start, end = found.span("secret")
            around = found.start()
            whole = found.group()
            return (
                whole[: start - around] + self._placeholder(kind, named, found["secret"]) + whole[end - around :]
            )

        return replace

    def _placeholder(self, kind: str, named: str, secret: str) -> str:
        self.counts[kind] += 1
        key = (named, secret)
        if key not in self._placeholders:
            self._kinds[named] += 1
            self._placeholders[key] = f"{PLACEHOLDER_PREFIX}{named.replace('_', '-')}-{self._kinds[named]}"
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
    return {kind: count for kind, count in redact(text)[1].items() if kind not in _PERSONAL}


def redact_trial(trial: Trial) -> Trial:
    """Return `trial` with every text of it redacted and the counts added to its `redactions`."""
    plain = trial.model_dump(mode="python", by_alias=True)
    redactor = Redactor()
    for text in _texts(plain):
        redactor.learn(text)
    cleaned = _walk(redactor, plain)
    counts = Counter(trial.redactions) + redactor.counts
    cleaned["redactions"] = {kind: counts[kind] for kind in sorted(counts)}
    return Trial.model_validate(cleaned)


def _walk(redactor: Redactor, record: dict[str, Any]) -> dict[str, Any]:
    """Redact a record's fields, leaving alone those that hold our own words."""
    cleaned: dict[str, Any] = {}
    for name, item in record.items():
        if name in _LEFT_ALONE:
            cleaned[name] = item
        elif name == "source_digests":
            cleaned[name] = {redactor.text(str(key)): found for key, found in item.items()}
        elif name in ("conditions", "usage"):
            cleaned[name] = redactor.value(item)
        elif isinstance(item, Mapping):
            cleaned[name] = _walk(redactor, dict(item))
        elif isinstance(item, tuple):
            cleaned[name] = tuple(
                _walk(redactor, dict(each)) if isinstance(each, Mapping) else redactor.value(each) for each in item
            )
        else:
            cleaned[name] = redactor.value(item)
    return cleaned


def _texts(value: Any) -> list[str]:
    """Return every string in plain data."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return []
