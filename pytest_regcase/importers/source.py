"""Finds what a path holds, and picks the one trial that is meant: format by content, refusals in their own words.

Knows the importers by their entry points only. Must import no importer module.
"""

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pytest_regcase import registry
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.protocol import Importer, Peek
from pytest_regcase.importers.reading import read_head, refused
from pytest_regcase.records.trial import Trial, TrialRef

DEPTH_LIMIT: Final = 3
FILES_LIMIT: Final = 2_000
_LISTED: Final = 12
BY_A_PERSON: Final = frozenset({"passed", "no-sign-of-failure"})
"""Refusals that a person's word (`--outcome failed`) lifts. The other ones say that there is nothing to take."""
WITHOUT_RECORD: Final = frozenset({"never-ran", "no-record"})


@dataclass(frozen=True)
class Found:
    """What a path turned out to hold."""

    importer: str
    path: Path
    """The file or folder actually read."""
    refs: tuple[TrialRef, ...]


def find_trials(path: Path, *, importer: str | None = None) -> Found:
    """Tell the format of `path` by its content and list its trials. A folder is searched three levels deep.

    Raises:
        ImportRefused: no such path, not recognised, two formats, several files, or unreadable.
    """
    place, reader = _locate(path, importer)
    with _only_refusals(place):
        return Found(reader.name, place, tuple(reader.list_trials(place)))


def read_one(
    path: Path,
    *,
    importer: str | None = None,
    key: str | None = None,
    sample: str | None = None,
    epoch: int | None = None,
    failed_only: bool = True,
) -> Trial:
    """Read the one failed trial of `path`.

    With `failed_only=False` a person says that it failed: a passed trial, and one without any sign of failure, are
    read as well. What never ran, or was cancelled because a sibling failed, is refused all the same.

    Raises:
        ImportRefused: with the true reason, also when more than one trial fits.
    """
    place, reader = _locate(path, importer)
    with _only_refusals(place):
        refs = tuple(reader.list_trials(place))
        ref = _pick(place, refs, key=key, sample=sample, epoch=epoch, failed_only=failed_only)
        return reader.read(place, ref)


def read_output(path: Path, *, importer: str | None = None) -> Trial:
    """Read what an agent that we ran has written: exactly one trial, whatever its outcome.

    Raises:
        ImportRefused: nothing recognised, more than one trial, or unreadable.
    """
    place, reader = _locate(path, importer)
    with _only_refusals(place):
        refs = tuple(reader.list_trials(place))
        if len(refs) != 1:
            raise refused(
                "several-trials" if refs else "no-trial",
                place,
                f"it holds {len(refs)} trials, and an attempt has exactly one",
                "Let the agent write one trial into its output folder.",
            )
        return reader.read(place, refs[0])


def _pick(
    place: Path,
    refs: Sequence[TrialRef],
    *,
    key: str | None,
    sample: str | None,
    epoch: int | None,
    failed_only: bool,
) -> TrialRef:
    if not refs:
        raise refused(
            "no-trial", place, "it holds no record of any trial", "Give the log of a run that got that far."
        )
    meant = [
        ref
        for ref in refs
        if (key is None or ref.key == key)
        and (sample is None or sample in (ref.sample, ref.task_id, ref.key))
        and (epoch is None or ref.attempt == epoch)
    ]
    if not meant:
        raise refused("no-such-trial", place, "no trial in it fits", "It holds:\n" + _listing(refs))
    if failed_only:
        failed = [ref for ref in meant if ref.failed and ref.why_not is None]
    else:
        failed = [ref for ref in meant if ref.why_not is None or ref.refusal in BY_A_PERSON]
    if len(failed) == 1:
        return failed[0]
    if failed:
        raise refused(
            "several-trials",
            place,
            f"{len(failed)} {'failed ' if failed_only else ''}trials in it fit, and a case has one",
            "Pick one with --sample ID (and --epoch N):\n" + _listing(failed),
        )
    raise _nothing_failed(place, meant)


def _nothing_failed(place: Path, meant: Sequence[TrialRef]) -> ImportRefused:
    recorded = [ref for ref in meant if ref.refusal not in WITHOUT_RECORD]
    meant = recorded or meant
    slugs = {ref.refusal or "no-sign-of-failure" for ref in meant}
    by_a_person = "If it did fail, say so with --outcome failed (recorded as a person's word)."
    if len(meant) == 1:
        slug = next(iter(slugs))
        why = meant[0].why_not or "nothing in it says that the trial failed"
        return refused(
            slug, place, why, by_a_person if slug in BY_A_PERSON else "Pick a trial that failed by itself."
        )
    slug = next(iter(slugs)) if len(slugs) == 1 else "no-failed-trial"
    return refused(
        slug,
        place,
        f"none of its {len(meant)} trials failed by itself",
        _listing(meant) + "\nIf one did fail, pick it with --sample ID and say --outcome failed.",
    )


def _listing(refs: Sequence[TrialRef]) -> str:
    lines = []
    for ref in refs[:_LISTED]:
        facts = [each for each in (ref.termination, ref.outcome, ref.error_type) if each]
        epoch = f" epoch {ref.attempt}" if ref.attempt is not None else ""
        why_not = f" ({ref.why_not})" if ref.why_not else ""
        lines.append(f"  {ref.sample or ref.task_id or ref.key}{epoch}: {', '.join(facts)}{why_not}")
    if len(refs) > _LISTED:
        lines.append(f"  and {len(refs) - _LISTED} more")
    return "\n".join(lines)


def _locate(path: Path, importer: str | None) -> tuple[Path, Importer]:
    """Return the file or folder to read, and its importer."""
    readers = _readers(importer)
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise refused("unreadable", path, why.lower(), "Check the path.") from error
    if not is_folder and not is_file:
        raise refused("no-such-file", path, "there is no such file or folder", "Check the path.")
    if is_folder:
        return _in_folder(path, readers)
    return path, _one(path, _handling(_peek_file(path), readers), readers)


def _in_folder(folder: Path, readers: Sequence[Importer]) -> tuple[Path, Importer]:
    files = list(_files_below(folder))
    names = tuple(str(each.relative_to(folder)) for each in files)
    as_a_whole = _handling(Peek(folder, "folder", members=names), readers)
    if as_a_whole:
        return folder, _one(folder, as_a_whole, readers)
    recognised = [(file, found) for file in files if (found := _handling(_peek_file(file), readers))]
    if not recognised:
        raise _not_recognised(folder, readers, f"none of its {len(files)} files is in a format that we read")
    if len(recognised) > 1:
        shown = "\n".join(
            f"  {file.relative_to(folder)}: {', '.join(each.name for each in found)}"
            for file, found in recognised[:_LISTED]
        )
        formats = {each.name for _, found in recognised for each in found}
        raise refused(
            "two-formats" if len(formats) > 1 else "several-files",
            folder,
            f"{len(recognised)} of its files hold trials",
            "Give one of them:\n" + shown,
        )
    file, found = recognised[0]
    return file, _one(file, found, readers)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield plain files, sorted, without hidden folders and without following links."""

    def stop(error: OSError) -> None:
        # os.walk would leave the folder out and say nothing; the trial, or a second one, may be in there.
        name = Path(error.filename) if isinstance(error.filename, str) else folder
        raise refused(
            "unreadable", name, (error.strerror or str(error)).lower(), "Check the path and its permissions."
        ) from error

    count = 0
    for place, folders, files in os.walk(folder, onerror=stop):
        below = len(Path(place).relative_to(folder).parts)
        folders[:] = (
            sorted(each for each in folders if not each.startswith(".")) if below < DEPTH_LIMIT - 1 else []
        )
        for name in sorted(files):
            file = Path(place) / name
            if file.is_symlink() or not file.is_file():
                continue
            count += 1
            if count > FILES_LIMIT:
                raise refused(
                    "too-many-files", folder, f"it holds more than {FILES_LIMIT} files", "Give one file."
                )
            yield file


def _peek_file(path: Path) -> Peek:
    head = read_head(path)
    if not head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Peek(path, "file", head)
    try:
        with zipfile.ZipFile(path) as archive:
            members = tuple(archive.namelist()[:FILES_LIMIT])
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        members = ()
    return Peek(path, "zip", head, members)


def _readers(importer: str | None) -> list[Importer]:
    known = [importer] if importer is not None else list(registry.names("importers"))
    return [registry.load("importers", name)() for name in known]


def _handling(peek: Peek, readers: Sequence[Importer]) -> list[Importer]:
    return [reader for reader in readers if reader.handles(peek)]


def _one(path: Path, found: Sequence[Importer], readers: Sequence[Importer]) -> Importer:
    if not found:
        raise _not_recognised(path, readers, "its content is in no format that we read")
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise refused("two-formats", path, f"two formats match: {names}", "Say which with --importer NAME.")
    return found[0]


def _not_recognised(path: Path, readers: Sequence[Importer], why: str) -> ImportRefused:
    names = ", ".join(reader.name for reader in readers) or "none"
    return refused("not-recognised", path, why, f"Looked for: {names}.")


@contextmanager
def _only_refusals(path: Path) -> Iterator[None]:
    """Turn what a malformed source makes pydantic raise into a refusal; anything else is a bug and passes."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(each) for each in first["loc"])
        raise refused(
            "malformed", path, f"{place} cannot be used ({first['msg']})", "Check what wrote the file."
        ) from error
