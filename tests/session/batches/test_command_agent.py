import itertools
import json
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_regcase.capture import TrialRecord, read_record
from pytest_regcase.config import Project, UpstreamConfig
from pytest_regcase.demo.agent import MAX_RETRIES
from pytest_regcase.records.trial import ErrorLink, TrialError
from pytest_regcase.session.batches.reached import reached
from pytest_regcase.session.batches.recorded_failure import raised_again
from pytest_regcase.session.batches.run_folder import RunFolder
from tests.live.local_upstream import LocalUpstream, serving
from tests.session.batches.run_project import make_project, run_tasks

DEMO = (sys.executable, "-m", "pytest_regcase.demo.agent", "--task", "{task_file}", "--out", "{out_dir}")
ENV = {"OPENAI_BASE_URL": "{openai_base_url}", "OPENAI_API_KEY": "{api_key}"}
CALLS = (("bash", '{"command": "echo 1 > new.txt"}'), ("submit", '{"answer": "made"}'))


def with_agent(project: Project, **entry: object) -> Project:
    """Return the project with another entry for its agent."""
    agent = project.config.agents["default"].model_copy(update={"python": None, **entry})
    return Project(project.root, project.config.model_copy(update={"agents": {"default": agent}}))


def test_a_stand_in_answers_the_agent_whose_own_log_is_taken_over(tmp_path: Path) -> None:
    project = with_agent(make_project(tmp_path, one="make new.txt"), command=DEMO, env=ENV, output="{out_dir}")
    script = tmp_path / "script.jsonl"
    replies = (
        {"role": "assistant", "tool_calls": [{"id": name, "name": name, "arguments": arguments}]}
        for name, arguments in CALLS
    )
    script.write_text("".join(json.dumps(each) + "\n" for each in replies))
    run_tasks(project, replies=script)
    manifest = RunFolder(tmp_path / "out").manifest()
    assert manifest.kind == "controlled"
    assert manifest.conditions["replies"]["digest"].startswith("sha256:")
    record = read_record(tmp_path / "out" / "one")
    assert record.termination == "finished"
    assert record.replies == 2
    assert record.submission is not None
    assert "+1" in (record.submission.patch or "")
    assert record.identity["labels"] == ["controlled"]


def test_a_real_supplier_is_asked_through_ours_and_its_key_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_UPSTREAM_KEY", "sk-the-real-one")
    with serving(LocalUpstream()) as upstream:
        project = with_agent(make_project(tmp_path, one="x"), command=DEMO, env=ENV, output="{out_dir}")
        real = UpstreamConfig(base_url=upstream.base_url, api_key_env="TEST_UPSTREAM_KEY")
        run_tasks(Project(tmp_path, project.config.model_copy(update={"upstream": real})))
    record = read_record(tmp_path / "out" / "one")
    assert (record.termination, record.replies) == ("finished", 4)
    assert upstream.keys == {"Bearer sk-the-real-one"}
    left = [each for each in (tmp_path / "out").rglob("*") if each.is_file()]
    assert not [each for each in left if b"sk-the-real-one" in each.read_bytes()]
    assert RunFolder(tmp_path / "out").manifest().conditions["upstream"]["base_url"] == upstream.base_url


def test_what_ended_the_agent_is_recorded_in_its_own_words(tmp_path: Path) -> None:
    nobody = {**ENV, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    project = with_agent(make_project(tmp_path, one="x"), command=DEMO, env=nobody, output="{out_dir}")
    run_tasks(project)
    record = read_record(tmp_path / "out" / "one")
    assert record.agent_failed
    assert record.error is not None
    assert record.error.raised_by == "supplier"
    assert record.model_requests >= 1
    here = reached(RunFolder(tmp_path / "out"), "one")
    assert here.cause is not None
    assert here.cause.cause == "transient"
    assert here.quality is not None
    assert here.quality.retry == "now"
    lines = [json.loads(each) for each in (tmp_path / "out" / "one" / "trial.jsonl").read_text().splitlines()]
    failed = [each for each in lines if each["kind"] in ("step", "model_call") and each.get("error")]
    assert len(failed) == MAX_RETRIES + 1


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("shell"), one="x")


def ran(project: Project, command: str, name: str, **entry: object) -> TrialRecord:
    """Run a shell command as the agent, in a run's folder of that name."""
    run_tasks(with_agent(project, command=("sh", "-c", command), **entry), out=name)
    return read_record(project.root / name / "one")


def test_an_agent_at_its_cap_is_ended_and_its_work_counts(
    shell: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = tmp_path / "done"
    looks = itertools.count()

    def monotonic() -> float:
        """Return when it began, the first time; later a time at which the cap is over, once the work is done."""
        began = next(looks) == 0
        return time.monotonic() + (1000 if not began and done.exists() else 0)

    monkeypatch.setattr("pytest_regcase.session.batches.command_agent.time", SimpleNamespace(monotonic=monotonic))
    record = ran(shell, f"echo 1 > new.txt; touch {done}; sleep 60", "cap", cap_seconds=900, deadline_seconds=900)
    assert record.termination == "limit"
    assert not record.agent_failed
    assert record.submission is not None
    assert "new.txt" in (record.submission.patch or "")


def test_a_traceback_as_last_words_is_the_error(shell: Project) -> None:
    try:
        raise KeyError("no reply") from TimeoutError("slow")
    except KeyError:
        (shell.root / "said.txt").write_text(traceback.format_exc())
    record = ran(shell, f"cat {shell.root / 'said.txt'} >&2; exit 3", "traceback")
    assert record.error is not None
    assert [(each.type, each.message) for each in record.error.chain] == [
        ("KeyError", "'no reply'"),
        ("TimeoutError", "slow"),
    ]
    assert "the agent ended with exit code 3" in (record.error.traceback or "")


def test_a_log_that_cannot_be_read_is_evidence_that_was_lost(shell: Project) -> None:
    record = ran(shell, "true", "unread", output="{out_dir}")
    assert not record.agent_failed
    (lost,) = record.failed_steps
    assert (lost.step_role, lost.fatal, lost.type) == ("evidence", False, "agent_output")


def test_the_agents_own_clean_up_is_a_step_of_the_clean_up(shell: Project) -> None:
    record = ran(shell, "true", "cleaned", cleanup=("false",))
    assert {each.what: each.status for each in record.cleanup}["the agent's own clean-up command"] == "failed"
    assert record.termination == "finished"


def test_a_recorded_chain_is_raised_with_its_facts() -> None:
    recorded = TrialError(
        type="openai.RateLimitError",
        message="no",
        chain=(
            ErrorLink(type="openai.RateLimitError", message="no", status_code=429, error_type="tokens"),
            ErrorLink(type="ValueError"),
        ),
    )
    error = raised_again(recorded)
    assert (type(error).__module__, type(error).__name__, str(error)) == ("openai", "RateLimitError", "no")
    assert vars(error) == {"status_code": 429, "type": "tokens"}
    assert type(error.__cause__).__name__ == "ValueError"
    assert type(raised_again(TrialError(message="only words"))).__name__ == "AgentFailed"
