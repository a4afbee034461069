"""What every importer offers, and what it is shown when formats are told apart.

Knows the record shapes. Must import no importer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.json_shape import Shape, shape_of, shape_of_file
from pytest_regcase.importers.reading import HEAD_BYTES, read_head
from pytest_regcase.records.trial import Trial, TrialRef


@dataclass(frozen=True)
class Peek:
    """What is known of a source before it is read: enough to tell formats apart by content, never by name."""

    path: Path
    kind: Literal["file", "folder", "zip"]
    head: bytes = b""
    """The first bytes of a file or zip (at most 256 KiB)."""
    members: tuple[str, ...] = field(default=())
    """Names in a zip or folder, those of a zip never joined to a path; empty where its directory is unreadable."""

    @cached_property
    def shape(self) -> Shape:
        """The shape of the JSON document that the file begins with."""
        return shape_of(self.head)

    @cached_property
    def whole_shape(self) -> Shape:
        """The same with the keys behind the head too. It reads the file: ask where the head leaves it open."""
        if self.kind != "file" or len(self.head) < HEAD_BYTES:
            return self.shape
        try:
            return shape_of_file(self.path)
        except OSError:
            return self.shape

    @cached_property
    def first_line(self) -> bytes:
        """The first line of the file, without its end."""
        return self.head.partition(b"\n")[0].rstrip(b"\r")

    def member(self, name: str) -> "Peek | None":
        """Return what is known of one listed file of a folder; None where it is not listed or cannot be read.

        Reads at most 256 KiB of it: ask for few, by a name that the format always uses.
        """
        if self.kind != "folder" or name not in self.members:
            return None
        try:
            return Peek(self.path / name, "file", read_head(self.path / name))
        except ImportRefused:
            return None


@runtime_checkable
class Importer(Protocol):
    """Reads one foreign format. Entry point group ``pytest_regcase.importers``; called without arguments."""

    name: str

    def handles(self, peek: Peek) -> bool:
        """Say whether this is the importer's format, by content. Raises nothing."""
        ...

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield a reference to each trial in `source`, lost ones too.

        Raises:
            ImportRefused: the source cannot be read.
        """
        ...

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one trial, whatever its outcome.

        Raises:
            ImportRefused: nothing else.
        """
        ...


def only_trial(trial: Trial, *, why_not: str | None, refusal: str = "no-sign-of-failure") -> TrialRef:
    """Return the reference to `trial`, the one that its file holds.

    `why_not` says why it is no failed trial, with the slug of the refusal; None where it failed.
    """
    return TrialRef(
        key="trial",
        task_id=trial.task_id,
        termination=trial.termination,
        error_type=trial.error.type if trial.error is not None else None,
        failed=why_not is None,
        why_not=why_not,
        refusal=None if why_not is None else refusal,
        sample=trial.task_id,
    )
