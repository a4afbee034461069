"""An Inspect log as a header and samples, from a `.eval` zip or a `.json` document.

Knows the container: which members there are, which samples are lost. Makes no trial of them; imports no importer.
Member names after inspect_ai 0.3.285, `log/_recorders/eval.py`. They are labels, and never joined to a path.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.last_document import LastDocument
from pytest_regcase.importers.reading import (
    NotJson,
    filled,
    mapping,
    parse_json,
    read_head,
    refused,
    sequence,
    whole,
)
from pytest_regcase.importers.zip_members import ZipMembers

START: Final = "_journal/start.json"
_HEADER: Final = "header.json"
_SUMMARIES: Final = "summaries.json"
_JOURNALED = re.compile(r"_journal/summaries/(\d+)\.json")
_SAMPLE = re.compile(r"samples/(?P<id>.+)_epoch_(?P<epoch>\d+)\.json", re.DOTALL)
_SUMMARY_KEYS: Final = ("id", "epoch", "error", "limit", "scores", "score", "error_retries", "retries")
"""What a sample is listed by. A summary's own `error` is the message, its `limit` the type, `retries` a number."""
KNOWN_VERSION: Final = 2


@dataclass(frozen=True)
class SampleEntry:
    """One sample of a log, present or lost."""

    id: str | int
    epoch: int
    summary: Mapping[str, Any] | None = None
    """Error, limit, scores: enough to list it without reading the whole record."""
    place: str | int | None = None
    """Member name or index; None where the log holds no record."""

    @property
    def key(self) -> str:
        """Unique in a log: ids 1 and "1" are two."""
        quoted = isinstance(self.id, str) and re.fullmatch(r'-?\d+|".*"', self.id, re.DOTALL) is not None
        return f"{json.dumps(self.id) if quoted else self.id}#{self.epoch}"

    @property
    def is_lost(self) -> bool:
        """Say whether the run was to make this sample and the log has no record of it."""
        return self.place is None


class InspectLog:
    """An open log. Close it, or use it in a `with` block.

    A `.json` log is parsed once for all its samples, as long as they are read with the same `documents`.
    """

    def __init__(self, path: Path, documents: LastDocument | None = None) -> None:
        self.path = path
        self.notes: list[str] = []
        self._zip: ZipMembers | None = None
        self._samples: list[Any] = []
        self._documents = documents or LastDocument()
        try:
            self._open(path)
        except ImportRefused:
            self.close()
            raise

    def _open(self, path: Path) -> None:
        if read_head(path).startswith(b"PK"):
            self._zip = ZipMembers(path)
            if self._zip.lost is not None:
                self.notes.append(self._zip.lost)
            self.header, self.has_header = self._zip_header(self._zip)
        else:
            parsed = self._documents.read(path)
            self.notes.extend(parsed.notes)
            document = mapping(parsed.value)
            self._samples = sequence(document.get("samples"))
            self.header = {key: value for key, value in document.items() if key != "samples"}
            self.has_header = True
        self.eval = mapping(self.header.get("eval"))
        if not self.eval:
            raise refused(
                "corrupt", path, "it has no `eval` section, so no sample can be identified", "Copy it again."
            )
        version = whole(self.header.get("version"))
        if version is not None and version > KNOWN_VERSION:
            self.notes.append(
                f"the log says version {version}, and version {KNOWN_VERSION} is the newest that we know"
            )

    @property
    def status(self) -> str | None:
        """The run's status as recorded. A zip without header.json was never closed, whatever the journal says."""
        return filled(self.header.get("status")) if self.has_header else None

    @property
    def was_cut_off(self) -> bool:
        """Say whether the harness never closed this log: it was killed, or is still running."""
        return not self.is_truncated and (not self.has_header or self.status == "started")

    @property
    def is_truncated(self) -> bool:
        """Say whether the file itself is cut off, so that how the run ended is not told by what it lacks."""
        return self._zip is not None and self._zip.lost is not None

    def entries(self) -> list[SampleEntry]:
        """Return the samples with a record in the order of the log, then the lost ones."""
        wanted = list(self._wanted())
        found = list(self._from_zip(self._zip, wanted) if self._zip is not None else self._from_document())
        present = {(type(entry.id), entry.id, entry.epoch) for entry in found}
        return [*found, *(entry for entry in wanted if (type(entry.id), entry.id, entry.epoch) not in present)]

    def sample(self, entry: SampleEntry) -> Mapping[str, Any]:
        """Return the whole record of a sample that has one.

        Raises:
            ImportRefused: the member is damaged or too large.
        """
        if self._zip is not None:
            return mapping(self._parsed(self._zip.read(str(entry.place)), f"its member {entry.place!r}"))
        return mapping(self._samples[int(entry.place or 0)])

    def close(self) -> None:
        """Close the file."""
        if self._zip is not None:
            self._zip.close()

    def __enter__(self) -> "InspectLog":
        return self

    def __exit__(self, *_: "type[BaseException] | BaseException | TracebackType | None") -> None:
        self.close()

    def _zip_header(self, members: ZipMembers) -> tuple[Mapping[str, Any], bool]:
        for name in (_HEADER, START):
            if name in members.names:
                return mapping(self._parsed(members.read(name), f"its member {name!r}")), name == _HEADER
        raise refused("corrupt", self.path, "it has neither header.json nor a journal", "Copy the log again.")

    def _from_zip(self, members: ZipMembers, wanted: Sequence[SampleEntry]) -> Iterator[SampleEntry]:
        summaries = self._summaries(members)
        by_name = {(str(entry.id), entry.epoch): entry.id for entry in wanted}
        for name in members.names:
            matched = _SAMPLE.fullmatch(name)
            if matched is None:
                continue
            named = matched["id"], int(matched["epoch"])
            summary = summaries.get(named)
            if summary is None:
                try:
                    summary = _summary(mapping(self._parsed(members.read(name), f"its member {name!r}")))
                except ImportRefused:  # damaged: it can be listed, and is refused when it is read
                    yield SampleEntry(by_name.get(named, named[0]), named[1], None, name)
                    continue
            sample_id, epoch = _id(summary), whole(summary.get("epoch"))
            yield SampleEntry(
                sample_id if sample_id is not None else by_name.get(named, named[0]),
                epoch if epoch is not None else named[1],
                summary,
                name,
            )

    def _summaries(self, members: ZipMembers) -> dict[tuple[str, int], Mapping[str, Any]]:
        if _SUMMARIES in members.names:
            names = [_SUMMARIES]
        else:
            numbered = [(int(found[1]), name) for name in members.names if (found := _JOURNALED.fullmatch(name))]
            names = [name for _, name in sorted(numbered)]
        found_summaries: dict[tuple[str, int], Mapping[str, Any]] = {}
        for name in names:
            try:
                rows = sequence(self._parsed(members.read(name), f"its member {name!r}"))
            except ImportRefused:
                continue  # the sample records themselves are read instead
            for row in map(mapping, rows):
                epoch = whole(row.get("epoch"))
                if epoch is not None:
                    found_summaries[str(row.get("id")), epoch] = _summary(row)
        return found_summaries

    def _from_document(self) -> Iterator[SampleEntry]:
        for index, sample in enumerate(map(mapping, self._samples)):
            sample_id, epoch = _id(sample), whole(sample.get("epoch"))
            if sample_id is not None:
                yield SampleEntry(sample_id, epoch if epoch is not None else 1, sample, index)
            else:
                self._note(f"samples[{index}] has no id and is left out")

    def _wanted(self) -> Iterator[SampleEntry]:
        """Yield what the run was to make, as far as the log names it."""
        epochs = whole(mapping(self.eval.get("config")).get("epochs"))
        for sample_id in sequence(mapping(self.eval.get("dataset")).get("sample_ids")):
            if isinstance(sample_id, str | int) and not isinstance(sample_id, bool):
                for epoch in range(1, min(max(epochs or 1, 1), 1000) + 1):
                    yield SampleEntry(sample_id, epoch)

    def _parsed(self, content: bytes, what: str) -> Any:
        try:
            parsed = parse_json(content)
        except NotJson as error:
            raise refused(
                "corrupt", self.path, f"{what}: {error}", "Copy it again from where it was written."
            ) from error
        for note in parsed.notes:
            self._note(note)
        return parsed.value

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _id(sample: Mapping[str, Any]) -> str | int | None:
    """Return a sample's id: a text or a whole number (a truth value is none)."""
    found = sample.get("id")
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _summary(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a sample is listed by; the rest of it is not kept in memory."""
    return {key: sample[key] for key in _SUMMARY_KEYS if key in sample}
