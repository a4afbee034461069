"""Each move by which a case could be made to pass: red without an amendment, green with the right one."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.case_files.seal import reseal_text
from pytest_regcase.config import load_project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.session.case_life.amend import amend_case
from pytest_regcase.session.reviews.check import check_project
from tests.session.reviews.checked_project import (
    CASE_ID,
    EVIDENCE,
    REPLY,
    SIMULATION,
    amendment,
    append,
    case_path,
    commit,
    edit,
    few_simulations,
    git,
    red,
    rows,
    write_project,
)

FIX = """
[[fix]]
number = 1
revision = "r1"
ledger_id = "l1"
rows = 3
at = 2026-05-03T09:00:00Z
by = "ada"
"""
QUARANTINE = """
[quarantine]
owner = "ada"
reason = "control did not finish in 3 of 20 sessions"
kind = "flaky"
since = 2026-05-01
expires = 2099-05-10
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written")
    write_project(root)
    return root


@pytest.fixture
def project(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed project, in the current folder; nothing differs from ``main`` yet."""
    root = tmp_path / "project"
    shutil.copytree(written, root)
    monkeypatch.chdir(root)
    monkeypatch.delenv("REGCASE_LEDGER", raising=False)
    few_simulations(root, monkeypatch)
    return root


class Move(NamedTuple):
    """One way to loosen a case: the edit, its code, and what an amendment has to name."""

    old: str
    new: str
    code: str
    what: str


SLACK = "[expected_recovery]\n"
HANDOVER = "[handover]\n"
MOVES = {
    "an expectation is switched off": Move(
        SLACK,
        f"{SLACK}no_fabricated_output = false\n",
        "expectation-loosened",
        "expected_recovery.no_fabricated_output true -> false",
    ),
    "more retries": Move(
        "max_retries = 3", "max_retries = 4", "expectation-loosened", "expected_recovery.max_retries 3 -> 4"
    ),
    "more time to stop": Move(
        SLACK,
        f"{SLACK}stop_within_seconds = 61\n",
        "expectation-loosened",
        "expected_recovery.stop_within_seconds 60.0 -> 61.0",
    ),
    "a class may retry": Move(
        "[handover]\nowner",
        "[expected_recovery.when.auth]\nmax_retries = 1\n[handover]\nowner",
        "expectation-loosened",
        "expected_recovery.when.auth.max_retries 0 -> 1",
    ),
    "a class asks for no more than the rest": Move(
        SLACK,
        f"{SLACK}when = {{}}\n",
        "expectation-loosened",
        "expected_recovery.when.auth.max_retries 0 -> absent",
    ),
    "nothing is required": Move(
        'required = ["log_failure"]',
        "required = []",
        "expectation-loosened",
        'expected_recovery.required ["log_failure"] -> absent',
    ),
    "other failures do not count": Move(
        SLACK,
        f'{SLACK}other_failures = "pass-over"\n',
        "expectation-loosened",
        'expected_recovery.other_failures "stop" -> "pass-over"',
    ),
    "a higher rate passes": Move(
        HANDOVER,
        f'[handover.rerun_rule]\nmax_failure_rate = "0.2"\n{HANDOVER}',
        "rule-loosened",
        'handover.rerun_rule.max_failure_rate absent -> "0.2"',
    ),
    "a higher risk is taken": Move(
        HANDOVER,
        f'[handover.rerun_rule]\nrisk = "0.06"\n{HANDOVER}',
        "rule-loosened",
        'handover.rerun_rule.risk absent -> "0.06"',
    ),
    "one ending fewer is the symptom": Move(
        'termination = ["error", "cut-off"]',
        'termination = ["error"]',
        "symptom-narrowed",
        'symptom_match.termination ["error","cut-off"] -> ["error"]',
    ),
    "one type fewer is the symptom": Move(
        "APITimeoutError|ReadTimeout",
        "APITimeoutError",
        "symptom-narrowed",
        'symptom_match.error_type "APITimeoutError|ReadTimeout" -> "APITimeoutError"',
    ),
    "the symptom asks for more": Move(
        "[symptom_match]\n",
        "[symptom_match]\nno_reply = true\n",
        "symptom-narrowed",
        "symptom_match.no_reply absent -> true",
    ),
    "a hypothesis is removed": Move(
        '[[hypotheses]]\nid = "slow"\nsimulations = ["one-v1", "two-v1"]\n\n',
        "",
        "hypothesis-removed",
        'hypotheses.slow.simulations ["one-v1","two-v1"] -> absent',
    ),
    "a hypothesis without a simulation is removed": Move(
        '[[hypotheses]]\nid = "other"\nsimulations = []\n',
        "",
        "hypothesis-removed",
        "hypotheses.other.simulations [] -> absent",
    ),
    "a simulation is removed": Move(
        '"one-v1", "two-v1"',
        '"one-v1"',
        "simulation-removed",
        'hypotheses.slow.simulations ["one-v1","two-v1"] -> ["one-v1"]',
    ),
    "it is quarantined": Move(
        HANDOVER,
        f"{QUARANTINE.lstrip()}{HANDOVER}",
        "quarantine-extended",
        'quarantine.expires absent -> "2099-05-10"',
    ),
    "the baseline fails more": Move(
        "failures = 4", "failures = 14", "baseline-changed", "baseline.failures 4 -> 14"
    ),
    "replies come from the real supplier": Move(
        'source = "script"\nfile = "recorded/script.jsonl"',
        'source = "pass-through"',
        "input-changed",
        'replies.source "script" -> "pass-through"',
    ),
}


def test_nothing_changed_and_nothing_is_found(project: Path) -> None:
    assert rows(project) == ()


@pytest.mark.parametrize("name", MOVES)
def test_a_loosened_case_needs_the_amendment_that_names_it(project: Path, name: str) -> None:
    move, path = MOVES[name], case_path(project)
    edit(path, move.old, move.new)
    also = [move.code] if name == "replies come from the real supplier" else []
    assert red(project) == [*also, move.code]
    append(path, amendment("expected_recovery.mark_failure true -> false"))
    append(path, amendment(move.what.replace(" -> ", " -> x")))
    assert red(project) == [*also, move.code]
    append(path, amendment(move.what))
    assert red(project) == also


def test_the_line_and_the_case_are_named(project: Path) -> None:
    edit(case_path(project), "max_retries = 3", "max_retries = 9")
    (row,) = rows(project)
    line = case_path(project).read_text()[: case_path(project).read_text().index("max_retries")].count("\n") + 1
    assert (row.code, row.file, row.line, row.case_id) == (
        "expectation-loosened",
        f"cases/{CASE_ID}/case.toml",
        line,
        CASE_ID,
    )
    assert row.text.startswith("expected_recovery.max_retries was 3 and is 9; ")


def test_what_regcase_amend_writes_is_the_right_amendment(project: Path) -> None:
    amend_case(
        load_project(project),
        case_path(project),
        why="the library retries twice by itself",
        fields=["expected_recovery.max_retries=5", "hypotheses.slow.simulations=[]"],
        by="ada",
    )
    assert red(project) == []
    edit(case_path(project), "max_retries = 5", "max_retries = 6")
    assert red(project) == ["expectation-loosened"]


def reseal(path: Path) -> None:
    path.write_text(reseal_text(path.read_text()))


def test_an_observation_that_was_sealed_anew(project: Path) -> None:
    path = case_path(project)
    seal = load_case(path).case.seal
    assert seal is not None
    edit(path, "stopped responding at step 2", "answered step 2 late")
    assert set(red(project)) == {"broken-seal"}
    reseal(path)
    assert red(project) == ["observation-changed"]
    wrong = "sha256:" + "1" * 64
    append(path, amendment("the symptom", f'old_digest = "{wrong}"\n'))
    assert red(project) == ["observation-changed"]
    edit(path, "what = 'the symptom'", "what = 'another key'")
    append(path, amendment("observation.source_event was mistyped", f'old_digest = "{seal.observation}"\n'))
    assert red(project) == ["observation-changed"]
    append(path, amendment("a word of the symptom was wrong", f'old_digest = "{seal.observation}"\n'))
    assert red(project) == []


def test_an_amendment_from_before_covers_nothing(project: Path) -> None:
    append(case_path(project), amendment("expected_recovery.max_retries 3 -> 4"))
    commit(project)
    edit(case_path(project), "max_retries = 3", "max_retries = 4")
    assert red(project) == ["expectation-loosened"]


def test_a_case_is_not_removed_but_retired(project: Path) -> None:
    path = case_path(project)
    content = path.read_text()
    shutil.rmtree(path.parent / "recorded")
    path.unlink()
    (row,) = rows(project)
    assert (row.code, row.case_id) == ("case-removed", CASE_ID)
    assert f"regcase retire {CASE_ID}" in row.text
    git(project, "checkout", "-q", "main", "--", ".")
    path.write_text(content + '\n[[retired]]\nat = 2026-05-02T09:00:00Z\nby = "ada"\nwhy = "the task is gone"\n')
    assert red(project) == []
    assert [each.code for each in rows(project)] == ["case-retired"]


def test_a_case_in_a_folder_that_is_no_longer_configured_is_removed(project: Path) -> None:
    edit(project / "pyproject.toml", "[tool.regcase]\n", '[tool.regcase]\ncases = ["elsewhere"]\n')
    assert red(project) == ["case-removed"]


def test_a_case_under_another_id_is_another_case(project: Path) -> None:
    edit(case_path(project), f'id = "{CASE_ID}"', 'id = "trial-8"')
    assert red(project) == ["case-removed"]


def test_a_case_that_only_moved_is_compared(project: Path) -> None:
    case_path(project).parent.rename(project / "cases" / "moved")
    assert red(project) == []
    edit(project / "cases" / "moved" / "case.toml", "max_retries = 3", "max_retries = 4")
    assert red(project) == ["expectation-loosened"]


def test_a_project_that_was_moved_is_compared(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = project / "below"
    moved.mkdir()
    for each in ("pyproject.toml", "cases", "fixtures"):
        if (project / each).exists():
            shutil.move(project / each, moved / each)
    monkeypatch.chdir(moved)
    assert red(moved) == []
    edit(case_path(moved), "max_retries = 3", "max_retries = 9")
    assert red(moved) == ["expectation-loosened"]
    shutil.rmtree(moved / "cases")
    assert red(moved) == ["case-removed"]


def test_a_simulation_changes_only_under_a_new_id(project: Path) -> None:
    edit(project / "fixtures" / "one-v1.toml", '"no_answer"', '"no_answer"\nlasts = 1')
    (row,) = rows(project)
    assert (row.code, row.file, row.red) == ("simulation-changed", "fixtures/one-v1.toml", True)
    # No amendment helps; a new version, named by an amendment of the case, does.
    append(case_path(project), amendment("simulations.one-v1 was wrong"))
    assert red(project) == ["simulation-changed"]
    git(project, "checkout", "-q", "main", "--", "fixtures")
    (project / "fixtures" / "one-v2.toml").write_text(SIMULATION.format(name="one-v2") + "lasts = 1\n")
    edit(case_path(project), '"one-v1", "two-v1"', '"one-v2", "two-v1"')
    assert red(project) == ["simulation-removed"]
    append(
        case_path(project),
        amendment('hypotheses.slow.simulations ["one-v1","two-v1"] -> ["one-v2","two-v1"]'),
    )
    assert red(project) == []


def test_layout_and_comments_of_a_simulation_are_free(project: Path) -> None:
    edit(project / "fixtures" / "one-v1.toml", "[fault]", "# what is injected\n[fault]")
    assert rows(project) == ()


def test_a_quarantine_is_extended_only_with_an_amendment(project: Path) -> None:
    edit(case_path(project), HANDOVER, f"{QUARANTINE.lstrip()}{HANDOVER}")
    commit(project)
    edit(case_path(project), "2099-05-10", "2099-05-11")
    assert red(project) == ["quarantine-extended"]
    append(case_path(project), amendment('quarantine.expires "2099-05-10" -> "2099-05-11"'))
    assert red(project) == []
    edit(case_path(project), "expires = 2099-05-11", "expires = 2099-05-09")
    assert red(project) == []


APPENDED = {
    "evidence": ("quote = ", EVIDENCE),
    "fix": ("revision = ", FIX),
    "amendments": ("why = ", amendment("expected_recovery.max_retries 3 -> 3")),
}


@pytest.mark.parametrize("table", APPENDED)
def test_an_appended_record_stays_as_it_is(project: Path, table: str) -> None:
    key, record = APPENDED[table]
    path = case_path(project)
    before = path.read_text()
    confirmed = before.replace('cause_status = "unknown"', 'cause_status = "confirmed"')
    path.write_text((confirmed if table == "evidence" else before) + record)
    commit(project)
    assert red(project) == []
    path.write_text(before)
    what = f"[[{table}]]"
    append(path, amendment(f"{what} was wrong").replace("09:00", "10:00"))
    assert red(project) == ["record-removed"]
    git(project, "checkout", "-q", "main", "--", ".")
    edit(path, key + record.split(key)[1].split("\n")[0], f'{key}"something else"')
    append(path, amendment(f"{what} was wrong"))
    assert red(project) == ["record-edited"]


def test_evidence_is_withdrawn_and_not_removed(project: Path) -> None:
    path = case_path(project)
    path.write_text(path.read_text().replace('"unknown"', '"confirmed"') + EVIDENCE)
    commit(project)
    edit(path, '"confirmed"', '"unknown"')
    append(path, 'withdrawn = { why = "of another host", who = "ada", at = 2026-05-03T09:00:00Z }\n')
    assert red(project) == []
    commit(project)
    path.write_text(path.read_text().rsplit("withdrawn", 1)[0].replace('"unknown"', '"confirmed"'))
    assert red(project) == ["record-edited"]


def test_what_is_stricter_is_not_flagged(project: Path) -> None:
    edit(case_path(project), "max_retries = 3", "max_retries = 2")
    edit(case_path(project), '"cut-off"]', '"cut-off", "limit"]')
    edit(case_path(project), "simulations = []", 'simulations = ["two-v1"]')
    edit(project / "pyproject.toml", "max_retries = 5", "max_retries = 4")
    edit(project / "pyproject.toml", "confirm = 2", "confirm = 3")
    assert rows(project) == ()


def test_a_simulation_that_another_hypothesis_runs_is_not_removed(project: Path) -> None:
    edit(case_path(project), '"one-v1", "two-v1"', '"one-v1"')
    edit(case_path(project), "simulations = []", 'simulations = ["two-v1"]')
    assert red(project) == []


# the rules of the project


def test_a_looser_rule_needs_an_amendment_beside_it(project: Path) -> None:
    path = project / "pyproject.toml"
    edit(path, "confirm = 2", "confirm = 1")
    (row,) = rows(project)
    assert (row.code, row.file, row.line) == ("rule-loosened", "pyproject.toml", 4)
    append(case_path(project), amendment("tool.regcase.confirm 2 -> 1"))
    append(path, amendment("tool.regcase.risk 2 -> 1", table="tool.regcase.amendments"))
    assert red(project) == ["rule-loosened"]
    append(path, amendment("tool.regcase.confirm 2 -> 1", table="tool.regcase.amendments"))
    assert red(project) == []
    commit(project)
    edit(path, "what = 'tool.regcase.risk 2 -> 1'\n", "what = 'tool.regcase.plan'\n")
    assert red(project) == ["record-removed"]


def test_no_amendment_lifts_a_floor(project: Path) -> None:
    path = project / "pyproject.toml"
    edit(path, "max_retries = 5", "max_retries = 6")
    append(path, amendment("tool.regcase.limits.max_retries 5 -> 6", table="tool.regcase.amendments"))
    append(case_path(project), amendment("tool.regcase.limits.max_retries 5 -> 6"))
    (row,) = rows(project)
    assert (row.code, row.line, row.red) == ("limit-loosened", 10, True)


def test_a_configuration_that_is_gone_takes_no_floor_with_it(project: Path) -> None:
    (project / "pyproject.toml").write_text("[project]\n")
    assert set(red(project)) == {"limit-loosened", "rule-loosened"}


# what replies drive


def test_new_calls_are_listed_and_are_not_wrong(project: Path) -> None:
    script = case_path(project).parent / "recorded" / "script.jsonl"
    append(script, REPLY.format("touch /etc/x"))
    (row,) = rows(project)
    assert (row.code, row.red, row.case_id) == ("call-to-review", False, CASE_ID)
    assert row.file == f"cases/{CASE_ID}/recorded/script.jsonl"
    assert row.text == (
        'step 2 drives bash: {"command": "touch /etc/x"}; it names a place outside the work folder: /etc/x'
    )
    commit(project)
    assert rows(project) == ()
    script.write_text(REPLY.format("touch /etc/x"))
    (row,) = rows(project)
    assert (row.code, row.text) == ("call-to-review", "1 call that main drove is gone")


def test_all_calls_of_a_new_case_are_listed_also_without_a_revision(project: Path) -> None:
    shutil.copytree(case_path(project).parent, project / "cases" / "trial-8")
    edit(project / "cases" / "trial-8" / "case.toml", f'id = "{CASE_ID}"', 'id = "trial-8"')
    for against in ("main", None):
        (row,) = rows(project, against)
        assert (row.code, row.case_id) == ("call-to-review", "trial-8")


# revisions


def test_what_others_did_meanwhile_is_not_compared(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "mine")
    git(project, "checkout", "-q", "main")
    shutil.copytree(case_path(project).parent, project / "cases" / "trial-8")
    edit(project / "cases" / "trial-8" / "case.toml", f'id = "{CASE_ID}"', 'id = "trial-8"')
    commit(project)
    git(project, "checkout", "-q", "mine")
    checked = check_project(load_project(project), against="main")
    assert checked.rows == ()
    assert checked.against is not None
    assert checked.against.endswith(", where HEAD left main)")
    git(project, "merge", "-q", "main")
    shutil.rmtree(project / "cases" / "trial-8")
    assert red(project) == ["case-removed"]


@pytest.mark.parametrize("name", ["nowhere", "", "--all", "main:cases", "main..main", "\u2603"])
def test_an_unknown_revision_is_one_error(project: Path, name: str) -> None:
    with pytest.raises(UsageRefused, match="git knows no such revision") as caught:
        rows(project, name)
    assert (caught.value.slug, caught.value.exit_code) == ("unknown-revision", 2)


def test_a_shallow_clone_says_what_to_fetch(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(case_path(project), "# one more commit\n")
    commit(project)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", project.as_uri(), str(clone))
    monkeypatch.chdir(clone)
    assert red(clone) == []
    with pytest.raises(UsageRefused, match=r"(?s)clone is shallow.*fetch-depth: 0") as caught:
        rows(clone, "HEAD~1")
    assert caught.value.slug == "shallow-clone"


def test_without_a_repository_there_is_nothing_to_compare_with(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(project / ".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))
    with pytest.raises(UsageRefused, match="needs a git repository"):
        rows(project)
    assert rows(project, None) == ()
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(UsageRefused, match="no `git` on the path"):
        rows(project)
    assert rows(project, None) == ()


def test_a_project_below_the_top_of_its_repository(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(project / ".git")
    git(project.parent, "init", "-q", "--template=", "-b", "main")
    commit(project.parent)
    # What git tells a hook in a linked work tree: then it would take any folder for the top.
    monkeypatch.setenv("GIT_DIR", str(project.parent / ".git"))
    assert rows(project) == ()
    edit(case_path(project), "max_retries = 3", "max_retries = 4")
    edit(project / "pyproject.toml", "max_retries = 5", "max_retries = 6")
    assert sorted(red(project)) == ["expectation-loosened", "limit-loosened"]


def test_what_was_invalid_then_is_said_and_not_compared(project: Path) -> None:
    path = case_path(project)
    good = path.read_text()
    path.write_text(good.replace('kind = "all-attempts"', 'kind = "some"'))
    commit(project)
    path.write_text(good.replace("max_retries = 3", "max_retries = 9"))
    (row,) = (each for each in rows(project) if each.code != "call-to-review")
    assert (row.code, row.red) == ("not-compared", False)
    assert row.file == f"main:cases/{CASE_ID}/case.toml"


def test_single_cases_are_not_compared(project: Path) -> None:
    with pytest.raises(UsageRefused, match="a case that is gone has no path"):
        check_project(load_project(project), [CASE_ID], against="main")
