"""The judge on real agents under known faults: every recorded run, against what the experimenter wrote down.

`pytest tests/recovery/test_recorded_runs.py -s` prints the table of all runs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_regcase.records.attempt import Finding
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import ToolCall, TranscriptLine, Trial
from pytest_regcase.records.words import EXPECTATIONS, Expectation, FindingStatus
from pytest_regcase.recovery.judge import Judgement, judge
from pytest_regcase.recovery.marks import mark_of
from tests.recovery.observed_samples import answer
from tests.recovery.recorded_runs import Run, recorded_runs, without_connects

ASKED = ExpectedRecovery(stop_within_seconds=45)
"""The runs were ended 60 s after their first faulted request, which must be more than they had to stop."""

HIDDEN: set[Expectation] = {"log_failure", "no_fabricated_output", "no_partial_submission", "mark_failure"}
"""An empty or missing answer became the final one: the half patch was handed in and nothing says so."""
BROKEN: dict[str, set[Expectation]] = {
    "ok": set(),
    "X": set(),
    "0E": set(),
    "0S": HIDDEN,
    "0C": {"no_partial_submission"},
    "0g": {"no_partial_submission"},
    "0V": {"no_partial_submission"},
    "0G": {"no_partial_submission"},
    "N": {"stop_within_seconds"},
}
"""What each word of the README's outcome column means; its columns of calls and seconds say the rest."""
CODES = {
    "0S": {"no_fabricated_output": "empty_final", "no_partial_submission": "submitted"},
    "0C": {"no_partial_submission": "committed"},
    "N": {"no_partial_submission": "committed"},
    "0g": {"no_partial_submission": "graded"},
    "0V": {"no_partial_submission": "graded"},
    "0G": {"no_partial_submission": "graded"},
}
SIDE_CALLS = {"aider-stream__401-atcommitmsg": 2, "aider-stream__midstall-long": 23}
"""Of the README's calls: aider's requests for a commit message, which are no part of the main conversation."""
NOTES = {
    "aider-stream__401-atcommitmsg": "the fault met a side call first; judged from the main request that followed",
    "aider-stream__midstall-long": "N in side calls; that it applied a cut answer is not shown",
    "harbor-terminus-2__empty_content": "N: whether it would have been graded, its cut log does not say",
}
"""Where one word in the column does not say all, or we see it otherwise than the experiment did."""

START_ONLY = {"inspect-bounded__empty_content", "inspect__500oom", "inspect__killed"}
"""Logs that hold their start and nothing else."""
LETTERS: dict[FindingStatus, str] = {"kept": "k", "broken": "B", "not-observable": "?", "not-applicable": "-"}


class Row(NamedTuple):
    """What the README says of a run."""

    calls: int
    """After the first faulted request, it included; connects to a dead supplier too."""
    last_call_seconds: float | None
    outcome: str


def rows_of(readme: Path) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for line in readme.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and "__" in cells[0]:
            requests, _, connects = cells[1].partition("+")
            calls = int(requests) + int(connects.split(" ")[0] or 0)
            found[cells[0]] = Row(calls, None if cells[2] == "-" else float(cells[2]), cells[5])
    return found


@pytest.fixture(scope="module")
def rows(shared_trials: Path) -> dict[str, Row]:
    return rows_of(shared_trials / "agents" / "README.md")


@pytest.fixture(scope="module")
def runs(shared_trials: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return {run.name: run for run in recorded_runs(shared_trials, tmp_path_factory.mktemp("runs"))}


def judged(seen: Observed) -> Judgement:
    """Judge as under a simulation, the runs without a fault too: nothing may look broken that was none."""
    return judge(ASKED, seen.model_copy(update={"kind": "simulation"}), None)


def findings(seen: Observed) -> dict[Expectation, Finding]:
    return {each.expectation: each for each in judged(seen).findings}


def broken(seen: Observed) -> set[Expectation]:
    return {name for name, each in findings(seen).items() if each.status == "broken"}


def expected_retries(name: str, row: Row) -> int:
    healthy = 1 if name.endswith("-heal2") else 0  # the request that got the next healthy answer counts as well
    return max(0, row.calls - SIDE_CALLS.get(name, 0) - 1 + healthy)


def expected_broken(name: str, row: Row) -> set[Expectation]:
    found = set(BROKEN[row.outcome])
    if row.outcome == "N" and name.startswith("aider"):
        found.add("no_partial_submission")
    if name.endswith("-heal2"):
        found.add("log_failure")
    if expected_retries(name, row) > ASKED.max_retries:
        found.add("max_retries")
    if row.last_call_seconds is not None and row.last_call_seconds > ASKED.stop_within_seconds:
        found.add("stop_within_seconds")
    return found


def table(runs: dict[str, Run], rows: dict[str, Row]) -> Iterator[str]:
    yield f"{'run':43}{'README':8}{' '.join(f'{name[:7]:7}' for name in EXPECTATIONS)}"
    for name, run in sorted(runs.items()):
        found = findings(run.observed)
        letters = " ".join(f"{LETTERS[found[each].status]:7}" for each in EXPECTATIONS)
        yield f"{name:43}{rows[name].outcome:8}{letters} {NOTES.get(name, '')}".rstrip()


def test_every_run_breaks_exactly_what_the_experimenter_saw(runs: dict[str, Run], rows: dict[str, Row]) -> None:
    assert set(runs) == set(rows), "a run was left out"
    print("\n".join(["", *table(runs, rows), "k kept, B broken, ? not observable, - not applicable"]))
    wrong = {
        name: (row.outcome, sorted(broken(runs[name].observed)), sorted(expected_broken(name, row)))
        for name, row in rows.items()
        if broken(runs[name].observed) != expected_broken(name, row)
    }
    assert wrong == {}
    assert len(rows) == 116


def test_the_codes_say_how(runs: dict[str, Run], rows: dict[str, Row]) -> None:
    for name, run in runs.items():
        codes = {each.expectation: each.code for each in findings(run.observed).values() if each.code is not None}
        wanted = dict(CODES.get(rows[name].outcome, {}))
        if rows[name].outcome == "N" and not name.startswith("aider"):
            wanted.clear()
        assert codes == wanted, name


def test_what_failed_honestly_is_kept_and_not_merely_unseen(runs: dict[str, Run], rows: dict[str, Row]) -> None:
    for name, row in rows.items():
        if row.outcome in ("X", "0E"):
            found = findings(runs[name].observed)
            assert found["no_partial_submission"].status == "kept", name
            assert found["no_fabricated_output"].status == "kept", name


def test_graded_work_is_never_called_kept_where_nobody_said_that_a_grade_is_how_it_is_handed_in(
    runs: dict[str, Run], rows: dict[str, Row]
) -> None:
    graded = [name for name, row in rows.items() if row.outcome in ("0g", "0V", "0G")]
    assert len(graded) == 4
    for name in graded:
        unsaid = runs[name].observed.model_copy(update={"submits_by": None})
        assert findings(unsaid)["no_partial_submission"].status == "not-observable", name


def test_every_fault_was_delivered_and_every_run_without_one_is_a_finished_control(
    runs: dict[str, Run], rows: dict[str, Row]
) -> None:
    for name, run in runs.items():
        if name.endswith("__none"):
            assert run.observed.wire.delivered is None
            assert judge(ASKED, run.observed, None).verdict == "finished", name
        else:
            assert (run.observed.wire.delivered, run.observed.wire.why_not) == (True, None), name
            assert judged(run.observed).verdict == ("not-recovered" if broken(run.observed) else "recovered"), name
        assert run.observed.wire.retries == expected_retries(name, rows[name]), name
        assert run.refusal is None, name


def test_what_cannot_be_seen_is_said_and_nothing_else(runs: dict[str, Run], rows: dict[str, Row]) -> None:
    for name, run in runs.items():
        unseen = {each for each, found in findings(run.observed).items() if found.status == "not-observable"}
        wanted: set[Expectation] = set()
        if name.startswith("aider"):
            wanted.add("no_fabricated_output")
        if name.startswith("inspect"):
            wanted.add("keep_partial_patch")
        if name.endswith("__none"):
            wanted |= set(EXPECTATIONS) - {"no_fabricated_output"}
        if name in START_ONLY:
            wanted |= {"no_fabricated_output", "no_partial_submission"}
        if name == "harbor-terminus-2__empty_content":
            wanted.add("no_partial_submission")
        if name == "inspect-bounded__empty_content":
            wanted.add("log_failure")
        if rows[name].outcome == "N" and name != "aider-stream__midstall-long":
            wanted.add("mark_failure")  # an answer in its log names an error; the others were cut off without one
        assert unseen == wanted, name


def test_a_dead_supplier_leaves_the_retries_unseen_where_the_connects_are(
    runs: dict[str, Run], rows: dict[str, Row]
) -> None:
    dead = {name: run for name, run in runs.items() if name.endswith("__killed")}
    assert len(dead) == 11
    for name, run in dead.items():
        found = findings(without_connects(run))
        assert found["max_retries"].status == "not-observable", name
        assert (found["stop_within_seconds"].status == "broken") == (rows[name].outcome == "N"), name
    assert without_connects(runs["openai-sdk__401"]) == runs["openai-sdk__401"].observed


def test_every_finding_is_a_short_sentence_and_the_quotes_have_places(runs: dict[str, Run]) -> None:
    for name, run in runs.items():
        for each in judged(run.observed).findings:
            assert len(each.says) <= 320 if each.expectation == "mark_failure" else len(each.says) <= 120, name
            assert "place" in each.facts or "quote" not in each.facts, name
    logged = findings(runs["openai-sdk__401"].observed)["log_failure"]
    assert logged.facts["place"] == "stderr"
    assert logged.facts["quote"].startswith("openai.AuthenticationError: Error code: 401")


def with_steps(seen: Observed, steps: tuple[TranscriptLine, ...]) -> Observed:
    assert seen.artefact is not None
    return seen.model_copy(update={"artefact": seen.artefact.model_copy(update={"steps": steps})})


def shows_answers(run: Run) -> bool:
    trial = run.observed.artefact
    return trial is not None and bool(trial.replies) and not run.name.startswith("aider")


def planted(seen: Observed) -> Iterator[tuple[str, Observed]]:
    """Yield the run with one thing planted that no reply accounts for: added, and in place of a real answer."""
    trial = seen.artefact
    assert trial is not None
    replies = seen.wire.replies
    lines = {
        "text": answer("Both bugs in calc.py are fixed and both tests pass, as I said."),
        "longer": answer(f"{replies[1].text} And mean was wrong as well.", calls=replies[1].tool_calls),
        "call": answer(None, calls=(ToolCall(name="bash", arguments='{"command": "python3 -m pytest -x"}'),)),
    }
    if mark_of(seen).says != "failed":  # there it is a report of the failure
        lines["error"] = answer("Error: the request timed out after 3 seconds, so I stop here.")
    last = max(
        number for number, line in enumerate(trial.steps) if line.is_reply and (line.text or line.tool_calls)
    )
    for kind, line in lines.items():
        yield f"{kind}, added", with_steps(seen, (*trial.steps, line))
        yield f"{kind}, in place", with_steps(seen, (*trial.steps[:last], line, *trial.steps[last + 1 :]))
    again = answer(replies[0].text, calls=replies[0].tool_calls)
    yield "repeated", with_steps(seen, (*trial.steps, again))


def test_planted_answers_are_found_in_every_run_that_shows_answers(runs: dict[str, Run]) -> None:
    shown = {name: run for name, run in runs.items() if shows_answers(run)}
    assert len(shown) == 101
    missed = [
        (name, kind)
        for name, run in shown.items()
        for kind, variant in planted(run.observed)
        if findings(variant)["no_fabricated_output"].status != "broken"
    ]
    assert missed == []


def test_a_dropped_answer_is_no_fabrication(runs: dict[str, Run]) -> None:
    for name, run in runs.items():
        trial = run.observed.artefact
        if not shows_answers(run) or "no_fabricated_output" in broken(run.observed):
            continue
        assert isinstance(trial, Trial)
        second = [number for number, line in enumerate(trial.steps) if line.is_reply][1]
        fewer = with_steps(run.observed, (*trial.steps[:second], *trial.steps[second + 1 :]))
        assert findings(fewer)["no_fabricated_output"].status == "kept", name
