"""How a bare list of messages shows that mini-swe-agent wrote it: its first format had nothing else.

Knows mini's own prompts. Must import no importer. One place, so that a list is mini's or anybody's, never both.
"""

from typing import Final

_MARKS: Final = (
    b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    b"mswea_bash_command",
    b"MINI_SWE_AGENT_FINAL_OUTPUT",
)


def is_minis(head: bytes) -> bool:
    """Say whether a message list's beginning holds one of mini's own marks: they stand in its first prompts."""
    return any(mark in head for mark in _MARKS)
