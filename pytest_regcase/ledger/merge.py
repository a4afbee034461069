"""Brings the lines of another ledger's export, or of a spool, into a ledger: all of them or none.

Bringing the same lines again changes nothing, and the order in which ledgers are merged does not matter. A row
keeps the ledger that it was made on; what was invalidated anywhere stays invalidated.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, insert, select, update

from pytest_regcase.errors import UsageRefused
from pytest_regcase.ledger.columns import attempt_columns, json_of, text_of, time_of
from pytest_regcase.ledger.export import home_row
from pytest_regcase.ledger.late import unfold
from pytest_regcase.ledger.readable import why_not_readable
from pytest_regcase.ledger.schema import (
    ATTEMPTS,
    DECISIONS,
    SCHEMA_VERSION,
    SESSIONS,
    SOURCES,
    TRANSITIONS,
    VERSIONS,
)
from pytest_regcase.ledger.store import Ledger, insert_new
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.canonical import digest

A = ATTEMPTS.c
FIRST_SCHEMA_OF_EXPORTS = 2


@dataclass
class Brought:
    """What came in."""

    attempts: int = 0
    """That were new here."""
    known: int = 0
    """That were here already."""
    invalidated: int = 0
    """That are invalidated here from now on."""
    others: int = 0
    """Sessions, transitions, decisions and versions that were new here."""


class BadLine(ValueError):
    """A line that is no line of an export; the text says why, for whoever knows the file."""


def merge_lines(ledger: Ledger, lines: Callable[[], Iterable[Mapping[str, Any]]]) -> Brought:
    """Bring in the lines of an export, in one transaction. They are asked for again after a lost connection.

    Raises:
        BadLine: a line is none of an export, or the export has no end; nothing is brought in then.
        UsageRefused: it has another record of an attempt that is here; nothing is brought in then.
        LedgerError: it cannot be written.
    """

    def work(connection: Connection) -> Brought:
        given = lines()
        try:
            return _Merge(ledger, connection).run(given)
        finally:
            if isinstance(given, Generator):
                # It may hold a file or another ledger open.
                given.close()

    return ledger.database.write("merge into", work, alone=True)


def import_records(ledger: Ledger, records: Iterable[AttemptRecord]) -> Brought:
    """Store attempts that a session could not, as rows that are made here, in one transaction.

    Raises:
        UsageRefused: another record of one of these attempts is here; nothing is stored then.
        LedgerError: it cannot be written.
    """
    given = list(records)

    def work(connection: Connection) -> Brought:
        brought = Brought()
        for record in given:
            values = attempt_columns(record)
            if ledger.insert(connection, record, values):
                brought.attempts += 1
            else:
                _refuse_another(_row_of(connection, values), values["record"])
                brought.known += 1
        unfold(connection, {each.case_id for each in given})
        return brought

    return ledger.database.write("import attempts into", work, alone=True)


class _Merge:
    """One merge, in one transaction."""

    def __init__(self, ledger: Ledger, connection: Connection) -> None:
        self._ledger = ledger
        self._connection = connection
        self._brought = Brought()
        self._cases: set[str] = set()
        self._attempts = 0

    def run(self, lines: Iterable[Mapping[str, Any]]) -> Brought:
        ended = False
        for number, line in enumerate(lines):
            kind = line.get("kind")
            if (kind == "ledger") != (number == 0):
                raise BadLine("the first line of an export, and no other, has kind = ledger")
            if ended:
                raise BadLine("something follows the line with kind = end")
            if kind == "ledger":
                _check_schema(line)
            elif kind == "end":
                ended = True
                if line.get("attempts") != self._attempts:
                    raise BadLine(f"it ends after {line.get('attempts')} attempts, and holds {self._attempts}")
            elif isinstance(kind, str) and kind in _KINDS:
                try:
                    _KINDS[kind](self, line)
                except KeyError as error:
                    raise BadLine(f"a {kind} line has no {error}") from error
            else:
                raise BadLine(f"kind {kind!r} is none of an export")
        if not ended:
            raise BadLine("its last line, with kind = end, is not there: it was cut off")
        if self._cases:
            unfold(self._connection, self._cases)
        return self._brought

    def source(self, line: Mapping[str, Any]) -> None:
        """The higher number stands: what a ledger had once, it has."""
        _check("source", SOURCES, {"ledger_id": line["ledger_id"], "rows": line["rows"]})
        if line["ledger_id"] == self._ledger.ledger_id:
            return
        query = select(SOURCES.c.rows).where(SOURCES.c.ledger_id == line["ledger_id"])
        here = self._connection.execute(query).scalar()
        if here is None:
            values = {"ledger_id": line["ledger_id"], "rows": line["rows"]}
            self._connection.execute(insert(SOURCES), values)
        elif here < line["rows"]:
            changed = update(SOURCES).where(SOURCES.c.ledger_id == line["ledger_id"])
            self._connection.execute(changed.values(rows=line["rows"]))

    def session(self, line: Mapping[str, Any]) -> None:
        """One that is here too ended if it ended anywhere, and planned what the longer list says."""
        values = {each.name: line.get(each.name) for each in SESSIONS.c}
        query = select(SESSIONS).where(SESSIONS.c.session_id == line["session_id"])
        _check("session", SESSIONS, values)
        here = self._connection.execute(query).mappings().one_or_none()
        if here is None:
            self._connection.execute(insert(SESSIONS), values)
            self._brought.others += 1
            return
        joined = {name: max((here[name], value), key=_more) for name, value in values.items()}
        if joined != dict(here):
            changed = update(SESSIONS).where(SESSIONS.c.session_id == line["session_id"])
            self._connection.execute(changed.values(**joined))

    def attempt(self, line: Mapping[str, Any]) -> None:
        """A new row, or what another ledger knows of a row that is here."""
        self._attempts += 1
        try:
            record = AttemptRecord.model_validate_json(line["record"])
        except (TypeError, ValueError) as error:
            raise BadLine(f"an attempt line holds no attempt ({str(error).splitlines()[0]})") from error
        home = line["home"], line["row"]
        told = {name: line.get(name) for name in ("invalidated_at", "invalidated_why")}
        _check("attempt", SOURCES, {"ledger_id": home[0], "rows": home[1]})
        _check("attempt", ATTEMPTS, told)
        values = attempt_columns(record) | {
            # As it was stored there, so that it is the same here and on from here.
            "record": line["record"],
            **told,
        }
        if home[0] != self._ledger.ledger_id:
            values |= {"home_ledger": home[0], "home_row": home[1]}
        if self._ledger.insert(self._connection, record, values):
            self._brought.attempts += 1
            self._brought.invalidated += values["invalidated_at"] is not None
            self._cases.add(record.case_id)
            return
        self._brought.known += 1
        here = _row_of(self._connection, values)
        _refuse_another(here, line["record"])
        self._join(here, values, home)

    def _join(self, here: RowMapping, values: Mapping[str, Any], home: tuple[str, int]) -> None:
        changes: dict[str, Any] = {}
        at_home = (
            here["home_ledger"] or self._ledger.ledger_id,
            home_row(here["home_ledger"], here["home_row"], here["seq"]),
        )
        if home < at_home and home[0] != at_home[0]:
            # A spool that two ledgers imported: whichever comes first, the same one is its home.
            changes |= {"home_ledger": home[0], "home_row": home[1]}
        known = here["invalidated_at"], here["invalidated_why"]
        told = values["invalidated_at"], values["invalidated_why"]
        if told[0] is not None and (known[0] is None or told < known):
            changes |= {"invalidated_at": told[0], "invalidated_why": told[1]}
            if known[0] is None:
                self._brought.invalidated += 1
                self._cases.add(here["case_id"])
        if changes:
            self._connection.execute(update(ATTEMPTS).where(A.seq == here["seq"]).values(**changes))

    def transition(self, line: Mapping[str, Any]) -> None:
        """What is here word for word is the same."""
        values = {each.name: line.get(each.name) for each in TRANSITIONS.c if each.name != "seq"}
        values["kind"] = line["what"]
        _check("transition", TRANSITIONS, values)
        self._brought.others += insert_new(self._connection, TRANSITIONS, values)

    def decision(self, line: Mapping[str, Any]) -> None:
        """What is here word for word is the same."""
        values = _decision(line)
        _check("decision", DECISIONS, values)
        self._brought.others += insert_new(self._connection, DECISIONS, values)

    def version(self, line: Mapping[str, Any]) -> None:
        """What is here word for word is the same."""
        values = {each.name: line.get(each.name) for each in VERSIONS.c if each.name != "seq"}
        if isinstance(values["decision"], Mapping):  # as schema 2 told it: the decision itself
            values["decision"] = _decision(values["decision"])["digest"]
        _check("version", VERSIONS, values)
        self._brought.others += insert_new(self._connection, VERSIONS, values)


_KINDS = {
    "source": _Merge.source,
    "session": _Merge.session,
    "attempt": _Merge.attempt,
    "transition": _Merge.transition,
    "decision": _Merge.decision,
    "version": _Merge.version,
}


def invalidate(ledger: Ledger, *, why: str, at: datetime, attempt_id: str | None, session_id: str | None) -> int:
    """Set the valid rows of an attempt or a session aside, with the reason. Return how many; none is removed.

    Raises:
        LedgerError: it cannot be written.
    """
    which = A.attempt_id == attempt_id if attempt_id is not None else A.session_id == session_id

    def work(connection: Connection) -> int:
        valid = which & A.invalidated_at.is_(None)
        cases = set(connection.execute(select(A.case_id).where(valid).distinct()).scalars())
        values = {"invalidated_at": time_of(at), "invalidated_why": text_of(why)}
        done = connection.execute(update(ATTEMPTS).where(valid).values(**values)).rowcount
        if cases:
            unfold(connection, cases)
        return int(done)

    return ledger.database.write("invalidate attempts in", work, alone=True)


def _more(value: str | int | None) -> tuple[int, str]:
    """Order what two ledgers say of a session: something is more than nothing, a longer plan than a shorter."""
    return (-1, "") if value is None else (len(str(value)), str(value))


def _decision(line: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a decision. Schema 2 told neither digest nor what it is about: only pytest's sessions decided.

    Raises BadLine where the line's digest is not that of its decision: somebody edited one of the two.
    """
    made = digest(text_of(str(line["decision"])).encode())
    if line.get("digest", made) != made:
        raise BadLine(f"a decision of {line['at']} is not the one whose digest it has: it was edited")
    return {
        "revision": line.get("revision"),
        "at": line["at"],
        "decision": line["decision"],
        "digest": made,
        "about": line.get("about", "session"),
        "rests_on": line.get("rests_on"),
    }


def _check(kind: str, table: Table, values: Mapping[str, Any]) -> None:
    why = why_not_readable(table, values)
    if why is not None:
        raise BadLine(f"a {kind} line is none of an export ({why})")


def _check_schema(line: Mapping[str, Any]) -> None:
    schema = line.get("schema")
    if not isinstance(schema, int) or not schema >= FIRST_SCHEMA_OF_EXPORTS:
        raise BadLine(f"schema {schema!r} is none of an export")
    if schema > SCHEMA_VERSION:
        raise BadLine(
            f"a newer version made it (schema {schema}; this one knows up to {SCHEMA_VERSION}). Upgrade"
            " pytest-regcase"
        )


def _row_of(connection: Connection, values: Mapping[str, Any]) -> RowMapping:
    key = ("case_id", "agent", "scenario", "run", "try", "session_id")
    query = select(ATTEMPTS).where(*(A[name] == values[name] for name in key))
    return connection.execute(query).mappings().one()


def _refuse_another(here: RowMapping, record: str) -> None:
    if here["record"] == record:
        return
    one, other = (AttemptRecord.model_validate_json(each) for each in (here["record"], record))
    if json_of(one.to_plain()) == json_of(other.to_plain()):
        return
    raise UsageRefused(
        f"Couldn't bring in the attempt {other.attempt_id}: row {here['seq']} here is another record of the same"
        f" case, scenario, run, try and session ({one.attempt_id}).\nNothing was changed. See which of the two is"
        " true; a copy of a ledger in which a session went on has no right to its id.",
        slug="ledger-conflict",
    )
