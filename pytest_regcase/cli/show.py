"""`regcase show`: prints a case on one screen, or every tool call that its replies drive. Decides nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.safe_text import redacted, visible
from pytest_regcase.cli.words import COLUMNS, labelled, wrapped

if TYPE_CHECKING:
    from pytest_regcase.case_files import LoadedCase
    from pytest_regcase.config import Project
    from pytest_regcase.session.reviews.case_calls import DrivenCall


@click.command(
    epilog="""\b
Example:
  regcase show sweep-0412-trial-37
  regcase show sweep-0412-trial-37 --calls
"""
)
@click.argument("name", metavar="CASE")
@click.option("--calls", "show_calls", is_flag=True, help="List every tool call that the replies drive.")
def show(name: str, show_calls: bool) -> None:
    """Show CASE (a case file, its folder, or an id). Nothing is run.

    Recorded replies drive the agent's tools: a transcript is code, and --calls lists it for a review, step by
    step. It flags a call that names a place outside the work folder, may use the network, may remove things, or
    runs what it does not show. That is a reading aid and no sandbox: a call without a flag may do harm too.
    """
    from pytest_regcase.case_files import find_case, load_case
    from pytest_regcase.config import load_project

    project = load_project(Path.cwd())
    loaded = load_case(find_case(project.case_folders, name))
    click.echo("\n".join(_call_lines(loaded) if show_calls else _overview(project, loaded)))


# every call


def _call_lines(loaded: "LoadedCase") -> Iterator[str]:
    from pytest_regcase.session.reviews.case_calls import driven_calls

    if loaded.case.passes_through:
        yield f"{loaded.id}: its replies are those of a real supplier, so what they will call is not known."
        return
    found = driven_calls(loaded)
    yield f"{loaded.id}, replies: {_replies(loaded)}"
    before: tuple[int, bool] | None = None
    for each in found:
        if (each.step, each.after_fault) != before:
            yield f"reply {each.step} after the fault" if each.after_fault else f"step {each.step}"
            before = (each.step, each.after_fault)
        yield from _call(each)
    calls = [each for each in found if each.kind == "call"]
    flagged = sum(bool(each.notes) for each in found)
    texts = f" and {_count(len(found) - len(calls), 'text')}" if len(calls) < len(found) else ""
    yield wrapped(
        f"{_count(len(calls), 'tool call')}{texts}, {flagged} flagged. They were read as written; nothing was run"
        " or looked up. A reading aid, no sandbox.",
        first="",
        further="",
    )
    if loaded.work_tree() is not None:
        yield "Not read here: the work tree, whose files the agent may run."


def _call(call: "DrivenCall") -> Iterator[str]:
    if call.kind == "call":
        yield f"  {visible(call.name)}"
        yield from (line for text in _arguments(call.arguments) for line in _block(text))
    else:
        yield "  text of the reply, from which an agent may read commands"
        yield from _block(call.arguments)
    yield from (wrapped(visible(note), first="  ! ", further="    ") for note in call.notes)


def _arguments(arguments: str) -> Iterator[str]:
    """Yield each argument with its name, long texts as the tool gets them; what is no JSON object as it stands."""
    try:
        read: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        yield arguments
        return
    for key, value in read.items():
        yield f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _block(text: str) -> Iterator[str]:
    """Yield `text` whole, in lines that fit: nothing is left out, since that is where something would hide."""
    for line in text.split("\n"):
        shown = visible(line)
        width = COLUMNS - 6
        for start in range(0, max(len(shown), 1), width):
            yield f"{' ' * (6 if start else 4)}{shown[start : start + width]}".rstrip()


# one screen


def _overview(project: "Project", loaded: "LoadedCase") -> Iterator[str]:
    rows = [("", f"{loaded.id}: {loaded.case.title}"), ("state", _state(project, loaded)), *_rows(loaded)]
    texts = [visible(text) for text in redacted(text for _, text in rows)]
    yield wrapped(texts[0], first="")
    for (label, _), text in zip(rows[1:], texts[1:], strict=True):
        yield labelled(label, text)


def _state(project: "Project", loaded: "LoadedCase") -> str:
    from pytest_regcase.session.gating.standing import reading_ledger, standing

    ledger, not_read = reading_ledger(project)
    try:
        found = standing(project, [loaded], ledger)
    finally:
        if ledger is not None:
            ledger.close()
    state, claim = str(found.state(loaded)), found.claim(loaded.id)
    if claim is not None and state == "verifying":
        state += f": {claim.clean} of {claim.need} clean live runs of fix {claim.fix_number}"
    return state if found.not_read is None else f"{state} by its file ({not_read or found.not_read})"


def _rows(loaded: "LoadedCase") -> Iterator[tuple[str, str]]:
    case = loaded.case
    observation = case.observation
    yield "symptom", observation.symptom
    yield "event", observation.source_event
    if observation.source_revision is not None:
        yield "revision", observation.source_revision
    if observation.error is not None:
        said = ": ".join(filter(None, (observation.error.type, observation.error.message)))
        yield "error", f"{said or 'not recorded'} (raised by: {observation.error.raised_by})"
    ended = f", {observation.termination}" if observation.termination is not None else ""
    where = f"step {observation.failing_step}" if observation.failing_step is not None else "no step recorded"
    yield "failed at", f"{where}{ended}"
    standing = sum(each.withdrawn is None for each in case.evidence)
    cause: str = case.computed_cause_status
    if cause == "confirmed":
        cause += ": " + next(
            each.hypothesis for each in case.evidence if each.withdrawn is None and each.stance == "supports"
        )
    yield "cause", f"{cause} ({_count(standing, 'citation')})"
    yield "replies", _replies(loaded)
    yield "task", ", ".join(_task(loaded))
    for each in case.hypotheses:
        yield "simulated", f"{each.id}: {', '.join(each.simulations) or 'no simulation'}"
    expected = case.expected_recovery
    yield (
        "expected",
        f"{expected.summary} (at most {expected.max_retries} retries, {expected.stop_within_seconds:g} s)",
    )
    for question in case.unresolved_questions:
        yield "question", question
    if case.handover is not None:
        yield "owner", case.handover.owner
        yield "next", case.handover.next_decision
    if case.quarantine is not None:
        yield "set aside", f"quarantined until {case.quarantine.expires}: {case.quarantine.reason}"
    if case.fix:
        yield "fixes", f"{len(case.fix)} claimed, the last one by {case.fix[-1].by}"
    if case.amendments:
        yield "amended", f"{_count(len(case.amendments), 'time')}: regcase history {loaded.id}"


def _replies(loaded: "LoadedCase") -> str:
    if loaded.case.passes_through:
        return "passed through to a real supplier"
    replies = [line for line in loaded.reply_lines() if line.is_reply]
    if not replies:
        return "none: the fault meets the first request"
    source = loaded.case.replies.source if loaded.case.replies is not None else "transcript"
    after = [line for line in loaded.after_fault_lines() if line.is_reply]
    calls = sum(len(line.tool_calls) for line in (*replies, *after))
    further = f" and {len(after)} after the fault" if after else ""
    return f"{len(replies)} from a {source}{further}, with {_count(calls, 'tool call')}"


def _task(loaded: "LoadedCase") -> Iterator[str]:
    text = loaded.task_text()
    yield _count(len(text.splitlines()), "line") if text is not None else "no text"
    tree = loaded.work_tree()
    if tree is not None:
        yield f"a work tree of {_count(sum(each.is_file() for each in tree.rglob('*')), 'file')}"


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
