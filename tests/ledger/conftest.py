"""Both databases, one suite: a fresh ledger on each."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_regcase.ledger.store import Ledger
from tests.ledger.postgres import an_empty_schema

MakeUrl = Callable[[], str]


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeUrl]:
    """Make URLs of ledgers that are not there yet, all on one kind of database."""
    with ExitStack() as stack:
        made: list[str] = []

        def make() -> str:
            if request.param == "postgresql":
                return stack.enter_context(an_empty_schema())
            made.append(f"sqlite:///{tmp_path / f'ledger-{len(made)}.sqlite3'}")
            return made[-1]

        yield make


@pytest.fixture
def ledger(new_url: MakeUrl) -> Iterator[Ledger]:
    """A new ledger."""
    with Ledger.open(new_url()) as opened:
        yield opened
