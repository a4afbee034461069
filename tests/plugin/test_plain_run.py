"""Installing the plugin costs a plain pytest run nothing: no import, no collected case, no error."""

import json

import pytest

from tests.plugin.gate_project import GateProject

HEAVY = ("pydantic", "scipy", "numpy", "sqlalchemy", "h11", "click", "rich", "tomlkit", "hypothesis")

SAYS_WHAT_IS_LOADED = """\
import json, sys
def test_imports():
    with open("loaded.json", "w") as file:
        json.dump(sorted(sys.modules), file)
"""


def test_a_plain_run_loads_the_options_and_nothing_else(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SAYS_WHAT_IS_LOADED)
    # Other installed plugins import what they like; only ours is on.
    pytester.syspathinsert()
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        result = pytester.runpytest_subprocess("-p", "pytest_regcase.plugin")
    result.assert_outcomes(passed=1)
    loaded = json.loads((pytester.path / "loaded.json").read_text())
    assert [each for each in loaded if each.split(".")[0] == "pytest_regcase"] == [
        "pytest_regcase",
        "pytest_regcase.plugin",
    ]
    assert [each for each in loaded if each in HEAVY] == []


def test_without_the_option_no_case_is_collected(project: GateProject) -> None:
    case = project.add_case("trial-37")
    (case.parent / "recorded" / "work_tree").mkdir(parents=True)
    (case.parent / "recorded" / "work_tree" / "test_recorded.py").write_text("def test_recorded(): assert False\n")
    project.pytester.makepyfile("def test_mine(): pass")
    result = project.run("-v", regcase=False)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*case.toml*")
    result.stdout.no_fnmatch_line("*test_recorded*")
    assert project.calls() == []
    assert not (project.root / ".regcase").exists()


def test_the_options_of_a_gate_run_do_nothing_without_it(project: GateProject) -> None:
    project.add_case("trial-37")
    project.pytester.makepyfile("def test_mine(): pass")
    result = project.run("--regcase-live=3", "--regcase-profile=release", "--regcase-report=x.json", regcase=False)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK


def test_strict_settings_know_the_marker_and_no_ini_key_of_ours(project: GateProject) -> None:
    project.pytester.makepyfile("import pytest\n@pytest.mark.regcase('trial-37')\ndef test_mine(): pass\n")
    result = project.run("--strict-markers", "--strict-config", "-W", "error", "-rs", regcase=False)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*written for a regression case; runs with --regcase"])
    project.run("--markers", regcase=False).stdout.fnmatch_lines(["@pytest.mark.regcase(case_id): *"])
