"""An importer that keeps what it parsed last gives what a fresh one gives, and parses the file once."""

from pathlib import Path

import pytest

from pytest_regcase import registry
from pytest_regcase.importers import json_records, last_document

GOLD = Path(__file__).parent.parent / "gold"
KEEPING = [
    ("inspect", "inspect/sweep.json"),
    ("langfuse", "langfuse/trace.json"),
    ("langfuse", "langfuse/observations.jsonl"),
    ("langsmith", "langsmith/finished.jsonl"),
    ("otlp", "otlp/two_traces.json"),
    ("promptfoo", "promptfoo/lines.jsonl"),
    ("promptfoo", "promptfoo/results.json"),
    ("promptfoo", "promptfoo/table.json"),
    ("swe-bench-predictions", "swe-bench-predictions/preds.json"),
]


@pytest.mark.parametrize(("name", "sample"), KEEPING)
def test_each_trial_is_read_as_a_fresh_importer_reads_it(
    name: str, sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, path = registry.load("importers", name), GOLD / sample
    refs = list(make().list_trials(path))
    fresh = [make().read(path, ref) for ref in refs]
    keeping = make()
    assert list(keeping.list_trials(path)) == refs
    with monkeypatch.context() as patched:  # from here on nothing may be read
        patched.delattr(json_records, "read_lines")
        patched.delattr(json_records, "read_document")
        patched.delattr(last_document, "read_parsed")
        for _ in range(2):
            assert [keeping.read(path, ref) for ref in refs] == fresh
