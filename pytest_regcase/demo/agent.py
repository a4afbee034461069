"""A small agent that works: a loop over chat completions with a shell, and a good recovery when its model fails.

It imports the standard library alone, so that it starts fast and shows what any agent can do without a framework.
`behaviours` breaks the methods marked as hooks, one at a time. Must not import anything of ours outside `demo`.

    python -m pytest_regcase.demo.agent --task FILE --out DIR

reads OPENAI_BASE_URL and OPENAI_API_KEY and works in the current folder. Exit code 0: handed in; 1: gave up, with
the reason in ``trial.jsonl`` and on stderr; 2: wrong usage.
"""

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_regcase.demo.chat import Call, ChatClient, Message, Reply, SupplierFailure
from pytest_regcase.demo.tools import changes, run_command
from pytest_regcase.demo.trial_log import TrialLog

MAX_RETRIES = 2
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 1.0
COMMAND_SECONDS = 30.0
SYSTEM_PROMPT = (
    "You work on the files in the current folder. Run shell commands with `{shell}`, one at a time, and look at "
    "what they print. When the task is done, call `{submit}` with a short answer."
)
TITLE_PROMPT = "Name this task in at most six words."


@dataclass(frozen=True)
class Settings:
    """What one run is told."""

    task_text: str
    out_dir: Path
    work_dir: Path
    base_url: str
    api_key: str
    model: str = "demo-model"
    task_id: str | None = None
    timeout_seconds: float = 2.0
    """For a model call: see `ChatClient`."""
    max_steps: int = 50
    shell_tool: str = "bash"
    submit_tool: str = "submit"
    title_call: bool = False
    """Ask for a title first, as many chat front ends do: a model call outside the main conversation."""


class DemoAgent:
    """The loop: ask, run what the reply asks for, hand in; or give up in good order."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.log = TrialLog(settings.out_dir)
        self.client = ChatClient(
            settings.base_url, settings.api_key, settings.model, self.request_timeout_seconds()
        )
        self.step = 1

    def run(self) -> int:
        """Work on the task; return the exit code."""
        settings = self.settings
        system = SYSTEM_PROMPT.format(shell=settings.shell_tool, submit=settings.submit_tool)
        self.log.begin(
            run_id=uuid.uuid4().hex, task_id=settings.task_id, task_text=settings.task_text, model=settings.model
        )
        self.log.prompt("system", system)
        self.log.prompt("user", settings.task_text)
        messages: list[Message] = [
            {"role": "system", "content": system},
            {"role": "user", "content": settings.task_text},
        ]
        if settings.title_call:
            self.ask_for_title()
        try:
            while self.step <= settings.max_steps:
                reply = self.ask(messages)
                self.log.reply(self.step, reply, [settings.shell_tool, settings.submit_tool])
                messages.append(reply.as_message())
                answer = self.act(reply, messages)
                if answer is not None:
                    return self.hand_in(answer)
                self.step += 1
        except SupplierFailure as failure:
            return self.give_up(failure)
        say(f"gave up: {settings.max_steps} steps were not enough")
        self.keep_partial_patch()
        self.log.end("limit")
        return 1

    def ask(self, messages: Sequence[Message]) -> Reply:
        """Ask the model, again where that is allowed; raise the last failure."""
        retries = 0
        while True:
            say(f"step {self.step}: asking the model")
            try:
                reply = self.client.complete(messages, self.tools())
            except SupplierFailure as failure:
                self.note_failed_call(failure, self.step)
                if not self.may_retry(failure, retries):
                    raise
            else:
                self.log.model_call(self.step)
                return reply
            retries += 1
            time.sleep(self.pause_seconds(retries))
            self.ask_again(messages)

    def ask_for_title(self) -> None:
        """Make the side call. Nothing depends on it: its failure is logged and the work goes on."""
        try:
            title = self.client.complete(
                [{"role": "user", "content": f"{TITLE_PROMPT}\n\n{self.settings.task_text}"}], ()
            )
            self.log.model_call(0)
            say(f"title: {title.text}")
        except SupplierFailure as failure:
            self.note_failed_call(failure, 0)

    def act(self, reply: Reply, messages: list[Message]) -> str | None:
        """Do what the reply asks for and append the results; return the final answer once there is one."""
        if not reply.calls:
            return reply.text
        answer: str | None = None
        for call in reply.calls:
            result, handed = self.run_call(call)
            answer = handed if handed is not None else answer
            self.log.tool_result(self.step, call.id, result)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return answer

    def run_call(self, call: Call) -> tuple[str, str | None]:
        """Run one call; return its result, and the answer where the call hands one in."""
        try:
            arguments = json.loads(call.arguments)
            wanted = arguments["answer"] if call.name == self.settings.submit_tool else arguments["command"]
        except (ValueError, LookupError, TypeError):
            return f"the arguments of {call.name} cannot be read: {call.arguments}\n", None
        if call.name == self.settings.submit_tool:
            return "handed in\n", str(wanted)
        if call.name != self.settings.shell_tool:
            return f"there is no tool {call.name}\n", None
        say(f"step {self.step}: running {str(wanted).splitlines()[:1]}")
        return run_command(str(wanted), self.settings.work_dir, COMMAND_SECONDS), None

    def hand_in(self, text: str) -> int:
        """Hand in the answer and the work, as finished."""
        self.log.submission(text=text, patch=self.patch())
        self.log.end("finished")
        say("handed in")
        return 0

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools as a request offers them."""
        return [
            _tool(self.settings.shell_tool, "Run a shell command in the work folder.", "command"),
            _tool(self.settings.submit_tool, "Hand in the finished work.", "answer"),
        ]

    def patch(self) -> str | None:
        """Return what was changed so far; None where nothing was, or nobody can tell."""
        return changes(self.settings.work_dir) or None

    def keep_partial_patch(self) -> None:
        """Write the unfinished work down for whoever looks into the failure; do not hand it in."""
        patch = self.patch()
        if patch is not None:
            self.log.partial_patch(patch)

    # -- the hooks that `behaviours` breaks --

    def request_timeout_seconds(self) -> float | None:
        """Say how long to wait for the model."""
        return self.settings.timeout_seconds

    def may_retry(self, failure: SupplierFailure, retries: int) -> bool:
        """Decide whether to ask again: at most twice, and never after a refusal that would only be repeated."""
        return failure.worth_another_try and retries < MAX_RETRIES

    def pause_seconds(self, retries: int) -> float:
        """Say how long to wait before retry number `retries`."""
        doubled: float = FIRST_PAUSE_SECONDS * 2 ** (retries - 1)
        return min(doubled, LONGEST_PAUSE_SECONDS)

    def ask_again(self, messages: Sequence[Message]) -> None:
        """Do what comes between a failed call and the next try: nothing, since the work tree is as it was."""

    def note_failed_call(self, failure: SupplierFailure, step: int) -> None:
        """Log a model call that gave no answer; step 0 is a call outside the conversation."""
        say(f"step {step}: model call failed: {failure.kind}: {failure}")
        self.log.model_call(step, failure)

    def give_up(self, failure: SupplierFailure) -> int:
        """End after a failure of the supplier: say so, keep the work for diagnosis, hand in nothing."""
        say(f"gave up at step {self.step}: {failure.kind}: {failure}")
        self.log.error(failure)
        self.keep_partial_patch()
        self.log.end("error")
        return 1


def say(text: str) -> None:
    """Write one line of the agent's log to stderr."""
    print(f"demo agent: {text}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None, agent: type[DemoAgent] = DemoAgent) -> int:
    """Run `agent` as the command line asks."""
    parser = argparse.ArgumentParser(prog="demo-agent", description="A small agent with a shell.")
    parser.add_argument("--task", required=True, type=Path, metavar="FILE", help="the task, as text")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where trial.jsonl goes")
    parser.add_argument("--model", default="demo-model")
    parser.add_argument("--task-id")
    parser.add_argument("--timeout", type=float, default=2.0, metavar="SECONDS", help="for one model call")
    parser.add_argument("--max-steps", type=int, default=50)
    parser.add_argument("--tools", default="bash,submit", metavar="SHELL,SUBMIT", help="names of the two tools")
    parser.add_argument("--title-call", action="store_true", help="ask for a title first")
    options = parser.parse_args(argv)
    names = options.tools.split(",")
    if len(names) != 2 or not all(names):
        parser.error(f"--tools {options.tools}: give two names, for the shell and for handing in")
    try:
        task_text = options.task.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"--task {options.task}: {error}")
    base_url = os.environ.get("OPENAI_BASE_URL")
    if not base_url:
        parser.error("OPENAI_BASE_URL is not set: the agent does not know where its model is")
    settings = Settings(
        task_text=task_text,
        out_dir=options.out,
        work_dir=Path.cwd(),
        base_url=base_url,
        api_key=os.environ.get("OPENAI_API_KEY", ""),
        model=options.model,
        task_id=options.task_id,
        timeout_seconds=options.timeout,
        max_steps=options.max_steps,
        shell_tool=names[0],
        submit_tool=names[1],
        title_call=options.title_call,
    )
    return agent(settings).run()


def _tool(name: str, description: str, argument: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


if __name__ == "__main__":
    sys.exit(main())
