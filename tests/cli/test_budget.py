import json
from typing import Any

import pytest

from pytest_regcase.cli import main


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["budget", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    return found


def test_200_cases_without_a_rerun(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "--cases", "200", "--false-red", "0.05") == {
        "schema": 1,
        "flake_budget": "0.000256",
        "cases": 200,
        "false_red": "0.05",
        "reruns": 0,
        "correlation": "0",
        "green_probability": "0.950",
        "clean_reruns": 11681,
        "warnings": [
            "11681 clean runs of each case are not affordable: estimate the rate over the first attempts of all"
            " cases together."
        ],
    }


def test_200_cases_with_one_rerun(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--cases", "200", "--false-red", "0.05", "--reruns", "1")
    assert (found["flake_budget"], found["clean_reruns"]) == ("0.0160", 186)
    assert found["warnings"] == [
        "Attempts are taken as independent. If a shared outage or prompt cache correlates them by 0.2, the same"
        " suite is red by chance in 49 % of its runs.",
        "Reruns hide regressions: a case that now fails 30 % of its attempts is red in 9 % of the runs.",
    ]


def test_correlated_attempts_leave_less(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--cases", "200", "--false-red", "0.05", "--reruns", "1", "--correlation", "0.2")
    assert (found["flake_budget"], found["correlation"]) == ("0.00127", "0.2")
    assert [each.split()[0] for each in found["warnings"]] == ["2347", "Reruns"]
    assert found["green_probability"] == "0.950"


def test_correlation_without_reruns_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--cases", "20", "--false-red", "0.2", "--correlation", "0.2")
    assert found["flake_budget"] == "0.0110"
    assert found["warnings"] == [
        "Without reruns it makes no difference how the attempts of a case are correlated."
    ]


def test_a_budget_is_printed_downwards(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "--cases", "1", "--false-red", "0.1239")["flake_budget"] == "0.123"
    assert document(capsys, "--cases", "2", "--false-red", "0.19")["flake_budget"] == "0.100"


def test_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["budget", "--cases", "200", "--false-red", "0.05", "--reruns", "1"]) == 0
    assert capsys.readouterr().out == (
        "Flake budget 0.0160: each of 200 cases may fail by chance in 1.6 % of its\n"
        "    attempts, for the suite to be red by chance in 5 % of its runs.\n"
        "  formula   q = (1 - (1 - 0.05)^(1/200))^(1/2)\n"
        "  to show   that one case keeps it: 186 clean runs, at risk 5 %\n"
        "  gate      confirm:2 keeps that share with cases that flake 1 % (the default\n"
        "            flake_budget): a failed check is run 2 more times and is red if any\n"
        "            of them fails\n"
        "  warning   Attempts are taken as independent. If a shared outage or prompt\n"
        "            cache correlates them by 0.2, the same suite is red by chance in\n"
        "            49 % of its runs.\n"
        "  warning   Reruns hide regressions: a case that now fails 30 % of its attempts\n"
        "            is red in 9 % of the runs.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--reruns", "0"], "  formula   q = 1 - (1 - 0.05)^(1/2000)\n"),
        (
            ["--reruns", "2", "--correlation", "0.1"],
            "  formula   the q with P(all 3 attempts fail) = 1 - (1 - 0.05)^(1/2000),\n"
            "            beta-binomial with correlation 0.1\n",
        ),
        (
            [],
            "  gate      no confirm:m keeps that share with cases that flake 1 % (the default\n"
            "            flake_budget): confirm:1 is red too often already\n",
        ),
    ],
)
def test_formulas_and_what_the_gate_can_keep(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["budget", "--cases", "2000", "--false-red", "0.05", *arguments]) == 0
    assert says in capsys.readouterr().out


def test_one_confirm_run_is_one_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["budget", "--cases", "400", "--false-red", "0.05"]) == 0
    assert "run 1 more time and is red" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--false-red", "0.05"], "Missing option '--cases'"),
        (["--cases", "200"], "Missing option '--false-red'"),
        (["--cases", "ten", "--false-red", "0.05"], "'ten' is not a valid integer"),
        (["--cases", "0", "--false-red", "0.05"], "Couldn't plan for 0 cases."),
        (["--cases", "2000000", "--false-red", "0.05"], "from 1 to 1,000,000."),
        (
            ["--cases", "2", "--false-red", "0"],
            "'0'; allowed: a decimal number above 0 and below 1, such as \"0",
        ),
        (["--cases", "2", "--false-red", "5 %"], "'--false-red': '5 %'; allowed"),
        (["--cases", "2", "--false-red", "nan"], "'--false-red': 'nan'; allowed"),
        (["--cases", "2", "--false-red", "0.05", "--reruns", "-1"], "Couldn't plan for -1 reruns."),
        (
            ["--cases", "2", "--false-red", "0.05", "--correlation", "1.5"],
            "'1.5'; allowed: a decimal number from",
        ),
    ],
)
def test_bad_input_is_one_clear_error(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["budget", *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""


def test_what_is_likely_is_not_said_to_be_certain(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--cases", "200", "--false-red", "0.0000001")
    assert found["green_probability"] == "0.999999900"
    assert document(capsys, "--cases", "2", "--false-red", "1e-60")["green_probability"] == f"0.{'9' * 60}000"
    hidden = document(capsys, "--cases", "100000", "--false-red", "0.99", "--reruns", "50")["warnings"][0]
    assert hidden.endswith("red by chance in 99.9999 % of its runs.")
