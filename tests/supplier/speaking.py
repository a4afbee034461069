"""One small agent loop a wire, as bodies of requests: what a client sends first, and what after an answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_regcase.supplier.protocol import Call
from tests.supplier.serving import BASH, RawClient, Response

WIRES = ("openai-chat", "openai-responses", "anthropic-messages")
PATHS = {"openai-chat": "/chat/completions", "openai-responses": "/responses", "anthropic-messages": "/messages"}
_SCHEMA = {"type": "object"}
_TOOLS: Mapping[str, dict[str, Any]] = {
    "openai-chat": BASH,
    "openai-responses": {"type": "function", "name": "bash", "parameters": _SCHEMA},
    "anthropic-messages": {"name": "bash", "input_schema": _SCHEMA},
}


@dataclass
class Speaker:
    """Keeps a conversation on one wire and follows what it is answered."""

    wire: str
    tools: bool = True
    history: list[dict[str, Any]] = field(default_factory=lambda: [{"role": "user", "content": "Fix it."}])

    def body(self, **options: Any) -> dict[str, Any]:
        """Return the next request."""
        key = "input" if self.wire == "openai-responses" else "messages"
        needed = {"max_tokens": 99} if self.wire == "anthropic-messages" else {}
        tools = {"tools": [_TOOLS[self.wire]]} if self.tools else {}
        return {"model": "m", key: self.history, **needed, **tools, **options}

    def ask(self, client: RawClient, *, headers: str = "", **options: Any) -> Response:
        """Send the next request and read the whole answer."""
        client.post(
            json.dumps(self.body(**options)).encode(), path=client.path + PATHS[self.wire], headers=headers
        )
        return client.response()

    def follow(self, answer: Response, *outputs: str) -> None:
        """Take an answer that was not streamed into the conversation, and one output a call."""
        data = answer.json
        if self.wire == "openai-chat":
            message = data["choices"][0]["message"]
            ids = [each["id"] for each in message.get("tool_calls", ())]
            results = [
                {"role": "tool", "tool_call_id": each, "content": output}
                for each, output in zip(ids, outputs, strict=True)
            ]
            self.history = [*self.history, message, *results]
        elif self.wire == "openai-responses":
            self.history = [*self.history, *data["output"], *self.results(answer, *outputs)]
        else:
            uses = [each["id"] for each in data["content"] if each["type"] == "tool_use"]
            blocks = [
                {"type": "tool_result", "tool_use_id": each, "content": output}
                for each, output in zip(uses, outputs, strict=True)
            ]
            self.history = [*self.history, {"role": "assistant", "content": data["content"]}]
            self.history += [{"role": "user", "content": blocks}] if blocks else []

    def results(self, answer: Response, *outputs: str) -> list[dict[str, Any]]:
        """Return the items of the responses wire that answer the calls in `answer`."""
        ids = [each["call_id"] for each in answer.json["output"] if each["type"] == "function_call"]
        return [
            {"type": "function_call_output", "call_id": each, "output": output}
            for each, output in zip(ids, outputs, strict=True)
        ]


def said(wire: str, answer: Response) -> tuple[str, list[Call]]:
    """Return text and calls of an answer that was not streamed."""
    data = answer.json
    if wire == "openai-chat":
        message = data["choices"][0]["message"]
        functions = [(each["id"], each["function"]) for each in message.get("tool_calls", ())]
        calls = [Call(call_id, each["name"], each["arguments"]) for call_id, each in functions]
        return message["content"] or "", calls
    if wire == "openai-responses":
        texts = [part["text"] for each in data["output"] for part in each.get("content", ())]
        items = [each for each in data["output"] if each["type"] == "function_call"]
        return "".join(texts), [Call(each["call_id"], each["name"], each["arguments"]) for each in items]
    texts = [each["text"] for each in data["content"] if each["type"] == "text"]
    uses = [each for each in data["content"] if each["type"] == "tool_use"]
    return "".join(texts), [Call(each["id"], each["name"], json.dumps(each["input"])) for each in uses]
