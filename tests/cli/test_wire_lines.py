from typing import Any

import pytest

from pytest_regcase.cli.wire_lines import line_of

MODEL = {"request": 4, "wire": "openai-chat", "step": 2, "streaming": True, "conversation": "sha256:0"}


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"event": "request", **MODEL, "phase": "before"}, "request 4: openai-chat, streaming, step 2"),
        (
            {"event": "request", **MODEL, "phase": "faulted", "client_retry": 1},
            "request 4: openai-chat, streaming, step 2, the client's own retry 1, meets the fault",
        ),
        ({"event": "request", **MODEL, "side_call": True}, "request 4: openai-chat, streaming, side call"),
        (
            {"event": "request", **MODEL, "off_prefix": ["no tool"], "differs": [{"says": "a result"}]},
            "request 4: openai-chat, streaming, step 2, OFF THE RECORDED REPLIES: no tool, differs: a result",
        ),
        ({"event": "request", "request": 1, "path": "/v1/models"}, "request 1: /v1/models"),
        (
            {"event": "request", "request": 1},
            "request 1: not for us: the path does not begin as the base URL does",
        ),
        (
            {"event": "sent", "request": 1, "from": "replay", "status": 200, "bytes": 9, "complete": True},
            "request 1: recorded reply, status 200, 9 bytes, whole",
        ),
        (
            {"event": "sent", "request": 1, "from": "fault", "fault_kind": "byte_trickle", "bytes": 9},
            "request 1: fault byte_trickle, 9 bytes, in part",
        ),
        (
            {"event": "sent", "request": 1, "from": "upstream", "bytes": 9, "failure": "status 500"},
            "request 1: the real supplier's answer, 9 bytes, in part, status 500",
        ),
        (
            {"event": "sent", "request": 1, "from": "script", "complete": True, "tool_calls": [{"name": "bash"}]},
            "request 1: scripted reply, 0 bytes, whole, calls bash",
        ),
        (
            {
                "event": "closed",
                "request": 1,
                "by": "peer",
                "how": "rst",
                "held_seconds": 5.02,
                "unacknowledged": 0,
            },
            "request 1: connection closed by the client (rst), held for 5.0 s without a whole answer",
        ),
        (
            {"event": "closed", "request": 1, "by": "us", "how": "fin", "unacknowledged": 7},
            "request 1: connection closed by us (fin), 7 bytes did not arrive",
        ),
        ({"event": "closed", "by": "peer"}, None),
        ({"event": "accept", "conn": 1}, None),
        (
            {"event": "refusing", "connect": "refused"},
            "the port takes no more connections (a connect now: refused)",
        ),
        ({"event": "killed", "connect": "refused"}, "the supplier's process was killed (a connect now: refused)"),
        ({"event": "memory", "limit": "cgroup", "bytes": 5}, "memory is limited to 5 bytes more (cgroup)"),
        ({"event": "allocation-failed", "says": "no room"}, "memory ran out: no room"),
    ],
)
def test_one_line_each(event: dict[str, Any], says: str | None) -> None:
    assert line_of({"t": 1.0, "conn": 1, **event}) == says
