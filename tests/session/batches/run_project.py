"""A small project with tasks on a git repository, and an agent that is a shell script: it starts in no time."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from pytest_regcase.config import Project, load_project
from pytest_regcase.session.batches.batch import BatchResult, Progress, opened, run_batch
from pytest_regcase.session.batches.batch_plan import Wanted

AGENT = """
printf 'a + b\\n' > sums.txt
task=$(cat "$1")
case "$task" in
  crash) echo 'ConnectionError: the supplier hung up' >&2; exit 1 ;;
  nothing) git checkout -q sums.txt ;;
  wait) touch "$2/waiting"; while test ! -e "$3/go-on"; do sleep 0.05; done ;;
  meet) touch "$3/$4"; until test -e "$3/one" && test -e "$3/three"; do sleep 0.05; done ;;
  kill\\ *) kill -TERM "${task#kill }"; sleep 60 ;;
  sleep) sleep 60 ;;
esac
"""
PYPROJECT = """
[tool.regcase.agents.default]
command = ["sh", "{project_dir}/agent.sh", "{task_file}", "{out_dir}", "{project_dir}", "{task_id}"]
revision_paths = ["agent.sh"]
cap_seconds = 120
"""


def make_project(root: Path, **texts: str) -> Project:
    """Make the project in `root`, with a task for each keyword: its id and its text."""
    repository = root / "repo"
    repository.mkdir(parents=True)
    (repository / "sums.txt").write_text("a - b\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        subprocess.run(["git", *identity, *words], cwd=repository, check=True)
    (root / "agent.sh").write_text(AGENT)
    (root / "pyproject.toml").write_text(PYPROJECT)
    tasks = (f'[[task]]\nid = "{name}"\ntext = "{text}"\nrepo = "repo"\n' for name, text in texts.items())
    (root / "tasks.toml").write_text("".join(tasks))
    return load_project(root)


def run_tasks(
    project: Project,
    *ids: str,
    out: str = "out",
    jobs: int = 1,
    keep_going: bool = False,
    seen: list[Progress] | None = None,
    **wanted: object,
) -> BatchResult:
    """Run the project's tasks into `out`, in its folder."""
    asked = Wanted(out=project.root / out, ids=ids, **wanted)  # type: ignore[arg-type]
    with opened(project, asked) as batch:
        return run_batch(
            project,
            batch,
            jobs=jobs,
            keep_going=keep_going,
            on_progress=seen.append if seen is not None else lambda _: None,
        )


def contents(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of every file below the named folders, to see that nothing touched them."""
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for name in names
        for each in sorted((folder / name).rglob("*"))
        if each.is_file()
    }
