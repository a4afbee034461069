from datetime import UTC, datetime
from pathlib import Path

from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.session import Transition

AT = datetime(2026, 5, 20, 9, 0, 0, 250000, tzinfo=UTC)


def test_transitions_come_back_in_the_order_in_which_they_were_stored(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite3'}"
    made = [
        Transition(case_id="a", at=AT, kind="fix", why="fix 1", who="mina", evidence="sha256:1"),
        Transition(case_id="a", at=AT, kind="retired", why="half a \ud800 and a \0", who="omar"),
    ]
    with Ledger.open(url) as ledger:
        for each in (*made, made[0].model_copy(update={"case_id": "b"})):
            ledger.add_transition(each)
    with Ledger.open(url) as ledger:
        one, two = ledger.transitions("a")
        assert one == made[0]
        assert (two.kind, two.who, two.evidence) == ("retired", "omar", None)
        assert "\0" not in two.why
        assert ledger.transitions("c") == []


def test_a_look_makes_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "ledger.sqlite3"
    url = f"sqlite:///{path}"
    assert Ledger.open_if_there(url) is None
    assert not path.parent.exists()
    Ledger.open(url).close()
    found = Ledger.open_if_there(url)
    assert found is not None
    assert not found.is_new
    found.close()
