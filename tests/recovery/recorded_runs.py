"""Reads recorded runs of real agents for the judge: ground truth as the wire, output as the artefact.

Only for tests: the ground truth is what nobody but the experimenter knows.
"""

import json
from pathlib import Path
from typing import Any

from pytest_regcase.importers.mini_swe_agent import MiniSweAgent
from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.observed import FaultNotes, Observed
from pytest_regcase.records.trial import Submission, ToolCall, TranscriptLine, Trial, TrialRef
from pytest_regcase.records.wire import SentReply, WireFacts
from pytest_regcase.records.words import EXPECTATIONS
from tests.recovery.observed_samples import PARTIAL_DIFF, line, tree

AGENTS = ("mini-swe-agent", "openai-sdk", "anthropic-sdk", "litellm")
"""Those whose output the reader below, or the importer, understands."""
_EMPTY_ANSWERS = ("empty_content",)


def recorded_runs(folder: Path) -> list[Path]:
    """Return the runs with an injected fault of the agents that can be read here."""
    return [
        run
        for run in sorted((folder / "agents").iterdir())
        if run.name.startswith(AGENTS) and not run.name.endswith("__none")
    ]


def observed_run(run: Path) -> Observed:
    """Read one run. Its work tree at the fault is the half-finished fix, its end is the recorded diff."""
    label = _json(run / "ground_truth" / "label.json")
    events = _lines(run / "ground_truth" / "server.jsonl")
    requests = [each for each in events if each["ev"] == "request"]
    first = next(each["t"] for each in requests if each["fault"])
    never_stopped = bool(label["never_stopped"])
    code = int(label["raw_returncode"])
    diff = run / "ground_truth" / "worktree.diff"
    artefact = _artefact(run / "agent_output")
    return Observed(
        kind="simulation",
        wire=_wire(run, label, events, requests, first),
        exit=Exit(signal=15, ended_by="deadline") if never_stopped else Exit(code=code),
        ended_seconds=first + float(label["s_from_fault_to_exit"]),
        deadline_seconds=60.0,
        notes=FaultNotes(t=first, work_tree=tree(PARTIAL_DIFF)),
        work_tree=tree(diff.read_text("utf-8")),
        artefact=artefact,
        can_show=artefact.can_show,
        written_after=_written_after(run / "agent_output"),
        recorded_failing_step=3,
    )


def _wire(
    run: Path, label: dict[str, Any], events: list[dict[str, Any]], requests: list[dict[str, Any]], first: float
) -> WireFacts:
    served = [each for each in requests if not each["fault"]]
    faulted = [each for each in requests if each["fault"]]
    gone = any(each["ev"] == "server_process_exit" for each in events)
    script = _json(run / "ground_truth" / "script.json")
    healed = any(each["t"] > first for each in served)
    return WireFacts(
        delivered=True,
        requests=len(requests),
        faulted_requests=len(faulted),
        retries=None if gone else len(faulted) - 1 + healed,
        first_fault_seconds=first,
        last_release_seconds=max(
            each["t"] for each in events if each["ev"] in ("request", "peer_closed", "sent", "rst")
        ),
        healed=healed,
        steps_reached=1 + max(each["step"] for each in requests),
        replies=tuple(_reply(script[each["step"]], each["step"], each["t"] > first) for each in served),
        fault_texts=("",) if label["fault"] in _EMPTY_ANSWERS else (),
        server_gone=gone,
    )


def _reply(scripted: dict[str, Any], step: int, after_fault: bool) -> SentReply:
    calls = (
        (ToolCall(name=scripted["tool"], arguments=json.dumps(scripted["args"])),) if "tool" in scripted else ()
    )
    return SentReply(
        step=step + 1, origin="script", text=scripted["text"], tool_calls=calls, after_fault=after_fault
    )


def _artefact(output: Path) -> Trial:
    trajectory = output / "trajectory.traj.json"
    if trajectory.exists():
        return MiniSweAgent().read(trajectory, TrialRef(key="trial"))
    lines = _lines(output / "trajectory.jsonl")
    handed_in = output / "submission.json"
    submission = Submission(patch=_json(handed_in)["submission"]) if handed_in.exists() else None
    return Trial(
        format="a loop of ours",
        event_id=output.parent.name,
        event_id_from="digest",
        steps=tuple(_line(each, number) for number, each in enumerate(lines)),
        submission=submission,
        can_show=EXPECTATIONS,
    )


def _line(each: dict[str, Any], number: int) -> TranscriptLine:
    content = each["content"]
    calls = [_call(call) for call in each.get("tool_calls") or ()]
    if isinstance(content, list):  # Anthropic's blocks
        calls = [_call(block) for block in content if block["type"] == "tool_use"]
        content = "".join(block["text"] for block in content if block["type"] == "text")
    step = each["step"] + 1 if "step" in each else 0
    return line(step=step, role=each["role"], text=content, tool_calls=tuple(calls), origin=f"line {number + 1}")


def _call(call: Any) -> ToolCall:
    if isinstance(call, list):
        return ToolCall(id=call[0], name=call[1], arguments=call[2])
    if "function" in call:
        return ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
    return ToolCall(id=call["id"], name=call["name"], arguments=json.dumps(call["input"]))


def _written_after(output: Path) -> dict[str, str]:
    """Return both streams; of mini's standard output what follows its second step, which it printed before."""
    texts = {name: (output / f"agent.{name}").read_text("utf-8", "replace") for name in ("stdout", "stderr")}
    texts["stdout"] = texts["stdout"].rpartition("(step 2, ")[2]
    return texts


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in path.read_text("utf-8").splitlines() if each.strip()]
