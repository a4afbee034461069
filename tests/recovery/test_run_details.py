import pytest

from pytest_regcase.recovery.run_details import without_run_details

OWN = (("/runs/s1/attempts/a.1.0", "<path>"), ("sk-regcase-0123456789abcdef", "<key>"), ("/t0ken/v1", "/<url>"))

SAME = {
    "its own folder": ("File /runs/s1/attempts/a.1.0/work/x.py", "File <path>/work/x.py"),
    "its own key": ("key sk-regcase-0123456789abcdef", "key <key>"),
    "a masked key": ("Incorrect API key provided: sk-regca****09af.", "Incorrect API key provided: <key>."),
    "where packages lie": (
        '  File "/home/a/.venv/lib/python3.11/site-packages/openai/_base_client.py", line 1248, in request',
        '  File "<path>/site-packages/openai/_base_client.py", line 1248, in request',
    ),
    "a temporary folder": ("/tmp/tmpab12cd_9/x", "/tmp/<path>/x"),
    "a port": ("connect to 127.0.0.1:41872 failed", "connect to 127.0.0.1:<port> failed"),
    "a port of a URL": ("http://localhost:41872/t0ken/v1/chat", "http://localhost:<port>/<url>/chat"),
    "a port of a pair": ("('127.0.0.1', 41872)", "('127.0.0.1', <port>)"),
    "a named port": ("host='x', port=41872", "host='x', port=<port>"),
    "an ISO time": ("at 2026-11-29T23:09:09.123Z: x", "at <time>: x"),
    "a log's time": ("2026-11-29 23:09:09,123 ERROR x", "<time> ERROR x"),
    "a clock": ("[23:09:09] x", "[<time>] x"),
    "an HTTP date": ("date: Sun, 29 Nov 2026 23:09:09 GMT", "date: <time>"),
    "an epoch": ("created 1796000000.123, 1796000000", "created <time>, <time>"),
    "a duration": ("Retrying request in 0.437 seconds", "Retrying request in <duration>"),
    "a short duration": ("no answer within 2.5 s, 300ms", "no answer within <duration>, <duration>"),
    "a named duration": ("elapsed=1.25 latency_ms: 31", "elapsed=<duration> latency_ms: <duration>"),
    "a uuid": ("id 123e4567-e89b-12d3-a456-426614174000", "id <uuid>"),
    "a request id": ("(request id: req_8f2a91bc77)", "(request id: <id>)"),
    "a call id": ("call_8f2A91bc77XY failed", "<id> failed"),
    "an address": ("<Client object at 0x7f3a2c51d0>", "<Client object at <address>>"),
    "a blob id": ("index 816bded..dddd792 100644", "index <blob> 100644"),
    "a commit": ("[main 816bded] half", "[main <blob>] half"),
    "a colour": ("\x1b[31mError\x1b[0m: x", "Error: x"),
}


@pytest.mark.parametrize(("text", "same"), SAME.values(), ids=SAME)
def test_what_differs_from_run_to_run_is_replaced(text: str, same: str) -> None:
    assert without_run_details(text, OWN) == same


@pytest.mark.parametrize(
    "text",
    [
        "Error code: 401 - Incorrect API key provided",
        "HTTP 500 server error",
        '  File "agent.py", line 88, in ask',
        "Tried to allocate 2.00 GiB; 1.03 GiB is free",
        "retry 2 of 3",
        "maximum context length is 128000 tokens",
        "[Errno 111] Connection refused",
        "call_hidden failed",
        "4 validation errors",
        "status: 429",
    ],
)
def test_codes_line_numbers_and_other_digits_stay(text: str) -> None:
    assert without_run_details(text, OWN) == text


def test_two_causes_stay_two() -> None:
    one, other = "HTTP 401 in 0.3 s from 127.0.0.1:4000", "HTTP 403 in 0.4 s from 127.0.0.1:4001"
    assert without_run_details(one) != without_run_details(other)
    assert without_run_details(one) == without_run_details(one.replace("0.3", "17").replace("4000", "52011"))


def test_longer_texts_of_the_run_are_looked_for_first() -> None:
    assert without_run_details("/a/b/c", (("/a", "<root>"), ("/a/b", "<folder>"))) == "<folder>/c"
