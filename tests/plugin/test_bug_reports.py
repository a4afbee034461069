"""What bug_reports.py says of where a report is tried is true."""

import re
from pathlib import Path

import pytest

from tests.plugin.bug_reports import TRIED_ELSEWHERE


@pytest.mark.parametrize("name", sorted(set(TRIED_ELSEWHERE.values())))
def test_a_report_that_is_said_to_be_tried_elsewhere_is(name: str) -> None:
    text = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert re.search(rf"^def {name}\(", text, re.MULTILINE)
