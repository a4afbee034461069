"""Inspect logs: a sample is a trial; the run's status, a limit and a cancelled sibling are no failure of it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.inspect_ai import InspectAi
from pytest_regcase.importers.source import Found, find_trials, read_one, read_output
from pytest_regcase.records.trial import Trial
from tests.importers.zips import DEFLATED, read_members, write_zip

GOLD = Path(__file__).parent.parent / "gold" / "inspect"
Edit = Callable[[dict[str, Any]], None]


def slug(path: Path, **choice: Any) -> str:
    with pytest.raises(ImportRefused) as caught:
        read_one(path, **choice)
    return caught.value.slug


def samples_of(document: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    return {sample["id"]: sample for sample in document["samples"]}


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[Edit], Path]:
    """Write the gold sweep after an edit."""

    def write(edit: Edit) -> Path:
        document = json.loads((GOLD / "sweep.json").read_text())
        edit(document)
        path = tmp_path / "x.json"
        path.write_text(json.dumps(document))
        return path

    return write


def members(name: str = "sweep") -> dict[str, bytes]:
    return dict(read_members(GOLD / f"{name}.eval"))


def only(found: Found, sample: str) -> tuple[Any, ...]:
    (ref,) = [ref for ref in found.refs if ref.sample == sample]
    return ref.termination, ref.outcome, ref.error_type, ref.refusal


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_each_sample_is_a_trial_and_one_failed_by_itself(kind: str) -> None:
    found = find_trials(GOLD / f"sweep.{kind}")
    assert only(found, "good") == ("finished", "passed", None, "passed")
    assert only(found, "bad") == ("error", "undetermined", "ConnectionError", None)
    assert only(found, "3") == ("cancelled", "undetermined", "CancelledError", "cancelled-sibling")


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_the_failed_sample(kind: str) -> None:
    trial = read_one(GOLD / f"sweep.{kind}")
    assert (trial.harness, trial.task_id, trial.attempt) == ("inspect_ai 0.3.285", "greeting/bad", 1)
    assert (trial.termination, trial.outcome, trial.outcome_from) == ("error", "undetermined", None)
    assert (trial.failing_step, len(trial.replies), trial.model_requests) == (3, 2, 3)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (
        "ConnectionError",
        "ConnectionError('the supplier closed the stream')",
        "supplier",
    )
    assert trial.event_id_from == "recorded"
    assert (trial.task_text, trial.final_text) == ("Say goodbye.", None)
    assert trial.labels == ("inspect:status:error",)
    assert "keep_partial_patch" not in trial.can_show
    assert "log_failure" in trial.can_show
    assert trial.missing == ()


def test_the_empty_output_of_a_failed_call_is_no_reply() -> None:
    trial = read_one(GOLD / "sweep.eval")
    assert [(line.step, line.role, line.error) for line in trial.steps] == [
        (0, "system", None),
        (0, "user", None),
        (1, "assistant", None),
        (1, "tool", None),
        (2, "assistant", None),
        (2, "tool", None),
        (3, "assistant", "ConnectionError('the supplier closed the stream')"),
    ]
    reply, result, failed = trial.steps[2], trial.steps[3], trial.steps[-1]
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [("look", {"name": "file-1"})]
    assert result.tool_call_id == reply.tool_calls[0].id
    assert result.text == "the content of file-1"
    assert (reply.offered_tools, reply.finish) == (("look", "submit"), "tool_calls")
    assert reply.usage is not None
    assert reply.usage["input_tokens"] == 10
    assert failed.text is None


def test_both_kinds_of_file_give_the_same_conversation() -> None:
    def told(trial: Trial) -> list[tuple[Any, ...]]:
        return [(line.step, line.role, line.text, line.error, line.finish) for line in trial.steps]

    assert told(read_one(GOLD / "sweep.eval")) == told(read_one(GOLD / "sweep.json"))
    assert told(read_one(GOLD / "limit.eval")) == told(read_one(GOLD / "limit.json"))


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_limit_sets_no_error(kind: str) -> None:
    trial = read_one(GOLD / f"limit.{kind}")
    assert (trial.termination, trial.outcome, trial.outcome_from, trial.error) == ("limit", "failed", "log", None)
    assert (trial.failing_step, len(trial.replies)) == (2, 2)
    assert trial.labels == ("inspect:status:success", "inspect:limit:message", "inspect:score:includes=I")
    assert trial.final_text is None


def test_a_deflated_log_is_read_alike(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.eval", list(members().items()), method=DEFLATED)
    ours, theirs = read_one(path), read_one(GOLD / "sweep.eval")
    assert ours.model_copy(update={"source_digests": {}}) == theirs.model_copy(update={"source_digests": {}})


@pytest.mark.parametrize(
    ("sample", "expected"), [("good", "passed"), ("3", "cancelled-sibling"), ("none", "no-such-trial")]
)
def test_what_did_not_fail_by_itself_is_refused(sample: str, expected: str) -> None:
    assert slug(GOLD / "sweep.eval", sample=sample) == expected


def test_a_persons_word_lifts_passed_but_not_a_cancelled_sibling() -> None:
    trial = read_one(GOLD / "sweep.eval", sample="good", failed_only=False)
    assert trial.outcome == "passed"
    assert str(trial.final_text).endswith("hello")
    assert slug(GOLD / "sweep.eval", sample="3", failed_only=False) == "cancelled-sibling"


def test_a_sample_of_a_cancelled_run_is_cancelled_and_importable(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["status"] = "cancelled"

    path = edited(edit)
    assert slug(path) == "several-trials"
    trial = read_one(path, sample="3")
    assert (trial.termination, trial.outcome) == ("cancelled", "undetermined")
    assert trial.error is not None
    assert trial.error.raised_by == "unknown"


def test_the_two_messages_of_a_cancellation(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        samples_of(document)[3]["error"]["message"] = "Cancelled()"
        samples_of(document)["bad"]["error"]["message"] = "CancelledRequestError('x')"

    found = find_trials(edited(edit))
    assert only(found, "3")[3] == "cancelled-sibling"
    assert only(found, "bad")[3] is None


def test_an_error_beside_a_score_stays_beside_it(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["status"] = "success"
        samples_of(document)["bad"]["scores"] = {"includes": {"value": "I"}}

    trial = read_one(edited(edit), sample="bad")
    assert (trial.termination, trial.outcome, trial.final_text) == ("error", "failed", None)
    assert trial.error is not None


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        (["C"], "passed"), (["I"], "failed"), (["N"], "failed"), ([1], "passed"), ([0.0], "failed"),
        ([True], "passed"), ([False], "failed"), (["P"], "undetermined"), ([0.5], "undetermined"),
        ([float("nan")], "undetermined"), ([{"a": 1}], "undetermined"), ([[1]], "undetermined"),
        ([None], "undetermined"),
        (["C", "C"], "passed"), (["C", "I"], "undetermined"), ([], "undetermined"), (["yes"], "undetermined"),
    ],
)  # fmt: skip
def test_an_outcome_is_what_all_scores_agree_on(
    edited: Callable[[Edit], Path], values: list[Any], outcome: str
) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["samples"] = [samples_of(document)["good"]]
        document["eval"]["dataset"]["sample_ids"] = ["good"]
        document["samples"][0]["scores"] = {f"s{index}": {"value": value} for index, value in enumerate(values)}

    assert read_output(edited(edit)).outcome == outcome


def test_only_passed_with_a_limit_is_passed_and_says_so(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        samples_of(document)["good"]["limit"] = {"type": "time", "limit": 2.0}

    (ref,) = [ref for ref in find_trials(edited(edit)).refs if ref.sample == "good"]
    assert (ref.termination, ref.outcome, ref.refusal) == ("limit", "passed", "passed")
    assert "limit" in str(ref.why_not)


# Lost and damaged


def test_a_killed_run_loses_samples_and_says_which(tmp_path: Path) -> None:
    kept = [
        (name, content) for name, content in members().items() if name.startswith("_journal") or "good" in name
    ]
    path = write_zip(tmp_path / "x.eval", kept)
    assert slug(path) == "several-trials"
    trial = read_one(path, sample="bad")
    assert (trial.termination, trial.outcome, trial.failing_step, trial.steps) == (
        "cut-off",
        "undetermined",
        None,
        (),
    )
    assert (trial.task_text, trial.error, trial.started_at, trial.ended_at) == (None, None, None, None)
    assert trial.event_id_from == "digest"
    assert any("bad" in sentence and "never closed" in sentence for sentence in trial.missing)
    assert slug(path, sample="good") == "passed"


def test_a_start_only_log_of_one_sample_is_an_interrupted_trial(tmp_path: Path) -> None:
    start = json.loads(members()["_journal/start.json"])
    start["eval"]["dataset"]["sample_ids"] = ["only"]
    path = write_zip(tmp_path / "x.eval", [("_journal/start.json", json.dumps(start).encode())])
    trial = read_one(path)
    assert (trial.task_id, trial.termination, trial.error) == ("greeting/only", "cut-off", None)


def test_a_json_log_with_status_started_is_cut_off_too(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["status"] = "started"
        document["samples"] = [samples_of(document)["good"], samples_of(document)["bad"]]

    assert read_one(edited(edit), sample="3").termination == "cut-off"


@pytest.mark.parametrize(
    ("status", "completed", "expected"),
    [
        ("cancelled", 0, "never-ran"),
        ("error", 0, "never-ran"),
        ("cancelled", 3, "no-record"),
        ("success", 0, "no-record"),
    ],
)
def test_an_orderly_end_without_records_is_refused(
    edited: Callable[[Edit], Path], status: str, completed: int, expected: str
) -> None:
    def edit(document: dict[str, Any]) -> None:
        document |= {"status": status, "samples": [], "results": {"completed_samples": completed}}

    path = edited(edit)
    assert slug(path) == expected
    assert slug(path, failed_only=False, sample="bad") == expected


def test_no_sample_named_at_all_is_no_trial(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["samples"] = []
        document["eval"]["dataset"].pop("sample_ids")

    assert slug(edited(edit)) == "no-trial"


def test_one_damaged_record_does_not_hide_the_others(tmp_path: Path) -> None:
    kept = [(name, content) for name, content in members().items() if "summaries" not in name]
    path = write_zip(tmp_path / "x.eval", kept, damage="samples/good_epoch_1.json")
    assert slug(path, sample="good") == "corrupt"
    assert read_one(path).task_id == "greeting/bad"


def test_of_a_cut_off_zip_what_is_whole_is_imported_and_what_is_lost_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    content = (GOLD / "sweep.eval").read_bytes()
    path.write_bytes(content[: content.index(b"samples/3_epoch_1.json") + 100])
    found = {ref.key: ref for ref in find_trials(path).refs}
    assert {key: (ref.failed, ref.refusal) for key, ref in found.items()} == {
        "good#1": (False, "passed"),
        "bad#1": (True, None),
        "3#1": (False, "no-record"),
    }
    trial = read_one(path)
    assert (trial.task_id, trial.termination, trial.failing_step) == ("greeting/bad", "error", 3)
    assert any("cut off behind 5 whole members, within 'samples/3_epoch_1.json'" in each for each in trial.missing)
    lost = InspectAi().read(path, found["3#1"])
    assert lost.termination is None
    assert any("the file itself is cut off" in each for each in lost.missing)


def test_a_zip_cut_off_before_any_sample_holds_none_of_them(tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    content = (GOLD / "sweep.eval").read_bytes()
    path.write_bytes(content[: content.index(b"samples/")])
    assert slug(path) == "no-record"
    path.write_bytes(content[:100])
    assert slug(path) == "corrupt"


# The peak of this memory alone: what `getrusage` says begins with the peak of the process that started it.
READ_ONE = """
import re, sys
from pathlib import Path
from pytest_regcase.importers.inspect_ai import InspectAi
path = Path(sys.argv[1])
refs = list(InspectAi().list_trials(path))
(ref,) = [each for each in refs if each.failed]
trial = InspectAi().read(path, ref)
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(len(refs), trial.task_id, trial.failing_step, peak[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's peak of memory from /proc")
def test_one_sample_of_a_log_of_a_gigabyte_needs_little_memory(tmp_path: Path) -> None:
    contents = members()
    large = json.loads(contents["samples/bad_epoch_1.json"])
    states = [{"event": "state", "changes": [{"op": "add", "value": "x" * 1000}]} for _ in range(5000)]
    large["events"] = [*states, *large["events"]]
    record = json.dumps(large).encode()
    row = json.loads(contents["_journal/summaries/1.json"])[0]
    others = [f"good-{number}" for number in range(205)]
    log = [
        ("_journal/start.json", contents["_journal/start.json"]),
        # Equal records, so that the log is written in no time: only the one that is asked for is to be read.
        *((f"samples/{name}_epoch_1.json", record) for name in [*others, "bad"]),
        (
            "summaries.json",
            json.dumps(
                [row | {"id": name} for name in others] + [row | {"id": "bad", "scores": None, "error": "X('')"}]
            ).encode(),
        ),
        ("header.json", contents["header.json"]),
    ]
    assert sum(len(content) for _, content in log) > 1024**3
    path = write_zip(tmp_path / "x.eval", log, method=DEFLATED)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONE, str(path)], check=True, capture_output=True, text=True
    ).stdout.split()
    assert done[:3] == ["208", "greeting/bad", "3"]
    assert int(done[3]) < 100 * 1024


def test_a_damaged_record_keeps_the_id_that_the_run_gave_it(tmp_path: Path) -> None:
    kept = [(name, content) for name, content in members().items() if "summaries" not in name]
    path = write_zip(tmp_path / "x.eval", kept, damage="samples/3_epoch_1.json")
    assert [ref.key for ref in find_trials(path).refs] == ["good#1", "bad#1", "3#1"]
    assert slug(path, sample="3") == "corrupt"


def test_member_names_are_never_paths(tmp_path: Path) -> None:
    changed = [
        (
            name.replace("samples/bad", "samples/../../etc/passwd"),
            content.replace(b'"id": "bad"', b'"id": "../../etc/passwd"'),
        )
        for name, content in members().items()
        if "summaries" not in name
    ]
    path = write_zip(tmp_path / "x.eval", changed)
    trial = read_one(path, sample="../../etc/passwd")
    assert trial.task_id == "greeting/../../etc/passwd"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.eval"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_records_of_one_sample_the_last_counts(tmp_path: Path) -> None:
    contents = members()
    name = "samples/bad_epoch_1.json"
    newer = contents[name].replace(b"the supplier closed the stream", b"newer words of the supplier")
    kept = [(each, content) for each, content in contents.items() if "summaries" not in each]
    path = write_zip(tmp_path / "x.eval", [*kept, (name, newer)])
    error = read_one(path).error
    assert error is not None
    assert "newer words" in str(error.message)


# Identity and choice


def test_ids_1_and_text_1_are_two_samples(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        bad = samples_of(document)["bad"]
        document["samples"] = [{**bad, "id": 1, "uuid": "number"}, {**bad, "id": "1", "uuid": "text"}]
        document["eval"]["dataset"]["sample_ids"] = [1, "1"]

    path = edited(edit)
    keys = [ref.key for ref in find_trials(path).refs]
    assert keys == ["1#1", '"1"#1']
    assert [read_one(path, key=key).event_id for key in keys] == ["number", "text"]
    assert slug(path, sample="1") == "several-trials"


def test_an_epoch_is_the_attempt(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        bad = samples_of(document)["bad"]
        document["eval"]["config"]["epochs"] = 2
        document["samples"] = [{**bad, "uuid": "one"}, {**bad, "epoch": 2, "uuid": "two"}]
        document["eval"]["dataset"]["sample_ids"] = ["bad"]

    path = edited(edit)
    assert slug(path) == "several-trials"
    trial = read_one(path, epoch=2)
    assert (trial.attempt, trial.event_id) == (2, "two")


def test_without_a_uuid_the_event_is_a_digest(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        samples_of(document)["bad"].pop("uuid")

    trial = read_one(edited(edit))
    assert trial.event_id_from == "digest"


def test_the_revision_is_the_recorded_commit(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["eval"]["revision"] = {"type": "git", "origin": "o", "commit": "abc123", "dirty": True}

    assert read_one(edited(edit)).revision == "abc123 dirty"


def test_a_newer_version_is_read_with_a_notice(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["version"] = 3

    assert any("version 3" in sentence for sentence in read_one(edited(edit)).missing)


# The main conversation


def calls(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in samples_of(document)["bad"]["events"] if event["event"] == "model"]


def test_a_scorers_and_a_sub_agents_calls_are_no_steps(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        sample = samples_of(document)["bad"]
        first = calls(document)[0]
        message = first["output"]["choices"][0]["message"]
        foreign = {
            **first,
            "span_id": "sub",
            "input": [{"id": "other", "role": "user", "content": "sub-task"}],
            "input_refs": None,
            "output": {
                **first["output"],
                "choices": [{"message": {**message, "id": "foreign"}, "stop_reason": "stop"}],
            },
        }
        failed = {**foreign, "error": "sub-agent's call failed"}
        graded = {**first, "span_id": "grading"}
        sample["events"] = [
            foreign,
            failed,
            *sample["events"],
            {"event": "span_begin", "id": "scoring", "type": "scorers", "name": "scorers"},
            {"event": "span_begin", "id": "grading", "parent_id": "scoring", "type": "scorer", "name": "x"},
            graded,
            {**first, "role": "grader"},
            foreign,
            failed,
        ]

    path = edited(edit)
    trial = read_one(path)
    told = [(line.step, line.role) for line in trial.steps]
    assert told == [(line.step, line.role) for line in read_one(GOLD / "sweep.json").steps]
    assert trial.model_requests == 3


def test_every_try_of_a_failed_call_is_a_line_and_retries_are_counted(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        sample = samples_of(document)["bad"]
        failed = {**calls(document)[-1], "retries": 2}
        at = sample["events"].index(calls(document)[-1])
        sample["events"][at : at + 1] = [failed, failed]

    trial = read_one(edited(edit))
    assert [line.step for line in trial.steps if line.error] == [3, 3]
    assert trial.model_requests == 2 + 2 * 3
    assert trial.failing_step == 3


def test_an_error_outside_a_model_call_is_at_the_last_step(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        sample = samples_of(document)["bad"]
        sample["events"].remove(calls(document)[-1])

    trial = read_one(edited(edit))
    assert (trial.failing_step, len(trial.replies)) == (2, 2)
    assert trial.error is not None
    assert trial.error.raised_by == "unknown"


def test_a_call_that_never_completed_is_no_reply(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        last = calls(document)[-1]
        last["error"], last["pending"] = None, True

    trial = read_one(edited(edit))
    assert (len(trial.replies), trial.failing_step) == (2, 3)
    assert trial.steps[-1].error == "no reply recorded"


def test_attachments_are_resolved(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        sample = samples_of(document)["bad"]
        sample["attachments"] = {"abc": "the whole long text"}
        sample["input"] = "attachment://abc"
        for message in (*sample["messages"], *sample["events_data"]["messages"]):
            if message["role"] == "tool":
                message["content"] = [
                    {"type": "text", "text": "attachment://abc"},
                    {"type": "image", "image": "x"},
                ]

    trial = read_one(edited(edit))
    assert trial.task_text == "the whole long text"
    assert {line.text for line in trial.steps if line.role == "tool"} == {"the whole long text"}
    assert any("type image" in sentence for sentence in trial.missing)
    # What the tool gave back before the harness changed it is kept beside it.
    assert [line.raw_output for line in trial.steps if line.role == "tool"] == [
        "the content of file-1",
        "the content of file-2",
    ]


def test_a_log_without_events_is_read_from_its_messages(edited: Callable[[Edit], Path]) -> None:
    def edit(document: dict[str, Any]) -> None:
        samples_of(document)["bad"]["events"] = []

    trial = read_one(edited(edit))
    assert [(line.step, line.role) for line in trial.steps] == [
        (0, "system"), (0, "user"), (1, "assistant"), (1, "tool"), (2, "assistant"), (2, "tool"),
    ]  # fmt: skip
    assert trial.model_requests is None
    assert any("model events" in sentence for sentence in trial.missing)


def test_logs_of_2024_without_ids_are_read(edited: Callable[[Edit], Path]) -> None:
    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: strip(item) for key, item in value.items() if key not in ("span_id", "uuid", "input_refs")
            }
        return [strip(item) for item in value] if isinstance(value, list) else value

    def edit(document: dict[str, Any]) -> None:
        sample = samples_of(document)["bad"]
        pool = sample.pop("events_data")["messages"]
        messages = [{key: item for key, item in each.items() if key != "id"} for each in pool]
        for event in sample["events"]:
            if event["event"] == "model":
                event["input"] = [
                    messages[index] for start, end in event["input_refs"] for index in range(start, end)
                ]
                for choice in event["output"]["choices"]:
                    choice["message"].pop("id", None)
        events = strip(sample.pop("events"))
        sample["messages"] = messages
        sample["transcript"] = {"events": events, "content": {}}
        sample.pop("uuid")

    trial = read_one(edited(edit))
    gold = read_one(GOLD / "sweep.json")
    assert [(line.step, line.role, line.text) for line in trial.steps] == [
        (line.step, line.role, line.text) for line in gold.steps
    ]
    assert trial.failing_step == 3
