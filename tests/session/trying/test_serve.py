import sys
from pathlib import Path

import pytest

from pytest_regcase.config import load_project
from pytest_regcase.errors import MachineryError
from pytest_regcase.records.wire import WireEvent
from pytest_regcase.session.trying.serve import FIXED_TEXT, _Tail, serve, to_be_served
from pytest_regcase.supplier.process import SupplierProcess
from pytest_regcase.supplier.spec import ClosingReply
from tests.session.attempt_project import make_project

UPSTREAM = """
[tool.regcase.upstream]
base_url = "https://api.example/v1"
api_key_env = "EXAMPLE_KEY"
"""


def test_without_a_case_every_request_gets_the_fixed_text(tmp_path: Path) -> None:
    served = to_be_served(load_project(tmp_path), simulation_id="auth-rejected-v1", port=1234)
    assert served.loaded is None
    assert (served.replies, served.notices, served.key_name) == (0, (), None)
    assert served.spec.fault is not None
    assert (served.spec.fault.at_step, served.spec.port, served.spec.one_conversation) == (1, 1234, True)
    assert served.spec.closing_reply == ClosingReply(text=FIXED_TEXT)
    assert (tmp_path / ".regcase" / ".gitignore").is_file()


def test_a_case_gives_its_replies_and_its_agent_the_closing_one(tmp_path: Path) -> None:
    make_project(tmp_path, [sys.executable, "-c", ""])
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(pyproject.read_text() + '\nclosing_reply = { text = "All done." }\n')
    text = pyproject.read_text().replace("env = {", "# env = {")
    pyproject.write_text(text)
    served = to_be_served(load_project(tmp_path), case="calc-step-3", wires=["openai-chat", "openai-chat"])
    assert (served.replies, served.spec.failing_step, served.spec.one_conversation) == (2, 3, False)
    assert served.spec.closing_reply.text == "All done."
    assert [each.rpartition(":")[2] for each in served.spec.wires] == ["OpenAIChat"]


def test_what_a_fault_means_on_each_wire_is_said(tmp_path: Path) -> None:
    project = load_project(tmp_path)
    only = to_be_served(project, simulation_id="credit-too-low-v1").notices
    assert [each.partition(":")[0] for each in only] == ["not on openai-chat", "not on openai-responses"]
    streams = to_be_served(project, simulation_id="keep-alive-only-v1", wires=["openai-chat"]).notices
    assert [each.partition(":")[0] for each in streams] == ["only in streams on openai-chat"]


def test_replies_of_a_real_supplier_come_from_the_configured_one(tmp_path: Path) -> None:
    make_project(tmp_path, [sys.executable, "-c", ""])
    case = tmp_path / "cases" / "calc-step-3" / "case.toml"
    text = case.read_text().replace('source = "script"\nfile = "recorded/script.jsonl"', 'source = "pass-through"')
    case.write_text(text)
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(pyproject.read_text() + UPSTREAM)
    served = to_be_served(load_project(tmp_path), case="calc-step-3")
    assert served.spec.pass_through is not None
    assert (served.spec.pass_through.base_url, served.key_name, served.replies) == (
        "https://api.example/v1",
        "EXAMPLE_KEY",
        0,
    )


def test_an_event_of_which_half_is_there_is_handed_on_when_it_is_whole(tmp_path: Path) -> None:
    seen: list[WireEvent] = []
    log = tmp_path / "wire.jsonl"
    tail = _Tail(log, seen.append)
    for written, handed_on in [('{"t": 1}\n{"t"', 1), (": 2", 1), ("}\n", 2), ('{"t": 3}\n', 3)]:
        with log.open("a") as file:
            file.write(written)
        tail.read()
        assert [each["t"] for each in seen] == list(range(1, handed_on + 1))


def test_a_supplier_that_breaks_down_is_our_own_failure(tmp_path: Path) -> None:
    served = to_be_served(load_project(tmp_path))

    def break_it(supplier: SupplierProcess) -> None:
        supplier._child.kill()

    with pytest.raises(MachineryError, match="the supplier ended with -9") as broken:
        serve(served, on_start=break_it, on_event=lambda _: None)
    assert broken.value.exit_code == 4
