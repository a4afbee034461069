"""Whatever is done to a case, in whatever order: its file loads, and nothing that it recorded is rewritten."""

import itertools
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_regcase.errors import UsageRefused
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.words import CaseState
from pytest_regcase.rules.lifecycle import case_state
from pytest_regcase.session import gate
from pytest_regcase.session.case_life.amend import amend_case
from pytest_regcase.session.case_life.close import close_case
from pytest_regcase.session.case_life.fix import claim_fix
from pytest_regcase.session.case_life.life import reopen_case, retire_case
from tests.session.case_life.stories import CASE, LifeProject, make_life_project

START = datetime(2026, 5, 10, 12, tzinfo=UTC)

THEN: dict[str, dict[CaseState, CaseState]] = {
    "fix": dict.fromkeys(("open", "verifying", "closed", "regressed", "retired"), "verifying"),
    "reopen": dict.fromkeys(("verifying", "closed", "retired"), "regressed"),
    "retire": dict.fromkeys(("open", "verifying", "closed", "regressed"), "retired"),
    "close": {"verifying": "closed"},
    "amend": {each: each for each in ("open", "verifying", "closed", "regressed", "retired")},
}
"""What each command makes of each state; it is refused in a state that is not here."""

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
steps = st.tuples(
    st.sampled_from(sorted(THEN)),
    texts,
    st.sampled_from([0.0, 0.2, 1.0, 3600.0]).map(lambda s: timedelta(seconds=s)),
)
folders = itertools.count()


def do(life: LifeProject, command: str, why: str, at: datetime, retries: int) -> bool:
    """Do it, and say whether anything was written."""
    given: dict[str, Any] = {"by": "mina", "at": at}
    if command == "fix":
        claim_fix(life.project, life.path, revision="r", note=why, **given)
    elif command == "close":
        return close_case(life.project, life.path, **given).closed is not None
    elif command == "amend":
        field = f"expected_recovery.max_retries={retries}"
        amend_case(life.project, life.path, why=why, fields=[field], **given)
    else:
        {"reopen": reopen_case, "retire": retire_case}[command](life.project, life.path, why=why, **given)
    return True


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An open, empty ledger."""
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite3'}") as ledger:
        yield ledger


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps, min_size=1, max_size=7), st.sampled_from(["\n", "\r\n"]))
def test_the_file_always_loads_and_is_only_added_to(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ledger: Ledger,
    done: list[tuple[str, str, timedelta]],
    newline: str,
) -> None:
    # One open ledger for all examples: it counts no run here, so that each claim stays unmet.
    monkeypatch.setattr(gate, "ledger_for", lambda _: nullcontext(ledger))
    life = make_life_project(tmp_path / str(next(folders)), CASE.replace("\n", newline))
    state: CaseState = "open"
    at, retries = START, 3
    for command, why, later in done:
        before = life.path.read_bytes()
        at += later
        wanted = None if command == "close" else THEN[command].get(state)
        try:
            written = do(life, command, why, at, retries + 1)
        except UsageRefused:
            # Out of order, or at the very time of the record before it.
            assert wanted is None or later == timedelta(0)
            written = False
        after = life.path.read_bytes()
        assert written == (after != before)
        if written:
            assert wanted is not None
            state = wanted
            if command == "amend":
                old, retries = f"max_retries = {retries}{newline}".encode(), retries + 1
                before = before.replace(old, f"max_retries = {retries}{newline}".encode())
            assert after.startswith(before)
            assert after.count(b"\r\n") == (after.count(b"\n") if newline == "\r\n" else 0)
        assert case_state(life.case.case, recurred=False) == state
