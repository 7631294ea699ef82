"""What was found in a running program, as JUnit XML: a case for each finding."""

import re
from xml.etree import ElementTree

from rtscope.app.model import Examined, finding_kinds
from rtscope.report.formats.appboard import BoardLabel
from rtscope.units import NS_PER_S

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def examined_junit(examined: Examined, board: BoardLabel | None = None) -> str:
    """
    Return JUnit XML: a case for each rule, which fails if it found something.

    A rule that could not be looked at is an error: it has neither passed nor failed.
    """
    seen = examined.observation
    kinds = finding_kinds()
    found = {id_: [o for o in examined.findings if o.id == id_] for id_ in kinds}
    unseen = {id_: one for one in examined.unseen for id_ in one.ids}
    errors = [id_ for id_ in kinds if id_ in unseen and not found[id_]]
    root = ElementTree.Element("testsuites", name="rtscope")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=_xml(f"app check {seen.name}"),
        tests=str(len(kinds)),
        failures=str(sum(bool(some) for some in found.values())),
        errors=str(len(errors)),
        skipped="0",
        time=f"{seen.watch.window_ns / NS_PER_S:.3f}",
    )
    if board is not None:
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(
            properties, "property", name="virtual board", value=_xml(board.words)
        )
    for id_, kind in kinds.items():
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(seen.name), name=f"{id_} {kind.title}"
        )
        for one in found[id_]:
            who = f"thread {one.tid} {one.thread}: " if one.tid is not None else ""
            times = "" if one.count is None else f"{one.count:,} times "
            failure = ElementTree.SubElement(case, "failure", type=kind.weight.value)
            failure.set("message", _xml(f"{who}{times}{one.detail}".strip()))
            failure.text = kind.remedy
        if id_ in errors:
            why = unseen[id_]
            error = ElementTree.SubElement(case, "error", type="not seen")
            error.set("message", _xml(f"{why.what}: {why.cause}"))
            error.text = _xml(why.remedy)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _xml(text: str) -> str:
    return _NOT_IN_XML.sub("?", text)[:2000]
