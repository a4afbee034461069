"""What a check of a test's own, or of another plugin, makes of an attempt: never anything good.

Pure; knows records alone.
"""

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.words import AttemptVerdict, ScenarioKind

_FAILED: dict[ScenarioKind, AttemptVerdict] = {
    "control": "did-not-finish",
    "simulation": "not-recovered",
    "live": "failed-otherwise",
}


def failed_by(record: AttemptRecord, kind: ScenarioKind, says: str) -> AttemptRecord:
    """Return the record of an attempt that somebody else's check failed, whatever the judge saw.

    What proved nothing proves nothing still.
    """
    said = "; ".join(filter(None, (says, record.says)))
    verdict = record.verdict if record.verdict == "inconclusive" else _FAILED[kind]
    return record.model_copy(update={"says": said, "verdict": verdict})
