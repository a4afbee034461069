"""All trials below a path: of one log, of a folder of logs in several formats, or of a zip of them.

Knows sources and references; a trial itself is read only when asked for. Must import no importer module.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.archive import unpack
from pytest_regcase.importers.joining import joined_ref, joined_trial, nearest, outcomes_agree, principal
from pytest_regcase.importers.protocol import Importer
from pytest_regcase.importers.reading import digests_of, on_one_line, refused
from pytest_regcase.importers.recognise import (
    Progress,
    Recognised,
    Source,
    Unreadable,
    kind_of,
    not_recognised,
    only_refusals,
    readers,
    recognise_file,
    recognise_folder,
)
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.redaction import Redactor


@dataclass(frozen=True)
class Entry:
    """One trial of a collection, not read yet."""

    key: str
    """What `--trial` takes: unique in the collection, printable."""
    source: Source
    ref: TrialRef
    """Of the trial as a whole, records that were joined to it included."""
    own: TrialRef
    """As the source listed it."""
    records: tuple["Entry", ...] = ()
    """Reports and predictions that are about this trajectory."""
    notes: tuple[str, ...] = ()


class Collection:
    """The trials below a path. Use it within the `with` block of `collect`: an archive is gone afterwards."""

    def __init__(
        self, given: Path, root: Path, found: Recognised, progress: Progress | None, *, strict: bool
    ) -> None:
        self.given = given
        self.unreadable = [
            Unreadable(each.path, self._relabelled(root, each.refusal)) for each in found.unreadable
        ]
        self.others = found.others
        self._root = root
        listed: list[tuple[Source, TrialRef]] = []
        for number, source in enumerate(found.sources, 1):
            if progress is not None:
                progress(number, len(found.sources), source.path.name)
            listed.extend((source, ref) for ref in self._listed(source, strict=strict))
        self.sources = len(found.sources)
        self.entries = _joined(list(self._entries(listed)))

    def read(self, entry: Entry) -> Trial:
        """Read one trial, whatever its outcome, with the records that are joined to it.

        Raises:
            ImportRefused: it cannot be read.
        """
        trial = self._own(entry)
        if entry.records:
            trial = joined_trial(trial, [self._own(each) for each in entry.records])
        digests = {**trial.source_digests, **self._archive_digest}
        return trial.model_copy(update={"missing": (*trial.missing, *entry.notes), "source_digests": digests})

    def label(self, path: Path) -> str:
        """Return the path as a person would name it: below what was given, or its name."""
        below = path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else path.name
        return on_one_line(path.name if below == "." else below)

    def _own(self, entry: Entry) -> Trial:
        try:
            with only_refusals(entry.source.path):
                return entry.source.reader.read(entry.source.path, entry.own)
        except ImportRefused as refusal:
            raise self._relabelled(self._root, refusal) from refusal

    def _listed(self, source: Source, *, strict: bool) -> Iterator[TrialRef]:
        """Yield what the source lists until it breaks; what was whole before that stays."""
        seen: set[str] = set()
        try:
            with only_refusals(source.path):
                for ref in source.reader.list_trials(source.path):
                    if ref.key in seen:
                        twice = refused("malformed", source.path, f"it names two trials {ref.key!r}", "Split it.")
                        self.unreadable.append(Unreadable(source.path, self._relabelled(self._root, twice)))
                        continue
                    seen.add(ref.key)
                    yield ref
        except ImportRefused as refusal:
            told = self._relabelled(self._root, refusal)
            if strict:
                raise told from refusal
            self.unreadable.append(Unreadable(source.path, told))

    def _entries(self, listed: Sequence[tuple[Source, TrialRef]]) -> Iterator[Entry]:
        """Yield an entry for each reference.

        No key holds a secret or what drives a terminal, and no two are equal, whatever that makes of their names.
        """
        held = Counter(source.path for source, _ in listed)
        labels = {path: self.label(path) for path in held}
        used: set[str] = set()
        for source, ref in listed:
            label = labels[source.path]
            many = f"{label}::{ref.key}" if held[source.path] > 1 else label
            key = plain = without_secrets(on_one_line(ref.key if self.sources == 1 else many))
            number = 1
            while key in used:
                number += 1
                key = f"{plain}~{number}"
            used.add(key)
            yield Entry(key, source, ref, ref)

    def _relabelled(self, root: Path, refusal: ImportRefused) -> ImportRefused:
        """Name the archive, not the folder that it was written to."""
        if root == self.given:
            return refusal
        return ImportRefused(refusal.slug, refusal.text.replace(str(root), str(self.given)))

    @cached_property
    def _archive_digest(self) -> dict[str, str]:
        return {} if self._root == self.given else digests_of(self.given)


def without_secrets(text: str) -> str:
    """Return what a log's name or a listed fact may be shown as; persons and their folders stay."""
    return Redactor().text(text, persons=False)


@contextmanager
def collect(
    path: Path, *, importer: str | None = None, progress: Progress | None = None, strict: bool = False
) -> Iterator[Collection]:
    """Find all trials of a log, a folder of logs, or a zip of logs that no importer takes itself.

    A log that cannot be read is listed as such and loses none of the others. With `strict`, and where nothing else
    is there, its refusal is raised.

    Raises:
        ImportRefused: no such path, nothing recognised (it says what was looked for), or nothing readable.
    """
    known = readers(importer)
    kind = kind_of(path)
    if kind == "folder":
        yield _filled(
            Collection(
                path,
                path,
                recognise_folder(path, known, progress=progress, strict=strict),
                progress,
                strict=strict,
            ),
            known,
        )
        return
    source = recognise_file(path, known)
    if source is not None or kind == "file":
        found = Recognised([source] if source is not None else [], others=source is None)
        yield _filled(Collection(path, path, found, progress, strict=strict), known)
        return
    with tempfile.TemporaryDirectory(prefix="regcase-archive-") as name:
        folder = Path(os.path.realpath(name))
        lost = unpack(path, folder)
        found = recognise_folder(folder, known, progress=progress, strict=strict)
        found.unreadable.extend(Unreadable(path, each) for each in lost)
        yield _filled(Collection(path, folder, found, progress, strict=strict), known)


def _filled(collection: Collection, known: Sequence[Importer]) -> Collection:
    """Return the collection, unless it has nothing to offer.

    Raises:
        ImportRefused: nothing was recognised, or nothing of what was recognised can be read.
    """
    if collection.entries:
        return collection
    lost = collection.unreadable
    if len(lost) == 1:
        raise lost[0].refusal
    if lost:
        told = "\n".join(f"  {each.refusal.text.splitlines()[0]}" for each in lost[:12])
        more = f"\n  and {len(lost) - 12} more" if len(lost) > 12 else ""
        raise refused("unreadable", collection.given, f"none of its {len(lost)} logs can be read", f"{told}{more}")
    if collection.sources:
        raise refused(
            "no-trial",
            collection.given,
            "it holds no record of any trial",
            "Give the log of a run that got that far.",
        )
    if kind_of(collection.given) == "file":
        raise not_recognised(collection.given, known, "its content is in no format that we read")
    if not collection.others:
        raise not_recognised(collection.given, known, "it holds no file (links, hidden folders: passed over)")
    if collection.others == 1:
        raise not_recognised(collection.given, known, "its only file is in no format that we read")
    why = f"none of its {collection.others} files is in a format that we read"
    raise not_recognised(collection.given, known, why)


def _joined(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Give each record what it is about, if exactly one trial of its task is nearest to it."""
    hosts = _hosts(entries)
    taken: dict[str, list[Entry]] = {}
    noted: dict[str, str] = {}
    for entry in entries:
        candidates = hosts.get(entry.own.joins_by or "", [])
        if not candidates or any(each is entry for each in candidates):
            continue
        near = nearest(entry.source.path, [each.source.path for each in candidates])
        if len(near) == 1:
            taken.setdefault(candidates[near[0]].key, []).append(entry)
        else:
            noted[entry.key] = (
                f"the rest of this trial: {len(near)} trials of this task lie equally near, and the record does"
                " not say which of them it is about"
            )
    result: list[Entry] = []
    gone: set[str] = set()
    for entry in entries:
        records = taken.get(entry.key, [])
        if records and not outcomes_agree([entry.own, *(each.own for each in records)]):
            said = "the outcome: records of this task contradict one another, so none of them is taken"
            noted.update({each.key: said for each in (entry, *records)})
        elif records:
            gone.update(each.key for each in records)
            ref = joined_ref(entry.own, [each.own for each in records])
            entry = replace(entry, ref=ref, records=tuple(records))
        result.append(entry)
    return tuple(
        replace(each, notes=(noted[each.key],)) if each.key in noted else each
        for each in result
        if each.key not in gone
    )


def _hosts(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return, by task id, what records are joined to: trajectories, or else the records of one format."""
    trajectories: dict[str, list[Entry]] = {}
    records: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.own.joins_by is not None:
            records.setdefault(entry.own.joins_by, []).append(entry)
        elif entry.own.task_id is not None:
            trajectories.setdefault(entry.own.task_id, []).append(entry)
    hosts: dict[str, list[Entry]] = {}
    for task, found in records.items():
        main = principal([(each.source.reader.name, each.own, each.source.path) for each in found])
        hosts[task] = trajectories.get(task) or [each for each in found if each.source.reader.name == main]
    return hosts
