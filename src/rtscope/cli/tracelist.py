"""How the steps of recorded paths are printed: 100 columns, colour for meaning."""

from typing import Any

from rich.console import Console
from rich.text import Text

from rtscope.exectrace.format import Kind, SectionKind, Trace
from rtscope.exectrace.listing import Path, Step
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.units import format_duration, format_us

TOP = 5
"""Functions that are named in the head of a path."""

WIDTH = 100

_STYLES = {
    Kind.INTERRUPTS: "yellow",
    Kind.PREEMPT: "cyan",
    Kind.TASK: "magenta",
    Kind.MARK: "bold red",
}


def print_head(console: Console, record: RunRecord, trace: Trace) -> None:
    """Print which run it is, and what an instruction means there."""
    virtual = record.virtual
    assert virtual is not None
    console.print(
        f"{record.run.id} on virtual board {printable(virtual.board)}, kernel "
        f"{printable(virtual.kernel)}: {trace.cpus} CPUs in turns of "
        f"{trace.slice} instructions, {1 << trace.shift} ns of virtual time each",
        markup=False,
        width=WIDTH,
    )


def print_path(
    console: Console, path: Path, number: int, *, limit: int, shift: int
) -> None:
    """Print one path: its head, then at most `limit` steps; 0 for all of them."""
    console.print()
    console.print(Text(_title(path, number), style="bold"), width=WIDTH)
    for line in _remarks(path, shift=shift):
        console.print(Text(f"  {line}", style="dim"), width=WIDTH)
    if path.section.left_out:
        return
    shown = path.steps if limit == 0 else _from_expiry(path)
    console.print(
        Text(f"{'virtual µs':>14} {'CPU':>4} {'instructions':>13}  step", style="dim")
    )
    head, tail = _ends(shown, limit)
    for step in head:
        console.print(_row(step), no_wrap=True, overflow="ellipsis", width=WIDTH)
    if left := len(shown) - len(head) - len(tail):
        between = sum(s.instructions for s in shown[len(head) : len(shown) - len(tail)])
        console.print(
            f"{'…':>14} {left:,} steps with {between:,} instructions are not shown: "
            "--limit 0 shows all",
            style="dim",
            width=WIDTH,
        )
    for step in tail:
        console.print(_row(step), no_wrap=True, overflow="ellipsis", width=WIDTH)


def as_dict(path: Path, *, shift: int) -> dict[str, Any]:
    """Return a path for JSON; times in virtual ns."""
    section = path.section
    return {
        "kind": section.kind.name.lower(),
        "cpu": section.cpu,
        "latency_ns": section.latency_ns,
        "sequence": section.sequence,
        "first": section.first,
        "expiry": path.expiry,
        "last": section.last,
        "cut": section.cut,
        "left_out": section.left_out,
        "missing_ns": _missing(path) << shift,
        "unnamed": path.unnamed,
        "functions": [list(pair) for pair in path.functions],
        "steps": [
            {
                "at": step.at,
                "at_ns": step.at_ns,
                "cpu": step.cpu,
                "kind": step.kind.name.lower(),
                "what": step.what,
                "instructions": step.instructions,
            }
            for step in path.steps
        ],
    }


def _title(path: Path, number: int) -> str:
    section = path.section
    if section.kind is SectionKind.WINDOW:
        return f"Window {number}: instructions {section.first:,} to {section.last:,}"
    return (
        f"Worst wake-up {number}: {format_us(section.latency_ns)} virtual µs late, "
        f"CPU {section.cpu}, sequence {section.sequence:,}; due at instruction "
        f"{path.expiry:,}"
    )


def _missing(path: Path) -> int:
    """Return how many instructions after the expiry were no longer in the ring."""
    return max(0, path.section.first - path.expiry)


def _remarks(path: Path, *, shift: int) -> list[str]:
    section = path.section
    if section.left_out:
        return ["no room was left for its path; --again --window records it"]
    remarks = []
    if section.cut:
        missing = _missing(path) << shift
        remarks.append(
            f"the ring was too short: the first {format_duration(missing)} after the "
            "expiry are missing; record them with --again"
            if missing
            else "the ring was too short: less than usual from before the expiry"
        )
    if path.functions:
        total = sum(count for _, count in path.functions)
        named = ", ".join(
            f"{printable(name)} {100 * count / total:.0f} %"
            for name, count in path.functions[:TOP]
        )
        remarks.append(f"most of its {total:,} instructions: {named}")
    if path.unnamed:
        remarks.append(f"{path.unnamed:,} steps have an address that no symbol names")
    return remarks


def _from_expiry(path: Path) -> tuple[Step, ...]:
    """Leave out what was done before the expiry, but for what was going on then."""
    before = sum(step.at < path.expiry for step in path.steps)
    return path.steps[max(0, before - 1) :]


def _ends(
    steps: tuple[Step, ...], limit: int
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    if limit == 0 or len(steps) <= limit:
        return steps, ()
    return steps[: (limit + 1) // 2], steps[len(steps) - limit // 2 :]


def _row(step: Step) -> Text:
    us = step.at_ns / 1000
    line = Text(f"{us:>+14,.3f} {step.cpu:>4} ")
    if step.kind is Kind.BLOCK:
        line.append(f"{step.instructions:>13,}  ")
        line.append(printable(step.what))
    else:
        line.append(f"{'':>13}  ")
        line.append(f"— {step.what}", style=_STYLES[step.kind])
    return line
