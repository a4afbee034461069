"""Makes the SWE-bench and JUnit samples in this folder with the packages themselves, without containers.

Needs `swebench==5.0.2` (its `harness` modules import `docker`, `datasets`, `modal`, ...), pytest and
pytest-rerunfailures. Run from the repository root: ``python -m tests.gold.make_benchmark_samples``. Reports are
made by the harness's own grading and reporting; the logs that it grades are written here in its wording.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

GOLD = Path(__file__).parent
MODEL, RUN = "small-agent", "nightly-7"
PATCH = """diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
PASSED = "PASSED test_calc.py::test_add\nPASSED test_calc.py::test_name\n2 passed in 0.01s"
FAILED = "FAILED test_calc.py::test_add\nPASSED test_calc.py::test_name\n1 failed, 1 passed in 0.02s"
OUTPUTS = {
    "calc__calc-1": PASSED,
    "calc__calc-2": FAILED,
    "calc__calc-3": f"{FAILED}\nKilled",
    "calc__calc-4": "Timeout error: 1800 seconds exceeded.\n>>>>> Tests Timed Out",
    "calc__calc-5": None,
}


def main() -> None:
    """Make all samples."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        make_swe_bench()
        make_junit(Path(scratch))
        os.chdir(here)


def make_swe_bench() -> None:
    """Grade six predictions, of which one is empty; the data set has a seventh instance."""
    # By name: the type checker runs where the harness is not installed.
    grading: Any = import_module("swebench.harness.grading")
    reporting: Any = import_module("swebench.harness.reporting")
    spec: Any = import_module("swebench.types").TestSpec
    ids = [*OUTPUTS, "calc__calc-6"]
    predictions: dict[str, dict[str, Any]] = {
        name: {
            "instance_id": name,
            "model_name_or_path": MODEL,
            "model_patch": "" if name.endswith("6") else PATCH,
        }
        for name in ids
    }
    for name, output in OUTPUTS.items():
        folder = Path("logs/run_evaluation") / RUN / MODEL / name
        folder.mkdir(parents=True)
        (folder / "patch.diff").write_text(PATCH)
        (folder / "run_instance.log").write_text(_instance_log(name, folder, output))
        if output is None:
            continue
        test_output = folder / "test_output.txt"
        test_output.write_text(f"+ : '>>>>> Start Test Output'\n{output}\n+ : '>>>>> End Test Output'\n")
        report = grading.get_eval_report(
            test_spec=spec(
                instance_id=name,
                image="",
                eval_script_list=[],
                repo="calc/calc",
                version="1",
                FAIL_TO_PASS=["test_calc.py::test_add"],
                PASS_TO_PASS=["test_calc.py::test_name"],
                log_parser="parse_log_pytest",
                eval_type="pass_and_fail",
            ),
            prediction=predictions[name],
            test_log_path=str(test_output),
            include_tests_status=True,
        )
        (folder / "report.json").write_text(json.dumps(report, indent=4))
    run_report = reporting.make_run_report(
        predictions, [{"instance_id": name} for name in [*ids, "calc__calc-7"]], RUN
    )
    logs = Path("logs/run_evaluation") / RUN / MODEL
    for kind in ("swe-bench-instance", "swe-bench-report", "swe-bench-predictions"):
        shutil.rmtree(GOLD / kind, ignore_errors=True)
        (GOLD / kind).mkdir()
    shutil.copy(run_report, GOLD / "swe-bench-report" / "run.json")
    shutil.copy(logs / "calc__calc-2" / "report.json", GOLD / "swe-bench-instance" / "unresolved.json")
    shutil.copy(logs / "calc__calc-1" / "report.json", GOLD / "swe-bench-instance" / "resolved.json")
    shutil.copytree(logs / "calc__calc-4", GOLD / "swe-bench-instance" / "timed_out")
    shutil.copytree(logs / "calc__calc-5", GOLD / "swe-bench-instance" / "no_report")
    # As mini-swe-agent 1.17.0 (an exception's text), 2.4.6 (null) and our own recorder (a mark) write a crash.
    odd: dict[str, dict[str, Any]] = {
        "calc__calc-7": {"model_patch": "Request timed out. (server 2)"},
        "calc__calc-8": {"model_patch": None},
        "calc__calc-9": {"model_patch": None, "status": "agent_error"},
    }
    predictions |= {
        name: {"instance_id": name, "model_name_or_path": MODEL, **record} for name, record in odd.items()
    }
    lines = "".join(json.dumps(each) + "\n" for each in predictions.values())
    (GOLD / "swe-bench-predictions" / "predictions.jsonl").write_text(lines)
    (GOLD / "swe-bench-predictions" / "preds.json").write_text(json.dumps(predictions, indent=2))


def _instance_log(name: str, folder: Path, output: str | None) -> str:
    lines = [
        f"Creating container for {name}...",
        f"Intermediate patch for {name} written to {folder}/patch.diff, now applying to container...",
        ">>>>> Applied Patch:",
    ]
    if output is not None and "Timed Out" in output:
        lines.append(">>>>> Tests Timed Out")
    return "".join(f"2026-04-12 09:31:0{number},123 - INFO - {each}\n" for number, each in enumerate(lines))


TESTS = """
import pytest

class StallError(Exception):
    pass

@pytest.fixture
def sandbox():
    raise RuntimeError("container not found")

@pytest.fixture
def leaky():
    yield
    raise OSError("could not save the partial patch")

def test_good(record_property):
    record_property("task_id", "calc-001")
    record_property("model", "small-model")
    record_property("agent_commit", "0123abc")

@pytest.mark.parametrize("epoch", [1, 2])
def test_wrong(epoch, record_property):
    record_property("seed", 7)
    print("\\x1b[31mred\\x1b[0m")
    assert "a - b" == "a + b"

def test_stall():
    raise StallError("no bytes for 600 s: \\x1b[31mgone\\x1b[0m")

def test_sandbox(sandbox):
    pass

def test_teardown(leaky):
    pass

def test_both(leaky):
    assert 0.0 == 1.0, "score 0.0"

tries = []

@pytest.mark.flaky(reruns=1)
def test_flaky():
    tries.append(1)
    assert len(tries) > 1

@pytest.mark.skip(reason="quarantined")
def test_skipped():
    pass

@pytest.mark.xfail(reason="known")
def test_known():
    assert False
"""


def make_junit(scratch: Path) -> None:
    """Run one small test file, and write what pytest says of it in both of its spellings."""
    shutil.rmtree(GOLD / "junit", ignore_errors=True)
    (GOLD / "junit").mkdir()
    (scratch / "test_agent.py").write_text(TESTS)
    (scratch / "pytest.ini").write_text("[pytest]\n")
    for family in ("xunit1", "xunit2"):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"),
                *("--junitxml", "out.xml", "-o", f"junit_family={family}", "test_agent.py"),
            ],
            cwd=scratch,
            check=False,
        )
        if done.returncode != 1:
            raise SystemExit("the tests were to fail")
        written = (scratch / "out.xml").read_text()
        hostname = written.partition('hostname="')[2].partition('"')[0]
        (GOLD / "junit" / f"{family}.xml").write_text(written.replace(hostname, "ci-host") + "\n")


if __name__ == "__main__":
    main()
