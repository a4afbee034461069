"""The command of an agent that `warm_start` holds ready: ``warm_run.py SOCKET AGENT WORDS...``. Stands alone.

Hands over its variables, its folder, stdout and stderr; ends when the agent ends, and as it ended.
"""

import json
import os
import signal
import socket
import sys
from types import FrameType


def leave(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    path, agent, *words = sys.argv[1:]
    told = {"agent": agent, "words": words, "env": dict(os.environ), "cwd": os.getcwd()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(path)
        socket.send_fds(asking, [json.dumps(told).encode()], [1, 2])
        signal.signal(signal.SIGTERM, leave)
        sys.exit((asking.recv(1) or b"\1")[0])
