"""A minimal case, written as a person would, and what a test may do to it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_regcase.case_files import seal_case

MINIMUM = """\
schema = 1
id = "sweep-0412-trial-37"
title = "no answer from step 6 on"

[observation]
symptom = "model answered step 5, then stopped responding at step 6"
source_event = "eval-sweep-0412/trial-37"
cause_status = "unknown"

[handover]
owner = "eval-harness-oncall"
next_decision = "compare the server's own logs for trial 37 against both simulations"
"""

WriteCase = Callable[..., Path]


@pytest.fixture
def write_case(tmp_path: Path) -> WriteCase:
    """Write a case folder from the text of its case file; seal it unless told not to."""

    def write(
        text: str = MINIMUM,
        *,
        files: dict[str, str] | None = None,
        sealed: bool = True,
        folder: str = "trial-37",
    ) -> Path:
        path = tmp_path / "cases" / folder / "case.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        for name, content in (files or {}).items():
            (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
            (path.parent / name).write_text(content, encoding="utf-8")
        if sealed:
            seal_case(path)
        return path

    return write
