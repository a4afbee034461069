"""Makes the samples of trace formats with the libraries that write them, without network.

Run from the repository root where opentelemetry-sdk and opentelemetry-exporter-otlp-proto-common (1.45.2) are
installed: ``python -m tests.gold.make_trace_samples otlp``, and with langsmith (0.15.1): ``... langsmith``.
Attribute names are written by hand after the conventions; ids and times of OTLP are set, those of LangSmith differ
on every run.
"""

import base64
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

GOLD = Path(__file__).parent
TASK = "add() in calc.py subtracts"
SYSTEM = "You repair code."
CODE = "def add(a, b):\n    return a - b\n"
START = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
AGENT = "def step():\n    raise TimeoutError('no answer within 3 s')\n"


def failure() -> TimeoutError:
    """Return an error that was raised in a file of another name."""
    space: dict[str, Any] = {}
    exec(compile(AGENT, "agent.py", "exec"), space)
    try:
        space["step"]()
    except TimeoutError as error:
        error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ is not None else None
        return error
    raise AssertionError


def text(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": words}]}


ASKED = [text("user", TASK)]
CALLS = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "look first"},
        {"type": "text", "content": "I look at the file."},
        {"type": "tool_call", "id": "call_1", "name": "bash", "arguments": {"command": "cat calc.py"}},
    ],
    "finish_reason": "tool_call",
}
ANSWERED = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": CODE}]}


class Recorder:
    """Records spans by the SDK with ids and times that are set."""

    def __init__(self) -> None:
        sdk: Any = import_module("opentelemetry.sdk.trace")
        resources: Any = import_module("opentelemetry.sdk.resources")
        memory: Any = import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter")
        simple: Any = import_module("opentelemetry.sdk.trace.export").SimpleSpanProcessor
        generator: Any = import_module("opentelemetry.sdk.trace.id_generator").IdGenerator

        class Ids(generator):  # type: ignore[misc]
            spans = traces = 0

            def generate_span_id(self) -> int:
                self.spans += 1
                return self.spans

            def generate_trace_id(self) -> int:
                self.traces += 1
                return 0x5B8EFFF798038103D269B633813FC600 + self.traces

        self.ended = memory.InMemorySpanExporter()
        resource = resources.Resource({"service.name": "calc-agent", "service.version": "0.4.1"})
        provider = sdk.TracerProvider(resource=resource, id_generator=Ids())
        provider.add_span_processor(simple(self.ended))
        self.tracer = provider.get_tracer("calc_agent", "0.4.1")
        self.api: Any = import_module("opentelemetry.trace")
        self.now = START

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Mapping[str, Any],
        *,
        seconds: int = 1,
        error: Exception | None = None,
        never_ends: bool = False,
    ) -> Iterator[None]:
        span = self.tracer.start_span(name, attributes=attributes, start_time=self.now)
        with self.api.use_span(span, end_on_exit=False):
            yield
        self.now += seconds * SECOND
        if error is not None:
            span.record_exception(error, timestamp=self.now)
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(self.api.Status(self.api.StatusCode.ERROR, str(error)))
        if not never_ends:
            span.end(self.now)

    def requests(self, *, each_span: bool = False) -> list[dict[str, Any]]:
        """Return what an exporter sends, as OTLP JSON spells it: ids in hex, not in base64."""
        encode: Any = import_module("opentelemetry.exporter.otlp.proto.common.trace_encoder").encode_spans
        to_dict: Any = import_module("google.protobuf.json_format").MessageToDict
        spans = self.ended.get_finished_spans()
        batches = [[span] for span in spans] if each_span else [spans]
        found = [to_dict(encode(batch), use_integers_for_enums=True) for batch in batches]
        for request in found:
            for resource in request["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        for key in ("traceId", "spanId", "parentSpanId"):
                            if key in span:
                                span[key] = base64.b64decode(span[key]).hex()
        return found


def chat(given: list[Any], said: Any = None, **more: Any) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "replay-1",
        "gen_ai.request.max_tokens": 512,
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
        "gen_ai.input.messages": json.dumps(given),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "bash"}]),
        **more,
    }
    if said is not None:
        attributes |= {
            "gen_ai.response.model": "replay-1-0921",
            "gen_ai.response.finish_reasons": [said["finish_reason"]],
            "gen_ai.usage.input_tokens": 30,
            "gen_ai.usage.output_tokens": 9,
            "gen_ai.output.messages": json.dumps([said]),
        }
    return attributes


TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "bash",
    "gen_ai.tool.call.id": "call_1",
    "gen_ai.tool.call.result": CODE,
}


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **more}


def make_otlp() -> None:
    """Two traces in one file (one fails in its second call, one retries it and asks a sub-agent); one cut off."""
    error = failure()
    recorder = Recorder()
    marks = {"task_id": "calc-001", "epoch": 2, "gen_ai.conversation.id": "sweep-7"}
    with recorder.span("invoke_agent calc", agent("calc", **marks), error=error):
        with recorder.span("chat replay-1", chat(ASKED, CALLS)):
            pass
        with recorder.span("execute_tool bash", TOOL):
            pass
        for _ in range(2):
            with recorder.span("chat replay-1", chat([*ASKED, CALLS, ANSWERED]), seconds=3, error=error):
                pass
    done = {**text("assistant", "done"), "finish_reason": "stop"}
    with recorder.span("invoke_agent calc", agent("calc", task_id="calc-002")):
        with recorder.span("chat replay-1", chat(ASKED, CALLS)):
            pass
        with (
            recorder.span("invoke_agent reader", agent("reader")),
            recorder.span("chat replay-1", chat([text("user", "read calc.py")], done)),
        ):
            pass
        with recorder.span("chat replay-1", chat([*ASKED, CALLS, ANSWERED]), error=error):
            pass
        with recorder.span("chat replay-1", chat([*ASKED, CALLS, ANSWERED], done)):
            pass
    write("otlp/two_traces.json", json.dumps(recorder.requests()[0], indent=1))

    recorder = Recorder()
    prompt = {"gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": SYSTEM}
    prompt |= {"gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": TASK}
    asked = {"llm.request.type": "chat", "gen_ai.system": "OpenAI", "gen_ai.request.model": "replay-1", **prompt}
    answered = {
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.finish_reason": "tool_calls",
        "gen_ai.completion.0.tool_calls.0.id": "call_1",
        "gen_ai.completion.0.tool_calls.0.name": "bash",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"command": "cat calc.py"}',
        "gen_ai.usage.prompt_tokens": 30,
        "gen_ai.usage.completion_tokens": 9,
    }
    with recorder.span("calc.workflow", {"traceloop.span.kind": "workflow"}, never_ends=True):
        with recorder.span("openai.chat", {**asked, **answered}):
            pass
        with recorder.span("bash.tool", {"traceloop.span.kind": "tool", "traceloop.entity.output": CODE}):
            pass
    lines = [json.dumps(each) for each in recorder.requests(each_span=True)]
    write("otlp/cut_off.jsonl", "\n".join(lines))


def make_langsmith() -> None:
    """A trace that fails in its second call after a retry, with feedback; one that never ended; one that did."""
    library: Any = import_module("langsmith.run_trees")
    mock: Any = import_module("unittest.mock")
    error = failure()
    traceback = (
        f'Traceback (most recent call last):\n\n  File "agent.py", line 2, in step\n\nTimeoutError: {error}'
    )
    told = f"{error!r}\n\n\n{traceback}"

    def run(tree: Any, name: str, kind: str, inputs: Any, outputs: Any, said: str | None = None) -> None:
        child = tree.create_child(name=name, run_type=kind, inputs=inputs)
        if outputs is not None or said is not None:
            child.end(outputs=outputs, error=said)

    def dumped(tree: Any, **root: Any) -> list[dict[str, Any]]:
        runs = [tree, *tree.child_runs]
        found = []
        for each in runs:
            kept = json.loads(each.model_dump_json(exclude={"parent_run", "child_runs", "client", "ls_client"}))
            kept = {key: value for key, value in kept.items() if value not in (None, [], {})}
            kept["status"] = "error" if kept.get("error") else "success" if kept.get("end_time") else "pending"
            found.append(kept)
        return [{**found[0], "parent_run_id": None, **root}, *found[1:]]

    def start() -> Any:
        metadata = {"revision_id": "0123abc", "task_id": "calc-001", "epoch": 2, "ls_model_name": "replay-1"}
        return library.RunTree(
            name="calc",
            run_type="chain",
            inputs={"task": TASK},
            extra={"metadata": metadata},
            client=mock.MagicMock(),
        )

    system = {"lc": 1, "type": "constructor", "id": ["langchain", "SystemMessage"], "kwargs": {"content": SYSTEM}}
    user = {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": TASK}}
    call = {"name": "bash", "args": {"command": "cat calc.py"}, "id": "call_1", "type": "tool_call"}
    said = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "AIMessage"],
        "kwargs": {"content": "I look at the file.", "tool_calls": [call]},
    }
    result = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "ToolMessage"],
        "kwargs": {"content": CODE, "tool_call_id": "call_1"},
    }
    first = {"messages": [[system, user]]}
    reply = {"generations": [[{"text": "I look at the file.", "message": said}]]}
    second = {"messages": [[system, user, said, result]]}
    tree = start()
    run(tree, "ChatReplay", "llm", first, reply)
    run(tree, "bash", "tool", {"command": "cat calc.py"}, {"output": result})
    run(tree, "ChatReplay", "llm", second, None, told)
    run(tree, "ChatReplay", "llm", second, None, told)
    tree.end(error=told)
    feedback = {"correctness": {"n": 1, "avg": 0.2}, "resolved": {"n": 1, "avg": 0}}
    write("langsmith/call_failed.json", json.dumps(dumped(tree, feedback_stats=feedback)[::-1], indent=1))
    tree = start()
    run(tree, "ChatReplay", "llm", first, reply)
    run(tree, "ChatReplay", "llm", second, None)
    write("langsmith/pending.jsonl", "\n".join(map(json.dumps, dumped(tree))))
    tree = start()
    run(tree, "ChatReplay", "llm", first, reply)
    tree.end(outputs={"output": "I look at the file."})
    write("langsmith/finished.jsonl", "\n".join(map(json.dumps, dumped(tree))))


def write(name: str, content: str) -> None:
    path = GOLD / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content + "\n")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        {"otlp": make_otlp, "langsmith": make_langsmith}[each]()
