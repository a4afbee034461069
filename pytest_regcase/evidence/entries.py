"""The entries of one lower-level log: what each line says, of which kind it is, and when it was written.

Streams: a log of any size is read with one line in memory. Never guesses a time: a line that cannot be placed has
none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from pytest_regcase.evidence.journal import export_records, message_of, who_logged
from pytest_regcase.evidence.log_kinds import FileForm, Form, Told, begins_entry, form_of, told, told_by_writer
from pytest_regcase.evidence.log_lines import read_head, read_lines
from pytest_regcase.evidence.log_times import boot_of, since_boot, time_of
from pytest_regcase.records.moments import moment

_DATE_LINE: Final = 40
"""Longest line that is nothing but the date of the table below it."""


class Entry(NamedTuple):
    """One line, or one record of a journal export."""

    first: int
    last: int
    text: str
    form: Form
    at: datetime | None
    """None: it cannot be placed in time."""
    inherited: bool = False
    """The time is that of the line before it."""
    writer: str | None = None
    """Who wrote the record of a journal."""
    lead: str | None = None
    """The line that this one goes on from, where it has no beginning of its own."""

    @property
    def told(self) -> Told:
        """What kind of line it is. Worked out when asked: most lines are asked for their time only."""
        if self.form == "lines":
            found = told(self.text)
            if found.kind == "other" and self.lead is not None and told(self.lead).kind in ("server", "access"):
                return Told("server", self.text)  # a line of a traceback
            return found
        if self.form == "journal-export":
            return told_by_writer(self.writer or "", self.text)
        return Told("other" if self.form == "nothing" else "processes", self.text)


@dataclass(frozen=True)
class Log:
    """One log file and what it is.

    Lines of the form `nothing` are entries too; their kind is "other", for which no sign counts.
    """

    path: Path
    form: FileForm

    @classmethod
    def open(cls, path: Path) -> "Log":
        """Look at the beginning of the file.

        Raises:
            LogUnreadable: it cannot be read.
        """
        return cls(path, form_of(read_head(path)))

    def entries(self, near: datetime) -> Iterator[Entry]:
        """Yield every entry. A date without a year gets the one that brings it closest to `near`.

        Raises:
            LogUnreadable: it cannot be read to its end.
        """
        if self.form.form == "journal-export":
            return self._records()
        if self.form.form in ("process-table", "container-state"):
            return self._table(near)
        return self._lines(near)

    def _lines(self, near: datetime) -> Iterator[Entry]:
        boot: datetime | None = None
        before: datetime | None = None
        lead: str | None = None
        for line in read_lines(self.path):
            text = line.text
            after_boot = since_boot(text)
            if after_boot is not None:
                boot = boot_of(text) or boot
                at = boot + after_boot if boot is not None else None
                before, inherited = at, False
            else:
                at = time_of(text, near)
                inherited = at is None and before is not None
                before = at = at or before
            goes_on = (inherited or at is None) and not begins_entry(text)
            lead = lead if goes_on else text
            yield Entry(
                line.number, line.number, text, self.form.form, at, inherited, lead=lead if goes_on else None
            )

    def _records(self) -> Iterator[Entry]:
        for record in export_records(read_lines(self.path)):
            writer, message = who_logged(record.fields), message_of(record.fields)
            stamp = record.fields.get("__REALTIME_TIMESTAMP", "")
            at = moment(int(stamp) / 1e6) if stamp.isdigit() and len(stamp) < 20 else None
            yield Entry(record.first, record.last, message, "journal-export", at, writer=writer)

    def _table(self, near: datetime) -> Iterator[Entry]:
        """A table shows one moment: the date above it, where there is one. Dates in its rows are other things."""
        at: datetime | None = None
        dated = self.form.form == "process-table"
        for line in read_lines(self.path):
            text = line.text
            if dated and len(text) <= _DATE_LINE:
                at = time_of(text, near) or at
            yield Entry(line.number, line.number, text, self.form.form, at, at is not None)
