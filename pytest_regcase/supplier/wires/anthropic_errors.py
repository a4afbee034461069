"""The error objects of Anthropic's Messages API.

Texts are those that public issues show; the type is the API's word for the status, whatever went wrong. Standard
library only, since the supplier's child process imports it.
"""

from typing import Any

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""By status; every other 4xx is an ``invalid_request_error``, every other 5xx an ``api_error``."""

_TEXTS = {
    "bad_json": "The request body is not valid JSON: unexpected character: line 1 column 1 (char 0)",
    "bad_request": "The request is no valid HTTP.",
    "no_model": "model: Field required",
    "no_messages": "messages: Field required",
    "no_max_tokens": "max_tokens: Field required",
    "bad_messages": "messages: Input should be a valid list",
    "unknown_url": "Not Found",
    "bad_method": "Method Not Allowed",
    "too_large": "Request exceeds the maximum size",
    "key_rejected": "invalid x-api-key",
    "key_expired": "OAuth token has expired. Please obtain a new token or refresh your existing token.",
    "permission_denied": "Your API key does not have permission to use the specified resource.",
    "quota_exhausted": (
        "You have reached your specified API usage limits. You will regain access on 2030-01-01 at 00:00 UTC."
    ),
    "credit_too_low": (
        "Your credit balance is too low to access the Anthropic API."
        " Please go to Plans & Billing to upgrade or purchase credits."
    ),
    # The LiteLLM proxy, which serves this API too.
    "budget_exceeded": "Budget has been exceeded! Current cost: 10.02, Max budget: 10.0",
    "payment_required": "There is an issue with your billing or payment information.",
    "rate_limited": (
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute. For details,"
        " refer to: https://docs.claude.com/en/api/rate-limits. Please reduce the prompt length or the maximum"
        " tokens requested, or try again later."
    ),
    "server_out_of_memory": "CUDA out of memory.",
    "internal_error": "Internal server error",
    # vLLM, which serves this API too.
    "engine_dead": "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "loading": "Loading model",
    "service_unavailable": "Service Unavailable",
    "overloaded": "Overloaded",
    "context_too_long": "prompt is too long: 201082 tokens > 200000 maximum",
    "content_filtered": "Output blocked by content filtering policy",
    "upstream_failed": "The upstream failed.",
}


def error_body(status: int, slug: str, message: str | None, *, request_id: str | None) -> dict[str, Any]:
    """Return the whole body of an error; an unknown slug is its own text."""
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    error = {"type": kind, "message": message or _TEXTS.get(slug, slug)}
    return {"type": "error", "error": error, "request_id": request_id}


def error_in_stream(status: int, slug: str, message: str | None) -> dict[str, Any]:
    """Return what the ``error`` event of a stream holds: with ``details``, unlike a body."""
    body = error_body(status, slug, message, request_id=None)
    return body | {"error": {"details": None, **body["error"]}}
