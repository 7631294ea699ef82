"""What was found in a running program, as JUnit XML: a case for each finding."""

from rtscope.host.files.junit import Outcome, TestCase, TestSuite, junit_file
from rtscope.host.units import NS_PER_S
from rtscope.verbs.app.boardlabel import BoardLabel
from rtscope.verbs.app.model import Examined, Finding, finding_kinds


def examined_junit(examined: Examined, board: BoardLabel | None = None) -> str:
    """
    Return JUnit XML: a case for each rule, which fails if it found something.

    A rule that could not be looked at is an error: it has neither passed nor failed.
    """
    seen = examined.observation
    suite = TestSuite(
        name=f"app check {seen.name}",
        cases=[_case(examined, id_) for id_ in finding_kinds()],
        time_s=seen.watch.window_ns / NS_PER_S,
        properties={} if board is None else {"virtual board": board.words},
    )
    return junit_file([suite])


def _case(examined: Examined, id_: str) -> TestCase:
    kind = finding_kinds()[id_]
    failures = [
        Outcome(message=_message(one), type=kind.weight.value, text=kind.remedy)
        for one in examined.findings
        if one.id == id_
    ]
    unseen = [one for one in examined.unseen if id_ in one.ids]
    error = None
    if unseen and not failures:
        why = unseen[-1]
        message = f"{why.what}: {why.cause}"
        error = Outcome(message=message, type="not seen", text=why.remedy)
    return TestCase(
        classname=examined.observation.name,
        name=f"{id_} {kind.title}",
        failures=failures,
        error=error,
    )


def _message(finding: Finding) -> str:
    thread = finding.tid is not None
    who = f"thread {finding.tid} {finding.thread}: " if thread else ""
    times = "" if finding.count is None else f"{finding.count:,} times "
    return f"{who}{times}{finding.detail}".strip()
