"""The journal's own formats: its export format, where a record spans lines, and one JSON object a record.

Knows what systemd's "Journal Export Formats" page says: ``FIELD=value`` a line, an empty line after each record; a
field whose value is not plain text stands as its name alone, 8 bytes of its size (little-endian), the value, and a
line end.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pytest_regcase.evidence.log_lines import Line, LogUnreadable

EXPORT_BEGINS: Final = b"__CURSOR="
VALUE_LIMIT_BYTES: Final = 16 * 1024 * 1024
_FIELDS: Final = frozenset(
    {
        "MESSAGE",
        "_TRANSPORT",
        "SYSLOG_IDENTIFIER",
        "_COMM",
        "_SYSTEMD_UNIT",
        "CONTAINER_NAME",
        "__REALTIME_TIMESTAMP",
    }
)


class JournalRecord(NamedTuple):
    """One record, and the lines that it stands in."""

    first: int
    last: int
    fields: dict[str, str]
    """Those that tell what was logged, when, and by whom."""


def export_records(lines: Iterable[Line]) -> Iterator[JournalRecord]:
    """Yield the records of a journal export.

    Raises:
        LogUnreadable: a value's size is none that a journal holds: the export is damaged.
    """
    fields: dict[str, str] = {}
    first = last = 0
    name, value = "", bytearray()
    for line in lines:
        if name:
            value += line.raw
            if (size := _size(value)) is not None and len(value) > 8 + size:
                _keep(fields, name, bytes(value[8 : 8 + size]))
                name, value = "", bytearray()
            last = line.number
            continue
        raw = line.raw.rstrip(b"\r\n")
        if not raw:
            if fields:
                yield JournalRecord(first, last, fields)
            fields = {}
            continue
        if not fields:
            first = line.number
        last = line.number
        key, equals, text = raw.partition(b"=")
        if equals:
            _keep(fields, key.decode("utf-8", "replace"), text)
        else:
            name = key.decode("utf-8", "replace")
    if fields:
        yield JournalRecord(first, last, fields)


def who_logged(fields: Mapping[str, Any]) -> str:
    """Return ``kernel``, or the names that the record's writer goes by."""
    if fields.get("_TRANSPORT") == "kernel":
        return "kernel"
    names = (fields.get(key) for key in ("SYSLOG_IDENTIFIER", "_COMM", "_SYSTEMD_UNIT", "CONTAINER_NAME"))
    return " ".join(each for each in names if isinstance(each, str))


def message_of(fields: Mapping[str, Any]) -> str:
    """Return the record's text; as JSON it may be a list of bytes, where it is not UTF-8."""
    message = fields.get("MESSAGE")
    if isinstance(message, list) and all(isinstance(each, int) and 0 <= each < 256 for each in message):
        return bytes(message).decode("utf-8", "replace")
    return message if isinstance(message, str) else ""


def _size(value: bytearray) -> int | None:
    if len(value) < 8:
        return None
    size = int.from_bytes(value[:8], "little")
    if size > VALUE_LIMIT_BYTES:
        raise LogUnreadable("it is a damaged journal export", "Export that part of the journal again.")
    return size


def _keep(fields: dict[str, str], name: str, value: bytes) -> None:
    # Every record has at least one of its own fields kept, so that an empty line ends a record and not a blank.
    if name in _FIELDS or not fields:
        fields[name] = value.decode("utf-8", "replace")
