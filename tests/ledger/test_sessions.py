"""Sessions with all that is kept of them, newest first; when checks ran last, and how long attempts took."""

from datetime import UTC, datetime, timedelta

from pytest_regcase.ledger.export import export_lines
from pytest_regcase.ledger.merge import invalidate, merge_lines
from pytest_regcase.ledger.sessions import session_heads, whole
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.ledger.timing import LastTime, last_attempt, mean_seconds
from pytest_regcase.records.attempt import AttemptKey, Digests
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.words import AttemptVerdict, InconclusiveReason
from tests.ledger.conftest import MakeUrl
from tests.rules.attempt_samples import an_attempt

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
SESSION = SessionRow(
    session_id="s1",
    started_at=NOW,
    finished_at=NOW + timedelta(minutes=1),
    profile="nightly",
    planned=(AttemptKey(case_id="trial-37", agent="default", scenario="live", run=3),),
    run_id="run 77",
    shard="2/3",
    agent="other",
    commit="c0ffee",
    live_new=5,
    revisions={"other": "sha256:o"},
    left_out=("trial-1", "trial-2"),
)


def test_everything_of_a_session_comes_back(ledger: Ledger) -> None:
    bare = SessionRow(session_id="s0", started_at=NOW, profile="release", revisions={})
    for row in (SESSION, bare):
        ledger.start_session(row)
        assert ledger.session(row.session_id) == row


def test_heads_come_newest_first_and_without_plans(ledger: Ledger) -> None:
    others = [
        SESSION.model_copy(update={"session_id": name, "started_at": NOW - timedelta(days=days)})
        for name, days in (("old", 2), ("s2", 0), ("older", 3))
    ]
    for row in (SESSION, *others):
        ledger.start_session(row)
    heads = session_heads(ledger)
    assert [each.session_id for each in heads] == ["s2", "s1", "old", "older"]
    assert heads[1] == SESSION.model_copy(update={"planned": ()})
    gone = SESSION.model_copy(update={"session_id": "gone"})
    assert list(whole(ledger, [gone, heads[1], heads[3]])) == [SESSION, others[2]]


def test_a_merge_brings_all_of_it_and_again_nothing(new_url: MakeUrl) -> None:
    with Ledger.open(new_url()) as one, Ledger.open(new_url()) as other:
        one.start_session(SESSION)
        other.start_session(SESSION.model_copy(update={"finished_at": None}))
        for _ in range(2):
            merge_lines(other, lambda: export_lines(one))
            assert other.session("s1") == SESSION


def _last(ledger: Ledger, **changes: str | None) -> LastTime | None:
    given = {
        "case_id": "trial-37",
        "scenario": "stall-v1",
        "case_digest": "c",
        "simulation_digest": "s",
        **changes,
    }
    return last_attempt(ledger, **given)  # type: ignore[arg-type]


def test_a_check_ran_last_when_it_ran_as_it_is_whatever_the_agent_was(ledger: Ledger) -> None:
    assert _last(ledger) is None
    for days, agent in enumerate(("new", "old", "older")):
        digests = Digests(case="c", simulation="s", agent=agent)
        at = NOW - timedelta(days=days)
        ledger.append(an_attempt("recovered", "stall-v1", session_id=agent, digests=digests, started_at=at))
    assert _last(ledger) == (NOW, ("recovered",), False)
    for other in ({"case_digest": "x"}, {"simulation_digest": None}, {"scenario": "y"}, {"case_id": "z"}):
        assert _last(ledger, **other) is None
    invalidate(ledger, why="wrong", at=NOW, attempt_id=None, session_id="new")
    assert _last(ledger) == (NOW - timedelta(days=1), ("recovered",), False)


def test_all_tries_of_the_last_session_say_what_a_check_showed(ledger: Ledger) -> None:
    digests = Digests(case="c", simulation="s", agent="a")
    tries: list[tuple[AttemptVerdict, InconclusiveReason | None]] = [
        ("not-recovered", None),
        ("inconclusive", "worker-crashed"),
        ("recovered", None),
    ]
    for number, (verdict, reason) in enumerate(tries):
        ledger.append(
            an_attempt(
                verdict,
                "stall-v1",
                try_number=number,
                digests=digests,
                reason=reason,
                started_at=NOW + timedelta(minutes=number),
            )
        )
    assert _last(ledger) == (NOW + timedelta(minutes=2), tuple(each for each, _ in tries), True)


def test_what_proved_nothing_did_not_run(ledger: Ledger) -> None:
    digests = Digests(case="c", simulation="s", agent="a")
    ledger.append(
        an_attempt("inconclusive", "stall-v1", digests=digests, duration_seconds=9.0, reason="cut-short")
    )
    assert _last(ledger) is None
    assert mean_seconds(ledger, "trial-37", "default") == {}


def test_a_control_has_no_simulation(ledger: Ledger) -> None:
    ledger.append(an_attempt("finished", "control", started_at=NOW))
    assert _last(ledger, scenario="control", simulation_digest=None) == (NOW, ("finished",), False)


def test_how_long_attempts_took_by_scenario(ledger: Ledger) -> None:
    for number, seconds in enumerate((1.0, 2.0, 6.0)):
        ledger.append(an_attempt("finished", "control", session_id=f"s{number}", duration_seconds=seconds))
    ledger.append(an_attempt("recovered", duration_seconds=5.0))
    ledger.append(an_attempt("recovered", duration_seconds=50.0, agent="other"))
    ledger.append(an_attempt("recovered", duration_seconds=50.0, case_id="trial-1"))
    assert mean_seconds(ledger, "trial-37", "default") == {"control": 3.0, "deadline-no-answer-v1": 5.0}
