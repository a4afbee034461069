"""Mutation testing of one module of the rules: ``python -m tests.mutation rerun``.

Copies the project to a temporary folder, lets mutmut change the module there, and runs tests/rules against each
change. Survivors that no test can tell from the original stand in tests/rules/equivalent_mutants.toml with the
reason; of the others at most 5 % may live. Not part of CI: a module takes up to a few minutes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
EQUIVALENT = Path(__file__).parent / "rules" / "equivalent_mutants.toml"
MOST_LIVING_PERCENT = 5
DEAD = frozenset({"killed", "timeout", "segfault"})
ALIVE = frozenset({"survived", "no tests"})
SETTINGS = """
[tool.mutmut]
source_paths = ["pytest_regcase"]
only_mutate = ["pytest_regcase/rules/{module}.py"]
pytest_add_cli_args_test_selection = ["tests/rules"]
pytest_add_cli_args = ["-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not slow"]
also_copy = ["fixtures", "cases"]
"""


@dataclass(frozen=True)
class Change:
    """What a mutant is: the lines of a function that it takes out and puts in, without their indentation."""

    function: str
    before: str
    after: str


def main(arguments: list[str]) -> int:
    """Test one module; 0 where at most 5 % of the mutants that can be told apart live."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("module", help="a module of pytest_regcase/rules, without .py")
    module = parser.parse_args(arguments).module
    if not (ROOT / "pytest_regcase" / "rules" / f"{module}.py").is_file():
        parser.error(f"there is no module pytest_regcase/rules/{module}.py")
    mutmut = Path(sys.executable).with_name("mutmut")
    if not mutmut.is_file():
        parser.error("mutmut is not installed here: pip install -e '.[dev,test]'")
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = _copy(Path(folder) / "project", module)
        ran = _run(copy, mutmut, "run")
        verdicts = dict(_verdicts(_run(copy, mutmut, "results", "--all", "true")))
        unclear = sorted(set(verdicts.values()) - DEAD - ALIVE)
        if unclear or not verdicts:
            # A red test before any change leaves every mutant unchecked, which must not read as killed.
            print(f"{ran[-3000:]}\n{module}: no result, mutants are {', '.join(unclear)}", file=sys.stderr)
            return 2
        living = {
            name: _change(_run(copy, mutmut, "show", name), name)
            for name, verdict in verdicts.items()
            if verdict in ALIVE
        }
    return _report(module, len(verdicts), living)


def _copy(target: Path, module: str) -> Path:
    shutil.copytree(
        ROOT, target, ignore=shutil.ignore_patterns(".*_cache", ".git", ".venv", ".regcase", "mutants")
    )
    with (target / "pyproject.toml").open("a") as file:
        file.write(SETTINGS.format(module=module))
    return target


def _run(folder: Path, mutmut: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [mutmut, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def _verdicts(results: str) -> Iterator[tuple[str, str]]:
    for line in results.splitlines():
        name, found, verdict = line.strip().partition(": ")
        if found and "__mutmut_" in name:
            yield name, verdict


def _change(diff: str, name: str) -> Change:
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++", "#"))]
    function = name.rpartition("__mutmut_")[0].rpartition(".")[2].removeprefix("x_")
    return Change(function, _side(lines, "-"), _side(lines, "+"))


def _side(lines: list[str], sign: str) -> str:
    return " ".join(line[1:].strip() for line in lines if line.startswith(sign))


def _report(module: str, mutants: int, living: dict[str, Change]) -> int:
    with EQUIVALENT.open("rb") as file:
        listed = tomllib.load(file).get(module, [])
    known = {Change(each["function"], each["before"], each["after"]) for each in listed}
    missed = {name: change for name, change in living.items() if change not in known}
    equivalent = len(living) - len(missed)
    for name, change in missed.items():
        print(f"lives: {name}\n  - {change.before}\n  + {change.after}")
    for change in known - set(living.values()):
        print(f"listed as equivalent, but does not live: {change.function}: {change.before} -> {change.after}")
    counted = mutants - equivalent
    print(f"{module}: {mutants} mutants, {equivalent} equivalent, {len(missed)} of the other {counted} live")
    return 0 if len(missed) * 100 <= MOST_LIVING_PERCENT * counted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
