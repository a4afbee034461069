"""An agent on Anthropic messages, from its placeholder to the verdict; the demo speaks chat completions."""

import sys
from pathlib import Path

from tests.session.attempt_project import make_project

AGENT = """
import json, subprocess, sys, urllib.request

base_url, key = sys.argv[1:3]
tools = [{"name": "bash", "input_schema": {"type": "object"}}]
messages = [{"role": "user", "content": open(sys.argv[sys.argv.index("--task") + 1]).read()}]
headers = {"x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json"}
while True:
    body = {"model": "m", "max_tokens": 999, "system": "Fix it.", "tools": tools, "messages": messages}
    request = urllib.request.Request(base_url + "/v1/messages", json.dumps(body).encode(), headers)
    message = json.load(urllib.request.urlopen(request))
    if message["stop_reason"] != "tool_use":
        break
    results = []
    for block in message["content"]:
        if block["type"] == "tool_use":
            done = subprocess.run(block["input"]["command"], shell=True, capture_output=True, text=True)
            results.append({"type": "tool_result", "tool_use_id": block["id"], "content": done.stdout})
    messages += [{"role": "assistant", "content": message["content"]}, {"role": "user", "content": results}]
"""


def test_an_anthropic_agent_is_run_and_judged(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(AGENT)
    made = make_project(tmp_path / "project", (sys.executable, str(script), "{anthropic_base_url}", "{api_key}"))
    control, rejected = made.run("control"), made.run("auth-rejected-v1")
    assert control.verdict == "finished"
    assert (rejected.verdict, rejected.wire.delivered, rejected.wire.faulted_requests) == ("recovered", True, 1)
    assert "401" in made.file_of(rejected, "stderr.txt")
    for record in (control, rejected):
        asked = [each for each in made.wire_events(record) if each["event"] == "request"]
        assert {(each["wire"], each["path"]) for each in asked} == {("anthropic-messages", "/v1/messages")}
        assert [each["step"] for each in asked] == [1, 2, 3]
        assert not any("off_prefix" in each for each in asked)
