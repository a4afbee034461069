"""The workflows of docs/ci.md do what the page says: each of their commands is run, against a local remote."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.ci_runner import GitHub, GitLab, Job, Place
from tests.ledger.postgres import an_empty_schema
from tests.plugin.gate_project import PYPROJECT, SCRIPTED, write_case, write_simulation

PAGE = (Path(__file__).parent.parent / "docs" / "ci.md").read_text(encoding="utf-8")
KEY = "sk-a-key-of-the-model"
TOKEN = "a-token-that-may-push"
BASELINE = '\n[baseline]\nfailures = 20\ntrials = 200\nkind = "all-attempts"\npopulation = "task"\n'


def block(kind: str) -> str:
    (text,) = re.findall(rf"^```{re.escape(kind)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def workflow(name: str) -> Any:
    return yaml.safe_load(block(f"yaml {name}"))


WORKFLOWS = [f"github {each}" for each in ("pull-request", "nightly", "nightly postgresql", "release")]


def a_project(folder: Path, script: dict[str, list[str]]) -> Path:
    """A developer's checkout: three cases, one agent whose attempts are scripted, a supplier that needs a key."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PYPROJECT + 'api_key_env = "OPENAI_API_KEY"\n')
    (folder / "conftest.py").write_text(SCRIPTED.read_text())
    (folder / ".gitignore").write_text(".regcase/\n__pycache__/\n.pytest_cache/\ncalls.jsonl\n")
    (folder / "script.json").write_text(json.dumps(script))
    write_simulation(folder, "stall-v1")
    for number in (1, 2, 3):
        write_case(folder, f"trial-{number}", ["stall-v1"], BASELINE)
    return folder


class Life(NamedTuple):
    """What a host did, one entry a workflow run, in order."""

    place: Place
    runs: dict[str, list[Job]]
    heads: dict[str, str]
    """The head of the ledger branch after each run; empty where there is none."""

    def note(self, name: str, jobs: list[Job]) -> None:
        self.runs[name] = jobs
        remote = self.place.remote.as_uri()
        self.heads[name] = self.place.git(self.place.folder, "ls-remote", remote, "refs/heads/regcase-ledger")

    def job(self, run: str, name: str) -> Job:
        """The last job of that name: a gate comes after its shards."""
        return [each for each in self.runs[run] if each.name == name][-1]

    def greens(self, run: str) -> list[bool]:
        return [each.green for each in self.runs[run]]

    def ledger(self) -> list[dict[str, Any]]:
        text = self.place.git(self.place.remote, "show", "regcase-ledger:ledger.jsonl")
        return [json.loads(line) for line in text.splitlines()]


def claim_a_fix(place: Place, project: Path) -> str:
    """Do what the page says, and publish the case file; return the commit."""
    log: list[str] = []
    said = block("sh ledger").replace("trial-37", "trial-1")
    assert place.bash(project, said, {}, log), log
    return place.publish(project, "claim a fix")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A project's first two nights and what lies around them: on GitHub, then on GitLab."""
    folder = tmp_path_factory.mktemp("ci")
    project = a_project(folder / "project", {"trial-1::live": ["clean", "recurred"]})
    place = Place.made(folder, project)
    url = f"https://regcase:{TOKEN}@gitlab.example/group/project.git"
    with (folder / "home" / ".gitconfig").open("a") as file:
        file.write(f'[url "{place.remote.as_uri()}"]\ninsteadOf = "{url}"\n')
    life = Life(place, {}, {})

    def github(name: str, sha: str, ref: str, **secrets: str) -> None:
        event = {"GITHUB_SHA": sha, "GITHUB_REF_NAME": ref, "GITHUB_BASE_REF": "main"}
        run_id = str(len(life.runs) + 1)
        hosted = GitHub(place, workflow(f"github {name}"), run_id=run_id, event=event, secrets=secrets)
        life.note(f"github {name}", hosted.run())

    def gitlab(name: str, sha: str, **variables: str) -> None:
        server = {"CI_SERVER_HOST": "gitlab.example", "CI_PROJECT_PATH": "group/project"}
        given = {**server, "GITLAB_USER_LOGIN": "someone", "CI_COMMIT_SHA": sha, **variables}
        pipeline = str(len(life.runs) + 1)
        life.note(f"gitlab {name}", GitLab(place, workflow("gitlab"), pipeline=pipeline, variables=given).run())

    main = place.git(project, "rev-parse", "HEAD")
    place.git(project, "checkout", "-q", "-b", "change")
    (project / "script.json").write_text(json.dumps({"trial-2::stall-v1": ["not-recovered"] * 3}))
    place.git(project, "commit", "-qam", "a change that breaks a check")
    place.git(project, "push", "-q", "origin", "change")
    change = place.git(project, "rev-parse", "HEAD")
    place.git(project, "checkout", "-q", "main")

    github("nightly", main, "main", OPENAI_API_KEY=KEY)
    github("pull-request", change, "1/merge")
    github("release", main, "v1")
    claimed = claim_a_fix(place, project)
    protected = {"OPENAI_API_KEY": KEY, "REGCASE_PUSH_TOKEN": TOKEN}
    gitlab("nightly", claimed, CI_PIPELINE_SOURCE="schedule", CI_COMMIT_BRANCH="main", **protected)
    request = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    gitlab("merge request", claimed, **request)
    gitlab("release", claimed, CI_COMMIT_TAG="v2", **protected)
    return life


def test_every_night_appends_whatever_came_out(life: Life) -> None:
    assert life.greens("github nightly") == [True, True, True]
    assert life.job("gitlab nightly", "regcase-nightly-ledger").green is False
    history = life.place.git(life.place.remote, "log", "--format=%s", "regcase-ledger").splitlines()
    assert [each.split()[-1] for each in history] == ["6", "4", "v1", "1"]
    lines = life.ledger()
    assert {line["run_id"] for line in lines if line["kind"] == "session"} == {"1", "4"}
    verdicts = [json.loads(line["record"])["verdict"] for line in lines if line["kind"] == "attempt"]
    assert (len(verdicts), verdicts.count("clean"), verdicts.count("recurred")) == (14, 1, 1)


def test_a_developers_fix_is_counted_by_the_next_night(life: Life) -> None:
    log = life.job("gitlab nightly", "regcase-nightly-ledger").log
    assert "the symptom came back in live run 2" in log
    assert "the ledger that the last fix was claimed on is not this one" not in log


def test_pull_requests_read_and_never_write(life: Life) -> None:
    assert life.heads["github pull-request"] == life.heads["github nightly"]
    assert life.heads["gitlab merge request"] == life.heads["gitlab nightly"]
    assert life.greens("gitlab merge request") == [True, True, True]
    # What the night saw is known here, and does not gate.
    assert "the symptom came back in live run 2" in life.job("gitlab merge request", "regcase-gate").log


def test_a_pull_request_is_decided_over_its_shards(life: Life) -> None:
    assert sorted(life.greens("github pull-request")[:2]) == [False, True]
    gate = life.job("github pull-request", "gate")
    assert gate.green is False
    assert "shard 1/2" in gate.log
    assert "shard 2/2" in gate.log
    title = "title=regcase check-broken%3A trial-2"
    line = f"::error file=cases/trial-2/case.toml,line=13,{title}::stall-v1: max_retries broken in 3 of 3 attempts"
    assert f"\n{line}\n" in gate.log
    assert gate.summary.startswith("## regcase: FAIL\n")
    kept = life.place.folder / "artifacts-2"
    assert len(list(kept.glob("shard-*/junit.xml"))) == 2
    assert (kept / "decision" / "comment.md").read_text() == gate.summary


def test_a_release_that_passes_becomes_active(life: Life) -> None:
    assert life.greens("github release") == [True]
    (active,) = [line for line in life.ledger() if line["kind"] == "version"]
    assert (active["who"], active["why"]) == ("someone", "v1")
    kept = life.place.folder / "artifacts-3" / "decision"
    assert list(kept.rglob("decisions/*/0001.json"))
    decision = json.loads((kept / "decision.json").read_text())["gate"]
    assert (decision["decision"], decision["profile"]) == ("pass", "release")


def test_a_release_that_fails_changes_nothing_and_its_decision_is_kept(life: Life) -> None:
    assert life.greens("gitlab release") == [False]
    assert life.heads["gitlab release"] != life.heads["gitlab merge request"]
    about = [line["decision"] for line in life.ledger() if line["kind"] == "decision" and "candidate" in str(line)]
    assert sorted('"fail"' in each for each in map(str, about)) == [False, True]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a ledger on a server; of a file where there is none."""
    with ExitStack() as stack:
        given = os.environ.get("REGCASE_TEST_POSTGRES")
        file = tmp_path_factory.mktemp("server") / "ledger.sqlite3"
        yield stack.enter_context(an_empty_schema()) if given else f"sqlite:///{file}"


def test_a_night_on_a_server_needs_no_exchange_and_leaves_a_copy(tmp_path: Path, server: str) -> None:
    place = Place.made(tmp_path, a_project(tmp_path / "project", {}))
    sha = place.git(tmp_path / "project", "rev-parse", "HEAD")
    event = {"GITHUB_SHA": sha, "GITHUB_REF_NAME": "main"}
    secrets = {"OPENAI_API_KEY": KEY, "REGCASE_LEDGER": server}
    jobs = GitHub(place, workflow("github nightly postgresql"), run_id="1", event=event, secrets=secrets).run()
    assert [each.green for each in jobs] == [True, True, True], "\n".join(each.log for each in jobs)
    lines = Life(place, {}, {}).ledger()
    assert sum(line["kind"] == "attempt" for line in lines) == 6


def test_another_branch_never_writes(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path / "remote.git", {})
    event = {"GITHUB_SHA": "0" * 40, "GITHUB_REF_NAME": "a-branch"}
    for name in ("github nightly", "github nightly postgresql"):
        jobs = GitHub(place, workflow(name), run_id="1", event=event, secrets={}).run()
        assert all(each.skipped for each in jobs)


def test_no_secret_shows_up_in_a_log(life: Life) -> None:
    for jobs in life.runs.values():
        assert not any(secret in job.log for job in jobs for secret in (KEY, TOKEN))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_permissions_are_minimal_and_every_job_ends(name: str) -> None:
    parsed = workflow(name)
    assert parsed["permissions"] == {"contents": "read"}
    for job in parsed["jobs"].values():
        assert job["timeout-minutes"] > 0
        pushes = "git push" in str(job)
        assert job.get("permissions", {"contents": "read"}) == {"contents": "write" if pushes else "read"}
        alone = {"group": "regcase-ledger", "cancel-in-progress": False} if pushes else None
        assert job.get("concurrency") == alone
        # A job that runs agents leaves no credentials of git where they could be read.
        runs_agents = "pytest --regcase" in str(job)
        checkouts = [step for step in job["steps"] if "checkout" in step.get("uses", "")]
        assert not (runs_agents and pushes)
        assert pushes or all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_pull_requests_have_no_key_make_no_live_run_and_push_nothing() -> None:
    parsed = workflow("github pull-request")
    assert parsed[True] == "pull_request"  # YAML 1.1 reads `on` as true
    text = str(parsed)
    of_gitlab = [job for job in workflow("gitlab").values() if "merge_request_event" in str(job)]
    assert len(of_gitlab) == 2
    for each in (text, *map(str, of_gitlab)):
        assert not re.search(r"secrets\.|TOKEN|git push|--regcase-live|nightly", each)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_text_that_others_choose_is_put_into_a_script(name: str) -> None:
    for job in workflow(name)["jobs"].values():
        for step in job["steps"]:
            assert set(re.findall(r"\$\{\{ *(\w+)", step.get("run", ""))) <= {"matrix"}


def test_the_one_writer_on_gitlab_is_alone() -> None:
    for job in workflow("gitlab").values():
        if isinstance(job, dict) and "git push" in str(job):
            assert job["resource_group"] == "regcase-ledger"
