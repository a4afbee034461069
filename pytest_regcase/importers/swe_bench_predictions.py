"""SWE-bench predictions: JSON lines, a list, or an object by instance id (`preds.json`). One trial an instance.

Field names after SWE-bench 5.0.2, `harness/utils.py`; `status` is ours. Must import no other importer.

What surprises: there is no outcome, no step and no error in it, so a trial is undetermined until a trajectory or a
report joins it; null, an empty text and a patch are three facts; a harness may write an exception's text where the
patch belongs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.json_records import JsonRecords, LastRecords
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import digests_of, filled, refused, text
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Submission, Trial, TrialRef
from pytest_regcase.records.words import Expectation

_NEEDED: Final = frozenset({"instance_id", "model_patch"})
_KEYS: Final = _NEEDED | {"model_name_or_path", "full_output", "status"}
_OF_AGENTS: Final = frozenset({"test_result", "history", "messages", "info"})
"""Keys of what agents' own harnesses write, with a patch in it or not."""
_DIFF: Final = re.compile(r"^(?:diff --git |--- |Index: )", re.MULTILINE)
_AGENT_ERROR: Final = "agent_error"
_CAN_SHOW: Final[tuple[Expectation, ...]] = ("no_partial_submission", "mark_failure")


class SweBenchPredictions:
    """Importer of SWE-bench predictions."""

    name = "swe-bench-predictions"

    def __init__(self) -> None:
        self._last = LastRecords()

    def handles(self, peek: Peek) -> bool:
        """Say whether its records have `instance_id` and `model_patch`."""
        if peek.kind != "file" or peek.shape.kind == "other":
            return False
        keys = peek.shape.keys
        if keys & _NEEDED and keys <= _KEYS and not keys >= _NEEDED:
            keys = peek.whole_shape.keys  # a long patch hides what stands behind it
        if keys >= _NEEDED:
            return not keys & _OF_AGENTS
        inner = peek.shape.inner_keys
        if inner & _NEEDED and not inner >= _NEEDED:
            inner = peek.whole_shape.inner_keys
        return peek.shape.kind == "object" and inner >= _NEEDED

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each prediction, in the order of the file."""
        for key, prediction in _keyed(JsonRecords(source, last=self._last)):
            yield _ref(key, prediction)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one prediction."""
        records = JsonRecords(source, last=self._last)
        prediction = next((each for key, each in _keyed(records) if key == ref.key), None)
        if prediction is None:
            raise refused("no-such-trial", source, f"no prediction in it is {ref.key}", "List it again.")
        return Trial(
            format=SweBenchPredictions.name,
            task_id=filled(prediction.get("instance_id")),
            event_id=digest_of([ref.key, dict(prediction)]),
            event_id_from="digest",
            model=filled(prediction.get("model_name_or_path")),
            submission=_submission(prediction),
            can_show=_CAN_SHOW,
            source_digests=digests_of(source),
            missing=(
                *records.missing,
                "outcome, steps and error: predictions hold none of them",
                *(() if _patch_words(prediction) is None else (f"the patch: {_patch_words(prediction)}",)),
            ),
        )


def _keyed(records: JsonRecords) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each prediction with a key of its own: a second one of an instance is ``id#2``."""
    counts: Counter[str] = Counter()
    for _, record in records:
        if record.keys() >= _NEEDED:
            found = [record]
        else:
            found = [each for each in record.values() if isinstance(each, dict) and each.keys() >= _NEEDED]
        for prediction in found:
            instance = filled(prediction.get("instance_id"))
            if instance is not None:
                counts[instance] += 1
                number = counts[instance]
                yield instance if number == 1 else f"{instance}#{number}", prediction


def _ref(key: str, prediction: Mapping[str, Any]) -> TrialRef:
    instance = filled(prediction.get("instance_id"))
    failed = prediction.get("status") == _AGENT_ERROR
    why_not = None
    if not failed:
        words = _patch_words(prediction)
        why_not = "predictions hold no pass or fail: that needs the benchmark's report"
        why_not += f" ({words})" if words is not None else ""
    return TrialRef(
        key=key,
        task_id=instance,
        failed=failed,
        why_not=why_not,
        refusal=None if failed else "no-sign-of-failure",
        sample=key,
        joins_by=instance,
    )


def _patch_words(prediction: Mapping[str, Any]) -> str | None:
    """Return what is odd about the patch, or None."""
    patch = prediction.get("model_patch")
    if patch is None:
        return "it is null, so none was handed in"
    if not isinstance(patch, str):
        return "it is no text"
    if not patch.strip():
        return "it is empty"
    return None if _DIFF.search(patch) else "where it belongs stands a text that is no diff"


def _submission(prediction: Mapping[str, Any]) -> Submission | None:
    """Return what was handed in; a text that is no diff is kept as the text that it is."""
    patch = text(prediction.get("model_patch"))
    mark = _AGENT_ERROR if prediction.get("status") == _AGENT_ERROR else None
    if patch is None:
        return Submission(mark=mark) if mark is not None else None
    if patch.strip() and not _DIFF.search(patch):
        return Submission(text=patch, mark=mark)
    return Submission(patch=patch, mark=mark)
