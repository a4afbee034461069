"""What marks a text as made by regcase itself: what a simulation or an attempt of ours produced is never evidence.

The marks find copies and slips; they are no signature. Knows our own formats by their shape. Pure.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

_EVENTS: Final = frozenset({"listen", "accept", "request", "sent", "closed", "killed", "exited"})
_SHAPES: Final[tuple[tuple[frozenset[str], str], ...]] = (
    (frozenset({"attempt_id", "session_id", "scenario"}), "an attempt record"),
    (frozenset({"requested", "tasks_file", "kind"}), "the list of a run"),
    (frozenset({"decision", "policy", "profile"}), "a gate decision"),
    (frozenset({"cause_status", "simulation_ids", "rerun_rule"}), "a handover"),
    (frozenset({"hypothesis", "fault", "wires", "sources"}), "the list of simulations"),
    (frozenset({"id", "state", "owner", "hypotheses"}), "the list of cases"),
    (frozenset({"step", "role", "from"}), "a recorded transcript"),
    (frozenset({"instance_id", "model_patch", "status"}), "a file of predictions"),
)
_DOCUMENTS: Final = 6
"""The first of them are also written over many lines."""
_TOML: Final = (
    re.compile(r"^schema = 1\r?$", re.MULTILINE),
    re.compile(r'^(?:\[observation\]|source_event = "fixture-run"|cause_status = "hypothesized")', re.MULTILINE),
)
_ANSWER: Final = re.compile(
    r'\A[\[{]\s+"schema": 1,'
    r"|^\s*(?:\$ )?regcase (?:evidence|compare|handover|history|show|fix|gate|check)\b"
    r"|\A\[\]\s*\Z|^regcase: (?:profile|ledger: )|^[a-z0-9-]+: compared with \d+ logs?$|^\d+ of \d+ cases$"
    r"|^(?:no|\d+) cases?, \d+ simulations?: |^\d+ clean live runs close a case: "
    r"|^  would support it:$|; each tests one hypothesis and says nothing about any trial\.$",
    re.MULTILINE,
)
_MARK: Final = re.compile(
    # Our names: attempt labels, throw-away keys, folders, control groups, made-up organisations, commands.
    r"regcase|\bcase\.toml\b|sk-\*{20,}case\."
    # Numbers that the supplier's error bodies and the shipped fixtures have made up.
    r"|Limit 30000, Used 29512, Requested 1203|Current cost: 10\.02, Max budget: 10\.0\b"
    r"|You requested up to 16000 tokens, but can only afford 2048|your messages resulted in 131344 tokens"
    r"|201082 tokens > 200000 maximum|You will regain access on 2030-01-01 at 00:00 UTC"
    r"|Tried to allocate 50\.00 MiB\. GPU 0 has a total capacity of 23\.56 GiB of which 56\.88 MiB is free",
    re.IGNORECASE,
)


def own_form(text: str) -> str | None:
    """Return which of our own files begins with `text`; None where it is none of them."""
    first = _json_object(text.lstrip().partition("\n")[0])
    form = None if first is None else _shape_of(first)
    if form is not None:
        return form
    if _ANSWER.search(text):
        return "an answer of a command"
    for keys, says in _SHAPES[:_DOCUMENTS]:
        if text.lstrip().startswith(("{", "[")) and all(f'"{each}":' in text for each in keys):
            return says
    return "a case or simulation file" if all(each.search(text) for each in _TOML) else None


def own_line(text: str) -> str | None:
    """Return which of our own files one line is of, wherever it stands; None where it is of none of them."""
    found = _json_object(text)
    return None if found is None else _shape_of(found)


def own_mark(lines: Iterable[str]) -> str | None:
    """Return what in `lines` only regcase writes; None where nothing does."""
    for line in lines:
        found = _MARK.search(line)
        if found is not None:
            return found.group()
    return None


def _shape_of(found: dict[str, Any]) -> str | None:
    if "t" in found and found.get("event") in _EVENTS:
        return "a wire log"
    if found.get("kind") == "trial" and found.get("schema") == 1:
        return "a recorded trial"
    return next((says for keys, says in _SHAPES if keys <= found.keys()), None)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
