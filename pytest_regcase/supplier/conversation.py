"""Which requests belong to the main conversation, and which are side calls (titles, summaries, sub-agents).

Pure of sockets and clocks; knows canonical requests only. The design's rule looks at all requests at once ("the
first that offers any tool, else the first that holds the task text, else the first"); a server must answer now, so
the first request stands in until one of a higher rank comes, unless the conversation in place has gone on by then.
"""

import hashlib
import json
import re
from enum import IntEnum
from typing import Literal

from pytest_regcase.supplier.protocol import Call, ModelRequest


def digest_of_messages(request: ModelRequest) -> str:
    """Return what makes two requests the same conversation, whatever wire and options they come with."""

    def plain(calls: tuple[Call, ...]) -> list[list[str | None]]:
        return [[each.id, each.name, each.arguments] for each in calls]

    shown = [[each.role, each.text, plain(each.tool_calls), each.tool_call_id] for each in request.messages]
    return "sha256:" + hashlib.sha256(json.dumps(shown).encode()).hexdigest()


class _Rank(IntEnum):
    FIRST = 0
    HOLDS_THE_TASK = 1
    OFFERS_TOOLS = 2
    OFFERS_THE_RECORDED_TOOLS = 3


class MainConversation:
    """Tells main requests from side calls, one request after the other.

    `recorded_tools` are the names that the recorded replies call. Where there are any and `recorded_only`, no
    other request is ever main: an agent that renamed its tool is off the prefix, not on another conversation.
    """

    def __init__(self, recorded_tools: frozenset[str], task_text: str | None, *, recorded_only: bool) -> None:
        self._recorded = recorded_tools
        self._recorded_only = recorded_only and bool(recorded_tools)
        self._task = _squeezed(task_text) if task_text else ""
        self._rank: _Rank | None = None
        self._tools: frozenset[str] = frozenset()
        self._opening = ""
        self._went_on = False

    @property
    def found(self) -> bool:
        """Say whether a main request was seen."""
        return self._rank is not None

    def place(self, request: ModelRequest, needed: frozenset[str]) -> Literal["main", "side", "new-main"]:
        """Say where `request` belongs; `needed` are the tools that the reply due now calls.

        ``new-main``: it takes the place of a request that was taken for the main conversation too early (a title
        call before the loop, where nothing recorded calls a tool); steps count from one again.
        """
        rank = self._rank_of(request, needed)
        if self._rank is None:
            if self._recorded_only and rank is not _Rank.OFFERS_THE_RECORDED_TOOLS:
                return "side"
            self._take(request, rank)
            return "main"
        if self._continues(request, rank):
            self._went_on = self._went_on or any(each.role == "assistant" for each in request.messages)
            self._tools |= frozenset(request.tools)
            return "main"
        if rank > self._rank and not self._went_on and not self._recorded_only:
            self._take(request, rank)
            return "new-main"
        return "side"

    def _take(self, request: ModelRequest, rank: _Rank) -> None:
        self._rank, self._tools, self._opening = rank, frozenset(request.tools), _opening(request)
        self._went_on = any(each.role == "assistant" for each in request.messages)

    def _rank_of(self, request: ModelRequest, needed: frozenset[str]) -> _Rank:
        offered = frozenset(request.tools)
        if needed <= offered if needed else bool(self._recorded & offered):
            return _Rank.OFFERS_THE_RECORDED_TOOLS
        if offered:
            return _Rank.OFFERS_TOOLS
        if self._task and self._task in _squeezed(" ".join(each.text for each in request.messages)):
            return _Rank.HOLDS_THE_TASK
        return _Rank.FIRST

    def _continues(self, request: ModelRequest, rank: _Rank) -> bool:
        if self._tools:
            return bool(self._tools & frozenset(request.tools)) or (
                self._recorded_only and rank is _Rank.OFFERS_THE_RECORDED_TOOLS
            )
        if request.tools:
            return False
        return _opening(request) == self._opening or rank is self._rank is _Rank.HOLDS_THE_TASK


def _opening(request: ModelRequest) -> str:
    first = request.messages[0] if request.messages else None
    return hashlib.sha256(f"{first.role}\0{first.text}".encode("utf-8", "replace")).hexdigest() if first else ""


def _squeezed(text: str) -> str:
    """Return `text` with every run of white space as one blank: templates indent and wrap."""
    return re.sub(r"\s+", " ", text).strip()
