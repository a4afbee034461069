import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.session.case_life.fix import claim_fix
from tests.session.case_life.stories import CASE, ID, LifeProject, make_life_project

AT = datetime(2026, 5, 10, 12, tzinfo=UTC)


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LifeProject:
    life = make_life_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return life


def test_the_story_reads_from_top_to_bottom(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    claim_fix(life.project, life.path, by="mina", note="lower time-out", at=AT)
    life.live("clean")
    revision = life.case.case.fix[0].revision
    assert main(["history", ID]) == 0
    out = capsys.readouterr().out
    assert out == (
        f"{ID}: no answer from step 6 on (verifying)\n"
        "  2026-04-12 09:31  observed: model answered step 5, then stopped responding at\n"
        "                    step 6 (eval-sweep-0412/trial-37)\n"
        f"  2026-05-10 12:00  fix: fix 1 is claimed at revision {revision[:19]}; by\n"
        "                    mina: lower time-out\n"
        "  2026-05-20 09:00  session: 1 live clean (run 1)\n"
    )


def test_a_document_has_all_of_it(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    claim_fix(life.project, life.path, by="mina", at=AT)
    life.live("recurred")
    assert main(["history", ID, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["case_id"], document["state"]) == (1, ID, "regressed")
    assert [each["kind"] for each in document["events"]] == ["observed", "fix", "session"]
    assert document["events"][1]["at"] == "2026-05-10T12:00:00Z"
    assert document["events"][1]["revision"] == life.case.case.fix[0].revision
    assert document["events"][2]["live"] == {"recurred": [1]}
    assert "ledger_not_read" not in document


def test_without_a_ledger_it_is_said_and_none_is_made(
    life: LifeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", ID]) == 0
    assert "note: there is no ledger here" in capsys.readouterr().out
    assert not (life.root / ".regcase").exists()


def test_nothing_recorded_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_life_project(tmp_path, CASE.replace("observed_at = 2026-04-12T09:31:07Z\n", ""))
    monkeypatch.chdir(tmp_path)
    assert main(["history", ID]) == 0
    assert "nothing is recorded of it yet" in capsys.readouterr().out
