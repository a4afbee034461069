"""What of a case is guarded, so that it changes only with an amendment. Compares two versions of a case.

Knows records; reads nothing. Which direction of a change is a loosening is not known here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.case import Amendment, RegressionCase
from pytest_regcase.toml_lines import Key, dotted

GUARDED: Final = (
    "observation",
    "expected_recovery",
    "symptom_match",
    "handover.rerun_rule",
    "baseline",
    "hypotheses",
    "task",
    "replies",
    "quarantine",
)
"""The tables whose keys are guarded. Records that are only appended (evidence, fixes) are never changed at all."""

ABSENT: Final = "absent"
"""Stands for the value of a key that is not there: no JSON value is spelt so."""

_ARROW: Final = " -> "

REDACTED: Final = "removed "
"""How the text of an amendment by `regcase redact` begins."""


class Change(NamedTuple):
    """One guarded key whose value is another one now."""

    key: str
    """As TOML writes it; a hypothesis by its id: ``hypotheses.deadline.simulations``."""
    old: str
    """Canonical JSON, or `ABSENT`."""
    new: str

    @property
    def text(self) -> str:
        """What an amendment says of it."""
        return f"{self.key} {self.old}{_ARROW}{self.new}"

    @property
    def is_observed(self) -> bool:
        """Say whether it is a change of the observation, which is sealed."""
        return self.key.startswith("observation.")


def guarded_values(case: RegressionCase) -> dict[str, str]:
    """Return the guarded keys of `case` and their values as text, as the model reads them.

    Defaults count: a key that is taken out has its default then. The cause status is computed, so it is no key.
    """
    plain = case.to_sparse()
    tables: dict[Key, Any] = {(name,): plain.get(name, {}) for name in GUARDED if "." not in name}
    tables["handover", "rerun_rule"] = plain.get("handover", {}).get("rerun_rule", {})
    tables["hypotheses",] = {
        each["id"]: {
            "simulations": each.get("simulations", []),
            "may_coincide_with": each.get("may_coincide_with"),
        }
        for each in plain.get("hypotheses", ())
    }
    tables["observation",] = {key: value for key, value in tables["observation",].items() if key != "cause_status"}
    return {
        dotted(key): canonical_json(value).decode("utf-8", "replace")
        for table, values in tables.items()
        for key, value in _leaves(table, values)
    }


def guarded_changes(before: RegressionCase, now: RegressionCase) -> tuple[Change, ...]:
    """Return every guarded key whose value differs, sorted by key."""
    old, new = guarded_values(before), guarded_values(now)
    return tuple(
        Change(key, old.get(key, ABSENT), new.get(key, ABSENT))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )


def appended_since(before: RegressionCase, now: RegressionCase) -> tuple[Amendment, ...]:
    """Return the amendments of `now` that `before` has not, in file order."""
    return tuple(each for each in now.amendments if each not in before.amendments)


def is_amended(change: Change, since: Iterable[Amendment], *, old_seal: str | None) -> bool:
    """Say whether the amendments `since` the older version record `change`.

    One of the observation needs something that took the place of the seal `old_seal`, and an amendment that names
    the key (in a person's words, or as a redaction); any other an amendment of exactly that key that ends in the
    value of now: of a chain of amendments the last link is enough.
    """
    if change.is_observed:
        resealed = [each for each in since if each.old_digest is not None]
        return any(each.old_digest == old_seal for each in resealed) and any(
            names_observed(each.what, change.key) for each in resealed
        )
    start, end = f"{change.key} ", f"{_ARROW}{change.new}"
    return any(each.what.startswith(start) and each.what.endswith(end) for each in since)


def names_observed(what: str, key: str) -> bool:
    """Say whether the text of an amendment names `key` of the observation.

    A redaction tells the files that it changed, and cannot tell the texts; digests and counts follow from it.
    """
    if what.startswith(REDACTED):
        follows = key.startswith(("observation.recorded", "observation.redactions", "observation.source_digests"))
        return follows or "case.toml" in what
    return (
        re.search(rf"(?<![\w.-]){re.escape(key.removeprefix('observation.'))}(?![\w-])", _short_names(what))
        is not None
    )


def _short_names(what: str) -> str:
    return what.replace("observation.", "")


def _leaves(key: Key, value: Any) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves((*key, name), item)
    elif value is not None:
        yield key, value
