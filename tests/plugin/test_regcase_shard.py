"""`--regcase-shard=i/n`: a part of the cases, and no case twice or never."""

import json

import pytest

from pytest_regcase.ledger.sessions import session_heads, whole
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.session import SessionRow
from tests.plugin.gate_project import GateProject


def sessions(ledger: Ledger) -> list[SessionRow]:
    return list(whole(ledger, session_heads(ledger)))


def _ran(project: GateProject) -> list[str]:
    return sorted({each["name"].split("::")[0] for each in project.calls()})


def _run(project: GateProject, *args: str) -> list[str]:
    (project.root / "calls.jsonl").unlink(missing_ok=True)
    assert project.run(*args).ret == pytest.ExitCode.OK
    return _ran(project)


def test_every_case_is_in_one_part_with_workers_too(project: GateProject) -> None:
    for number in range(5):
        project.add_case(f"trial-{number}", [])
    first = _run(project, "--regcase-shard=1/2")
    second = _run(project, "--regcase-shard=2/2", "-n2")
    assert (first, second) == (["trial-0", "trial-2", "trial-4"], ["trial-1", "trial-3"])
    with project.ledger() as ledger:
        planned = [[key.case_id for key in row.planned] for row in sessions(ledger)]
    assert planned == [second, first]


def test_the_parts_do_not_depend_on_the_ledger_or_the_way_the_cases_are_named(project: GateProject) -> None:
    for number in range(3):
        project.add_case(f"trial-{number}", [])
    by_default = _run(project, "--regcase-shard=2/2")
    assert _run(project, "--regcase-shard=2/2", "cases/trial-2", "cases/trial-0", "cases/trial-1") == by_default


def test_an_empty_part_is_pytests_own_exit_status_and_not_green(project: GateProject) -> None:
    project.add_case("trial-37", [])
    result = project.run("--regcase-shard=2/3", "--regcase-report=a.json")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["regcase: profile pull-request, shard 2/3; 0 cases, 0 checks"])
    assert json.loads((project.root / "a.json").read_text())["gate"]["decision"] == "unproven"


def test_two_cases_of_one_id_are_invalid_in_whatever_part_they_are(project: GateProject) -> None:
    copy = project.root / "cases" / "zz-copy" / "case.toml"
    copy.parent.mkdir(parents=True)
    copy.write_text(project.add_case("trial-1", []).read_text())
    for shard in ("1/2", "2/2"):
        result = project.run(f"--regcase-shard={shard}", "-n2")
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["*::invalid*"])
    assert project.calls() == []


def test_tests_in_a_folder_of_another_parts_case_stay_data(project: GateProject) -> None:
    project.add_case("trial-1", [])
    tree = project.add_case("trial-2", []).parent / "tree"
    tree.mkdir()
    (tree / "test_theirs.py").write_text("def test_theirs(): assert False")
    assert _run(project, "--regcase-shard=1/2", "--regcase-with-tests") == ["trial-1"]


@pytest.mark.parametrize("text", ["3/2", "0/2", "1", "a/b"])
def test_what_is_no_part_is_a_usage_error(project: GateProject, text: str) -> None:
    project.add_case("trial-37", [])
    result = project.run(f"--regcase-shard={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--regcase-shard: '{text}' is no i/n with 1 <= i <= n. *"])
