"""Every sign has a line that shows it, and shows it in its own kind of log only."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.evidence.hints import hints_of
from pytest_regcase.evidence.log_kinds import Access, LogKind, Told, told
from pytest_regcase.evidence.sign_table import SIGNS, signs_of
from pytest_regcase.evidence.signs import Sign
from pytest_regcase.records.words import HypothesisClass

CALL = "/v1/chat/completions"

EXAMPLES: dict[str, tuple[LogKind, str]] = {
    "kernel-oom-kill": ("kernel", "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB"),
    "kernel-crash": ("kernel", "ollama[812]: segfault at 0 ip 00007f sp 00007f error 4 in libggml.so"),
    "kernel-network": ("kernel", "nf_conntrack: nf_conntrack: table full, dropping packet"),
    "unit-oom-kill": ("service", "vllm.service: Failed with result 'oom-kill'."),
    "exit-137": ("processes", "3f2a  vllm/vllm-openai  Exited (137) 3 minutes ago"),
    "unit-died": ("service", "vllm.service: Main process exited, code=exited, status=1/FAILURE"),
    "container-oom": ("processes", '            "OOMKilled": true,'),
    "process-gone": ("processes", "root 4242 0.0 0.0 0 0 ? Z 09:31 0:00 [python3] <defunct>"),
    "accelerator-out-of-memory": ("server", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"),
    "host-out-of-memory": ("server", "model requires more system memory (9 GiB) than is available"),
    "engine-dead": ("server", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."),
    "server-ended": ("server", "INFO:     Finished server process [4242]"),
    "no-throughput": ("server", "Avg generation throughput: 0.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs"),
    "hang": ("server", "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds"),
    "model-loading": ("server", "Starting to load model meta/llama"),
    "upstream-timeout": ("server", "upstream timed out (110: Connection timed out) while reading response header"),
    "client-let-go": ("server", 'msg="aborting completion request due to client closing" context canceled'),
    "upstream-broke": ("server", "recv() failed (104: Connection reset by peer) while reading response header"),
    "upstream-refused": ("server", "connect() failed (111: Connection refused) while connecting to upstream"),
    "name-or-tls": ("server", "api.example.com could not be resolved (2: Server failure)"),
    "wrong-answer": ("server", "upstream sent invalid header while reading response header from upstream"),
    "key-refused": ("server", "LiteLLM Proxy: Invalid proxy server token passed"),
    "key-expired": ("server", "Authentication Error, Expired Key. Key Expiry time 2026-04-12"),
    "money-used-up": ("server", "LiteLLM Proxy: ExceededBudget: Current spend 12.0"),
    "rate-limited": ("server", '"errorCode": "ThrottlingException"'),
    "no-capacity": ("server", "Model is overloaded"),
    "context-too-long": ("server", 'level=WARN msg="truncating input prompt" limit=2048 prompt=9000'),
    "content-filter": ("server", "code: content_filter, ResponsibleAIPolicyViolation"),
}
STATUSES = {
    "status-401": 401,
    "status-403": 403,
    "status-402": 402,
    "status-429": 429,
    "status-let-go": 499,
    "status-gateway-timeout": 504,
    "status-bad-gateway": 502,
    "status-no-capacity": 529,
    "status-too-large": 413,
}


def shown(line: Told) -> set[str]:
    found = signs_of(line)
    assert found == tuple(each for each in SIGNS if each.shown_by(line))
    return {each.id for each in found}


@pytest.mark.parametrize(("id_", "kind", "text"), [(id_, *each) for id_, each in EXAMPLES.items()])
def test_a_line_shows_its_sign_in_its_own_kind_of_log_alone(id_: str, kind: LogKind, text: str) -> None:
    assert id_ in shown(Told(kind, text))
    assert shown(Told("other", text)) == set()
    own = next(each for each in SIGNS if each.id == id_).logs
    for other in {"kernel", "service", "server", "processes"} - own:
        assert id_ not in shown(Told(other, text))  # type: ignore[arg-type]


@pytest.mark.parametrize(("id_", "status"), STATUSES.items())
def test_a_status_counts_for_a_call_of_a_model_alone(id_: str, status: int) -> None:
    assert shown(Told("access", "x", Access(status, CALL))) == {id_}
    assert shown(Told("access", "x", Access(status, "/admin"))) == set()
    assert shown(Told("other", "x", Access(status, CALL))) == set()


def test_an_answer_without_a_body_is_told_from_one_with_one() -> None:
    assert shown(Told("access", "x", Access(200, CALL, 0))) == {"empty-200"}
    assert shown(Told("access", "x", Access(200, CALL, 12))) == set()
    assert shown(Told("access", "x", Access(200, CALL, None))) == set()


def test_every_sign_has_an_example_and_an_id_of_its_own() -> None:
    ids = [each.id for each in SIGNS]
    assert sorted(ids) == sorted({*EXAMPLES, *STATUSES, "empty-200"})


def test_signs_name_classes_and_kinds_that_there_are() -> None:
    from typing import get_args

    from pytest_regcase import registry

    known = {*get_args(HypothesisClass), *registry.names("faults")}
    for each in SIGNS:
        assert each.supports | each.refutes <= known, each.id
        assert not each.supports & each.refutes
        assert each.check


@pytest.mark.parametrize(
    "path",
    [
        "/v1/messages",
        "/v1/responses?x=1",
        "/openai/deployments/gpt/chat/completions?api-version=1",
        "/api/generate",
        "/v1beta/models/gemini:streamGenerateContent",
        "/model/anthropic/invoke",
    ],
)
def test_paths_of_models_are_known(path: str) -> None:
    assert Access(401, path).of_a_model


def test_what_a_server_quotes_is_not_its_own_word() -> None:
    quoted = (
        "INFO 04-12 09:31:06 [logger.py:43] Received request cmpl-1: prompt: 'EngineDeadError, invalid_api_key'"
    )
    assert told(quoted).kind == "server"
    assert shown(told(quoted)) == set()


def test_a_status_in_the_text_of_a_prompt_line_is_no_access_line() -> None:
    assert told("it said 401 to POST /v1/chat/completions").kind == "other"


@pytest.mark.parametrize("sign", [each for each in SIGNS if each.pattern], ids=lambda each: each.id)
@settings(max_examples=5)
@given(data=st.data())
def test_no_line_is_passed_over_that_a_pattern_would_find(sign: Sign, data: st.DataObject) -> None:
    assert sign.pattern is not None
    text = data.draw(st.from_regex(sign.pattern, alphabet=st.characters(codec="ascii", exclude_categories=["Cc"])))
    assert any(hint in text.lower() for hint in hints_of(sign.pattern.pattern))


def test_a_pattern_that_needs_no_text_has_no_hints() -> None:
    assert hints_of(r"ab?cdefg|[Xx]yz1\.(?:no|yes)") == {"cdefg", "xyz1."}
    for pattern in (r"abc", r"abcd|\d+", r"a?b?c?d?e?"):
        with pytest.raises(ValueError, match="always there"):
            hints_of(pattern)
