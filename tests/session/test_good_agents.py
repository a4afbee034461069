"""Three good agents in different styles, over the whole catalogue of simulations: nothing of theirs is broken."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_regcase.session.reviews.catalogue import catalogue
from tests.session.attempt_project import make_project

AGENTS = Path(__file__).resolve().parent.parent / "demo" / "good_agents"
AT_ONCE = 8
"""Much of an attempt is waiting."""

STYLES: dict[str, tuple[tuple[str, ...], str]] = {
    "plain loop, exit code 1": (("python", "-m", "pytest_regcase.demo.agent", "--timeout", "2.5"), ""),
    "status file, exit code 0": (
        (sys.executable, str(AGENTS / "status_file.py")),
        'submission = "{out_dir}/result.json#/patch"\n'
        'answer = "{out_dir}/result.json#/answer"\n'
        'status = "{out_dir}/result.json#/status"\n',
    ),
    "stream, resumes": (
        (sys.executable, str(AGENTS / "resuming_stream.py")),
        'submission = "{out_dir}/state.json#/patch"\nstatus = "{out_dir}/state.json#/status"\n',
    ),
}
"""The command, and where each declares its result."""

NO_MEANING = {
    "plain loop, exit code 1": {
        "credit-too-low-v1",
        "keep-alive-only-v1",
        "mid-stream-error-v1",
        "stream-without-end-v1",
    },
    "status file, exit code 0": {
        "keep-alive-only-v1",
        "mid-stream-error-v1",
        "null-answer-v1",
        "stream-without-end-v1",
    },
    "stream, resumes": {"credit-too-low-v1"},
}
"""What each cannot meet: it needs a stream, or the other API."""


@pytest.mark.slow
@pytest.mark.parametrize("style", list(STYLES))
def test_no_false_alarm_over_the_catalogue(tmp_path: Path, repository: Path, style: str) -> None:
    names = sorted(path.stem for path in (repository / "fixtures").glob("*.toml"))
    command, places = STYLES[style]
    made = make_project(
        tmp_path,
        command,
        simulations=names,
        stop_within_seconds=40,
        deadline_seconds=50,
        expected="no_repeated_side_effect = true",
        places=places,
    )
    catalogue(made.project)  # loads every fault: not for the first time in several threads at once
    with ThreadPoolExecutor(AT_ONCE) as pool:
        control, *made_of = pool.map(made.run, ["control", *names])
    records = dict(zip(names, made_of, strict=True))
    assert control.verdict == "finished"
    broken = {name: [each.says for each in record.broken] for name, record in records.items() if record.broken}
    assert broken == {}
    # Whatever it can meet it has met: nothing passes because it was not delivered.
    without = {name: record.says or "" for name, record in records.items() if record.verdict != "recovered"}
    assert set(without) == NO_MEANING[style], without
    assert all(says.startswith("the fault has no meaning here") for says in without.values())
    unseen = {
        each.expectation for one in records.values() for each in one.findings if each.status == "not-observable"
    }
    # A result file shows no transcript, so no call that could have been repeated.
    assert unseen == ({"no_repeated_side_effect"} if style.startswith("status file") else set())
