"""A program that makes one call a row with a real client library and says what came of it, as JSON lines.

`test_real_clients` runs it; rows come on stdin. The waits that a library asks for between its tries are recorded
and not slept, so that a Retry-After of a day takes no day.
"""

import json
import sys
import time
from functools import cache
from importlib import import_module
from typing import Any

WAITS: list[float] = []
CLOSE = {"Connection": "close"}
ASK = [{"role": "user", "content": "Fix it."}]


@cache
def client_of(name: str, base_url: str) -> Any:
    """One client for all rows: making one costs a tenth of a second. Its connections are not kept."""
    library = import_module(name)
    if name == "httpx":
        return library.Client(base_url=base_url, headers=CLOSE)
    cls = library.OpenAI if name == "openai" else library.Anthropic
    return cls(base_url=base_url, api_key="k", default_headers=CLOSE)


def call_httpx(client: Any, row: dict[str, Any]) -> dict[str, Any]:
    body = {"model": row["model"], "messages": ASK, "stream": row["streaming"]}
    answer = client.post("/chat/completions", json=body, timeout=row["timeout"])
    return {"status": answer.status_code, "text": answer.text}


def call_openai(client: Any, row: dict[str, Any]) -> Any:
    answer = client.chat.completions.create(
        model=row["model"], messages=ASK, stream=row["streaming"], timeout=row["timeout"]
    )
    if not row["streaming"]:
        return answer if isinstance(answer, str) else answer.model_dump()
    chunks = list(answer)
    choices = [each.choices[0] for each in chunks if each.choices]
    return {
        "chunks": len(chunks),
        "text": "".join(each.delta.content or "" for each in choices),
        "finish": next((each.finish_reason for each in choices if each.finish_reason), None),
    }


def call_anthropic(client: Any, row: dict[str, Any]) -> Any:
    options = {"model": row["model"], "messages": ASK, "max_tokens": 9, "timeout": row["timeout"]}
    if not row["streaming"]:
        answer = client.messages.create(**options)
        return answer if isinstance(answer, str) else answer.model_dump()
    with client.messages.stream(**options) as stream:
        message = stream.get_final_message()
    return {"text": "".join(each.text for each in message.content), "finish": message.stop_reason}


def call(row: dict[str, Any]) -> dict[str, Any]:
    WAITS.clear()
    found: dict[str, Any] = {}
    try:
        client = client_of(row["client"], row["base_url"])
        found["returned"] = globals()[f"call_{row['client']}"](client, row)
    except Exception as error:
        found["raised"] = f"{type(error).__module__.partition('.')[0]}.{type(error).__name__}"
        found["says"] = str(error)
        for name in ("status_code", "code", "type"):
            value = getattr(error, name, None)
            if isinstance(value, str | int):
                found[name] = value
    return found | {"waits": list(WAITS)}


if __name__ == "__main__":
    setattr(time, "sleep", WAITS.append)  # noqa: B010
    for line in sys.stdin:
        print(json.dumps(call(json.loads(line))), flush=True)
