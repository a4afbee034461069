"""The error objects of OpenAI's API, for both of its wires.

Texts, types and codes are those that public issues and the installed SDKs show; where OpenAI itself has no such
error, the server that speaks its protocol is named. Standard library only, since the supplier's child process
imports it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class ErrorText(NamedTuple):
    """What an error says where nothing else is asked for."""

    type: str
    code: str | int | None
    param: str | None
    message: str


_STATUS = "the status"
"""Stands for a code that is the status as text: the LiteLLM proxy's, and its status changed over its versions."""
_HELP = "contact us through our help center at help.openai.com if the error persists."
_INVALID = "invalid_request_error"

ERRORS: dict[str, ErrorText] = {
    "bad_json": ErrorText(
        _INVALID,
        None,
        None,
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP"
        " library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)",
    ),
    "no_model": ErrorText(_INVALID, None, None, "you must provide a model parameter"),
    "no_messages": ErrorText(
        _INVALID, "missing_required_parameter", "messages", "Missing required parameter: 'messages'."
    ),
    "bad_messages": ErrorText(_INVALID, "invalid_type", "messages", "Invalid type for 'messages'."),
    "bad_request": ErrorText(_INVALID, None, None, "The request is no valid HTTP."),
    "unknown_url": ErrorText(_INVALID, None, None, "Invalid URL."),
    "bad_method": ErrorText(_INVALID, "method_not_supported", None, "Not allowed."),
    "too_large": ErrorText(_INVALID, None, None, "The request is too large."),
    "key_rejected": ErrorText(
        _INVALID,
        "invalid_api_key",
        None,
        "Incorrect API key provided: sk-*****************************case."
        " You can find your API key at https://platform.openai.com/account/api-keys.",
    ),
    "key_expired": ErrorText(
        _INVALID, "token_expired", None, "Your authentication token has expired. Please try signing in again."
    ),
    "permission_denied": ErrorText(
        _INVALID, "model_not_found", None, "Project `proj_regcase` does not have access to this model"
    ),
    "quota_exhausted": ErrorText(
        "insufficient_quota",
        "insufficient_quota",
        None,
        "You exceeded your current quota, please check your plan and billing details. For more information on this"
        " error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
    ),
    # OpenRouter.
    "credit_too_low": ErrorText(
        _INVALID,
        402,
        None,
        "This request requires more credits, or fewer max_tokens. You requested up to 16000 tokens, but can only"
        " afford 2048.",
    ),
    "budget_exceeded": ErrorText(
        "budget_exceeded", _STATUS, None, "Budget has been exceeded! Current cost: 10.02, Max budget: 10.0"
    ),
    # DeepSeek, whose type and code are just these.
    "payment_required": ErrorText("unknown_error", _INVALID, None, "Insufficient Balance"),
    "rate_limited": ErrorText(
        "tokens",
        "rate_limit_exceeded",
        None,
        "Rate limit reached for this model in organization org-regcase on tokens per min (TPM): Limit 30000,"
        " Used 29512, Requested 1203. Please try again in 1.43s."
        " Visit https://platform.openai.com/account/rate-limits to learn more.",
    ),
    "server_out_of_memory": ErrorText("internal_server_error", None, None, "CUDA out of memory."),
    "internal_error": ErrorText(
        "server_error",
        None,
        None,
        "The server had an error while processing your request. Sorry about that! You can retry your request, or"
        f" {_HELP}",
    ),
    # vLLM.
    "engine_dead": ErrorText(
        "Internal Server Error",
        500,
        None,
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    ),
    # llama-server.
    "loading": ErrorText("unavailable_error", 503, None, "Loading model"),
    "service_unavailable": ErrorText(
        "server_error", None, None, "The service is temporarily unavailable. Please try again later."
    ),
    "overloaded": ErrorText(
        "server_error",
        None,
        None,
        f"That model is currently overloaded with other requests. You can retry your request, or {_HELP}",
    ),
    "context_too_long": ErrorText(
        _INVALID,
        "context_length_exceeded",
        "messages",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131344 tokens."
        " Please reduce the length of the messages.",
    ),
    "content_filtered": ErrorText(
        _INVALID,
        "invalid_prompt",
        None,
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with"
        " a different prompt.",
    ),
    "upstream_failed": ErrorText("server_error", "upstream_failed", None, "The upstream failed."),
}


def error_object(
    status: int, slug: str, message: str | None, texts: Mapping[str, ErrorText] = ERRORS
) -> dict[str, Any]:
    """Return what stands at ``error``; an unknown slug is its own code and text."""
    unknown = ErrorText("server_error" if status >= 500 else _INVALID, slug, None, slug)
    found = texts.get(slug, unknown)
    code = str(status) if found.code is _STATUS else found.code
    return {"message": message or found.message, "type": found.type, "param": found.param, "code": code}
