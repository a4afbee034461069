"""Points in time as logs write them. Pure; knows no format."""

from datetime import UTC, datetime
from typing import Any


def utc_text(at: datetime) -> str:
    """Return a point in time as ISO text in UTC, with ``Z``."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moment(value: Any) -> datetime | None:
    """Return a point in time from ISO text with an offset, or from seconds since 1970; else None.

    A text without an offset names no point in time, so it is absent too; so is a time that UTC does not have.
    """
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            if found.tzinfo is None or found.utcoffset() is None:
                return None
            found.astimezone(UTC)  # raises outside the years 1 to 9999
            return found
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
