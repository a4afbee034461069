"""One simulation of tau2-bench: what the agent saw and said, how it ended, and what reward it got.

Knows `SimulationRun` and the messages of the benchmark's `data_model`. Must import no importer.

What surprises: the harness itself says the greeting that stands first, in the agent's name; the simulated user
has tools of its own, which the agent never sees; a reward of 0 also stands where a run ended by an error and
nothing was graded; `user_error` means that the simulated user failed; times have no zone.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ChatLines, tool_calls_of
from pytest_regcase.importers.reading import exception_chain, filled, mapping, present, sequence, text, whole
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import ErrorLink, Trial, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, Outcome, RaisedBy, Termination

CAN_SHOW: Final[tuple[Expectation, ...]] = ("log_failure", "no_fabricated_output", "mark_failure")
"""No work tree and no patch: the work is in a simulated database."""
_GREETING: Final = "Hi! How can I help you today?"
"""Put in front by the orchestrator (`DEFAULT_FIRST_AGENT_MESSAGE`): no model said it."""
_ENDS: Final[Mapping[str, Termination]] = {
    "user_stop": "finished",
    "agent_stop": "finished",
    "max_steps": "limit",
    "timeout": "limit",
    "too_many_errors": "limit",
    "agent_error": "error",
    "user_error": "error",
    "infrastructure_error": "error",
    "context_window_exceeded": "error",
    "unexpected_error": "error",
}
_RAISED_BY: Final[Mapping[str, RaisedBy]] = {"agent_error": "agent", "user_error": "environment"}
_CHECKS: Final = ("db_check", "env_assertions", "action_checks", "nl_assertions", "communicate_checks")
_NEAR: Final = 1e-6


class Simulation:
    """One record, wherever it stood."""

    def __init__(self, content: Mapping[str, Any], origin: str) -> None:
        self._content = content
        self._origin = origin
        self.id = filled(content.get("id"))
        self.reason = filled(content.get("termination_reason"))
        self.termination = _ENDS.get(self.reason or "")

    @cached_property
    def task_id(self) -> str | None:
        """The task's id; a number in old files."""
        given = self._content.get("task_id")
        number = whole(given)
        return str(number) if number is not None else filled(given)

    @cached_property
    def reward(self) -> float | None:
        """The recorded reward, whoever gave it."""
        given = mapping(self._content.get("reward_info")).get("reward")
        return given if isinstance(given, int | float) and not isinstance(given, bool) else None

    @cached_property
    def outcome(self) -> Outcome:
        """The reward's word. A 0 beside an error and without a single check was given without grading."""
        if self.reward is None:
            return "undetermined"
        if abs(self.reward - 1) <= _NEAR:
            return "passed"
        checked = present({name: mapping(self._content.get("reward_info")).get(name) for name in _CHECKS})
        return "undetermined" if self.termination == "error" and not checked else "failed"

    @cached_property
    def error(self) -> TrialError | None:
        """What was raised, as far as it is recorded; without that, the harness's own word for the end."""
        if self.termination != "error" or self.reason is None:
            return None
        info = mapping(self._content.get("info"))
        traceback = filled(info.get("error_traceback"))
        return TrialError(
            type=filled(info.get("error_type")) or self.reason,
            message=text(info.get("error")),
            traceback=traceback,
            raised_by=_RAISED_BY.get(self.reason, "unknown"),
            chain=tuple(ErrorLink(type=kind, message=words) for kind, words in exception_chain(traceback)),
        )

    def ref(self, key: str) -> TrialRef:
        """Return its reference."""
        why_not, refusal = None, None
        if self.outcome == "passed":
            why_not, refusal = f"its reward is {self.reward}: it passed", "passed"
        elif self.outcome == "undetermined" and self.termination in (None, "finished"):
            why_not, refusal = "it has no reward, and no error or limit ended it", "no-sign-of-failure"
        return TrialRef(
            key=key,
            task_id=self.task_id,
            attempt=whole(self._content.get("trial")),
            termination=self.termination,
            outcome=self.outcome,
            error_type=self.error.type if self.error is not None else None,
            failed=refusal is None,
            why_not=why_not,
            refusal=refusal,
            sample=self.task_id,
        )

    def trial(
        self, format_name: str, info: Mapping[str, Any], digests: dict[str, str], notes: tuple[str, ...]
    ) -> Trial:
        """Return the trial; `info` is what the run's own document says."""
        chat, missing = self._conversation()
        # Where the simulated user failed, no reply of the model was due.
        due = self.termination == "error" and self.reason != "user_error" and reply_was_due(chat.lines)
        agent = mapping(info.get("agent_info"))
        labels = [f"tau2:termination_reason:{self.reason}"] if self.reason else []
        if self.reward is not None:
            labels.append(f"tau2:reward:{self.reward}")
        if not info:
            missing.append("model, limits and revision: they stand in the run's results.json, not in a simulation")
        return Trial(
            format=format_name,
            harness="tau2-bench",
            task_id=self.task_id,
            attempt=whole(self._content.get("trial")),
            event_id=self.id or digest_of(self._content),
            event_id_from="recorded" if self.id else "digest",
            revision=filled(info.get("git_commit")),
            model=filled(agent.get("llm")),
            task_text=next(
                (line.text for line in chat.lines if line.role == "user" and line.step == 0 and line.text), None
            ),
            steps=tuple(chat.lines),
            failing_step=failing_step(chat.lines, next_reply_failed=due),
            termination=self.termination,
            outcome=self.outcome,
            outcome_from="log" if self.outcome != "undetermined" else None,
            error=self.error,
            labels=tuple(labels),
            conditions=self._conditions(info, agent),
            can_show=CAN_SHOW,
            source_digests=digests,
            missing=(*notes, *missing, "times: they are recorded without a zone, so they name no point in time"),
        )

    def _conversation(self) -> tuple[ChatLines, list[str]]:
        chat = ChatLines()
        users_own = 0
        messages = sequence(self._content.get("messages"))
        missing = []
        for index, message in enumerate(map(mapping, messages)):
            origin = f"{self._origin}.messages[{index}]"
            results = message.get("tool_messages")
            if isinstance(results, list):
                for result in map(mapping, results):
                    users_own += self._result(chat, result, origin)
            elif message.get("role") == "tool":
                users_own += self._result(chat, message, origin)
            elif message.get("role") == "user" and message.get("tool_calls") and not message.get("content"):
                users_own += 1
            elif index == 0 and message.get("content") == _GREETING and not message.get("raw_data"):
                missing.append("the greeting that the harness says in the agent's name is left out")
            elif message.get("role") == "assistant":
                usage = present(dict(mapping(message.get("usage")))) or None
                said = chat.content(message.get("content")).text
                chat.reply(origin, said, tool_calls_of(message.get("tool_calls")), usage=usage)
            else:
                chat.take(message, origin)
        if users_own:
            missing.append(f"left out: calls and results of the simulated user's own tools ({users_own})")
        if not messages and sequence(self._content.get("ticks")):
            missing.append("conversation: a voice run keeps ticks, which are not read")
        return chat, [*chat.missing, *missing]

    def _result(self, chat: ChatLines, message: Mapping[str, Any], origin: str) -> int:
        """Add a tool's result, or return 1 where it is the simulated user's."""
        if message.get("requestor") == "user":
            return 1
        chat.said(origin, "tool", text(message.get("content")), call_id=filled(message.get("id")))
        return 0

    def _conditions(self, info: Mapping[str, Any], agent: Mapping[str, Any]) -> dict[str, Any]:
        user = mapping(info.get("user_info"))
        kept = {
            "agent": {name: agent.get(name) for name in ("implementation", "llm_args")},
            "simulated_user": {name: user.get(name) for name in ("implementation", "llm", "llm_args")},
            "limits": {name: info.get(name) for name in ("max_steps", "max_errors")},
            "num_trials": info.get("num_trials"),
            "seed": self._content.get("seed", info.get("seed")),
            "domain": mapping(info.get("environment_info")).get("domain_name"),
        }
        found: dict[str, Any] = present(kept)
        return found
