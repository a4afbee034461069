import os
from pathlib import Path

import pytest

from pytest_regcase.config import Project, RegcaseConfig, load_project
from pytest_regcase.errors import FileError, UsageRefused

AGENT = '[tool.regcase.agents.default]\ncommand = ["my-agent", "{task_file}"]\n'


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def problems(folder: Path, text: str) -> list[str]:
    path = write(folder, text)
    with pytest.raises(FileError) as caught:
        load_project(folder)
    return [each.replace(str(path), "pyproject.toml") for each in caught.value.problems]


def test_the_nearest_configured_project_upwards_is_found(tmp_path: Path) -> None:
    outer = write(tmp_path, '[tool.regcase]\ncases = ["outer"]\n')
    write(tmp_path / "a", "[project]\nname = 'unrelated'\n")
    (tmp_path / "a" / "b").mkdir()
    project = load_project(tmp_path / "a" / "b")
    assert (project.root, project.pyproject) == (tmp_path, outer)
    assert project.case_folders == (tmp_path / "outer",)
    assert load_project(outer).root == tmp_path


def test_without_one_the_defaults_hold_here(tmp_path: Path) -> None:
    project = load_project(tmp_path)
    assert project == Project(root=tmp_path, config=RegcaseConfig())
    assert project.fixture_folders == (tmp_path / "fixtures",)
    with pytest.raises(UsageRefused, match="regcase init"):
        load_project(tmp_path, must_exist=True)


def test_a_broken_pyproject_is_an_error_with_its_line(tmp_path: Path) -> None:
    assert problems(tmp_path, "[tool.regcase]\ncases = \n")[0].startswith("pyproject.toml:2: not valid TOML")


class TestLedger:
    def test_a_path_is_below_the_root(self, tmp_path: Path) -> None:
        assert load_project(tmp_path).ledger_url() == f"sqlite:///{tmp_path}/.regcase/ledger.sqlite3"

    def test_the_variable_wins(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REGCASE_LEDGER", "postgresql+psycopg://db/x")
        assert load_project(tmp_path).ledger_url() == "postgresql+psycopg://db/x"
        monkeypatch.setenv("REGCASE_LEDGER", "other.sqlite3")
        assert load_project(tmp_path).ledger_url() == f"sqlite:///{tmp_path}/other.sqlite3"

    def test_an_empty_variable_is_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REGCASE_LEDGER", "")
        assert load_project(tmp_path).ledger_url().endswith("/.regcase/ledger.sqlite3")

    def test_a_url_in_the_file_stays(self, tmp_path: Path) -> None:
        write(tmp_path, '[tool.regcase]\nledger = "sqlite:////var/x"\n')
        assert load_project(tmp_path).ledger_url() == "sqlite:////var/x"

    def test_a_question_mark_is_refused(self, tmp_path: Path) -> None:
        write(tmp_path, '[tool.regcase]\nledger = "a?b"\n')
        with pytest.raises(UsageRefused, match="question mark"):
            load_project(tmp_path).ledger_url()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[tool.regcase]\ncase = ["x"]\n',
            '2: unknown key "case" in [tool.regcase]; did you mean "cases"?',
        ),
        (
            "[tool.regcase]\nmax_failure_rate = 0.1\n",
            "2: max_failure_rate = 0.1; allowed: a string in quotes",
        ),
        (
            '[tool.regcase]\nrisk = "5 %"\n',
            '2: risk = "5 %"; allowed: a decimal number from 0 to 1 in quotes, such as "0.10"',
        ),
        (
            AGENT + 'python = "a:b"\n',
            "1: both command and python are there for the agent default; allowed: exactly one of them",
        ),
        (
            "[tool.regcase.agents.default]\n",
            "1: neither command nor python is there for the agent default; allowed: exactly one of them",
        ),
        (
            "[tool.regcase.agents.default]\ncommand = []\n",
            "2: command is empty; allowed: a program and its arguments",
        ),
        (
            '[tool.regcase.agents.default]\npython = "my_agent"\n',
            '2: python = "my_agent"; allowed: "module:function"',
        ),
        (
            AGENT + "time_scale = 0.5\n",
            "3: agents.default.time_scale = 0.5; allowed: 1 or more",
        ),
        (
            AGENT + "deadline_seconds = 0\n",
            "3: agents.default.deadline_seconds = 0; allowed: more than 0",
        ),
        (
            AGENT + "cap_seconds = 60\n",
            "3: cap_seconds = 60, for the whole attempt, is below deadline_seconds = 90, ",
        ),
        (
            AGENT + "closing_reply = {}\n",
            "3: closing_reply is empty; allowed: text, tool_calls, or both",
        ),
        (
            AGENT + "env = { A = '{openai_base_ur}' }\n",
            "3: unknown placeholder {openai_base_ur}; did you mean {openai_base_url}?",
        ),
        (
            AGENT.replace("{task_file}", "{zzz}"),
            "2: unknown placeholder {zzz}; allowed: task_file, task, ",
        ),
        (
            AGENT.replace("default", "My_Agent"),
            '1: the agent name "My_Agent"; allowed: lower-case letters, digits and hyphens',
        ),
        (
            AGENT + 'submits_by = "mail"\n',
            '3: agents.default.submits_by = "mail"; allowed: "file", "commit", "score" or "answer"',
        ),
        (
            "[tool]\nregcase = 1\n",
            "2: tool.regcase is 1; allowed: a table",
        ),
    ],
)
def test_what_is_not_allowed_is_named(tmp_path: Path, text: str, says: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert problem.replace(": tool.regcase.", ": ").startswith(f"pyproject.toml:{says}")


@pytest.mark.parametrize(
    ("reach", "why"),
    [
        ("0.0.0.0", "every address of this machine, also those in networks that you do not know of"),
        ("dockr", "no IPv4 address"),
        ("239.1.2.3", "no address of one machine"),
    ],
)
def test_a_reach_that_is_none_on_any_machine_is_named(tmp_path: Path, reach: str, why: str) -> None:
    assert problems(tmp_path, f'[tool.regcase.supplier]\nreach = "{reach}"\n') == [
        f'pyproject.toml:2: tool.regcase.supplier.reach: "{reach}" is {why}; allowed: "loopback", "docker", or one'
        " IPv4 address of this machine"
    ]


@pytest.mark.parametrize("reach", ["loopback", "docker", "127.0.0.1", "203.0.113.9"])
def test_whose_address_a_reach_is_the_configuration_does_not_ask(tmp_path: Path, reach: str) -> None:
    write(tmp_path, f'[tool.regcase.supplier]\nreach = "{reach}"\n')
    assert load_project(tmp_path).config.supplier.reach == reach


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "confirm = 0",
            "confirm: 0 cannot be; allowed: 1 to 10, the number of runs that follow a failed check (the gate"
            " policies first, fixed:n,c and any-pass cannot be run yet)",
        ),
        ("confirm = 11", "confirm: 11 cannot be; allowed: 1 to 10, "),
        ('confirm = "any-pass"', 'confirm: "any-pass" cannot be; allowed: 1 to 10, '),
        ("confirm = true", "confirm: true cannot be; allowed: 1 to 10, "),
        ("min_sessions = 0", "min_sessions = 0; allowed: 1 or more"),
        ("claim_days = -1", "claim_days = -1; allowed: 0 or more"),
        ("max_quarantined = -1", "max_quarantined = -1; allowed: 0 or more"),
        ('independence = "some"', 'independence = "some"; allowed: "fresh", "distinct" or "off"'),
        ('comparison = "z"', 'comparison = "z"; allowed: "fisher", "boschloo" or "bayes"'),
        ('rule = "both"', 'rule = "both"; allowed: "bounded" or "fixed"'),
        ('quarantine = "yes"', 'quarantine = "yes"; allowed: "manual" or "auto"'),
        ('flake_budget = "0"', 'flake_budget = "0"; allowed: more than 0 and less than 1'),
        ('flake_budget = "1.0"', 'flake_budget = "1.0"; allowed: more than 0 and less than 1'),
    ],
)
def test_a_rule_that_cannot_be_is_named(tmp_path: Path, line: str, says: str) -> None:
    (problem,) = problems(tmp_path, f"[tool.regcase]\n{line}\n")
    assert problem.startswith(f"pyproject.toml:2: tool.regcase.{says}")


def test_a_plan_that_there_is_none_of_is_refused_where_it_is_written(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, '[tool.regcase]\nplan = "sprt"\n')
    assert problem.startswith("pyproject.toml:2: Couldn't use the plan 'sprt': ")
    assert '"zero", "allow-one", "e-process" or "c:<n>"' in problem


def test_every_rule_can_be_configured(tmp_path: Path) -> None:
    lines = (
        'plan = "c:2"',
        'rule = "fixed"',
        'comparison = "bayes"',
        'independence = "distinct"',
        "min_sessions = 3",
        "attempts_spend = true",
        'flake_budget = "0.02"',
        'quarantine = "auto"',
        "max_quarantined = 0",
        "confirm = 10",
        "claim_days = 0",
    )
    write(tmp_path, "\n".join(["[tool.regcase]", *lines]))
    config = load_project(tmp_path).config
    assert (config.plan, config.rule, config.comparison, config.independence) == (
        "c:2",
        "fixed",
        "bayes",
        "distinct",
    )
    assert (config.min_sessions, config.attempts_spend, config.confirm, config.claim_days) == (3, True, 10, 0)
    assert (config.flake_budget, config.quarantine, config.max_quarantined) == ("0.02", "auto", 0)


def test_text_of_shells_and_templates_is_no_placeholder(tmp_path: Path) -> None:
    write(tmp_path, '[tool.regcase.agents.a]\ncommand = ["sh", "-c", "${HOME} {{x}} {a,b} { b } {1}"]\n')
    assert load_project(tmp_path).config.agents["a"].command is not None


def test_this_project_is_configured(repository: Path) -> None:
    assert "default" in load_project(repository / "tests").config.agents
    assert os.environ.get("REGCASE_LEDGER") is None


@pytest.mark.parametrize("table", ["", "limits"])
@pytest.mark.parametrize("key", ["max_failure_rate", "risk"])
@pytest.mark.parametrize("value", ["0", "1.0"])
def test_a_rate_that_no_number_of_runs_can_meet_is_an_error(
    table: str, key: str, value: str, tmp_path: Path
) -> None:
    name = ".".join(filter(None, ("tool.regcase", table)))
    (tmp_path / "pyproject.toml").write_text(f'[{name}]\n{key} = "{value}"\n')
    with pytest.raises(FileError) as caught:
        load_project(tmp_path)
    (says,) = caught.value.problems
    assert says.endswith(f':2: {name}.{key} = "{value}"; allowed: more than 0 and less than 1')


@pytest.mark.parametrize("url", ["https://me:hidden@api.example/v1", "https://api.example/v1?key=hidden"])
def test_a_base_url_with_what_is_not_sent_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    assert problems(tmp_path, f'[tool.regcase.upstream]\nbase_url = "{url}"\n') == [
        "pyproject.toml:2: tool.regcase.upstream.base_url: it holds a user name, a query or a fragment, which are"
        " not sent; allowed: scheme, host, port and path, and the name of the key's variable in api_key_env"
    ]


@pytest.mark.parametrize("url", ["", "api.example/v1", "file:///etc", "http://", "http://x:99999/"])
def test_a_base_url_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    assert problems(tmp_path, f'[tool.regcase.upstream]\nbase_url = "{url}"\n') == [
        "pyproject.toml:2: tool.regcase.upstream.base_url: it is no http or https URL"
    ]


@pytest.mark.parametrize("key", ["time_scale", "deadline_seconds", "cap_seconds"])
def test_an_endless_number_is_refused(tmp_path: Path, key: str) -> None:
    assert problems(tmp_path, f'[tool.regcase.agents.a]\ncommand = ["x"]\n{key} = inf\n') == [
        f"pyproject.toml:3: tool.regcase.agents.a.{key} = Infinity; allowed: Input should be a finite number"
    ]
