"""What an agent written in Python is called with. Standard library only: the agent's own process imports it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class AgentRequest:
    """One attempt, as an agent given by ``python = "module:function"`` sees it.

    The function runs in a child process whose working folder is `work_dir`. It may return None, or a text, which
    is then written to ``answer.txt`` in `out_dir`. An exception that it does not catch ends it with exit code 1.
    """

    task: str | None
    """The task's text; None where the case has none."""
    task_id: str | None
    work_dir: Path
    """The files that the agent works on; a git repository with one commit where the case has a work tree."""
    out_dir: Path
    """Where the agent puts its log, transcript and answer; empty at the start."""
    openai_base_url: str
    """The stand-in supplier, with the ``/v1`` that OpenAI clients expect."""
    anthropic_base_url: str
    api_key: str
    """A throw-away key. No real one ever stands here."""
    model: str | None
