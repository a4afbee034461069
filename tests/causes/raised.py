"""Makes the exception that a client library would raise, where that library is installed."""

import ast
import builtins
import importlib
import importlib.util
import itertools
import json
from typing import Any

_CLIENTS = ("openai", "anthropic", "httpx", "httpx2")
_URL = "http://localhost/v1/x"


def raised(name: str, message: str, status: int | None) -> BaseException | None:
    """Return the exception `name` says, with its causes (``A <- B``); None where a class is not to be had."""
    found = [_class_of(each.strip()) for each in name.split("<-")]
    if any(each is None for each in found):
        return None
    errors: list[BaseException] = [_made(kind, message, status) for kind in found if kind is not None]
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def _class_of(name: str) -> type[BaseException] | None:
    module, _, last = name.rpartition(".")
    if module in ("", "builtins"):
        found = getattr(builtins, last, None)
    elif module == "ssl" or module.split(".")[0] in _CLIENTS:
        try:
            found = getattr(importlib.import_module(module), last, None)
        except ImportError:
            return None
    else:
        return None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def _made(kind: Any, message: str, status: int | None) -> Any:
    package = kind.__module__.partition(".")[0]
    if package not in ("openai", "anthropic"):
        return kind(message)
    client = importlib.import_module(package)
    http = importlib.import_module("httpx2" if _has("httpx2") else "httpx")
    request = http.Request("POST", _URL)
    if issubclass(kind, client.APITimeoutError):
        return kind(request)
    if issubclass(kind, client.APIConnectionError):
        return kind(message="Connection error.", request=request)
    body = _body_of(message)
    if issubclass(kind, client.APIStatusError):
        response = http.Response(status or 400, request=request)
        return kind(message, response=response, body=body)
    if issubclass(kind, client.APIError):
        return kind(message, request, body=body)
    return kind(message)


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _body_of(message: str) -> Any:
    """Return the body that the message quotes, as openai gives it: what stands under ``error``."""
    start = message.find("{")
    if start < 0:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            whole = read(message[start:])
        except (ValueError, SyntaxError):
            continue
        return whole.get("error", whole) if isinstance(whole, dict) else None
    return None
