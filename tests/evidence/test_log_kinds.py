"""A kind of log is told by the form of its lines, never by a word in them."""

from pathlib import Path

import pytest

from pytest_regcase.evidence.log_kinds import Access, form_of, told

LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("Apr 12 09:31:04 gpu1 kernel: Out of memory", "kernel", "Out of memory"),
        ("2026-04-12T09:31:04.1+00:00 gpu1 kernel: x", "kernel", "x"),
        ("<4>[  66.204417] Out of memory", "kernel", "Out of memory"),
        ("[Sun Apr 12 09:31:04 2026] Out of memory", "kernel", "Out of memory"),
        ("1775986264.12 gpu1 systemd[1]: vllm.service: x", "service", "vllm.service: x"),
        ("Apr 12 09:31:04 gpu1 vllm[4242]: dead", "server", "dead"),
        ("Apr 12 09:31:04 gpu1 run-agent[4242]: Killed", "other", "Killed"),
        ("Apr 12 09:31:04 gpu1 bash[4242]: Out of memory: Killed process 1", "other", None),
        (
            '{"log": "INFO:     Shutting down\\n", "stream": "stderr", "time": "2026-04-12T09:31:04Z"}',
            "server",
            None,
        ),
        ("2026-04-12T09:31:04.1Z stdout F INFO:     Shutting down", "server", "INFO:     Shutting down"),
        ("2026/04/12 09:31:04 [error] 7#7: *1 upstream timed out", "server", None),
        ("[Sun Apr 12 09:31:04.123456 2026] [proxy:error] [pid 7] x", "server", None),
        ("time=2026-04-12T09:31:04Z level=WARN source=sched.go:4 msg=x", "server", None),
        ('{"logger": "vllm.engine", "msg": "x", "ts": 1775986264.0}', "server", None),
        ('{"eventSource": "bedrock.amazonaws.com", "errorCode": "ThrottlingException"}', "server", None),
        ('{"__REALTIME_TIMESTAMP": "1775986264000000", "_TRANSPORT": "kernel", "MESSAGE": "x"}', "kernel", "x"),
        (
            '{"__REALTIME_TIMESTAMP": "1", "SYSLOG_IDENTIFIER": "systemd", "MESSAGE": [104, 105]}',
            "service",
            "hi",
        ),
        ("2026-04-12 09:31:04,120 - agent - INFO - Out of memory: Killed process 4242", "other", None),
        ('{"role": "tool", "content": "Killed"}', "other", None),
        ("{broken", "other", None),
    ],
)
def test_a_line_is_told(line: str, kind: str, message: str | None) -> None:
    found = told(line)
    assert found.kind == kind
    assert message is None or found.message == message


@pytest.mark.parametrize(
    ("line", "access"),
    [
        (
            '10.0.0.7 - - [12/Apr/2026:09:31:07 +0000] "POST /v1/messages HTTP/1.1" 401 112',
            Access(401, "/v1/messages", 112),
        ),
        ('INFO:     10.0.0.7:535 - "POST /v1/messages HTTP/1.1" 401 Unauthorized', Access(401, "/v1/messages")),
        (
            '10.0.0.7 - - [12/Apr/2026:09:31:07 +0000] "POST /v1/messages HTTP/1.1" 499 -',
            Access(499, "/v1/messages"),
        ),
        (
            '[GIN] 2026/04/12 - 09:31:07 | 500 |  1.2s |   127.0.0.1 | POST     "/api/chat"',
            Access(500, "/api/chat"),
        ),
        (
            '{"status": "401", "request": "POST /v1/messages HTTP/1.1", "bytes_sent": 0}',
            Access(401, "/v1/messages", 0),
        ),
        ('{"status_code": 401, "path": "/v1/messages"}', Access(401, "/v1/messages")),
    ],
)
def test_an_answered_request_is_read(line: str, access: Access) -> None:
    assert (told(line).kind, told(line).access) == ("access", access)


@pytest.mark.parametrize(
    ("name", "form", "says"),
    [
        ("kern.log", "lines", "a kernel log"),
        ("dmesg.txt", "lines", "a kernel log"),
        ("access.log", "lines", "an access log"),
        ("vllm.log", "lines", "a server log and an access log"),
        ("test-output.txt", "nothing", "the output of a test run: nothing in it counts"),
        ("transcript.jsonl", "nothing", "an agent's transcript: nothing in it counts"),
        ("agent.log", "nothing", "in no form of a lower-level log that we know: nothing in it counts"),
    ],
)
def test_a_file_is_told(name: str, form: str, says: str) -> None:
    found = form_of((LOGS / name).read_bytes())
    assert (found.form, found.says) == (form, says)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("__CURSOR=s=1\nMESSAGE=x\n\n", "journal-export"),
        ("USER       PID %CPU %MEM COMMAND\nroot 1 0 0 init\n", "process-table"),
        ("CONTAINER ID   IMAGE     STATUS\n3f2a vllm Exited (137) 3 minutes ago\n", "process-table"),
        ('[\n {\n  "State": {\n   "OOMKilled": true\n', "container-state"),
        ("\0\0\0\0", "nothing"),
        ("", "nothing"),
        ('{"t": 0.1, "event": "request", "conn": 1}\n', "nothing"),
        (
            "Apr 12 09:31:04 gpu1 kernel: Out of memory\n2026-04-12 09:31:05 story - x\n" * 3,
            "lines",
        ),
        ("2026-04-12 09:31:05 told x\n" * 9 + "Apr 12 09:31:04 gpu1 kernel: Out of memory\n", "nothing"),
    ],
)
def test_other_files_are_told(text: str, form: str) -> None:
    assert form_of(text.encode()).form == form
