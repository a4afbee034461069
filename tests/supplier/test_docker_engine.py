import os

import pytest

from pytest_regcase.supplier import docker_engine
from pytest_regcase.supplier.docker_engine import EngineSilent, ask_docker, containers_named
from tests.supplier.engines import FakeDocker

ROWS = (
    "regcase-0a1b\tmy-agent:2\tUp 3 seconds\t\n"
    "db\tpostgres:16\tUp 2 days\tcom.docker.compose.service=db\n"
    "agile_curie\tmy-agent:2\tExited (0) 1 second ago\tattempt=regcase-0a1b,team=x\n"
    "regcase-ffff\tmy-agent:2\tCreated\t\n"
)


def test_containers_are_found_by_their_name_and_by_a_label(fake_docker: FakeDocker) -> None:
    fake_docker.says(ps=(0, ROWS, ""))
    assert containers_named(["regcase-0a1b", "regcase-9999"]) == (
        "regcase-0a1b (my-agent:2, Up 3 seconds)",
        "agile_curie (my-agent:2, Exited (0) 1 second ago)",
    )
    assert fake_docker.asked == ["ps --all --format {{.Names}}\t{{.Image}}\t{{.Status}}\t{{.Labels}}"]
    assert containers_named([]) == ()


@pytest.mark.parametrize(
    ("stderr", "says"),
    [("\n  Cannot connect.\nSecond line.\n", "docker ps says: Cannot connect."), ("", "docker ps says: nothing")],
)
def test_the_engines_own_words_are_the_reason(fake_docker: FakeDocker, stderr: str, says: str) -> None:
    fake_docker.says(ps=(1, "", stderr))
    with pytest.raises(EngineSilent) as caught:
        ask_docker("ps")
    assert str(caught.value) == says


def test_an_engine_that_hangs_is_silent(fake_docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    # Opening a pipe into which nobody writes takes for ever.
    fake_docker.answers.unlink()
    os.mkfifo(fake_docker.answers)
    monkeypatch.setattr(docker_engine, "LIMIT_SECONDS", 0.001)
    with pytest.raises(EngineSilent, match=r"docker ps did not answer within 0\.001 s"):
        ask_docker("ps")
