"""From a path to a written case: all of it or nothing, never over another one."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import load_case, write_new_case
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import FileError, ImportRefused, UsageRefused, WriteError
from pytest_regcase.importers.source import Choice
from pytest_regcase.records.canonical import digest
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.records.words import Outcome
from pytest_regcase.redaction import Keep
from pytest_regcase.session.adopt import adopt as adopt_one
from pytest_regcase.session.adopt import adopt_all, failed_trials
from pytest_regcase.session.new_cases import given_work_tree, making
from pytest_regcase.session.new_cases.making import Adopted, Settings
from pytest_regcase.session.new_cases.persons_word import PersonsWord
from pytest_regcase.session.sweeps.scan import scan
from tests.no_access import forbid_listing

GOLD = Path(__file__).parent.parent / "gold"
FAILED = GOLD / "mini-swe-agent" / "call_failed.traj.json"


def adopt(
    project: Project,
    source: Path,
    *,
    owner: str | None = "me",
    cases: Path | None = None,
    new: bool = False,
    full: bool = False,
    keep: Keep | None = None,
    sample: str | None = None,
    key: str | None = None,
    outcome: Outcome | None = None,
    **one: Any,
) -> Adopted:
    settings = Settings(owner=owner, cases=cases, new=new, full=full, keep=keep or Keep())
    choice = Choice(key=key, sample=sample)
    word = one.pop("word", PersonsWord(outcome=outcome))
    return adopt_one(project, source, settings, choice=choice, word=word, **one)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(root=tmp_path, config=RegcaseConfig())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with what may be in one, and what may not."""
    folder = tmp_path / "tree"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    (folder / "calc.py").write_text("def add(a, b): return a - b\n")
    (folder / "src" / "run.sh").write_text("#!/bin/sh\n")
    os.chmod(folder / "src" / "run.sh", 0o755)
    (folder / "src" / "link").symlink_to("run.sh")
    (folder / "src" / "linked").symlink_to("../src")
    return folder


def everything_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_written_case_loads_and_is_what_was_returned(project: Project) -> None:
    adopted = adopt(project, FAILED, owner="me", case_id="trial-37", title="no answer at step 3")
    assert adopted.folder == project.root / "cases" / "trial-37"
    loaded = load_case(adopted.folder)
    assert loaded.case.observation == adopted.case.observation
    assert loaded.case.title == "no answer at step 3"
    assert loaded.case.handover is not None
    assert loaded.case.handover.owner == "me"
    assert len(loaded.reply_lines()) == 6
    assert loaded.task_text() == "add() in calc.py subtracts"
    assert loaded.work_tree() is None
    assert adopted.written[0].name == "case.toml"
    assert all(path.is_file() for path in adopted.written)
    assert loaded.case.observation.source_digests == {FAILED.name: digest(FAILED.read_bytes())}
    assert any("tool calls" in sentence for sentence in adopted.warnings)
    assert any("--work-tree" in sentence for sentence in adopted.warnings)


def test_the_same_source_gives_the_same_bytes(project: Project, tmp_path: Path) -> None:
    first = adopt(project, FAILED, owner="me", case_id="one", cases=tmp_path / "a")
    second = adopt(project, FAILED, owner="me", case_id="one", cases=tmp_path / "b", new=True)
    assert [path.read_bytes() for path in first.written] == [path.read_bytes() for path in second.written]


def test_a_work_tree_is_copied_as_plain_files(project: Project, tree: Path) -> None:
    adopted = adopt(project, FAILED, owner="me", case_id="one", work_tree=tree)
    copied = adopted.folder / "recorded" / "work_tree"
    assert everything_below(copied) == ["calc.py", "src", "src/run.sh"]
    assert os.access(copied / "src" / "run.sh", os.X_OK)
    assert not os.access(copied / "calc.py", os.X_OK)
    assert load_case(adopted.folder).work_tree() == copied
    assert "2 links and special files of the work tree are left out" in adopted.warnings
    assert not any("work_tree" in name for name in adopted.case.observation.recorded)


def test_a_taken_id_is_refused_with_a_free_one(project: Project) -> None:
    adopt(project, FAILED, owner="me", case_id="one")
    before = (project.root / "cases" / "one" / "case.toml").read_bytes()
    adopt(project, FAILED, owner="me", case_id="one-2", new=True)
    with pytest.raises(UsageRefused, match="--id one-3") as caught:
        adopt(project, FAILED, owner="someone else", case_id="one")
    assert caught.value.slug == "id-taken"
    assert (project.root / "cases" / "one" / "case.toml").read_bytes() == before


def test_the_same_trial_twice_is_noticed(project: Project) -> None:
    adopt(project, FAILED, owner="me")
    with pytest.raises(UsageRefused, match="this very trial"):
        adopt(project, FAILED, owner="me")


@pytest.mark.parametrize("case_id", ["", "Upper", "a/b", "../x", "-x", "a.b", "x" * 101, "ä"])
def test_an_id_that_is_none_is_refused(project: Project, case_id: str) -> None:
    with pytest.raises(UsageRefused, match="lower-case"):
        adopt(project, FAILED, owner="me", case_id=case_id)


@pytest.mark.parametrize("problem", ["absent", "empty", "large", "crowded", "secret"])
def test_nothing_is_written_when_the_work_tree_cannot_be_taken(
    project: Project, tree: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    if problem == "absent":
        shutil.rmtree(tree)
    elif problem == "empty":
        shutil.rmtree(tree)
        tree.mkdir()
    elif problem == "large":
        monkeypatch.setattr(given_work_tree, "WORK_TREE_LIMIT_BYTES", 10)
    elif problem == "crowded":
        monkeypatch.setattr(given_work_tree, "WORK_TREE_LIMIT_FILES", 1)
    else:
        (tree / ".env").write_text("OPENAI_API_KEY=" + "sk-" + "a1B2" * 8)
    with pytest.raises(UsageRefused) as caught:
        adopt(project, FAILED, owner="me", work_tree=tree)
    assert "a1B2" not in caught.value.text
    assert not (project.root / "cases").exists()


def test_home_paths_in_a_work_tree_are_no_secrets(project: Project, tree: Path) -> None:
    (tree / "notes").write_text("see /home/alice/x, mail ada@mail.corp.io")
    assert adopt(project, FAILED, owner="me", work_tree=tree).folder.is_dir()


def test_a_refused_trial_writes_nothing(project: Project) -> None:
    with pytest.raises(ImportRefused):
        adopt(project, GOLD / "mini-swe-agent" / "submitted.traj.json", owner="me")
    assert not (project.root / "cases").exists()


def test_a_persons_word_is_recorded_as_one(project: Project) -> None:
    adopted = adopt(project, GOLD / "mini-swe-agent" / "submitted.traj.json", owner="me", outcome="failed")
    seen = load_case(adopted.folder).case.observation
    assert (seen.outcome, seen.outcome_from, seen.termination) == ("failed", "person", "finished")
    assert seen.symptom.endswith("a person says that it failed")


def test_a_persons_word_against_the_log_keeps_the_logs_label(project: Project) -> None:
    adopted = adopt(project, GOLD / "inspect" / "sweep.eval", owner="me", outcome="failed", sample="good")
    seen = adopted.case.observation
    assert (seen.outcome, seen.outcome_from) == ("failed", "person")
    assert "inspect:score:includes=C" in seen.labels
    assert any("against" in sentence for sentence in adopted.warnings)


def test_a_persons_word_on_a_log_that_says_failed_too_changes_nothing(project: Project) -> None:
    adopted = adopt(project, GOLD / "inspect" / "limit.eval", owner="me", outcome="failed")
    assert (adopted.case.observation.outcome, adopted.case.observation.outcome_from) == ("failed", "log")


def test_redactions_count_what_was_written(project: Project, tmp_path: Path) -> None:
    key = "sk-" + "a1B2" * 8
    source = tmp_path / "x.json"
    source.write_text(
        FAILED.read_text()
        .replace("Look first.", f"Look first. {key}")
        .replace("no answer within 3 s", f"no answer in /home/alice/x {key}")
    )
    adopted = adopt(project, source, owner="me", case_id="one", title=f"leaks {key}")
    written = "".join(path.read_text() for path in adopted.written)
    assert key not in written
    assert "alice" not in written
    assert adopted.redactions == {"api_key": 2, "home_path": 1}
    assert written.count("REDACTED-api-key-1") == 3  # the title is a person's and not in the observation's counts
    assert any("placeholder" in sentence for sentence in adopted.warnings)


def test_a_disk_that_fails_leaves_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise FileError(["no"])

    monkeypatch.setattr(making, "write_new_case", full)
    with pytest.raises(FileError):
        adopt(project, FAILED, owner="me")
    assert not (project.root / "cases").exists()


def test_a_name_that_is_a_secret_is_no_file_of_a_work_tree(project: Project, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ("sk-" + "proj-" + "Ab3" * 12)).write_bytes(b"\0")
    with pytest.raises(UsageRefused, match="holds what looks like a secret") as caught:
        adopt(project, FAILED, owner="me", work_tree=tmp_path / "tree")
    assert "Ab3" not in caught.value.text


def test_a_source_whose_name_is_not_utf_8_is_read(project: Project, tmp_path: Path) -> None:
    source = tmp_path / "t\udcff.traj.json"
    shutil.copy(FAILED, source)
    adopted = adopt(project, source, owner="me")
    (name,) = load_case(adopted.folder).case.observation.source_digests
    assert name == "t\ufffd.traj.json"


def test_a_work_tree_is_taken_whole_or_not_at_all(
    project: Project, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_listing(monkeypatch, tree / "src")
    with pytest.raises(UsageRefused, match=r"Couldn't take the work tree .*: permission denied: .*src\."):
        adopt(project, FAILED, owner="me", work_tree=tree)
    assert not (project.root / "cases").exists()


MINI = GOLD / "mini-swe-agent"
SWEEP = GOLD / "inspect" / "sweep.eval"


def read_back(folder: Path) -> RegressionCase:
    return load_case(folder).case


def epochs(folder: Path, *endings: str, task: str = "calc", name: str = "run") -> Path:
    """Write one trial a file, all of one task: ``no-reply-N`` (no answer to step N), ``failed`` or ``passed``."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, ending in enumerate(endings, 1):
        lines: list[dict[str, Any]] = [
            {"kind": "trial", "schema": 1, "harness": "h 1", "run_id": f"{name}-{number}", "task_id": task}
            | {"attempt": number, "task_text": f"do {task}", "started_at": f"2026-04-12T09:{number:02}:00Z"}
            | {"conditions": {"max_workers": 8, "seed": number, "limits": {"step_limit": 9}}},
            {"kind": "step", "step": 0, "role": "user", "text": f"do {task}"},
        ]
        replies = int(ending.removeprefix("no-reply-")) - 1 if ending.startswith("no-reply") else 1
        for step in range(1, replies + 1):
            call = {"id": f"c{step}", "name": "bash", "arguments": "{}"}
            lines.append({"kind": "step", "step": step, "role": "assistant", "tool_calls": [call]})
            lines.append({"kind": "step", "step": step, "role": "tool", "tool_call_id": f"c{step}", "text": "ok"})
        if ending.startswith("no-reply"):
            error = {"kind": "error", "type": "APITimeoutError", "message": "timed out", "raised_by": "supplier"}
            lines += [error, {"kind": "end", "termination": "error", "outcome": "undetermined"}]
        else:
            lines.append({"kind": "end", "termination": "finished", "outcome": ending})
        path = folder / f"{name}-{number}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


class TestBaseline:
    """How often it failed: counted by the case's own symptom, over draws of the same population."""

    def test_epochs_of_one_task_give_a_baseline_of_the_task(self, project: Project, tmp_path: Path) -> None:
        logs = epochs(tmp_path / "logs", "no-reply-3", "passed", "no-reply-3", "no-reply-5", "failed", "passed")
        epochs(logs, "no-reply-3", "passed", task="other", name="other")
        adopted = adopt(project, logs, key="run-1.jsonl")
        baseline = read_back(adopted.folder).baseline
        assert baseline is not None
        # The call of the fourth is left unanswered at another step: as in a rerun, that is another failure.
        assert (baseline.failures, baseline.trials) == (2, 6)
        assert (baseline.kind, baseline.population) == ("all-attempts", "task")
        assert baseline.conditions == {"max_workers": 8, "limits": {"step_limit": 9}}
        found = [(each.attempt, each.failing_step) for each in read_back(adopted.folder).occurrences]
        assert found == [(3, 3), (4, 5)]

    def test_a_failure_by_outcome_is_counted_among_trials_with_one(self, project: Project, tmp_path: Path) -> None:
        logs = epochs(tmp_path / "logs", "failed", "passed", "undetermined", "failed")
        baseline = adopt(project, logs, key="run-1.jsonl").case.baseline
        assert baseline is not None
        assert (baseline.failures, baseline.trials) == (2, 3)

    def test_one_trial_of_a_task_has_no_baseline(self, project: Project, tmp_path: Path) -> None:
        logs = epochs(tmp_path / "logs", "no-reply-3")
        epochs(logs, "passed", task="other", name="other")
        adopted = adopt(project, logs)
        assert adopted.case.baseline is None
        assert adopted.case.occurrences == ()

    def test_copies_of_a_log_give_no_count(self, project: Project, tmp_path: Path) -> None:
        logs = epochs(tmp_path / "logs", "no-reply-3", "passed")
        shutil.copy(logs / "run-1.jsonl", logs / "copy.jsonl")
        adopted = adopt(project, logs, key="run-1.jsonl")
        assert adopted.case.baseline is None
        assert adopted.case.occurrences == ()
        (says,) = adopt_all(project, logs, Settings(owner="me", new=True, cases=tmp_path / "b")).warnings
        assert "1 failed trial is there again" in says
        assert says in adopted.warnings

    def test_cancelled_siblings_are_no_draws(self, project: Project) -> None:
        # good passed, bad failed, 3 was cancelled because of that: two draws of two tasks.
        (adopted,) = adopt_all(project, SWEEP, Settings(owner="me")).adopted
        baseline = adopted.case.baseline
        assert baseline is not None
        assert (baseline.failures, baseline.trials, baseline.population) == (1, 2, "sweep")


class TestAll:
    """One case a failure signature."""

    @pytest.fixture
    def logs(self, tmp_path: Path) -> Path:
        folder = epochs(tmp_path / "logs", "no-reply-3", "passed", "failed")
        epochs(folder / "deep" / "er", "no-reply-4", "failed", task="other", name="other")
        shutil.copy(MINI / "cut_off.traj.json", folder / "z.json")
        return folder

    def test_the_other_trials_of_a_signature_are_its_occurrences(self, project: Project, logs: Path) -> None:
        made = adopt_all(project, logs, Settings(owner="me"))
        cases = {each.case.title: read_back(each.folder) for each in made.adopted}
        assert set(cases) == {"no usable reply at step 4", "failed after step 1", "no reply at step 3"}
        unanswered = cases["no usable reply at step 4"]
        assert unanswered.observation.task_id == "other"
        assert [each.task_id for each in unanswered.occurrences] == ["calc"]
        assert unanswered.baseline is not None
        assert (unanswered.baseline.failures, unanswered.baseline.trials) == (2, 6)
        assert unanswered.baseline.population == "sweep"
        scored = cases["failed after step 1"].baseline
        assert scored is not None
        assert (scored.failures, scored.trials) == (2, 6)
        assert made.passed_over == ()

    def test_the_trial_that_says_most_becomes_the_case(self, project: Project, tmp_path: Path) -> None:
        logs = epochs(tmp_path / "logs", "failed", "failed")
        bare = (logs / "run-1.jsonl").read_text().splitlines()
        (logs / "run-1.jsonl").write_text("\n".join([bare[0], bare[-1]]) + "\n")
        (adopted,) = adopt_all(project, logs, Settings(owner="me")).adopted
        assert adopted.case.observation.attempt == 2

    def test_what_looks_like_a_case_is_passed_over_and_twice_is_refused(
        self, project: Project, logs: Path
    ) -> None:
        first = adopt(project, logs, key="run-3.jsonl")
        adopt(project, logs, key="run-1.jsonl", case_id="unanswered")
        made = adopt_all(project, logs, Settings(owner="me"))
        # Of scored failures only the very trial is known; an unanswered call is alike on any task.
        assert {each.case.title for each in made.adopted} == {"failed after step 1", "no reply at step 3"}
        over = {(each.signature, each.trials, each.why.partition(":")[0]) for each in made.passed_over}
        assert over == {
            ("finished:failed", ("run-3.jsonl",), f"Looks like {first.case.id}"),
            ("error:APITimeoutError:no-reply", ("run-1.jsonl",), "Looks like unanswered"),
            ("error:APITimeoutError:no-reply", ("deep/er/other-1.jsonl",), "Looks like unanswered"),
        }
        scored = next(each.case for each in made.adopted if each.case.title == "failed after step 1")
        assert scored.occurrences == ()
        assert scored.baseline is not None
        assert (scored.baseline.failures, scored.baseline.trials) == (2, 6)
        with pytest.raises(UsageRefused, match="Looks like") as caught:
            adopt_all(project, logs, Settings(owner="me"))
        assert caught.value.slug == "all-passed-over"

    def test_twice_gives_the_same_bytes(self, project: Project, logs: Path, tmp_path: Path) -> None:
        written = []
        for name in "ab":
            made = adopt_all(project, logs, Settings(owner="me", cases=tmp_path / name, new=True))
            written.append([path.read_bytes() for each in made.adopted for path in each.written])
        assert written[0] == written[1]

    @pytest.mark.parametrize(
        "stop", [WriteError("Couldn't write it: no space left on device."), KeyboardInterrupt()]
    )
    def test_all_are_written_or_none(
        self, project: Project, logs: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
    ) -> None:
        left = [2]

        def fails_in_the_end(*arguments: Any, **options: Any) -> list[Path]:
            left[0] -= 1
            if left[0] < 0:
                assert len(list((project.root / "cases").iterdir())) == 2
                raise stop
            return write_new_case(*arguments, **options)

        monkeypatch.setattr("pytest_regcase.session.new_cases.making.write_new_case", fails_in_the_end)
        with pytest.raises(type(stop)):
            adopt_all(project, logs, Settings(owner="me"))
        assert list((project.root / "cases").iterdir()) == []

    def test_nobody_owns_them_and_nothing_is_written(
        self, project: Project, logs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pytest_regcase.session.project.owners._git", lambda *_: None)
        with pytest.raises(UsageRefused, match="--owner"):
            adopt_all(project, logs, Settings())
        assert not (project.root / "cases").exists()

    def test_nothing_failed(self, project: Project, tmp_path: Path) -> None:
        with pytest.raises(ImportRefused, match="none of its 2 trials failed") as caught:
            adopt_all(project, epochs(tmp_path / "logs", "passed", "passed"), Settings(owner="me"))
        assert caught.value.slug == "passed"

    def test_a_bad_log_costs_no_other_and_is_said(self, project: Project, logs: Path) -> None:
        (logs / "bad.json").write_text('{"info": {}, "messages": [')
        listed = failed_trials(logs)
        assert [each.refusal.slug for each in listed.unreadable] == ["corrupt"]
        assert len(listed.failures) == 5
        assert listed.trials == 6
        made = adopt_all(project, logs, Settings(owner="me"))
        assert len(made.adopted) == 3
        assert any("bad.json" in each for each in made.warnings)


def test_what_looks_like_a_case_is_refused_unless_one_insists(project: Project, tmp_path: Path) -> None:
    first = adopt(project, epochs(tmp_path / "a", "no-reply-3"))
    again = epochs(tmp_path / "b", "no-reply-3", name="again")
    with pytest.raises(
        UsageRefused, match=f"Looks like {first.case.id}: the same symptom on the same task"
    ) as caught:
        adopt(project, again)
    assert caught.value.slug == "looks-like"
    assert "--new" in caught.value.text
    for logs, why in (
        (epochs(tmp_path / "c", "no-reply-4", name="step"), "at another step"),
        (epochs(tmp_path / "d", "no-reply-3", task="other", name="task"), "on another task"),
    ):
        with pytest.raises(UsageRefused, match=why):
            adopt(project, logs)
    with pytest.raises(UsageRefused, match="this very trial"):
        adopt(project, tmp_path / "a", case_id="another")
    assert adopt(project, again, new=True).folder.is_dir()
    assert adopt(project, epochs(tmp_path / "e", "failed", name="scored")).folder.is_dir()


def test_a_case_that_cannot_be_read_is_said_and_stops_nothing(project: Project, tmp_path: Path) -> None:
    (project.root / "cases" / "broken").mkdir(parents=True)
    (project.root / "cases" / "broken" / "case.toml").write_text("schema = ")
    adopted = adopt(project, FAILED)
    assert any("nothing was compared with it" in each for each in adopted.warnings)


class TestPersonsWord:
    """What a format cannot say."""

    def test_task_and_harness_are_marked_as_a_persons_word(self, project: Project) -> None:
        word = PersonsWord(task_id="calc-1")
        seen = read_back(adopt(project, FAILED, word=word).folder).observation
        assert (seen.task_id, seen.by_person) == ("calc-1", ("task_id",))

    def test_what_the_log_says_is_not_overwritten(self, project: Project) -> None:
        with pytest.raises(UsageRefused, match=r"--harness 'x': the log says 'mini-swe-agent"):
            adopt(project, FAILED, word=PersonsWord(harness="x"))

    def test_undetermined_can_be_said_too(self, project: Project) -> None:
        adopted = adopt(project, MINI / "submitted.traj.json", outcome="undetermined")
        seen = read_back(adopted.folder).observation
        assert (seen.outcome, seen.outcome_from) == ("undetermined", None)

    def test_who_says_passed_has_no_case(self, project: Project) -> None:
        with pytest.raises(ImportRefused, match="you say that the trial passed") as caught:
            adopt(project, FAILED, outcome="passed")
        assert caught.value.slug == "passed"
        assert not (project.root / "cases").exists()


class TestAttach:
    """A lower-level log beside the case."""

    def test_the_part_of_the_trials_time_is_recorded_and_shares_its_placeholders(
        self, project: Project, tmp_path: Path
    ) -> None:
        key = "sk-" + "a1B2" * 8
        logs = epochs(tmp_path / "logs", "no-reply-3")
        path = logs / "run-1.jsonl"
        path.write_text(path.read_text().replace('"ok"', json.dumps(f"ok {key}")))
        server = tmp_path / "server.log"
        server.write_text(
            f"2026-04-12 08:00:00 before\n2026-04-12 09:01:30 key {key}\n  trace\n2026-04-12 10:00:00 x\n"
        )
        adopted = adopt(project, logs, attachments=[server])
        name = "recorded/attached/server.log"
        assert (adopted.folder / name).read_text() == "2026-04-12 09:01:30 key REDACTED-api-key-1\n  trace\n"
        assert load_case(adopted.folder).case.observation.recorded[name] == digest(
            (adopted.folder / name).read_bytes()
        )
        assert adopted.redactions["api_key"] == 3
        assert any("2 lines of" in each and "2 minutes on either side" in each for each in adopted.warnings)

    def test_nothing_is_written_where_nothing_falls_into_the_window(
        self, project: Project, tmp_path: Path
    ) -> None:
        (tmp_path / "server.log").write_text("2020-01-01 08:00:00 x\n")
        with pytest.raises(UsageRefused, match="nothing of it lies in"):
            adopt(project, epochs(tmp_path / "logs", "no-reply-3"), attachments=[tmp_path / "server.log"])
        assert not (project.root / "cases").exists()


def test_a_whole_transcript_needs_full(project: Project, tmp_path: Path) -> None:
    logs = epochs(tmp_path / "logs", "no-reply-3")
    path = logs / "run-1.jsonl"
    path.write_text(path.read_text().replace('"ok"', json.dumps("o" * 300_000)))
    whole = adopt(project, logs, full=True, cases=tmp_path / "full")
    cut = adopt(project, logs)
    sizes = [(each.folder / "recorded" / "transcript.jsonl").stat().st_size for each in (cut, whole)]
    assert sizes[0] <= 256 * 1024 < 600_000 < sizes[1]
    assert any("--full keeps everything" in each for each in cut.warnings)


def test_what_a_person_keeps_is_recorded_with_the_reason(project: Project, tmp_path: Path) -> None:
    source = tmp_path / "x.json"
    source.write_text(FAILED.read_text().replace("Look first.", "Look first. ada@mail.corp.io"))
    adopted = adopt(project, source, keep=Keep(["email", "nothing"], "a made-up address"))
    (kept,) = load_case(adopted.folder).case.observation.kept
    assert (kept.what, kept.count, kept.why) == ("email", 1, "a made-up address")
    assert any("'nothing' kept nothing" in each for each in adopted.warnings)
    assert "ada@mail.corp.io" in (adopted.folder / "recorded" / "transcript.jsonl").read_text()


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """A SWE-bench run of one instance: trajectory, prediction and report, as three tools wrote them."""
    folder = tmp_path / "run"
    (folder / "logs" / "calc__calc-1").mkdir(parents=True)
    document = json.loads((MINI / "submitted.traj.json").read_text())
    (folder / "calc__calc-1.traj.json").write_text(json.dumps({**document, "instance_id": "calc__calc-1"}))
    prediction = {"instance_id": "calc__calc-1", "model_name_or_path": "m", "model_patch": "diff --git a/x b/x\n"}
    (folder / "preds.jsonl").write_text(json.dumps(prediction) + "\n")
    tests = {"FAIL_TO_PASS": {"success": [], "failure": ["t"]}, "PASS_TO_PASS": {"success": [], "failure": []}}
    report = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "resolved": False}
    (folder / "logs" / "calc__calc-1" / "report.json").write_text(
        json.dumps({"calc__calc-1": {**report, "tests_status": tests}})
    )
    return folder


def test_a_report_and_a_trajectory_of_one_instance_are_one_case(project: Project, instance: Path) -> None:
    adopted = adopt(project, instance)
    seen = load_case(adopted.folder).case.observation
    assert (seen.task_id, seen.outcome, seen.outcome_from) == ("calc__calc-1", "failed", "log")
    assert seen.termination == "finished"
    assert "swe-bench:resolved=false" in seen.labels
    assert "mini:exit_status:Submitted" in seen.labels
    assert len(load_case(adopted.folder).reply_lines()) > 0
    assert {"report.json", "preds.jsonl", "calc__calc-1.traj.json"} <= set(seen.source_digests)
    assert any("joined from the" in each for each in adopted.missing)


def test_a_trajectory_whose_report_says_resolved_is_refused_as_passed(project: Project, instance: Path) -> None:
    path = instance / "logs" / "calc__calc-1" / "report.json"
    path.write_text(path.read_text().replace('"resolved": false', '"resolved": true').replace('["t"]', "[]"))
    with pytest.raises(ImportRefused) as caught:
        adopt(project, instance)
    assert caught.value.slug == "passed"


@pytest.mark.parametrize(("samples", "signatures"), [("inspect", 2), ("mini-swe-agent", 3), ("trial-jsonl", 2)])
def test_every_sample_becomes_the_case_that_its_file_holds(
    project: Project, samples: str, signatures: int
) -> None:
    made = adopt_all(project, GOLD / samples, Settings(owner="me"))
    assert len(made.adopted) == signatures
    for each in made.adopted:
        assert load_case(each.folder).case.model_copy(update={"seal": None}) == each.case


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """An Inspect log of a killed run: one sample passed, two left no record."""
    document = json.loads((GOLD / "inspect" / "sweep.json").read_text())
    document["status"] = "started"
    document["samples"] = [each for each in document["samples"] if each["id"] == "good"]
    (tmp_path / "killed.json").write_text(json.dumps(document))
    return tmp_path / "killed.json"


def test_trials_without_a_record_are_counted_nowhere(project: Project, killed: Path) -> None:
    assert [each.has_record for each in failed_trials(killed).failures] == [False, False]
    with pytest.raises(ImportRefused, match="each of its 2 failed trials left no record") as caught:
        adopt_all(project, killed, Settings(owner="me"))
    assert caught.value.slug == "no-record"
    adopted = adopt(project, killed, sample="bad")
    assert adopted.case.observation.termination == "cut-off"
    assert adopted.case.baseline is None
    found = scan(project, [killed])
    assert (found.known, found.new, len(found.not_counted), found.passed) == ({}, {}, 2, 1)
