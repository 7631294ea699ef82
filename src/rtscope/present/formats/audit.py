"""Answered checks of an audit; what is changed on a machine, was, and was put back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtscope.contract import Refused, Restored
from rtscope.host.escape import printable
from rtscope.machine.audit.catalogue import catalogue
from rtscope.machine.audit.model import Check, CheckOutcome, RemedyPart, Severity
from rtscope.machine.kernelidentity import KernelIdentity
from rtscope.machine.settings.change import TuningResult
from rtscope.machine.settings.remedies import SettingChange, TuningPlan
from rtscope.present.document import Shown
from rtscope.present.render.fitted import Room, command_to_type, print_fitted

AUDIT_LINES = 40
"""Two looks at a terminal: failures come with their remedies."""

EVIDENCE_SHOWN = 3
PLACES_SHOWN = 4

_WORDS = {
    CheckOutcome.FAIL: ("FAIL", "bold red"),
    CheckOutcome.UNKNOWN: ("unknown", "yellow"),
    CheckOutcome.PASS: ("pass", "green"),
    CheckOutcome.NOT_APPLICABLE: ("n/a", "dim"),
}
"""The word for an outcome, and its style."""
_GRAVE = {Severity.FATAL: "bold red", Severity.HIGH: "red", Severity.MEDIUM: "yellow"}


def print_checks(
    checks: Sequence[Check], console: Console, *, target: str, kernel: KernelIdentity
) -> None:
    """Print checks as they come: what failed with its reason and its remedy."""
    console.print(Text(printable(f"{target}: {kernel_line(kernel)}"), style="bold"))
    console.print()
    open_checks = [
        c for c in checks if c.outcome in (CheckOutcome.FAIL, CheckOutcome.UNKNOWN)
    ]
    for check in open_checks:
        console.print(_head(check))
        if check.failed:
            console.print(_advice(check))
    if open_checks:
        console.print()
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    rest = [check for check in checks if check not in open_checks]
    width = max((len(check.kind.title) for check in rest), default=0)
    table.add_column("outcome", no_wrap=True, width=4)
    table.add_column("title", no_wrap=True, width=width)
    table.add_column("message", overflow="ellipsis", no_wrap=True, ratio=1)
    for check in rest:
        word = Text(*_WORDS[check.outcome])
        table.add_row(word, Text(check.kind.title), Text(printable(check.message)))
    console.print(table)
    console.print()
    console.print(summary(checks))


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
    head = Text(printable(f"{target}: {kernel_line(kernel)}"), style="bold")

    def compose(room: Room) -> Iterator[Shown]:
        yield head
        yield ""
        for check in failed[: room.rows]:
            yield _head(check)
            if check.remedy:
                yield Padding(Text(f"→ {printable(check.remedy)}"), (0, 0, 0, 4))
        if left := failed[room.rows :]:
            yield Text(f"{len(left)} more failed: {_titles(left)}.")
        yield ""
        yield Text(f"{summary(checks)}.")
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
    if is_note(check):
        word = Text("note", style="cyan")
    else:
        severity = check.severity.name.lower()
        word = Text.assemble(
            _WORDS[check.outcome], (f" {severity}", _GRAVE.get(check.severity, ""))
        )
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=len("FAIL medium"))
    grid.add_column(overflow="fold")
    title = (f"{check.kind.title}: ", "bold")
    grid.add_row(word, Text.assemble(title, printable(check.message)))
    return grid


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


def _advice(check: Check) -> Padding:
    kind = check.kind
    appliable = kind.apply and not check.is_refused(RemedyPart.REMEDY)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for word, said in (
        ("seen", _evidence(check)),
        ("expected", kind.expected),
        ("why", kind.rationale),
        ("do", check.remedy),
        ("or", f"rtscope audit --apply {kind.id}" if appliable else ""),
        ("permanently", check.permanent_remedy),
        ("risk", kind.risk),
    ):
        if said:
            grid.add_row(word, Text(said))
    return Padding(grid, (0, 0, 0, 5))


# --- what is changed ------------------------------------------------------------------


def print_plan(plan: TuningPlan, console: Console) -> None:
    """Show what would be written, and of which checks nothing is."""
    if plan.changes:
        console.print(Text("To be changed, and put back by --restore:", style="bold"))
        console.print(_change_table(plan.changes))
        for name in dict.fromkeys(change.check for change in plan.changes):
            if risk := catalogue()[name].risk:
                console.print(Text(f"{name} costs: {risk}", style="yellow"))
    for name, says in plan.good.items():
        console.print(
            Text(printable(f"{name}: nothing to do, {says}"), style="dim"),
            soft_wrap=True,
        )
    for name, why in plan.impossible.items():
        console.print(_not_done(name, why), soft_wrap=True)


def print_tuning(
    tuning: TuningResult, console: Console, *, after: Iterable[Check] = ()
) -> None:
    """Show what was changed and what was refused, and how its checks come out now."""
    for line in tuning.left_by_others:
        says = f"restored after a killed run: {line.knob} to {line.value}"
        console.print(Text(printable(says)), soft_wrap=True)
    changed = [change for change in tuning.applied if change.changed]
    console.print(Text(f"changed and read back: {_files(len(changed))}"))
    for refused in tuning.refused:
        why = f"{refused.change.path}: {refused.reason} ({refused.cause})"
        console.print(_not_done(refused.change.check, why), soft_wrap=True)
    for check in after:
        says = f"{check.kind.id}: now {check.outcome.value}: {check.message}"
        style = "bold red" if check.failed else "green"
        console.print(Text(printable(says), style=style), soft_wrap=True)


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
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    groups: dict[tuple[str, str, str], list[str]] = {}
    for c in changes:
        groups.setdefault((c.check, c.old, c.value), []).append(c.path)
    for (check, old, value), paths in groups.items():
        more = len(paths) - PLACES_SHOWN
        where = "\n".join(map(printable, paths[:PLACES_SHOWN]))
        where += f"\nand {more} more" if more > 0 else ""
        change = printable(f"{old} -> {value}")
        table.add_row(Text(f"  {check}"), Text(where), Text(change))
    return table


def _not_done(name: str, why: str) -> Text:
    text = Text("NOT DONE ", style="bold red")
    return text.append(printable(f"{name}: {why}"), style="not bold default")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
