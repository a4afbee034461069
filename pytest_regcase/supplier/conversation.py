"""Which requests belong to the main conversation, and which are side calls (titles, summaries, sub-agents).

Pure of sockets and clocks; knows canonical requests only. The design's rule looks at all requests at once ("the
first that offers any tool, else the first that holds the task text, else the first"); a server must answer now, so
the first request stands in until one of a higher rank comes, unless the conversation in place has gone on by then.
A sub-agent may have the very same tools: it is told by what it was asked, where it begins.
"""

import hashlib
from enum import IntEnum
from functools import lru_cache
from typing import Literal

from pytest_regcase.supplier.protocol import Message, ModelRequest


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
        self._asked = ""
        self._holds_task = False
        self._others: set[str] = set()
        """What other conversations were asked that have the tools of the main one."""
        self._went_on = False

    @property
    def found(self) -> bool:
        """Say whether a main request was seen."""
        return self._rank is not None

    def place(
        self, request: ModelRequest, needed: frozenset[str], *, faulted: bool = False
    ) -> Literal["main", "side", "new-main"]:
        """Say where `request` belongs; `needed` are the tools that the reply due now calls.

        `faulted`: the fault has met the main conversation, so that an agent may start over in other words.
        ``new-main``: it takes the place of a request that was taken for the main conversation too early (a title
        call before the loop, where nothing recorded calls a tool); steps count from one again.
        """
        rank = self._rank_of(request, needed)
        if self._rank is None:
            if self._recorded_only and rank is not _Rank.OFFERS_THE_RECORDED_TOOLS:
                return "side"
            self._take(request, rank)
            return "main"
        if self._is_another(request, faulted=faulted):
            if rank is self._rank and self._holds(request) and not (self._holds_task or self._went_on):
                self._others.add(self._asked)
                self._take(request, rank)
                return "new-main"
            if rank <= self._rank:
                self._others.add(_asked(request))
                return "side"
        elif self._continues(request, rank):
            self._went_on = self._went_on or any(each.role == "assistant" for each in request.messages)
            self._tools = self._tools.union(request.tools)
            return "main"
        if rank > self._rank and not self._went_on and not self._recorded_only:
            self._take(request, rank)
            return "new-main"
        return "side"

    def _take(self, request: ModelRequest, rank: _Rank) -> None:
        self._rank, self._tools, self._opening = rank, frozenset(request.tools), _opening(request)
        self._asked, self._holds_task = _asked(request), self._holds(request)
        self._went_on = any(each.role == "assistant" for each in request.messages)

    def _holds(self, request: ModelRequest) -> bool:
        # Where it stands as a rule is looked at first: a long conversation is not read through at every request.
        return bool(self._task) and (
            self._task in _beginning(tuple([each.text for each in _before_answers(request)]))
            or self._task in _squeezed(" ".join([each.text for each in request.messages]))
        )

    def _is_another(self, request: ModelRequest, *, faulted: bool) -> bool:
        """Say whether a conversation with tools of the main one is another: it begins with another question.

        What goes on under a prompt that was never seen is the main one: agents change their prompts in between.
        So is what begins as it began and says more, and after the fault what may be the task again in other words.
        """
        if self._tools.isdisjoint(request.tools):
            return False
        asked = _asked(request)
        if not asked or (self._asked and asked.startswith(self._asked)):
            return False
        if asked in self._others:
            return True
        if any(each.role == "assistant" for each in request.messages):
            return False
        return not faulted or (self._holds_task and not self._holds(request))

    def _rank_of(self, request: ModelRequest, needed: frozenset[str]) -> _Rank:
        offered = frozenset(request.tools)
        if needed <= offered if needed else bool(self._recorded & offered):
            return _Rank.OFFERS_THE_RECORDED_TOOLS
        if offered:
            return _Rank.OFFERS_TOOLS
        if self._holds(request):
            return _Rank.HOLDS_THE_TASK
        return _Rank.FIRST

    def _continues(self, request: ModelRequest, rank: _Rank) -> bool:
        if self._tools:
            return not self._tools.isdisjoint(request.tools) or (
                self._recorded_only and rank is _Rank.OFFERS_THE_RECORDED_TOOLS
            )
        if request.tools:
            return False
        return _opening(request) == self._opening or rank is self._rank is _Rank.HOLDS_THE_TASK


def _opening(request: ModelRequest) -> str:
    first = request.messages[0] if request.messages else None
    return hashlib.sha256(f"{first.role}\0{first.text}".encode("utf-8", "replace")).hexdigest() if first else ""


def _asked(request: ModelRequest) -> str:
    """Return what the user says before the first answer; a system prompt may hold the time of day."""
    return _beginning(tuple([each.text for each in _before_answers(request) if each.role == "user"]))


def _before_answers(request: ModelRequest) -> tuple[Message, ...]:
    answered = next((at for at, each in enumerate(request.messages) if each.role == "assistant"), None)
    return request.messages[:answered]


@lru_cache(maxsize=8)
def _beginning(texts: tuple[str, ...]) -> str:
    # The same at every request of a conversation, and a prompt may be long.
    return _squeezed(" ".join(texts))


def _squeezed(text: str) -> str:
    """Return `text` with every run of white space as one blank: templates indent and wrap."""
    return " ".join(text.split())
