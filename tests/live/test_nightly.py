"""A claimed fix under the nightly profile: refuted at the first recurrence, or counted to 29 over sessions."""

import re

from tests.live.conftest import LiveProject
from tests.live.local_upstream import LocalUpstream, serving


def test_a_recurrence_refutes_the_claim_and_stays_red_though_nothing_is_run(project: LiveProject) -> None:
    with serving(LocalUpstream(rate=0.3, seed=4)) as upstream:
        project.point_at(upstream.base_url)
        assert project.regcase("fix", "silent-step-3", "--note", "longer time-out").returncode == 0
        first = project.pytest("--regcase-live=29")
        drawn = upstream.attempts
        assert any(drawn)
        first_recurrence = drawn.index(True) + 1
        assert first.returncode == 1, first.stdout
        assert re.search(rf"run-{first_recurrence:03d}\S* FAILED", first.stdout), first.stdout
        # Serially nothing above the recurrence is run.
        assert len(drawn) == first_recurrence
        requests = upstream.requests

        second = project.pytest("--regcase-live=29")
    assert second.returncode == 1, second.stdout
    assert "live::run-" not in second.stdout
    assert upstream.requests == requests
    assert f"the symptom came back in live run {first_recurrence}" in second.stdout


def test_clean_draws_complete_the_count_over_two_sessions(project: LiveProject) -> None:
    with serving(LocalUpstream()) as upstream:
        project.point_at(upstream.base_url)
        assert project.regcase("fix", "silent-step-3").returncode == 0
        first = project.pytest("--regcase-live=15")
        assert first.returncode == 0, first.stdout
        assert "15 of 29" in first.stdout
        second = project.pytest("--regcase-live=29", "-n", "2")
        assert second.returncode == 0, second.stdout
        assert len(upstream.attempts) == 29
        assert "29 of 29" in second.stdout
        assert "verifying" in second.stdout
        third = project.pytest("--regcase-live=29")
    assert third.returncode == 0, third.stdout
    assert len(upstream.attempts) == 29
    assert upstream.keys == set(), "the agent's throw-away key reached the real supplier"


def test_a_stall_one_step_later_is_not_clean(project: LiveProject) -> None:
    with serving(LocalUpstream(rate=1.0, step=4)) as upstream:
        project.point_at(upstream.base_url)
        assert project.regcase("fix", "silent-step-3").returncode == 0
        result = project.pytest("--regcase-live=1")
    assert result.returncode == 1, result.stdout
    assert "0 of 29" in result.stdout


def test_another_exception_is_not_clean(project: LiveProject) -> None:
    with serving(LocalUpstream(rate=1.0, how="reject")) as upstream:
        project.point_at(upstream.base_url)
        assert project.regcase("fix", "silent-step-3").returncode == 0
        result = project.pytest("--regcase-live=1")
    assert result.returncode == 1, result.stdout
    assert "0 of 29" in result.stdout
    assert "failed-otherwise" in result.stdout


def test_without_an_upstream_a_live_attempt_is_inconclusive(project: LiveProject) -> None:
    text = (project.root / "pyproject.toml").read_text()
    (project.root / "pyproject.toml").write_text(
        text.replace('[tool.regcase.upstream]\nbase_url = "http://127.0.0.1:9/v1"\n', "")
    )
    assert project.regcase("fix", "silent-step-3").returncode == 0
    result = project.pytest("--regcase-live=2")
    assert result.returncode == 1, result.stdout
    assert "[tool.regcase.upstream] is not configured" in result.stdout


def test_without_a_claimed_fix_nothing_live_is_planned(project: LiveProject) -> None:
    with serving(LocalUpstream()) as upstream:
        project.point_at(upstream.base_url)
        result = project.pytest("--regcase-live=3")
    assert result.returncode == 0, result.stdout
    assert upstream.requests == 0
