"""Which changes between two versions of a case loosen it, and what was done to its appended records.

Pure: two records in, findings out. What makes a case stricter is never among them. Whether an amendment records a
change is asked of case_files.guarded.
"""

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

from pytest_regcase.case_files.guarded import ABSENT, Change, appended_since, guarded_changes, is_amended
from pytest_regcase.lint.codes import CodeName, Found
from pytest_regcase.records.base import Record
from pytest_regcase.records.case import Amendment, Evidence, RegressionCase, RerunRule
from pytest_regcase.rules.lifecycle import is_retired
from pytest_regcase.toml_lines import Key

APPEND_ONLY: Final = ("evidence", "fix", "closed", "reopened", "retired", "amendments", "occurrences")
_LONGEST_SHOWN: Final = 60
_FREE_TEXT: Final = ("expected_recovery.summary",)


class Loosening(NamedTuple):
    """One change that lets more pass than before."""

    code: CodeName
    change: Change


def loosened_problems(
    before: RegressionCase, now: RegressionCase, *, configured: tuple[RerunRule, RerunRule]
) -> Iterator[Found]:
    """Yield each loosening of `now` that no amendment since `before` records, and each record that is not kept.

    `configured` is the rerun rule of the project then and now, for the keys that the case does not have itself.
    """
    since = appended_since(before, now)
    old_seal = before.seal.observation if before.seal is not None else None
    for code, change in loosenings(before, now, configured=configured):
        if code == "observation-changed" and old_seal is None:
            continue  # nothing was sealed, so nothing was changed that had been settled
        if not is_amended(change, since, old_seal=old_seal):
            yield Found(code, _place(now, change.key), _says(now, change, since))
    yield from unkept_records(before, now)
    if is_retired(now) and not is_retired(before):
        last = now.retired[-1]
        yield Found(
            "case-retired",
            ("retired", len(now.retired) - 1),
            f"retired by {last.by}: {last.why}; it is no longer run, and judges nothing",
        )


def loosenings(
    before: RegressionCase, now: RegressionCase, *, configured: tuple[RerunRule, RerunRule]
) -> Iterator[Loosening]:
    """Yield every change that lets more pass than before, amended or not."""
    for change in guarded_changes(before, now):
        code = _code_of(change, now, configured)
        if code is not None:
            yield Loosening(code, change)


def unkept_records(before: RegressionCase, now: RegressionCase) -> Iterator[Found]:
    """Yield each appended record of `before` that `now` has no longer, or in other words.

    A citation that was withdrawn since is the same citation.
    """
    for table in APPEND_ONLY:
        found = getattr(now, table)
        for index, old in enumerate(getattr(before, table)):
            if any(_is_kept(old, new) for new in found):
                continue
            same = next((place for place, new in enumerate(found) if _named(new) == _named(old)), None)
            if same is None:
                yield Found("record-removed", (table,), f"{_shown(table, index, old)} is gone; {_REMEDY[table]}")
            else:
                says = f"{_shown(table, index, old)} says something else now; {_REMEDY[table]}"
                yield Found("record-edited", (table, same), says)


_REMEDY: Final = {
    "evidence": "take the edit back: evidence is withdrawn with `regcase evidence`, never removed",
    **dict.fromkeys(APPEND_ONLY[1:], "take the edit back: such records are only ever added"),
}


def _is_kept(old: Record, new: Record) -> bool:
    if isinstance(old, Evidence) and isinstance(new, Evidence) and old.withdrawn is None:
        new = new.model_copy(update={"withdrawn": None})
    return old == new


def _named(record: Any) -> object:
    """What a record is known by: its id or number, a trial, else the time at which it was written."""
    for key in ("id", "number", "source_event", "at"):
        if hasattr(record, key):
            return getattr(record, key)
    return None


def _shown(table: str, index: int, record: Any) -> str:
    name = getattr(record, "id", None) or getattr(record, "source_event", None)
    return f"[[{table}]] {json.dumps(name) if name is not None else index + 1}"


def _code_of(change: Change, now: RegressionCase, configured: tuple[RerunRule, RerunRule]) -> CodeName | None:
    table, _, key = change.key.partition(".")
    old, new = _value(change.old), _value(change.new)
    match table:
        case "observation":
            return "observation-changed"
        case "expected_recovery":
            return "expectation-loosened" if _expects_less(change, now, old, new) else None
        case "handover":
            name = key.removeprefix("rerun_rule.")
            then, today = (getattr(rule, name, None) for rule in configured)
            return "rule-loosened" if _is_more(old if old is not None else then, new or today) else None
        case "symptom_match":
            return "symptom-narrowed" if _is_narrower(key, old, new) else None
        case "hypotheses":
            return _hypothesis(key, old, new, now)
        case "quarantine":
            is_later = key == "expires" and new is not None and (old is None or str(new) > str(old))
            return "quarantine-extended" if is_later else None
        case "baseline":
            return "baseline-changed" if old is not None else None
        case "task" | "replies":
            return "input-changed" if _is_another_input(change.key, old, new) else None
    return None


def _expects_less(change: Change, now: RegressionCase, old: Any, new: Any) -> bool:
    key = change.key
    if key in _FREE_TEXT:
        return False
    if key == "expected_recovery.other_failures":
        return bool(new == "pass-over")
    if isinstance(old, bool) or isinstance(new, bool):
        return bool(old) and not new
    if isinstance(old, list) or isinstance(new, list):
        return bool(set(old or ()) - set(new or ()))
    if new is None and key.startswith("expected_recovery.when."):
        new = getattr(now.expected_recovery, key.rpartition(".")[2], None)
    return _is_more(old, new)


def _is_more(old: Any, new: Any) -> bool:
    return old is not None and new is not None and Decimal(str(new)) > Decimal(str(old))


def _is_narrower(key: str, old: Any, new: Any) -> bool:
    if new is None:
        return False
    if old is None:
        return True
    if key == "termination":
        return bool(set(old) - set(new))
    if key == "error_type":
        # Of two regular expressions nothing else can be told; further alternatives only take more in.
        return not set(_alternatives(str(old))) <= set(_alternatives(str(new)))
    return True


def _alternatives(pattern: str) -> list[str]:
    """Return the alternatives of a regular expression as a whole: a bar in brackets parts none of them.

    With a flag, as (?x), a text means something else, so that one is a single alternative.
    """
    if re.search(r"\(\?[aiLmsux-]", pattern):
        return [pattern]
    found, depth = [""], 0
    for token in re.findall(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", pattern, re.DOTALL):
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += token
    return found


def _hypothesis(key: str, old: Any, new: Any, now: RegressionCase) -> CodeName | None:
    if not key.endswith(".simulations") or old is None:
        return None
    if new is None:
        return "hypothesis-removed"
    return "simulation-removed" if set(old) - set(new) - set(now.simulation_ids) else None


def _is_another_input(key: str, old: Any, new: Any) -> bool:
    if key == "replies.source":
        return (old or "transcript") != (new or "transcript")
    return old is not None


def _value(text: str) -> Any:
    return None if text == ABSENT else json.loads(text)


def _place(now: RegressionCase, key: str) -> Key:
    """Return the key as the file has it: a hypothesis by its place there, not by its id."""
    parts = key.split(".")
    if parts[0] != "hypotheses":
        return tuple(parts)
    ids = [each.id for each in now.hypotheses]
    return ("hypotheses", ids.index(parts[1]), *parts[2:]) if parts[1] in ids else ("hypotheses",)


def _says(now: RegressionCase, change: Change, since: Iterable[Amendment]) -> str:
    others = len(list(since))
    named = "the amendments since then name something else" if others else "no amendment since then names it"
    text = f"{change.key} was {_cut(change.old)} and is {_cut(change.new)}; {named}"
    return f"{text}. Take it back, or record why with `regcase amend {now.id}`"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
