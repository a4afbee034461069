"""Public reports about what travels on test reports (see bug_reports.py)."""

import json
from pathlib import Path
from typing import Any, get_args

import execnet
import pytest

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.words import AttemptVerdict, InconclusiveReason
from tests.plugin.gate_project import GateProject

NOTES = """
import execnet, json

def pytest_runtest_logreport(report):
    with open("reports.jsonl", "a") as file:
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        execnet.dumps(data)
        size = [len(report.user_properties), len(report.sections), hasattr(report, "regcase")]
        file.write(json.dumps([report.nodeid, report.when, *size]) + "\\n")

def pytest_configure(config):
    globals()["config"] = config
"""


def test_html_374_a_repeated_check_hangs_one_record_on_each_report_and_gathers_none(project: GateProject) -> None:
    """The record goes on the report, never on the item, which is the same one for every try."""
    project.add_case("trial-37", ["stall-v1"])
    project.pytester.makepyfile(notes=NOTES)
    project.pytester.syspathinsert()
    project.script({"trial-37::stall-v1": ["not-recovered"] * 3})
    project.run("-p", "notes")
    seen = [json.loads(line) for line in (project.root / "reports.jsonl").read_text().splitlines()]
    calls = [line for line in seen if line[1] == "call" and "stall" in line[0]]
    assert len(calls) == 3
    assert len({tuple(line[2:4]) for line in calls}) == 1
    assert [line[1] for line in seen if line[4]] == ["call"] * 4


def test_rerunfailures_303_every_word_on_a_report_can_be_sent_by_xdist(project: GateProject) -> None:
    """Exact built-in types only: a Path, or a str of a subclass, would end the session of the worker."""
    with pytest.raises(execnet.DumpError):
        execnet.dumps({"path": Path("x")})
    project.add_case("trial-37")
    project.claim_fix("trial-37")
    project.pytester.makepyfile(notes=NOTES)
    project.pytester.syspathinsert()
    project.script(
        {
            "trial-37::control": ["raise", "finished"],
            "trial-37::stall-v1": ["inconclusive", "not-recovered", "recovered", "not-recovered"],
            "trial-37::live": ["clean", "recurred"],
        }
    )
    result = project.run("-p", "notes", "--regcase-profile=nightly", "--regcase-live=2")
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert len(project.rows()) == 9


@pytest.mark.parametrize("word", [*get_args(AttemptVerdict), *get_args(InconclusiveReason)])
def test_xdist_552_every_closed_word_is_a_plain_string(word: str) -> None:
    """The enumerations are spellings, not members of a class, so no record can hold another type."""
    assert type(word) is str
    plain: Any = AttemptRecord.model_json_schema()
    assert "enum" in str(plain)
