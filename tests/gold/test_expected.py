"""The real and generated trials beside a developer's checkout: each says what it must be read as, or be refused.

`expected.toml` names every trial there; its values were worked out by hand from the raw files. A key that it
leaves out must be absent. Sources whose name tells the fault are copied to a neutral one first.
"""

import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.records.trial import Trial

HERE = Path(__file__).parent
with (HERE / "expected.toml").open("rb") as file:
    EXPECTED = tomllib.load(file)
TRIALS: list[dict[str, Any]] = EXPECTED.get("trial", [])
NOT_RECOGNISED: list[dict[str, Any]] = EXPECTED.get("not_recognised", [])
LISTED = ("task_id", "attempt", "termination", "outcome", "error_type")
FACTS = ("task_id", "attempt", "failing_step", "termination", "outcome", "format")


def source(shared_trials: Path, name: str, tmp_path: Path) -> Path:
    """Return the file or folder, under a name that says nothing where its own tells the fault."""
    path = shared_trials / name
    assert path.exists(), f"{name} is named in expected.toml and is not there"
    if not name.startswith("agents/"):
        return path
    neutral = tmp_path / "trial"
    if path.is_dir():
        shutil.copytree(path, neutral)
        return neutral
    neutral.mkdir()
    return Path(shutil.copy(path, neutral / path.name))


def facts(trial: Trial) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(trial, name) for name in FACTS}
    found["error_type"] = trial.error.type if trial.error is not None else None
    return {name: value for name, value in found.items() if value is not None}


def wanted(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in (*FACTS, "error_type") if name in row}


def title(row: Mapping[str, Any]) -> str:
    return f"{row['path']}{'@' + row['key'] if 'key' in row else ''}"


def only(*arguments: Any, **options: Any) -> Trial:
    """Return the trial as any reader of outcomes would see it: also where `regcase new` refuses it."""
    return read_one(*arguments, failed_only=False, **options)


@pytest.mark.parametrize("row", TRIALS, ids=title)
def test_each_trial_is_read_as_what_it_is(row: dict[str, Any], shared_trials: Path, tmp_path: Path) -> None:
    path = source(shared_trials, row["path"], tmp_path)
    key = row.get("key")
    if "refused" in row:
        with pytest.raises(ImportRefused) as refusal:
            read_one(path, key=key)
        assert refusal.value.slug == row["refused"]
    if wanted(row):
        try:
            trial = only(path, key=key)
        except ImportRefused:
            if "refused" not in row:
                raise
            found = find_trials(path)
            (ref,) = [each for each in found.refs if key is None or each.key == key]
            shown = {
                name: getattr(ref, name) for name in ("task_id", "attempt", "termination", "outcome", "error_type")
            }
            wanted_of_ref = {name: value for name, value in wanted(row).items() if name in shown}
            assert {name: value for name, value in shown.items() if value is not None} == wanted_of_ref
        else:
            assert facts(trial) == wanted(row)


@pytest.mark.parametrize("row", NOT_RECOGNISED, ids=title)
def test_what_is_no_trial_is_not_recognised(row: dict[str, Any], shared_trials: Path, tmp_path: Path) -> None:
    with pytest.raises(ImportRefused) as refusal:
        find_trials(source(shared_trials, row["path"], tmp_path))
    assert refusal.value.slug == "not-recognised"


def test_no_trial_is_left_out_silently(shared_trials: Path) -> None:
    named = {each["path"] for each in (*TRIALS, *NOT_RECOGNISED)}
    left_out = [name for name in _everything(shared_trials) if not _covered(name, named)]
    assert left_out == []


def _covered(name: str, named: set[str]) -> bool:
    return name in named or any(name.startswith(f"{each}/") for each in named)


def _everything(shared_trials: Path) -> Iterator[str]:
    """Yield each file of the shared folder, but what only the experimenter knows, and pages about the samples."""
    for path in sorted(shared_trials.rglob("*")):
        name = path.relative_to(shared_trials).as_posix()
        if not path.is_file() or "/ground_truth/" in name or path.name in ("README.md", "SOURCES.md"):
            continue
        if name.startswith("agents/") and "/agent_output/" not in name:
            continue
        yield name
