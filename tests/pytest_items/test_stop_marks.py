import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.pytest_items.stop_marks import StopMarks
from pytest_regcase.records.attempt import AttemptKey


def _live(run: int, case_id: str = "case-1") -> AttemptKey:
    return AttemptKey(case_id=case_id, agent="default", scenario="live", run=run)


@given(recurred=st.lists(st.integers(1, 40), max_size=5), run=st.integers(1, 40), failures=st.integers(1, 3))
def test_a_run_is_stopped_by_the_failures_below_it(recurred: list[int], run: int, failures: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for each in recurred:
            # Every process has its own object; the folder is what they share.
            StopMarks(Path(folder)).set(_live(each))
        below = sorted({each for each in recurred if each < run})
        expected = below[failures - 1] if len(below) >= failures else None
        assert StopMarks(Path(folder)).stops(_live(run), failures) == expected
        assert StopMarks(Path(folder)).stops(_live(run)) == min(below, default=None)
        assert StopMarks(Path(folder)).stops(_live(run, "case-2")) is None
        assert StopMarks(Path(folder)).failed(_live(1)) == sorted(set(recurred))
        assert StopMarks(Path(folder)).failed(_live(1, "case-2")) == []
