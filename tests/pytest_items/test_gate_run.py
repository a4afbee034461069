import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_simulations
from pytest_regcase.config import load_project
from pytest_regcase.pytest_items.gate_run import GateRun, from_controller, to_worker
from pytest_regcase.records.attempt import AttemptRecord, Finding
from pytest_regcase.records.session import LiveRow, SessionSnapshot
from pytest_regcase.session.planning import opening
from tests.plugin.gate_project import PYPROJECT, write_case, write_simulation
from tests.rules.attempt_samples import an_attempt


def _snapshot(folder: Path) -> SessionSnapshot:
    return SessionSnapshot(
        session_id="s-1",
        folder=str(folder / ".regcase" / "sessions" / "s-1"),
        ledger_id="an id",
        agent_digests={"default": "sha256:" + "0" * 64},
        live={"case-1": (LiveRow(run=1, verdict="clean", session_id="s-0"),)},
    )


@pytest.fixture
def gate(tmp_path: Path) -> GateRun:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    write_simulation(tmp_path, "stall-v1")
    case = write_case(tmp_path, "case-1", ["stall-v1"])
    (case.parent / "tree").mkdir()
    project = load_project(tmp_path)
    simulations = load_simulations(project)
    entries = opening.plan_entries(project, opening.load_entries([case]), simulations, _snapshot(tmp_path))
    return GateRun(project, _snapshot(tmp_path), simulations, entries, confirms=True)


def test_a_worker_reads_what_the_controller_wrote(tmp_path: Path) -> None:
    text = to_worker(_snapshot(tmp_path), tmp_path, [tmp_path / "case.toml"])
    assert type(text) is str
    assert from_controller(text) == (_snapshot(tmp_path), tmp_path, [tmp_path / "case.toml"])


@pytest.mark.parametrize("suffix", ["", "@some-group"])
def test_a_node_id_is_enough_to_know_what_was_attempted(gate: GateRun, tmp_path: Path, suffix: str) -> None:
    found = gate.planned(f"cases/case-1/case.toml::stall-v1::check{suffix}", tmp_path)
    assert found is not None
    entry, plan = found
    assert str(plan.key) == "case-1::stall-v1::check"
    simulation = gate.simulation_of(plan)
    assert simulation is not None
    assert simulation.simulation.id == "stall-v1"
    assert gate.simulation_of(entry.plans[0]) is None


@pytest.mark.parametrize(
    "node_id",
    [
        "cases/case-1/case.toml::invalid",
        "cases/case-1/case.toml::other-v1::check",
        "cases/case-2/case.toml::control::check",
        "tests/test_x.py::TestX::test_y",
        "tests/test_x.py",
    ],
)
def test_other_items_are_not_ours(gate: GateRun, tmp_path: Path, node_id: str) -> None:
    assert gate.planned(node_id, tmp_path) is None


def test_folders_of_a_case_and_of_sessions_are_data(gate: GateRun, tmp_path: Path) -> None:
    (tmp_path / ".regcase").mkdir()
    data = [tmp_path / "cases" / "case-1" / "tree", tmp_path / ".regcase"]
    others = [tmp_path / "cases", tmp_path / "cases" / "case-1", tmp_path / "cases" / "case-1" / "case.toml"]
    assert [gate.is_data(each) for each in data + others] == [True, True, False, False, False]


@pytest.mark.parametrize(("fact", "is_kept"), [(3, True), ([3, 4], True), ((3, 4), False)])
def test_a_record_is_kept_where_its_report_says_the_very_same(gate: GateRun, fact: object, is_kept: bool) -> None:
    finding = Finding(expectation="max_retries", status="kept", says="tried 3 times", facts={"retries": fact})
    record = an_attempt("recovered", findings=(finding,))
    plain = json.loads(record.model_dump_json(by_alias=True))
    gate.keep(record, plain)
    assert gate.kept is None
    deciding = replace(gate, kept={})
    deciding.keep(record, plain)
    assert deciding.kept == ({record.attempt_id: record} if is_kept else {})
    assert (record == AttemptRecord.model_validate_json(json.dumps(plain))) is is_kept
