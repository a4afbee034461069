import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.cli import main

HEAD_OF_PLOT = "chance to be accepted                 runs until it is settled"


@pytest.fixture(autouse=True)
def _outside_of_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["rule", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    return found


def text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["rule", *arguments]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    return out


def flowing(out: str) -> str:
    return " ".join(out.split())


def test_the_rule_itself(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--rate", "0.10", "--risk", "0.05")
    assert found == {
        "schema": 1,
        "clean_reruns": 29,
        "for_rate": 29,
        "bound": "0.0982",
        "claim": "BOUNDED",
        "plan": "zero",
        "risk": "0.05",
        "expected_runs": {
            "0": 29.0,
            "0.001": 28.6,
            "0.01": 25.3,
            "0.02": 22.2,
            "0.05": 15.5,
            "0.1": 9.5,
            "0.2": 5.0,
        },
        "warnings": [],
    }
    assert document(capsys) == found


def test_what_is_not_given_is_as_the_project_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.regcase]\nmax_failure_rate = "0.20"\nplan = "allow-one"\n[tool.regcase.limits]\nrisk = "0.01"\n'
    )
    found = document(capsys)
    assert (found["plan"], found["risk"]) == ("allow-one", "0.01")
    assert found == document(capsys, "--rate", "0.20", "--risk", "0.01", "--plan", "allow-one")
    assert "  project   rate, risk, plan: as [tool.regcase] says; a case's own rule wins\n" in text(capsys)
    assert "  project   rate, risk: as [tool.regcase] says" in text(capsys, "--plan", "zero")
    given = text(capsys, "--rate", "0.10", "--risk", "0.05", "--plan", "zero")
    assert "[tool.regcase]" not in given
    assert given.startswith("29 clean live runs")


def test_a_project_that_cannot_be_read_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.regcase]\nrisk = "2"\n')
    assert main(["rule"]) == 2
    assert "pyproject.toml" in capsys.readouterr().err
    assert main(["rule", "--rate", "0.10", "--risk", "0.05", "--plan", "zero"]) == 0


@pytest.mark.parametrize(
    ("baseline", "fixed", "claim"),
    [("2/20", 68, "BOUNDED"), ("20/200", 31, "BOUNDED"), ("1/200", 3800, "BOUNDED"), ("3/10", 29, "FIXED")],
)
def test_a_baseline_says_what_fixed_takes(
    baseline: str, fixed: int, claim: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, "--rate", "0.10", "--risk", "0.05", "--baseline", baseline)
    assert (found["clean_reruns"], found["fixed"], found["claim"]) == (29, fixed, claim)


def test_what_29_clean_runs_do_not_show_after_1_of_200(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--baseline", "1/200")
    assert (found["would_pass_unchanged"], found["for_comparison"]) == ("0.86", 3800)
    says = "If nothing had changed, 29 clean runs would still happen 86 % of the time"
    assert any(each.startswith(says) for each in found["warnings"])
    assert says in flowing(text(capsys, "--baseline", "1/200"))


def test_without_a_failure_only_the_bound_may_be_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--baseline", "0/20")
    assert found["claim"] == "BOUNDED"
    assert "fixed" not in found
    assert "would_pass_unchanged" not in found
    assert found["warnings"][0].startswith("Not reproduced")


def test_one_failed_attempt_of_one_is_the_trial_that_made_the_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert "trial that made the case" in document(capsys, "--baseline", "1/1")["warnings"][0]
    assert document(capsys, "--baseline", "2/2")["warnings"] == []


@pytest.mark.parametrize(
    ("plan", "runs", "bound", "refuting_runs"),
    [("allow-one", 31, "0.10", 10.0), ("c:1", 46, "0.0991", 10.0), ("e-process", 30, "0.10", 20.0)],
)
def test_other_plans(
    plan: str, runs: int, bound: str, refuting_runs: float, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, "--plan", plan, "--baseline", "2/20")
    assert (found["clean_reruns"], found["for_rate"], found["fixed"]) == (runs, runs, 68)
    assert (found["plan"], found["bound"], found["expected_runs"]["0.2"]) == (plan, bound, refuting_runs)


def test_money_and_hours(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--cost-per-run", "0.35", "--minutes-per-run", "5")
    assert document(capsys, *arguments)["cost"] == {"money": "10.15", "hours": "2.42"}
    assert document(capsys, *arguments, "--jobs", "2")["cost"]["hours"] == "1.25"
    assert document(capsys, "--cost-per-run", "0")["cost"] == {"money": "0"}
    assert document(capsys, "--minutes-per-run", "6", "--jobs", "29")["cost"] == {"hours": "0.10"}
    out = text(capsys, *arguments, "--baseline", "2/20")
    assert "  cost      of 29 runs: 10.15 at 0.35 a run; 2.42 hours, 1 at a time\n" in out
    assert "  cost      of 68 runs: 23.80 at 0.35 a run; 5.67 hours, 1 at a time\n" in out
    assert "of 1 run: 5 at 5 a run\n" in text(capsys, "--rate", "0.96", "--cost-per-run", "5")


def test_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert text(capsys) == (
        "29 clean live runs close a case: failure rate below 10 %, at risk 5 %.\n"
        "  formula   29 = smallest n with (1 - 0.10)^n <= 0.05\n"
        "  proves    BOUNDED: below 10 %, at most 9.82 % (95 % confidence)\n"
        "  does not  show that anything changed: what fails 2 % of the time passes 55.7 %\n"
        "            of the time with no fix at all\n"
        "\n"
        "  true rate   accepted   runs on average\n"
        "        0 %    100.0 %              29.0\n"
        "      0.1 %     97.1 %              28.6\n"
        "        1 %     74.7 %              25.3\n"
        "        2 %     55.7 %              22.2\n"
        "        5 %     22.6 %              15.5\n"
        "       10 %      4.7 %               9.5\n"
        "       20 %      0.2 %               5.0\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--baseline", "2/20"], "FIXED takes 68 clean runs: below 10 %, and fails less than 2 of 20 did"),
        (["--baseline", "2/20"], "formula 68 = smallest m with C(20, 2) / C(20 + m, 2) <= 0.05 (Fisher)"),
        (["--baseline", "3/10"], "at most 9.82 % (95 % confidence), and it fails less than 3 of 10 did"),
        (["--baseline", "3/10"], "does not show why: a new model"),
        (["--rate", "0.96"], "1 clean live run closes a case: failure rate below 96 %"),
        (["--plan", "allow-one"], "31 clean live runs close a case, or 54 with 1 failure: failure"),
        (["--plan", "allow-one"], "formula exact chance to be accepted at 0.10 is 0.0498 <= 0.05"),
        (["--plan", "allow-one"], "proves BOUNDED: below 10 % (95 % confidence)"),
        (["--plan", "e-process"], "or 64 with 1 failure, 90 with 2 failures, 115 with 3 failures: failure rate"),
        (["--plan", "c:2"], "61 live runs with at most 2 failures close a case:"),
        (["--plan", "c:2"], "61 = smallest n with P(at most 2 of n fail at 0.10) <= 0.05; it is 0.0491"),
        (["--plan", "c:2"], "20 % < 0.1 % 15.0"),
        (["--plan", "e-process"], "0.1 % > 99.9 % 31.0"),
        (["--rate", "0.6"], "60 %"),
    ],
)
def test_what_is_said(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert says in flowing(text(capsys, *arguments))


def test_no_rate_above_certainty_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(document(capsys, "--rate", "0.6")["expected_runs"]) == ["0", "0.006", "0.06", "0.12", "0.3", "0.6"]


def test_the_plot(capsys: pytest.CaptureFixture[str]) -> None:
    out = text(capsys, "--plot")
    plot = out[out.index("         chance") :]
    assert plot == (
        "         chance to be accepted                 runs until it is settled\n"
        "    ┌─────────────┬───────────────────┐    ┌─────────────┬───────────────────┐\n"
        "1.00┤•            │                   │29.0┤•            │                   │\n"
        "    │•            │                   │    │ ••          │                   │\n"
        "0.75┤ •           │                   │21.8┤  ••         │                   │\n"
        "    │  •          │                   │    │    ••       │                   │\n"
        "0.50┤   •         │                   │14.5┤      ••••   │                   │\n"
        "    │    ••       │                   │    │         •••••                   │\n"
        "0.25┤     •••     │                   │ 7.2┤             │••••••••••         │\n"
        "    │       ••••• │                   │    │             │          •••••••••│\n"
        "0.00┤            •••••••••••••••••••••│ 0.0┤             │                   │\n"
        "    └┬────────────┼────────────┬──────┘    └┬────────────┼────────────┬──────┘\n"
        "     0           0.1          0.2           0           0.1          0.2\n"
        "           true failure rate                      true failure rate\n"
        "  The vertical line is the rate to rule out.\n"
    )


@pytest.mark.parametrize("columns", ["20", "80", "200"])
def test_a_plot_has_its_own_size_and_no_memory(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    first = text(capsys, "--rate", "0.7", "--plan", "c:2", "--plot")
    assert "0.7" in first.splitlines()[-3]
    assert "1.4" not in first.splitlines()[-3]
    assert text(capsys, "--rate", "0.7", "--plan", "c:2", "--plot") == first
    assert HEAD_OF_PLOT in first


def run_on(terminal: int | None, tmp_path: Path, **environment: str) -> bytes:
    """The command in a process of its own, its stdout a terminal or a file."""
    code = "import sys; from pytest_regcase.cli import main; sys.exit(main(['rule']))"
    with (tmp_path / "out").open("w+b") as file:
        subprocess.run(
            [sys.executable, "-c", code],
            stdout=file if terminal is None else terminal,
            env={**os.environ, **environment},
            check=True,
        )
        file.seek(0)
        return file.read()


def test_a_terminal_gets_the_plot_without_an_escape(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        run_on(theirs, tmp_path, PYTHONIOENCODING="ascii")
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    finally:
        os.close(ours)
    assert HEAD_OF_PLOT.encode() in shown
    assert b"1.00+*            |" in shown
    assert b"\x1b" not in shown
    assert b"\\u" not in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def test_a_file_gets_no_plot(capsys: pytest.CaptureFixture[str]) -> None:
    assert HEAD_OF_PLOT not in text(capsys)
    assert main(["rule", "--plot", "--json"]) == 0
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rate", "0"], "'--rate': '0'; allowed: a decimal number above 0 and below 1, such as \"0.05\"."),
        (["--rate", "1"], "'--rate': '1'; allowed"),
        (["--rate", "10%"], "'--rate': '10%'; allowed"),
        (["--risk", "ten"], "'--risk': 'ten'; allowed"),
        (["--risk", "inf"], "'--risk': 'inf'; allowed"),
        (["--rate", "0." + "0" * 100 + "1"], "more than 100 decimals"),
        (["--rate", "0.0000000001"], "for 29957322735 runs: nobody makes so many.\nGive a higher --rate"),
        (["--baseline", "3"], "'3'; allowed: failures/trials in whole numbers, such as 2/20."),
        (["--baseline", "a/b"], "'a/b'; allowed: failures/trials"),
        (["--baseline", "1/2/3"], "'1/2/3'; allowed: failures/trials"),
        (["--baseline", "-1/3"], "'-1/3'; allowed: failures/trials"),
        (["--baseline", "1/\u00b2"], "allowed: failures/trials"),
        (["--baseline", "1/1234567890"], "allowed: failures/trials"),
        (["--baseline", "3/2"], "'3/2'; allowed: at least one trial, and no more failures than trials."),
        (["--baseline", "0/0"], "'0/0'; allowed: at least one trial"),
        (["--plan", "sprt"], "Couldn't use the plan 'sprt'"),
        (["--plan", "thirty"], '"zero", "allow-one", "e-process" or "c:<n>"'),
        (["--cost-per-run", "-1"], "'-1'; allowed: a decimal number from 0 to a billion, such as 0.35."),
        (["--minutes-per-run", "NaN"], "'NaN'; allowed: a decimal number from 0"),
        (["--cost-per-run", "1e10"], "'1e10'; allowed"),
        (["--jobs", "0"], "0 is not in the range x>=1"),
    ],
)
def test_bad_input_is_one_clear_error(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""


def test_the_page_of_the_rules_shows_what_is_printed(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (repository / "docs" / "rules.md").read_text(encoding="utf-8")
    assert "\n".join(text(capsys, "--baseline", "2/20").splitlines()[:7]) in page


@pytest.mark.parametrize(
    ("plan", "baseline", "claim"),
    [
        # 5 failures of 103 are not fewer than 2 of 20.
        ("c:5", "2/20", "BOUNDED"),
        ("c:1", "20/200", "BOUNDED"),
        ("c:0", "3/10", "FIXED"),
        ("allow-one", "20/200", "FIXED"),
        ("allow-one", "2/20", "BOUNDED"),
    ],
)
def test_fixed_is_said_only_where_it_holds_with_every_failure_that_the_plan_allows(
    plan: str, baseline: str, claim: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert document(capsys, "--plan", plan, "--baseline", baseline)["claim"] == claim


@pytest.mark.parametrize("spelt", ["0.1_0", " 0.1", "\u0660.\u0661", "\uff10.1"])
@pytest.mark.parametrize("option", ["--rate", "--risk", "--cost-per-run"])
def test_a_number_is_written_in_plain_digits(option: str, spelt: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", option, spelt]) == 2
    assert f"'{option}': {spelt!r}; allowed: a decimal number" in capsys.readouterr().err


def test_what_is_likely_is_not_said_to_be_certain(capsys: pytest.CaptureFixture[str]) -> None:
    found = flowing(text(capsys, "--baseline", "1/20000", "--plan", "c:50", "--risk", "1e-40"))
    assert "(99.99999999999999999999999999999999999999 % confidence)" in found
    assert found.count("100.0 %") == 1  # of a rate of 0
    assert "happen 99.86 % of the time" in flowing(text(capsys, "--baseline", "1/20000"))


def test_a_closed_stdout_is_no_failure_of_ours() -> None:
    code = "import sys; from pytest_regcase.cli import main; sys.exit(main(['rule']))"
    command = ["sh", "-c", '"$0" -c "$1" >&-', sys.executable, code]
    made = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    assert (made.returncode, made.stderr) == (0, b"")
