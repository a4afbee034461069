"""Run past SQLAlchemy or through it: the rows are the same."""

from sqlalchemy import Integer, bindparam, select

from pytest_regcase.ledger.prepared import Prepared
from pytest_regcase.ledger.schema import ATTEMPTS
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.words import AttemptVerdict
from tests.rules.attempt_samples import an_attempt


def test_names_and_constants_are_given_in_their_places(ledger: Ledger) -> None:
    verdicts: tuple[AttemptVerdict, ...] = ("recovered", "not-recovered", "recovered", "recovered")
    for number, verdict in enumerate(verdicts):
        ledger.append(an_attempt(verdict, session_id=f"s{number}"))
    ledger.append(an_attempt("recovered", case_id="another"))
    columns = ATTEMPTS.c
    statement = (
        select(columns.session_id, columns.fresh)
        .where(columns.verdict == "recovered", columns.case_id == bindparam("case_id"))
        .order_by(columns.seq.desc())
        .limit(bindparam("size", type_=Integer()))
    )
    given = {"size": 2, "case_id": "trial-37"}
    prepared = Prepared(statement)
    for _ in range(2):
        found = ledger.database.read(lambda connection: prepared.rows(connection, given))
        assert found == [("s3", None), ("s2", None)]
    through = ledger.database.read(lambda connection: connection.execute(statement, given).all())
    assert [tuple(row) for row in through] == found
