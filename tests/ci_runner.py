"""Runs the workflows of docs/ci.md as their hosts do, as far as these use them: jobs, steps, artifacts, variables.

Every `run` and `script` line is given to bash in a fresh checkout of a local remote. `pytest` and `regcase` are
done by forks of a process that has loaded them (`warm_pytest`). `pip` does nothing: the package is there already.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.plugin.warm_pytest import warm_pytest

Yaml = dict[str, Any]

ORDER = """\
#!{python} -SE
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asked.connect({path!r})
order = {{"env": dict(os.environ), "cwd": os.getcwd(), {key!r}: sys.argv[1:]}}
socket.send_fds(asked, [json.dumps(order).encode()], [0, 1, 2])
asked.recv(64)
sys.exit(abs(int(asked.recv(64))))
"""
"""A command that has its work done by a fork, in the same folder, environment and files."""


@dataclass
class Job:
    """One job that ran, or one instance of it."""

    name: str
    green: bool = True
    skipped: bool = False
    log: str = ""
    summary: str = ""


@dataclass
class Place:
    """The machine: a folder for everything, the remote, and the environment that every process gets."""

    folder: Path
    remote: Path
    environment: dict[str, str]
    jobs: list[Job] = field(default_factory=list)
    count: int = 0

    @classmethod
    def made(cls, folder: Path, project: Path) -> "Place":
        """Make the remote from the files in `project`."""
        home = folder / "home"
        commands = folder / "bin"
        for each in (home, commands):
            each.mkdir(parents=True)
        warm = warm_pytest().path
        for name, text in (
            ("pip", "#!/bin/sh\nexit 0\n"),
            ("pytest", ORDER.format(python=sys.executable, key="args", path=warm)),
            ("regcase", ORDER.format(python=sys.executable, key="regcase", path=warm)),
        ):
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        (home / ".gitconfig").write_text(
            "[user]\nname = dev\nemail = dev@example.com\n[init]\ndefaultBranch = main\n"
        )
        path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        environment = {**kept, "HOME": str(home), "PATH": path, "PYTEST_ADDOPTS": WITHOUT_OTHERS}
        place = cls(folder, folder / "remote.git", environment)
        place.git(folder, "init", "--quiet", "--bare", str(place.remote))
        place.git(project, "init", "--quiet")
        place.git(project, "remote", "add", "origin", place.remote.as_uri())
        place.publish(project, "start")
        return place

    def git(self, folder: Path, *words: str) -> str:
        """Run git in `folder` as a developer would; return what it says."""
        done = subprocess.run(["git", *words], cwd=folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def publish(self, project: Path, message: str) -> str:
        """Commit everything in a developer's checkout and push it to the default branch; return the commit."""
        self.git(project, "add", "--all")
        self.git(project, "commit", "--quiet", "--message", message)
        self.git(project, "push", "--quiet", "origin", "HEAD:refs/heads/main")
        return self.git(project, "rev-parse", "HEAD")

    def has_branch(self, name: str) -> bool:
        """Say whether the remote has the branch."""
        return bool(self.git(self.folder, "ls-remote", "--heads", str(self.remote), name))

    def workspace(self) -> Path:
        """Return an empty folder for one job."""
        self.count += 1
        folder = self.folder / f"job-{self.count}"
        folder.mkdir()
        return folder

    def bash(self, folder: Path, script: str, variables: Mapping[str, str], log: list[str]) -> bool:
        """Run a script as both hosts do, stopping at the first failure; say whether it was green."""
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        log.append(f"$ {script}\n{done.stdout}")
        return done.returncode == 0


WITHOUT_OTHERS = " ".join(
    f"-pno:{name}" for name in ("randomly", "hypothesispytest", "benchmark", "pytest_cov", "timeout", "xdist")
)


class GitHub:
    """Runs one workflow file."""

    def __init__(
        self, place: Place, workflow: Yaml, *, run_id: str, event: Mapping[str, str], secrets: Yaml
    ) -> None:
        self._place = place
        self._workflow = workflow
        self._secrets = secrets
        self._event = event
        self._artifacts = place.folder / f"artifacts-{run_id}"
        self._variables = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": run_id,
            "GITHUB_ACTOR": "someone",
            **event,
        }

    def run(self) -> list[Job]:
        """Run all jobs, those that are needed first."""
        done: dict[str, list[Job]] = {}
        for name, job in self._workflow["jobs"].items():  # written in the order of their needs
            green = all(each.green for each in done.get(job.get("needs", ""), []))
            if not self._holds(job.get("if", "success()"), green, {}):
                done[name] = [Job(name, green=False, skipped=True)]
                continue
            matrix = job.get("strategy", {}).get("matrix", {"": [""]})
            ((key, values),) = matrix.items()
            done[name] = [self._job(name, job, {f"matrix.{key}": str(value)}) for value in values]
        return [each for jobs in done.values() for each in jobs]

    def _job(self, name: str, job: Yaml, matrix: dict[str, str]) -> Job:
        workspace = self._place.workspace()
        summary = workspace.with_suffix(".summary")
        summary.touch()
        log: list[str] = []
        outcomes: dict[str, str] = {}
        green = True
        for step in job["steps"]:
            context = {**matrix, **{f"steps.{each}.outcome": outcome for each, outcome in outcomes.items()}}
            if not self._holds(step.get("if", "success()"), green, context):
                continue
            given = {**job.get("env", {}), **step.get("env", {})}
            variables = {key: self._filled(str(value), context) for key, value in given.items()}
            variables = {key: value for key, value in variables.items() if value}
            variables |= {
                "GITHUB_WORKSPACE": str(workspace),
                "GITHUB_STEP_SUMMARY": str(summary),
                **self._variables,
            }
            if "run" in step:
                passed = self._place.bash(workspace, self._filled(step["run"], context), variables, log)
            else:
                with_ = {key: self._filled(str(value), context) for key, value in step.get("with", {}).items()}
                passed = self._uses(step["uses"].partition("@")[0], with_, workspace)
            outcomes[step.get("id", "")] = "success" if passed else "failure"
            green = green and (passed or step.get("continue-on-error", False))
        return Job(name, green=green, log="\n".join(log), summary=summary.read_text())

    def _uses(self, action: str, with_: Mapping[str, str], workspace: Path) -> bool:
        if action == "actions/checkout":
            return self._checkout(with_, workspace / with_.get("path", ""))
        if action == "actions/upload-artifact":
            kept = self._artifacts / with_["name"]
            files = [
                file for line in with_["path"].split("\n") if line for file in sorted(workspace.glob(line.strip()))
            ]
            assert with_.get("include-hidden-files") == "True" or not any(
                ".regcase" in str(each) for each in files
            )
            for each in files:
                kept.mkdir(parents=True, exist_ok=True)
                if each.is_dir():
                    shutil.copytree(each, kept / each.name)
                else:
                    shutil.copy(each, kept)
            return True
        if action == "actions/download-artifact":
            for each in sorted(self._artifacts.glob(with_["pattern"])):
                shutil.copytree(each, workspace / with_["path"] / each.name)
            return True
        assert action == "actions/setup-python", action
        return True

    def _checkout(self, with_: Mapping[str, str], folder: Path) -> bool:
        ref = with_.get("ref", "")
        if ref and not self._place.has_branch(ref):
            return False
        depth = [] if with_.get("fetch-depth") == "0" else ["--depth=1", "--no-single-branch"]
        branch = ["--branch", ref] if ref else []
        self._place.git(
            self._place.folder, "clone", "-q", *depth, *branch, self._place.remote.as_uri(), str(folder)
        )
        if not ref:
            self._place.git(folder, "checkout", "--quiet", "--detach", self._event["GITHUB_SHA"])
        if with_.get("persist-credentials") == "False":
            self._place.git(folder, "remote", "set-url", "--push", "origin", "no-credentials")
        return True

    def _holds(self, condition: str, green: bool, context: Mapping[str, str]) -> bool:
        parts = [each.strip() for each in condition.split("&&")]
        if not green and "always()" not in parts:
            return False
        return all(each in ("always()", "success()") or self._equal(each, context) for each in parts)

    def _equal(self, comparison: str, context: Mapping[str, str]) -> bool:
        one, other = (each.strip() for each in comparison.split("=="))
        return self._value(one, context) == self._value(other, context)

    def _filled(self, text: str, context: Mapping[str, str]) -> str:
        return re.sub(r"\$\{\{ *(.+?) *\}\}", lambda found: self._value(found[1], context), text)

    def _value(self, name: str, context: Mapping[str, str]) -> str:
        if name.startswith("'"):
            return name.strip("'")
        if name.startswith("secrets."):
            return str(self._secrets.get(name.removeprefix("secrets."), ""))
        return {"github.ref_name": self._event["GITHUB_REF_NAME"], **context}[name]


class GitLab:
    """Runs one pipeline of a .gitlab-ci.yml."""

    def __init__(self, place: Place, file: Yaml, *, pipeline: str, variables: Mapping[str, str]) -> None:
        self._place = place
        self._file = file
        self._variables = {"CI_PIPELINE_ID": pipeline, "CI_DEFAULT_BRANCH": "main", **variables}
        self._artifacts = place.folder / f"pipeline-{pipeline}"

    def run(self) -> list[Job]:
        """Run the jobs whose rules hold, stage by stage."""
        jobs: list[Job] = []
        green = True
        for stage in self._file["stages"]:
            before = green
            for name, job in self._file.items():
                rule = self._rule(job) if not name.startswith(".") and name != "stages" else None
                if job_is_of(job, stage) and rule is not None and (before or rule.get("when") == "always"):
                    made = list(self._instances(name, job))
                    green = green and all(each.green for each in made)
                    jobs += made
        return jobs

    def _rule(self, job: Yaml) -> Yaml | None:
        return next((each for each in job["rules"] if self._holds(each["if"])), None)

    def _holds(self, condition: str) -> bool:
        for part in condition.split("&&"):
            one, _, other = (each.strip() for each in part.partition("=="))
            value = self._variables.get(one.removeprefix("$"), "")
            wanted = self._variables.get(other[1:], "") if other.startswith("$") else other.strip('"')
            if not value or (other and value != wanted):
                return False
        return True

    def _instances(self, name: str, job: Yaml) -> Iterator[Job]:
        hidden = self._file[job["extends"]]
        total = job.get("parallel", 1)
        for index in range(1, total + 1):
            workspace = self._place.workspace()
            sha = self._variables["CI_COMMIT_SHA"]
            self._place.git(self._place.folder, "clone", "-q", self._place.remote.as_uri(), str(workspace))
            self._place.git(workspace, "checkout", "--quiet", "--detach", sha)
            self._place.git(workspace, "remote", "set-url", "--push", "origin", "no-credentials")
            if self._artifacts.is_dir() and "needs" in job:
                shutil.copytree(self._artifacts, workspace, dirs_exist_ok=True)
            numbers = {"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(total)}
            variables = {**hidden["variables"], **self._variables, **numbers}
            log: list[str] = []
            script = "\n".join(_flat([hidden["before_script"], job["script"]]))
            green = self._place.bash(workspace, script, variables, log)
            if "after_script" in job:
                self._place.bash(workspace, "\n".join(_flat(job["after_script"])), variables, log)
            for pattern in job["artifacts"]["paths"]:
                for each in workspace.glob(pattern):
                    target = self._artifacts / each.relative_to(workspace)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if each.is_dir():
                        shutil.copytree(each, target, dirs_exist_ok=True)
                    else:
                        shutil.copy(each, target)
            yield Job(name, green=green, log="\n".join(log))


def job_is_of(job: Any, stage: str) -> bool:
    """Say whether this is a job of the stage, and not a list of stages or a part of a script."""
    return isinstance(job, dict) and job.get("stage") == stage


def _flat(script: Iterable[Any]) -> Iterator[str]:
    for each in script:
        if isinstance(each, str):
            yield each
        else:
            yield from _flat(each)
