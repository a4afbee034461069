"""Counting sweeps as live attempts: what counts, once, for which revision, and what never does."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_regcase.case_files import seal_case
from pytest_regcase.errors import ImportRefused, UsageRefused
from pytest_regcase.ledger.merge import invalidate
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.session.gate import ledger_for
from pytest_regcase.session.ledgers.exchange import merge_ledger
from tests.session.sweeps.count_project import (
    CASE,
    FIXED_AT,
    PYPROJECT,
    SWEPT_AT,
    TASK,
    CountProject,
    Made,
    git,
    make_count_project,
    recurred,
    sweep,
)

GOLD = Path(__file__).parents[2] / "gold"


@pytest.fixture(scope="module")
def _written(tmp_path_factory: pytest.TempPathFactory) -> CountProject:
    return make_count_project(tmp_path_factory.mktemp("count") / "project")


@pytest.fixture
def unclaimed(_written: CountProject, tmp_path: Path) -> CountProject:
    """The project without a claimed fix."""
    root = tmp_path / "project"
    shutil.copytree(_written.root, root)
    return CountProject(root, _written.broken, _written.fixed)


@pytest.fixture
def made(unclaimed: CountProject) -> CountProject:
    """The project with a fix claimed at its present revision."""
    unclaimed.claim()
    return unclaimed


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "sweep"


def rows(project: CountProject) -> list[tuple[int, str]]:
    return [(each.run, each.verdict) for each in project.rows()]


def clean(project: CountProject, *numbers: int, **given: Any) -> list[Made]:
    return [Made(number, project.fixed, **given) for number in numbers]


def test_trials_of_the_fixed_revision_count_in_the_order_of_their_times(made: CountProject, logs: Path) -> None:
    trials = [
        *clean(made, 3, 1),
        recurred(2, made.fixed),
        Made(4, made.fixed, error="ValueError", raised_by="agent"),
    ]
    found = made.count(sweep(logs, trials))
    assert rows(made) == [(1, "clean"), (2, "recurred"), (3, "clean"), (4, "failed-otherwise")]
    assert [each.record.run for each in found.counted] == [1, 2, 3, 4]
    assert found.trials == 4
    assert found.claim is not None
    assert (found.claim.clean, found.claim.refuted_by_run, found.state) == (1, 2, "regressed")


@pytest.mark.parametrize("event_id", ["trial-1", "a-task-and-its-number-001"])
def test_trials_of_two_sweeps_that_number_them_alike_are_two(
    made: CountProject, logs: Path, event_id: str
) -> None:
    later = SWEPT_AT + timedelta(days=1)
    for trial in (Made(1, made.fixed, run_id=None), recurred(1, made.fixed, run_id=None, at=later)):
        path = trial.write(logs)
        path.write_text(path.read_text().replace('"trial-number-0001-None"', f'"{event_id}"'))
        found = made.count(path)
        assert (len(found.counted), found.known) == (1, [])
        assert made.count(path).counted == []
    assert rows(made) == [(1, "clean"), (2, "recurred")]


def test_where_the_claim_stands_is_what_the_gate_says(made: CountProject, logs: Path) -> None:
    found = made.count(sweep(logs, clean(made, 1, 2, 3)))
    assert found.claim is not None
    assert (found.claim.clean, found.claim.need, found.claim.fresh, found.claim.sessions) == (3, 5, 3, 1)
    found = made.count(sweep(logs / "2", clean(made, 1, 2, run_id="run-2")))
    assert found.claim is not None
    assert (found.claim.clean, found.claim.settled, found.claim.sessions) == (5, True, 2)
    assert [run for run, _ in rows(made)] == [1, 2, 3, 4, 5]


def test_a_counted_row_says_what_its_log_says(made: CountProject, logs: Path) -> None:
    conditions = {"timeouts": {"call_timeout": 60}, "seed_of_nothing": 1}
    made.count(sweep(logs, clean(made, 1, model="m-1", conditions=conditions)))
    (row,) = made.rows()
    assert row.session_id.startswith("sweep-")
    assert row.started_at == SWEPT_AT + timedelta(minutes=1)
    assert row.duration_seconds == 30
    assert row.folder is None
    assert row.conditions == {
        "trial": "h/run-1/calc-1/attempt-1#trial-number-0001-run-1",
        "harness": "h 1.0",
        "revision": made.fixed,
        "model": "m-1",
        "timeouts": {"call_timeout": 60},
    }
    assert row.draw is not None
    assert (row.draw.source, row.draw.fresh, len(row.draw.upstream_ids)) == ("sweep", True, 4)
    with ledger_for(made.project) as ledger:
        session = ledger.session(row.session_id)
    assert session is not None
    assert (session.source, session.planned, session.started_at) == ("sweep", (), row.started_at)
    assert session.finished_at == row.started_at + timedelta(seconds=30)


@pytest.mark.parametrize("again", ["same", "copied", "larger", "renamed"])
def test_a_log_counts_once_wherever_it_lies(made: CountProject, logs: Path, again: str) -> None:
    sweep(logs, [*clean(made, 1, 2), recurred(3, made.fixed)])
    made.count(logs)
    before = made.rows()
    other = logs
    if again == "copied":
        other = shutil.copytree(logs, logs.parent / "elsewhere" / "copy")
    elif again == "larger":
        other = logs.parent / "all"
        shutil.copytree(logs, other / "a" / "b")
        shutil.copytree(logs, other / "c")
    elif again == "renamed":
        (logs / "trial-run-1-1.jsonl").rename(logs / "x.jsonl")
    found = made.count(other)
    assert made.rows() == before
    assert found.counted == []
    assert (len(found.known), found.trials) == (3, 3)
    assert len(found.copies) == (3 if again == "larger" else 0)


def test_a_log_that_two_ledgers_counted_is_one_after_a_merge(
    made: CountProject, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under whichever numbers it was counted there, none is refused and none counts twice."""
    sweep(logs / "1", clean(made, 1, 2))
    sweep(logs / "2", clean(made, 1, run_id="run-2"))
    other = f"sqlite:///{tmp_path}/other.sqlite3"
    with monkeypatch.context() as there:
        there.setenv("REGCASE_LEDGER", other)
        made.count(logs / "2")
        made.count(logs / "1")
    made.count(logs / "1")
    made.count(logs / "2")
    with ledger_for(made.project) as ledger:
        merge_ledger(ledger, other)
    found = made.count(logs / "1", logs / "2")
    assert (found.counted, len(found.known)) == ([], 3)
    assert found.claim is not None
    assert found.claim.clean <= 3


def test_what_ran_is_told_by_the_commit(made: CountProject, logs: Path) -> None:
    """Trials of the broken commit ran before the fix; those of one that nobody knows count for none."""
    (made.root / "agent.py").write_text("timeout = 20\n")
    git(made.root, "commit", "-qam", "later")
    later = git(made.root, "rev-parse", "HEAD")
    git(made.root, "checkout", "-q", made.fixed)
    trials = [
        Made(1, made.broken),
        Made(2, made.fixed[:8]),
        Made(3, f"agent@{made.fixed}"),
        Made(4, later),
        Made(5, "0123456789abcdef"),
        Made(6, f"{made.fixed[:8]} dirty"),
        Made(7, None),
        Made(8, "v1.2"),
    ]
    found = made.count(sweep(logs, trials))
    assert [each.present for each in found.counted] == [True, True, False, False, False, False, False]
    assert list(found.set_aside.values()) == ["it ran at the revision that the case failed at, before fix 1"]
    assert sorted(found.unknown.values()) == [1, 1, 1, 1]
    assert found.claim is not None
    assert found.claim.clean == 2
    assert len({each.record.digests.agent for each in found.counted}) == 6


def test_the_digest_that_our_own_runs_record_is_taken_as_it_is(made: CountProject, logs: Path) -> None:
    present = made.case.case.fix[0].revision
    assert [each.present for each in made.count(sweep(logs, [Made(1, present)])).counted] == [True]


def test_a_sweep_of_the_fixed_revision_counts_also_where_it_ran_before_the_claim(
    made: CountProject, logs: Path
) -> None:
    early = FIXED_AT - timedelta(days=2)
    trials = [Made(1, made.fixed, at=early), Made(2, made.broken, at=early), Made(3, None, at=early)]
    found = made.count(sweep(logs, trials))
    assert rows(made) == [(1, "clean")]
    assert list(found.set_aside.values()) == [
        "it ran at the revision that the case failed at, before fix 1",
        "it ran before fix 1 was claimed",
    ]


def test_where_the_fix_changed_nothing_of_the_agent_the_time_decides(unclaimed: CountProject, logs: Path) -> None:
    """A server's configuration was fixed: the same revision ran before and after."""
    git(unclaimed.root, "checkout", "-q", unclaimed.broken)
    unclaimed.claim()
    trials = [Made(1, unclaimed.broken, at=FIXED_AT - timedelta(hours=1)), Made(2, unclaimed.broken)]
    found = unclaimed.count(sweep(logs, trials))
    assert rows(unclaimed) == [(1, "clean")]
    assert list(found.set_aside.values()) == ["it ran before fix 1 was claimed"]


def test_without_a_claimed_fix_trials_are_recorded_and_count_for_no_later_one(
    unclaimed: CountProject, logs: Path
) -> None:
    found = unclaimed.count(sweep(logs, clean(unclaimed, 1, 2)))
    assert (found.has_fix, found.claim, len(found.counted)) == (False, None, 2)
    unclaimed.claim()
    found = unclaimed.count(logs)
    assert (len(found.known), found.claim and found.claim.clean) == (2, 0)


def test_the_model_is_told_by_the_log(tmp_path: Path, logs: Path) -> None:
    pyproject = PYPROJECT + 'model = "m-1"\n[tool.regcase.upstream]\nbase_url = "http://models.example/v1"\n'
    made = make_count_project(tmp_path / "project", pyproject=pyproject)
    made.claim()
    server = {"model_base_url": "http://elsewhere.example/v1"}
    trials = [
        Made(1, made.fixed, model="provider/m-1"),
        Made(2, made.fixed, model="m-2"),
        Made(3, made.fixed),
        Made(4, made.fixed, model="m-1", conditions=server),
        Made(5, made.fixed, model="m-1", conditions={"model_base_url": "http://models.example/v1/"}),
    ]
    found = made.count(sweep(logs, trials))
    assert [each.present for each in found.counted] == [True, False, False, False, True]
    assert found.assumed == {"the model server was http://models.example/v1, as configured"}


def test_a_cut_off_log_counts_nothing_and_is_named(made: CountProject, logs: Path) -> None:
    sweep(logs, [*clean(made, 1), Made(2, made.fixed, ended=False), recurred(3, made.fixed, ended=False)])
    found = made.count(logs)
    assert rows(made) == [(1, "clean")]
    assert found.not_whole == {
        "trial-run-1-2.jsonl": "it is cut off: what is lost of it may be what failed",
        "trial-run-1-3.jsonl": "it is cut off: what is lost of it may be what failed",
    }


def test_what_was_not_run_to_an_end_of_its_own_is_no_draw(made: CountProject, logs: Path) -> None:
    trials = [
        Made(1, made.fixed, termination="cancelled"),
        Made(2, made.fixed, termination="never-started"),
        Made(3, made.fixed, error="DockerError", raised_by="environment"),
        Made(4, made.fixed, replies=1),
        *clean(made, 5),
    ]
    found = made.count(sweep(logs, trials))
    assert rows(made) == [(1, "clean")]
    assert list(found.not_run.values()) == [
        "termination = cancelled",
        "its end line says that it never started",
        "ended by an error of the environment: DockerError: it broke; the symptom's error is APITimeoutError",
        "ended well after 1 of the 3 replies up to the recorded failing step",
    ]
    assert found.trials == 5


def test_other_tasks_are_no_draws_of_the_case(made: CountProject, logs: Path) -> None:
    found = made.count(sweep(logs, [*clean(made, 1), *clean(made, 2, 3, task="calc-2")]))
    assert (found.trials, found.other_tasks) == (1, 2)


def with_baseline(keys: str) -> str:
    return CASE.replace("[symptom_match]", f"[baseline]\n{keys}\n\n[symptom_match]")


def test_of_a_baseline_over_a_sweep_all_trials_count(tmp_path: Path, logs: Path) -> None:
    """In an order that has nothing to do with the tasks, and without the step, which differs from task to task."""
    case = with_baseline('failures = 20\ntrials = 200\nkind = "all-attempts"\npopulation = "sweep"')
    made = make_count_project(tmp_path / "project", case=case)
    made.claim()
    trials = [Made(n, made.fixed, task=f"calc-{n}", replies=2) for n in range(2, 12)]
    trials.append(recurred(12, made.fixed, task="calc-9"))
    found = made.count(sweep(logs, trials))
    assert (found.population, found.other_tasks, len(found.counted)) == ("sweep", 0, 11)
    assert sum(row.verdict == "recurred" for row in made.rows()) == 1
    in_order = [row.started_at for row in sorted(made.rows(), key=lambda each: each.run)]
    assert in_order != sorted(in_order)


def test_what_the_case_was_made_of_and_its_baseline_are_never_counted(tmp_path: Path, logs: Path) -> None:
    case = with_baseline('failures = 1\ntrials = 9\nkind = "all-attempts"')
    case += '\n[[occurrences]]\nsource_event = "h/run-7/calc-1/attempt-7#trial-number-0007-run-7"\n'
    made = make_count_project(tmp_path / "project", case=case)
    made.claim()
    trials = [
        *clean(made, 1, 2, run_id="run-0"),
        recurred(7, made.fixed, run_id="run-7"),
        *clean(made, 8, run_id="run-7"),
    ]
    found = made.count(sweep(logs, trials))
    assert rows(made) == [(1, "clean")]
    assert sorted(found.set_aside.values()) == [
        "it is of the sweep that the baseline counts",
        "it is of the sweep that the baseline counts",
        "the case was made of it, or lists it",
    ]


def test_only_replies_with_the_suppliers_own_new_ids_are_fresh_draws(made: CountProject, logs: Path) -> None:
    """Canned answers, and a seed that comes again, are one draw however often they are made."""
    without = clean(made, 1, with_ids=False)
    seeded = [Made(n, made.fixed, run_id="run-2", conditions={"generate": {"seed": 7}}) for n in (2, 3)]
    cached = [Made(4, made.fixed, run_id="run-3")]
    sweep(logs, [*without, *seeded, *cached])
    again = (logs / "trial-run-3-4.jsonl").read_text().replace("trial-number-0004", "trial-number-0005")
    (logs / "again.jsonl").write_text(again.replace(":04:", ":05:"))
    found = made.count(logs)
    assert [each.fresh for each in found.counted] == [False, True, False, True, False]
    assert [each.record.run for each in found.counted] == [1, 1, 2, 2, 3]
    assert found.claim is not None
    assert (found.claim.clean, found.claim.fresh) == (2, 2)


def test_a_retried_attempt_is_a_draw_that_failed(unclaimed: CountProject, tmp_path: Path) -> None:
    """An Inspect log whose sample was made again after an error: the error stands beside the sample."""
    log = json.loads((GOLD / "inspect" / "sweep.json").read_text())
    (good,) = (each for each in log["samples"] if each["id"] == "good")
    errors = ("APITimeoutError", "OSError")
    good["error_retries"] = [{"message": f"{each}('x')", "traceback": "", "traceback_ansi": ""} for each in errors]
    log["samples"], log["eval"]["dataset"]["sample_ids"] = [good], ["good"]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    case, _, _ = unclaimed.path.read_text().partition("[seal]")
    case = case.replace(f'task_id = "{TASK}"', f'task_id = "{log["eval"]["task"]}/good"')
    unclaimed.path.write_text(case.replace("failing_step = 3", "failing_step = 1"))
    seal_case(unclaimed.path)
    found = unclaimed.count(path)
    assert [(each.record.verdict, each.retried) for each in found.counted] == [
        ("recurred", True),
        ("failed-otherwise", True),
        ("clean", False),
    ]
    assert unclaimed.count(path).counted == []


def test_an_invalidated_row_does_not_come_back(made: CountProject, logs: Path) -> None:
    sweep(logs, clean(made, 1, 2))
    first = made.count(logs).counted[0].record
    with ledger_for(made.project) as ledger:
        invalidate(ledger, why="a proxy answered", at=SWEPT_AT, attempt_id=first.attempt_id, session_id=None)
    found = made.count(logs)
    assert list(found.set_aside.values()) == ["its row in the ledger was invalidated"]
    assert len(made.rows()) == 1


def test_a_dry_run_writes_nothing(made: CountProject, logs: Path) -> None:
    found = made.count(sweep(logs, clean(made, 1, 2)), dry_run=True)
    assert len(found.counted) == 2
    assert made.rows() == []
    assert found.claim is not None
    assert found.claim.clean == 0


def test_a_path_that_cannot_be_read_loses_none_of_the_others(made: CountProject, logs: Path) -> None:
    sweep(logs, clean(made, 1))
    found = made.count(logs, logs / "nowhere")
    assert (len(found.counted), len(found.unreadable)) == (1, 1)
    with pytest.raises(ImportRefused):
        made.count(logs / "nowhere")


def test_nothing_counts_for_a_retired_case(made: CountProject, logs: Path) -> None:
    with made.path.open("a") as file:
        file.write('\n[[retired]]\nat = 2026-05-19T00:00:00Z\nby = "mina"\nwhy = "gone"\n')
    with pytest.raises(UsageRefused, match="it is retired"):
        made.count(sweep(logs, clean(made, 1)))


@pytest.fixture(scope="module")
def counted_in_parts(
    _written: CountProject, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[list[list[int]]], list[AttemptRecord]]]:
    """Count the logs of a sweep in the given parts, into a ledger of its own."""
    root = tmp_path_factory.mktemp("parts")
    project = CountProject(shutil.copytree(_written.root, root / "project"), _written.broken, _written.fixed)
    project.claim()
    trials = [
        *clean(project, 0, 1),
        recurred(2, project.fixed),
        Made(3, None),
        Made(4, project.broken),
        Made(5, project.fixed, with_ids=False),
    ]
    paths = [each.write(root / "logs") for each in trials]
    with pytest.MonkeyPatch.context() as patch:
        made = iter(range(1000))

        def counted(parts: list[list[int]]) -> list[AttemptRecord]:
            patch.setenv("REGCASE_LEDGER", f"sqlite:///{root}/{next(made)}.sqlite3")
            for part in parts:
                project.count(*(paths[number] for number in part))
            return project.rows()

        yield counted


LOGS = list(range(6))


@pytest.fixture(scope="module")
def whole(counted_in_parts: Callable[[list[list[int]]], list[AttemptRecord]]) -> list[AttemptRecord]:
    """What counting all logs at once gives."""
    return counted_in_parts([LOGS])


@given(
    order=st.permutations(LOGS), cuts=st.sets(st.integers(1, 5)), more=st.lists(st.sampled_from(LOGS), max_size=3)
)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_rows_do_not_depend_on_how_a_sweep_is_counted(
    counted_in_parts: Callable[[list[list[int]]], list[AttemptRecord]],
    whole: list[AttemptRecord],
    order: list[int],
    cuts: set[int],
    more: list[int],
) -> None:
    """In any parts, in any order, any of them again: the same rows, and of one revision the same run numbers."""
    ends = [0, *sorted(cuts), len(order)]
    parts = [order[start:end] for start, end in pairwise(ends)]
    found = counted_in_parts([*parts, *([more] if more else [])])
    assert _content(found) == _content(whole)
    assert _numbers(found) == _numbers(whole)


def _numbers(records: list[AttemptRecord]) -> list[tuple[str, int]]:
    """The run numbers of each revision that something decides; what repeats a draw decides none."""
    deciding = [each for each in records if each.verdict == "recurred" or (each.draw and each.draw.fresh)]
    return sorted((each.digests.agent, each.run) for each in deciding)


def _content(records: list[AttemptRecord]) -> list[Any]:
    plain = [each.model_copy(update={"run": 1}).to_plain() for each in records]
    return sorted(plain, key=lambda each: str(each["attempt_id"]))
