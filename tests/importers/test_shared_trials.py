"""The real failed trials beside a developer's checkout: which become a case, and why the others do not.

Folders are copied to neutral names first, since theirs name the fault. `ground_truth/` is never read.
"""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_builder import TRANSCRIPT
from pytest_regcase.case_files import load_case
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.reading import moment
from pytest_regcase.importers.source import Choice, find_trials
from pytest_regcase.redaction import PLACEHOLDER_PREFIX
from pytest_regcase.session.adopt import adopt
from pytest_regcase.session.making import Adopted, Settings
from tests.importers.said import source_text

# What a case must say: (failing step, termination, outcome, error type); or why there is none.
Expected = tuple[int | None, str, str, str | None] | str
LOST: Expected = (None, "cut-off", "undetermined", None)
CUT: Expected = (3, "cut-off", "undetermined", None)


def error(kind: str, outcome: str = "undetermined", step: int = 3) -> Expected:
    return (step, "error", outcome, kind)


AGENTS: dict[str, Expected] = {
    "mini-swe-agent-3try__429quota": error("RateLimitError"),
    "mini-swe-agent-3try__500oom": error("InternalServerError"),
    "mini-swe-agent-3try__stall": error("Timeout"),
    "mini-swe-agent__401": error("AuthenticationError"),
    "mini-swe-agent__500oom": CUT,
    "mini-swe-agent__500oom-long": error("InternalServerError"),
    "mini-swe-agent__503-heal2": "no-sign-of-failure",
    "mini-swe-agent__empty_content": error("RepeatedFormatError"),
    "mini-swe-agent__killed": CUT,
    "mini-swe-agent__none": "no-sign-of-failure",
    "mini-swe-agent__sse_error": CUT,
    "mini-swe-agent__stall": CUT,
    "inspect-anthropic__401": error("AuthenticationError"),
    "inspect-anthropic__killed": error("RetryError"),
    "inspect-anthropic__none": "passed",
    "inspect-anthropic__sse_error": error("RetryError"),
    "inspect-bounded__401": error("AuthenticationError"),
    "inspect-bounded__500oom": error("RetryError"),
    "inspect-bounded__503-heal2": "passed",
    "inspect-bounded__empty_content": LOST,
    "inspect-bounded__killed": error("RetryError"),
    "inspect-bounded__sse_error": error("TypeError"),
    "inspect-bounded__stall": error("RetryError"),
    "inspect-tolerant__500oom": error("RetryError", "failed"),
    "inspect__401": error("AuthenticationError"),
    "inspect__500oom": LOST,
    "inspect__killed": LOST,
    "inspect__none": "passed",
}
WRONG: Expected = (1, "finished", "failed", None)
RUNTIME: Expected = (1, "error", "undetermined", "RuntimeError")
MINI, INSPECT, PUBLIC = "generated/mini-swe-agent", "generated/inspect", "public"
FILES: dict[tuple[str, str | None, int | None], Expected] = {
    (f"{MINI}/v1_crash_submission_holds_exception_text.traj.json", None, None): error("StallError", step=2),
    (f"{MINI}/v1_submitted.traj.json", None, None): "no-sign-of-failure",
    (f"{MINI}/v2_auth_rejected_first_call.traj.json", None, None): error("PermissionError", step=1),
    (f"{MINI}/v2_limits_exceeded_partial_patch.traj.json", None, None): (3, "limit", "undetermined", None),
    (f"{MINI}/v2_model_timeout_after_partial_patch.traj.json", None, None): error("StallError"),
    (f"{MINI}/v2_submitted.traj.json", None, None): "no-sign-of-failure",
    (f"{MINI}/v2_submitted_empty_patch.traj.json", None, None): "no-sign-of-failure",
    (f"{INSPECT}/error_retries", None, None): "several-trials",
    (f"{INSPECT}/error_retries", "bad-2", None): WRONG,
    (f"{INSPECT}/fail_on_error_false", None, None): "several-trials",
    (f"{INSPECT}/fail_on_error_false", "3", None): RUNTIME,
    (f"{INSPECT}/interrupt_sigint.eval", None, None): "several-trials",
    (f"{INSPECT}/interrupt_sigint.eval", "3", None): (1, "cancelled", "undetermined", "CancelledError"),
    (f"{INSPECT}/killed_sigkill", None, None): "several-trials",
    (f"{INSPECT}/killed_sigkill", "3", None): LOST,
    (f"{INSPECT}/killed_sigkill", "good-1", None): "passed",
    (f"{INSPECT}/killed_sigkill.samplebuffer.db", None, None): "not-recognised",
    (f"{INSPECT}/max_tokens_stop", None, None): WRONG,
    (f"{INSPECT}/message_limit", None, None): (3, "limit", "failed", None),
    (f"{INSPECT}/model_error", None, None): error("ValueError", step=1),
    (f"{INSPECT}/nan_score", None, None): "no-sign-of-failure",
    (f"{INSPECT}/sample_error", None, None): RUNTIME,
    (f"{INSPECT}/sample_error", "3", None): "cancelled-sibling",
    (f"{INSPECT}/success", None, None): "passed",
    (f"{INSPECT}/time_limit", None, None): "passed",
    (f"{INSPECT}/token_limit.json", None, None): (4, "limit", "failed", None),
    (f"{INSPECT}/tolerated_error", "bad-2", None): RUNTIME,
    (f"{INSPECT}/tolerated_error", "3", None): WRONG,
    (f"{INSPECT}/tool_error", None, None): (2, "limit", "failed", None),
    (f"{INSPECT}/truncated_zip.eval", None, None): RUNTIME,
    (f"{INSPECT}/truncated_zip.eval", "3", None): "no-record",
    (f"{INSPECT}/two_epochs", None, None): "several-trials",
    (f"{INSPECT}/two_epochs", None, 2): RUNTIME,
    (f"{INSPECT}/wrong_answer", None, None): WRONG,
    (f"{PUBLIC}/inspect/cancelled_no_samples.json", None, None): "no-record",
    (f"{PUBLIC}/inspect/cancelled_partial_samples.json", None, None): WRONG,
    (f"{PUBLIC}/inspect/images_attachments.json", None, None): WRONG,
    (f"{PUBLIC}/inspect/old_0.3.41_success", None, None): WRONG,
    (f"{PUBLIC}/inspect/scout_websearch.eval", None, None): "passed",
    (f"{PUBLIC}/inspect/tool_call_error.json", None, None): "no-sign-of-failure",
    (f"{PUBLIC}/inspect/two_epochs_streaming.eval", None, None): WRONG,
    (f"{PUBLIC}/mini-swe-agent/v0_message_list_local.traj.json", None, None): "no-sign-of-failure",
}
OUR_WORDS = frozenset(
    {"unknown", "supplier", "undetermined", "failed", "error", "cut-off", "limit", "finished", "cancelled", "log"}
)


ANYONE = Settings(owner="someone", new=True)


def project(root: Path) -> Project:
    return Project(root=root, config=RegcaseConfig())


def outcome_of(
    path: Path, root: Path, *, sample: str | None = None, epoch: int | None = None, work_tree: Path | None = None
) -> tuple[Expected, Adopted | None]:
    choice = Choice(sample=sample, epoch=epoch)
    try:
        adopted = adopt(project(root), path, ANYONE, choice=choice, work_tree=work_tree)
    except ImportRefused as refusal:
        return refusal.slug, None
    seen = adopted.case.observation
    assert seen.termination is not None
    assert seen.outcome is not None
    return (seen.failing_step, seen.termination, seen.outcome, seen.error.type if seen.error else None), adopted


def check(adopted: Adopted, source: Path) -> None:
    """What holds for every case, whatever it was made from."""
    case = load_case(adopted.folder).case
    assert case == adopted.case.model_copy(update={"seal": case.seal})
    assert case.cause_status == "unknown"
    assert case.seal is not None
    assert not case.evidence
    assert all(each.status == "hypothesized" for each in case.hypotheses)
    assert (adopted.folder / TRANSCRIPT).is_file() == bool(adopted.trial.steps)
    said = source_text(find_trials(source).path)
    for value in leaves(case.observation.to_sparse()):
        assert_in_source(value, said)
    at = case.observation.observed_at
    assert at is None or any(at == time for time in times(said))


def leaves(observation: dict[str, Any]) -> Iterator[str]:
    """Yield what an observation holds besides our own sentences, digests and counts."""
    for name, item in observation.items():
        if name in ("symptom", "source_event", "observed_at", "recorded", "redactions", "source_digests"):
            continue
        yield from inner(item)


def times(said: str) -> Iterator[datetime | None]:
    for line in said.splitlines():
        if re.fullmatch(r"[0-9]{10}\.[0-9]+", line):
            yield moment(float(line))
        elif re.match(r"[0-9]{4}-", line):
            yield moment(line)


def inner(item: Any) -> Iterator[str]:
    if isinstance(item, dict):
        for each in item.values():
            yield from inner(each)
    elif isinstance(item, list):
        for each in item:
            yield from inner(each)
    elif isinstance(item, str):
        yield item


def assert_in_source(value: str, said: str) -> None:
    if value in OUR_WORDS or value in said:
        return
    # Made of parts that are recorded: a label, a task and its sample, a harness and its version, a redacted text.
    for mark in (":", "/", " ", "="):
        value = value.replace(mark, "\0")
    for part in value.split("\0"):
        known = part in said or part in ("mini", "inspect", "exit_status", "mini-swe-agent") or part in OUR_WORDS
        assert known or PLACEHOLDER_PREFIX in part, part


@pytest.mark.parametrize("run", sorted(AGENTS))
def test_runs_of_real_harnesses(shared_trials: Path, tmp_path: Path, run: str) -> None:
    neutral = tmp_path / "trial"
    shutil.copytree(shared_trials / "agents" / run / "agent_output", neutral)
    found, adopted = outcome_of(neutral, tmp_path, work_tree=shared_trials / "agents" / "work_tree")
    assert found == AGENTS[run]
    if adopted is not None:
        check(adopted, neutral)
        assert (adopted.folder / "recorded" / "work_tree" / "calc.py").is_file()
        if adopted.trial.steps:
            assert adopted.case.task is not None
            assert (adopted.folder / "recorded" / "task.txt").read_text().startswith("calc.py has two bugs.")


@pytest.mark.parametrize(
    "chosen", sorted(FILES, key=str), ids=lambda each: "-".join(str(part) for part in each if part)
)
def test_generated_and_public_files(
    shared_trials: Path, tmp_path: Path, chosen: tuple[str, str | None, int | None]
) -> None:
    name, sample, epoch = chosen
    path = shared_trials / name
    paths = [path] if path.is_file() else [path.with_name(f"{path.name}.{kind}") for kind in ("eval", "json")]
    for each in paths:
        neutral = tmp_path / f"log-{len(list(tmp_path.iterdir()))}"
        shutil.copyfile(each, neutral)
        found, adopted = outcome_of(neutral, tmp_path, sample=sample, epoch=epoch)
        assert found == FILES[chosen], each.name
        if adopted is not None:
            check(adopted, neutral)


def test_the_tables_name_every_file_of_our_formats(shared_trials: Path) -> None:
    runs = {each.name for each in (shared_trials / "agents").iterdir()}
    assert {name for name in runs if name.startswith(("mini-swe-agent", "inspect"))} == set(AGENTS)
    named = {name for name, _, _ in FILES}
    for folder in (MINI, INSPECT, f"{PUBLIC}/inspect", f"{PUBLIC}/mini-swe-agent"):
        for path in (shared_trials / folder).iterdir():
            whole = f"{folder}/{path.name}"
            if not path.name.endswith(".md"):
                assert whole in named or whole.rpartition(".")[0] in named, whole


def test_no_case_of_a_real_run_holds_a_key_or_a_home_path(shared_trials: Path, tmp_path: Path) -> None:
    neutral = tmp_path / "trial"
    shutil.copytree(shared_trials / "agents" / "mini-swe-agent__401" / "agent_output", neutral)
    trajectory = neutral / "trajectory.traj.json"
    document = json.loads(trajectory.read_text())
    key = "sk-" + "proj-" + "Ab3" * 12
    document["messages"][3]["content"] += f"\nexport OPENAI_API_KEY={key}\ncd /home/alice/calc"
    document["messages"][-1]["extra"]["exception_str"] += f" {key} /home/alice/x"
    trajectory.write_text(json.dumps(document))
    adopted = adopt(project(tmp_path), neutral, ANYONE)
    written = "".join(path.read_text() for path in adopted.written)
    assert key not in written
    assert "alice" not in written
    assert adopted.redactions == {"api_key": 2, "home_path": 2, "masked_key": 1}
    assert adopted.case.observation.redactions == adopted.redactions
