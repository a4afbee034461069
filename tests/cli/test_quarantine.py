"""`regcase quarantine`, and what `list` and `history` say of flaky cases, as a person calls them."""

import json
from datetime import date
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.cli import main
from tests.session.case_life.stories import ID, LifeProject
from tests.session.flaky_project import FLAKY, SIMULATION, days, make_flaky_project


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LifeProject:
    monkeypatch.chdir(tmp_path)
    return make_flaky_project(tmp_path)


def said(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    out, err = capsys.readouterr()
    if not out.startswith(("{", "[")):
        # What is pasted into a file is no prose: its reason stays on one line.
        assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("reason = "))
    return out, err


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_proposal_with_its_table_and_what_comes_next(
    life: LifeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    days(life, FLAKY)
    assert main(["quarantine", "--propose"]) == 0
    out, err = said(capsys)
    assert err == ""
    assert out.startswith("0 of 1 case set aside, at most 3 may be; a case may flake in 10 % of its first\n")
    assert f"\n{ID}: proposed for quarantine\n" in out
    assert f'\n[quarantine]\nkind = "flaky"\nowner = "eval-harness-oncall"\nreason = "{SIMULATION}: 4 of 24' in out
    assert f"    regcase amend {ID} --why ...\n" in out
    assert main(["quarantine"]) == 0
    assert said(capsys)[0] == out


def test_the_same_as_a_document(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    days(life, FLAKY)
    assert main(["quarantine", "--json"]) == 0
    document = json.loads(said(capsys)[0])
    assert {key: document[key] for key in ("schema", "flake_budget", "in_service", "quarantined", "most")} == {
        "schema": 1,
        "flake_budget": "0.10",
        "in_service": 1,
        "quarantined": 0,
        "most": 3,
    }
    (case,) = document["cases"]
    assert (case["case_id"], case["proposed"]["kind"]) == (ID, "flaky")
    assert case["table"].startswith("[quarantine]\n")
    (check,) = case["checks"]
    assert (check["scenario"], check["over_budget"], check["found"]["failures"]) == (SIMULATION, True, 4)
    assert check["flake_rate"]["attempts"] == 24


def test_a_case_that_only_fails(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    day = days(life, "p" * 24)
    days(life, "b" * 10, first=day, agent="a2")
    assert main(["quarantine"]) == 0
    out = said(capsys)[0]
    assert f"{ID}: fails always, so not proposed\n" in out
    assert "set it aside by hand as broken, for at most 14 days" in flat(out)
    assert "drift alarm" in out
    assert "[quarantine]" not in out


def test_quiet_cases_are_counted_and_named_ones_told(
    life: LifeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quarantine"]) == 0
    out = said(capsys)[0]
    assert "1 case: nothing to propose.\n" in out
    assert flat(out).endswith("note: there is no ledger here, so only what the case file says is known")
    days(life, "p" * 5)
    assert main(["quarantine", ID]) == 0
    assert f"{ID}: nothing to propose\n  {SIMULATION}: 5 first attempts" in said(capsys)[0]


def test_by_hand_and_back(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["quarantine", ID, "--broken", "--why", "the sandbox is down", "--days", "3", "--by", "mina"]
    assert main(words) == 0
    out = said(capsys)[0]
    found = load_case(life.path).case.quarantine
    assert found is not None
    assert out == (
        f"wrote cases/trial-37/case.toml: set aside as broken until {found.expires} by mina\n"
        "It runs and is reported, and does not gate. When it is repaired:\n"
        f"  regcase quarantine {ID} --lift --why ...\n"
    )
    assert (found.expires - found.since).days == 3
    assert main(["quarantine"]) == 0
    assert f"{ID}: set aside as broken until {found.expires}\n" in said(capsys)[0]
    assert main(["list"]) == 0
    assert f"quarantined until {found.expires}\n" in said(capsys)[0]
    assert main(["quarantine", ID, "--lift", "--why", "it is up", "--by", "omar", "--json"]) == 0
    document = json.loads(said(capsys)[0])
    assert (document["kind"], document["by"], document["quarantine"]["kind"]) == ("lifted", "omar", "broken")
    assert main(["history", ID]) == 0
    out = flat(said(capsys)[0])
    assert f"quarantined: set aside until {found.expires}; by mina: the sandbox is down" in out
    assert "lifted: it gates again; by omar: it is up" in out
    assert (out.count("quarantined:"), out.count("lifted:"), "amended" in out) == (1, 1, False)
    assert main(["quarantine", ID, "--lift", "--why", "again"]) == 2
    assert "it has none" in said(capsys)[1]


def test_a_way_out_that_is_refused(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    end = days(life, FLAKY)
    text = f'\n[quarantine]\nkind = "flaky"\nowner = "o"\nreason = "r"\nsince = {end}\nexpires = 2999-01-01\n'
    life.path.write_text(life.path.read_text() + text)
    days(life, "pppp", first=end, agent="a2")
    assert main(["quarantine", ID, "--lift", "--why", "repaired"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Couldn't lift the quarantine of {ID}.\n{SIMULATION}: exit refused: 3 clean")
    assert main(["quarantine"]) == 0
    out = said(capsys)[0]
    assert f"  {SIMULATION}: exit refused: 3 clean shows" in out
    assert f"    regcase quarantine {ID} --lift --probation --why ...\n" in out
    assert main(["quarantine", ID, "--lift", "--probation", "--why", "repaired", "--by", "mina"]) == 0
    assert "it gates again on probation, says mina" in flat(said(capsys)[0])
    assert main(["quarantine"]) == 0
    assert f"{ID}: gates again, on probation\n" in said(capsys)[0]


def test_flaking_and_drift_show_where_a_user_looks(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    days(life, FLAKY + "ffff")
    assert main(["list"]) == 0
    out = flat(said(capsys)[0])
    assert "flaky over its budget: `regcase quarantine` says more" in out
    assert "fails more often than it did: the drift alarm stands" in out
    assert main(["list", "--json"]) == 0
    (case,) = json.loads(said(capsys)[0])
    assert (case["over_budget"], case["drift_alarm"]) == (True, True)
    assert main(["history", ID]) == 0
    out = flat(said(capsys)[0])
    assert f"{SIMULATION}: 8 of 28 first attempts failed; at this look the rate is from" in out
    assert "drift alarm: " in out
    assert main(["history", ID, "--json"]) == 0
    (check,) = json.loads(said(capsys)[0])["checks"]
    assert (check["flake_rate"]["failures"], check["over_budget"], "drift_alarm" in check) == (8, True, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--broken", "--lift", "--why", "x"], "Give one of --propose, --broken and --lift."),
        (["--broken"], "--broken needs --why TEXT"),
        (["--lift"], "--lift needs --why TEXT"),
        (["other", "--lift", "--why", "x"], "--lift is for one CASE."),
        (["--why", "x"], "--why and --by go with --broken and --lift."),
        (["--probation"], "--probation goes with --lift."),
        (["--broken", "--why", "x", "--days", "15"], "1<=x<=14"),
        (["--broken", "--why", " "], "it is empty"),
    ],
)
def test_what_makes_no_sense_is_usage(
    life: LifeProject, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    before = life.path.read_bytes()
    assert main(["quarantine", ID, *words]) == 2
    assert says in capsys.readouterr().err
    assert life.path.read_bytes() == before


def test_auto_says_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    life = make_flaky_project(tmp_path, 'quarantine = "auto"')
    days(life, FLAKY)
    assert main(["quarantine"]) == 0
    assert capsys.readouterr().out.endswith(f"wrote .regcase/proposals/{ID}.toml\n")
    assert date.today().isoformat()[:4] in (tmp_path / ".regcase" / "proposals" / f"{ID}.toml").read_text()
