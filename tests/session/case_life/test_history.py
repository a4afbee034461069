from datetime import UTC, datetime, timedelta
from pathlib import Path

from pytest_regcase.case_files import append_record
from pytest_regcase.records.case import Evidence, Withdrawal
from pytest_regcase.records.session import Transition
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.session.case_life.close import close_case
from pytest_regcase.session.case_life.fix import claim_fix
from pytest_regcase.session.case_life.history import Event, case_history
from pytest_regcase.session.case_life.life import reopen_case
from tests.session.case_life.stories import ID, LifeProject, make_life_project

AT = datetime(2026, 5, 10, 12, tzinfo=UTC)
SESSION_AT = datetime(2026, 5, 20, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


def told(life: LifeProject) -> list[Event]:
    with life.ledger() as ledger:
        return list(case_history(life.case, ledger))


def test_the_story_is_told_in_time_order(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    project, path = life.project, life.path
    claim_fix(project, path, revision="config v8", by="mina", note="lower time-out", at=AT)
    life.session("s1")
    life.attempt("control", "finished", session_id="s1")
    life.attempt("deadline-no-answer-v1", "recovered", session_id="s1")
    tries: list[AttemptVerdict] = ["not-recovered", "recovered", "not-recovered"]
    for number, verdict in enumerate(tries):
        life.attempt("auth-rejected-v1", verdict, session_id="s1", try_number=number)
    life.live("clean", "clean")
    close_case(project, path, by="omar", at=SESSION_AT + HOUR)
    reopen_case(project, path, why="came back", by="omar", at=SESSION_AT + 2 * HOUR)
    events = told(life)
    assert [(each.kind, each.at, each.who, each.why) for each in events] == [
        ("observed", datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC), None, None),
        ("fix", AT, "mina", "lower time-out"),
        ("session", SESSION_AT, None, None),
        ("closed", SESSION_AT + HOUR, "omar", None),
        ("reopened", SESSION_AT + 2 * HOUR, "omar", "came back"),
    ]
    assert events[1].says == "fix 1 is claimed at revision config v8"
    assert events[2].says == (
        "nightly: auth-rejected-v1 not-recovered, then recovered, then not-recovered; finished: control;"
        " recovered: deadline-no-answer-v1; 2 live clean (run 1 to 2)"
    )
    assert events[2].facts["live"] == {"clean": [1, 2]}
    assert events[2].facts["scenarios"]["auth-rejected-v1"] == ["not-recovered", "recovered", "not-recovered"]
    assert events[3].says == "fix 1: 2 of 2 clean live runs, BOUNDED, upper bound 0.4523"
    assert events[3].facts["numbers"]["need"] == 2


def test_what_stands_in_the_ledger_alone_is_told_as_that(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    before = life.path.read_text()
    claim_fix(life.project, life.path, revision="r", by="mina", at=AT)
    life.path.write_text(before)
    with life.ledger() as ledger:
        ledger.add_transition(Transition(case_id="another", at=AT, kind="fix", why="w", who="omar"))
    (fix,) = [each for each in told(life) if each.kind == "fix"]
    assert (fix.says, fix.who) == ("stands in the ledger, and not in this version of the case file", "mina")


def test_evidence_and_its_withdrawal_are_two_events(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    cited = Evidence(
        id="kern",
        hypothesis="key",
        stance="refutes",
        file="kern.log",
        lines="3-4",
        digest="sha256:" + "0" * 64,
        quote="q",
        why="the key was accepted",
        who="mina",
        at=AT,
        withdrawn=Withdrawal(why="another host's log", who="omar", at=AT + HOUR),
    )
    append_record(life.path, "evidence", cited)
    assert [(each.kind, each.who, each.why, each.says) for each in case_history(life.case, None)[1:]] == [
        ("evidence", "mina", "the key was accepted", "kern refutes key: kern.log, lines 3-4"),
        ("withdrawn", "omar", "another host's log", "kern is withdrawn: it no longer refutes key"),
    ]


def test_many_live_runs_are_named_shortly(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    for run in (2, 4, 6, 8, 10, 12, 14):
        life.live("clean", first=run)
    life.live("recurred", first=15)
    (session,) = [each for each in told(life) if each.kind == "session"]
    assert session.says == "7 live clean (run 2, 4, 6, 8, 10, 12 and more); 1 live recurred (run 15)"
    assert life.case.id == ID
