"""Redacts a whole trial: every text of it, and nothing that is our own word, a number or a digest.

Knows `Trial`. Reads no files.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from pytest_regcase.records.trial import Trial
from pytest_regcase.redaction.redactor import Redactor

LEFT_ALONE: Final = frozenset(
    {"format", "event_id_from", "outcome", "outcome_from", "termination", "can_show"}
    | {"redactions", "role", "raised_by", "by", "by_person"}
)
"""Our own words, digests and numbers: nothing foreign can stand there."""


def redact_trial(trial: Trial, redactor: Redactor | None = None) -> Trial:
    """Return `trial` with every text of it redacted and the counts added to its `redactions`.

    `redactor` is a new one by default; give one to keep something (`Redactor(keep=...)`).
    """
    redactor = redactor or Redactor()
    plain = trial.model_dump(mode="python", by_alias=True)
    redactor.learn_value(plain)
    before = redactor.counts.copy()
    cleaned = redact_record(redactor, plain)
    counts = Counter(trial.redactions) + (redactor.counts - before)
    cleaned["redactions"] = {kind: counts[kind] for kind in sorted(counts)}
    return Trial.model_validate(cleaned)


def redact_record(redactor: Redactor, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's fields redacted, those that hold our own words as they are."""
    cleaned: dict[str, Any] = {}
    for name, item in record.items():
        if name in LEFT_ALONE:
            cleaned[name] = item
        elif name == "source_digests":
            cleaned[name] = {redactor.text(str(key)): found for key, found in item.items()}
        elif name in ("conditions", "usage", "body"):
            cleaned[name] = redactor.value(item)
        elif isinstance(item, Mapping):
            cleaned[name] = redact_record(redactor, item)
        elif isinstance(item, tuple | list):
            cleaned[name] = type(item)(
                redact_record(redactor, each) if isinstance(each, Mapping) else redactor.value(each)
                for each in item
            )
        else:
            cleaned[name] = redactor.value(item)
    return cleaned
