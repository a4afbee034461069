"""A citation goes into the case, and only what came from outside does."""

import gzip
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.config import Project, load_project
from pytest_regcase.errors import ClaimRefused, FileError, RegcaseError, UnknownName, UsageRefused
from pytest_regcase.records.canonical import digest
from pytest_regcase.session.case_life import own_products
from pytest_regcase.session.case_life.evidence import Written, cite, withdraw
from tests.session.case_life.evidence_project import KEPT_LINE, WIRE, make_project

AT = datetime(2026, 4, 20, 12, tzinfo=UTC)
Cite = Callable[..., Written]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def project(case: Path, tmp_path: Path) -> Project:
    return load_project(tmp_path)


@pytest.fixture
def citing(project: Project, case: Path) -> Cite:
    def call(place: str, **facts: Any) -> Written:
        given = {
            "hypothesis": "resource-exhaustion",
            "stance": "supports",
            "why": "pid 4242 was it",
            "who": "mina",
        }
        return cite(project, case, place=place, at=AT, **{**given, **facts})

    return call


def refusal(
    citing: Cite, case: Path, place: str, kind: type[RegcaseError] = ClaimRefused, **facts: Any
) -> RegcaseError:
    """The refusal of a citation, which must have left the case as it was."""
    before = case.read_bytes()
    with pytest.raises(kind) as caught:
        citing(place, **facts)
    assert case.read_bytes() == before
    return caught.value


def test_a_citation_is_appended_and_the_cause_status_follows_in_the_same_edit(citing: Cite, case: Path) -> None:
    before = case.read_bytes()
    written = citing("outside/kern.log:2-4")
    assert (written.before, written.after) == ("unknown", "confirmed")
    after = case.read_bytes()
    assert after.startswith(
        before.replace(b'"unknown"  # computed', b'"confirmed"  # computed') + b"\n[[evidence]]\n"
    )
    (found,) = load_case(case).case.evidence
    assert found == written.evidence
    assert (found.id, found.hypothesis, found.stance, found.lines) == (
        "ev-1",
        "resource-exhaustion",
        "supports",
        "2-4",
    )
    assert found.file == "outside/kern.log"
    assert found.digest == digest(Path("outside/kern.log").read_bytes())
    assert found.quote == "\n".join(Path("outside/kern.log").read_text().splitlines()[1:4])
    assert (found.why, found.who, found.at, found.why_outside) == ("pid 4242 was it", "mina", AT, None)
    assert written.notices == ()


def test_secrets_in_the_lines_are_not_copied(citing: Cite, case: Path) -> None:
    key = "sk-proj-" + "Ab3" * 16
    Path("outside/proxy.log").write_text(
        f"2026/04/12 09:31:05 [error] 7#7: *1 upstream refused key {key} of /home/omarfarouk/x\t\x1b[31m\n"
    )
    written = citing("outside/proxy.log:1", hypothesis="auth")
    assert "Ab3" not in case.read_text()
    assert "omarfarouk" not in case.read_text()
    assert "\x1b" not in written.evidence.quote
    assert sum(written.redactions.values()) == 2


def test_a_refutation_confirms_nothing_and_takes_a_confirmation_away(citing: Cite, case: Path) -> None:
    assert citing("outside/kern.log:2-4", hypothesis="deadline", stance="refutes").after == "unknown"
    assert citing("outside/kern.log:2-4").after == "confirmed"
    written = citing("outside/vllm.log:5", stance="refutes")
    assert (written.before, written.after) == ("confirmed", "unknown")


def test_evidence_is_withdrawn_and_stays(citing: Cite, project: Project, case: Path) -> None:
    citing("outside/kern.log:2-4")
    citing("outside/vllm.log:5", hypothesis="deadline", stance="refutes")
    before = case.read_text()
    written = withdraw(project, case, "ev-1", why='another "host"', who="omar", at=AT)
    assert (written.before, written.after) == ("confirmed", "unknown")
    first, second = load_case(case).case.evidence
    assert first.withdrawn is not None
    assert (first.withdrawn.why, first.withdrawn.who, first.withdrawn.at) == ('another "host"', "omar", AT)
    assert second.withdrawn is None
    # One line was added, and one word changed; nothing is gone.
    added = [line for line in case.read_text().splitlines() if line not in before.splitlines()]
    assert len(added) == 2
    assert len(case.read_text().splitlines()) == len(before.splitlines()) + 1
    assert citing("outside/kern.log:2-4").evidence.id == "ev-3"
    with pytest.raises(UsageRefused, match="omar withdrew it already"):
        withdraw(project, case, "ev-1", why="again", who="omar")
    with pytest.raises(UnknownName, match="ev-1, ev-2, ev-3"):
        withdraw(project, case, "ev-9", why="x", who="omar")


def test_the_last_record_of_a_file_without_an_end_of_line_is_withdrawn_too(
    citing: Cite, project: Project, case: Path
) -> None:
    citing("outside/kern.log:2-4")
    case.write_text(case.read_text().rstrip("\n") + " # the end")
    withdraw(project, case, "ev-1", why="x", who="omar")
    assert "Z # the end\nwithdrawn = {" in case.read_text()


def test_a_withdrawn_refutation_counts_no_longer(citing: Cite, project: Project, case: Path) -> None:
    citing("outside/kern.log:2-4")
    citing("outside/vllm.log:5", stance="refutes")
    assert withdraw(project, case, "ev-2", why="of another server", who="omar").after == "confirmed"


def test_exclusive_hypotheses_are_not_supported_at_once(citing: Cite, case: Path) -> None:
    citing("outside/kern.log:2-4")
    error = refusal(citing, case, "outside/vllm.log:5", hypothesis="deadline")
    assert (error.slug, error.exit_code) == ("exclusive", 1)


def test_hypotheses_that_may_coincide_are_and_then_nothing_is_confirmed(citing: Cite, case: Path) -> None:
    assert citing("outside/vllm.log:5", hypothesis="deadline").after == "confirmed"
    assert citing("outside/access.log:3", hypothesis="auth").after == "unknown"


# what our own runs produced


OWN: dict[str, str] = {
    ".regcase/sessions/s1/a1/wire.jsonl:1": ".regcase",
    ".regcase/sessions/s1/a1/out/kern.log:4": ".regcase",
    "link.log:4": ".regcase",
    "hard.log:2": "kept the same in .regcase",
    "copy.log:4": "kept the same in .regcase",
    "edited.log:3": "kept the same in .regcase",
    "copy.log.gz:4": "kept the same in .regcase",
    "hard.log.gz:1": "kept the same in .regcase",
    "packed.txt:1": "kept the same in .regcase",
    "outside/trial.log.gz:1": "the trial's own log",
    "wire-copy.txt:2": "a wire log",
    "cases/t37/case.toml:3": "folder of a case",
    "cases/t37/recorded/attached/other.log:1": "folder of a case",
    "run/t1/stdout.txt:1": "which a run or an attempt of ours has written",
    "run/summary.txt:1": "which regcase run has written",
    "outside/trial.log:1": "the trial's own log",
    "marked.log:1": "a mark of our own",
    "shown.txt:2": "it retells the case",
    "cgroup.log:2": "a mark of our own",
    "pasted.log:2": "a cited line is one of a wire log",
    "pasted.log:1-4": "a cited line is one of a wire log",
    "pasted.log:4": "a cited line is one of an attempt record",
}


@pytest.fixture
def own_files(case: Path, tmp_path: Path) -> None:
    attempt = tmp_path / ".regcase" / "sessions" / "s1" / "a1"
    (tmp_path / "link.log").symlink_to(attempt / "out" / "kern.log")
    os.link(attempt / "stderr.txt", tmp_path / "hard.log")
    shutil.copy(attempt / "out" / "kern.log", tmp_path / "copy.log")
    (tmp_path / "copy.log.gz").write_bytes(gzip.compress((attempt / "out" / "kern.log").read_bytes()))
    (tmp_path / "hard.log.gz").write_bytes(gzip.compress((attempt / "stderr.txt").read_bytes()))
    (attempt / "out" / "trace.gz").write_bytes(gzip.compress(b"asked\nno answer\n"))
    (tmp_path / "packed.txt").write_text("asked\nno answer\n")
    own_log = tmp_path / "outside" / "trial.log"
    own_log.with_name("trial.log.gz").write_bytes(gzip.compress(own_log.read_bytes()))
    (tmp_path / "edited.log").write_text(f"a line of mine\nand another\n{KEPT_LINE}")
    (tmp_path / "wire-copy.txt").write_text(WIRE)
    (case.parent / "recorded" / "attached" / "other.log").write_text("2026-04-12T09:31:05Z not attached by us\n")
    run = tmp_path / "run" / "t1"
    run.mkdir(parents=True)
    (run / "trial.jsonl").write_text("{}\n")
    (run / "stdout.txt").write_text("2026-04-12T09:31:05Z x\n")
    (run.parent / "run.json").write_text('{\n "kind": "real",\n "requested": [],\n "tasks_file": "x"\n}\n')
    (run.parent / "summary.txt").write_text("2026-04-12T09:31:05Z x\n")
    (tmp_path / "shown.txt").write_text("t37: no answer from step\n  6 on\n  2026-04-12T09:31:05Z x\n")
    (tmp_path / "marked.log").write_text("2026-04-12T09:31:05Z refused key sk-regcase-0123456789abcdef\n")
    kill = "Apr 12 09:31:04 gpu1 kernel: Memory cgroup out of memory: Killed process 9 (python3)"
    group = "Apr 12 09:31:04 gpu1 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/pytest-regcase-9"
    (tmp_path / "cgroup.log").write_text(f"{group}\n{kill}\n")
    row = '{"at": "2026-04-12T09:31:05Z", "attempt_id": "a", "session_id": "s", "scenario": "live"}'
    wire = '{"t": 1.0, "event": "sent", "at": "2026-04-12T09:31:05Z", "status": 503}'
    (tmp_path / "pasted.log").write_text(f"{kill}\n{wire}\n{kill}\n{row}\n")


@pytest.mark.parametrize(("place", "says"), OWN.items())
def test_what_our_runs_produced_is_never_evidence(
    place: str, says: str, citing: Cite, case: Path, own_files: None
) -> None:
    ways: list[dict[str, Any]] = [{}, {"why_outside": "because"}, {"stance": "refutes"}]
    for facts in ways:
        error = refusal(citing, case, place, **facts)
        assert (error.slug, error.exit_code) == ("own-product", 1)
        assert says in error.text
        assert "never evidence" in error.text


def test_a_simulation_file_is_none(citing: Cite, case: Path, repository: Path) -> None:
    error = refusal(citing, case, f"{repository / 'fixtures' / 'oom-killed-v1.toml'}:1", why_outside="x")
    assert "folder of simulations" in error.text


def test_a_copy_of_what_a_case_has_recorded_is_none(citing: Cite, case: Path, tmp_path: Path) -> None:
    from tests.case_files.conftest import MINIMUM

    text = "2026-04-12T09:31:05Z recorded in another case\n"
    other = tmp_path / "cases" / "other" / "case.toml"
    (other.parent / "recorded").mkdir(parents=True)
    (other.parent / "recorded" / "notes.txt").write_text(text)
    recorded = f'[observation.recorded]\n"recorded/notes.txt" = "{digest(text.encode())}"\n\n[handover]'
    other.write_text(MINIMUM.replace("[handover]", recorded))
    from pytest_regcase.case_files import seal_case

    seal_case(other)
    (tmp_path / "notes.txt").write_text(text)
    error = refusal(citing, case, "notes.txt:1")
    assert "a copy of recorded/notes.txt of the case sweep-0412-trial-37" in error.text


def test_what_was_attached_to_the_case_may_be_cited(citing: Cite) -> None:
    written = citing("cases/t37/recorded/attached/kern.log:2-4")
    assert written.after == "confirmed"
    assert written.evidence.file == "recorded/attached/kern.log"


def test_a_generic_short_line_in_a_kept_file_makes_nothing_ours(citing: Cite, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("2026-04-12T09:31:05Z\ndone\n")
    assert citing("x.log:2").after == "confirmed"


def test_that_not_everything_was_looked_through_is_said(citing: Cite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_products, "_FILES_LIMIT", 1)
    assert any("too much" in each for each in citing("outside/kern.log:2-4").notices)


# time


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (
            "outside/kern.log:5",
            "its lines are of 2026-04-12T11:02:10Z, and the observation is of the one recorded time",
        ),
        ("outside/dmesg.txt:2", "cannot be placed in time"),
    ],
)
def test_lines_of_another_time_need_a_reason(place: str, says: str, citing: Cite, case: Path) -> None:
    error = refusal(citing, case, place)
    assert (error.slug, error.exit_code) == ("outside-the-window", 1)
    assert says in error.text
    assert "--why-outside" in error.text
    written = citing(place, why_outside="the host's clock was two hours off")
    assert written.evidence.why_outside == "the host's clock was two hours off"
    assert load_case(case).case.evidence[0].why_outside == "the host's clock was two hours off"


def test_an_observation_without_a_time_overlaps_with_nothing(citing: Cite, case: Path) -> None:
    from pytest_regcase.case_files import seal_case

    text = case.read_text().replace("observed_at = 2026-04-12T09:31:07Z\n", "")
    case.write_text(text[: text.index("[seal]")])
    seal_case(case)
    assert "records no time" in refusal(citing, case, "outside/kern.log:2-4").text
    assert citing("outside/kern.log:2-4", why_outside="the sweep ran that morning").after == "confirmed"


def test_a_reason_that_is_not_needed_is_not_written(citing: Cite) -> None:
    assert citing("outside/kern.log:2-4", why_outside="x").evidence.why_outside is None


# what cannot be cited


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("outside/kern.log:4-6", "the file has 5 lines"),
        ("outside/kern.log:50", "the file has 5 lines"),
        ("outside/none.log:1", "no such file"),
        ("outside:1", "no plain file"),
        ("binary.log:1", "the file is no text"),
        ("late-binary.log:2", "the file is no text"),
        ("empty.log:2", "the lines are empty"),
        ("long.log:1", "at most 16,384 go into a case file"),
    ],
)
def test_what_cannot_be_read_or_copied_is_refused(
    place: str, says: str, citing: Cite, case: Path, tmp_path: Path
) -> None:
    (tmp_path / "binary.log").write_bytes(b"2026-04-12T09:31:05Z \0\1\2\n")
    (tmp_path / "late-binary.log").write_bytes(b"x" * 9000 + b"\n2026-04-12T09:31:05Z \0\n")
    (tmp_path / "empty.log").write_bytes(b"2026-04-12T09:31:05Z\n  \n")
    (tmp_path / "long.log").write_bytes(b"2026-04-12T09:31:05Z " + b"x" * 20000)
    error = refusal(citing, case, place, UsageRefused)
    assert says in error.text
    assert error.exit_code == 2


def test_a_real_line_beside_a_pasted_one_of_ours_may_be_cited(citing: Cite, own_files: None) -> None:
    assert citing("pasted.log:3").evidence.lines == "3"


def test_a_file_that_changes_while_it_is_read_is_refused(
    citing: Cite, case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_regcase.session.case_life import evidence

    def growing(path: Path) -> str:
        with path.open("a") as file:
            file.write("2026-04-12T09:31:09Z one more\n")
        return digest(path.read_bytes())

    monkeypatch.setattr(evidence, "digest_file", growing)
    assert "changed while it was read" in refusal(citing, case, "outside/kern.log:2", UsageRefused).text


@pytest.mark.skipif(not Path("/proc/version").is_file(), reason="there is no /proc here")
def test_what_the_kernel_makes_up_when_asked_is_no_stored_file(citing: Cite, case: Path) -> None:
    error = refusal(citing, case, "/proc/version:1", UsageRefused, why_outside="because")
    assert "it is no stored file" in error.text


def test_a_secret_in_a_persons_words_is_not_written(citing: Cite, case: Path) -> None:
    secret = "sk-proj-" + "a1B2c3D4e5" * 4
    written = citing("outside/kern.log:2", why=f"the key was {secret}")
    assert secret not in case.read_text()
    assert written.redactions == {"api_key": 1}


def test_the_same_lines_are_cited_once(citing: Cite, case: Path) -> None:
    citing("outside/kern.log:2-4")
    assert "already, as ev-1" in refusal(citing, case, "outside/kern.log:2-4", UsageRefused).text


def test_an_unknown_hypothesis_is_refused_with_those_that_there_are(citing: Cite, case: Path) -> None:
    error = refusal(citing, case, "outside/kern.log:2-4", UnknownName, hypothesis="gremlins")
    assert "deadline, resource-exhaustion, auth" in error.text


def test_a_test_output_is_said_to_be_one(citing: Cite) -> None:
    (notice,) = citing("outside/test-output.txt:10").notices
    assert notice.startswith("outside/test-output.txt is the output of a test run")


def test_a_case_that_was_edited_by_hand_takes_nothing(citing: Cite, case: Path) -> None:
    case.write_text(case.read_text().replace('cause_status = "unknown"', 'cause_status = "confirmed"'))
    refusal(citing, case, "outside/kern.log:2-4", FileError)
