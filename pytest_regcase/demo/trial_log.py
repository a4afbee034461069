"""The demo agent's own record: ``trial.jsonl``, one line an event, each on disk before the agent goes on.

Knows the format only (INTERFACES, ``trial.jsonl``). An agent that is killed leaves a file without an end line.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pytest_regcase.demo.chat import Reply, SupplierFailure


class TrialLog:
    """Appends lines to ``trial.jsonl`` in the output folder."""

    def __init__(self, out_dir: Path) -> None:
        out_dir.mkdir(parents=True, exist_ok=True)
        self._path = out_dir / "trial.jsonl"

    def begin(self, *, run_id: str, task_id: str | None, task_text: str, model: str) -> None:
        """Write the first line: what this trial is one of."""
        self._line(
            "trial",
            schema=1,
            harness="pytest-regcase demo agent",
            run_id=run_id,
            event_id=run_id,
            task_id=task_id,
            model=model,
            started_at=_now(),
            task_text=task_text,
        )

    def prompt(self, role: Literal["system", "user"], text: str) -> None:
        """Write a message that came before the first reply."""
        self._line("step", step=0, role=role, text=text)

    def reply(self, step: int, reply: Reply, offered_tools: Sequence[str]) -> None:
        """Write a complete reply; `step` counts them from 1."""
        self._line(
            "step",
            step=step,
            role="assistant",
            text=reply.text,
            tool_calls=[{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.calls]
            or None,
            finish=reply.finish,
            usage=reply.usage,
            model=reply.model,
            offered_tools=list(offered_tools) or None,
            at=_now(),
        )

    def tool_result(self, step: int, call_id: str, text: str) -> None:
        """Write what a tool gave back."""
        self._line("step", step=step, role="tool", text=text, tool_call_id=call_id)

    def model_call(self, step: int, failure: SupplierFailure | None = None) -> None:
        """Write that the model was asked, and how that failed; step 0 is a call outside the conversation.

        A call is no reply: the reply to one that worked has a line of its own.
        """
        error = None if failure is None else f"{failure.kind}: {failure}"
        self._line("model_call", step=step, error=error, at=_now())

    def error(self, failure: SupplierFailure) -> None:
        """Write what ended the trial."""
        self._line("error", type=failure.kind, message=str(failure), raised_by="supplier")

    def partial_patch(self, patch: str) -> None:
        """Write unfinished work, for diagnosis; it is not handed in."""
        self._line("partial_patch", patch=patch)

    def submission(self, *, text: str | None, patch: str | None) -> None:
        """Write what is handed in."""
        self._line("submission", text=text, patch=patch, by="agent")

    def end(self, termination: Literal["finished", "error", "limit"]) -> None:
        """Write the last line. The agent does not grade itself: the outcome is undetermined."""
        self._line("end", termination=termination, outcome="undetermined", at=_now())

    def _line(self, kind: str, **values: Any) -> None:
        line: Mapping[str, Any] = {
            "kind": kind,
            **{key: value for key, value in values.items() if value is not None},
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
