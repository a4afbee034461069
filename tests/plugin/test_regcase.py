"""`--regcase`: what is collected under which names, what is counted, what the exit status says."""

import json

import pytest

from tests.plugin.gate_project import GateProject

THREE = {
    "trial-37::control": ["finished"],
    "trial-37::stall-v1": ["recovered"],
    "trial-37::killed-v1": ["recovered"],
}


def test_every_scenario_is_one_item_and_one_row(project: GateProject) -> None:
    project.add_case("trial-37")
    project.pytester.makepyfile("def test_ordinary(): assert False")
    result = project.run("-v")
    result.assert_outcomes(passed=3, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "regcase: profile pull-request; 1 case, 3 checks",
            "regcase: ledger: new, empty (.regcase/ledger.sqlite3)",
            "cases/trial-37/case.toml::control::check PASSED*",
            "cases/trial-37/case.toml::stall-v1::check PASSED*",
            "cases/trial-37/case.toml::killed-v1::check PASSED*",
            "*= regcase =*",
        ]
    )
    assert result.ret == pytest.ExitCode.OK
    assert project.verdicts() == THREE
    again = project.run()
    again.stdout.fnmatch_lines(["regcase: ledger: 3 attempts (.regcase/ledger.sqlite3)"])


def test_a_session_leaves_its_folder_with_the_list_of_what_it_collected(project: GateProject) -> None:
    project.add_case("trial-37")
    project.run("-k", "control")
    (session,) = (project.root / ".regcase" / "sessions").iterdir()
    assert json.loads((session / "collected" / "main.json").read_text()) == [
        "cases/trial-37/case.toml::control::check",
        "cases/trial-37/case.toml::stall-v1::check",
        "cases/trial-37/case.toml::killed-v1::check",
    ]


@pytest.mark.parametrize(
    "args",
    [
        ("-n", "2"),
        ("-p", "no:cacheprovider"),
        ("-W", "error"),
        ("-p", "no:rerunfailures", "-W", "error"),
        ("-p", "no:xdist"),
        ("-o", "testpaths=tests"),
        ("-o", "testpaths=tests", "-n", "2", "--dist", "loadscope"),
        ("cases",),
        ("cases/trial-37", "cases/trial-38/case.toml"),
        ("-o", "addopts=--reruns 2 --only-rerun nothing"),
        ("-o", "addopts=--reruns 2", "-n", "2"),
    ],
    ids=" ".join,
)
def test_the_table_and_the_decision_do_not_depend_on_how_pytest_is_run(
    project: GateProject, args: tuple[str, ...]
) -> None:
    project.add_case("trial-37")
    project.add_case("trial-38", ["stall-v1"])
    (project.root / "tests").mkdir()
    (project.root / "tests" / "test_ordinary.py").write_text("def test_ordinary(): assert False\n")
    project.script({"trial-38::stall-v1": ["not-recovered"] * 3})
    result = project.run("--regcase-report=decision.json", *args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*= regcase =*"])
    confirmed = "rerunfailures" not in " ".join(args)
    assert project.verdicts() == {
        **THREE,
        "trial-38::control": ["finished"],
        "trial-38::stall-v1": ["not-recovered"] * (3 if confirmed else 1),
    }
    decision = json.loads((project.root / "decision.json").read_text())["gate"]
    assert decision["decision"] == "fail"
    assert [(each["code"], each["case_id"]) for each in decision["reasons"]] == [("check-broken", "trial-38")]


def test_a_failed_item_shows_what_broke_and_no_traceback(project: GateProject) -> None:
    project.add_case("trial-37", ["stall-v1"])
    project.script({"trial-37::stall-v1": ["not-recovered"] * 3})
    result = project.run()
    result.stdout.fnmatch_lines(
        [
            "*trial-37::stall-v1::check*",
            "trial-37 stall-v1, try 3: not-recovered; the check is broken",
            "  max_retries: 5 requests after the first, 3 allowed",
            "  attempt: a/folder",
        ]
    )
    result.stdout.no_fnmatch_line("*attempt_item.py*")


def test_nothing_to_run_is_never_green(project: GateProject) -> None:
    (project.root / "cases").mkdir()
    result = project.run()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*= regcase =*", "UNPROVEN*"])


@pytest.mark.parametrize("args", [("--collect-only", "-q"), ("--setup-plan",), ("--setup-only",)], ids=" ".join)
def test_a_run_that_makes_no_attempt_decides_nothing_and_writes_no_row(
    project: GateProject, args: tuple[str, ...]
) -> None:
    project.add_case("trial-37")
    project.script({"trial-37::stall-v1": ["not-recovered"] * 3})
    result = project.run(*args)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*= regcase =*")
    assert project.calls() == []
    assert project.rows() == []
    assert not (project.root / ".regcase" / "sessions").exists() or "--collect-only" not in args


@pytest.mark.parametrize("option", ["--fixtures", "--markers", "--help", "--version"])
def test_a_run_that_only_informs_does_not_touch_the_ledger(project: GateProject, option: str) -> None:
    project.add_case("trial-37")
    result = project.run(option)
    assert result.ret == pytest.ExitCode.OK
    assert not (project.root / ".regcase").exists()


def test_collect_only_shows_ids_that_can_be_pasted(project: GateProject) -> None:
    project.add_case("trial-37")
    listed = project.run("--collect-only", "-q").stdout.lines
    node_id = "cases/trial-37/case.toml::stall-v1::check"
    assert node_id in listed
    result = project.run(node_id)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*2 of 3 planned not run*", "UNPROVEN*"])


def test_paths_that_are_given_choose_the_planned_cases(project: GateProject) -> None:
    project.add_case("trial-37")
    project.add_case("trial-38")
    result = project.run("cases/trial-38")
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    assert {row.case_id for row in project.rows()} == {"trial-38"}


def test_a_work_tree_of_a_case_is_data_and_no_tests(project: GateProject) -> None:
    case = project.add_case("trial-37")
    (case.parent / "tree").mkdir()
    (case.parent / "tree" / "test_inside.py").write_text("raise RuntimeError\n")
    result = project.run("--regcase-with-tests")
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK


def test_a_case_toml_that_is_no_case_of_the_project_is_left_alone(project: GateProject) -> None:
    project.add_case("trial-37")
    (project.root / "data").mkdir()
    (project.root / "data" / "case.toml").write_text("nonsense")
    result = project.run()
    result.assert_outcomes(passed=3)


def test_it_finds_the_project_above_the_current_folder(project: GateProject) -> None:
    project.add_case("trial-37")
    (project.root / "src").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root / "src")
        result = project.run()
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    assert not (project.root / "src" / ".regcase").exists()
