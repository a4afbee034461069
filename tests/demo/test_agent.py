import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo.conftest import TASK, Runner, patience
from tests.demo.scripted_supplier import Answer, ScriptedSupplier, bash, closes, cuts, fails, says, sends, submit

HALF = bash("sed -i 's/a - b/a + b/' calc.py")
REST = [bash("sed -i 's/return a$/return 2 * a/' calc.py && echo 1"), submit("both corrected")]
WHOLE = [HALF, *REST]


def failing(kind: str, supplier: ScriptedSupplier) -> Answer:
    return {
        "no answer": supplier.hang,
        "trickle": supplier.trickle,
        "closed": closes,
        "cut": cuts,
        "out of memory": fails(500, "CUDA out of memory"),
        "overloaded": fails(503, "overloaded"),
        "rate limit": fails(429, "slow down"),
        "rejected": fails(401, "Incorrect API key provided"),
        "forbidden": fails(403, "no access"),
        "bad request": fails(400, "no such model"),
        "empty": says(""),
        "null": says(None),
        "no choices": sends(200, '{"choices": []}'),
        "error body": sends(200, '{"error": {"message": "out of memory"}}'),
        "no json": sends(200, "<html>"),
        "unfinished": says("I was about to", finish="length"),
    }[kind]


def test_works_until_it_hands_in(run: Runner) -> None:
    with ScriptedSupplier(WHOLE) as supplier:
        ran = run(supplier.base_url, "--model", "m-1", "--task-id", "t-1")
    assert ran.code == 0, ran.stderr
    assert "return a + b" in (ran.work_dir / "calc.py").read_text()
    trial = ran.trial
    assert (trial.termination, trial.outcome, trial.error) == ("finished", "undetermined", None)
    assert trial.task_id == "t-1"
    assert trial.task_text == TASK
    assert trial.submission is not None
    assert trial.submission.text == "both corrected"
    assert "+    return a + b" in (trial.submission.patch or "")
    assert "+    return 2 * a" in (trial.submission.patch or "")
    assert trial.partial_patch is None
    assert [line.step for line in trial.steps if line.is_reply] == [1, 2, 3]
    assert [line.text for line in trial.steps if line.role == "tool"] == ["", "1\n", "handed in\n"]
    assert trial.replies[0].offered_tools == ("bash", "submit")
    assert trial.replies[0].model == "served-model"
    assert trial.model_requests == 3
    assert trial.missing == ()


def test_its_requests_are_chat_completions_with_the_results_of_its_calls(run: Runner) -> None:
    with ScriptedSupplier(WHOLE) as supplier:
        run(supplier.base_url, "--model", "m-1")
    assert supplier.paths == ["/token/v1/chat/completions"] * 3
    assert supplier.keys == ["Bearer sk-regcase-test"] * 3
    first, second, _ = supplier.requests
    assert first["model"] == "m-1"
    assert [each["role"] for each in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == TASK
    assert [each["function"]["name"] for each in first["tools"]] == ["bash", "submit"]
    assert second["messages"][2]["tool_calls"][0]["id"] == "call_1"
    assert second["messages"][3] == {"role": "tool", "tool_call_id": "call_1", "content": ""}


def test_a_text_without_calls_is_the_final_answer(run: Runner) -> None:
    with ScriptedSupplier([HALF, says("Done.")]) as supplier:
        ran = run(supplier.base_url)
    assert ran.code == 0
    assert ran.trial.submission is not None
    assert ran.trial.submission.text == "Done."


@pytest.mark.parametrize(
    ("kind", "requests", "error", "says"),
    [
        ("trickle", 3, "APITimeoutError", "timed out"),
        ("no answer", 3, "APITimeoutError", "timed out"),
        ("closed", 3, "APIConnectionError", "RemoteDisconnected"),
        ("cut", 3, "APIConnectionError", "IncompleteRead"),
        ("out of memory", 3, "APIStatusError", "HTTP 500: CUDA out of memory"),
        ("overloaded", 3, "APIStatusError", "HTTP 503"),
        ("rate limit", 3, "APIStatusError", "HTTP 429"),
        ("rejected", 1, "APIStatusError", "HTTP 401: Incorrect API key provided"),
        ("forbidden", 1, "APIStatusError", "HTTP 403"),
        ("bad request", 1, "APIStatusError", "HTTP 400"),
        ("empty", 1, "EmptyAnswerError", "empty answer"),
        ("null", 1, "EmptyAnswerError", "empty answer"),
        ("no choices", 1, "UnusableAnswerError", "IndexError"),
        ("error body", 1, "UnusableAnswerError", "out of memory"),
        ("no json", 1, "UnusableAnswerError", "<html>"),
        ("unfinished", 1, "UnfinishedAnswerError", "cut the answer off"),
    ],
)
def test_gives_up_in_good_order(run: Runner, kind: str, requests: int, error: str, says: str) -> None:
    supplier = ScriptedSupplier([])
    supplier.answers = [HALF, failing(kind, supplier)]
    with supplier:
        ran = run(supplier.base_url, timeout=patience(kind))
    assert ran.code == 1
    assert len(supplier.requests) == 1 + requests
    trial = ran.trial
    assert (trial.termination, trial.outcome) == ("error", "undetermined")
    assert trial.error is not None
    assert (trial.error.type, trial.error.raised_by) == (error, "supplier")
    assert says in (trial.error.message or "")
    assert says in ran.stderr
    assert trial.submission is None
    assert "+    return a + b" in (trial.partial_patch or "")
    assert len(trial.replies) == 1
    assert len([line for line in ran.of_kind("model_call") if "error" in line]) == requests


def test_a_supplier_that_is_gone_gets_two_further_tries(run: Runner) -> None:
    # Held by a socket that never listens: a port that is free somebody else may have by then.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        ran = run(f"http://127.0.0.1:{held.getsockname()[1]}/token/v1")
    assert ran.code == 1
    assert [line.get("error", "")[:18] for line in ran.of_kind("model_call")] == ["APIConnectionError"] * 3
    assert "refused" in (ran.trial.error.message or "" if ran.trial.error else "")


def test_goes_on_after_a_fault_that_heals(run: Runner) -> None:
    with ScriptedSupplier([HALF, fails(503, "overloaded"), *REST]) as supplier:
        ran = run(supplier.base_url)
    assert ran.code == 0
    assert len(supplier.requests) == 4
    assert [line.step for line in ran.trial.steps if line.is_reply] == [1, 2, 3]
    assert ran.trial.error is None


def test_a_title_call_comes_first_and_offers_no_tool(run: Runner) -> None:
    with ScriptedSupplier([says("A title"), *WHOLE]) as supplier:
        ran = run(supplier.base_url, "--title-call")
    assert ran.code == 0
    assert "tools" not in supplier.requests[0]
    assert TASK in supplier.requests[0]["messages"][0]["content"]
    assert [line.step for line in ran.trial.steps if line.is_reply] == [1, 2, 3]
    assert ran.trial.model_requests == 4


def test_a_failed_title_call_stops_nothing(run: Runner) -> None:
    with ScriptedSupplier([fails(500, "no"), *WHOLE]) as supplier:
        ran = run(supplier.base_url, "--title-call")
    assert ran.code == 0
    assert len(supplier.requests) == 4


def test_tools_can_be_offered_by_other_names(run: Runner) -> None:
    answers = [bash("echo hello", name="shell"), bash("echo no", name="bash"), submit("done", name="finish")]
    with ScriptedSupplier(answers) as supplier:
        ran = run(supplier.base_url, "--tools", "shell,finish")
    assert ran.code == 0
    assert [each["function"]["name"] for each in supplier.requests[0]["tools"]] == ["shell", "finish"]
    results = [line.text for line in ran.trial.steps if line.role == "tool"]
    assert results == ["hello\n", "there is no tool bash\n", "handed in\n"]


def test_several_calls_of_one_reply_are_run_in_order(run: Runner) -> None:
    two = says(
        "Both at once.",
        [("a", "bash", '{"command": "echo one > f; exit 3"}'), ("b", "bash", '{"command": "cat f"}')],
    )
    with ScriptedSupplier([two, submit("done")]) as supplier:
        ran = run(supplier.base_url)
    assert [(line.tool_call_id, line.text) for line in ran.trial.steps if line.role == "tool"][:2] == [
        ("a", "[exit code 3]\n"),
        ("b", "one\n"),
    ]


def test_arguments_that_cannot_be_read_are_said_to_the_model(run: Runner) -> None:
    with ScriptedSupplier([says(None, [("a", "bash", "{half")]), submit("done")]) as supplier:
        ran = run(supplier.base_url)
    assert ran.code == 0
    assert "cannot be read" in supplier.requests[1]["messages"][-1]["content"]


def test_too_many_steps_end_it(run: Runner) -> None:
    with ScriptedSupplier([HALF]) as supplier:
        ran = run(supplier.base_url, "--max-steps", "3")
    assert ran.code == 1
    assert len(supplier.requests) == 3
    assert ran.trial.termination == "limit"
    assert ran.trial.submission is None
    assert "+    return a + b" in (ran.trial.partial_patch or "")


def test_a_killed_agent_leaves_all_but_the_end(run: Runner) -> None:
    supplier = ScriptedSupplier([])
    supplier.answers = [HALF, supplier.hang]
    with supplier:
        ran = run(supplier.base_url, timeout=600, kill_when=lambda: len(supplier.requests) == 2)
    assert ran.code is None
    assert ran.trial.termination == "cut-off"
    assert len(ran.trial.replies) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tools", "one"], "give two names"),
        (["--task", "/no/such/file"], "/no/such/file"),
    ],
)
def test_wrong_usage_is_said(run: Runner, words: list[str], says: str) -> None:
    ran = run("http://127.0.0.1:9/v1", *words)
    assert ran.code == 2
    assert says in ran.stderr
    assert not ran.out_dir.exists()


def test_without_a_base_url_it_does_not_start(run: Runner) -> None:
    ran = run("")
    assert ran.code == 2
    assert "OPENAI_BASE_URL" in ran.stderr


def test_it_imports_the_standard_library_and_its_own_package_alone() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "import pytest_regcase.demo.behaviours\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names\n"
        "print(sorted(new), sorted(n for n in sys.modules if n.startswith('pytest_regcase')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "['pytest_regcase'] ['pytest_regcase', 'pytest_regcase.demo', 'pytest_regcase.demo.agent', "
        "'pytest_regcase.demo.behaviours', 'pytest_regcase.demo.chat', 'pytest_regcase.demo.tools', "
        "'pytest_regcase.demo.trial_log']"
    )


def test_looking_at_the_work_stages_nothing(run: Runner) -> None:
    with ScriptedSupplier([HALF, bash("echo new > new.txt"), fails(401, "no")]) as supplier:
        ran = run(supplier.base_url)
    assert "+new" in (ran.trial.partial_patch or "")
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ran.work_dir, capture_output=True, text=True, check=True
    )
    assert status.stdout.splitlines() == [" M calc.py", "?? new.txt"]
    assert sorted(each.name for each in Path(ran.out_dir).iterdir()) == ["trial.jsonl"]
