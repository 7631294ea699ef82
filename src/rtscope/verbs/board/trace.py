"""
List the functions that a virtual board executed on the paths to its worst wake-ups.

100 columns, colour for meaning.
"""

import json as json_text
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.recording.replay import Window
from rtscope.cli.console import Json, log, put, stderr_console, stdout_console
from rtscope.cli.progress import Waiting
from rtscope.explain.directory import (
    open_recorded,
    record_windows,
    select_sections,
    stream_of,
    symbols_of,
)
from rtscope.host.errors import UsageError
from rtscope.host.escape import printable
from rtscope.host.units import format_duration, format_us
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    TraceSection,
)
from rtscope.record.model import RunRecord
from rtscope.verbs.board.listing import ListedPath, Step, path_of

_WINDOW = re.compile(r"([0-9]{1,15}):([0-9]{1,15})")
TOP = 5
"""Functions that are named in the head of a path."""
WIDTH = 100
_STYLES = {
    RecordKind.INTERRUPTS: "yellow",
    RecordKind.PREEMPT: "cyan",
    RecordKind.TASK: "magenta",
    RecordKind.MARK: "bold red",
}


def trace(
    record: Annotated[
        Path, typer.Argument(help="Directory of a campaign or a run, or a record.json.")
    ],
    *,
    run: Annotated[
        str | None,
        typer.Option(
            help="Run of a campaign (default: that with the longest latency)."
        ),
    ] = None,
    worst: Annotated[
        int, typer.Option(help="Number of worst wake-ups to list (default: 1).")
    ] = 1,
    cpu: Annotated[
        str,
        typer.Option(
            help="CPU to list, or all (default: the CPU of the wake-up), e.g. 1."
        ),
    ] = "wake-up",
    limit: Annotated[
        int,
        typer.Option(
            help="Steps to list of each path; 0: all, from before the expiry (default: "
            "60), e.g. 200."
        ),
    ] = 60,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Replay of the run, which also records tasks."),
    ] = False,
    window: Annotated[
        list[str] | None,
        typer.Option(
            help="Virtual times in ns to record with --replay, e.g. 1000000:2000000."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """List the functions executed on the paths to the worst wake-ups."""
    chosen = open_recorded(record, run)
    cache = cache_dir()
    windows = [_window(text) for text in window or []]
    if windows and not replay:
        raise UsageError("--window needs a replay: add --replay")
    only = _cpu(cpu)
    with Waiting(stderr_console()) as waiting:
        say = waiting.over(log)
        symbols = symbols_of(chosen, cache=cache, log=say, progress=waiting)
        stream = (
            record_windows(
                chosen, windows, worst=worst, cache=cache, log=say, progress=waiting
            )
            if replay
            else stream_of(chosen)
        )
    paths = [
        path_of(section, symbols, cpu=_cpu_to_list(section, only))
        for section in select_sections(stream, worst, windows=bool(windows))
    ]
    if json:
        documents = [as_dict(path) for path in paths]
        put(json_text.dumps(documents, indent=1) + "\n")
        return 0
    with stdout_console() as console:
        print_head(console, chosen.record, stream)
        for number, path in enumerate(paths, 1):
            print_path(console, path, number, limit=limit)
    return 0


def _cpu_to_list(
    section: TraceSection, only: int | Literal["wake-up"] | None
) -> int | None:
    if only != "wake-up":
        return only
    return section.cpu if section.kind is SectionKind.WORST else None


def _window(text: str) -> Window:
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--window {text[:40]!r}: write two virtual times in ns, FIRST:LAST"
        )
    return int(match[1]), int(match[2])


def _cpu(text: str) -> int | Literal["wake-up"] | None:
    if text == "wake-up":
        return "wake-up"
    if text == "all":
        return None
    if not re.fullmatch("[0-9]{1,3}", text):
        raise UsageError(f"--cpu {text[:40]!r}: write the number of a CPU, or all")
    return int(text)


def print_head(console: Console, record: RunRecord, trace: ExecTrace) -> None:
    """Print the run, and its quantum and the time of an instruction."""
    virtual = record.virtual
    assert virtual is not None
    console.print(
        f"{record.run.id} on virtual board {printable(virtual.board)}, kernel "
        f"{printable(virtual.kernel)}: {trace.cpus} CPUs, quantum "
        f"{trace.quantum} instructions, {trace.instruction_ns} virtual ns each",
        markup=False,
        width=WIDTH,
    )


def print_path(console: Console, path: ListedPath, number: int, *, limit: int) -> None:
    """Print one path: its head, then at most `limit` steps; 0 for all of them."""
    console.print()
    console.print(Text(_title(path, number), style="bold"), width=WIDTH)
    for line in _remarks(path):
        console.print(Text(f"  {line}", style="dim"), width=WIDTH)
    if path.section.left_out:
        return
    steps = path.steps if limit == 0 else _from_expiry(path)
    console.print(
        Text(f"{'virtual µs':>14} {'CPU':>4} {'executed ns':>13}  step", style="dim")
    )
    head, tail = _ends(steps, limit)
    for step in head:
        console.print(_row(step), no_wrap=True, overflow="ellipsis", width=WIDTH)
    if left := len(steps) - len(head) - len(tail):
        between = sum(s.executed_ns for s in steps[len(head) : len(steps) - len(tail)])
        console.print(
            f"{'…':>14} {left:,} more steps with {between:,} ns: --limit 0 shows all",
            style="dim",
            width=WIDTH,
        )
    for step in tail:
        console.print(_row(step), no_wrap=True, overflow="ellipsis", width=WIDTH)


def as_dict(path: ListedPath) -> dict[str, Any]:
    """Return a path for JSON; times in virtual ns."""
    section = path.section
    return {
        "kind": section.kind.name.lower(),
        "cpu": section.cpu,
        "latency_ns": section.latency_ns,
        "sequence": section.sequence,
        "first_ns": section.first_ns,
        "expiry_ns": path.expiry_ns,
        "last_ns": section.last_ns,
        "cut": section.cut,
        "left_out": section.left_out,
        "missing_ns": _missing_ns(path),
        "unnamed": path.unnamed,
        "functions": [list(pair) for pair in path.functions],
        "steps": [
            asdict(step) | {"kind": step.kind.name.lower()} for step in path.steps
        ],
    }


def _title(path: ListedPath, number: int) -> str:
    section = path.section
    if section.kind is SectionKind.WINDOW:
        return (
            f"Window {number}: {section.first_ns:,} to {section.last_ns:,} virtual ns"
        )
    return (
        f"Worst wake-up {number}: {format_us(section.latency_ns)} virtual µs late, "
        f"CPU {section.cpu}, sequence {section.sequence:,}; due at "
        f"{path.expiry_ns:,} virtual ns"
    )


def _missing_ns(path: ListedPath) -> int:
    """Return how much after the expiry was no longer in the ring."""
    return max(0, path.section.first_ns - path.expiry_ns)


def _remarks(path: ListedPath) -> list[str]:
    section = path.section
    if section.left_out:
        return ["no memory was left for its path; record it with --replay --window"]
    remarks = []
    if section.cut:
        missing_ns = _missing_ns(path)
        remarks.append(
            f"the ring was too short: the first {format_duration(missing_ns)} after "
            "the expiry are missing; record them with --replay"
            if missing_ns
            else "the ring was too short: some of the time before the expiry is missing"
        )
    if path.functions:
        total = sum(count for _, count in path.functions)
        named = ", ".join(
            f"{printable(name)} {100 * count / total:.0f} %"
            for name, count in path.functions[:TOP]
        )
        remarks.append(f"{format_us(total)} µs executed, most in: {named}")
    if path.unnamed:
        remarks.append(f"{path.unnamed:,} steps have an address without a symbol")
    return remarks


def _from_expiry(path: ListedPath) -> tuple[Step, ...]:
    """Leave out the steps before the expiry, but for the one at it."""
    before = sum(step.at_ns < path.expiry_ns for step in path.steps)
    return path.steps[max(0, before - 1) :]


def _ends(
    steps: tuple[Step, ...], limit: int
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    if limit == 0 or len(steps) <= limit:
        return steps, ()
    return steps[: (limit + 1) // 2], steps[len(steps) - limit // 2 :]


def _row(step: Step) -> Text:
    us = step.after_expiry_ns / 1000
    line = Text(f"{us:>+14,.3f} {step.cpu:>4} ")
    if step.kind is RecordKind.BLOCK:
        line.append(f"{step.executed_ns:>13,}  ")
        line.append(printable(step.what))
    else:
        line.append(f"{'':>13}  ")
        line.append(f"— {step.what}", style=_STYLES[step.kind])
    return line
