from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.agents.launch import Places, prepare
from pytest_regcase.agents.outputs import declared
from pytest_regcase.agents.process import AgentProcess
from pytest_regcase.agents.python_runner import find_function
from pytest_regcase.config import AgentConfig
from pytest_regcase.records.attempt import Exit

AGENT = """
import json, os, sys
from pathlib import Path

def solve(request):
    told = {key: str(value) for key, value in vars(request).items()}
    told["cwd"] = os.getcwd()
    (request.out_dir / "told.json").write_text(json.dumps(told))
    print("working on", request.task)
    return "answered \\u00e4"

def nothing(request):
    return None

def number(request):
    return 42

def broken(request):
    raise RuntimeError("the model is gone")

def leaves(request):
    raise SystemExit(5)

class Agent:
    @staticmethod
    def solve(request):
        return "from a class"
"""


def run(places: Places, root: Path, call: str, **changes: Any) -> Exit:
    (root / "my_pkg").mkdir(exist_ok=True)
    (root / "my_pkg" / "agent.py").write_text(AGENT)
    (root / "my_pkg" / "wrong.py").write_text("import no_such_module_of_theirs\n")
    told: dict[str, Any] = {"task_text": "Fix it.", "task_id": None, "model": "m-1", **changes}
    launch = prepare(
        AgentConfig(python=call),
        "default",
        places,
        project_root=root,
        attempt=1,
        seed=None,
        openai_base_url="http://127.0.0.1:1/v1",
        anthropic_base_url="http://127.0.0.1:1",
        api_key="sk-regcase-0",
        **told,
    )
    with AgentProcess.start(launch, places) as process:
        assert process.wait(60)
        return process.exit


def test_calls_the_function_with_the_request_in_the_work_folder(places: Places, tmp_path: Path) -> None:
    import json

    assert run(places, tmp_path, "my_pkg.agent:solve").code == 0, places.stderr.read_text()
    told = json.loads((places.out_dir / "told.json").read_text())
    assert told == {
        "task": "Fix it.",
        "task_id": "None",
        "work_dir": str(places.work_dir),
        "out_dir": str(places.out_dir),
        "openai_base_url": "http://127.0.0.1:1/v1",
        "anthropic_base_url": "http://127.0.0.1:1",
        "api_key": "sk-regcase-0",
        "model": "m-1",
        "cwd": str(places.work_dir),
    }
    assert places.stdout.read_text() == "working on Fix it.\n"
    assert (places.out_dir / "answer.txt").read_text(encoding="utf-8") == "answered ä"
    found = declared(AgentConfig(python="my_pkg.agent:solve"), places, {})
    assert (found.answer, found.answer_declared) == ("answered ä", True)


def test_an_absent_task_is_none(places: Places, tmp_path: Path) -> None:
    assert run(places, tmp_path, "my_pkg.agent:solve", task_text=None, model=None).code == 0
    assert places.stdout.read_text() == "working on None\n"


def test_none_writes_no_answer(places: Places, tmp_path: Path) -> None:
    assert run(places, tmp_path, "my_pkg.agent:nothing").code == 0
    assert list(places.out_dir.iterdir()) == []
    assert not declared(AgentConfig(python="my_pkg.agent:nothing"), places, {}).answer_declared


def test_takes_a_function_of_a_class(places: Places, tmp_path: Path) -> None:
    assert run(places, tmp_path, "my_pkg.agent:Agent.solve").code == 0
    assert (places.out_dir / "answer.txt").read_text() == "from a class"


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        ("my_pkg.agent:broken", 1, "RuntimeError: the model is gone"),
        ("my_pkg.agent:number", 1, "returned: int"),
        ("my_pkg.agent:leaves", 5, ""),
        ("my_pkg.agent:no_such", 2, "has no 'no_such'"),
        ("my_pkg.agent:__name__", 2, "is no function"),
        ("my_pkg.none:solve", 2, "there is no module 'my_pkg.none'"),
        ("my_pkg.wrong:solve", 1, "No module named 'no_such_module_of_theirs'"),
    ],
)
def test_what_goes_wrong_is_on_stderr_and_in_the_exit_code(
    places: Places, tmp_path: Path, call: str, code: int, says: str
) -> None:
    assert run(places, tmp_path, call).code == code
    assert says in places.stderr.read_text()
    assert not (places.out_dir / "answer.txt").exists()


def test_files_of_the_work_tree_do_not_stand_in_for_modules(places: Places, tmp_path: Path) -> None:
    (places.work_dir / "json.py").write_text("raise RuntimeError('the work tree was imported')\n")
    assert run(places, tmp_path, "my_pkg.agent:solve").code == 0, places.stderr.read_text()


@pytest.mark.parametrize("call", ["no-colon", ":f", "m:"])
def test_a_call_of_another_form_is_said(call: str) -> None:
    with pytest.raises(LookupError, match="module:function"):
        find_function(call)
