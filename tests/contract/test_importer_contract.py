"""The contract over every registered importer and all samples of ours.

A third party's importer runs through the contract by inheriting it (see `importer_contract`).
"""

import inspect
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_regcase import registry
from tests.contract import wrong_importers
from tests.contract.importer_contract import ImporterContract, Make, gold_samples

NAMES = sorted(registry.names("importers"))
NEVER_FAILED = {"atif"}
"""Formats that say nothing of how a trial ended."""
UTC_WITHOUT_SAYING_SO = {"langfuse"}


class TestEveryRegisteredImporter(ImporterContract):
    own_words = frozenset({"FormatError", "no reply recorded", "swe-bench:ambiguous_failure"})

    @pytest.fixture(params=NAMES)
    def importer(self, request: pytest.FixtureRequest) -> Make:
        made: Make = registry.load("importers", request.param)
        assert made.name == request.param  # type: ignore[attr-defined]
        return made

    @pytest.fixture
    def samples(self, importer: Make) -> Sequence[Path]:
        return gold_samples(importer().name)

    @pytest.fixture
    def shows(self, importer: Make) -> frozenset[str]:
        return frozenset({"refused"} if importer().name in NEVER_FAILED else {"failed", "refused"})

    @pytest.fixture
    def bare_times_are_utc(self, importer: Make) -> bool:
        return importer().name in UTC_WITHOUT_SAYING_SO


def test_each_folder_of_samples_belongs_to_a_format() -> None:
    assert {path.parent.name for path in gold_samples()} == set(NAMES)


NOTICES = [
    (wrong_importers.Shouts, "test_it_is_an_importer_with_a_name"),
    (wrong_importers.TakesWhatAnotherTakes, "test_it_alone_takes_its_samples"),
    (wrong_importers.TakesNothing, "test_it_alone_takes_its_samples"),
    (wrong_importers.TakesAnything, "test_it_takes_no_sample_of_another_format"),
    (wrong_importers.TellsAnotherIdEachTime, "test_it_lists_and_reads_alike_every_time"),
    (wrong_importers.ListsTwice, "test_keys_are_unique"),
    (wrong_importers.OpensWithoutCare, "test_a_source_that_is_not_there_is_refused"),
    (wrong_importers.ParsesWithoutCare, "test_random_bytes_are_read_or_refused"),
    (wrong_importers.ParsesWithoutCare, "test_changed_samples_are_read_or_refused"),
    (wrong_importers.TrustsTypes, "test_changed_samples_are_read_or_refused"),
    (wrong_importers.ListsAnotherOutcome, "test_what_is_listed_is_what_is_read"),
    (wrong_importers.ListsAnotherError, "test_what_is_listed_is_what_is_read"),
    (wrong_importers.RefusesWithoutWords, "test_why_it_is_no_failed_trial_has_a_name_and_words"),
    (wrong_importers.TakesAllForFailed, "test_why_it_is_no_failed_trial_has_a_name_and_words"),
    (wrong_importers.TakesAllForFailed, "test_its_samples_hold_failed_and_refused_trials"),
    (wrong_importers.KnowsAnOutcome, "test_an_outcome_has_a_source"),
    (wrong_importers.LeavesOutSteps, "test_steps_are_in_order_and_the_failing_step_follows_from_them"),
    (wrong_importers.FillsInAModel, "test_no_value_is_invented"),
    (wrong_importers.KnowsTheCause, "test_no_value_is_invented"),
    (wrong_importers.KnowsATime, "test_no_time_is_invented"),
    (wrong_importers.DigestsSomethingElse, "test_the_untouched_source_is_digested"),
    (wrong_importers.WritesWhatCannotBeWritten, "test_a_trial_can_be_written_and_read_again"),
]


@pytest.mark.parametrize(("wrong", "notices"), NOTICES)
def test_the_contract_notices(wrong: Make, notices: str, tmp_path: Path) -> None:
    given = {
        "importer": wrong,
        "samples": gold_samples("trial-jsonl"),
        "shows": frozenset({"failed", "refused"}),
        "bare_times_are_utc": False,
        "tmp_path": tmp_path,
    }
    test = getattr(ImporterContract(), notices)
    with pytest.raises(Exception) as noticed:
        test(**{name: given[name] for name in inspect.signature(test).parameters})
    assert not isinstance(noticed.value, TypeError)


def test_each_test_of_the_contract_is_shown_to_notice() -> None:
    tests = {name for name in dir(ImporterContract) if name.startswith("test_")}
    assert tests == {notices for _, notices in NOTICES}
