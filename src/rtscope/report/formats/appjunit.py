"""What was found in a running program, as JUnit XML: a case for each finding."""

from xml.etree import ElementTree

from rtscope.app.model import Examined, finding_kinds
from rtscope.files.xmltext import xml_file, xml_text
from rtscope.report.formats.appboard import BoardLabel
from rtscope.units import NS_PER_S


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
        name=xml_text(f"app check {seen.name}"),
        tests=str(len(kinds)),
        failures=str(sum(bool(some) for some in found.values())),
        errors=str(len(errors)),
        skipped="0",
        time=f"{seen.watch.window_ns / NS_PER_S:.3f}",
    )
    if board is not None:
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(
            properties, "property", name="virtual board", value=xml_text(board.words)
        )
    for id_, kind in kinds.items():
        case = ElementTree.SubElement(
            suite, "testcase", classname=xml_text(seen.name), name=f"{id_} {kind.title}"
        )
        for one in found[id_]:
            who = f"thread {one.tid} {one.thread}: " if one.tid is not None else ""
            times = "" if one.count is None else f"{one.count:,} times "
            failure = ElementTree.SubElement(case, "failure", type=kind.weight.value)
            failure.set("message", xml_text(f"{who}{times}{one.detail}".strip()))
            failure.text = kind.remedy
        if id_ in errors:
            why = unseen[id_]
            error = ElementTree.SubElement(case, "error", type="not seen")
            error.set("message", xml_text(f"{why.what}: {why.cause}"))
            error.text = xml_text(why.remedy)
    return xml_file(root)
