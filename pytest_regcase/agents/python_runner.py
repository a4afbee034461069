"""The child process of an agent given by ``python = "module:function"``.

Imports the standard library, `AgentRequest` and then the user's module; nothing else of ours, so that the agent's
start-up is its own. Exit code 0: the function returned; 1: it raised; 2: there is no such function.
"""

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_regcase.agents.request import AgentRequest

ANSWER_FILE = "answer.txt"
"""Where a returned text is put, in the attempt's output folder."""


def find_function(call: str) -> Callable[[AgentRequest], object]:
    """Import ``module:function``; raise LookupError with the reason where there is none.

    An error inside the module passes through as it is: "not found" and "found but broken" are different messages.
    """
    module_name, colon, attribute = call.partition(":")
    if not colon or not module_name or not attribute:
        raise LookupError(f"{call!r} is not of the form module:function")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise LookupError(f"there is no module {error.name!r}") from error
        raise
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise LookupError(f"module {module_name!r} has no {attribute!r}")
        found = getattr(found, part)
    if not callable(found):
        raise LookupError(f"{call!r} is no function")
    function: Callable[[AgentRequest], object] = found
    return function


def main(argv: list[str]) -> int:
    """Call the function that the file `argv[0]` names with the request that it holds."""
    told = json.loads(Path(argv[0]).read_text(encoding="utf-8"))
    values = told["request"]
    request = AgentRequest(**{**values, "work_dir": Path(values["work_dir"]), "out_dir": Path(values["out_dir"])})
    sys.path.insert(0, told["project_root"])
    try:
        function = find_function(told["call"])
    except LookupError as error:
        print(f"Couldn't call {told['call']!r}: {error}.\nSee `python` of this agent.", file=sys.stderr)
        return 2
    except Exception:
        traceback.print_exc()
        return 1
    try:
        answer = function(request)
    except Exception:
        traceback.print_exc()
        return 1
    if answer is None:
        return 0
    if not isinstance(answer, str):
        print(
            f"Couldn't take what {told['call']} returned: {type(answer).__name__}.\nReturn None or a text.",
            file=sys.stderr,
        )
        return 1
    unfinished = request.out_dir / (ANSWER_FILE + ".part")
    unfinished.write_text(answer, encoding="utf-8")
    os.replace(unfinished, request.out_dir / ANSWER_FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
