"""Keeps Python's garbage collector from looking through what a session keeps to its end, again and again.

Items, plans and records are all alive until then; without this a seventh of the time of ten thousand attempts that
return at once went into finding that out. Knows no attempt.
"""

import gc

import pytest


class LongLived:
    """The hooks."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Set aside the items and their plans."""
        gc.freeze()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Set aside the attempts, before the decision is made over them."""
        gc.freeze()

    def pytest_unconfigure(self) -> None:
        """Hand everything back: whoever called pytest as a function goes on with this process."""
        gc.unfreeze()
