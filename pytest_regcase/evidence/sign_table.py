"""The table of signs. Patterns are our own.

The wordings are those of the pages that the fixtures name as sources, of systemd, of the kernel's `mm/oom_kill.c`,
of nginx's `ngx_http_upstream.c`, and of the model servers themselves. Pure.
"""

import re
from typing import Final, get_args

from pytest_regcase.evidence.hints import hints_of
from pytest_regcase.evidence.log_kinds import LogKind, Told
from pytest_regcase.evidence.signs import Sign, own_words

_PROCESS: Final = "that this process was the model server's"
_FAILING: Final = "that this was the failing call of the trial"
_KEY: Final = "that this was the failing call, under the key that the trial used"
_ENDED: Final = "no_answer headers_then_silence mid_stream_stall keep_alive_only"
"""Faults of a server that stays up: one that had ended is another story."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _said(
    id_: str,
    logs: str,
    pattern: str,
    says: str,
    supports: str,
    *,
    refutes: str = "",
    check: str | None = None,
) -> Sign:
    kinds: frozenset[LogKind] = frozenset(each for each in get_args(LogKind) if each in logs.split())
    return Sign(id_, kinds, says, _words(supports), _words(refutes), check, re.compile(pattern))


def _answered(
    id_: str, statuses: str, says: str, supports: str, *, check: str = _FAILING, empty: bool = False
) -> Sign:
    numbers = frozenset(int(each) for each in statuses.split())
    access: frozenset[LogKind] = frozenset({"access"})
    return Sign(id_, access, says, _words(supports), check=check, statuses=numbers, empty=empty)


SIGNS: Final[tuple[Sign, ...]] = (
    # the kernel
    _said(
        "kernel-oom-kill",
        "kernel",
        r"[Oo]ut of memory: Kill(?:ed)? process \d+|\boom-kill:constraint=|\binvoked oom-killer"
        r"|^oom_reaper: reaped",
        "the kernel killed a process for want of memory",
        "resource-exhaustion process-death",
        refutes=_ENDED,
        check=_PROCESS,
    ),
    _said(
        "kernel-crash",
        "kernel",
        r"\]: segfault at |: segfault at |general protection fault|traps: .{1,80} trap ",
        "a process crashed",
        "process-death",
        refutes=_ENDED,
        check=_PROCESS,
    ),
    _said(
        "kernel-network",
        "kernel",
        r"NIC Link is Down|[Ll]ink (?:is )?down\b|nf_conntrack: .{0,40}table full"
        r"|neighbour: .{0,20}table overflow",
        "the machine's network dropped packets or lost its link",
        "network",
        check="that the failing call went over this machine",
    ),
    # service managers and containers
    _said(
        "unit-oom-kill",
        "service",
        r"Failed with result 'oom-kill'|killed by the OOM killer|\bKilled .{1,200} due to memory (?:used|pressure)"
        r"|sending SIG(?:TERM|KILL) to process \d+ .{0,200}\boom_score",
        "a unit was ended for want of memory",
        "resource-exhaustion process-death",
        refutes=_ENDED,
        check="that the unit was the model server's",
    ),
    _said(
        "exit-137",
        "service processes",
        r"code=killed, status=9/KILL|\bExited \(137\)|[Ee]xit ?[Cc]ode[\"']?[ :=]+137\b"
        r"|\bexit(?:ed)?(?: status| with)? 137\b",
        "a process was ended by SIGKILL (137), as the kernel does for want of memory, and others too",
        "resource-exhaustion process-death",
        refutes=_ENDED,
        check="that it was the model server, and who sent the signal",
    ),
    _said(
        "unit-died",
        "service",
        r"Main process exited, code=(?:dumped|exited, status=[1-9]|killed, status=(?!9/))"
        r"|container .{0,80}\bdied\b",
        "a service's main process ended by itself or by a signal other than SIGKILL",
        "process-death",
        refutes=_ENDED,
        check="that the service was the model server, and that nobody stopped it on purpose",
    ),
    _said(
        "container-oom",
        "processes service",
        r'"OOMKilled": true|\bOOMKilled\b(?!")',
        "a container was ended for want of memory",
        "resource-exhaustion process-death",
        refutes=_ENDED,
        check="that it was the model server's container, and when",
    ),
    _said(
        "process-gone",
        "processes",
        r"<defunct>|\bCrashLoopBackOff\b|\bExited \((?!0\)|137\))\d+\)",
        "a process or container had ended",
        "process-death",
        check=_PROCESS,
    ),
    # model servers
    _said(
        "accelerator-out-of-memory",
        "server",
        r"(?:CUDA|HIP|NPU|MPS|XPU)(?: backend)? out of memory|OutOfMemoryError|cudaMalloc failed: out of memory"
        r"|CUDA error: out of memory|ErrorOutOfDeviceMemory",
        "the server ran out of the accelerator's memory",
        "resource-exhaustion",
        check="that the failing call was hit by it",
    ),
    _said(
        "host-out-of-memory",
        "server",
        r"\bMemoryError\b|std::bad_alloc|[Cc]annot allocate memory|requires more system memory",
        "the server could not get memory of the machine",
        "resource-exhaustion",
        check="that the failing call was hit by it",
    ),
    _said(
        "engine-dead",
        "server",
        r"\b(?:Async)?EngineDeadError\b|EngineCore encountered an issue|[Ee]ngine ?core .{0,60}\bdied\b"
        r"|Background loop (?:has errored|is stopped)"
        r"|runner (?:process )?(?:has )?(?:unexpectedly stopped|terminated)"
        r"|Scheduler hit an exception",
        "the inference engine died",
        "engine_dead process-death",
        refutes=_ENDED,
        check="what it died of: the lines before it, and the kernel log",
    ),
    _said(
        "server-ended",
        "server",
        r"^INFO: +(?:Shutting down|Finished server process)|[Rr]eceived (?:signal )?SIG(?:TERM|INT|QUIT)"
        r"|\bcaught SIGTERM"
        r"|Shutting down (?:API server|gracefully)",
        "the server was told to end, or ended",
        "process-death connection_refused",
        refutes=_ENDED,
        check="that it ended before the failing call was answered",
    ),
    _said(
        "no-throughput",
        "server",
        r"generation throughput: 0\.0 tokens/s, Running: [1-9]",
        "requests were running and no token came",
        "deadline",
        check="that it was so for as long as the failing call waited",
    ),
    _said(
        "hang",
        "server",
        r"couldn't get a response from detokenizer|[Ww]atchdog (?:caught collective operation )?time-?out"
        r"|timed out waiting for (?:llama runner|the engine)|RPC call to .{1,60} timed out",
        "a part of the server no longer answered the others",
        "deadline",
        check=_FAILING,
    ),
    _said(
        "model-loading",
        "server",
        r"\b[Ll]oading model\b|Starting to load model|Loading (?:safetensors|pt) checkpoint shards"
        r"|starting llama (?:runner|server)",
        "the server was loading a model",
        "model_loading",
        check="that it was the trial's model, and not done when the failing call came",
    ),
    # what stands before a model server
    _said(
        "upstream-timeout",
        "server",
        r"upstream timed out|upstream request timeout|[Gg]ateway [Tt]ime-?out|context deadline exceeded",
        "a proxy waited for the model server in vain",
        "deadline",
        check=_FAILING,
    ),
    _said(
        "client-let-go",
        "server",
        r"client (?:prematurely )?closed (?:keepalive )?connection|client (?:has )?disconnected"
        r"|\babort(?:ed|ing) request\b"
        r"|Aborted request|context canceled",
        "the client let go of a request that was not answered yet",
        "deadline",
        check=_FAILING,
    ),
    _said(
        "upstream-broke",
        "server",
        r"upstream prematurely closed connection|\(104: Connection reset by peer\)|ECONNRESET"
        r"|[Cc]onnection reset by peer"
        r"|[Bb]roken pipe|EPIPE|unexpected EOF|TransferEncodingError|incomplete chunked read",
        "a connection broke",
        "network",
        check="that it was the failing call's, and which side ended it",
    ),
    _said(
        "upstream-refused",
        "server",
        r"\(111: Connection refused\)|ECONNREFUSED|[Cc]onnection refused|no live upstreams",
        "connections to the model server were refused",
        "network process-death",
        refutes=_ENDED,
        check="whether its process had ended, or nothing listened there at all",
    ),
    _said(
        "name-or-tls",
        "server",
        r"[Tt]emporary failure in name resolution|EAI_AGAIN|ENOTFOUND|no such host|could not be resolved"
        r"|SSL_do_handshake\(\) failed|certificate verify failed|TLS handshake (?:error|timeout)",
        "a name was not resolved, or no TLS connection came about",
        "network",
        check=_FAILING,
    ),
    _said(
        "wrong-answer",
        "server",
        r"upstream sent (?:no valid|invalid|unexpected|too big)|invalid character '<' looking for"
        r"|Unexpected end of JSON input",
        "what stands before the model server could not read its answer",
        "malformed",
        check=_FAILING,
    ),
    # what providers and proxies say when they refuse
    _said(
        "key-refused",
        "server",
        r"\binvalid_api_key\b|Incorrect API key|\bauthentication_error\b|invalid x-api-key|\bAPI_KEY_INVALID\b"
        r"|Invalid proxy server token|\bAuthenticationError\b|\bAccessDenied(?:Exception)?\b|\bUnauthorized\b",
        "a key was refused",
        "auth",
        check=_KEY,
    ),
    _said(
        "key-expired",
        "server",
        r"\bExpiredToken(?:Exception)?\b|\btoken_expired\b|[Tt]oken (?:included in the request )?(?:is"
        r"|has) expired"
        r"|Expired Key",
        "a key had expired",
        "auth",
        check=_KEY,
    ),
    _said(
        "money-used-up",
        "server",
        r"\binsufficient_quota\b|exceeded your current quota|credit balance is too low|Insufficient Balance"
        r"|requires more credits|Budget has been exceeded|\bbudget_exceeded\b|ExceededBudget|Key limit exceeded",
        "the money or the quota of a key was used up",
        "budget",
        check=_KEY,
    ),
    _said(
        "rate-limited",
        "server",
        r"\brate_limit_(?:exceeded|error)\b|Rate limit reached|would exceed your organization's rate limit"
        r"|\bThrottlingException\b|Too many tokens, please wait|Max parallel request limit reached",
        "calls came faster than the key's rate limit",
        "rate-limit",
        check=_KEY,
    ),
    _said(
        "no-capacity",
        "server",
        r"\boverloaded_error\b|[Mm]odel is (?:currently )?overloaded|[Qq]ueue is full|\bmax_queue_size\b",
        "the server had no capacity left",
        "overload",
        check=_FAILING,
    ),
    _said(
        "context-too-long",
        "server",
        r"\bcontext_length_exceeded\b|\bexceed_context_size_error\b|maximum context length|prompt is too long"
        r"|truncating input prompt|longer than the maximum model length",
        "a conversation did not fit the model's context",
        "context",
        check=_FAILING,
    ),
    _said(
        "content-filter",
        "server",
        r"\bcontent_filter(?:ed)?\b|ResponsibleAIPolicyViolation|[Bb]locked by content filter"
        r"|flagged as potentially violating",
        "a content filter refused",
        "content_filtered",
        check=_FAILING,
    ),
    # access logs
    _answered("status-401", "401", "a call was answered with 401", "auth", check=_KEY),
    _answered(
        "status-403",
        "403",
        "a call was answered with 403",
        "auth",
        check=f"{_KEY}; a 403 may also be a spend limit or a filter",
    ),
    _answered("status-402", "402", "a call was answered with 402", "budget", check=_KEY),
    _answered(
        "status-429",
        "429",
        "a call was answered with 429",
        "rate-limit",
        check=f"{_KEY}; a used-up quota and a full queue have the same status: only the body tells",
    ),
    _answered(
        "status-let-go",
        "499 408",
        "the client let go before the answer (499), or was too slow (408)",
        "deadline",
    ),
    _answered("status-gateway-timeout", "504 524", "a gateway gave up on the model server (504, 524)", "deadline"),
    _answered(
        "status-bad-gateway",
        "502",
        "a gateway got no valid answer of the model server (502)",
        "network process-death empty_body",
        check="in the model server's own log, which of them it was",
    ),
    _answered(
        "status-no-capacity", "503 529", "the server was not available or overloaded (503, 529)", "overload"
    ),
    _answered("status-too-large", "413", "a request was too large (413)", "context"),
    _answered("empty-200", "200", "an answer was 200 and had no body", "empty_body", empty=True),
)

_OF_KIND: Final[dict[LogKind, tuple[Sign, ...]]] = {
    kind: tuple(each for each in SIGNS if kind in each.logs) for kind in get_args(LogKind)
}
_HINTS: Final = {each.id: tuple(hints_of(each.pattern.pattern)) for each in SIGNS if each.pattern is not None}


def signs_of(line: Told) -> tuple[Sign, ...]:
    """Return the signs that the line shows, in the order of the table."""
    if line.access is not None:
        return tuple(each for each in _OF_KIND[line.kind] if each.shown_by(line))
    words = own_words(line)
    lower = words.lower()
    return tuple(
        each
        for each in _OF_KIND[line.kind]
        if each.pattern is not None
        and any(hint in lower for hint in _HINTS[each.id])
        and each.pattern.search(words)
    )
