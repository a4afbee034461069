"""Lists of Responses API items, as the OpenAI Agents SDK keeps them (`to_input_list()`, its sessions).

Items are ``message``, ``function_call``, ``function_call_output`` and ``reasoning``, or a plain role and
content for what a person said. Lists of role and content alone, and JSON lines, are another importer's. Must
import no other importer.

What surprises: a reply is several items in a row, and only the chat model of the SDK notes which belong
together; an empty reply of it leaves no item at all; a list has no task id, no ending and no verdict.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_regcase.importers.chat_messages import ChatLines
from pytest_regcase.importers.protocol import Peek, only_trial
from pytest_regcase.importers.reading import digests_of, filled, mapping, read_parsed, sequence
from pytest_regcase.importers.steps import ends_open, failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Expectation

_CAN_SHOW: Final[tuple[Expectation, ...]] = ("no_fabricated_output",)
_OUTPUT_TEXT: Final = re.compile(rb'"type"\s*:\s*"output_text"')


class ResponsesItems:
    """Importer of Responses item lists: one trial a file."""

    name = "responses-items"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is a list of typed items: calls and outputs with a `call_id`, or texts."""
        keys = peek.shape.keys
        if peek.kind != "file" or peek.shape.kind != "list" or "type" not in keys:
            return False
        calls = "call_id" in keys and not keys.isdisjoint(("arguments", "output"))
        return calls or ({"role", "content"} <= keys and _OUTPUT_TEXT.search(peek.head) is not None)

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file."""
        trial = _read(source)
        whole = "its last reply is whole, and items hold neither an ending nor pass or fail"
        yield only_trial(trial, why_not=None if trial.termination is not None else whole)

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the trial. Outcome is always undetermined: the format has none."""
        return _read(source)


def _read(source: Path) -> Trial:
    parsed = read_parsed(source)
    chat = ChatLines()
    model = response = None
    for index, item in enumerate(map(mapping, sequence(parsed.value))):
        provider = mapping(item.get("provider_data"))
        belongs_to = filled(provider.get("response_id"))
        if belongs_to is not None and belongs_to != response:
            chat.end_reply()
            response = belongs_to
        model = filled(provider.get("model")) or model
        chat.take(item, f"[{index}]")
    lines = chat.lines
    return Trial(
        format=ResponsesItems.name,
        event_id=digest_of(parsed.value),
        event_id_from="digest",
        model=model,
        task_text=next(
            (line.text for line in lines if line.role == "user" and line.step == 0 and line.text), None
        ),
        steps=tuple(lines),
        failing_step=failing_step(lines, next_reply_failed=reply_was_due(lines)),
        termination="cut-off" if ends_open(lines) else None,
        can_show=_CAN_SHOW,
        source_digests=digests_of(source),
        missing=(*parsed.notes, *chat.missing, "how it ended: a list of items does not say"),
    )
