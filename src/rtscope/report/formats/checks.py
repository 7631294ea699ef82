"""Answered checks, for a terminal and as JSON."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtscope.audit.model import Check, Outcome, Severity, checks_document
from rtscope.machine.kernelidentity import KernelIdentity
from rtscope.report.escape import printable

EVIDENCE_SHOWN = 3

_COLOURS = {
    Outcome.FAIL: "bold red",
    Outcome.UNKNOWN: "yellow",
    Outcome.PASS: "green",
    Outcome.NOT_APPLICABLE: "dim",
}
_WORDS = {
    Outcome.FAIL: "FAIL",
    Outcome.UNKNOWN: "unknown",
    Outcome.PASS: "pass",
    Outcome.NOT_APPLICABLE: "n/a",
}
_GRAVE = {Severity.FATAL: "bold red", Severity.HIGH: "red", Severity.MEDIUM: "yellow"}


def print_checks(
    checks: Sequence[Check], console: Console, *, of: str, kernel: KernelIdentity
) -> None:
    """Print checks as they come: what failed with its reason and its remedy."""
    console.print(Text(printable(f"{of}: {kernel_line(kernel)}"), style="bold"))
    console.print()
    shown = [c for c in checks if c.outcome in (Outcome.FAIL, Outcome.UNKNOWN)]
    for check in shown:
        console.print(_head(check))
        if check.failed:
            console.print(_advice(check))
    if shown:
        console.print()
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    rest = [check for check in checks if check not in shown]
    width = max((len(check.kind.title) for check in rest), default=0)
    table.add_column("outcome", no_wrap=True, width=4)
    table.add_column("title", no_wrap=True, width=width)
    table.add_column("says", overflow="ellipsis", no_wrap=True, ratio=1)
    for check in rest:
        word = Text(_WORDS[check.outcome], style=_COLOURS[check.outcome])
        table.add_row(word, Text(check.kind.title), Text(printable(check.says)))
    console.print(table)
    console.print()
    console.print(summary(checks))


def summary(checks: Sequence[Check]) -> str:
    """Return how many checks came out how."""
    count = {o: sum(check.outcome is o for check in checks) for o in Outcome}
    notes = sum(map(is_note, checks))
    return (
        f"{len(checks)} checks: {count[Outcome.FAIL] - notes} failed, {notes} to note, "
        f"{count[Outcome.UNKNOWN]} unknown, {count[Outcome.PASS]} passed, "
        f"{count[Outcome.NOT_APPLICABLE]} not applicable"
    )


def is_note(check: Check) -> bool:
    """Whether a check is not as expected, and no fault."""
    return check.failed and check.severity is Severity.INFO


def kernel_line(kernel: KernelIdentity) -> str:
    """Name a kernel in one line."""
    release = f"Linux {kernel.release}" if kernel.release else "a kernel of no version"
    model = kernel.preemption_model or "preemption model unknown"
    return f"{release}, {model}"


def render_checks_json(
    checks: Sequence[Check], *, of: str, kernel: KernelIdentity
) -> str:
    """Return checks as JSON: stable ids, outcome, severity, evidence, remedy."""
    return json.dumps(checks_document(checks, of=of, kernel=kernel), indent=2) + "\n"


def _head(check: Check) -> Text:
    if is_note(check):
        text = Text("note", style="cyan")
    else:
        text = Text(_WORDS[check.outcome], style=_COLOURS[check.outcome])
        text.append(
            f" {check.severity.name.lower()}", style=_GRAVE.get(check.severity, "")
        )
    text.append(f"  {check.kind.title}: ", style="bold")
    return text.append(printable(check.says), style="not bold")


def _evidence(check: Check) -> str:
    """Name where it was seen, each place once; what `says` has told is left out."""
    lines = [
        e.where if e.what in check.says else f"{e.where}: {e.what}"
        for e in check.evidence
    ]
    lines = list(dict.fromkeys(lines))
    more = len(lines) - EVIDENCE_SHOWN
    return printable(
        "; ".join(lines[:EVIDENCE_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    )


def _advice(check: Check) -> Padding:
    kind = check.kind
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for word, said in (
        ("seen", _evidence(check)),
        ("expected", kind.expects),
        ("why", kind.why),
        ("do", kind.remedy),
        ("or", f"rtscope audit --apply {kind.id}" if kind.apply else ""),
        ("lasting", kind.lasting),
        ("risk", kind.risk),
    ):
        if said:
            grid.add_row(word, Text(said))
    return Padding(grid, (0, 0, 0, 5))
