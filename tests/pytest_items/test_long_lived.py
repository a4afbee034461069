"""What a session keeps to its end is set aside from the garbage collector, and handed back."""

import gc
from collections.abc import Iterator

import pytest

from pytest_regcase.pytest_items.long_lived import LongLived


@pytest.fixture(autouse=True)
def _nothing_set_aside() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.parametrize("hook", ["pytest_collection_finish", "pytest_sessionfinish"])
def test_what_is_there_is_not_looked_at_again_until_the_end(hook: str) -> None:
    lasting = LongLived()
    kept: list[object] = [[]]
    getattr(lasting, hook)()
    assert gc.get_freeze_count() > 0
    assert all(each is not kept for each in gc.get_objects())
    lasting.pytest_unconfigure()
    assert gc.get_freeze_count() == 0
    assert any(each is kept for each in gc.get_objects())
