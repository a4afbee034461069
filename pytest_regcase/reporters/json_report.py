"""The JSON report: the whole decision and every attempt of the session, for machines."""

import json
from collections.abc import Sequence

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import GateDecision


class JsonReporter:
    """Writes ``{"schema": 1, "gate": GateDecision, "attempts": [AttemptRecord, ...]}``.

    `gate` is the same for equal facts; `attempts` hold times and folders too.
    """

    suffix = ".json"

    def write(self, decision: GateDecision, attempts: Sequence[AttemptRecord]) -> str:
        """Return the document, keys sorted, attempts by case, scenario, run and try."""
        ordered = sorted(
            attempts, key=lambda each: (each.case_id, each.agent, each.scenario, each.run, each.try_number)
        )
        document = {
            "schema": 1,
            "gate": decision.to_plain(),
            "attempts": [each.to_plain() for each in ordered],
        }
        return json.dumps(document, indent=2, sort_keys=True) + "\n"
