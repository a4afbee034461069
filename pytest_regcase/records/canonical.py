"""Canonical JSON and digests: the bytes that seals and counts are made of.

UTF-8, keys sorted, no spaces, date-times in UTC with ``Z``; NaN and infinities become null.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from pytest_regcase.records.moments import utc_text


def canonical_json(value: Any) -> bytes:
    """Return the one byte string that stands for `value`.

    Raises:
        ValueError: a date-time without an offset, or a type that JSON does not have.
    """
    return json.dumps(
        _plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8", "surrogatepass")


def digest(content: bytes) -> str:
    """Return ``"sha256:" + hex`` of `content`."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def digest_of(value: Any) -> str:
    """Return the digest of the canonical JSON of `value`."""
    return digest(canonical_json(value))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"the date-time {value.isoformat()} has no offset; write it with Z or +hh:mm")
        return utc_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item) for item in value]
    raise ValueError(f"{type(value).__name__} has no canonical JSON")
