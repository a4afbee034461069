"""Further trials that failed in the same way as a case's own, as the sweep listed them.

Knows no case: an occurrence is neither sealed nor part of a case digest. It is no evidence of a cause either.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from pytest_regcase.records.base import Record


class Occurrence(Record):
    """One more trial with the failure signature of the case."""

    source_event: Annotated[str, StringConstraints(min_length=1)]
    """Harness, run, task and attempt as far as recorded, and the event's own id: as in the observation."""
    task_id: str | None = None
    attempt: int | None = None
    failing_step: int | None = Field(default=None, ge=1)
