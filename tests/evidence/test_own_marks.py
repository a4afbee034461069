"""Our own formats and marks are told; what real servers write is not taken for ours."""

import json
from pathlib import Path

import pytest

from pytest_regcase.case_files import built_in_folder
from pytest_regcase.evidence.own_marks import own_form, own_mark
from pytest_regcase.supplier.wires.anthropic_errors import error_body
from pytest_regcase.supplier.wires.openai_errors import error_object

LOGS = Path(__file__).parent / "logs"
REPOSITORY = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('{"t": 0.1, "event": "listen", "port": 1}\n{"t": 0.2}', "a wire log"),
        ('{"kind": "trial", "schema": 1, "format": "x"}\n', "a recorded trial"),
        (json.dumps({"attempt_id": "a", "session_id": "s", "scenario": "control"}), "an attempt record"),
        (json.dumps({"attempt_id": "a", "session_id": "s", "scenario": "control"}, indent=1), "an attempt record"),
        (json.dumps({"decision": "pass", "policy": {}, "profile": "x"}, indent=2), "a gate decision"),
        ('{"step": 1, "role": "assistant", "text": "x", "from": "messages[2]"}\n', "a recorded transcript"),
        ('{"instance_id": "x", "model_patch": null, "status": "agent_error"}\n', "a file of predictions"),
        (
            json.dumps(
                {"owner": "x", "cause_status": "unknown", "simulation_ids": [], "rerun_rule": {}}, indent=2
            ),
            "a handover",
        ),
        (
            '[\n {\n "id": "x", "hypothesis": "auth", "fault": {}, "wires": [], "sources": []\n',
            "the list of simulations",
        ),
        ("deadline\n  an access log:\n  would support it:\n    - x\n", "an answer of a command"),
        ('{\n  "schema": 1,\n  "case_id": "x"\n}', "an answer of a command"),
        ("t37: compared with 1 log\n  regcase evidence t37 --supports x\n", "an answer of a command"),
        ("t37: compared with 2 logs\n  counted: all\n", "an answer of a command"),
        ("open     t37\n         killed; mina\n1 of 1 cases\n", "an answer of a command"),
        ("1 case, 46 simulations: no problems\n", "an answer of a command"),
        ("29 clean live runs close a case: failure rate below 10 %, at risk 5 %.\n", "an answer of a command"),
        ("== test session starts ==\nregcase: profile nightly; 1 case, 2 checks\n", "an answer of a command"),
        ("[]\n", "an answer of a command"),
    ],
)
def test_our_own_formats_are_told(text: str, form: str) -> None:
    assert own_form(text) == form


def test_every_shipped_simulation_and_case_is_told() -> None:
    paths = [*built_in_folder().glob("*.toml"), *(REPOSITORY / "cases").glob("*/case.toml")]
    assert len(paths) > 20
    assert {own_form(path.read_text(encoding="utf-8")) for path in paths} == {"a case or simulation file"}


@pytest.mark.parametrize("name", ["kern.log", "dmesg.txt", "access.log", "vllm.log"])
def test_real_logs_are_not_taken_for_ours(name: str) -> None:
    text = (LOGS / name).read_text()
    assert own_form(text) is None
    assert own_mark(text.splitlines()) is None


@pytest.mark.parametrize(
    "body",
    [
        error_object(401, "key_rejected", None),
        error_object(403, "permission_denied", None),
        error_object(429, "rate_limited", None),
        error_object(402, "budget_exceeded", None),
        error_object(402, "credit_too_low", None),
        error_object(400, "context_too_long", None),
        error_body(400, "context_too_long", None, request_id=None),
        error_body(429, "quota_exhausted", None, request_id=None),
        error_body(529, "overloaded", None, request_id="req_regcase_000001"),
    ],
)
def test_what_the_supplier_has_made_up_marks_its_error_bodies(body: dict[str, object]) -> None:
    assert own_mark([json.dumps(body)]) is not None


@pytest.mark.parametrize(
    "line",
    [
        "docker: container regcase-0123456789ab exited",
        "Authorization: Bearer sk-regcase-00112233",
        "oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/pytest-regcase-4242,task=python3",
        "cwd=/home/u/p/.regcase/sessions/x",
        "FAILED cases/t37/case.toml::control::check",
    ],
)
def test_names_of_ours_are_marks(line: str) -> None:
    assert own_mark(["INFO: x", line]) is not None
