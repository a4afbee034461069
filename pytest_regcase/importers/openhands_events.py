"""OpenHands V0 event streams: a saved trajectory (a JSON list), or the files `events/<n>.json` of a conversation.

What one event says is in `openhands_history`. Must import no other importer.

What surprises: a stream has neither task id nor verdict; the state that says how it ended is often left out of
a saved trajectory; of a folder the numbers give the order, not the names.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_regcase.importers.event_files import SAYS_NO_FAILURE, EventFiles
from pytest_regcase.importers.json_shape import Shape
from pytest_regcase.importers.openhands_history import History
from pytest_regcase.importers.protocol import Peek, only_trial
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Expectation

_CAN_SHOW: Final[tuple[Expectation, ...]] = ("log_failure", "no_fabricated_output", "mark_failure")
_FILE: Final = re.compile(r"(?:events/)?(\d+)\.json")


class OpenHandsEvents:
    """Importer of OpenHands V0 event streams: one trial a file or folder."""

    name = "openhands-events"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is events with source and an action or observation: a list, lines or a folder."""
        if peek.kind == "file":
            return _is_events(peek.shape)
        found = next(filter(_FILE.fullmatch, peek.members), None) if peek.kind == "folder" else None
        member = peek.member(found) if found is not None else None
        return member is not None and _is_events(member.shape)

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the stream."""
        trial = _read(source)
        failed = trial.termination not in (None, "finished")
        yield only_trial(trial, why_not=None if failed else SAYS_NO_FAILURE)

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a stream
        """Read the trial. Outcome is always undetermined: the format has none."""
        return _read(source)


def _is_events(shape: Shape) -> bool:
    return (
        shape.kind != "other"
        and {"id", "timestamp", "source", "message"} <= shape.keys
        and not shape.keys.isdisjoint(("action", "observation"))
        and shape.keys.isdisjoint(("kind", "history"))
    )


def _read(source: Path) -> Trial:
    files = EventFiles(source, _FILE)
    events = list(files)
    history = History(events)
    lines = history.chat.lines
    termination = history.termination
    due = termination in ("error", "cut-off", "cancelled") and reply_was_due(lines)
    return Trial(
        format=OpenHandsEvents.name,
        harness="OpenHands",
        event_id=digest_of([event for _, event in events]),
        event_id_from="digest",
        model=history.model,
        task_text=history.task_text,
        steps=tuple(lines),
        failing_step=failing_step(lines, next_reply_failed=due),
        termination=termination,
        error=history.error,
        labels=(f"openhands:agent_state:{history.agent_state}",) if history.agent_state else (),
        final_text=history.final_text if history.finished else None,
        can_show=_CAN_SHOW,
        source_digests=files.digests,
        missing=(*files.missing, *history.missing),
    )
