"""No sequence of commands gives a case a citation, and so a cause, without a file from outside."""

import contextlib
import gzip
import io
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pytest_regcase.case_files import find_case_files, load_case, seal_case
from pytest_regcase.cli import COMMANDS, main
from pytest_regcase.records.canonical import digest
from tests.session.case_life.evidence_project import make_project

OUTSIDE = "outside"
HYPOTHESES = ("deadline", "resource-exhaustion", "auth")
WHO = ("--by", "mina", "--json")
AMENDED = (
    'observation.cause_status="confirmed"',
    "observation.observed_at=2026-11-12T09:31:07Z",
    'title="killed for want of memory"',
    'hypotheses.auth.status="confirmed"',
    "expected_recovery.max_retries=1",
)
SAID = (
    ("compare", "t37", "--log", "outside/kern.log"),
    ("compare", "t37", "--log", "outside/kern.log", "--json"),
    ("fingerprints", "--log", "outside/kern.log", "--json"),
    ("fingerprints",),
    ("show", "t37"),
    ("simulations", "--json"),
    ("history", "t37"),
    ("handover", "t37"),
    ("handover", "t37", "--json"),
)


def run(*arguments: str) -> tuple[int, str]:
    """Run one command as a user would, and return its exit code and what it said."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    assert code in (0, 1, 2, 3), (arguments, err.getvalue())
    return code, out.getvalue()


def make_template(root: Path) -> None:
    """A project in which everything but ``outside/`` and pyproject.toml was made by us, the attached log too."""
    path = make_project(root)
    attached = path.parent / "recorded" / "attached" / "kern.log"
    before = digest(attached.read_bytes())
    shutil.copy(root / ".regcase" / "sessions" / "s1" / "a1" / "out" / "kern.log", attached)
    text = path.read_text().replace(before, digest(attached.read_bytes()))
    path.write_text(text[: text.index("[seal]")])
    seal_case(path)


class Commands(RuleBasedStateMachine):
    """One project, and any commands on it."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.before = Path.cwd()
        self.root = Path(tempfile.mkdtemp())
        self.said = 0

    @initialize()
    def begin(self) -> None:
        shutil.copytree(self.template, self.root, dirs_exist_ok=True)
        os.chdir(self.root)

    def teardown(self) -> None:
        os.chdir(self.before)
        shutil.rmtree(self.root)

    def ours(self) -> list[Path]:
        """Every file in the project that is neither from outside nor somebody's configuration."""
        files = (path for path in sorted(Path().rglob("*")) if path.is_file() and path.name != "pyproject.toml")
        return [path for path in files if path.parts[0] != OUTSIDE and not path.name.startswith(".git")]

    @rule(
        which=st.integers(0, 99),
        line=st.integers(1, 6),
        hypothesis=st.sampled_from(HYPOTHESES),
        stance=st.sampled_from(("--supports", "--refutes")),
    )
    def cite_ours(self, which: int, line: int, hypothesis: str, stance: str) -> None:
        files = self.ours()
        place = f"{files[which % len(files)]}:{line}"
        code, _ = run(
            "evidence", "t37", "--hypothesis", hypothesis, stance, place, "--why", "x", "--why-outside", "y", *WHO
        )
        assert code in (1, 2), place

    @rule(line=st.integers(2, 4), hypothesis=st.sampled_from(HYPOTHESES))
    def cite_what_is_from_outside(self, line: int, hypothesis: str) -> None:
        place = f"{OUTSIDE}/kern.log:{line}"
        run("evidence", "t37", "--hypothesis", hypothesis, "--supports", place, "--why", "x", *WHO)

    @rule(number=st.integers(1, 3))
    def withdraw(self, number: int) -> None:
        run("evidence", "t37", "--withdraw", f"ev-{number}", "--why", "x", *WHO)

    @rule(which=st.integers(0, 99), packed=st.booleans())
    def copy_ours(self, which: int, packed: bool) -> None:
        files = self.ours()
        content = files[which % len(files)].read_bytes()
        Path("made").mkdir(exist_ok=True)
        self.said += 1
        Path("made", f"copy-{self.said}.txt").write_bytes(gzip.compress(content) if packed else content)

    @rule(command=st.sampled_from(SAID))
    def keep_what_a_command_says(self, command: tuple[str, ...]) -> None:
        if command[0] in COMMANDS:
            Path("made").mkdir(exist_ok=True)
            self.said += 1
            Path("made", f"said-{self.said}.txt").write_text(run(*command)[1])

    @rule(field=st.sampled_from(AMENDED))
    def amend(self, field: str) -> None:
        run("amend", "t37", "--field", field, "--why", "x", *WHO)

    @rule(
        command=st.sampled_from(
            (
                ("seal", "t37"),
                ("redact", "t37", "--by", "mina"),
                ("fix", "t37", *WHO),
                ("close", "t37", *WHO),
                ("reopen", "t37", "--why", "x", *WHO),
                ("retire", "t37", "--why", "x", *WHO),
            )
        )
    )
    def any_other(self, command: tuple[str, ...]) -> None:
        run(*command)

    @invariant()
    def every_citation_is_of_a_file_from_outside(self) -> None:
        for path in find_case_files([Path("cases")]):
            case = load_case(path).case
            assert all(each.file.startswith(f"{OUTSIDE}/") for each in case.evidence)
            standing = [each for each in case.evidence if each.withdrawn is None]
            assert case.cause_status == "unknown" or standing


@pytest.fixture
def template(tmp_path: Path) -> Path:
    make_template(tmp_path)
    return tmp_path


def test_no_sequence_of_commands_confirms_without_a_file_from_outside(template: Path) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    machine = type("Commands", (Commands,), {"template": template})
    run_state_machine_as_test(machine, settings=settings(max_examples=5, stateful_step_count=8, deadline=None))


def test_a_file_from_outside_does(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(template)
    code, _ = run(
        "evidence", "t37", "--hypothesis", "auth", "--supports", "outside/access.log:3", "--why", "x", *WHO
    )
    assert code == 0
    assert load_case(template / "cases" / "t37").case.cause_status == "confirmed"
