"""What a run's folder shows of one requested task: its record, the facts for its status, the quality of its run.

Reads records and predictions; knows no scorer's reports, and never prints.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_regcase.capture import TrialRecord, read_record
from pytest_regcase.causes import FailureCause, classify_failure
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.words import TrialStatus
from pytest_regcase.rules.trial_status import Loss, RunQuality, TrialFacts, run_quality, trial_status
from pytest_regcase.session.batches.run_folder import RunFolder
from pytest_regcase.toml_lines import read_bounded

_LIMIT_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True)
class Reached:
    """One requested task, as far as it got."""

    facts: TrialFacts
    record: TrialRecord | None = None
    """None: it was not reached, or not a whole line of it was written."""

    @property
    def status(self) -> TrialStatus:
        """The first status that holds, by our own records alone."""
        return trial_status(self.facts)

    @property
    def cause(self) -> FailureCause | None:
        """What the error that ended the trial says of itself; None where nothing did."""
        error = self.record.error if self.record is not None else None
        return classify_failure(error) if error is not None else None

    @property
    def quality(self) -> RunQuality | None:
        """How whole the run is; None where there is none."""
        if not self.facts.reached:
            return None
        losses = [Loss(each.step_role, each.cause) for each in self.record.failed_steps] if self.record else []
        cause = self.cause
        failed = (cause.cause if cause is not None else "unknown") if self.facts.agent_failed else None
        return run_quality(losses, agent_failed=failed, interrupted=self.facts.interrupted)


def reached(folder: RunFolder, task_id: str, marks: "dict[str, str] | None" = None) -> Reached:
    """Return what is recorded of a task. `marks` are those of the run's predictions, by id."""
    if not folder.was_reached(task_id):
        return Reached(TrialFacts(reached=False))
    try:
        record = read_record(folder.trial(task_id))
    except UsageRefused:
        # Its process was killed before the first line was whole.
        return Reached(TrialFacts(reached=True, interrupted=True))
    facts = TrialFacts(
        reached=True,
        interrupted=record.termination in ("cut-off", "cancelled"),
        agent_failed=record.agent_failed,
        patch_capture_failed=record.patch_capture_failed,
        resolved={"passed": True, "failed": False}.get(record.outcome),
        empty_patch=record.submission is not None
        and record.submission.patch is not None
        and not record.submission.patch.strip(),
    )
    if (marks or {}).get(task_id) == "agent_error":
        facts = replace(facts, agent_failed=True)
    return Reached(facts, record)


def marks_in(predictions: Path) -> dict[str, str]:
    """Return the status of each line of a ``predictions.jsonl`` by instance id; half a line says nothing."""
    if not predictions.is_file():
        return {}
    marks: dict[str, str] = {}
    for line in read_bounded(predictions, _LIMIT_BYTES).splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and isinstance(found.get("instance_id"), str):
            marks[found["instance_id"]] = str(found.get("status"))
    return marks
