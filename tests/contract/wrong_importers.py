"""Importers of our own format that are each wrong in one way, to show that the contract notices."""

import itertools
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.trial_jsonl import TrialJsonl
from pytest_regcase.records.trial import Trial, TrialError, TrialRef

DIGEST = "sha256:" + 64 * "0"


class Badly(TrialJsonl):
    """Lists and reads as ours does, with some facts changed."""

    listed: Mapping[str, Any] = MappingProxyType({})
    changed: Mapping[str, Any] = MappingProxyType({})

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        for ref in super().list_trials(source):
            yield ref.model_copy(update=self.listed)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        return super().read(source, ref).model_copy(update=self.changed)


class Shouts(Badly):
    name = "Trial JSON lines"


class TakesAnything(Badly):
    def handles(self, peek: Peek) -> bool:
        return peek.kind == "file"


class TakesWhatAnotherTakes(Badly):
    name = "trial-lines"


class TakesNothing(Badly):
    def handles(self, peek: Peek) -> bool:
        return peek.kind == "zip"


class TellsAnotherIdEachTime(Badly):
    numbers = itertools.count()

    def read(self, source: Path, ref: TrialRef) -> Trial:
        return super().read(source, ref).model_copy(update={"event_id": f"{next(self.numbers)}"})


class ListsTwice(Badly):
    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        for ref in super().list_trials(source):
            yield from (ref, ref)


class OpensWithoutCare(Badly):
    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        source.read_bytes()
        yield from super().list_trials(source)


class ParsesWithoutCare(Badly):
    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        json.loads(source.read_bytes().partition(b"\n")[0])
        yield from super().list_trials(source)


class TrustsTypes(Badly):
    def read(self, source: Path, ref: TrialRef) -> Trial:
        trial = super().read(source, ref)
        assert all(isinstance(each, str) for each in (trial.harness, trial.run_id, trial.task_id, trial.event_id))
        return trial


class ListsAnotherOutcome(Badly):
    listed = MappingProxyType({"outcome": "failed"})


class ListsAnotherError(Badly):
    listed = MappingProxyType({"error_type": "MemoryError"})


class RefusesWithoutWords(Badly):
    listed = MappingProxyType({"refusal": "passed", "why_not": None})


class TakesAllForFailed(Badly):
    listed = MappingProxyType({"refusal": None, "why_not": None, "failed": True})


class KnowsAnOutcome(Badly):
    listed = MappingProxyType({"outcome": "failed"})
    changed = MappingProxyType({"outcome": "failed", "outcome_from": None})


class FillsInAModel(Badly):
    changed = MappingProxyType({"model": "unknown"})


class KnowsTheCause(Badly):
    changed = MappingProxyType({"error": TrialError(message="the supplier ran out of memory")})


class KnowsATime(Badly):
    changed = MappingProxyType({"started_at": datetime(2026, 1, 1, tzinfo=UTC)})


class DigestsSomethingElse(Badly):
    changed = MappingProxyType({"source_digests": {"failed.jsonl": DIGEST}})


class LeavesOutSteps(Badly):
    def read(self, source: Path, ref: TrialRef) -> Trial:
        trial = super().read(source, ref)
        return trial.model_copy(update={"steps": trial.steps[:1] + trial.steps[3:], "failing_step": 9})


class WritesWhatCannotBeWritten(Badly):
    changed = MappingProxyType({"final_text": "\ud800"})
