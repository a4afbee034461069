"""The projects of the plugin's benchmarks: cases beside as many tests, marked functions beside plain ones."""

from collections.abc import Iterable
from pathlib import Path

from pytest_regcase.case_files import seal_case
from tests.plugin.gate_project import CASE, PYPROJECT, write_case, write_simulation

GOOD_ATTEMPTS = '''\
"""A function that returns at once is taken for a good agent: what is measured is what an attempt costs."""

from pytest_regcase.session.attempts.function_attempt import FunctionAttempt


def good(attempt, ended):
    attempt.close()
    begun = attempt._begun
    return begun.record(verdict="finished" if begun.plan.kind == "control" else "recovered")


FunctionAttempt.finish = good
'''

RECORDS = '''\
"""The least that an attempt is: a record, its JSON on the report, its row on the disk before that is printed."""

import json
from datetime import UTC, datetime

import pytest

from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord

LEDGER = Ledger.open("sqlite:///rows.sqlite3")
SESSION = datetime.now(UTC).isoformat()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if report.when != "call":
        return
    function, scenario = report.nodeid.rstrip("]").split("[")
    told = {
        "attempt_id": f"{SESSION}.{report.nodeid}",
        "session_id": SESSION,
        "case_id": "case",
        "agent": function,
        "scenario": scenario,
        "digests": {"case": "sha256:" + "a" * 64, "agent": "sha256:" + "b" * 64},
        "started_at": datetime.now(UTC),
        "verdict": "recovered",
    }
    record = AttemptRecord.model_validate(told)
    report.regcase = json.loads(record.model_dump_json(by_alias=True))
    LEDGER.append(record)
'''

MARKED = """
@pytest.mark.regcase("case-{number:03d}")
def test_{number:03d}(regcase):
    pass
"""

FIXTURE = """
@pytest.fixture
def regcase(request):
    yield request.param
"""

PLAIN = """
@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize("regcase", {params}, indirect=True)
def test_{number:03d}(regcase):
    pass
"""


def folders_of_cases(root: Path, count: int) -> Path:
    """Make a project of that many sealed cases, each with its control alone."""
    root.mkdir()
    (root / "pyproject.toml").write_text(PYPROJECT)
    # The seal covers the observation, which is the same in all of them.
    seal = ""
    for number in range(count):
        path = root / "cases" / f"case-{number:05d}" / "case.toml"
        path.parent.mkdir(parents=True)
        text = CASE.format(id=path.parent.name, hypotheses="", failing_step=6)
        path.write_text(text + seal)
        if not seal:
            seal_case(path)
            seal = path.read_text().removeprefix(text)
    return root


def folders_of_tests(root: Path, count: int) -> Path:
    """Make a project of that many test files, each in a folder of its own."""
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    for number in range(count):
        path = root / "tests" / f"part-{number:05d}" / f"test_{number:05d}.py"
        path.parent.mkdir(parents=True)
        path.write_text("def test_one():\n    pass\n")
    return root


def marked_functions(root: Path, cases: int, scenarios: Iterable[str]) -> Path:
    """Make a project of that many marked functions, each with a case of its own that has those scenarios."""
    root.mkdir()
    (root / "pyproject.toml").write_text("[tool.regcase]\n")
    (root / "conftest.py").write_text(GOOD_ATTEMPTS)
    names = list(scenarios)
    for name in names:
        write_simulation(root, name)
    for number in range(cases):
        write_case(root, f"case-{number:03d}", names)
    functions = (MARKED.format(number=number) for number in range(cases))
    (root / "test_functions.py").write_text("".join(["import pytest\n", *functions]))
    return root


def plain_functions(root: Path, functions: int, params: Iterable[str], *, records: bool = False) -> Path:
    """Make a project of that many test functions with those parameters, which rerunfailures would repeat.

    With `records` each leaves a record in a ledger, and nothing else of ours is done.
    """
    root.mkdir()
    if records:
        (root / "conftest.py").write_text(RECORDS)
    (root / "pyproject.toml").write_text("")
    made = (PLAIN.format(number=number, params=list(params)) for number in range(functions))
    (root / "test_functions.py").write_text("".join(["import pytest\n", FIXTURE, *made]))
    return root
