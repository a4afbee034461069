"""What every registered importer keeps, whatever it is given: only refusals, no invention, the same twice."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_regcase import registry
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.protocol import Importer
from pytest_regcase.importers.source import find_trials
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import EXPECTATIONS
from tests.importers.said import source_text
from tests.importers.zips import STORED, read_members, write_zip

GOLD = Path(__file__).parent.parent / "gold"
SAMPLES = sorted(
    path.relative_to(GOLD).as_posix() for path in GOLD.glob("*/*") if path.suffix in (".json", ".jsonl", ".eval")
)
NAMES = sorted(registry.names("importers"))
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def importer(name: str) -> Importer:
    found: Importer = registry.load("importers", name)()
    return found


def everything(reader: Importer, path: Path) -> Iterator[tuple[TrialRef, Trial]]:
    """Read all trials that can be read; anything but a refusal is a failure of the importer."""
    with contextlib.suppress(ImportRefused):
        for ref in reader.list_trials(path):
            with contextlib.suppress(ImportRefused):
                yield ref, reader.read(path, ref)


def test_there_is_a_sample_of_every_format() -> None:
    assert {find_trials(GOLD / name).importer for name in SAMPLES} == set(NAMES)


@pytest.mark.parametrize("sample", SAMPLES)
def test_each_sample_is_read_alike_twice_and_names_itself(sample: str) -> None:
    found = find_trials(GOLD / sample)
    reader = importer(found.importer)
    keys = [ref.key for ref in found.refs]
    assert len(keys) == len(set(keys))
    pairs = list(everything(reader, GOLD / sample))
    assert pairs
    for ref, trial in pairs:
        assert trial == reader.read(GOLD / sample, ref)
        assert trial.format == found.importer
        assert set(trial.can_show) <= set(EXPECTATIONS)
        assert list(trial.source_digests) == [Path(sample).name]
        assert (trial.outcome == "undetermined") == (trial.outcome_from is None)
        if ref.termination is not None:
            assert trial.termination == ref.termination
        assert trial.outcome == ref.outcome
        canonical_json(trial.to_sparse())


@pytest.mark.parametrize("sample", SAMPLES)
def test_steps_are_in_order_and_the_failing_step_follows_from_them(sample: str) -> None:
    for _, trial in everything(importer(find_trials(GOLD / sample).importer), GOLD / sample):
        replies = [line.step for line in trial.replies]
        assert replies == list(range(1, len(replies) + 1))
        if not trial.steps:
            assert trial.failing_step is None
        else:
            assert trial.failing_step in (len(replies), len(replies) + 1)
            assert trial.failing_step >= 1


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_value_of_an_error_and_a_line_stands_in_the_source(sample: str) -> None:
    said = source_text(GOLD / sample)
    for _, trial in everything(importer(find_trials(GOLD / sample).importer), GOLD / sample):
        values = [trial.run_id, trial.revision, trial.model, trial.task_text, trial.final_text]
        if trial.error is not None:
            values += [trial.error.type, trial.error.message, trial.error.traceback]
            values += [words for link in trial.error.chain for words in (link.type, link.message)]
        if trial.submission is not None:
            values += [trial.submission.patch, trial.submission.text]
        for line in trial.steps:
            values += [line.raw_output, line.finish, line.model, line.tool_call_id, *line.offered_tools]
            values += [call.id for call in line.tool_calls] + [call.name for call in line.tool_calls]
            if line.error not in ("FormatError", "no reply recorded"):
                values += [line.text, line.error]
        for value in values:
            assert value is None or value in said


@pytest.mark.parametrize("name", NAMES)
@SLOW
@given(content=st.binary(max_size=300))
def test_random_bytes_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("random") / "x"
    path.write_bytes(content)
    list(everything(importer(name), path))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def mutated(data: st.DataObject, value: Any) -> Any:
    """Change up to five places of a JSON value: another value, a missing key, a doubled or missing item."""
    for _ in range(data.draw(st.integers(1, 5))):
        place, parent, key = value, None, None
        for _ in range(data.draw(st.integers(1, 9))):
            keys = (
                list(place)
                if isinstance(place, dict)
                else list(range(len(place)))
                if isinstance(place, list)
                else []
            )
            if not keys:
                break
            parent, key = place, data.draw(st.sampled_from(keys))
            place = parent[key]
        if parent is None or key is None:
            continue
        action = data.draw(st.sampled_from(["replace", "remove", "double"]))
        if action == "remove":
            del parent[key]
        elif action == "double" and isinstance(parent, list):
            parent.insert(key, parent[key])
        else:
            parent[key] = data.draw(json_values)
    return value


@pytest.mark.parametrize("sample", [name for name in SAMPLES if not name.endswith(".eval")])
@SLOW
@given(data=st.data())
def test_a_mutated_document_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, sample: str, data: st.DataObject
) -> None:
    content = (GOLD / sample).read_bytes()
    lines = content.split(b"\n") if sample.endswith(".jsonl") else [content]
    at = data.draw(st.integers(0, len(lines) - 1))
    with contextlib.suppress(ValueError):
        lines[at] = json.dumps(mutated(data, json.loads(lines[at]))).encode()
    path = tmp_path_factory.mktemp("mutated") / "x"
    path.write_bytes(b"\n".join(lines))
    for _, trial in everything(importer(find_trials(GOLD / sample).importer), path):
        canonical_json(trial.to_sparse()).decode("utf-8")


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a JSON document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield (*path, key)
        yield from fields(item, (*path, key))


@pytest.mark.parametrize(
    "sample", ["inspect/limit.json", "mini-swe-agent/call_failed.traj.json", "trial-jsonl/failed.jsonl"]
)
@pytest.mark.parametrize("wrong", [None, [], {}, 1, "x"], ids=repr)
def test_every_field_may_be_of_another_type(tmp_path: Path, sample: str, wrong: Any) -> None:
    content = (GOLD / sample).read_text()
    is_lines = sample.endswith(".jsonl")
    document = [json.loads(line) for line in content.splitlines()] if is_lines else json.loads(content)
    reader = importer(find_trials(GOLD / sample).importer)
    path = tmp_path / "x"
    tried = set()
    for place in list(fields(document)):
        holder, sort = document, ""
        for key in place[:-1]:
            holder = holder[key]
            if isinstance(holder, dict):
                sort = str(holder.get("event") or holder.get("role") or holder.get("kind") or sort)
        # Each field of each sort of record once, whatever its number in a list.
        kind = (sort, *tuple(key for key in place if isinstance(key, str))[-3:])
        if kind in tried:
            continue
        tried.add(kind)
        right, holder[place[-1]] = holder[place[-1]], wrong
        path.write_text("\n".join(map(json.dumps, document)) if is_lines else json.dumps(document))
        for _, trial in everything(reader, path):
            canonical_json(trial.to_sparse()).decode("utf-8")
        holder[place[-1]] = right
    assert len(tried) > 20


@pytest.mark.parametrize("sample", [name for name in SAMPLES if name.endswith(".eval")])
@SLOW
@given(data=st.data())
def test_a_mutated_zip_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, sample: str, data: st.DataObject
) -> None:
    members = [
        (name, json.dumps(mutated(data, json.loads(content))).encode() if data.draw(st.booleans()) else content)
        for name, content in read_members(GOLD / sample)
        if data.draw(st.integers(0, 5))
    ]
    path = write_zip(tmp_path_factory.mktemp("mutated") / "x.eval", members, method=STORED)
    for _, trial in everything(importer("inspect"), path):
        canonical_json(trial.to_sparse()).decode("utf-8")


@pytest.mark.parametrize("sample", SAMPLES)
@SLOW
@given(data=st.data())
def test_changed_and_missing_bytes_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, sample: str, data: st.DataObject
) -> None:
    content = bytearray((GOLD / sample).read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(len(content) // 2, len(content))) :]
    path = tmp_path_factory.mktemp("bytes") / "x"
    path.write_bytes(bytes(content))
    with contextlib.suppress(ImportRefused):
        find_trials(path)
    list(everything(importer(find_trials(GOLD / sample).importer), path))
