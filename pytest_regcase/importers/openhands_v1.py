"""OpenHands V1 (software-agent-sdk) conversations: events as a list or JSON lines, or a persistence folder.

A persistence folder holds `events/event-<number>-<id>.json` and `base_state.json`. What one event says is in
`openhands_sdk_events`. Must import no other importer.

What surprises: in a persistence folder only `base_state.json` says how the run ended; its task has no id and no
verdict.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.event_files import SAYS_NO_FAILURE, EventFiles
from pytest_regcase.importers.json_shape import shape_of
from pytest_regcase.importers.openhands_sdk_events import SdkConversation
from pytest_regcase.importers.protocol import Peek, only_trial
from pytest_regcase.importers.reading import (
    NotJson,
    digests_of,
    filled,
    mapping,
    parse_json,
    present,
    read_document,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Expectation

_CAN_SHOW: Final[tuple[Expectation, ...]] = ("log_failure", "no_fabricated_output", "mark_failure")
_FILE: Final = re.compile(r"(?:events/)?event-(\d{5,12})-[0-9a-fA-F-]{8,}\.json")
_KIND: Final = re.compile(rb'"kind"\s*:\s*"(?:[A-Z][A-Za-z]*Event|UserRejectObservation|Condensation[A-Za-z]*)"')
_STATE: Final = "base_state.json"


class OpenHandsV1:
    """Importer of OpenHands V1 conversations: one trial a file or folder."""

    name = "openhands-v1"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is events with id, source and a kind that the SDK knows: a list, lines or a folder."""
        if peek.kind == "file":
            return _is_events(peek.head)
        found = next(filter(_FILE.fullmatch, peek.members), None) if peek.kind == "folder" else None
        member = peek.member(found) if found is not None else None
        return member is not None and _is_events(member.head)

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the conversation."""
        trial = _read(source)
        failed = trial.termination not in (None, "finished")
        yield only_trial(trial, why_not=None if failed else SAYS_NO_FAILURE)

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a conversation
        """Read the trial. Outcome is always undetermined: the format has none."""
        return _read(source)


def _is_events(head: bytes) -> bool:
    shape = shape_of(head)
    return (
        shape.kind != "other"
        and {"id", "timestamp", "source", "kind"} <= shape.keys
        and _KIND.search(head) is not None
    )


def _read(source: Path) -> Trial:
    files = EventFiles(source, _FILE)
    state, missing = _base_state(source)
    events = list(files)
    conversation = SdkConversation(events, status=filled(state.get("execution_status")))
    lines = conversation.chat.lines
    termination = conversation.termination
    due = termination in ("error", "cut-off", "cancelled") and reply_was_due(lines)
    llm = mapping(mapping(state.get("agent")).get("llm"))
    recorded_id = filled(state.get("id"))
    return Trial(
        format=OpenHandsV1.name,
        harness="openhands-sdk",
        event_id=recorded_id or digest_of([event for _, event in events]),
        event_id_from="recorded" if recorded_id else "digest",
        model=conversation.model or filled(llm.get("model")),
        task_text=conversation.task_text,
        steps=tuple(lines),
        failing_step=failing_step(lines, next_reply_failed=due),
        termination=termination,
        error=conversation.error,
        labels=(f"openhands:execution_status:{conversation.status}",) if conversation.status else (),
        conditions=present(
            {
                "max_iterations": state.get("max_iterations"),
                "llm": {name: llm.get(name) for name in ("num_retries", "timeout", "temperature", "seed")},
            }
        ),
        final_text=conversation.final_text if conversation.finished else None,
        can_show=_CAN_SHOW,
        source_digests={**files.digests, **(digests_of(source / _STATE) if state else {})},
        missing=(*missing, *files.missing, *conversation.missing),
    )


def _base_state(source: Path) -> tuple[Mapping[str, Any], list[str]]:
    """Return what `base_state.json` of a persistence folder holds, and why nothing, where it cannot be read."""
    path = source / _STATE
    if not source.is_dir() or not path.is_file() or path.is_symlink():
        return {}, []
    try:
        return mapping(parse_json(read_document(path)).value), []
    except (NotJson, ImportRefused) as error:
        return {}, [f"{_STATE} is left out: {error}"]
