"""Harbor trials: a trial's folder, a job's folder with several of them, or a `result.json` of either.

Knows where Harbor puts its files; what they mean is `harbor_trial`'s. Must import no other importer.

What surprises: both levels call their file `result.json`; a job that was ended has a trial folder with a
configuration and no result; a trial's place among the attempts at its task is recorded nowhere.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.folder_files import folders_in, is_plain_file
from pytest_regcase.importers.harbor_trial import HarborEnding, JobFacts, TrialFolder, read_trial
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    NotJson,
    Parsed,
    filled,
    mapping,
    parse_json,
    printable,
    read_document,
    refused,
)
from pytest_regcase.records.trial import Trial, TrialRef

NAME: Final = "harbor"
_RESULT, _CONFIG, _LOCK = "result.json", "config.json", "lock.json"
_TRIAL_KEYS: Final = frozenset({"task_name", "trial_name", "config"})
_JOB_KEYS: Final = frozenset({"n_total_trials", "stats"})
_UNFINISHED_KEYS: Final = frozenset({"trial_name", "trials_dir", "task"})
_TRIALS_LIMIT: Final = 20_000


class Harbor:
    """Importer of Harbor trials, alone or in a job."""

    name = NAME

    def handles(self, peek: Peek) -> bool:
        """Say whether it is a trial's or job's result, or the folder that holds one right below it."""
        if peek.kind == "folder":
            result = peek.member(_RESULT)
            if result is not None:
                return _is_result(result)
            config = peek.member(_CONFIG)  # a trial that was ended before it wrote a result
            return config is not None and config.shape.keys >= _UNFINISHED_KEYS
        return peek.kind == "file" and _is_result(peek)

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each trial, those without a result too."""
        entries, damaged = _entries(source)
        yield from map(_ref, entries)
        for name in damaged:
            yield TrialRef(key=name, why_not="its result is damaged", refusal="corrupt", sample=name)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one trial, with the conversation that lies in its folder."""
        for entry in _entries(source, only=ref.key)[0]:
            return read_trial(NAME, entry.folder, entry.job, attempt=ref.attempt)
        raise refused("no-such-trial", source, f"it holds no trial {ref.key!r}", "List them with --failed.")


@dataclass(frozen=True)
class _Entry:
    key: str
    folder: TrialFolder
    job: JobFacts | None = None
    attempt: int | None = None


def _is_result(peek: Peek) -> bool:
    keys = peek.shape.keys
    return peek.shape.kind == "object" and (keys >= _TRIAL_KEYS or keys >= _JOB_KEYS)


def _entries(source: Path, *, only: str | None = None) -> tuple[list[_Entry], list[str]]:
    """Return the trials of a folder or result file by their folders' names, and the names of damaged ones.

    Of a job, `only` takes the one of that key.

    Raises:
        ImportRefused: it cannot be read, or is no JSON object; of a job's trials only the one that is asked for.
    """
    place = source if source.is_dir() else source.parent
    result_file = place / _RESULT if source.is_dir() else source
    is_read = not source.is_dir() or is_plain_file(result_file)
    result = _object(result_file) if is_read else Parsed({})
    if not mapping(result.value).keys() >= _JOB_KEYS:
        folder = _trial_folder(place, result_file, result)
        return [_Entry(folder.name or "trial", folder)], []
    job = _job_facts(place)
    folders: list[TrialFolder] = []
    damaged: list[str] = []
    for each in folders_in(place)[:_TRIALS_LIMIT]:
        if only is not None and printable(each.name) != only:
            continue
        try:
            if _holds_trial(each):
                folders.append(_trial_folder(each, each / _RESULT, _result_of(each)))
        except ImportRefused:
            if only is not None:
                raise
            damaged.append(printable(each.name))
    tried = Counter(each.task for each in folders)
    numbers = _places_in_time(folders)
    entries = [
        _Entry(printable(each.place.name), each, job, numbers[each.place.name] if tried[each.task] > 1 else None)
        for each in folders
    ]
    return entries, damaged


def _holds_trial(place: Path) -> bool:
    """Say whether a folder below a job's holds a trial, or the beginning of one."""
    if is_plain_file(place / _RESULT):
        return True
    config = place / _CONFIG
    return is_plain_file(config) and mapping(_object(config).value).keys() >= _UNFINISHED_KEYS


def _result_of(place: Path) -> Parsed:
    return _object(place / _RESULT) if is_plain_file(place / _RESULT) else Parsed({})


def _places_in_time(folders: list[TrialFolder]) -> dict[str, int]:
    """Number the trials of each task by when they started; one that has no start time comes last."""
    counted: Counter[str | None] = Counter()
    found = {}
    for each in sorted(folders, key=lambda one: (one.started is None, one.started or "", one.place.name)):
        counted[each.task] += 1
        found[each.place.name] = counted[each.task]
    return found


def _trial_folder(place: Path, result_file: Path, result: Parsed) -> TrialFolder:
    config_file = place / _CONFIG
    config: Mapping[str, Any] = mapping(mapping(result.value).get("config"))
    if not result.value and is_plain_file(config_file):
        config = mapping(_object(config_file).value)
    return TrialFolder(
        place,
        mapping(result.value),
        config,
        digested=result_file if is_plain_file(result_file) else config_file,
        notes=result.notes,
    )


def _job_facts(place: Path) -> JobFacts:
    """Return what the job's own files say of all its trials; a file that is not there says nothing."""
    config, lock = (
        mapping(_object(place / name).value) if is_plain_file(place / name) else {} for name in (_CONFIG, _LOCK)
    )
    return JobFacts(
        version=filled(mapping(lock.get("harbor")).get("version")),
        concurrency=config.get("n_concurrent_trials"),
        max_retries=mapping(config.get("retry")).get("max_retries"),
    )


def _object(path: Path) -> Parsed:
    try:
        return parse_json(read_document(path))
    except NotJson as error:
        raise refused("corrupt", path, str(error), "The file may be cut off: copy it again.") from error


def _ref(entry: _Entry) -> TrialRef:
    ending = HarborEnding(entry.folder)
    why_not, refusal = None, None
    if ending.outcome == "passed":
        beside = f", although {ending.error_type or 'an exception'} was raised" if ending.failed_by_error else ""
        why_not, refusal = f"its verifier rewarded it as passed{beside}", "passed"
    elif ending.outcome == "undetermined" and ending.termination in (None, "finished"):
        why_not = "it ended, and no exception or reward of 0 says that it failed"
        refusal = "no-sign-of-failure"
    return TrialRef(
        key=entry.key,
        task_id=entry.folder.task,
        attempt=entry.attempt,
        termination=ending.termination,
        outcome=ending.outcome,
        error_type=ending.error_type,
        failed=refusal is None,
        why_not=why_not,
        refusal=refusal,
        sample=entry.folder.name,
    )
