"""JUnit XML, as CI systems read it: suites of cases, each with its outcome."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Why a case failed, or has an error."""

    message: str
    type: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """A case; without a failure, an error and a reason to skip it it passed."""

    classname: str
    name: str
    time_s: float | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    failures: Sequence[Outcome] = ()
    error: Outcome | None = None
    skipped: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSuite:
    """Cases that belong together."""

    name: str
    cases: Sequence[TestCase]
    time_s: float | None = None
    hostname: str = ""
    timestamp: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def junit_file(suites: Sequence[TestSuite]) -> str:
    """Return the file; foreign text is cut, and loses what XML cannot hold."""
    root = ElementTree.Element("testsuites", name="rtscope")
    for suite in suites:
        _add_suite(root, suite)
    return xml_file(root)


def _add_suite(root: ElementTree.Element, suite: TestSuite) -> None:
    failed = sum(bool(case.failures) for case in suite.cases)
    made = _add(
        root,
        "testsuite",
        name=suite.name,
        tests=str(len(suite.cases)),
        failures=str(failed),
        errors=str(sum(case.error is not None for case in suite.cases)),
        skipped=str(sum(case.skipped is not None for case in suite.cases)),
        time=_seconds(suite.time_s),
        hostname=suite.hostname or None,
        timestamp=suite.timestamp or None,
    )
    _add_properties(made, suite.properties)
    for case in suite.cases:
        one = _add(
            made,
            "testcase",
            classname=case.classname,
            name=case.name,
            time=_seconds(case.time_s),
        )
        _add_properties(one, case.properties)
        for failure in case.failures:
            _add_outcome(one, "failure", failure)
        if case.error is not None:
            _add_outcome(one, "error", case.error)
        if case.skipped is not None:
            _add(one, "skipped", message=case.skipped.message)


def _add_properties(parent: ElementTree.Element, properties: Mapping[str, str]) -> None:
    if properties:
        listed = _add(parent, "properties")
        for name, value in properties.items():
            _add(listed, "property", name=name, value=value)


def _add_outcome(case: ElementTree.Element, tag: str, outcome: Outcome) -> None:
    made = _add(case, tag, type=outcome.type or None, message=outcome.message)
    made.text = xml_text(outcome.text) or None


def _add(
    parent: ElementTree.Element, tag: str, **attributes: str | None
) -> ElementTree.Element:
    """Add an element with those attributes that are not None."""
    known = {name: xml_text(x) for name, x in attributes.items() if x is not None}
    return ElementTree.SubElement(parent, tag, known)


def _seconds(time_s: float | None) -> str | None:
    return None if time_s is None else f"{time_s:.3f}"


# --- text in XML: what XML cannot hold is replaced ----------------------------------

MAX_CHARS = 2000
"""More than this of one text, nobody reads in a browser of test results."""

# Production 2 of XML 1.0.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Return a text with `?` for each character that XML has not, and its end cut."""
    return _NOT_IN_XML.sub("?", text)[:MAX_CHARS]


def xml_file(root: ElementTree.Element) -> str:
    """Return a tree as an XML file, indented."""
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
