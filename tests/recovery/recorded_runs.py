"""Reads recorded runs of real agents as an attempt of ours would have seen them.

What the experiment's server noted becomes our wire log and goes through the same reading as an attempt's; the
agent's output is copied to a neutral name and read by the importers and at declared places. Of the label only what
our runner would have measured is used: how and when the process ended, and the agent's commits.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_regcase.agents.launch import Places
from pytest_regcase.agents.outputs import declared
from pytest_regcase.config import AgentConfig
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import read_output
from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.observed import FaultNotes, Observed, WorkTreeNotes
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.wire import Delivery, WireEvent
from pytest_regcase.recovery.wire_facts import wire_facts
from tests.recovery.observed_samples import BASE, LATER, PARTIAL_DIFF, WHOLE_DIFF

TASK_TEXT: Final = "calc.py has two bugs. Fix both so that test_calc.py passes, then submit."
NO_TREE: Final = ("inspect",)
"""Agents whose work lies in a sandbox of their own, which is gone afterwards."""

_FILE: Final = AgentConfig(command=("agent",), submission="submission.json#/submission")
_CONFIGS: Final = {
    "aider": AgentConfig(command=("aider",), submits_by="commit"),
    "harbor": AgentConfig(command=("harbor",), submits_by="score"),
    "inspect": AgentConfig(command=("inspect",), submits_by="score"),
    "mini-swe-agent": AgentConfig(command=("mini",)),
    "openai-agents": _FILE.model_copy(update={"answer": "final_output.json#/final_output"}),
    "pydantic-ai": _FILE.model_copy(update={"answer": "result_output.json#/output"}),
}
"""What a user would configure for each; the plain loops hand in a file and declare no answer."""

_BEFORE_THE_FAULT: Final[dict[str, dict[str, tuple[str, int]]]] = {
    "aider": {"stdout": ("Added 6 lines of output to the chat.", 1), "aider.llm.history": ("LLM RESPONSE", 2)},
    "harbor": {
        "stdout": ("Running trials...", 1),
        "stderr": ("cost, add them to model_info", 1),
        "trial.log": ("Trajectory dumped to ", 2),
        "job.log": ("Trajectory dumped to ", 2),
        "config.json": ("}", -1),
        "lock.json": ("}", -1),
        "terminus_2.pane": ("\n", -1),
    },
    "inspect": {"stdout": ("------\n", 2), "stderr": ("inspect ctl --help)", 1)},
    "mini-swe-agent": {"stdout": ("(step 2, ", 1)},
}
"""By the end of a file's name: what stood last in it when the first faulted request came, and its how manieth (-1:
the last in the file, which was whole by then). The recordings hold no sizes. What is not named was empty then, or
is read by the importer."""

_WIRES: Final = {"chat": "openai-chat", "anthropic": "anthropic-messages", "responses": "openai-responses"}
_EMPTY: Final = ("fault empty_content", "fault empty_choices")
"""What the server's note says where what it sent was a whole answer with no text in it."""


@dataclass(frozen=True)
class Run:
    """One recorded run as our own attempt would have seen it."""

    name: str
    observed: Observed
    config: AgentConfig
    refusal: str | None
    """The slug of what the importers said, where they read nothing."""


def recorded_runs(shared_trials: Path, neutral: Path) -> Iterator[Run]:
    """Read every run; its output is copied to ``trial-NNN`` below `neutral`: its name gives the fault away."""
    folders = sorted(each for each in (shared_trials / "agents").iterdir() if (each / "ground_truth").is_dir())
    for number, folder in enumerate(folders):
        output = neutral / f"trial-{number:03}"
        shutil.copytree(folder / "agent_output", output)
        yield _run(folder.name, folder / "ground_truth", output)


def without_connects(run: Run) -> Observed:
    """Return the run as it is seen where the agent's own connects are not."""
    if not run.observed.wire.server_gone:
        return run.observed
    unseen = {"retries": None, "refused_connects": None, "last_release_seconds": None}
    return run.observed.model_copy(update={"wire": run.observed.wire.model_copy(update=unseen)})


def _run(name: str, truth: Path, output: Path) -> Run:
    family = next((each for each in _CONFIGS if name.startswith(each)), "")
    config = _CONFIGS.get(family, _FILE)
    label = _json(truth / "label.json")
    events = _lines(truth / "server.jsonl")
    listening = next(each for each in events if each["ev"] == "listening")
    first = next((float(each["t"]) for each in events if each["ev"] == "request" and each["fault"]), None)
    ended_by_us_at = None if first is None or not label["never_stopped"] else first + float(label["cap_s"])
    wire = wire_facts(
        tuple(_wire_log(events, _json(truth / "script.json"))),
        declares=None if first is None else lambda *_: _declared_delivery(events),
        ended_by_us_at=ended_by_us_at,
        last_step=int(listening["at_step"]) if first is not None else None,
        failing_step=int(listening["at_step"]) + 1 if first is not None else None,
        connects=_connects(truth / "client_connects.jsonl", listening),
    )
    # The notes are taken at the first faulted request of the main conversation.
    met = wire.first_fault_seconds
    trees = (None, None) if family in NO_TREE else _trees(truth / "worktree.diff", label["commits_after"])
    trial, refusal = _artefact(output)
    last = max(each["t"] for each in events)
    observed = Observed(
        kind="control" if first is None else "simulation",
        wire=wire,
        exit=_exit(label),
        ended_seconds=last if first is None else first + float(label["s_from_fault_to_exit"]),
        deadline_seconds=float(label["cap_s"]),
        notes=None if met is None else FaultNotes(t=met, work_tree=trees[0]),
        work_tree=trees[1],
        artefact=trial,
        artefact_missing=refusal,
        declared=declared(config, replace(Places.below(output), work_dir=output), {}),
        can_show=trial.can_show if trial is not None else (),
        written_after={} if met is None else dict(_written_after(output, _BEFORE_THE_FAULT.get(family, {}))),
        task_text=TASK_TEXT,
        recorded_failing_step=None if first is None else int(listening["at_step"]) + 1,
        fault_heals=bool(listening["heal_after"]),
        submits_by=config.submits_by,
    )
    return Run(name, observed, config, refusal)


# the wire


def _wire_log(events: list[dict[str, Any]], script: list[dict[str, Any]]) -> Iterator[WireEvent]:
    """Yield the lines that our supplier would have written."""
    requests = {each["req"]: each for each in events if each["ev"] == "request"}
    smallest = next(iter(requests.values()))["n_messages"] if requests else 0
    open_on: dict[int, dict[str, Any]] = {}
    closed: set[int] = set()
    faulted = False
    for each in events:
        kind, conn = each["ev"], int(each.get("conn", 0))
        if kind == "accept":
            yield {"t": each["t"], "event": "accept", "conn": conn}
        elif kind == "request":
            # A conversation only grows: a shorter one without tools is another (aider's commit messages).
            side = not each["tools"] and each["n_messages"] < smallest
            faulted = faulted or (bool(each["fault"]) and not side)
            phase = "faulted" if each["fault"] and not side else "after" if faulted else "before"
            open_on[conn] = each
            yield {
                "t": each["t"],
                "event": "request",
                "conn": conn,
                "request": each["req"],
                "step": each["step"] + 1,
                "wire": _WIRES[each["api"]],
                "streaming": each["stream"],
                "conversation": f"{each['n_messages']} messages",
                "side_call": side or None,
                "client_retry": int(each["retry_count"]) if each["retry_count"] is not None else None,
                "phase": phase,
            }
        elif kind in ("sent", "sent_sse"):
            if each.get("note") != "sse headers":  # the body follows, and tells
                yield _sent(each, requests[each["req"]], events, script)
                if _is_whole(each):
                    open_on.pop(conn, None)
        elif kind == "server_process_exit":
            yield {"t": each["t"], "event": "killed", "by": "fault", "connect": "refused"}
        elif kind in ("peer_closed", "rst", "conn_error", "conn_end") and conn not in closed:
            closed.add(conn)
            yield _closed(each, open_on.get(conn))


def _sent(
    each: dict[str, Any], request: dict[str, Any], events: list[dict[str, Any]], script: list[dict[str, Any]]
) -> WireEvent:
    reply: dict[str, Any] = script[request["step"]] if _holds_reply(each, request) else {}
    calls = [{"name": reply["tool"], "arguments": json.dumps(reply["args"])}] if "tool" in reply else None
    text = "" if each["note"] in _EMPTY else reply.get("text")
    head = each.get("head") or next(
        one["head"] for one in events if one["ev"] == "sent" and one["req"] == each["req"]
    )
    return {
        "t": each["t"],
        "event": "sent",
        "conn": each["conn"],
        "request": each["req"],
        "step": request["step"] + 1,
        "from": "fault" if request["fault"] else "script",
        "status": int(head.split(" ")[1]),
        "bytes": each.get("bytes", 1),
        "parts": each.get("events", 1),
        "complete": _is_whole(each),
        "text": text,
        "tool_calls": calls,
    }


def _is_whole(each: dict[str, Any]) -> bool:
    return "then silence" not in each["note"]


def _holds_reply(each: dict[str, Any], request: dict[str, Any]) -> bool:
    """Say whether a client can read a model's text in it: of half a stream, but not of half a JSON document."""
    return not request["fault"] or (each["ev"] == "sent_sse" and not _is_whole(each))


def _closed(each: dict[str, Any], request: dict[str, Any] | None) -> WireEvent:
    """Return the end of a connection; `request` is the one that was still open on it."""
    found: WireEvent = {
        "t": each["t"],
        "event": "closed",
        "conn": each["conn"],
        "by": "us" if each["ev"] == "rst" else "peer",
        "how": "fin" if each["ev"] in ("peer_closed", "conn_end") else "rst",
        "unacknowledged": 0,
    }
    if request is not None:
        found |= {"request": request["req"], "held_seconds": round(each["t"] - request["t"], 4)}
    return found


def _declared_delivery(events: list[dict[str, Any]]) -> Delivery:
    """Return what had to be seen on the wire for what this server was told to do."""
    kind = next(each for each in events if each["ev"] == "listening")["fault"]
    status = {"401": 401, "429quota": 429, "429rate": 429, "500oom": 500, "503": 503}
    others = {
        "stall": Delivery(answer="none", then="held"),
        "midstall": Delivery(answer="partial", then="held", body="some"),
        "rst": Delivery(answer="none", then="closed", how="rst"),
        "killed": Delivery(answer="none", then="killed"),
    }
    # Anthropic says a used-up quota with another status: what was declared is the status that its API gives.
    is_anthropic = any(each.get("api") == "anthropic" for each in events)
    codes = status | ({"429quota": 400} if is_anthropic else {})
    return others.get(kind, Delivery(answer="complete", status=codes.get(kind, 200), then="answered"))


def _connects(path: Path, listening: dict[str, Any]) -> list[float]:
    """Return the connects to the supplier that were noted in the agent's process, on the server's clock."""
    start = float(listening["wall"]) - float(listening["t"])
    noted = [each for each in _lines(path) if each["addr"][1] == listening["port"]] if path.exists() else []
    return [each["wall"] - start for each in noted]


# the runner


def _exit(label: dict[str, Any]) -> Exit:
    code = int(label["raw_returncode"])
    if label["never_stopped"]:
        return Exit(signal=-code, ended_by="deadline")
    return Exit(code=code) if code >= 0 else Exit(signal=-code)


def _trees(diff: Path, commits: list[str]) -> tuple[WorkTreeNotes, WorkTreeNotes]:
    """Return the tree at the fault, which always held the half-finished fix, and at the end."""
    committed = ("", PARTIAL_DIFF, WHOLE_DIFF)[len(commits)]
    then = WorkTreeNotes(
        diff=PARTIAL_DIFF,
        head=LATER if commits else BASE,
        committed_diff=PARTIAL_DIFF if commits else "",
    )
    head = BASE if not commits else LATER if len(commits) == 1 else "3" * 40
    return then, WorkTreeNotes(diff=diff.read_text("utf-8"), head=head, committed_diff=committed)


def _artefact(output: Path) -> tuple[Trial | None, str | None]:
    try:
        return read_output(output), None
    except ImportRefused as refused:
        return None, refused.slug


def _written_after(output: Path, before: dict[str, tuple[str, int]]) -> Iterator[tuple[str, str]]:
    for path in sorted(each for each in output.rglob("*") if each.is_file()):
        data = path.read_bytes()
        if b"\0" in data[:8192]:
            continue
        name = {"agent.stdout": "stdout", "agent.stderr": "stderr"}.get(path.name)
        name = name or f"out/{path.relative_to(output).as_posix()}"
        text = data.decode("utf-8", "replace")
        mark = next((mark for end, mark in before.items() if name.endswith(end)), None)
        text = text if mark is None else _behind(text, *mark)
        if text:
            yield name, text


def _behind(text: str, mark: str, count: int) -> str:
    """Return what stands behind the mark; everything where it is not there as often, as after a short run."""
    if count < 0:
        return text.rpartition(mark)[2]
    parts = text.split(mark, count)
    return parts[count] if len(parts) > count else text


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in path.read_text("utf-8").splitlines() if each.strip()]
