"""Which lines bear on which hypothesis: small logs, and decoys that must not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pytest_regcase.case_files import built_in_folder, load_simulation
from pytest_regcase.evidence import compare as comparing
from pytest_regcase.evidence.citing import lines_text
from pytest_regcase.evidence.compare import Compared, LogRead, compared, read_log, targets_of
from pytest_regcase.evidence.entries import Log
from pytest_regcase.evidence.window import window_between
from pytest_regcase.records.case import Hypothesis
from pytest_regcase.records.simulation import Simulation

LOGS = Path(__file__).parent / "logs"
OBSERVED = datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)
WINDOW = window_between(None, OBSERVED)
HYPOTHESES = (
    Hypothesis(id="deadline", simulations=("deadline-no-answer-v1",)),
    Hypothesis(id="resource-exhaustion", simulations=("oom-killed-v1",)),
    Hypothesis(id="engine", simulations=("engine-dead-v1",)),
    Hypothesis(id="auth", simulations=("auth-rejected-v1",)),
    Hypothesis(id="hidden", simulations=("hidden-rejection-v1",)),
)


@pytest.fixture(scope="module")
def simulations() -> dict[str, Simulation]:
    ids = [name for each in HYPOTHESES for name in each.simulations]
    return {name: load_simulation(built_in_folder() / f"{name}.toml").simulation for name in ids}


def read(*names: str) -> list[LogRead]:
    return [read_log(Log.open(LOGS / name), number, WINDOW, OBSERVED) for number, name in enumerate(names)]


def shown(found: tuple[Compared, ...]) -> dict[str, tuple[list[str], list[str]]]:
    """Hypothesis -> lines that support it and lines that refute it; silent ones are left out."""
    return {
        each.hypothesis: (
            [lines_text(hit.first, hit.last) for hit in each.supports],
            [lines_text(hit.first, hit.last) for hit in each.refutes],
        )
        for each in found
        if not each.silent
    }


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        # Line 5 is of another hour.
        (
            "kern.log",
            {"deadline": ([], ["2-4"]), "resource-exhaustion": (["2-4"], []), "engine": (["2-4"], [])},
        ),
        # Line 2 is no call of a model, line 4 of another hour; line 3 is written with another offset.
        ("access.log", {"auth": (["3"], [])}),
        ("vllm.log", {"deadline": ([], ["5"]), "engine": (["5"], [])}),
        ("test-output.txt", {}),
        ("agent.log", {}),
        ("transcript.jsonl", {}),
        ("dmesg.txt", {}),
    ],
)
def test_what_a_log_shows(
    log: str, expected: dict[str, tuple[list[str], list[str]]], simulations: dict[str, Simulation]
) -> None:
    assert shown(compared(HYPOTHESES, simulations, read(log))) == expected


def test_a_decoy_beside_a_real_log_adds_nothing(simulations: dict[str, Simulation]) -> None:
    alone = compared(HYPOTHESES, simulations, read("kern.log"))
    beside = compared(
        HYPOTHESES, simulations, read("kern.log", "test-output.txt", "agent.log", "transcript.jsonl")
    )
    assert beside == alone


def test_what_cannot_be_placed_is_listed_and_speaks_for_nothing(simulations: dict[str, Simulation]) -> None:
    (log,) = read("dmesg.txt")
    assert (log.lines, log.in_window, log.outside, log.unplaced) == (2, 0, 0, 2)
    found = {each.hypothesis: each for each in compared(HYPOTHESES, simulations, [log])}
    assert [(stance, hit.first, hit.last, hit.at) for stance, hit in found["deadline"].unplaced] == [
        ("refutes", 1, 2, None)
    ]
    assert found["resource-exhaustion"].silent
    assert found["auth"].unplaced == ()


def test_without_a_window_nothing_counts(simulations: dict[str, Simulation]) -> None:
    log = read_log(Log.open(LOGS / "kern.log"), 0, None, OBSERVED)
    assert (log.in_window, log.unplaced) == (0, 5)
    assert shown(compared(HYPOTHESES, simulations, [log])) == {}


def test_lines_are_counted_by_their_time() -> None:
    (log,) = read("kern.log")
    assert (log.lines, log.in_window, log.outside, log.unplaced) == (5, 3, 2, 0)
    assert log.kinds == {"kernel": 3}
    assert (log.first, log.last) == (
        datetime(2026, 4, 12, 9, 10, 44, tzinfo=UTC),
        datetime(2026, 4, 12, 11, 2, 10, tzinfo=UTC),
    )


def test_a_wider_skew_takes_more_in() -> None:
    wider = window_between(None, OBSERVED, timedelta(hours=2))
    log = read_log(Log.open(LOGS / "kern.log"), 0, wider, OBSERVED)
    assert [lines_text(hit.first, hit.last) for hit in log.hits] == ["2-5"]


def test_more_than_the_limit_is_counted_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "HITS_LIMIT", 2)
    kill = "Apr 12 09:31:04 gpu1 kernel: Out of memory: Killed process 1 (x)\n"
    (tmp_path / "x").write_text((kill + "Apr 12 09:31:04 gpu1 kernel: usb\n") * 5)
    log = read_log(Log.open(tmp_path / "x"), 0, WINDOW, OBSERVED)
    assert [each.first for each in log.hits] == [1, 3]
    assert log.left_out == 3


def test_a_hypothesis_without_a_known_simulation_is_told_from_a_silent_one() -> None:
    nobody = Hypothesis(id="gremlins", simulations=("no-such-v1",))
    (found,) = compared([nobody], {}, read("kern.log"))
    assert found.silent
    assert not found.known
    assert targets_of(nobody, {}) == frozenset()
    assert targets_of(Hypothesis(id="auth"), {}) == {"auth"}
