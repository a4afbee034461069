"""What every importer must keep. Inherit from `ImporterContract` in a test module and hand over your samples::

    class TestMyFormat(ImporterContract):
        @pytest.fixture
        def importer(self) -> Callable[[], Importer]:
            return MyFormat

        @pytest.fixture
        def samples(self) -> Sequence[Path]:
            return sorted(Path("tests/my_format").iterdir())

A sample is a file, or a folder as a user would hand it over. Among them must be a failed trial, and one that is
refused (it passed, or shows no sign of failure). The importer need not be registered.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.protocol import Importer
from pytest_regcase.importers.reading import digest_file
from pytest_regcase.importers.recognise import Source, readers, recognise_file, recognise_folder
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.trial import Trial, TrialRef
from tests.contract.changed_samples import check_changed_samples, check_random_bytes
from tests.importers.said import source_text, times_in

GOLD = Path(__file__).parent.parent / "gold"
Make = Callable[[], Importer]
Read = tuple[TrialRef, Trial | str]
"""A reference, and its trial or the slug with which it is refused."""

OURS = frozenset(
    {
        *("format", "event_id_from", "outcome", "outcome_from", "termination", "can_show", "missing"),
        *("source_digests", "error.raised_by", "retried.raised_by", "steps.role", "steps.from", "submission.by"),
    }
)
"""Closed words, our own sentences, digests, and places in the source."""
MADE_OF_PARTS = frozenset({"task_id", "labels", "conditions"})
"""Put together from what the source says, such as a task and its sample: each part must stand there."""
_PIECE = 12
"""Anything is made of short enough pieces."""
TIMES = frozenset({"started_at", "ended_at", "steps.at"})


class ImporterContract:
    """The contract. Each test says one thing that the rest of the tool relies on."""

    own_words: ClassVar[frozenset[str]] = frozenset()
    """Words that the importer itself says in place of a text, such as ``"no reply recorded"``."""

    @pytest.fixture
    def importer(self) -> Make:
        """Return the importer's class."""
        raise NotImplementedError

    @pytest.fixture
    def samples(self) -> Sequence[Path]:
        """Return files and folders in its format."""
        raise NotImplementedError

    @pytest.fixture
    def shows(self) -> frozenset[str]:
        """Return what its samples must hold; fewer only where the format can never say it."""
        return frozenset({"failed", "refused"})

    @pytest.fixture
    def bare_times_are_utc(self) -> bool:
        """Say whether the format writes UTC without saying so. Else such a time is no point in time."""
        return False

    def test_it_is_an_importer_with_a_name(self, importer: Make) -> None:
        made = importer()
        assert isinstance(made, Importer)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", made.name)

    def test_it_alone_takes_its_samples(self, importer: Make, samples: Sequence[Path]) -> None:
        for sample in samples:
            sources = sources_of(sample, [importer(), *others(importer().name)])
            assert {each.reader.name for each in sources} == {importer().name}, sample

    def test_it_takes_no_sample_of_another_format(self, importer: Make, samples: Sequence[Path]) -> None:
        for sample in gold_samples():
            if sample not in samples:
                taken = sources_of(sample, [importer()])
                assert sample not in [each.path for each in taken], sample

    def test_it_lists_and_reads_alike_every_time(self, importer: Make, samples: Sequence[Path]) -> None:
        for source in sources(importer, samples):
            expected = reads(importer, source)
            reader = importer()
            refs = list(reader.list_trials(source))
            assert refs == [ref for ref, _ in expected], source
            # In the other order, and one after the other by the same importer.
            assert [read(reader, source, ref) for ref in reversed(refs)] == [
                each for _, each in reversed(expected)
            ]

    def test_keys_are_unique(self, importer: Make, samples: Sequence[Path]) -> None:
        for source in sources(importer, samples):
            keys = [ref.key for ref, _ in reads(importer, source)]
            assert len(set(keys)) == len(keys), source
            assert all(keys), source

    def test_a_source_that_is_not_there_is_refused(self, importer: Make, tmp_path: Path) -> None:
        with pytest.raises(ImportRefused):
            list(importer().list_trials(tmp_path / "gone"))
        with pytest.raises(ImportRefused):
            importer().read(tmp_path / "gone", TrialRef(key="x"))

    def test_what_is_listed_is_what_is_read(self, importer: Make, samples: Sequence[Path]) -> None:
        for sample, ref, trial in trials(importer, samples):
            assert (trial.format, trial.outcome) == (importer().name, ref.outcome), (sample, ref.key)
            for name in ("task_id", "attempt", "termination"):
                listed = getattr(ref, name)
                assert listed is None or listed == getattr(trial, name), (sample, ref.key, name)
            raised = trial.error.type if trial.error is not None else None
            assert ref.error_type is None or ref.error_type == raised, (sample, ref.key)

    def test_why_it_is_no_failed_trial_has_a_name_and_words(self, importer: Make, samples: Sequence[Path]) -> None:
        for source in sources(importer, samples):
            for ref, _ in reads(importer, source):
                assert (ref.why_not is None) == (ref.refusal is None), (source, ref.key)
                assert ref.failed or ref.why_not is not None, (source, ref.key)
                assert ref.outcome != "passed" or ref.refusal is not None, (source, ref.key)

    def test_its_samples_hold_failed_and_refused_trials(
        self, importer: Make, samples: Sequence[Path], shows: frozenset[str]
    ) -> None:
        refs = [ref for source in sources(importer, samples) for ref, _ in reads(importer, source)]
        assert {"refused" if ref.refusal is not None else "failed" for ref in refs} == shows

    def test_an_outcome_has_a_source(self, importer: Make, samples: Sequence[Path]) -> None:
        for sample, ref, trial in trials(importer, samples):
            assert (trial.outcome == "undetermined") == (trial.outcome_from is None), (sample, ref.key)
            assert trial.outcome_from in (None, "log"), (sample, ref.key)
            assert not trial.by_person, (sample, ref.key)

    def test_steps_are_in_order_and_the_failing_step_follows_from_them(
        self, importer: Make, samples: Sequence[Path]
    ) -> None:
        for sample, ref, trial in trials(importer, samples):
            replies = [line.step for line in trial.replies]
            assert replies == list(range(1, len(replies) + 1)), (sample, ref.key)
            numbers = [line.step for line in trial.steps if line.role != "tool"]
            assert numbers == sorted(numbers), (sample, ref.key)
            if trial.steps:
                assert trial.failing_step in (max(1, len(replies)), len(replies) + 1), (sample, ref.key)
            else:
                assert trial.failing_step is None, (sample, ref.key)

    def test_no_value_is_invented(self, importer: Make, samples: Sequence[Path]) -> None:
        for sample, ref, trial in trials(importer, samples):
            said = source_text(sample)
            for place, value in values(trial):
                assert self.is_said(place, value, said), (sample, ref.key, place, value)

    def test_no_time_is_invented(self, importer: Make, samples: Sequence[Path], bare_times_are_utc: bool) -> None:
        for sample, ref, trial in trials(importer, samples):
            times = [trial.started_at, trial.ended_at, *(line.at for line in trial.steps)]
            said = times_in(source_text(sample), bare_times_are_utc=bare_times_are_utc)
            assert {each for each in times if each is not None} <= said, (sample, ref.key)

    def test_the_untouched_source_is_digested(self, importer: Make, samples: Sequence[Path]) -> None:
        for sample, ref, trial in trials(importer, samples):
            assert trial.source_digests, (sample, ref.key)
            for name, digest in trial.source_digests.items():
                files = [each for each in (sample, *sample.rglob(name)) if each.is_file()]
                if files:  # the name of a folder stands for all files in it
                    assert digest in [digest_file(each) for each in files], (sample, ref.key, name)

    def test_a_trial_can_be_written_and_read_again(self, importer: Make, samples: Sequence[Path]) -> None:
        for _, _, trial in trials(importer, samples):
            canonical_json(trial.to_sparse()).decode("utf-8")
            assert Trial.model_validate_json(trial.model_dump_json(by_alias=True)) == trial

    def test_changed_samples_are_read_or_refused(
        self, importer: Make, samples: Sequence[Path], tmp_path: Path
    ) -> None:
        for sample in samples:
            for source in sources(importer, [sample]):
                check_changed_samples(importer(), sample, source, tmp_path)

    def test_random_bytes_are_read_or_refused(self, importer: Make, tmp_path: Path) -> None:
        check_random_bytes(importer(), tmp_path)

    def is_said(self, place: str, value: str, said: str) -> bool:
        """Say whether a text of a trial stands in its source."""
        field = place.partition(".")[0]
        if place in OURS or field in OURS or place in TIMES or value in said or value in self.own_words:
            return True
        if place in ("task_text", "steps.text"):  # a message may come in several parts
            return made_of_parts(value, said)
        if place == "event_id":
            return re.fullmatch("sha256:[0-9a-f]{64}", value) is not None
        if place == "harness":  # the importer names it; only its version is recorded
            return value.rpartition(" ")[2] in said or " " not in value
        if place == "steps.tool_calls.arguments":
            return all(each in said for each in re.findall(r'"((?:[^"\\]|\\.)*)"', value))
        if field in MADE_OF_PARTS:
            if field == "labels":  # the importer names it; its value is recorded, or counted
                value = re.split("[:=]", value)[-1]
                return value in said or re.fullmatch(r"\d+ of \d+", value) is not None
            return all(each in said for each in re.split("::|[:=/ ]", value))
        return False


def made_of_parts(value: str, said: str, *, at_most: int = 4) -> bool:
    """Say whether a text is at most so many pieces of what the source says, one behind the other."""
    for _ in range(at_most):
        value = value.strip("\n")
        length = bisect_left(range(1, len(value) + 1), True, key=lambda each: value[:each] not in said)
        if length == len(value):
            return True
        if length < _PIECE:
            return False
        value = value[length:]
    return False


def sources_of(sample: Path, known: Sequence[Importer]) -> list[Source]:
    """Return what of a sample these importers take.

    Raises:
        ImportRefused: two of them take the same file or folder.
    """
    if sample.is_dir():
        return recognise_folder(sample, known, strict=True).sources
    found = recognise_file(sample, known)
    return [found] if found is not None else []


def sources(importer: Make, samples: Sequence[Path]) -> Iterator[Path]:
    """Yield the files and folders that the importer reads, and make sure that there are some."""
    found = [each.path for sample in samples for each in sources_of(sample, [importer()])]
    assert found, "it takes none of its samples"
    yield from found


def trials(importer: Make, samples: Sequence[Path]) -> Iterator[tuple[Path, TrialRef, Trial]]:
    """Yield each trial that can be read with the sample that it is in, and make sure that there are some."""
    found = [
        (sample, ref, trial)
        for sample in samples
        for source in sources(importer, [sample])
        for ref, trial in reads(importer, source)
        if isinstance(trial, Trial)
    ]
    assert found, "it reads none of its samples"
    yield from found


@lru_cache(maxsize=256)
def reads(importer: Make, source: Path) -> tuple[Read, ...]:
    """Return each reference with its trial or the slug of its refusal, each by an importer of its own."""
    return tuple((ref, read(importer(), source, ref)) for ref in importer().list_trials(source))


def read(reader: Importer, source: Path, ref: TrialRef) -> Trial | str:
    """Return the trial, or the slug of its refusal."""
    try:
        return reader.read(source, ref)
    except ImportRefused as refusal:
        return refusal.slug


def others(name: str) -> list[Importer]:
    """Return all registered importers but the one of this name."""
    return [each for each in readers() if each.name != name]


def gold_samples(name: str = "*") -> list[Path]:
    """Return the samples of ours, of one format or of all: what lies below a format's folder, pages aside."""
    return sorted(
        path for path in GOLD.glob(f"{name}/*") if path.name != "README.md" and "__" not in path.parts[-2]
    )


def values(trial: Trial) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of each text in a trial; what is in a list or has a free name goes by its field."""

    def walk(value: Any, place: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from walk(item, f"{place}.{key}" if place else key)
        elif isinstance(value, list):
            for item in value:
                yield from walk(item, place)
        elif isinstance(value, str):
            yield place, value

    yield from walk(trial.to_sparse(), "")
