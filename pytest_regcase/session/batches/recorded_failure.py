"""An agent's failure, raised in our process in the agent's own words, so that the recorder keeps them.

Knows recorded errors and exceptions; starts and reads nothing.
"""

from pytest_regcase.records.trial import ErrorLink, TrialError


class AgentFailed(Exception):
    """The agent under test did not end well, in words of ours: its own log does not say why."""


class AgentDidNotStart(AgentFailed):
    """The agent ended badly before it asked any model: its set-up is at fault, and that of the next task too."""


def raised_again(error: TrialError) -> Exception:
    """Return an exception with the class names, messages and structured facts of a recorded chain.

    The classes are made here: the agent's own library need not be installed where we run.
    """
    links = list(error.chain)
    if not links or (links[0].type, links[0].message) != (error.type, error.message):
        links.insert(0, ErrorLink(type=error.type, message=error.message))
    inner: Exception | None = None
    for link in reversed(links):
        outer = _exception(link)
        outer.__cause__ = inner
        inner = outer
    assert inner is not None
    return inner


def _exception(link: ErrorLink) -> Exception:
    module, _, name = (link.type or AgentFailed.__name__).rpartition(".")
    made = type(name or AgentFailed.__name__, (AgentFailed,), {"__module__": module or "builtins"})
    exception: Exception = made(link.message or "")
    for key, value in link.model_dump(exclude={"type", "message", "link"}, exclude_none=True).items():
        setattr(exception, "type" if key == "error_type" else key, value)
    return exception
