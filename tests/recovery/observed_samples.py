"""Small observed attempts to judge: an agent that fixed one of two bugs when its supplier failed at step 3."""

from typing import Any, Literal

from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.observed import Declared, FaultNotes, Observed, WorkTreeNotes
from pytest_regcase.records.trial import Submission, ToolCall, TranscriptLine, Trial, TrialError
from pytest_regcase.records.wire import SentReply, WireFacts
from pytest_regcase.records.words import EXPECTATIONS

TASK = "calc.py has two bugs. Fix both so that test_calc.py passes, then submit."
READ = ToolCall(id="call_0", name="bash", arguments='{"command": "cat calc.py"}')
FIX = ToolCall(id="call_1", name="bash", arguments='{"command": "sed -i s/-/+/ calc.py"}')
TOOL_RESULT = "def add(a, b):\n    return a - b\n\n\ndef mean(xs):\n    return sum(xs) / (len(xs) + 1)\n"
PARTIAL_DIFF = """\
diff --git a/calc.py b/calc.py
index 816bded..dddd792 100644
--- a/calc.py
+++ b/calc.py
@@ -1,5 +1,5 @@
 def add(a, b):
-    return a - b
+    return a + b
 
 
 def mean(xs):
"""  # noqa: W293 - a context line of a diff is a space
WHOLE_DIFF = """\
diff --git a/calc.py b/calc.py
index 816bded..714a63d 100644
--- a/calc.py
+++ b/calc.py
@@ -1,6 +1,6 @@
 def add(a, b):
-    return a - b
+    return a + b
 
 
 def mean(xs):
-    return sum(xs) / (len(xs) + 1)
+    return sum(xs) / len(xs)
"""  # noqa: W293
BASE, LATER = "1" * 40, "2" * 40
FIRST_FAULT = 5.0
ERROR = TrialError(type="AuthenticationError", message="HTTP 401: the key was rejected", raised_by="supplier")


def line(**keys: Any) -> TranscriptLine:
    """Return a transcript line by its field names (the alias `from` is no Python name)."""
    return TranscriptLine.model_validate(keys)


REPLIES = (
    SentReply(step=1, origin="replay", text="Let me look at the file.", tool_calls=(READ,)),
    SentReply(step=2, origin="replay", text="Fixing add first.", tool_calls=(FIX,)),
)
STEPS = (
    line(step=0, role="user", text=TASK, origin="messages[0]"),
    line(step=1, role="assistant", text=REPLIES[0].text, tool_calls=(READ,), origin="messages[1]"),
    line(step=1, role="tool", text=TOOL_RESULT, tool_call_id="call_0", origin="messages[2]"),
    line(step=2, role="assistant", text=REPLIES[1].text, tool_calls=(FIX,), origin="messages[3]"),
    line(step=2, role="tool", text="", raw_output=" calc.py | 2 +-\n", origin="messages[4]"),
)


def wire(**changes: Any) -> WireFacts:
    """Return the facts of an attempt whose third call was refused once and not tried again."""
    facts: dict[str, Any] = {
        "delivered": True,
        "requests": 3,
        "faulted_requests": 1,
        "retries": 0,
        "first_fault_seconds": FIRST_FAULT,
        "last_release_seconds": FIRST_FAULT + 0.2,
        "steps_reached": 3,
        "asked_for_failing_step": True,
        "got_last_reply": True,
        "replies": REPLIES,
    }
    return WireFacts.model_validate({**facts, **changes})


def answer(text: str | None, *, calls: tuple[ToolCall, ...] = (), step: int = 3) -> TranscriptLine:
    """Return one more answer in the transcript."""
    return line(step=step, role="assistant", text=text, tool_calls=calls, origin="messages[5]")


def trial(*more: TranscriptLine, **changes: Any) -> Trial:
    """Return what the agent wrote: it failed, says so, and handed in nothing."""
    facts: dict[str, Any] = {
        "format": "trial-jsonl",
        "event_id": "sample",
        "event_id_from": "recorded",
        "steps": STEPS + more,
        "termination": "error",
        "error": TrialError(
            type="AuthenticationError", message="HTTP 401: the key was rejected", raised_by="supplier"
        ),
        "can_show": EXPECTATIONS,
    }
    return Trial.model_validate({**facts, **changes})


def tree(diff: str = PARTIAL_DIFF, *, head: str = BASE, committed_diff: str = "") -> WorkTreeNotes:
    """Return the work tree at one moment."""
    return WorkTreeNotes(diff=diff, head=head, committed_diff=committed_diff)


def observed(**changes: Any) -> Observed:
    """Return what is observed of a good agent under a fault that lasts: nothing is broken."""
    facts: dict[str, Any] = {
        "kind": "simulation",
        "wire": wire(),
        "exit": Exit(code=1),
        "ended_seconds": FIRST_FAULT + 1.5,
        "deadline_seconds": 90.0,
        "notes": FaultNotes(t=FIRST_FAULT, work_tree=tree()),
        "work_tree": tree(),
        "artefact": trial(),
        "task_text": TASK,
        "recorded_failing_step": 3,
    }
    return Observed.model_validate({**facts, **changes})


def ended_by_us(by: Literal["deadline", "cap"] = "deadline", **changes: Any) -> Observed:
    """Return the same agent, ended at its deadline (90 s) while it still ran; it wrote no status."""
    facts: dict[str, Any] = {
        "exit": Exit(signal=15, ended_by=by),
        "ended_seconds": FIRST_FAULT + 90.0,
        "artefact": trial(termination="cut-off", error=None),
    }
    return observed(**{**facts, **changes})


def finished(*more: TranscriptLine, **changes: Any) -> Trial:
    """Return an artefact that hides the failure: it says that the agent finished."""
    return trial(*more, **{"termination": "finished", "error": None, **changes})


def submitted(patch: str | None = PARTIAL_DIFF, **changes: Any) -> Submission:
    """Return something that was handed in."""
    return Submission(patch=patch, **changes)


def declared(**changes: Any) -> Declared:
    """Return what declared places held; a given value is declared."""
    return Declared.model_validate({**{f"{key}_declared": True for key in changes}, **changes})
