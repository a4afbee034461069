"""Tasks files: both forms, and every error with its file and line."""

from pathlib import Path

import pytest

from pytest_regcase.capture import load_tasks
from pytest_regcase.errors import FileError, UnknownName, UsageRefused

TOML = """\
[[task]]
id = "calc"
text = "Correct it."
repo = "repos/calc"
base_commit = "abc"
agent = "default"

[[task.step]]
id = "start"
type = "start_environment"

[[task.step]]
id = "agent"
type = "prompt_agent"
needs = ["start"]

[[task]]
id = "other"
text_file = "other.txt"
"""
LINES = """\
{"id": "calc", "text": "Correct it.", "repo": "repos/calc", "base_commit": "abc", "agent": "default", "step": \
[{"id": "start", "type": "start_environment"}, {"id": "agent", "type": "prompt_agent", "needs": ["start"]}]}

{"id": "other", "text_file": "other.txt"}
"""


def written(tmp_path: Path, content: str, suffix: str = ".toml") -> Path:
    path = tmp_path / f"tasks{suffix}"
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(("suffix", "content"), [(".toml", TOML), (".jsonl", LINES)])
def test_both_forms_say_the_same(tmp_path: Path, suffix: str, content: str) -> None:
    (tmp_path / "other.txt").write_text("From a file.")
    tasks = load_tasks(written(tmp_path, content, suffix))
    assert list(tasks.tasks) == ["calc", "other"]
    calc, other = tasks.tasks.values()
    assert (calc.read_text(), other.read_text()) == ("Correct it.", "From a file.")
    assert (calc.repository, calc.base_commit, calc.agent) == (tmp_path / "repos" / "calc", "abc", "default")
    assert [(each.id, each.type, each.needs) for each in calc.steps] == [
        ("start", "start_environment", ()),
        ("agent", "prompt_agent", ("start",)),
    ]
    assert (other.repository, other.steps) == (None, ())


def test_a_task_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"'calk'.*\nDid you mean 'calc'\? It has calc, other\."):
        load_tasks(written(tmp_path, TOML)).task("calk")


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ('[[task]]\nid = "a"\ntxet = "x"\n', 3, "txet"),
        ('[[task]]\nid = "a/b"\n', 2, "holds a slash"),
        ('[[task]]\ntext = "x"\n', 1, '"id" is missing'),
        ('[[task]]\nid = "a"\n[[task]]\nid = "a"\n', 4, "that of an earlier task"),
        ('[[task]]\nid = "a"\ntext = "x"\ntext_file = "y"\n', 4, "one of them"),
        ('[[task]]\nid = "a"\nbase_commit = "y"\n', 3, "without repo"),
        ('[[task]]\nid = "a"\nfolder = "y"\n', 3, "folder is not said but known"),
        ('[[task]]\nid = "a"\n[[task.step]]\nid = "s"\ntype = "fly"\n', 5, 'type = "fly" is no type of step'),
        (
            '[[task]]\nid = "a"\n[[task.step]]\nid = "s"\ntype = "prompt_agent"\nneeds = ["t"]\n',
            6,
            'needs "t", which is no step',
        ),
        ('[[task]]\nid = "a"\n[[task.step]]\nid = "-s"\ntype = "prompt_agent"\n', 4, '"-s"'),
        ("[[task]\n", 1, "TOML"),
        ('tasks = ["a"]\n', 1, "tasks"),
    ],
)
def test_each_error_has_its_file_and_line(tmp_path: Path, content: str, line: int, says: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(FileError, match=says) as caught:
        load_tasks(path)
    assert caught.value.problems[0].startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "b", "txet": "x"}', "txet"),
        ('{"text": "x"}', '"id" is missing'),
        ('{"id": "a"}', "that of an earlier task"),
        ('{"id": 5}', "id"),
        ("[1]", "a table"),
        ("{not json}", "is not JSON"),
        ('{"id": "b", "step": [{"id": "s", "type": "fly"}]}', "no type of step"),
    ],
)
def test_each_error_in_json_lines_has_its_line(tmp_path: Path, line: str, says: str) -> None:
    path = written(tmp_path, '{"id": "a"}\n\n' + line + '\n{"id": "z"}\n', ".jsonl")
    with pytest.raises(FileError, match=says) as caught:
        load_tasks(path)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{path}:3: ")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageRefused, match=r"\.toml file with \[\[task\]\] tables, or a \.jsonl"):
        load_tasks(tmp_path / "tasks.yaml")
    with pytest.raises(FileError, match="no such file"):
        load_tasks(tmp_path / "tasks.toml")


def test_a_text_file_that_cannot_be_read(tmp_path: Path) -> None:
    task = load_tasks(written(tmp_path, TOML)).task("other")
    with pytest.raises(FileError, match=r"other\.txt: there is no such file"):
        task.read_text()
    (tmp_path / "other.txt").write_bytes(b"\xff")
    with pytest.raises(FileError, match="not UTF-8"):
        task.read_text()
