"""What every importer offers, and what it is shown when formats are told apart.

Knows the record shapes. Must import no importer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pytest_regcase.importers.reading import Shape, shape_of
from pytest_regcase.records.trial import Trial, TrialRef


@dataclass(frozen=True)
class Peek:
    """What is known of a source before it is read: enough to tell formats apart by content, never by name."""

    path: Path
    kind: Literal["file", "folder", "zip"]
    head: bytes = b""
    """The first bytes of a file or zip (at most 256 KiB)."""
    members: tuple[str, ...] = field(default=())
    """Names in a zip or folder; empty for a zip whose directory cannot be read. Never joined to a path."""

    @cached_property
    def shape(self) -> Shape:
        """The shape of the JSON document that the file begins with."""
        return shape_of(self.head)

    @cached_property
    def first_line(self) -> bytes:
        """The first line of the file, without its end."""
        return self.head.partition(b"\n")[0].rstrip(b"\r")


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
