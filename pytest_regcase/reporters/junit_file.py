"""Makes pytest's own JUnit file tell one check once: bytes in, bytes out.

Each try of a check is a ``<testcase>`` in what pytest writes beside pytest-rerunfailures, and a failed one looks
passed. Knows the elements that pytest writes; knows no decision, no attempt and no file.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Properties = tuple[tuple[str, str], ...]
"""Names and values in order; a name may come twice."""

ITEM = "regcase.item"
"""The property that holds the node id: class name and name of a testcase do not say it exactly."""

_OWN = "regcase."
_BAD = ("failure", "error")


@dataclass(frozen=True)
class CheckElement:
    """What is known of one item of ours when the session is over."""

    node_id: str
    finished: bool
    """False: pytest was to run it (again) and did not come to it; what stands in the file is not its result."""
    properties: Properties = ()


@dataclass(frozen=True)
class SuiteFacts:
    """What is known of the whole run."""

    properties: Properties = ()
    red: str | None = None
    """Why the gate is red, first line first; None where it is green."""
    prefix: str | None = None
    """``--junitprefix``."""
    nameless: int = 0
    """How many testcases without a name pytest wrote for items of ours: a crashed worker leaves such ones."""


@dataclass
class _Found:
    """The elements of one item, in the order of the file."""

    elements: list[ET.Element] = field(default_factory=list)


def one_testcase_a_check(xml: bytes, checks: Sequence[CheckElement], suite: SuiteFacts) -> bytes:
    """Return `xml` with exactly one testcase for each of `checks`, and counts that equal what is in it.

    The last try's element stays, with the check's properties and the time of all tries. A testcase ``gate`` of
    class ``regcase`` is added where the gate is red and no testcase of ours is. Every other element is kept as it
    is.

    Raises:
        ValueError: it is not the file that pytest writes.
    """
    try:
        root = ET.fromstring(xml)
    except ET.ParseError as error:
        raise ValueError(f"it is not well-formed XML ({error})") from error
    element = root if root.tag == "testsuite" else root.find("testsuite")
    if element is None:
        raise ValueError("it holds no <testsuite>")
    _drop_nameless(element, suite.nameless)
    found = _by_item(element, checks, suite.prefix)
    kept = [_merged(element, check, found[check.node_id].elements, suite.prefix) for check in checks]
    if suite.red is not None and not any(each.find(tag) is not None for each in kept for tag in _BAD):
        element.append(_gate(suite.red))
    _add_properties(element, suite.properties)
    _count(element)
    return b'<?xml version="1.0" encoding="utf-8"?>' + ET.tostring(root, encoding="unicode").encode()


def address(node_id: str, prefix: str | None) -> tuple[str, str]:
    """Return class name and name of the testcase that pytest writes for a node id."""
    path, bracket, parameters = node_id.partition("[")
    first, *names = path.split("::")
    parts = [first.replace("/", ".").removesuffix(".py"), *names]
    parts[-1] += bracket + parameters
    return ".".join([*([prefix] if prefix else []), *parts[:-1]]), parts[-1]


def _drop_nameless(suite: ET.Element, count: int) -> None:
    nameless = [each for each in suite.findall("testcase") if each.get("name") is None and not len(each)]
    for each in nameless[:count]:
        suite.remove(each)


def _by_item(suite: ET.Element, checks: Iterable[CheckElement], prefix: str | None) -> dict[str, _Found]:
    """The testcases of each check: by the property that says the item, else by name."""
    found = {each.node_id: _Found() for each in checks}
    by_address = {address(each, prefix): each for each in found}
    for element in suite.findall("testcase"):
        said = element.find(f"properties/property[@name='{ITEM}']")
        name = said.get("value") if said is not None else None
        if name is None:
            name = by_address.get((element.get("classname", ""), element.get("name", "")))
        if name in found:
            found[name].elements.append(element)
    return found


def _merged(suite: ET.Element, check: CheckElement, elements: list[ET.Element], prefix: str | None) -> ET.Element:
    if elements:
        *earlier, kept = elements
        seconds = sum(float(each.get("time") or 0) for each in elements)
        kept.set("time", f"{seconds:.3f}")
        for each in earlier:
            suite.remove(each)
    else:
        classname, name = address(check.node_id, prefix)
        kept = ET.SubElement(suite, "testcase", classname=classname, name=name, time="0.000")
    if not check.finished:
        for tag in (*_BAD, "skipped"):
            for each in kept.findall(tag):
                kept.remove(each)
        text = "the check did not come to its end; what is known stands in the properties"
        ET.SubElement(kept, "error", message=text).text = text
    _add_properties(kept, ((ITEM, check.node_id), *check.properties))
    return kept


def _gate(why: str) -> ET.Element:
    case = ET.Element("testcase", classname="regcase", name="gate", time="0.000")
    why = "".join(each if each.isprintable() or each == "\n" else " " for each in why)
    ET.SubElement(case, "failure", message=why.split("\n", 1)[0]).text = why
    return case


def _add_properties(element: ET.Element, properties: Properties) -> None:
    """Put `properties` in the place of ours that stand there; others stay."""
    holder = element.find("properties")
    if holder is None:
        holder = ET.Element("properties")
        element.insert(0, holder)
    for each in holder.findall("property"):
        if each.get("name", "").startswith(_OWN):
            holder.remove(each)
    for name, value in properties:
        printable = "".join(each if each.isprintable() else " " for each in value)
        ET.SubElement(holder, "property", name=name, value=printable)


def _count(suite: ET.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(len(each.findall(tag)) for each in cases)))
