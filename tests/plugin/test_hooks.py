"""The hooks that a project may have: agents, tighter expectations, and being told of every attempt."""

import json
from fnmatch import fnmatch

import pytest

from pytest_regcase.cli import main
from tests.plugin.gate_project import GateProject

TIGHTER = """
def pytest_regcase_expectations(case):
    if case.id == "trial-37":
        return {asked}
"""


def run(project: GateProject, hooks: str, *args: str, name: str = "hooks_of_mine") -> pytest.RunResult:
    """Run with a plugin that holds the hooks."""
    project.pytester.syspathinsert()
    (project.root / f"{name}.py").write_text(hooks)
    return project.run(f"-p{name}", "--regcase-report=report.json", *args)


def case_digests(project: GateProject) -> list[str]:
    return [row.digests.case for row in project.rows() if row.scenario == "stall-v1"]


def test_tighter_expectations_belong_to_the_digest_so_that_counts_do_not_mix(project: GateProject) -> None:
    project.add_case("trial-37")
    project.add_case("trial-38")
    assert project.run().ret == pytest.ExitCode.OK
    result = run(
        project, TIGHTER.format(asked="{'max_retries': 1, 'when': {'deadline': {'stop_within_seconds': 5}}}")
    )
    assert result.ret == pytest.ExitCode.OK
    plain, of_others, tight, same_of_others = case_digests(project)
    assert plain != tight
    assert of_others == same_of_others
    again = run(project, TIGHTER.format(asked="None"), name="hooks_without")
    assert again.ret == pytest.ExitCode.OK
    assert case_digests(project)[4] == plain


def test_the_gate_that_runs_no_hooks_says_so(
    project: GateProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.add_case("trial-37")
    run(project, TIGHTER.format(asked="{'max_retries': 1}"))
    monkeypatch.chdir(project.root)
    capsys.readouterr()
    assert main(["gate", "--json"]) == 3
    reasons = json.loads(capsys.readouterr().out)["reasons"]
    assert {each["code"]: each["red"] for each in reasons}["hooked"] is False
    assert "hooks of the project changed the expectations of trial-37" in str(reasons)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("{'max_retries': 9}", "*expected_recovery.max_retries is 3 and would be 9, which asks for less.*"),
        ("1 / 0", "*Couldn't ask pytest_regcase_expectations for trial-37: it raised ZeroDivisionError*"),
    ],
)
def test_what_loosens_or_cannot_be_is_one_failing_item(project: GateProject, asked: str, says: str) -> None:
    project.add_case("trial-37")
    project.add_case("trial-38")
    result = run(project, TIGHTER.format(asked=asked))
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*::invalid*"])
    assert fnmatch(" ".join(" ".join(result.outlines).split()), f"*{says}*")


AGENT = """
def pytest_regcase_agent(case, name):
    return {entry}
"""
MINE = "{'command': ['mine', case.id[:5]], 'revision_paths': ['pyproject.toml']}"


def test_an_agent_of_a_hook_is_used_in_the_place_of_the_configured_one(project: GateProject) -> None:
    project.add_case("trial-37")
    project.run()
    run(project, AGENT.format(entry=MINE))
    before, after = (row.digests.agent for row in project.rows() if row.scenario == "control")
    assert before != after


def test_an_agent_of_a_hook_is_there_where_none_is_configured(project: GateProject) -> None:
    project.add_case("trial-37")
    (project.root / "pyproject.toml").write_text("[tool.regcase]\n")
    assert run(project, AGENT.format(entry=MINE)).ret == pytest.ExitCode.OK
    assert {row.agent for row in project.rows()} == {"default"}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{'comand': ['x']}", "*trial-37 and the agent 'default' returned: unknown key comand.*"),
        ("{'command': [case.id]}", "*'default' has one entry for trial-37 and another for trial-38.*"),
        ("1 / 0", "*Couldn't ask pytest_regcase_agent for trial-37: it raised ZeroDivisionError*"),
    ],
)
def test_an_agent_that_cannot_be_is_a_usage_error(project: GateProject, entry: str, says: str) -> None:
    project.add_case("trial-37")
    project.add_case("trial-38")
    result = run(project, AGENT.format(entry=entry))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])
    assert project.rows() == []


FINISHED = """
def pytest_regcase_attempt_finished(record):
    from pytest_regcase.ledger.store import Ledger
    with Ledger.open("sqlite:///.regcase/ledger.sqlite3") as ledger, open("told.txt", "a") as file:
        file.write(f"{record.scenario} {record.verdict} {ledger.row_count()}\\n")
"""


def test_every_attempt_is_told_once_after_it_is_stored(project: GateProject) -> None:
    project.add_case("trial-37", ["stall-v1"])
    project.script({"trial-37::stall-v1": ["not-recovered"] * 3})
    run(project, FINISHED)
    assert (project.root / "told.txt").read_text().splitlines() == [
        "control finished 1",
        "stall-v1 not-recovered 2",
        "stall-v1 not-recovered 3",
        "stall-v1 not-recovered 4",
    ]


def test_an_exception_of_the_hook_is_shown_and_changes_nothing(project: GateProject) -> None:
    project.add_case("trial-37")
    project.script({"trial-37::killed-v1": ["not-recovered"] * 3})
    result = run(project, "def pytest_regcase_attempt_finished(record):\n    raise OSError('no network')\n")
    result.assert_outcomes(passed=2, failed=1)
    assert len(project.rows()) == 5
    result.stdout.fnmatch_lines(["pytest_regcase_attempt_finished raised OSError: no network (5 times); its"])
    ledger = project.ledger()
    try:
        session = ledger.session(project.rows()[0].session_id)
    finally:
        ledger.close()
    assert session is not None
    assert session.finished_at is not None


def test_under_xdist_workers_ask_the_same_hooks_and_tell_none(project: GateProject) -> None:
    project.add_case("trial-37", ["stall-v1"])
    conftest = project.root / "conftest.py"
    hooks = FINISHED + TIGHTER.format(asked="{'max_retries': 1}") + AGENT.format(entry=MINE)
    conftest.write_text(conftest.read_text() + hooks)
    assert project.run("-n", "2").ret == pytest.ExitCode.OK
    assert len((project.root / "told.txt").read_text().splitlines()) == 2


def test_hooks_in_a_conftest_that_is_read_too_late_are_refused(project: GateProject) -> None:
    project.add_case("trial-37")
    below = project.root / "lower"
    below.mkdir()
    (below / "conftest.py").write_text(TIGHTER.format(asked="{'max_retries': 1}"))
    (below / "test_it.py").write_text("def test_it(): pass\n")
    result = project.run(".")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*Couldn't use the hook pytest_regcase_expectations of a conftest.py in a folder below*"]
    )
    assert project.rows() == []


def test_the_hooks_are_known_without_the_option(project: GateProject) -> None:
    project.pytester.makepyfile("def test_it(): pass")
    project.pytester.syspathinsert()
    (project.root / "mine.py").write_text(TIGHTER.format(asked="{}"))
    assert project.run("-pmine", regcase=False).ret == pytest.ExitCode.OK
