"""One decision, byte for byte, however the run is spread: 20 cases with recurrences, serial, workers, shards."""

import json
import os
import shutil
from contextlib import ExitStack, chdir
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.session.ledgers.exchange import merge_ledger
from tests.ledger.postgres import an_empty_schema
from tests.plugin.gate_project import (
    PYPROJECT,
    SCRIPTED,
    WITHOUT_OTHERS,
    write_case,
    write_simulation,
)
from tests.plugin.warm_pytest import warm_pytest
from tests.rules.attempt_samples import an_attempt

NIGHTLY = ("--regcase-profile=nightly", "--regcase-live=4")
WORKERS = (["-n2"], ["-n2", "--dist=loadscope"], ["-n2", "--dist=worksteal"])
LEDGER = Path(".regcase") / "ledger.sqlite3"
OTHERS = ("REGCASE_LEDGER", "REGCASE_RUN_ID", "GITHUB_RUN_ID", "CI_PIPELINE_ID", "GITHUB_ACTIONS")


class Spread:
    """The suite of 20 cases, from which every way to run it starts anew, with the ledger that its fixes name."""

    def __init__(self, folder: Path) -> None:
        self.template = folder / "template"
        self.template.mkdir()
        self.folder = folder
        (self.template / "pyproject.toml").write_text(PYPROJECT)
        (self.template / "conftest.py").write_text(SCRIPTED.read_text())
        write_simulation(self.template, "stall-v1")
        with Ledger.open(f"sqlite:///{self.template / LEDGER}") as ledger:
            ledger.append(an_attempt("finished", "control", session_id="long-ago", case_id="trial-0"))
            at = f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
            fix = f"\n[[fix]]\nnumber = 1\nrevision = 'r'\nledger_id = '{ledger.ledger_id}'\nrows = 1\nat = {at}\n"
        script: dict[str, list[str]] = {}
        for number in range(20):
            write_case(self.template, f"trial-{number}", ["stall-v1"], more=f"{fix}by = 'someone'\n")
            if number % 4 == 1:  # comes back in run 1, 2, 3 or 4, the run before it failing otherwise in none
                script[f"trial-{number}::live"] = [*["clean"] * (number // 4 % 4), "recurred"]
        script["trial-2::stall-v1"] = ["not-recovered"] * 3
        script["trial-6::stall-v1"] = ["not-recovered"]
        script["trial-10::control"] = ["inconclusive"] * 3
        script["trial-14::live"] = ["clean", "failed-otherwise", "recurred"]
        (self.template / "script.json").write_text(json.dumps(script))

    def run(self, name: str, *args: str, ledger: str | None = None, fresh: bool = False) -> Path:
        """Run the suite in a copy and return its folder; `fresh`: on a new ledger that holds the template's."""
        root = self.folder / name
        shutil.copytree(self.template, root)
        if fresh and ledger is None:
            (root / LEDGER).unlink()
            ledger = f"sqlite:///{root / LEDGER}"
        if ledger is not None:
            with Ledger.open(ledger) as found:
                merge_ledger(found, str(self.template / LEDGER))
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_") and k not in OTHERS}
        env = kept if ledger is None else kept | {"REGCASE_LEDGER": ledger}
        words = ["-q", *WITHOUT_OTHERS, "--regcase", *NIGHTLY, *args]
        said = root / "said.txt"
        with said.open("wb") as file, chdir(root):
            code = warm_pytest().start(words, out=file.fileno(), err=file.fileno(), env=env).wait()
        assert code == pytest.ExitCode.TESTS_FAILED, said.read_text()
        return root


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> Spread:
    return Spread(tmp_path_factory.mktemp("spread"))


@pytest.fixture(scope="module")
def serial(spread: Spread) -> bytes:
    """The decision that pytest stored when nothing was spread."""
    return stored(f"sqlite:///{spread.run('serial') / LEDGER}")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Asked":
    for name in OTHERS:
        monkeypatch.delenv(name, raising=False)
    return Asked(monkeypatch, capsys)


class Asked:
    """`regcase gate --json` in a folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, root: Path, *ledgers: str) -> bytes:
        self._monkeypatch.chdir(root)
        assert main(["gate", "--json", *(f"--ledger={each}" for each in ledgers)]) == 1
        return canonical_json(json.loads(self._capsys.readouterr().out))


def stored(url: str) -> bytes:
    with Ledger.open(url) as ledger:
        (decision,) = ledger.decisions()
    return canonical_json(decision.to_plain())


def test_what_the_one_decision_says(serial: bytes) -> None:
    gate = json.loads(serial)
    red = [(each["case_id"], each["code"]) for each in gate["reasons"] if each["red"]]
    came_back = [f"trial-{number}" for number in range(1, 20, 4)]
    assert sorted(case for case, code in red if code == "recurred") == sorted(came_back)
    assert sorted(set(red) - {(each, "recurred") for each in came_back}) == [
        ("trial-10", "check-inconclusive"),
        ("trial-10", "control-failed"),
        ("trial-14", "failed-otherwise"),
        ("trial-2", "check-broken"),
    ]
    assert gate["decision"] == "fail"
    runs = {
        case["case_id"]: scenario["run"]
        for case in gate["cases"]
        for scenario in case["scenarios"]
        if scenario["name"] == "live"
    }
    assert [runs[each] for each in came_back] == [1, 2, 3, 4, 1]
    assert runs["trial-0"] == 4


@pytest.mark.parametrize("how", WORKERS, ids=" ".join)
def test_workers(spread: Spread, serial: bytes, asked: Asked, how: list[str]) -> None:
    root = spread.run("-".join(how).replace("=", "-"), *how)
    assert stored(f"sqlite:///{root / LEDGER}") == serial
    assert asked(root) == serial


def test_serial_and_the_gate_command(spread: Spread, serial: bytes, asked: Asked) -> None:
    assert asked(spread.folder / "serial") == serial


def test_three_shards_merged_in_any_order(spread: Spread, serial: bytes, asked: Asked) -> None:
    shards = [spread.run(f"shard-{each}", f"--regcase-shard={each}/3", fresh=True) for each in (1, 2, 3)]
    ledgers = [str(each / LEDGER) for each in shards]
    assert [asked(shards[0], *order) for order in permutations(ledgers)] == [serial] * 6


@pytest.mark.parametrize("how", [[], *WORKERS], ids=lambda how: " ".join(how) or "serial")
def test_on_a_server(spread: Spread, serial: bytes, asked: Asked, how: list[str]) -> None:
    with an_empty_schema() as url:
        spread.run("-".join(["server", *how]).replace("=", "-"), *how, ledger=url)
        assert stored(url) == serial
        assert asked(spread.template, url) == serial


def test_three_shards_on_servers_merged_in_any_order(spread: Spread, serial: bytes, asked: Asked) -> None:
    with ExitStack() as stack:
        ledgers = [stack.enter_context(an_empty_schema()) for _ in range(3)]
        for number, url in enumerate(ledgers, 1):
            spread.run(f"server-shard-{number}", f"--regcase-shard={number}/3", ledger=url)
        assert [asked(spread.template, *order) for order in permutations(ledgers)] == [serial] * 6
