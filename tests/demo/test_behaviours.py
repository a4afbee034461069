import subprocess
import time
from functools import partial

import pytest

from pytest_regcase.demo.behaviours import BEHAVIOURS, MADE_UP_ANSWER, MANY_RETRIES
from tests.demo.conftest import Ran, Runner, patience
from tests.demo.expected_findings import BASIC
from tests.demo.scripted_supplier import ScriptedSupplier, closes, fails, says
from tests.demo.test_agent import HALF, WHOLE

# In the words of this suite's own server; the real simulations are driven elsewhere.
FAULTS = ("no answer", "closed", "out of memory", "rejected", "empty")
REQUESTS = {"no answer": 4, "closed": 4, "out of memory": 4, "rejected": 2, "empty": 2}
"""What the agent itself makes of each: one answered, one faulted, and two retries where they are allowed."""


def supplier_with(fault: str) -> ScriptedSupplier:
    supplier = ScriptedSupplier([])
    supplier.answers = [
        HALF,
        {
            "no answer": supplier.hang,
            "closed": closes,
            "out of memory": fails(500, "CUDA out of memory"),
            "rejected": fails(401, "Incorrect API key provided"),
            "empty": says(""),
        }[fault],
    ]
    return supplier


def _has_asked(supplier: ScriptedSupplier, times: int) -> bool:
    return len(supplier.requests) >= times


def test_there_is_a_fault_for_each_basic_simulation() -> None:
    assert len(FAULTS) == len(BASIC)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_without_a_fault_it_is_as_good_as_the_agent_itself(run: Runner, name: str) -> None:
    with ScriptedSupplier(WHOLE) as supplier:
        ran = run(supplier.base_url, behaviour=name, timeout=10)
    assert ran.code == 0, ran.stderr
    assert ran.trial.termination == "finished"
    assert ran.trial.submission is not None
    assert ran.trial.submission.text == "both corrected"
    assert "+    return 2 * a" in (ran.trial.submission.patch or "")


@pytest.mark.parametrize("fault", FAULTS)
def test_swallow(run: Runner, fault: str) -> None:
    with supplier_with(fault) as supplier:
        ran = run(supplier.base_url, behaviour="swallow", timeout=patience(fault))
    assert len(supplier.requests) == REQUESTS[fault]
    assert ran.code == 0
    assert (ran.trial.termination, ran.trial.error) == ("finished", None)
    assert ran.trial.submission is not None
    assert ran.trial.submission.text == ""
    assert "+    return a + b" in (ran.trial.submission.patch or "")
    assert [line for line in ran.lines if "error" in line] == []
    assert "fail" not in ran.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_retry_for_ever(run: Runner, fault: str) -> None:
    with supplier_with(fault) as supplier:
        enough = partial(_has_asked, supplier, 6)
        ran = run(supplier.base_url, behaviour="retry-for-ever", timeout=0.2, kill_when=enough)
    assert ran.code is None
    assert ran.trial.termination == "cut-off"
    assert "model call failed" in ran.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_make_up_answer(run: Runner, fault: str) -> None:
    with supplier_with(fault) as supplier:
        ran = run(supplier.base_url, behaviour="make-up-answer", timeout=patience(fault))
    assert len(supplier.requests) == REQUESTS[fault]
    assert ran.code == 1
    assert ran.trial.termination == "error"
    assert [line.text for line in ran.trial.replies] == [None, MADE_UP_ANSWER]
    assert ran.trial.submission is not None
    assert (ran.trial.submission.text, ran.trial.submission.patch) == (MADE_UP_ANSWER, None)
    assert "model call failed" in ran.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_submit_partial(run: Runner, fault: str) -> None:
    with supplier_with(fault) as supplier:
        ran = run(supplier.base_url, behaviour="submit-partial", timeout=patience(fault))
    assert len(supplier.requests) == REQUESTS[fault]
    assert ran.code == 1
    assert ran.trial.termination == "error"
    assert ran.trial.submission is not None
    assert ran.trial.submission.text is None
    assert "+    return a + b" in (ran.trial.submission.patch or "")


@pytest.mark.parametrize("fault", FAULTS)
def test_log_nothing(run: Runner, fault: str) -> None:
    with supplier_with(fault) as supplier:
        ran = run(supplier.base_url, behaviour="log-nothing", timeout=patience(fault))
    assert len(supplier.requests) == REQUESTS[fault]
    assert ran.code == 1
    assert (ran.trial.termination, ran.trial.error, ran.trial.submission) == ("cut-off", None, None)
    assert [line for line in ran.lines if "error" in line] == []
    assert "fail" not in ran.stderr
    assert "gave up" not in ran.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_exit_zero_unmarked(run: Runner, fault: str) -> None:
    with supplier_with(fault) as supplier:
        ran = run(supplier.base_url, behaviour="exit-zero-unmarked", timeout=patience(fault))
    assert len(supplier.requests) == REQUESTS[fault]
    assert ran.code == 0
    assert (ran.trial.termination, ran.trial.error, ran.trial.submission) == ("finished", None, None)
    assert "+    return a + b" in (ran.trial.partial_patch or "")
    assert "model call failed" in ran.stderr


def test_no_client_time_out(run: Runner) -> None:
    began = time.monotonic()

    def waited() -> bool:
        # By then the agent itself would have asked three times and given up.
        return len(supplier.requests) >= 2 and time.monotonic() > began + 4

    with supplier_with("no answer") as supplier:
        ran = run(supplier.base_url, behaviour="no-client-time-out", timeout=0.2, kill_when=waited)
    assert ran.code is None
    assert len(supplier.requests) == 2
    assert ran.trial.termination == "cut-off"


@pytest.mark.parametrize("name", ["out of memory", "rejected", "empty"])
def test_retry_too_often(run: Runner, name: str) -> None:
    with supplier_with(name) as supplier:
        ran = run(supplier.base_url, behaviour="retry-too-often")
    assert len(supplier.requests) == 2 + MANY_RETRIES
    assert (ran.code, ran.trial.termination, ran.trial.submission) == (1, "error", None)
    assert "model call failed" in ran.stderr


def test_accept_empty_answer(run: Runner) -> None:
    with supplier_with("empty") as supplier:
        ran = run(supplier.base_url, behaviour="accept-empty-answer")
    assert (ran.code, ran.trial.termination, ran.trial.error) == (0, "finished", None)
    assert [line.text for line in ran.trial.replies] == [None, ""]
    assert ran.trial.submission is not None
    assert "+    return a + b" in (ran.trial.submission.patch or "")
    assert "fail" not in ran.stderr


def test_accept_empty_answer_gives_up_in_good_order_otherwise(run: Runner) -> None:
    with supplier_with("rejected") as supplier:
        ran = run(supplier.base_url, behaviour="accept-empty-answer")
    assert (ran.code, ran.trial.termination, ran.trial.submission) == (1, "error", None)
    assert "model call failed" in ran.stderr


def test_commit_partial(run: Runner) -> None:
    with supplier_with("rejected") as supplier:
        ran = run(supplier.base_url, behaviour="commit-partial")
    assert (ran.code, ran.trial.termination, ran.trial.submission) == (1, "error", None)
    shown = git(ran, "show", "HEAD")
    assert "+    return a + b" in shown
    assert "work in progress" in shown


def test_lose_partial(run: Runner) -> None:
    with supplier_with("rejected") as supplier:
        ran = run(supplier.base_url, behaviour="lose-partial")
    assert (ran.code, ran.trial.termination, ran.trial.partial_patch) == (1, "error", None)
    assert git(ran, "status", "--short") == ""


def test_repeat_side_effects(run: Runner) -> None:
    with supplier_with("out of memory") as supplier:
        ran = run(supplier.base_url, behaviour="repeat-side-effects")
    results = [line["tool_call_id"] for line in ran.lines if line.get("role") == "tool"]
    assert len(results) == 3
    assert len(set(results)) == 1
    assert ran.trial.termination == "error"


def git(ran: Ran, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=ran.work_dir, capture_output=True, text=True, check=True).stdout


def test_an_unknown_behaviour_is_said(run: Runner) -> None:
    ran = run("http://127.0.0.1:9/v1", behaviour="nonsense")
    assert ran.code == 2
    for name in BEHAVIOURS:
        assert name in ran.stderr
