"""Answered checks of an audit; what is changed on a machine, was, and was put back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console

from rtscope.contract import Refused, Restored
from rtscope.host.escape import printable
from rtscope.machine.audit.model import Check, CheckOutcome, RemedyPart, Severity
from rtscope.machine.kernelidentity import KernelIdentity
from rtscope.machine.settings.change import TuningResult
from rtscope.machine.settings.remedies import SettingChange, TuningPlan
from rtscope.present.document import Block, Column, Phrase, Table, Weight, Words
from rtscope.present.render.fitted import Room, command_to_type, print_fitted
from rtscope.present.render.terminal import print_blocks

AUDIT_LINES = 40
"""Two looks at a terminal: failures come with their remedies."""

EVIDENCE_SHOWN = 3
PLACES_SHOWN = 4

_WORDS: Mapping[CheckOutcome, tuple[str, Weight]] = {
    CheckOutcome.FAIL: ("FAIL", "alarm"),
    CheckOutcome.UNKNOWN: ("unknown", "limit"),
    CheckOutcome.PASS: ("pass", "good"),
    CheckOutcome.NOT_APPLICABLE: ("n/a", "muted"),
}
"""The word for an outcome, and its weight."""
_GRAVE: Mapping[Severity, Weight] = {
    Severity.FATAL: "alarm",
    Severity.HIGH: "bad",
    Severity.MEDIUM: "limit",
}


def print_checks(
    checks: Sequence[Check], console: Console, *, target: str, kernel: KernelIdentity
) -> None:
    """Print checks as they come: what failed with its reason and its remedy."""
    print_blocks(_checks(checks, target, kernel), console)


def _checks(
    checks: Sequence[Check], target: str, kernel: KernelIdentity
) -> Iterator[Block]:
    yield (printable(f"{target}: {kernel_line(kernel)}"), "strong")
    yield ""
    open_checks = [
        c for c in checks if c.outcome in (CheckOutcome.FAIL, CheckOutcome.UNKNOWN)
    ]
    for check in open_checks:
        yield _head(check)
        if check.failed:
            yield _advice(check)
    if open_checks:
        yield ""
    rest = [check for check in checks if check not in open_checks]
    width = max((len(check.kind.title) for check in rest), default=0)
    columns = Column("", width=4), Column("", width=width), Column("", share=1)
    rows = [
        (_WORDS[check.outcome], check.kind.title, printable(check.message))
        for check in rest
    ]
    yield Table(columns, rows, fills=True)
    yield ""
    yield summary(checks)


def print_brief_checks(
    checks: Sequence[Check],
    console: Console,
    *,
    target: str,
    kernel: KernelIdentity,
    command: str,
) -> None:
    """Print what failed with its remedy in at most 40 lines; `command` checks again."""
    failed = sorted(
        (check for check in checks if check.failed and not is_note(check)),
        key=lambda check: -check.severity,
    )
    head = printable(f"{target}: {kernel_line(kernel)}")

    def compose(room: Room) -> Iterator[Block]:
        yield head, "strong"
        yield ""
        for check in failed[: room.rows]:
            yield _head(check)
            if check.remedy:
                yield Words((f"→ {printable(check.remedy)}",), indent=4)
        if left := failed[room.rows :]:
            yield f"{len(left)} more failed: {_titles(left)}."
        yield ""
        yield f"{summary(checks)}."
        yield from command_to_type("Every check, with reasons:", f"{command} -v", room)

    print_fitted(compose, console, lines=AUDIT_LINES)


def _titles(checks: Iterable[Check]) -> str:
    return ", ".join(check.kind.title for check in checks)


def summary(checks: Sequence[Check]) -> str:
    """Return how many checks came out how."""
    count = {o: sum(check.outcome is o for check in checks) for o in CheckOutcome}
    notes = sum(map(is_note, checks))
    return (
        f"{len(checks)} checks: {count[CheckOutcome.FAIL] - notes} failed, "
        f"{notes} to note, {count[CheckOutcome.UNKNOWN]} unknown, "
        f"{count[CheckOutcome.PASS]} passed, "
        f"{count[CheckOutcome.NOT_APPLICABLE]} not applicable"
    )


def is_note(check: Check) -> bool:
    """Whether a check is not as expected, and no fault."""
    return check.failed and check.severity is Severity.INFO


def kernel_line(kernel: KernelIdentity) -> str:
    """Name a kernel in one line, or what a fragment asks of one."""
    if kernel.requested:
        return kernel.requested
    release = f"Linux {kernel.release}" if kernel.release else "a kernel of no version"
    return f"{release} ({_preemption(kernel.preemption_model)})"


def _preemption(model: str | None) -> str:
    if model is None:
        return "preemption model unknown"
    return model if model == "PREEMPT_RT" else f"not PREEMPT_RT: {model}"


def _head(check: Check) -> Table:
    """Return outcome and message side by side: a long message stays in its column."""
    word: Phrase = ("note", "note")
    if not is_note(check):
        severity = check.severity.name.lower()
        grave = _GRAVE.get(check.severity, "")
        word = Words((_WORDS[check.outcome], (f" {severity}", grave)))
    said = Words(((f"{check.kind.title}: ", "strong"), printable(check.message)))
    columns = Column("", least=len("FAIL medium")), Column("", fit="folds")
    return Table(columns, [(word, said)])


def _evidence(check: Check) -> str:
    """Name where it was seen, each place once; without what the message has."""
    lines = [
        e.path if e.value in check.message else f"{e.path}: {e.value}"
        for e in check.evidence
    ]
    lines = list(dict.fromkeys(lines))
    more = len(lines) - EVIDENCE_SHOWN
    return printable(
        "; ".join(lines[:EVIDENCE_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    )


def _advice(check: Check) -> Table:
    kind = check.kind
    appliable = kind.apply and not check.is_refused(RemedyPart.REMEDY)
    lines = (
        ("seen", _evidence(check)),
        ("expected", kind.expected),
        ("why", kind.rationale),
        ("do", check.remedy),
        ("or", f"rtscope audit --apply {kind.id}" if appliable else ""),
        ("permanently", check.permanent_remedy),
        ("risk", kind.risk),
    )
    rows: list[Sequence[Phrase]] = [
        ((word, "muted"), said) for word, said in lines if said
    ]
    return Table((Column(""), Column("", fit="folds")), rows, gap=1, indent=5)


# --- what is changed ------------------------------------------------------------------


def print_plan(plan: TuningPlan, console: Console) -> None:
    """Show what would be written, and of which checks nothing is."""
    print_blocks(_plan(plan), console)


def _plan(plan: TuningPlan) -> Iterator[Block]:
    if plan.changes:
        yield ("To be changed, and put back by --restore:", "strong")
        yield _change_table(plan.changes)
        for name, risk in plan.risks.items():
            yield (printable(f"{name} costs: {risk}"), "limit")
    for name, says in plan.good.items():
        yield Words(
            ((printable(f"{name}: nothing to do, {says}"), "muted"),), fit="whole"
        )
    for name, why in plan.impossible.items():
        yield _not_done(name, why)


def print_tuning(
    tuning: TuningResult, console: Console, *, after: Iterable[Check] = ()
) -> None:
    """Show what was changed and what was refused, and how its checks come out now."""
    print_blocks(_tuning(tuning, after), console)


def _tuning(tuning: TuningResult, after: Iterable[Check]) -> Iterator[Block]:
    for one in tuning.left_by_others:
        says = f"restored after a killed run: {one.knob} to {one.value}"
        yield Words((printable(says),), fit="whole")
    changed = [change for change in tuning.applied if change.changed]
    yield f"changed and read back: {_files(len(changed))}"
    for refused in tuning.refused:
        why = f"{refused.change.path}: {refused.reason} ({refused.cause})"
        yield _not_done(refused.change.check, why)
    for check in after:
        says = f"{check.kind.id}: now {check.outcome.value}: {check.message}"
        yield Words(
            ((printable(says), "alarm" if check.failed else "good"),), fit="whole"
        )


def restored_lines(lines: Sequence[Restored]) -> Iterable[str]:
    """Yield what was put back, one line for places with the same knob and value."""
    seen = Counter((line.knob, line.value) for line in lines)
    for (knob, value), count in seen.items():
        places = "" if count == 1 else f" ({_files(count)})"
        yield printable(f"put back: {knob} to {value}{places}")


def tuning_document(
    plan: TuningPlan, tuning: TuningResult | None, after: Iterable[Check] = ()
) -> Mapping[str, object]:
    """Return plan and outcome for a JSON document; without outcome: a dry run."""
    document: dict[str, object] = {
        "planned": [change_row(change) for change in plan.changes],
        "nothing_to_do": dict(plan.good),
        "impossible": dict(plan.impossible),
    }
    if tuning is not None:
        document["applied"] = [change_row(c) for c in tuning.applied if c.changed]
        document["refused"] = [
            {**change_row(r.change), "cause": r.cause, "reason": r.reason}
            for r in tuning.refused
        ]
        document["now"] = {c.kind.id: c.outcome.value for c in after}
    return document


def restored_document(
    back: Iterable[Restored], refused: Iterable[Refused]
) -> Mapping[str, object]:
    """Return what was put back, and what was not, for a JSON document."""
    return {
        "put_back": [{"knob": line.knob, "value": line.value} for line in back],
        "not_put_back": [
            {"knob": r.knob, "value": r.value, "cause": r.cause, "reason": r.reason}
            for r in refused
        ],
    }


def change_row(change: SettingChange) -> dict[str, object]:
    """Return one change for a JSON document."""
    return {
        "check": change.check,
        "knob": change.knob,
        "path": change.path,
        "before": change.old,
        "value": change.value,
    }


def _change_table(changes: Sequence[SettingChange]) -> Table:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for c in changes:
        groups.setdefault((c.check, c.old, c.value), []).append(c.path)
    rows = []
    for (check, old, value), paths in groups.items():
        more = len(paths) - PLACES_SHOWN
        where = "\n".join(map(printable, paths[:PLACES_SHOWN]))
        where += f"\nand {more} more" if more > 0 else ""
        change = printable(f"{old} -> {value}")
        rows.append((f"  {check}", where, change))
    folds = Column("", fit="folds")
    return Table((Column(""), folds, folds), rows)


def _not_done(name: str, why: str) -> Words:
    return Words((("NOT DONE ", "alarm"), printable(f"{name}: {why}")), fit="whole")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
