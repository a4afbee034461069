"""Holds agents ready whose libraries take seconds to import: ``python -m tests.harness.warm_start SOCKET``.

It imports them once and forks for every `warm_run` that asks. What runs in the fork is what a fresh process would
run, a ``sitecustomize`` of its path first.
"""

import importlib.util
import json
import os
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

from tests.harness import library_agents

LIMIT = 1 << 20


def serve(path: str) -> None:
    """Import every agent, say so, and fork for each that is asked for, until stdin ends."""
    library_agents.load()
    assert threading.active_count() == 1, "a fork would lose these threads"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(32)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print("ready", flush=True)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        while True:
            asked, _ = listener.accept()
            if os.fork() == 0:
                _be_the_agent(listener, asked)
            asked.close()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def _be_the_agent(listener: socket.socket, asked: socket.socket) -> None:
    code = 1
    try:
        listener.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        told, files, _, _ = socket.recv_fds(asked, LIMIT, 2)
        for number, file in enumerate(files, start=1):
            os.dup2(file, number)
            os.close(file)
        threading.Thread(target=_end_with, args=(asked,), daemon=True).start()
        run = json.loads(told)
        os.environ.clear()
        os.environ.update(run["env"])
        os.chdir(run["cwd"])
        _customize()
        code = _code_of(run["agent"], run["words"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with suppress(OSError):
            asked.send(bytes([code]))
        os._exit(code)


def _end_with(asked: socket.socket) -> None:
    """End when the command that asked for this run ends."""
    with suppress(OSError):
        asked.recv(1)
    os._exit(1)


def _customize() -> None:
    first = Path(os.environ.get("PYTHONPATH", "").split(os.pathsep)[0], "sitecustomize.py")
    if first.is_file():
        spec = importlib.util.spec_from_file_location("sitecustomize", first)
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _code_of(agent: str, words: list[str]) -> int:
    """Run the agent; return what its process would end with."""
    try:
        library_agents.AGENTS[agent](words)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
