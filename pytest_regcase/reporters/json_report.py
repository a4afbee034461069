"""The JSON report: the whole decision and every attempt of the session, for machines."""

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.decision import GateDecision


class JsonReport(Record):
    """The document. `gate` is the same for equal facts; `attempts` hold times and folders too."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    gate: GateDecision
    attempts: Many[AttemptRecord] = ()
    """By case, agent, scenario, run and try."""


class JsonReporter:
    """Writes a `JsonReport`; ``regcase schema report`` prints its JSON Schema."""

    suffix = ".json"

    def write(self, decision: GateDecision, attempts: Sequence[AttemptRecord]) -> str:
        """Return the document, keys sorted."""
        ordered = sorted(
            attempts, key=lambda each: (each.case_id, each.agent, each.scenario, each.run, each.try_number)
        )
        document = JsonReport(gate=decision, attempts=tuple(ordered)).to_plain()
        return json.dumps(document, indent=2, sort_keys=True) + "\n"
