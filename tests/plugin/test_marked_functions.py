"""Test functions marked `regcase`, and their fixture."""

import pytest

from tests.plugin.gate_project import GateProject

MARKED = """\
import pytest

@pytest.mark.regcase("trial-37")
def test_with_the_fixture(regcase):
    assert False

@pytest.mark.regcase("trial-37")
class TestMarked:
    def test_without_it(self):
        assert False

def test_ordinary():
    pass
"""


def test_without_the_option_they_are_skipped_with_the_reason(project: GateProject) -> None:
    project.pytester.makepyfile(MARKED)
    result = project.run("-rs", regcase=False)
    result.assert_outcomes(skipped=2, passed=1)
    result.stdout.fnmatch_lines(["SKIPPED*written for a regression case; runs with --regcase"])


def test_with_the_option_they_are_kept_and_skipped_with_another_reason(project: GateProject) -> None:
    project.add_case("trial-37")
    project.pytester.makepyfile(MARKED)
    result = project.run("-rs")
    result.assert_outcomes(skipped=2, passed=3, deselected=1)
    result.stdout.fnmatch_lines(["SKIPPED*cases written as test functions are not run by this version"])


def test_the_fixture_without_the_mark_says_what_is_missing(project: GateProject) -> None:
    project.pytester.makepyfile("def test_mine(regcase): pass")
    result = project.run(regcase=False)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*needs the mark that says which case: @pytest.mark.regcase("CASE-ID")*'])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
