"""`--regcase-with-tests`."""

import pytest

from tests.plugin.gate_project import GateProject


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_ordinary_tests_run_beside_the_cases(project: GateProject, parallel: tuple[str, ...]) -> None:
    project.add_case("trial-37", [])
    project.pytester.makepyfile("def test_good(): pass\ndef test_bad(): assert False\n")
    result = project.run("--regcase-with-tests", *parallel)
    result.assert_outcomes(passed=2, failed=1)
    # The ordinary failure is pytest's to count; the gate decides over attempts alone.
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["PASS (*"])
