"""A function of the test process as the agent: what can be seen of it, and what is never called kept."""

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import load_simulations
from pytest_regcase.config import UpstreamConfig
from pytest_regcase.demo.agent import DemoAgent, Settings
from pytest_regcase.demo.chat import SupplierFailure
from pytest_regcase.errors import MachineryError, UsageRefused
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord
from pytest_regcase.records.trial import Trial
from pytest_regcase.session.attempts.function_attempt import RETURNED, FunctionAttempt, FunctionEnd
from pytest_regcase.session.attempts.function_fixture import RegcaseFixture
from pytest_regcase.session.functions import for_function
from pytest_regcase.session.plan import plan_case
from pytest_regcase.supplier.process import SupplierProcess
from tests.live.local_upstream import LocalUpstream, serving
from tests.session.attempt_project import AttemptProject, make_project

AGENT = "test_agent.py::test_mine"
AUTH, KILLED, SILENT = "auth-rejected-v1", "oom-killed-v1", "deadline-no-answer-v1"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> AttemptProject:
    """One project for all: every attempt has a folder of its own."""
    folder = tmp_path_factory.mktemp("function")
    return make_project(folder, ["unused"], stop_within_seconds=50, deadline_seconds=55)


def begun(project: AttemptProject, scenario: str) -> FunctionAttempt:
    """Begin an attempt of the function."""
    own, snapshot = for_function(project.project, project.loaded, project.snapshot, AGENT, "sha256:1")
    simulations = load_simulations(own)
    (plan,) = (
        each for each in plan_case(own, project.loaded, simulations, snapshot) if each.key.scenario == scenario
    )
    return FunctionAttempt(own, project.loaded, simulations.get(scenario), plan, snapshot, try_number=0)


def run(
    project: AttemptProject, scenario: str, function: Callable[[RegcaseFixture], Any], *, own_check: bool = False
) -> AttemptRecord:
    """Call the function as a test would be called, and judge."""
    attempt = begun(project, scenario)
    ended = RETURNED
    try:
        function(RegcaseFixture(attempt))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        ended = FunctionEnd("own-check" if own_check else "raised", text, text)
    return attempt.finish(ended)


class Raises(DemoAgent):
    """Does not give up in good order: the first failure comes out of it."""

    def may_retry(self, failure: SupplierFailure, retries: int) -> bool:  # noqa: ARG002 - as the demo agent has it
        return False

    def give_up(self, failure: SupplierFailure) -> int:
        raise failure


class Patient(Raises):
    """Waits for ever."""

    def request_timeout_seconds(self) -> float | None:
        return None


def demo(regcase: RegcaseFixture, kind: type[DemoAgent] = DemoAgent, *, leaves: bool = False) -> int:
    """Run the demo agent here; its log is put where nobody looks, unless it `leaves` it in the output folder."""
    settings = Settings(
        task_text=regcase.task,
        out_dir=regcase.out_dir if leaves else regcase.out_dir.parent / "elsewhere",
        work_dir=regcase.work_dir,
        base_url=regcase.openai_base_url,
        api_key=regcase.api_key,
        model=regcase.model,
        timeout_seconds=5,
    )
    return kind(settings).run()


def demo_attached(regcase: RegcaseFixture) -> None:
    demo(regcase, leaves=True)
    regcase.attach(regcase.out_dir)


def statuses(record: AttemptRecord) -> dict[str, str]:
    return {each.expectation: each.status for each in record.findings}


def says(record: AttemptRecord, expectation: str) -> str:
    return next(each.says for each in record.findings if each.expectation == expectation)


def test_a_good_agent_that_attaches_its_log_recovers_and_everything_is_seen(project: AttemptProject) -> None:
    record = run(project, AUTH, demo_attached)
    assert record.verdict == "recovered", record.says
    assert set(statuses(record).values()) == {"kept"}
    assert (record.agent, record.digests.agent) == (AGENT, "sha256:1")
    # There was no process, so there is no exit code.
    assert (record.exit.code, record.conditions) == (None, {"in_process": True})
    assert record.trial.termination == "error"
    assert record.said is not None


def test_the_control_follows_the_recording(project: AttemptProject) -> None:
    record = run(project, "control", demo_attached)
    assert record.verdict == "finished", record.says


def test_what_it_raises_is_its_end_its_log_and_its_mark(project: AttemptProject) -> None:
    record = run(project, AUTH, lambda regcase: demo(regcase, Raises))
    assert record.verdict == "recovered", record.says
    assert says(record, "log_failure") == "the failure is logged in raised"
    assert says(record, "mark_failure").startswith("no status is written, but it raised ")
    assert record.conditions["raised"].startswith("SupplierFailure: ")


def test_one_that_returns_as_if_nothing_had_happened_has_not_marked_the_failure(project: AttemptProject) -> None:
    record = run(project, AUTH, demo)
    assert record.verdict == "not-recovered"
    assert says(record, "mark_failure") == "no status says that it failed, and it returned"
    # It says on stderr that it failed; but pytest captured that, so nobody knows.
    assert statuses(record)["log_failure"] == "not-observable"


def test_what_it_leaves_in_its_output_folder_is_a_log(project: AttemptProject) -> None:
    def logs(regcase: RegcaseFixture) -> None:
        try:
            demo(regcase, Raises)
        except SupplierFailure as failure:
            (regcase.out_dir / "agent.log").write_text(f"ERROR: the model call failed: {failure}\n")
            raise

    record = run(project, AUTH, logs)
    assert says(record, "log_failure") == "the failure is logged in out/agent.log"


def test_its_own_failed_check_is_never_green_whatever_the_judge_found(project: AttemptProject) -> None:
    def checks(regcase: RegcaseFixture) -> None:
        demo_attached(regcase)
        raise AssertionError("no banner on the page")

    record = run(project, AUTH, checks, own_check=True)
    assert record.verdict == "not-recovered"
    assert not record.broken
    assert record.says is not None
    assert record.says.startswith("the function's own check failed: AssertionError: no banner on the page; ")
    assert run(project, "control", checks, own_check=True).verdict == "did-not-finish"


def test_a_function_that_hangs_gets_its_supplier_taken_away(tmp_path: Path) -> None:
    project = make_project(tmp_path, ["unused"], stop_within_seconds=0.2, deadline_seconds=0.4)
    record = run(project, SILENT, lambda regcase: demo(regcase, Patient))
    assert record.verdict == "not-recovered"
    assert record.exit.ended_by == "deadline"
    assert says(record, "stop_within_seconds").startswith("still waiting for an answer ")
    # What it raised is our doing, as an exit code after our signal would be.
    assert statuses(record)["log_failure"] == statuses(record)["mark_failure"] == "not-observable"


def test_connects_to_a_supplier_that_is_gone_leave_no_trace(project: AttemptProject) -> None:
    record = run(project, KILLED, lambda regcase: demo(regcase, Raises))
    assert record.verdict == "recovered", record.says
    assert statuses(record)["max_retries"] == "not-observable"
    assert "(the end of the function)" in says(record, "stop_within_seconds")


def test_where_nothing_is_asked_nothing_is_started(
    project: AttemptProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    for scenario in ("control", AUTH):
        record = run(project, scenario, lambda regcase: (regcase.task, regcase.task_id, regcase.scenario))
        assert (record.verdict, record.reason, record.folder) == ("inconclusive", "not-delivered", None)


def test_the_fields_are_those_of_the_attempt(project: AttemptProject) -> None:
    seen: list[Any] = []

    def looks(regcase: RegcaseFixture) -> None:
        assert regcase.simulation is not None
        seen.extend([regcase.scenario, regcase.simulation.hypothesis, regcase.task_id])
        seen.extend([regcase.work_dir.joinpath("sums.py").is_file(), list(regcase.out_dir.iterdir())])
        seen.append(regcase.openai_base_url == f"{regcase.anthropic_base_url}/v1")
        with urllib.request.urlopen(f"{regcase.openai_base_url}/models") as answer:
            seen.append(answer.status)

    record = run(project, AUTH, looks)
    assert seen == [AUTH, "auth", "calc-step-3", True, [], True, 200]
    assert (record.verdict, record.reason) == ("inconclusive", "not-delivered")
    assert record.folder is not None
    assert "/calc-step-3.auth-rejected-v1.1.0.test_mine" in record.folder


@pytest.mark.parametrize("wrong", [7, None])
def test_what_cannot_be_attached_is_refused_and_not_hidden_by_swallowing_that(
    project: AttemptProject, wrong: Any
) -> None:
    def swallows(regcase: RegcaseFixture) -> None:
        with pytest.raises(UsageRefused, match=r"Couldn't attach a (int|NoneType)\.\nAttach the path"):
            regcase.attach(wrong)

    record = run(project, AUTH, swallows)
    assert (record.verdict, record.reason) == ("inconclusive", "machinery-broke")


def test_a_second_trial_is_refused(project: AttemptProject) -> None:
    def twice(regcase: RegcaseFixture) -> None:
        regcase.attach(Trial(format="mine", event_id="1", event_id_from="recorded"))
        regcase.attach("log.json")

    record = run(project, AUTH, twice)
    assert record.says == "Couldn't attach a second trial: an attempt has one.\nAttach one."


def test_a_log_that_nobody_can_read_shows_nothing_and_says_why(project: AttemptProject, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("nothing that an importer knows")

    def attaches(regcase: RegcaseFixture) -> None:
        regcase.attach(str(log))
        demo(regcase, Raises)

    record = run(project, AUTH, attaches)
    assert statuses(record)["no_fabricated_output"] == "not-observable"
    assert "log.txt" in says(record, "no_fabricated_output")


@pytest.mark.parametrize("whole_folder", [True, False])
def test_a_log_of_an_earlier_attempt_shows_nothing_of_this_one(
    project: AttemptProject, tmp_path: Path, whole_folder: bool
) -> None:
    def kept(regcase: RegcaseFixture) -> None:
        demo_attached(regcase)
        shutil.copy2(regcase.out_dir / "trial.jsonl", tmp_path)

    assert run(project, AUTH, kept).verdict == "recovered"
    # A file's time is that of a timer tick, and two attempts here follow one another faster than an agent's would.
    written = (tmp_path / "trial.jsonl").stat().st_mtime - 0.1
    os.utime(tmp_path / "trial.jsonl", (written, written))

    def dies_before_it_writes(regcase: RegcaseFixture) -> None:
        (tmp_path / "notes.txt").write_text("another file, of now")
        demo(regcase)
        regcase.attach(tmp_path if whole_folder else tmp_path / "trial.jsonl")

    record = run(project, AUTH, dies_before_it_writes)
    assert record.verdict == "not-recovered"
    assert statuses(record)["mark_failure"] == "broken"
    assert statuses(record)["no_fabricated_output"] == "not-observable"
    assert "trial.jsonl was last written before this attempt began" in says(record, "no_fabricated_output")


def test_a_supplier_that_does_not_come_up_proves_nothing(
    project: AttemptProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_supplier(*_: object, **__: object) -> SupplierProcess:
        raise MachineryError("Couldn't start the supplier: no more processes.\nTry again.")

    monkeypatch.setattr(SupplierProcess, "start", no_supplier)

    def swallows(regcase: RegcaseFixture) -> None:
        with pytest.raises(MachineryError):
            demo(regcase)

    record = run(project, AUTH, swallows)
    assert (record.reason, record.says) == (
        "machinery-broke",
        "Couldn't start the supplier: no more processes.\nTry again.",
    )


def test_an_attempt_that_is_given_up_leaves_no_supplier(project: AttemptProject) -> None:
    attempt = begun(project, AUTH)
    url = RegcaseFixture(attempt).openai_base_url
    attempt.close()
    attempt.close()
    # Refused, or by a stranger who got the port since; a supplier of ours would have a list of models.
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{url}/models")


def live(
    project: AttemptProject, function: Callable[[RegcaseFixture], Any], base_url: str | None
) -> AttemptRecord:
    """Make one live run of the function against the supplier at `base_url`."""
    upstream = None if base_url is None else UpstreamConfig(base_url=base_url)
    config = project.project.config.model_copy(update={"upstream": upstream})
    own, snapshot = for_function(
        replace(project.project, config=config), project.loaded, project.snapshot, AGENT, "sha256:1"
    )
    key = AttemptKey(case_id=project.loaded.id, agent=AGENT, scenario="live", run=4)
    attempt = FunctionAttempt(own, project.loaded, None, AttemptPlan(key=key, kind="live"), snapshot, try_number=0)
    ended = RETURNED
    try:
        function(RegcaseFixture(attempt))
    except Exception as error:
        ended = FunctionEnd("raised", f"{type(error).__name__}: {error}", str(error))
    return attempt.finish(ended)


def test_a_live_run_asks_the_real_supplier_and_is_a_fresh_draw(project: AttemptProject) -> None:
    with serving(LocalUpstream()) as upstream:
        record = live(project, demo_attached, upstream.base_url)
    assert record.verdict == "clean", record.says
    assert record.draw is not None
    assert record.draw.fresh
    assert record.draw.upstream_ids


def test_what_a_live_run_raises_is_a_failure_of_it(project: AttemptProject) -> None:
    with serving(LocalUpstream(rate=1, how="reject")) as upstream:
        record = live(project, lambda regcase: demo(regcase, Raises), upstream.base_url)
    assert record.verdict == "recurred"
    assert record.says is not None
    assert record.says.startswith("no status, it raised SupplierFailure: ")


def test_a_live_run_without_a_supplier_proves_nothing(project: AttemptProject) -> None:
    def swallows(regcase: RegcaseFixture) -> None:
        with pytest.raises(UsageRefused, match=r"upstream\] is not configured"):
            demo(regcase)

    record = live(project, swallows, None)
    assert (record.verdict, record.reason) == ("inconclusive", "no-live-supplier")
