"""The contract over every registered importer and all samples of ours.

A third party's importer runs through the contract by inheriting it (see `importer_contract`).
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_regcase import registry
from tests.contract.importer_contract import ImporterContract, Make, gold_samples

NAMES = sorted(registry.names("importers"))
NEVER_FAILED = {"atif"}
"""Formats that say nothing of how a trial ended."""


class TestEveryRegisteredImporter(ImporterContract):
    own_words = frozenset({"FormatError", "no reply recorded"})

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


def test_each_folder_of_samples_belongs_to_a_format() -> None:
    assert {path.parent.name for path in gold_samples()} == set(NAMES)
