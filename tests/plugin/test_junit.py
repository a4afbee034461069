"""The file of `--junitxml`: one testcase a check, as it is shown; counts right; other tests untouched."""

import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from tests.plugin.gate_project import GateProject

ORDINARY = """
import pytest

@pytest.fixture
def breaks():
    yield
    raise AssertionError("down")

def test_fails_twice(breaks):
    assert not "up"

def test_breaks_afterwards(breaks):
    pass

@pytest.mark.parametrize("p", ["a::b"])
def test_says(p):
    print("seen", p)

@pytest.mark.skip(reason="not now")
def test_skipped():
    pass
"""
QUARANTINE = """
[quarantine]
owner = "o"
reason = "noisy"
kind = "flaky"
since = 2000-01-01
expires = 2999-01-01
"""


def suite_of(project: GateProject) -> ET.Element:
    suite = ET.parse(project.root / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases))
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert suite.get(name) == str(len(suite.findall(f"testcase/{tag}"))), name
    return suite


def properties(element: ET.Element) -> dict[str, str]:
    return {each.attrib["name"]: each.attrib["value"] for each in element.findall("properties/property")}


def result(case: ET.Element) -> str:
    return next((tag for tag in ("failure", "error", "skipped") if case.find(tag) is not None), "passed")


def by_scenario(suite: ET.Element) -> dict[str, ET.Element]:
    ours = [case for case in suite.findall("testcase") if case.attrib["classname"].startswith("cases.")]
    found = {"::".join(case.attrib["classname"].split(".")[1::3]): case for case in ours}
    assert len(found) == len(ours)
    return found


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_one_testcase_a_check_with_its_tries(project: GateProject, parallel: tuple[str, ...]) -> None:
    project.add_case("trial-1", ["stall-v1", "killed-v1"])
    project.add_case("trial-2", [])
    project.add_case("noisy", ["stall-v1"], QUARANTINE)
    bad = project.add_case("bad", [])
    bad.write_text(bad.read_text() + "\nunknown = 1\n")
    project.root.joinpath("test_ordinary.py").write_text(ORDINARY)
    script = {
        "trial-1::stall-v1": ["not-recovered", "recovered", "recovered"],
        "trial-1::killed-v1": ["not-recovered"] * 3,
        "noisy::stall-v1": ["not-recovered"],
    }
    if parallel:
        script["trial-2::control"] = ["die"]
    project.script(script)
    arguments = ("--junitxml=junit.xml", "-o", "junit_logging=system-out", *parallel)
    project.run("test_ordinary.py", *arguments, regcase=False)
    plain = suite_of(project).findall("testcase")

    project.run("--regcase-with-tests", *arguments)
    suite = suite_of(project)
    ours = by_scenario(suite)
    assert {name: result(case) for name, case in ours.items()} == {
        "trial-1::control": "passed",
        "trial-2::control": "failure" if parallel else "passed",
        "trial-1::stall-v1": "passed",
        "trial-1::killed-v1": "failure",
        "noisy::control": "passed",
        "noisy::stall-v1": "skipped",
        "bad": "failure",
    }
    skipped = ours["noisy::stall-v1"].find("skipped")
    assert skipped is not None
    assert "quarantined until 2999-01-01 (owner o): noisy" in skipped.attrib["message"]
    flaky = properties(ours["trial-1::stall-v1"])
    assert flaky["regcase.tries"] == "not-recovered, recovered, recovered"
    assert flaky["regcase.result"] == "flaky"
    assert (flaky["regcase.case"], flaky["regcase.scenario"], flaky["regcase.run"]) == ("trial-1", "stall-v1", "1")
    assert flaky["regcase.broken"] == "max_retries"
    assert flaky["regcase.folder"] == "a/folder"
    assert {name for name in flaky if "digest" in name} == {f"regcase.digest.{each}" for each in _DIGESTS}
    assert properties(ours["trial-1::killed-v1"])["regcase.verdict"] == "not-recovered"
    if parallel:
        tries = properties(ours["trial-2::control"])["regcase.tries"]
        assert tries == "inconclusive (worker-crashed), finished"

    assert properties(suite)["regcase.decision"] == "fail"
    said = [each.attrib["value"] for each in suite.findall("properties/property[@name='regcase.reason']")]
    assert "check-broken: trial-1: killed-v1: max_retries broken in 3 of 3 attempts" in said
    others = [case for case in suite.findall("testcase") if case not in ours.values()]
    assert Counter(map(_without_time, others)) == Counter(map(_without_time, plain))


_DIGESTS = ("case", "agent", "simulation")


def _without_time(case: ET.Element) -> str:
    copy = ET.fromstring(ET.tostring(case))
    del copy.attrib["time"]
    return ET.tostring(copy, encoding="unicode")


def test_marked_functions_are_checks_like_the_others(project: GateProject) -> None:
    project.add_case("trial-1", ["stall-v1"])
    project.root.joinpath("test_mine.py").write_text(
        "import pytest\n\n@pytest.mark.regcase('trial-1')\ndef test_it(regcase):\n"
        "    if regcase.scenario == 'stall-v1':\n        raise ValueError('a bug')\n"
    )
    project.run("--junitxml=junit.xml")
    cases = {case.attrib["name"]: case for case in suite_of(project) if "test_mine" in case.get("classname", "")}
    said = {name: (result(case), properties(case).get("regcase.scenario")) for name, case in cases.items()}
    assert said == {"test_it[control]": ("passed", "control"), "test_it[stall-v1]": ("failure", "stall-v1")}
    assert properties(cases["test_it[stall-v1]"])["regcase.agent"] == "test_mine.py::test_it"
    assert "," in properties(cases["test_it[stall-v1]"])["regcase.tries"]


def test_a_red_gate_over_green_checks_is_seen(project: GateProject) -> None:
    project.add_case("trial-1", ["stall-v1", "killed-v1"])
    project.run("--junitxml=out/junit.xml", "-k", "control", "-o", "junit_family=xunit1", "--junitprefix=ci")
    root = ET.parse(project.root / "out" / "junit.xml").getroot()
    names = [(case.attrib["classname"], result(case)) for case in root.iter("testcase")]
    assert names == [("ci.cases.trial-1.case.toml.control", "passed"), ("regcase", "failure")]
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert "trial-1: 2 of 3 planned not run: stall-v1, killed-v1" in str(failure.text)


@pytest.mark.parametrize("verdict", ["interrupt", "terminate-pytest"])
def test_an_interrupted_check_did_not_end(project: GateProject, verdict: str) -> None:
    project.add_case("trial-1", ["stall-v1"])
    project.script({"trial-1::stall-v1": ["inconclusive", verdict]})
    project.run("--junitxml=junit.xml")
    suite = suite_of(project)
    ours = by_scenario(suite)
    assert {name: result(case) for name, case in ours.items()} == {
        "trial-1::control": "passed",
        "trial-1::stall-v1": "error",
    }
    assert properties(ours["trial-1::stall-v1"])["regcase.tries"].startswith("inconclusive (not-delivered)")
    assert properties(suite)["regcase.decision"] == "unproven"


def test_a_file_that_cannot_be_corrected_is_said_and_decides_nothing(project: GateProject) -> None:
    project.add_case("trial-1", [])
    conftest = project.root / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + "\n@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish():\n"
        + "    Path('junit.xml').write_text('<html />')\n"
    )
    outcome = project.run("--junitxml=junit.xml")
    outcome.stdout.fnmatch_lines(["*regcase: Couldn't correct *junit.xml: it holds no <testsuite>. It stays as*"])
    assert outcome.ret == pytest.ExitCode.OK
