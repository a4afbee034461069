"""The real failed trials beside a developer's checkout, made into cases: nothing is lost, invented or leaked.

What each trial must be read as stands in `tests/gold/expected.toml`.
"""

import contextlib
import json
import shutil
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_builder import TRANSCRIPT
from pytest_regcase.case_files import load_case
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.collection import collect
from pytest_regcase.importers.source import Choice
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.session.adopt import adopt
from pytest_regcase.session.new_cases.making import Settings
from tests.contract import test_importer_contract as contract
from tests.contract.importer_contract import values
from tests.importers.said import source_text, texts, times_in

GOLD = Path(__file__).parent.parent / "gold"
with (GOLD / "expected.toml").open("rb") as file:
    ROWS: list[dict[str, Any]] = [each for each in tomllib.load(file)["trial"] if "format" in each]
KINDS = {
    tuple(row.get(name) for name in ("format", "termination", "error_type", "outcome")): row
    for row in ROWS
    if "refused" not in row
}
"""One trial of each kind that becomes a case."""
OUR_WORDS = frozenset({"unknown", "log", "case"})
OURS = contract.TestEveryRegisteredImporter()
ANYONE = Settings(owner="someone", new=True)


def project(root: Path) -> Project:
    return Project(root=root, config=RegcaseConfig())


def title(row: dict[str, Any]) -> str:
    return f"{row['path']}@{row.get('key', '')}"


@pytest.mark.parametrize("path", sorted({row["path"] for row in ROWS}))
def test_no_value_of_a_real_trial_is_invented(shared_trials: Path, path: str) -> None:
    source = shared_trials / path
    for ref, trial in readable(source):
        # A trajectory may go on in a file beside it.
        said = said_by(source, *(source.parent / name for name in trial.source_digests))
        for place, value in values(trial):
            assert OURS.is_said(place, value, said), (ref.key, place, value)
        times = {trial.started_at, trial.ended_at, *(line.at for line in trial.steps)} - {None}
        assert times <= times_in(said, bare_times_are_utc=trial.format in contract.UTC_WITHOUT_SAYING_SO), ref.key


@lru_cache(maxsize=8)
def said_by(*files: Path) -> str:
    return "\n".join(source_text(each) for each in files if each.exists())


def readable(path: Path) -> Iterator[tuple[TrialRef, Trial]]:
    with collect(path) as found:
        for entry in found.entries:
            with contextlib.suppress(ImportRefused):
                yield entry.ref, found.read(entry)


@pytest.mark.parametrize("row", KINDS.values(), ids=title)
def test_a_case_says_what_its_trial_says(shared_trials: Path, tmp_path: Path, row: dict[str, Any]) -> None:
    choice = Choice(key=row.get("key"))
    adopted = adopt(project(tmp_path), shared_trials / row["path"], ANYONE, choice=choice)
    case, trial = load_case(adopted.folder).case, adopted.trial
    seen = case.observation
    facts = (seen.failing_step, seen.termination, seen.outcome, seen.error.type if seen.error else None)
    assert facts == (row.get("failing_step"), row.get("termination"), row["outcome"], row.get("error_type"))
    assert case == adopted.case.model_copy(update={"seal": case.seal})
    assert case.seal is not None
    assert case.cause_status == "unknown"
    assert not case.evidence
    assert all(each.status == "hypothesized" for each in case.hypotheses)
    assert (adopted.folder / TRANSCRIPT).is_file() == bool(trial.steps)
    times = (trial.started_at, trial.ended_at, *(line.at for line in trial.steps))
    assert seen.observed_at is None or seen.observed_at in times
    said = "\n".join(texts(trial.to_sparse()))
    for value in leaves(seen.to_sparse()):
        assert value in said or value in OUR_WORDS, value


def leaves(observation: dict[str, Any]) -> Iterator[str]:
    """Yield what an observation holds besides our own sentences, digests and counts."""
    for name, item in observation.items():
        if name not in ("symptom", "source_event", "observed_at", "recorded", "redactions", "source_digests"):
            yield from inner(item)


def inner(item: Any) -> Iterator[str]:
    if isinstance(item, dict):
        for each in item.values():
            yield from inner(each)
    elif isinstance(item, list):
        for each in item:
            yield from inner(each)
    elif isinstance(item, str):
        yield item


def test_no_case_of_a_real_run_holds_a_key_or_a_home_path(shared_trials: Path, tmp_path: Path) -> None:
    neutral = tmp_path / "trial"
    shutil.copytree(shared_trials / "agents" / "mini-swe-agent__401" / "agent_output", neutral)
    trajectory = neutral / "trajectory.traj.json"
    document = json.loads(trajectory.read_text())
    key = "sk-" + "proj-" + "Ab3" * 12
    document["messages"][3]["content"] += f"\nexport OPENAI_API_KEY={key}\ncd /home/alice/calc"
    document["messages"][-1]["extra"]["exception_str"] += f" {key} /home/alice/x"
    trajectory.write_text(json.dumps(document))
    adopted = adopt(project(tmp_path), neutral, ANYONE)
    written = "".join(path.read_text() for path in adopted.written)
    assert key not in written
    assert "alice" not in written
    assert adopted.redactions == {"api_key": 2, "home_path": 2, "masked_key": 1}
    assert adopted.case.observation.redactions == adopted.redactions
