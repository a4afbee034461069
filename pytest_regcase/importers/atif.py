"""ATIF trajectories by themselves (`trajectory.json`), versions 1.0 to 1.8.

The format has no outcome, no error and no stop reason: what is read here is a conversation, and only a person's
word says that the trial failed. Inside a Harbor trial the folder is read instead. Must import no other importer.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_regcase.importers.atif_conversation import AtifConversation, read_documents
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import digest_file
from pytest_regcase.importers.steps import failing_step
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Expectation

_MARK: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')
_CAN_SHOW: Final[tuple[Expectation, ...]] = ("max_retries", "stop_within_seconds", "no_fabricated_output")
"""What the wire shows, and the transcript. The format has no place for an error, a status or handed-in work."""


class Atif:
    """Importer of ATIF documents: one trial a file, with the files that continue it."""

    name = "atif"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is an object with steps whose schema_version is an ATIF version."""
        return (
            peek.kind == "file"
            and peek.shape.kind == "object"
            and {"schema_version", "steps"} <= peek.shape.keys
            and _MARK.search(peek.head) is not None
        )

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file. Nothing in it can say that it failed."""
        _read(source)
        yield TrialRef(
            key="trial",
            why_not="a trajectory says neither how it ended nor whether it passed",
            refusal="no-sign-of-failure",
        )

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the trial. Outcome is always undetermined: the format has none."""
        return _read(source)


def _read(source: Path) -> Trial:
    documents = read_documents(source)
    found = AtifConversation(documents)
    harness = " ".join(filter(None, (found.agent, found.version)))
    return Trial(
        format=Atif.name,
        harness=harness or None,
        run_id=found.session_id,
        event_id=found.trajectory_id or digest_of([each.value for each in documents]),
        event_id_from="recorded" if found.trajectory_id else "digest",
        model=found.model,
        task_text=found.task_text,
        steps=tuple(found.lines),
        failing_step=failing_step(found.lines, next_reply_failed=found.last_reply_failed),
        conditions={"agent": found.agent_extra} if found.agent_extra else {},
        model_requests=found.model_requests,
        can_show=_CAN_SHOW,
        source_digests={each.path.name: digest_file(each.path) for each in documents},
        missing=(
            *found.missing,
            "outcome, error and how it ended: an ATIF trajectory has no place for them",
        ),
    )
