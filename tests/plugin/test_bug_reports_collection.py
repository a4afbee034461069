"""Public reports about collection, settings and neighbours (see bug_reports.py)."""

import re
from pathlib import Path

import pytest

from pytest_regcase import plugin
from tests.plugin.gate_project import GateProject


def test_pytest_15045_names_of_items_survive_last_failed(project: GateProject) -> None:
    """Letters, digits and hyphens: --lf skips a failing item with brackets or colons in its name, and exits 0."""
    project.add_case("trial-37")
    project.claim_fix("trial-37")
    (project.root / "cases" / "broken").mkdir()
    (project.root / "cases" / "broken" / "case.toml").write_text("nonsense")
    args = ("--regcase-profile=nightly", "--regcase-live=2")
    listed = project.run("--collect-only", "-q", *args).stdout.lines
    ids = [line for line in listed if "case.toml::" in line]
    assert len(ids) == 6
    for each in ids:
        assert re.fullmatch(r"cases/[a-z0-9-]+/case\.toml(::[a-z0-9-]+){1,2}", each)
    project.script({"trial-37::killed-v1": ["not-recovered"] * 6})
    project.run(*args)
    again = project.run("--lf", *args)
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    assert [call["name"] for call in project.calls()].count("trial-37::killed-v1") == 6


@pytest.mark.parametrize(
    "args",
    [
        ("-p", "no:rerunfailures"),
        ("-p", "no:xdist"),
        ("-p", "no:cacheprovider"),
        ("-p", "no:terminal"),
        ("-p", "no:junitxml"),
        ("-p", "no:logging", "-p", "no:capture"),
        ("-W", "error", "--strict-config", "--strict-markers"),
        ("-o", "strict=true", "-W", "error"),
        ("-p", "no:rerunfailures", "-p", "no:xdist", "-W", "error", "--strict-markers"),
    ],
    ids=" ".join,
)
def test_the_status_is_the_decision_whatever_is_switched_off(project: GateProject, args: tuple[str, ...]) -> None:
    project.add_case("trial-37", ["stall-v1"])
    assert project.run(*args).ret == pytest.ExitCode.OK
    project.script({"trial-37::stall-v1": ["recovered"] + ["not-recovered"] * 3})
    assert project.run(*args).ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("regcase", [False, True], ids=["plain", "--regcase"])
def test_without_the_plugin_a_plain_run_is_clean_and_the_option_unknown(
    project: GateProject, regcase: bool
) -> None:
    """No ini key of ours can break --strict-config, and an unknown option is never a green gate."""
    project.add_case("trial-37")
    project.pytester.makepyfile("def test_mine(): pass")
    result = project.run("-p", "no:regcase", "--strict-config", "--strict-markers", "-W", "error", regcase=regcase)
    assert result.ret == (pytest.ExitCode.USAGE_ERROR if regcase else pytest.ExitCode.OK)


SKIPS_ALL = """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.skip(reason="by the project"))
"""


def test_benchmark_145_items_that_another_plugin_skips_are_not_run_and_break_nothing(project: GateProject) -> None:
    """pytest asserts that a skipped item has a line."""
    project.add_case("trial-37")
    broken = project.add_case("trial-38")
    broken.write_text("nonsense")
    project.pytester.makepyfile(skips=SKIPS_ALL)
    project.pytester.syspathinsert()
    result = project.run("-p", "skips", "-rs")
    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(["*3 of 3 planned not run*", "FAIL (*", "SKIPPED*by the project"])


READS_OBJ = """
def pytest_collection_modifyitems(items):
    assert not any(hasattr(item.obj, "hypothesis") for item in items)
"""


def test_trio_132_a_plugin_that_reads_the_function_of_every_item_finds_none(project: GateProject) -> None:
    project.add_case("trial-37")
    project.pytester.makepyfile(reads=READS_OBJ)
    project.pytester.syspathinsert()
    assert project.run("-p", "reads").ret == pytest.ExitCode.OK


STAND_IN = """
def pytest_addoption(parser):
    parser.addoption("--flake-finder", dest="flake_finder_enable", action="store_true")
    parser.addoption("--forked", action="store_true")
"""


@pytest.mark.parametrize("option", ["--flake-finder", "--forked"])
def test_flakefinder_19_an_option_that_works_on_functions_alone_is_refused(
    project: GateProject, option: str
) -> None:
    project.add_case("trial-37")
    project.pytester.makepyfile(stand_in=STAND_IN)
    project.pytester.syspathinsert()
    result = project.run("-p", "stand_in", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option} cannot be combined with --regcase: *. Leave it out."])
    assert project.run("-p", "stand_in").ret == pytest.ExitCode.OK


def test_rerunfailures_288_fail_on_flaky_is_refused_where_it_does_nothing(project: GateProject) -> None:
    project.add_case("trial-37")
    result = project.run("--fail-on-flaky", "--dist", "load", "--tx", "popen")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--fail-on-flaky cannot be combined with --regcase under pytest-xdist*"])


READS_THE_MARK = """
def pytest_runtest_protocol(item, nextitem):
    for marker in item.iter_markers("flaky"):
        _repeat(*marker.args, **marker.kwargs)

def _repeat(max_runs=None, min_passes=None, rerun_filter=None): pass
"""


@pytest.mark.parametrize("name", ["flaky", "pytest-retry"])
def test_rerunfailures_217_another_owner_of_the_mark_flaky_is_refused_with_the_option_to_type(
    project: GateProject, name: str
) -> None:
    """Both read each other's keywords; without the repeating there is no mark of ours and no conflict."""
    project.add_case("trial-37")
    module = {"flaky": "flaky/flaky_pytest_plugin", "pytest-retry": "pytest_retry/retry_plugin"}[name]
    path = project.root / f"{module}.py"
    path.parent.mkdir()
    (path.parent / "__init__.py").touch()
    path.write_text(READS_THE_MARK)
    project.pytester.syspathinsert()
    neighbour = ("-p", module.replace("/", "."))
    result = project.run(*neighbour)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*The plugin {name} cannot be beside --regcase*Add -p no:{name}*"])
    assert project.run(*neighbour, "-p", "no:rerunfailures").ret == pytest.ExitCode.OK


def test_pytest_12383_what_is_not_ours_is_left_to_others_to_ignore(tmp_path: Path) -> None:
    """None and not False, which would end the asking."""
    assert plugin.pytest_ignore_collect(tmp_path) is None


def test_pytest_6904_a_value_that_is_an_existing_path_moves_no_root(project: GateProject) -> None:
    project.add_case("trial-37")
    (project.root / "elsewhere").mkdir()
    (project.root / "elsewhere" / "report.json").write_text("of an earlier run")
    assert project.run("--regcase-report", "elsewhere/report.json", "-v").ret == pytest.ExitCode.OK
    assert (project.root / "elsewhere" / "report.json").read_text().startswith("{")


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_timeout_72_a_foreign_timer_is_never_green(project: GateProject, method: str) -> None:
    """By signal the attempt is a row that proves nothing; by thread the process ends and leaves no end."""
    project.add_case("trial-37", [])
    project.script({"trial-37::control": ["stall", "stall"]})
    result = project.run(
        "-p", "timeout", "--timeout=0.3", f"--timeout-method={method}", "-p", "no:rerunfailures", apart=True
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    if method == "signal":
        result.stdout.fnmatch_lines(["*Timeout*", "UNPROVEN (*"])
        assert project.verdicts() == {"trial-37::control": ["inconclusive"]}
        return
    result.stdout.no_fnmatch_line("*= regcase =*")
    (folder,) = (project.root / ".regcase" / "sessions").iterdir()
    with project.ledger() as ledger:
        session = ledger.session(folder.name)
    assert session is not None
    assert session.finished_at is None
