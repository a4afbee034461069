"""What the parent tells a supplier before it starts: plain frozen records and their JSON.

Knows no wire, no fault and no record. The child process reads this, so it imports the standard library only.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pytest_regcase.supplier.port import HOST

_WIRES = "pytest_regcase.supplier.wires"
WIRES = (
    f"{_WIRES}.openai_chat:OpenAIChat",
    f"{_WIRES}.openai_responses:OpenAIResponses",
    f"{_WIRES}.anthropic_messages:AnthropicMessages",
)
"""The entries of the wires that the supplier speaks unless it is told others."""

Line = Mapping[str, Any]
"""One line of ``transcript.jsonl``, as plain JSON."""


class FaultSpec(NamedTuple):
    """Which fault is injected, from which main request on, and for how many of them."""

    kind: str
    entry: str
    """``module:attribute`` of the fault's class."""
    at_step: int | None = None
    """Fires when the main conversation asks for this step (or, if that never happens, a later one)."""
    at_request: int | None = None
    """Fires at this main request, counted from 1; a retry advances this index and not the step."""
    lasts: int | None = None
    """Number of main requests that it hits; None means for ever."""
    settings: Mapping[str, Any] = {}
    """Keyword arguments of the fault's settings dataclass, checked by the parent."""


class ClosingReply(NamedTuple):
    """What is answered where neither a recorded reply nor the fault is due."""

    text: str | None = "Done."
    tool_calls: tuple[Line, ...] = ()


class PassThrough(NamedTuple):
    """The real supplier that requests are handed on to."""

    base_url: str
    """As that API's clients take it: ``https://api.openai.com/v1``, but ``https://api.anthropic.com``."""
    wire: str = "openai-chat"
    api_key_env: str | None = None
    """Name of the child's own variable that holds the key. The key itself is in no file."""


class ClockSpec(NamedTuple):
    """The agent's clock, which the supplier makes fast right before it injects the fault."""

    state: str
    """The file that the agent's processes map; the supplier makes it."""
    scale: float
    library: str
    """What a process must have loaded for the clock to reach it."""


@dataclass(frozen=True)
class SupplierSpec:
    """Everything that one supplier process needs to know."""

    wire_log: str
    t0: float
    """``time.monotonic()`` of the moment that `t` counts from; one clock for all processes of a machine."""
    token: str
    """First part of every path; without it a request is refused."""
    lines: tuple[Line, ...] = ()
    """Transcript or script; the complete replies in it are answered in order."""
    lines_from: Literal["replay", "script"] = "replay"
    failing_step: int | None = None
    task_text: str | None = None
    fault: FaultSpec | None = None
    after_fault: tuple[Line, ...] = ()
    closing_reply: ClosingReply = field(default_factory=ClosingReply)
    pass_through: PassThrough | None = None
    clock: ClockSpec | None = None
    """None: the agent's clock is real time throughout."""
    wires: tuple[str, ...] = WIRES
    reach: str = "loopback"
    """Who can connect, as configured; `reach.resolve` says what it means on this machine."""
    addresses: tuple[str, ...] = (HOST,)
    """What is listened on; filled in by `SupplierProcess.start` from `reach`."""
    port: int = 0
    """0: a free one, filled in by `SupplierProcess.start`, which holds it on every address."""
    one_conversation: bool = False
    """Every model request is a main one: where nothing is replayed by hand, none is a side call."""

    def to_json(self) -> str:
        """Return the one JSON document that `from_json` reads."""
        parts = {"fault": self.fault, "pass_through": self.pass_through, "clock": self.clock}
        plain = {name: None if each is None else each._asdict() for name, each in parts.items()}
        return json.dumps(vars(self) | plain | {"closing_reply": self.closing_reply._asdict()})

    @classmethod
    def from_json(cls, text: str) -> "SupplierSpec":
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is no such document.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            fault, closing, through = data["fault"], data["closing_reply"], data["pass_through"]
            clock = data["clock"]
            changes = {
                "lines": tuple(data["lines"]),
                "after_fault": tuple(data["after_fault"]),
                "wires": tuple(data["wires"]),
                "addresses": tuple(data["addresses"]),
                "fault": None if fault is None else FaultSpec(**fault),
                "closing_reply": ClosingReply(closing["text"], tuple(closing["tool_calls"])),
                "pass_through": None if through is None else PassThrough(**through),
                "clock": None if clock is None else ClockSpec(**clock),
            }
            return cls(**{**data, **changes})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"Couldn't read the supplier's specification: {error!r}.") from error


def new_token() -> str:
    """Return a path token that nobody can guess."""
    import secrets  # here and not above: the child process needs none

    return secrets.token_urlsafe(16)
