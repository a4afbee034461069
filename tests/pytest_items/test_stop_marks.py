import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.pytest_items.stop_marks import StopMarks
from pytest_regcase.records.attempt import AttemptKey


def _live(run: int, case_id: str = "case-1") -> AttemptKey:
    return AttemptKey(case_id=case_id, agent="default", scenario="live", run=run)


@given(recurred=st.lists(st.integers(1, 40), max_size=5), run=st.integers(1, 40))
def test_a_run_is_stopped_by_the_lowest_recurrence_below_it(recurred: list[int], run: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for each in recurred:
            # Every process has its own object; the folder is what they share.
            StopMarks(Path(folder)).set(_live(each))
        below = [each for each in recurred if each < run]
        expected = min(recurred) if below else None
        assert StopMarks(Path(folder)).stops(_live(run)) == expected
        assert StopMarks(Path(folder)).stops(_live(run, "case-2")) is None
