"""One attempt through supplier, agent, importer and judge: what it must tell apart."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_regcase.config import load_project
from pytest_regcase.errors import MachineryError
from pytest_regcase.records.attempt import AttemptRecord
from tests.session.attempt_project import TIMING, make_project

GOOD = ("python", "-m", "pytest_regcase.demo.agent", *TIMING)
REJECTED = "auth-rejected-v1"


def statuses(record: AttemptRecord) -> dict[str, str]:
    return {each.expectation: each.status for each in record.findings}


def test_the_control_finishes_where_the_agent_follows_the_recorded_replies(tmp_path: Path) -> None:
    record = make_project(tmp_path, GOOD).run("control")
    assert (record.verdict, record.findings, record.wire.delivered) == ("finished", (), None)


def test_a_title_call_is_a_side_call_and_changes_no_verdict(tmp_path: Path) -> None:
    plain = make_project(tmp_path / "plain", GOOD)
    titled = make_project(tmp_path / "titled", (*GOOD, "--title-call"))
    for scenario in ("control", REJECTED):
        without, with_title = plain.run(scenario), titled.run(scenario)
        assert (without.wire.side_calls, with_title.wire.side_calls) == (0, 1)
        assert with_title.wire.requests == without.wire.requests + 1
        assert with_title.verdict == without.verdict
        assert statuses(with_title) == statuses(without)
    assert statuses(titled.run(REJECTED)) != {}


def test_a_recorded_tool_that_the_agent_does_not_offer_is_off_the_prefix(tmp_path: Path) -> None:
    made = make_project(tmp_path, GOOD, tool="run_shell")
    for scenario in ("control", REJECTED):
        record = made.run(scenario)
        assert record.verdict == "inconclusive"
        assert record.reason == "off-the-prefix"
        assert "run_shell" in (record.says or "")


def test_without_a_work_tree_both_patch_findings_are_not_observable(tmp_path: Path) -> None:
    record = make_project(tmp_path, GOOD, work_tree=False).run(REJECTED)
    found = statuses(record)
    assert found["no_partial_submission"] == "not-observable"
    assert found["keep_partial_patch"] == "not-observable"
    assert record.verdict == "recovered"


def test_the_agents_environment_holds_nothing_beyond_the_allow_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-real-one")
    monkeypatch.setenv("REGCASE_SECRET", "hidden")
    script = tmp_path / "show.py"
    script.write_text(
        "import json, os, sys\n"
        "out = sys.argv[sys.argv.index('--out') + 1]\n"
        "json.dump(dict(os.environ), open(os.path.join(out, 'environment.json'), 'w'))\n"
    )
    made = make_project(tmp_path / "project", ("python", str(script)))
    record = made.run("control")
    seen = json.loads(made.file_of(record, "out/environment.json"))
    allowed = {"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "NO_PROXY", "no_proxy"}
    allowed |= {"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"}
    allowed |= {"OPENAI_BASE_URL", "OPENAI_API_KEY", "PYTHONPATH", "LD_LIBRARY_PATH", "GIT_CEILING_DIRECTORIES"}
    assert {name for name in seen if name not in allowed and not name.startswith("LC_")} == set()
    assert seen["OPENAI_API_KEY"].startswith("sk-regcase-")
    assert "hidden" not in json.dumps(seen)
    assert seen["HOME"] != os.environ["HOME"]
    assert record.verdict == "did-not-finish"


def test_an_agent_that_cannot_be_started_proves_nothing(tmp_path: Path) -> None:
    record = make_project(tmp_path, ("no-such-agent-anywhere",)).run("control")
    assert (record.verdict, record.reason) == ("inconclusive", "machinery-broke")
    assert "no-such-agent-anywhere" in (record.says or "")


def test_a_fault_that_meets_no_request_is_not_delivered(tmp_path: Path) -> None:
    record = make_project(tmp_path, (sys.executable, "-c", "raise SystemExit(3)")).run(REJECTED)
    assert (record.verdict, record.reason) == ("inconclusive", "not-delivered")
    assert record.wire.why_not == "no request met the fault: no main request came"


def test_a_second_attempt_of_the_same_try_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    made = make_project(tmp_path, GOOD)
    first, second = made.run(REJECTED), made.run(REJECTED)
    assert first.folder != second.folder
    assert first.attempt_id != second.attempt_id


def test_an_attempt_leaves_the_case_folder_as_it_was(tmp_path: Path) -> None:
    made = make_project(tmp_path, GOOD)
    files = {path: path.read_bytes() for path in made.loaded.folder.rglob("*") if path.is_file()}
    made.run("control")
    made.run(REJECTED)
    assert {path: path.read_bytes() for path in made.loaded.folder.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("end", [KeyboardInterrupt(), MachineryError("the supplier broke")])
def test_what_the_agent_started_elsewhere_is_cleaned_up_however_the_attempt_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise end

    made = make_project(tmp_path, (sys.executable, "-c", "import time; time.sleep(60)"))
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(pyproject.read_text() + 'cleanup = ["touch", "{out_dir}/cleaned-{attempt_label}"]\n')
    made = replace(made, project=load_project(tmp_path))
    monkeypatch.setattr("pytest_regcase.session.attempt.watch", breaks)
    if isinstance(end, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            made.run("control")
    else:
        assert made.run("control").reason == "machinery-broke"
    (cleaned,) = tmp_path.glob("**/out/cleaned-*")
    assert cleaned.name.startswith("cleaned-regcase-")
