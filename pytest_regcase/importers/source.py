"""Picks the one trial that is meant out of what a path holds; refusals in their own words.

Knows references, not formats. Must import no importer module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.collection import Collection, Entry, collect, without_secrets
from pytest_regcase.importers.reading import refused
from pytest_regcase.records.trial import Trial, TrialRef

_LISTED: Final = 12
_OURS: Final = "trial-jsonl"
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


@dataclass(frozen=True)
class Choice:
    """Which trial of a collection is meant. Everything that is None is left open."""

    key: str | None = None
    """As listed, or as the source itself calls it."""
    sample: str | None = None
    epoch: int | None = None
    failed_only: bool = True
    """False: a person says how it ended, so that passed trials and those without a sign of failure count as well.
    What never ran, or was cancelled because a sibling failed, is refused all the same."""


def find_trials(path: Path, *, importer: str | None = None) -> Found:
    """Tell the format of the one log that `path` is or holds, and list its trials as the log has them.

    Raises:
        ImportRefused: no such path, not recognised, two formats, several logs, or unreadable.
    """
    with collect(path, importer=importer, strict=True) as found:
        everything = [each for one in found.entries for each in (one, *one.records)]
        places = {each.source.path: each.source for each in everything}
        if len(places) > 1:
            raise _several_logs(found, everything)
        (source,) = places.values()
        return Found(source.reader.name, source.path, tuple(each.own for each in found.entries))


def read_one(
    path: Path,
    *,
    importer: str | None = None,
    key: str | None = None,
    sample: str | None = None,
    epoch: int | None = None,
    failed_only: bool = True,
) -> Trial:
    """Read the one failed trial below `path`; see `Choice` for what the options mean.

    Raises:
        ImportRefused: with the true reason, also when more than one trial fits.
    """
    with collect(path, importer=importer) as found:
        return found.read(pick(found, Choice(key=key, sample=sample, epoch=epoch, failed_only=failed_only)))


def read_output(path: Path, *, importer: str | None = None) -> Trial:
    """Read what an agent that we ran has written: exactly one trial, whatever its outcome.

    Reports and predictions beside it are about it, whatever task they name: they are of one attempt. A
    `trial.jsonl` counts before logs in other formats, which an agent may keep besides.

    Raises:
        ImportRefused: nothing recognised, more than one trial, or a part that cannot be read.
    """
    with collect(path, importer=importer, strict=True) as found:
        entry = _one_attempt(found.entries)
        if entry is None:
            raise refused(
                "several-trials",
                path,
                f"it holds {len(found.entries)} trials, and an attempt has exactly one",
                "Let the agent write one trial into its output folder, or say which format with `importer`:\n"
                + listing(found, found.entries),
            )
        return found.read(entry)


def _one_attempt(entries: Sequence[Entry]) -> Entry | None:
    """Return the one trial that an attempt has written; None where there are several."""
    ours = [each for each in entries if each.source.reader.name == _OURS]
    trials = [each for each in entries if each.own.joins_by is None]
    records = [each for each in entries if each.own.joins_by is not None]
    if len(entries) == 1:
        return entries[0]
    if len(trials) != 1 and len(ours) != 1:
        return None
    host = ours[0] if len(ours) == 1 else trials[0]
    formats = [each.source.reader.name for each in records]
    if len(set(formats)) < len(formats):
        return None
    return replace(host, records=(*host.records, *records), notes=())


def pick(found: Collection, choice: Choice) -> Entry:
    """Return the one trial that is meant.

    Raises:
        ImportRefused: none fits, several do, or it is no failed trial; it says which and why.
    """
    meant = [each for each in found.entries if _fits(each, choice)]
    if not meant:
        raise refused(
            "no-such-trial", found.given, "no trial in it fits", "It holds:\n" + listing(found, found.entries)
        )
    if choice.failed_only:
        failed = [each for each in meant if each.ref.failed and each.ref.why_not is None]
    else:
        failed = [each for each in meant if each.ref.why_not is None or each.ref.refusal in BY_A_PERSON]
    if len(failed) == 1:
        return failed[0]
    if failed:
        how = (
            "Pick one with --sample ID (and --epoch N)" if found.sources == 1 else "Pick one with --trial KEY"
        ) + ", or make one case a failure signature with --all"
        raise refused(
            "several-trials",
            found.given,
            f"{len(failed)} {'failed ' if choice.failed_only else ''}trials in it fit, and a case has one",
            f"{how}:\n" + listing(found, failed),
        )
    raise nothing_failed(found, meant)


def nothing_failed(found: Collection, meant: Sequence[Entry]) -> ImportRefused:
    """Return the refusal of trials of which none failed by itself: one reason where all share it."""
    recorded = [each for each in meant if each.ref.refusal not in WITHOUT_RECORD]
    meant = recorded or meant
    slugs = {each.ref.refusal or "no-sign-of-failure" for each in meant}
    by_a_person = "If it did fail, say so with --outcome failed (recorded as a person's word)."
    if len(meant) == 1:
        slug = next(iter(slugs))
        why = meant[0].ref.why_not or "nothing in it says that the trial failed"
        return refused(
            slug, found.given, why, by_a_person if slug in BY_A_PERSON else "Pick a trial that failed by itself."
        )
    slug = next(iter(slugs)) if len(slugs) == 1 else "no-failed-trial"
    return refused(
        slug,
        found.given,
        f"none of its {len(meant)} trials failed by itself",
        listing(found, meant) + "\nIf one did fail, pick it (--trial KEY, --sample ID) and say --outcome failed.",
    )


def listing(found: Collection, entries: Sequence[Entry]) -> str:
    """Return one line for each of the first trials: how a person picks it, and what is known of it."""
    lines = []
    for each in entries[:_LISTED]:
        ref = each.ref
        facts = ", ".join(fact for fact in (ref.termination, ref.outcome, ref.error_type) if fact)
        epoch = f" epoch {ref.attempt}" if ref.attempt is not None else ""
        name = f"{ref.sample or ref.task_id or ref.key}{epoch}" if found.sources == 1 else each.key
        lines.append(f"  {name}: {facts}" + (f" ({ref.why_not})" if ref.why_not else ""))
    if len(entries) > _LISTED:
        lines.append(f"  and {len(entries) - _LISTED} more")
    return without_secrets("\n".join(lines))


def _fits(entry: Entry, choice: Choice) -> bool:
    ref = entry.ref
    return (
        (choice.key is None or choice.key in (entry.key, ref.key))
        and (choice.sample is None or choice.sample in (ref.sample, ref.task_id, ref.key))
        and (choice.epoch is None or ref.attempt == choice.epoch)
    )


def _several_logs(found: Collection, entries: Sequence[Entry]) -> ImportRefused:
    logs = {each.source.path: each.source.reader.name for each in entries}
    shown = "\n".join(f"  {found.label(path)}: {name}" for path, name in list(logs.items())[:_LISTED])
    return refused(
        "two-formats" if len(set(logs.values())) > 1 else "several-files",
        found.given,
        f"{len(logs)} of its files hold trials",
        "Give one of them:\n" + shown,
    )
