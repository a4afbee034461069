"""A mark that cannot be right is one failing item with one clear text; every other function and case runs."""

import re

import pytest

from tests.plugin.gate_project import GateProject

WRONG = """\
import unittest
import pytest

case = pytest.mark.regcase

@case("trial-73")
def test_unknown_case(regcase): pass

@case
def test_no_argument(regcase): pass

@case(37)
def test_a_number(regcase): pass

@case(case_id="trial-37")
def test_a_keyword(regcase): pass

@case("trial-37", "trial-38")
def test_two_ids(regcase): pass

@case("trial-37")
@case("trial-38")
def test_two_marks(regcase): pass

@case("trial-37")
def test_no_fixture(): pass

@case("broken")
def test_broken_case(regcase): pass

@case("trial-37")
@pytest.mark.parametrize("model", ["small"])
def test_parameters(regcase, model): pass

@case("trial-37")
class TestOld(unittest.TestCase):
    def test_method(self): pass

@case("trial-37")
class TestMine:
    def test_right(self, regcase): pass
    def test_bare(self): pass

@case("trial-37")
@case("trial-37")
def test_the_same_twice(regcase): pass
"""
SAYS = {
    "test_unknown_case": r"Couldn't find the case 'trial-73' that the mark names. .*Did you mean 'trial-3[78]'\?",
    "test_no_argument": r"Couldn't read the mark: it names no case. .*Write @pytest.mark.regcase\(.CASE-ID.\)",
    "test_a_number": "Couldn't read the mark: 37 is no case id.",
    "test_a_keyword": "Couldn't read the mark: it takes no case_id=.",
    "test_two_ids": r"Couldn't choose a case: .* with several \(trial-37, trial-38\)",
    "test_two_marks": r"Couldn't choose a case: .* with several \(trial-37, trial-38\)",
    "test_no_fixture": "Couldn't run the function for its case: it has no argument `regcase`",
    "test_broken_case": "cases/broken/case.toml:1: schema = 9 is newer than",
    "test_parameters": r"it has parameters of its own \(model\), and attempts are counted by the function's name",
    "test_bare": r"it has no argument `regcase`\. Write [^.]*\.mark\.[^.]* with the argument `regcase`\. [=_]",
    "test_method": "it has no argument `regcase`.* Methods of unittest.TestCase cannot have one.",
}
"""Test -> what its item shows, as a regular expression."""
CLASSES = {"test_method": "TestOld.", "test_bare": "TestMine."}


@pytest.mark.parametrize("confirms", [True, False], ids=["rerunfailures", "without"])
def test_each_is_one_failing_item_and_the_others_run(project: GateProject, confirms: bool) -> None:
    for name in ("trial-37", "trial-38", "broken"):
        project.add_case(name)
    broken = project.root / "cases" / "broken" / "case.toml"
    broken.write_text("schema = 9\n")
    project.pytester.makepyfile(test_agents=WRONG)
    result = project.run("-rfE", *([] if confirms else ["-pno:rerunfailures"]), "--regcase-report=report.json")
    parameters = 3 - 1
    # The broken case is an item of its own, beside the function that names it.
    result.assert_outcomes(passed=2 * 3 + 2 * 3, failed=1, errors=len(SAYS) + parameters)
    text = "\n".join(result.outlines)
    for name, says in SAYS.items():
        _, _, rest = text.partition(f"ERROR at setup of {CLASSES.get(name, '')}{name}")
        block = " ".join(rest.partition("___ ")[0].split())
        assert re.search(says, block), (name, block)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # Whoever decides later sees that something was planned and did not run.
    ledger = project.ledger()
    try:
        session = ledger.session(project.rows()[0].session_id)
    finally:
        ledger.close()
    assert session is not None
    never = {key.agent.rpartition("::")[2] for key in session.planned if key.case_id == key.agent}
    assert never == set(SAYS)
    assert session.finished_at is not None


def test_the_fixture_without_the_mark_says_what_is_missing(project: GateProject) -> None:
    project.pytester.makepyfile("def test_mine(regcase): pass")
    result = project.run(regcase=False)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*needs the mark that says which case: @pytest.mark.regcase("CASE-ID")*'])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_an_async_function_without_a_plugin_that_runs_it_says_so(project: GateProject) -> None:
    project.add_case("trial-37")
    project.pytester.makepyfile(
        "import pytest\n@pytest.mark.regcase('trial-37')\nasync def test_mine(regcase): pass\n"
    )
    result = project.run("-k", "mine")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*async def functions are not natively supported.*"])


ASYNC = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.regcase("trial-37")
async def test_mine(regcase):
    import asyncio
    await asyncio.sleep(0)
"""


def test_an_async_function_runs_through_the_plugin_that_is_there(project: GateProject) -> None:
    pytest.importorskip("anyio.pytest_plugin", reason="no plugin for async tests is installed")
    project.add_case("trial-37")
    project.pytester.makepyfile(ASYNC)
    result = project.run()
    result.assert_outcomes(passed=6)
