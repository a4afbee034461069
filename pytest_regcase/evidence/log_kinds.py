"""What kind of log a file is, and each of its lines: a sign counts only in a log that can show it.

A test's output that says "Killed" is no kernel log. So a kind is told by the form of the lines, never by a word in
them, and a file in which most lines have no form that we know counts for nothing. Pure.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pytest_regcase.evidence.journal import EXPORT_BEGINS, message_of, who_logged
from pytest_regcase.evidence.log_times import since_boot, time_of
from pytest_regcase.evidence.own_marks import own_form

LogKind = Literal["kernel", "service", "server", "access", "processes", "other"]
"""A kernel's, a service manager's, a model server's (or a proxy's before it), its access log, a table of processes
or containers; anything else."""
Form = Literal["lines", "journal-export", "process-table", "container-state", "nothing"]
"""How a file is read. `nothing`: no line of it is a lower-level fact."""

_LOOKED_AT: Final = 400
"""Lines from the beginning, by which a file is told."""

SERVERS: Final = re.compile(
    r"vllm|sglang|ollama|llama[-_.]?(?:server|cpp)|text[-_]generation|\btgi\b|triton|lmdeploy|litellm"
    r"|nginx|haproxy"
    r"|envoy|traefik|caddy|httpd|apache|uvicorn|gunicorn|aphrodite|\bkong\b",
    re.IGNORECASE,
)
"""Names of model servers and of what stands before them."""
_MANAGERS: Final = re.compile(
    r"^(?:systemd|systemd-oomd|dockerd|containerd|kubelet|podman|conmon|supervisord|earlyoom)\b"
)
_SYSLOG: Final = re.compile(
    r"^(?:<\d+>)?(?:[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\dT\S+|\d{10}\.\d+) "
    r"(?P<host>[\w.-]+) (?P<tag>[\w./@-]+)(?:\[\d+\])?: (?P<message>.*)",
    re.DOTALL,
)
_DMESG: Final = re.compile(
    r"^(?:<\d+>)?\[(?: *\d{1,9}\.\d{3,6}|(?:Mon|Tue|Wed|Thu|Fri|Sat"
    r"|Sun) [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4})\]"
    r" (?!\[)(?P<message>.*)",
    re.DOTALL,
)
_PODS: Final = re.compile(r"^\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP] (?P<message>.*)", re.DOTALL)
_SERVER_LINE: Final = re.compile(
    # vLLM, with or without the process in front
    r"^(?:\([\w ]+(?:pid=\d+)?\) )?(?:DEBUG|INFO|WARNING|ERROR"
    r"|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/]+\.py:\d+\]"
    # uvicorn
    r"|^(?:INFO|WARNING|ERROR): +(?:\S+:\d+ - \"|Started |Uvicorn |Waiting for |Application |Shutting down"
    r"|Finished |Exception in ASGI)"
    # nginx, gunicorn, Apache
    r"|^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(?:error|warn|crit|alert|emerg|notice|info)\] \d+#\d+:"
    r"|^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\] \[\d+\] \[[A-Z]+\] "
    r"|^\[\w{3} \w{3} \d\d [\d:.]+ \d{4}\] \[\w*:\w+\]"
    # ollama, llama.cpp, SGLang, TGI, the LiteLLM proxy, Triton
    r"|\bsource=\w+\.go:\d+ msg="
    r"|^(?:srv|slot|que|llama_\w+|ggml_\w+|print_info|load_tensors|common_\w+) {0,4}:? +\w+"
    r"|^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]{2}\d+)*\] (?:Decode batch|Prefill batch|server_args="
    r"|Health check"
    r"|Scheduler hit|Detokenizer|Load weight)"
    r"|\btext[-_]generation[-_](?:router|launcher|server)"
    r"|\bLiteLLM Proxy:|\blitellm\.proxy\.|\bproxy_server\.py:\d+"
    r"|^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w/.]+\.(?:cc|cpp|h):\d+\]"
)
_ACCESS_LINE: Final = re.compile(
    r'"(?P<method>[A-Z]{3,7}) (?P<path>\S{1,2000})(?: HTTP/[\d.]+)?" (?P<status>\d{3})(?: (?P<size>\d+|-))?(?!\d)'
    r'|^\[GIN\] .{1,40}\| +(?P<gin>\d{3}) \|.{1,80}\| +[A-Z]{3,7} +"(?P<gin_path>[^"]{1,2000})"'
)
_TESTS: Final = re.compile(
    r"^={3,} (?:test session starts|FAILURES|ERRORS|short test summary info|\d+ (?:passed|failed|error)\b)"
    r"|^(?:PASSED|FAILED|ERROR) \S+::|^\S+::\S+ (?:PASSED|FAILED|ERROR)|^collected \d+ items?\b|^E {3,}\S"
    r"|^=== RUN |^--- (?:FAIL|PASS): |^Ran \d+ tests? in |^test result: |^Tests: +\d+ |^TAP version \d",
    re.MULTILINE,
)
_TABLE: Final = re.compile(
    r"^(?: *(?:F|S|USER|UID|PID|PPID)\b.*\b(?:CMD|COMMAND)\b|CONTAINER ID +IMAGE\b"
    r"|(?:NAMESPACE +)?NAME +READY +STATUS\b)",
    re.MULTILINE,
)
_STATE: Final = re.compile(r'^\s*"OOMKilled": (?:true|false)|^ *Last State: ', re.MULTILINE)
_TALKS: Final = frozenset(
    {"role", "messages", "tool_calls", "tool_call_id", "model_patch", "trajectory", "history"}
)
_MODEL_PATHS: Final = re.compile(
    r"/(?:chat/completions|completions|responses|messages|embeddings|generate(?:_stream)?|api/(?:chat|generate)"
    r"|invocations|converse(?:-stream)?|invoke(?:-with-response-stream)?)(?:[/?]|$)|:(?:stream)?[gG]enerateContent"
)
_LEVEL: Final = re.compile(r"^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|TRACE): ")
_NEAR: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Any year does to tell that a line begins with a time."""


@dataclass(frozen=True)
class FileForm:
    """What a file is, as its beginning shows."""

    form: Form
    says: str
    """For the user: what it is, or why nothing in it counts."""


@dataclass(frozen=True)
class Access:
    """One answered request, as an access log has it."""

    status: int
    path: str
    size: int | None = None

    @property
    def of_a_model(self) -> bool:
        """Whether the path is one by which a model is asked: a 401 of a web page says nothing."""
        return _MODEL_PATHS.search(self.path) is not None


@dataclass(frozen=True)
class Told:
    """What kind of line it is, and the part of it that the program itself wrote."""

    kind: LogKind
    message: str
    access: Access | None = None


def form_of(head: bytes) -> FileForm:
    """Return what the file is that begins with `head`."""
    if head.startswith(EXPORT_BEGINS):
        return FileForm("journal-export", "a journal export")
    if b"\0" in head[:8192]:
        return FileForm("nothing", "no text: nothing in it counts")
    text = head.decode("utf-8", "replace")
    mine = own_form(text)
    if mine is not None:
        return FileForm("nothing", f"{mine}, made by regcase: nothing in it counts")
    if _TESTS.search(text):
        return FileForm("nothing", "the output of a test run: nothing in it counts")
    if _STATE.search(text):
        return FileForm("container-state", "the state of containers")
    if _TABLE.search(text[:4096]):
        return FileForm("process-table", "a table of processes or containers")
    return _form_of_lines([each for each in text.splitlines()[:_LOOKED_AT] if each.strip()])


def told(text: str) -> Told:
    """Return the kind of one line of a file in the form `lines`."""
    if text.startswith("{"):
        found = _json_object(text)
        if found is not None:
            return _told_json(text, found)
    syslog = _SYSLOG.match(text)
    if syslog is not None:
        return told_by_writer(syslog["tag"], syslog["message"])
    dmesg = _DMESG.match(text)
    if dmesg is not None:
        return Told("kernel", dmesg["message"])
    pod = _PODS.match(text)
    return _told_text(pod["message"] if pod is not None else text)


def begins_entry(text: str) -> bool:
    """Say whether a line without a time of its own is one of its own: a JSON object, or a level and a colon."""
    return text.startswith(("{", "[")) or _LEVEL.match(text) is not None


def told_by_writer(writer: str, message: str) -> Told:
    """Return the kind of a line whose writer is named, as in syslog and in the journal."""
    if writer == "kernel":
        return Told("kernel", message)
    if _MANAGERS.match(writer):
        return Told("service", message)
    if SERVERS.search(writer):
        inner = _told_text(message)
        return inner if inner.kind == "access" else Told("server", message)
    return Told("other", message)


def _form_of_lines(lines: list[str]) -> FileForm:
    kinds: dict[str, int] = {}
    dated = known = 0
    for line in lines:
        kind = "transcript" if _is_talk(line) else told(line).kind
        if kind != "other":
            known += kind != "transcript"
            kinds[kind] = kinds.get(kind, 0) + 1
        # A traceback's lines belong to the line before them; what begins with a time or a brace is one of its own.
        if kind != "other" or line.startswith("{") or since_boot(line) or time_of(line, _NEAR):
            dated += 1
    if kinds.get("transcript", 0) * 2 > dated:
        return FileForm("nothing", "an agent's transcript: nothing in it counts")
    if not known or known * 2 < dated:
        return FileForm("nothing", "in no form of a lower-level log that we know: nothing in it counts")
    names = {"kernel": "a kernel log", "service": "a service manager's log", "access": "an access log"}
    found = sorted((each for each in kinds if each != "transcript"), key=lambda each: -kinds[each])
    return FileForm("lines", " and ".join(names.get(each, f"a {each} log") for each in found))


def _told_text(text: str) -> Told:
    access = _ACCESS_LINE.search(text[:4096])
    if access is not None:
        size = access["size"]
        return Told(
            "access",
            text,
            Access(
                int(access["status"] or access["gin"]),
                access["path"] or access["gin_path"],
                int(size) if size and size != "-" else None,
            ),
        )
    return Told("server" if _SERVER_LINE.search(text[:400]) else "other", text)


def _told_json(text: str, found: dict[str, Any]) -> Told:
    if "__REALTIME_TIMESTAMP" in found:
        return told_by_writer(who_logged(found), message_of(found))
    if isinstance(found.get("log"), str) and "stream" in found:
        return _told_text(found["log"])
    status = found.get("status", found.get("status_code"))
    if isinstance(status, str) and status.isdigit():
        status = int(status)
    where = next((found[key] for key in _PATH_KEYS if isinstance(found.get(key), str)), None)
    if isinstance(status, int) and where is not None:
        parts = where.split()
        return Told("access", text, Access(status, parts[1] if len(parts) > 1 else where, _size(found)))
    writer = " ".join(str(found[key]) for key in _WRITER_KEYS if isinstance(found.get(key), str))
    return Told("server" if SERVERS.search(writer) or "eventSource" in found else "other", text)


_PATH_KEYS: Final = ("path", "uri", "request_uri", "url", "request")
_WRITER_KEYS: Final = ("logger", "name", "service", "component", "program", "app")


def _size(found: dict[str, Any]) -> int | None:
    sizes: Iterator[Any] = (found.get(key) for key in ("body_bytes_sent", "bytes_sent", "size", "bytes"))
    return next((int(each) for each in sizes if isinstance(each, int) or str(each).isdigit()), None)


def _is_talk(line: str) -> bool:
    found = _json_object(line) if line.startswith("{") else None
    return found is not None and bool(_TALKS & found.keys())


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
