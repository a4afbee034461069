"""Correcting what pytest wrote: one testcase a check, counts that are right, nothing else touched."""

import xml.etree.ElementTree as ET

import pytest

from pytest_regcase.reporters.junit_file import CheckElement, SuiteFacts, address, one_testcase_a_check

CHECK = "cases/a/case.toml::stall-v1::check"
CHECK_ATTRIBUTES = 'classname="cases.a.case.toml.stall-v1" name="check"'


def element(*testcases: str, counts: str = 'tests="9" errors="9" failures="9" skipped="9"') -> bytes:
    suite = f'<testsuite name="pytest" {counts}>{"".join(testcases)}</testsuite>'
    return f'<?xml version="1.0" encoding="utf-8"?><testsuites>{suite}</testsuites>'.encode()


def a_try(inner: str = "", seconds: str = "1.000", item: str | None = CHECK) -> str:
    said = f'<properties><property name="regcase.item" value="{item}" /></properties>' if item else ""
    return f'<testcase {CHECK_ATTRIBUTES} time="{seconds}">{said}{inner}</testcase>'


def corrected(xml: bytes, *checks: CheckElement, **facts: object) -> ET.Element:
    suite = ET.fromstring(one_testcase_a_check(xml, checks, SuiteFacts(**facts))).find("testsuite")  # type: ignore[arg-type]
    assert suite is not None
    return suite


def counts(suite: ET.Element) -> dict[str, str | None]:
    return {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}


def test_the_last_try_stays_with_the_time_of_all_and_the_checks_properties() -> None:
    xml = element(a_try(), a_try(seconds="0.250"), a_try("<failure message='m'>text</failure>", seconds="2.000"))
    suite = corrected(xml, CheckElement(CHECK, True, (("regcase.tries", "a, b, c"),)))
    (case,) = suite.findall("testcase")
    assert case.get("time") == "3.250"
    assert [child.tag for child in case] == ["properties", "failure"]
    assert [each.attrib for each in case.iter("property")] == [
        {"name": "regcase.item", "value": CHECK},
        {"name": "regcase.tries", "value": "a, b, c"},
    ]
    assert counts(suite) == {"tests": "1", "failures": "1", "errors": "0", "skipped": "0"}


def test_an_element_without_properties_is_known_by_its_name() -> None:
    xml = element(a_try(), a_try("<error message='worker crashed' />", item=None))
    (case,) = corrected(xml, CheckElement(CHECK, True)).findall("testcase")
    assert case.find("error") is not None


def test_two_items_with_one_name_keep_one_testcase_each() -> None:
    others = "cases/a/case/toml::stall-v1::check"
    assert address(others, None) == address(CHECK, None)
    xml = element(a_try(), a_try(item=others), a_try("<failure message='m' />"))
    suite = corrected(xml, CheckElement(CHECK, True), CheckElement(others, True))
    assert [case.find("failure") is not None for case in suite.findall("testcase")] == [False, True]


def test_what_did_not_come_to_its_end_is_an_error_also_where_nothing_of_it_stands_there() -> None:
    other = "cases/b/case.toml::control::check"
    suite = corrected(element(a_try()), CheckElement(CHECK, False), CheckElement(other, False))
    cases = suite.findall("testcase")
    assert [case.get("classname") for case in cases] == ["cases.a.case.toml.stall-v1", "cases.b.case.toml.control"]
    assert all("did not come to its end" in str(case.find("error").get("message")) for case in cases)  # type: ignore[union-attr]
    assert counts(suite) == {"tests": "2", "failures": "0", "errors": "2", "skipped": "0"}


def test_as_many_nameless_testcases_go_as_our_items_left() -> None:
    nameless = '<testcase time="0.000" />'
    told = '<testcase time="0.000"><error message="m" /></testcase>'
    suite = corrected(element(nameless, a_try(), told, nameless, nameless), CheckElement(CHECK, True), nameless=2)
    assert [case.get("name") for case in suite.findall("testcase")] == ["check", None, None]
    assert counts(suite)["errors"] == "1"


def test_other_elements_and_properties_stay_as_they_are() -> None:
    other = (
        '<testcase classname="test_x" name="test_a[1::2]" time="0.100"><properties><property name="regcase-like"'
        ' value="v" /></properties><failure message="a&#10;b">&lt;x&gt;\n</failure><system-out>o</system-out>'
        "</testcase>"
    )
    xml = element('<properties><property name="ARCH" value="PPC" /></properties>', other, a_try())
    suite = corrected(xml, CheckElement(CHECK, True), properties=(("regcase.decision", "pass"),))
    first, kept, _ = suite
    assert ET.tostring(kept, encoding="unicode") == ET.tostring(ET.fromstring(other), encoding="unicode")
    assert [each.get("name") for each in first] == ["ARCH", "regcase.decision"]


def test_a_red_gate_beside_green_checks_is_a_failing_testcase() -> None:
    suite = corrected(element(a_try()), CheckElement(CHECK, True), red="unproven: a is not run\nmore\x1b[0m")
    gate = suite.findall("testcase")[1]
    assert (gate.get("classname"), gate.get("name")) == ("regcase", "gate")
    failure = gate.find("failure")
    assert failure is not None
    assert failure.get("message") == "unproven: a is not run"
    assert failure.text == "unproven: a is not run\nmore [0m"
    assert counts(suite) == {"tests": "2", "failures": "1", "errors": "0", "skipped": "0"}


def test_a_red_gate_beside_a_red_check_is_not_told_twice() -> None:
    xml = element(a_try("<failure message='m' />"))
    suite = corrected(xml, CheckElement(CHECK, True), red="fail: a: broken")
    assert len(suite.findall("testcase")) == 1


@pytest.mark.parametrize("xml", [b"<testsuites>", b"<html />", b""])
def test_another_file_is_refused(xml: bytes) -> None:
    with pytest.raises(ValueError, match=r"it (is not well-formed|holds no)"):
        one_testcase_a_check(xml, [], SuiteFacts())


@pytest.mark.parametrize(
    ("node_id", "prefix", "expected"),
    [
        ("cases/a/case.toml::control::check", None, ("cases.a.case.toml.control", "check")),
        ("cases/a/case.toml::invalid", "ci", ("ci.cases.a.case.toml", "invalid")),
        ("tests/test_a.py::TestX::test_y[a::b/c.py]", None, ("tests.test_a.TestX", "test_y[a::b/c.py]")),
    ],
)
def test_the_address_is_that_of_pytest(node_id: str, prefix: str | None, expected: tuple[str, str]) -> None:
    assert address(node_id, prefix) == expected
    from _pytest.junitxml import mangle_test_address

    *classnames, name = mangle_test_address(node_id)
    assert (".".join([*([prefix] if prefix else []), *classnames]), name) == expected
