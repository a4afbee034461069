"""A claimed fix under the nightly profile: refuted at the first recurrence, or counted over sessions to the end.

The rule is 30 % at 5 % risk, which 9 clean runs settle. That the default is 29 is tested with scripted attempts.
"""

import re

from tests.live.conftest import LiveProject
from tests.live.local_upstream import LocalUpstream, serving


def test_a_recurrence_refutes_the_claim_and_stays_red_though_nothing_is_run(project: LiveProject) -> None:
    with serving(LocalUpstream(rate=0.3, seed=4)) as upstream:
        project.point_at(upstream.base_url, patience=0.4)
        assert project.regcase("fix", "silent-step-3", "--note", "longer time-out") == 0
        first = project.pytest("--regcase-live=9")
        drawn = upstream.attempts
        assert any(drawn)
        first_recurrence = drawn.index(True) + 1
        assert first.returncode == 1, first.stdout
        assert re.search(rf"run-{first_recurrence:03d}\S* FAILED", first.stdout), first.stdout
        # Serially nothing above the recurrence is run.
        assert len(drawn) == first_recurrence
        requests = upstream.requests

        second = project.pytest("--regcase-live=9")
    assert second.returncode == 1, second.stdout
    assert "live::run-" not in second.stdout
    assert upstream.requests == requests
    assert f"the symptom came back in live run {first_recurrence}" in second.stdout


def test_clean_draws_complete_the_count_over_two_sessions(project: LiveProject) -> None:
    with serving(LocalUpstream()) as upstream:
        project.point_at(upstream.base_url)
        assert project.regcase("fix", "silent-step-3") == 0
        first = project.pytest("--regcase-live=5")
        assert first.returncode == 0, first.stdout
        assert "5 of 9" in first.stdout
        second = project.pytest("--regcase-live=9", "-n", "2")
        assert second.returncode == 0, second.stdout
        assert len(upstream.attempts) == 9
        assert "9 of 9" in second.stdout
        assert "verifying" in second.stdout
        third = project.pytest("--regcase-live=9")
    assert third.returncode == 0, third.stdout
    assert len(upstream.attempts) == 9
    assert upstream.keys == set(), "the agent's throw-away key reached the real supplier"


def test_a_stall_one_step_later_is_not_clean(project: LiveProject) -> None:
    with serving(LocalUpstream(rate=1.0, step=4)) as upstream:
        project.point_at(upstream.base_url, patience=0.4)
        assert project.regcase("fix", "silent-step-3") == 0
        result = project.pytest("--regcase-live=1")
    assert result.returncode == 1, result.stdout
    assert "0 of 9" in result.stdout


def test_another_exception_is_not_clean(project: LiveProject) -> None:
    with serving(LocalUpstream(rate=1.0, how="reject")) as upstream:
        project.point_at(upstream.base_url)
        assert project.regcase("fix", "silent-step-3") == 0
        result = project.pytest("--regcase-live=1")
    assert result.returncode == 1, result.stdout
    assert "0 of 9" in result.stdout
    assert "failed-otherwise" in result.stdout


def test_without_an_upstream_a_live_attempt_is_inconclusive(project: LiveProject) -> None:
    text = (project.root / "pyproject.toml").read_text()
    (project.root / "pyproject.toml").write_text(
        text.replace('[tool.regcase.upstream]\nbase_url = "http://127.0.0.1:9/v1"\n', "")
    )
    assert project.regcase("fix", "silent-step-3") == 0
    result = project.pytest("--regcase-live=2")
    assert result.returncode == 1, result.stdout
    assert "[tool.regcase.upstream] is not configured" in result.stdout


def test_without_a_claimed_fix_nothing_live_is_planned(project: LiveProject) -> None:
    with serving(LocalUpstream()) as upstream:
        project.point_at(upstream.base_url)
        result = project.pytest("--regcase-live=3")
    assert result.returncode == 0, result.stdout
    assert upstream.requests == 0


def test_an_upstream_that_nobody_serves_is_no_draw(project: LiveProject) -> None:
    assert project.regcase("fix", "silent-step-3") == 0
    refused = project.pytest("--regcase-live=1")
    assert refused.returncode == 1, refused.stdout
    assert "no draw was made: the upstream refused the connection" in refused.stdout
    with serving(LocalUpstream()) as upstream:
        project.point_at(upstream.base_url)
        served = project.pytest("--regcase-live=1")
    assert served.returncode == 0, served.stdout
    assert "1 of 9" in served.stdout


def test_an_answer_seen_before_is_said_and_not_counted(project: LiveProject) -> None:
    with serving(LocalUpstream(canned=True)) as upstream:
        project.point_at(upstream.base_url)
        assert project.regcase("fix", "silent-step-3") == 0
        result = project.pytest("--regcase-live=2")
    assert "1 of 9" in result.stdout, result.stdout
    assert "clean live run 2: not counted, no draw of its own" in " ".join(result.stdout.split())


def test_runs_of_another_revision_are_set_aside_and_said(project: LiveProject) -> None:
    with serving(LocalUpstream()) as upstream:
        project.point_at(upstream.base_url)
        assert project.regcase("fix", "silent-step-3") == 0
        assert "1 of 9" in project.pytest("--regcase-live=1").stdout
        (project.root / "agent.txt").write_text("revision 2\n")
        result = project.pytest("--regcase-live=1")
    text = " ".join(result.stdout.split())
    assert "1 of 9" in text
    assert "live runs since fix 1 that do not count: 1; the agent's revision" in text, result.stdout


def test_a_key_that_is_not_set_is_refused_before_anything_runs(project: LiveProject) -> None:
    text = (project.root / "pyproject.toml").read_text()
    (project.root / "pyproject.toml").write_text(
        text.replace("[tool.regcase.upstream]", '[tool.regcase.upstream]\napi_key_env = "REGCASE_TEST_NO_KEY"')
    )
    assert project.regcase("fix", "silent-step-3") == 0
    result = project.pytest("--regcase-live=1")
    assert result.returncode == 4
    assert "REGCASE_TEST_NO_KEY" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr + result.stdout
