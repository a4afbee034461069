"""Makes the samples of conversation formats by running the libraries themselves, without network or a model.

Run from the repository root: ``python -m tests.gold.make_conversation_samples pydantic-ai openai-agents`` where
the `harness` extra is installed, ``... openhands-v1`` where openhands-sdk is (1.58.2, Python 3.12). Ids and
times differ on every run, so tests name none of them. Only paths are rewritten, and the SDK's long system
prompt is shortened.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

GOLD = Path(__file__).parent
TASK = "add() in calc.py subtracts"
CODE = "def add(a, b):\n    return a - b\n"
CLOSED = "the supplier closed the stream"


def write(name: str, document: Any) -> None:
    path = GOLD / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def make_pydantic_ai() -> None:
    """Run an agent whose second model call raises, and one that ends by calling its output tool."""
    # By name: the type checker runs where no harness is installed.
    library: Any = import_module("pydantic_ai")
    messages: Any = import_module("pydantic_ai.messages")
    function_model: Any = import_module("pydantic_ai.models.function").FunctionModel

    def call(number: int, name: str, arguments: dict[str, Any]) -> Any:
        return messages.ToolCallPart(name, arguments, tool_call_id=f"call_{number}")

    def run(name: str, last: Callable[[Any], Any], **options: Any) -> None:
        asked = 0

        def answer(_: Any, info: Any) -> Any:
            nonlocal asked
            asked += 1
            if asked > 1:
                return last(info)
            return messages.ModelResponse([messages.TextPart("Look first."), call(1, "look", {"name": "calc.py"})])

        agent: Any = library.Agent(
            function_model(answer, model_name="scripted"), instructions="You can look at files.", **options
        )

        @agent.tool_plain  # type: ignore[untyped-decorator]
        def look(name: str) -> str:
            return CODE

        with library.capture_run_messages() as captured, contextlib.suppress(ConnectionError):
            agent.run_sync(TASK)
        write(f"pydantic-ai/{name}.json", json.loads(messages.ModelMessagesTypeAdapter.dump_json(captured)))

    def closed(_: Any) -> Any:
        raise ConnectionError(CLOSED)

    def output(info: Any) -> Any:
        return messages.ModelResponse([call(2, info.output_tools[0].name, {"response": 1})])

    run("call_failed", closed)
    run("ended_by_output_tool", output, output_type=int)


def make_openai_agents() -> None:
    """Run an agent whose second model call raises, and one that answers."""
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    agents: Any = import_module("agents")
    types: Any = import_module("openai.types.responses")

    class Scripted(agents.Model):  # type: ignore[misc]
        def __init__(self, *replies: Any) -> None:
            self.replies = list(replies)

        async def get_response(self, *_: Any, **__: Any) -> Any:
            if not self.replies:
                raise ConnectionError(CLOSED)
            return agents.ModelResponse(self.replies.pop(0), agents.Usage(), None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    def said(words: str, number: int) -> Any:
        part = types.ResponseOutputText(annotations=[], text=words, type="output_text")
        return types.ResponseOutputMessage(
            id=f"msg_{number}", content=[part], role="assistant", status="completed", type="message"
        )

    call = types.ResponseFunctionToolCall(
        arguments='{"name": "calc.py"}', call_id="call_1", name="look", type="function_call", id="fc_1"
    )

    async def run(*replies: Any) -> Any:
        @agents.function_tool  # type: ignore[untyped-decorator]
        def look(name: str) -> str:
            return CODE

        session = agents.SQLiteSession("sample")
        agent = agents.Agent("coder", model=Scripted(*replies), tools=[look])
        with contextlib.suppress(ConnectionError):
            await agents.Runner.run(agent, TASK, session=session)
        return await session.get_items()

    looks = [said("Look first.", 1), call]
    write("responses-items/call_failed.json", asyncio.run(run(looks)))
    write("responses-items/answered.json", asyncio.run(run(looks, [said("It subtracts.", 2)])))


def make_openhands_v1() -> None:
    """Run a conversation whose second model call raises (its events as lines and as a folder); one that ends."""
    sdk: Any = import_module("openhands.sdk")
    llm: Any = import_module("openhands.sdk.llm")
    raised: Any = import_module("openhands.sdk.llm.exceptions").LLMRateLimitError
    scripted: Any = import_module("openhands.sdk.testing").TestLLM
    folder = GOLD / "openhands-v1"

    def reply(words: str, name: str, **arguments: str) -> Any:
        call = llm.MessageToolCall(id="call_1", name=name, arguments=json.dumps(arguments), origin="completion")
        return llm.Message(role="assistant", content=[llm.TextContent(text=words)], tool_calls=[call])

    def run(name: str, *replies: Any, kept_as: str | None = None) -> None:
        lines: list[str] = []
        with tempfile.TemporaryDirectory() as scratch:
            conversation = sdk.Conversation(
                agent=sdk.Agent(llm=scripted.from_messages(list(replies)), tools=[]),
                workspace=f"{scratch}/work",
                persistence_dir=f"{scratch}/kept",
                visualizer=None,
                callbacks=[lambda event: lines.append(event.model_dump_json(exclude_none=True))],
            )
            conversation.send_message(TASK)
            with contextlib.suppress(Exception):
                conversation.run()
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.jsonl").write_text(
                "".join(json.dumps(shortened(json.loads(each))) + "\n" for each in lines)
            )
            if kept_as is None:
                return
            (kept,) = Path(scratch, "kept").iterdir()
            (folder / kept_as / "events").mkdir(parents=True, exist_ok=True)
            for path in kept.rglob("*.json"):
                content = json.loads(path.read_text().replace(scratch, "/opt/agent"))
                (folder / kept_as / path.relative_to(kept)).write_text(json.dumps(shortened(content)) + "\n")

    looked = reply("Look first.", "think", thought="It subtracts.")
    run("call_failed", looked, raised("429 too many requests"), kept_as="persisted")
    run("finished", reply("It subtracts.", "finish", message="It subtracts."))


def shortened(event: dict[str, Any]) -> dict[str, Any]:
    if isinstance(event.get("system_prompt"), dict):
        event["system_prompt"]["text"] = "You are a coding agent."
        event["tools"] = [
            {key: value for key, value in tool.items() if key in ("kind", "name", "title")}
            for tool in event["tools"]
        ]
        event.pop("dynamic_context", None)
    return event


MAKERS: Mapping[str, Callable[[], None]] = {
    "pydantic-ai": make_pydantic_ai,
    "openai-agents": make_openai_agents,
    "openhands-v1": make_openhands_v1,
}

if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        MAKERS[chosen]()
