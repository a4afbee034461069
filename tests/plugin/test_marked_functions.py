"""Test functions marked `regcase`, and their fixture. What is wrong with a mark: test_wrong_marks.py."""

import json
import re
from typing import Any

import pytest

from pytest_regcase.cli import main
from pytest_regcase.config import load_project
from pytest_regcase.errors import UnknownName
from pytest_regcase.ledger.sessions import session_heads, whole
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.session.attempts.function_attempt import FunctionAttempt, FunctionEnd
from pytest_regcase.session.case_life.close import close_case
from tests.plugin.gate_project import GateProject

MARKED = """\
import pytest

@pytest.mark.regcase("trial-37")
def test_mine(regcase):
    pass

def test_ordinary():
    pass
"""
AGENT = "test_agent.py::test_mine"
THREE = {
    "test_mine::control": ["finished"],
    "test_mine::stall-v1": ["recovered"],
    "test_mine::killed-v1": ["recovered"],
}
QUARANTINE = """
[quarantine]
owner = "somebody"
reason = "noisy"
kind = "flaky"
since = 2026-01-01
expires = 2999-01-01
"""


@pytest.fixture
def marked(project: GateProject) -> GateProject:
    """A project with a case that an agent and a function run."""
    project.add_case("trial-37")
    project.pytester.makepyfile(test_agent=MARKED)
    return project


def by_function(project: GateProject) -> dict[str, list[str]]:
    """Return the verdicts of the functions' rows by ``function::scenario``, in the order of run and try."""
    found: dict[str, list[str]] = {}
    for row in sorted(project.rows(), key=lambda each: (each.run, each.try_number)):
        if "::" in row.agent:
            found.setdefault(f"{row.agent.rpartition('::')[2]}::{row.scenario}", []).append(row.verdict)
    return found


def decision(project: GateProject) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.root / "report.json").read_text())["gate"]
    return found


def test_without_the_option_they_are_skipped_with_the_reason(project: GateProject) -> None:
    project.pytester.makepyfile(MARKED)
    result = project.run("-rs", regcase=False)
    result.assert_outcomes(skipped=1, passed=1)
    result.stdout.fnmatch_lines(["SKIPPED*written for a regression case; runs with --regcase"])


def test_a_function_runs_its_case_beside_the_agent_of_the_case(marked: GateProject) -> None:
    result = marked.run("-v", "--regcase-report=report.json")
    result.assert_outcomes(passed=6, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "test_agent.py::test_mine[[]control[]] PASSED*",
            "test_agent.py::test_mine[[]stall-v1[]] PASSED*",
            "test_agent.py::test_mine[[]killed-v1[]] PASSED*",
        ]
    )
    assert result.ret == pytest.ExitCode.OK
    assert by_function(marked) == THREE
    assert {row.agent for row in marked.rows()} == {"default", AGENT}
    assert [(each["case_id"], each["agent"]) for each in decision(marked)["cases"]] == [
        ("trial-37", None),
        ("trial-37", AGENT),
    ]


def test_the_confirm_rule_holds_for_a_function_too(marked: GateProject) -> None:
    bad, good = "not-recovered", "recovered"
    marked.script({"test_mine::stall-v1": [bad, good, good], "test_mine::killed-v1": [bad, good, bad]})
    result = marked.run("--regcase-report=report.json", "--reruns=5")
    result.assert_outcomes(passed=5, failed=1, deselected=1)
    assert by_function(marked) == {
        "test_mine::control": ["finished"],
        "test_mine::stall-v1": [bad, good, good],
        "test_mine::killed-v1": [bad, good, bad],
    }
    own = decision(marked)["cases"][1]
    assert {each["name"]: each["result"] for each in own["scenarios"]} == {
        "control": "passed",
        "stall-v1": "flaky",
        "killed-v1": "broken",
    }
    (red,) = [each for each in decision(marked)["reasons"] if each["red"]]
    assert red["text"].startswith(f"{AGENT}: killed-v1: ")
    result.stdout.fnmatch_lines(
        ["*trial-37 killed-v1, try 3: not-recovered; the check is broken", "*max_retries: 5 requests*"]
    )


def test_only_what_a_function_runs_counts_where_the_case_has_no_other_agent(marked: GateProject) -> None:
    (marked.root / "pyproject.toml").write_text("[tool.regcase]\n")
    result = marked.run("--regcase-report=report.json")
    result.assert_outcomes(passed=3, deselected=1)
    assert result.ret == pytest.ExitCode.OK
    assert [each["agent"] for each in decision(marked)["cases"]] == [AGENT]


def test_a_path_to_tests_runs_their_cases_and_no_other(marked: GateProject) -> None:
    marked.add_case("trial-38")
    result = marked.run("test_agent.py", "--regcase-report=report.json")
    result.assert_outcomes(passed=3, deselected=1)
    assert result.ret == pytest.ExitCode.OK
    assert [(each["case_id"], each["agent"]) for each in decision(marked)["cases"]] == [("trial-37", AGENT)]


@pytest.mark.parametrize("option", ["-knot killed-v1", "-mnot regcase", f"--deselect={AGENT}[control]"])
def test_what_is_left_out_of_a_function_is_not_run_and_unproven(marked: GateProject, option: str) -> None:
    result = marked.run(option, "--regcase-report=report.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert decision(marked)["decision"] == "unproven"
    assert any(each["code"] == "not-run" and AGENT in each["text"] for each in decision(marked)["reasons"])


def test_a_stopped_session_leaves_the_function_unproven(marked: GateProject) -> None:
    marked.script({"trial-37::control": ["did-not-finish"] * 3, "test_mine::control": ["did-not-finish"] * 3})
    result = marked.run("-x", "--regcase-report=report.json")
    assert result.ret != pytest.ExitCode.OK
    assert any(AGENT in each["text"] for each in decision(marked)["reasons"] if each["code"] == "not-run")


def test_a_module_that_cannot_be_collected_leaves_the_session_unproven(marked: GateProject) -> None:
    marked.pytester.makepyfile(test_broken="import nothing_of_that_name")
    result = marked.run("--continue-on-collection-errors", "--regcase-report=report.json")
    assert result.ret != pytest.ExitCode.OK
    assert decision(marked)["decision"] == "unproven"
    ledger = marked.ledger()
    try:
        (row,) = (ledger.session(each.session_id) for each in marked.rows()[:1])
    finally:
        ledger.close()
    assert row is not None
    assert row.finished_at is None


def test_live_runs_are_planned_and_counted_for_the_function_itself(marked: GateProject) -> None:
    marked.claim_fix("trial-37")
    first = marked.run("--regcase-profile=nightly", "--regcase-live=2", "test_agent.py", "-v")
    first.stdout.fnmatch_lines(["*test_mine[[]live-run-001[]] PASSED*", "*test_mine[[]live-run-002[]] PASSED*"])
    marked.run("--regcase-profile=nightly", "--regcase-live=3", "test_agent.py", "--regcase-report=report.json")
    runs = [row.run for row in marked.rows() if row.scenario == "live"]
    assert runs == [1, 2, 3, 4, 5]
    (case,) = decision(marked)["cases"]
    assert (case["claim"]["clean"], case["claim"]["need"]) == (5, 29)


def test_a_case_is_closed_on_the_live_runs_of_its_function(project: GateProject) -> None:
    path = project.add_case("trial-37", more='[handover.rerun_rule]\nmax_failure_rate = "0.50"\nrisk = "0.30"\n')
    project.pytester.makepyfile(test_agent=MARKED)
    project.claim_fix("trial-37")
    result = project.run("--regcase-profile=nightly", "--regcase-live=2", "test_agent.py")
    result.stdout.fnmatch_lines([f"*regcase close trial-37 --function {AGENT}"])
    config = load_project(project.root)
    with pytest.raises(UnknownName, match=r"Couldn't find the function 'test_nothing.py::test_mine'"):
        close_case(config, path, function="test_nothing.py::test_mine", by="omar")
    assert close_case(config, path, by="omar").closed is None
    closing = close_case(config, path, function=AGENT, by="omar")
    assert closing.closed is not None
    assert closing.closed.numbers["clean"] == 2
    revisions = {row.digests.agent for row in project.rows()}
    assert revisions == {closing.closed.revision}


def test_the_gate_afterwards_decides_the_same_and_not_on_a_function_that_was_changed(
    marked: GateProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    marked.run("--regcase-report=report.json")
    monkeypatch.chdir(marked.root)
    capsys.readouterr()
    assert main(["gate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == decision(marked)
    marked.pytester.makepyfile(test_agent=MARKED + "\n# changed\n")
    assert main(["gate", "--json"]) == 3
    own = json.loads(capsys.readouterr().out)["cases"][1]
    assert {each["result"] for each in own["scenarios"]} == {"not-run"}


def test_a_recurrence_stops_later_runs_of_the_function_and_no_others(marked: GateProject) -> None:
    marked.claim_fix("trial-37")
    marked.script({"test_mine::live": ["clean", "recurred"]})
    result = marked.run("--regcase-profile=nightly", "--regcase-live=4")
    result.assert_outcomes(passed=11, failed=1, skipped=2, deselected=1)
    assert by_function(marked)["test_mine::live"] == ["clean", "recurred"]


def test_another_file_of_the_function_starts_another_count(marked: GateProject) -> None:
    marked.claim_fix("trial-37")
    words = ("--regcase-profile=nightly", "--regcase-live=1", "test_agent.py", "--regcase-report=report.json")
    marked.run(*words)
    marked.pytester.makepyfile(test_agent=MARKED + "\n# changed\n")
    marked.run(*words)
    (case,) = decision(marked)["cases"]
    assert case["claim"]["clean"] == 0  # the scripted supplier repeats its answers, so this one is not fresh
    assert any(
        "had another revision" in each["text"] or "another one when" in each["text"]
        for each in decision(marked)["reasons"]
    )


def test_a_quarantined_case_is_skipped_and_kept_as_failed(project: GateProject) -> None:
    project.add_case("trial-37", more=QUARANTINE)
    project.pytester.makepyfile(test_agent=MARKED)
    project.script({"test_mine::stall-v1": ["not-recovered"]})
    result = project.run("-rs")
    result.stdout.fnmatch_lines(["SKIPPED*stall-v1: not-recovered, quarantined until*noisy"])
    assert by_function(project)["test_mine::stall-v1"] == ["not-recovered"]


def test_an_interruption_of_the_function_is_one_of_the_session(marked: GateProject) -> None:
    marked.pytester.makepyfile(test_agent=MARKED.replace("    pass\n\ndef", "    raise KeyboardInterrupt\n\ndef"))
    result = marked.run("test_agent.py", "--regcase-report=report.json", apart=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert decision(marked)["decision"] == "unproven"
    assert by_function(marked) == {}


def test_a_function_that_a_timer_interrupts_proves_nothing(marked: GateProject) -> None:
    body = "    pytest.fail('Timeout (>1.0s) from pytest-timeout.')\n\ndef"
    marked.pytester.makepyfile(test_agent=MARKED.replace("    pass\n\ndef", body))
    result = marked.run("test_agent.py")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # No further try: it has no timer of its own, and could turn the hang green.
    assert by_function(marked)["test_mine::control"] == ["inconclusive"]
    assert {row.reason for row in marked.rows()} == {"machinery-broke"}


def test_a_function_that_asks_for_no_supplier_proves_nothing_and_shows_what_it_raised(marked: GateProject) -> None:
    marked.pytester.makepyfile(test_agent=MARKED.replace("    pass\n\ndef", "    raise OSError('no disk')\n\ndef"))
    result = marked.run("test_agent.py::test_mine[stall-v1]")
    (first, second) = marked.rows()
    assert (first.verdict, first.reason, first.folder) == ("inconclusive", "not-delivered", None)
    assert second.try_number == 1
    result.stdout.fnmatch_lines(
        [
            "*trial-37 stall-v1, try 2: inconclusive (not-delivered); the check did not happen",
            "*asked for no supplier*it raised OSError: no disk",
            "*what the function raised*",
            "*OSError: no disk",
        ]
    )


@pytest.mark.parametrize(
    "body",
    [
        "assert 1 == 2",
        "pytest.fail('mine')",
        "with pytest.raises(OSError): pass",
        "raise ExceptionGroup('tasks', [OSError(), ExceptionGroup('more', [AssertionError('deep')])])",
        "import warnings; warnings.simplefilter('error'); warnings.warn('old')",
    ],
)
def test_what_the_test_itself_says_is_told_from_what_the_agent_raised(
    marked: GateProject, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    seen: list[str] = []
    finish = FunctionAttempt.finish

    def notes(attempt: FunctionAttempt, ended: FunctionEnd) -> AttemptRecord:
        seen.append(ended.how)
        return finish(attempt, ended)

    monkeypatch.setattr(FunctionAttempt, "finish", notes)
    marked.pytester.makepyfile(test_agent=MARKED.replace("    pass\n\ndef", f"    {body}\n\ndef"))
    marked.run("test_agent.py::test_mine[control]")
    assert set(seen) == {"own-check"}


SUBTESTS = """\
import pytest

@pytest.mark.regcase("trial-37")
def test_mine(regcase, subtests):
    for number in range(3):
        with subtests.test(number=number):
            assert number != {wrong}
"""


@pytest.mark.parametrize("words", [(), ("-n2",)], ids=["serial", "xdist"])
def test_subtests_are_parts_of_the_attempt_and_no_attempts(marked: GateProject, words: tuple[str, ...]) -> None:
    marked.pytester.makepyfile(test_agent=SUBTESTS.format(wrong=9))
    result = marked.run("test_agent.py", "--junitxml=junit.xml", *words)
    assert result.ret == pytest.ExitCode.OK
    assert by_function(marked) == THREE
    assert not any("passed after" in line for line in result.outlines)


@pytest.mark.parametrize("words", [(), ("-n2",)], ids=["serial", "xdist"])
def test_a_failed_subtest_is_a_check_of_ones_own_that_failed(marked: GateProject, words: tuple[str, ...]) -> None:
    marked.pytester.makepyfile(test_agent=SUBTESTS.format(wrong=1))
    result = marked.run("test_agent.py", "--regcase-report=report.json", *words)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert decision(marked)["decision"] != "pass"
    # The function asks for no supplier, so each try proves nothing; two are made of each check.
    assert by_function(marked) == {name: ["inconclusive"] * 2 for name in THREE}
    assert all("AssertionError: assert 1 != 1" in (row.says or "") for row in marked.rows())


def test_what_a_function_prints_or_raises_is_no_command_to_a_runner(marked: GateProject) -> None:
    body = "    print('::set-output name=a::b')\n    raise OSError('no\\r::stop-commands::x')\n\ndef"
    marked.pytester.makepyfile(test_agent=MARKED.replace("    pass\n\ndef", body))
    # As bytes: reading a carriage return as the end of a line is what a runner does.
    output = marked.run("test_agent.py::test_mine[control]").stdout.str()
    shown = re.split(r"[\r\n]+", output)
    assert not [line for line in shown if line.lstrip().startswith(("::", "##["))]
    assert any("| ::set-output name=a::b" in line for line in shown)
    assert any("| ::stop-commands::x" in line for line in shown)


SOFT_CHECKS = """

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and "stall-v1" in item.nodeid:
        report.outcome, report.longrepr = "failed", "1 soft check failed"
    return report
"""


@pytest.mark.parametrize("words", [(), ("-n2",)], ids=["serial", "xdist"])
def test_what_another_plugin_shows_as_failed_is_not_counted_as_good(
    marked: GateProject, words: tuple[str, ...]
) -> None:
    conftest = marked.root / "conftest.py"
    conftest.write_text(conftest.read_text() + SOFT_CHECKS)
    result = marked.run("--regcase-report=report.json", *words)
    result.assert_outcomes(passed=4, failed=2)
    assert by_function(marked) == {**THREE, "test_mine::stall-v1": ["not-recovered"]}
    assert decision(marked)["decision"] == "fail"
    (row,) = [each for each in marked.rows() if each.agent == AGENT and each.scenario == "stall-v1"]
    assert row.says == "pytest shows it as failed: 1 soft check failed"


@pytest.mark.parametrize("words", [(), ("-n2",)], ids=["serial", "xdist"])
def test_a_module_that_skips_itself_leaves_its_functions_unproven(
    marked: GateProject, words: tuple[str, ...]
) -> None:
    skips = "import pytest\npytest.skip('not here', allow_module_level=True)\n"
    marked.pytester.makepyfile(test_agent=skips + MARKED, test_plain=skips)
    result = marked.run("--regcase-report=report.json", *words)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (red,) = [each for each in decision(marked)["reasons"] if each["red"]]
    assert (red["code"], red["text"]) == (
        "not-run",
        "test_agent.py: functions marked `regcase` here were not run (the file skips itself)",
    )
    # Whoever decides later sees it too.
    assert main(["gate", "--ledger", str(marked.root / ".regcase" / "ledger.sqlite3")]) == 3


def test_each_shard_runs_the_functions_of_its_own_cases(
    marked: GateProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    marked.add_case("trial-38")
    other = MARKED.replace("trial-37", "trial-38").replace("test_mine", "test_other")
    marked.pytester.makepyfile(test_other=other)
    first = marked.run("--regcase-shard=1/2", "-rs")
    first.assert_outcomes(passed=6, skipped=1, deselected=2)
    first.stdout.fnmatch_lines(["SKIPPED*not run: the case trial-38 belongs to another shard"])
    assert set(by_function(marked)) == set(THREE)
    marked.run("--regcase-shard=2/2", "test_agent.py", "test_other.py", "cases")
    assert {name: each for name, each in by_function(marked).items() if "other" not in name} == THREE
    assert {name.replace("other", "mine"): each for name, each in by_function(marked).items()} == THREE
    monkeypatch.chdir(marked.root)
    assert main(["gate"]) == 0
    assert "trial-38 by test_other.py::test_other" in capsys.readouterr().out


def test_a_skip_inside_the_function_is_no_attempt_that_shows_anything(marked: GateProject) -> None:
    marked.pytester.makepyfile(test_agent=MARKED.replace("    pass\n\ndef", "    pytest.skip('not today')\n\ndef"))
    result = marked.run("test_agent.py", "--regcase-report=report.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert decision(marked)["decision"] == "unproven"
    assert {each.verdict for each in marked.rows()} == {"inconclusive"}
    assert {each.says for each in marked.rows()} == {"it was skipped while it ran: Skipped: not today"}


def test_a_retired_case_is_not_run_by_its_function(marked: GateProject) -> None:
    path = marked.root / "cases" / "trial-37" / "case.toml"
    path.write_text(path.read_text() + "\n[[retired]]\nat = 2026-01-01T00:00:00Z\nby = 'a'\nwhy = 'gone'\n")
    marked.add_case("trial-38")
    result = marked.run("-rs")
    result.stdout.fnmatch_lines(["SKIPPED*not run: the case trial-37 is retired"])
    assert result.ret == pytest.ExitCode.OK


def test_a_user_who_repeats_or_shuffles_tests_changes_nothing(marked: GateProject) -> None:
    text = MARKED.replace("@pytest.mark.regcase", "@pytest.mark.flaky(reruns=9)\n@pytest.mark.regcase")
    marked.pytester.makepyfile(test_agent=text)
    marked.script({"test_mine::stall-v1": ["not-recovered"] * 9})
    marked.run("test_agent.py")
    assert by_function(marked)["test_mine::stall-v1"] == ["not-recovered"] * 3


def test_under_xdist_the_workers_tell_what_is_planned(marked: GateProject) -> None:
    result = marked.run("-n", "2", "--regcase-report=report.json")
    result.assert_outcomes(passed=6)
    assert by_function(marked) == THREE
    parallel = (marked.root / "report.json").read_text()
    marked.run("--regcase-report=report.json")
    assert json.loads(parallel)["gate"] == decision(marked)


def test_a_function_that_ends_its_worker_is_not_turned_green(marked: GateProject) -> None:
    marked.pytester.makepyfile(
        test_agent=MARKED.replace(
            "    pass\n\ndef",
            "    import os, pathlib\n    if regcase.scenario == 'control' and not pathlib.Path('once').exists():\n"
            "        pathlib.Path('once').touch()\n        os._exit(0)\n\ndef",
        )
    )
    result = marked.run("-n", "1", "test_agent.py", "--regcase-report=report.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert by_function(marked)["test_mine::control"] == ["inconclusive", "finished"]
    assert decision(marked)["decision"] == "unproven"


def test_a_function_that_ends_the_process_leaves_a_session_without_an_end(marked: GateProject) -> None:
    body = "    import os\n    os._exit(0)\n\ndef"
    marked.pytester.makepyfile(test_agent=MARKED.replace("    pass\n\ndef", body))
    result = marked.run("test_agent.py", apart=True)
    assert result.ret == 0  # nothing of pytest was left that could say more
    ledger = marked.ledger()
    try:
        (row,) = whole(ledger, session_heads(ledger))
    finally:
        ledger.close()
    assert row.finished_at is None
    assert [str(key) for key in row.planned if key.agent == AGENT] == [
        "trial-37::control::check",
        "trial-37::stall-v1::check",
        "trial-37::killed-v1::check",
    ]
    assert row.revisions is not None
    assert AGENT in row.revisions
