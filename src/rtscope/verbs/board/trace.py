"""
List the functions that a virtual board executed on the paths to its worst wake-ups.

100 columns, colour for meaning.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from heapq import merge
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

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
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import format_duration, format_us
from rtscope.present.document import Block, Span, Weight, Words
from rtscope.present.render.terminal import print_blocks
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    TaskSwitch,
    TraceSection,
    blocks_of,
    cpus_of,
    task_switches,
)
from rtscope.record.instructions.symbols import KERNEL_HALF, USER, SymbolTable
from rtscope.record.model import RunRecord

# --- the steps of a recorded path ---------------------------------------------------

# Blocks are merged per function. Times are virtual ns, of the CPU that a step is of.

# x86-64 and arm64 keep "no need to reschedule" in the word of the preemption count.
_COUNT_MASK = 0x7FFFFFFF
_LISTED_KINDS = (
    RecordKind.BLOCK,
    RecordKind.INTERRUPTS,
    RecordKind.PREEMPT,
    RecordKind.TASK,
    RecordKind.MARK,
    RecordKind.PAUSE,
    RecordKind.WOKEN,
)
"""The others say more of the record before, or of another kind of section."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one CPU did for a while, or a change of its state."""

    at_ns: int
    """Virtual time at its begin."""
    after_expiry_ns: int
    """The same relative to the expiry of the wake-up; for a window, to its begin."""
    cpu: int
    kind: RecordKind
    what: str
    executed_ns: int = 0
    """What this CPU executed in it; 0 for a change of state."""


@dataclass(frozen=True, slots=True)
class ListedPath:
    """A section, ready to be listed."""

    section: TraceSection
    expiry_ns: int
    """Virtual time at which the wake-up was due; a window's begin."""
    steps: tuple[Step, ...]
    functions: tuple[tuple[str, int], ...] = field(default=())
    """ns executed after the expiry by function, most first."""
    unnamed: int = 0
    """Blocks of the kernel for which there was no symbol."""


def path_of(
    section: TraceSection, symbols: SymbolTable, *, cpu: int | None
) -> ListedPath:
    """Return the steps of a section; of one CPU, or of all of them."""
    expiry_ns = section.first_ns
    if section.kind is SectionKind.WORST:
        expiry_ns = max(0, section.last_ns - section.latency_ns)
    cpus = cpus_of(section.cpus) if cpu is None else [cpu]
    each = (_merged(section, symbols, expiry_ns=expiry_ns, cpu=one) for one in cpus)
    steps = tuple(merge(*each, key=lambda step: step.at_ns))
    spent: Counter[str] = Counter()
    for step in steps:
        # A step is cut by every change of state; what it was cut into counts the same.
        after_ns = min(step.executed_ns, step.at_ns + step.executed_ns - expiry_ns)
        if step.kind is RecordKind.BLOCK and after_ns > 0:
            spent[step.what] += after_ns
    unnamed = sum(s.kind is RecordKind.BLOCK and s.what.startswith("0x") for s in steps)
    return ListedPath(section, expiry_ns, steps, tuple(spent.most_common()), unnamed)


def _merged(
    section: TraceSection,
    symbols: SymbolTable,
    *,
    expiry_ns: int,
    cpu: int,
) -> Iterator[Step]:
    """
    Yield the steps of a CPU in order.

    Blocks of one function become one, as far as the CPU does not pause.
    """
    names, named = _names(section, symbols)
    wanted = (section.cpus == cpu) & np.isin(section.kinds, _LISTED_KINDS)
    switches = task_switches(section)
    tasks = {(one.at_ns, one.task): one.name for one in switches}
    at, kinds, values = (
        column[wanted] for column in (section.at_ns, section.kinds, section.values)
    )
    named, lengths = named[wanted], _lengths(section, cpu)[wanted]
    if not len(at):
        return
    same = (
        (kinds[1:] == RecordKind.BLOCK)
        & (kinds[:-1] == RecordKind.BLOCK)
        & (named[1:] == named[:-1])
    )
    begins = np.flatnonzero(np.concatenate(([True], ~same)))
    spent_ns = np.add.reduceat(lengths, begins).tolist()
    columns = (column[begins].tolist() for column in (at, kinds, values, named))
    for begin, number, value, name, total in zip(*columns, spent_ns, strict=True):
        kind = RecordKind(number)
        if kind is RecordKind.PAUSE:
            continue
        what = names[name] if kind is RecordKind.BLOCK else _words(kind, value)
        if kind is RecordKind.TASK and tasks.get((begin, value)):
            what = f"{what} {tasks[begin, value]}"
        if kind is RecordKind.WOKEN:
            what = f"wakes {_name_at(begin, value, switches) or f'task {value:#x}'}"
        yield Step(begin, begin - expiry_ns, cpu, kind, what, total)


def _name_at(at_ns: int, task: int, switches: Sequence[TaskSwitch]) -> str:
    """Return the name of a task at a time; its next one if none is before."""
    named = [one for one in switches if one.task == task and one.name]
    before = [one.name for one in named if one.at_ns <= at_ns]
    return before[-1] if before else next((one.name for one in named), "")


def _words(kind: RecordKind, value: int) -> str:
    if kind is RecordKind.INTERRUPTS:
        return "interrupts on" if value else "interrupts off"
    if kind is RecordKind.PREEMPT:
        return f"preemption count {value & _COUNT_MASK:#x}"
    if kind is RecordKind.TASK:
        return f"task {value:#x}"
    return f"mark: {value} ns late"


def _lengths(section: TraceSection, cpu: int) -> NDArray[np.int64]:
    """Return how long each block of a CPU took, in ns; 0 for the other records."""
    lengths = np.zeros(len(section.at_ns), np.int64)
    blocks = blocks_of(section, cpu)
    of_cpu = (section.cpus == cpu) & (section.kinds == RecordKind.BLOCK)
    lengths[of_cpu] = blocks.executed_ns
    return lengths


def _names(
    section: TraceSection, symbols: SymbolTable
) -> tuple[list[str], NDArray[np.int64]]:
    """Return names, and which of them each record has; -1 for those that have none."""
    blocks = section.kinds == RecordKind.BLOCK
    addresses, which = np.unique(section.values[blocks], return_inverse=True)
    known = [
        name or (USER if address < KERNEL_HALF else f"{address:#x}")
        for address, name in zip(
            addresses.tolist(), symbols.names_of(addresses), strict=True
        )
    ]
    names = list(dict.fromkeys(known))
    number = {name: i for i, name in enumerate(names)}
    of_address = np.array([number[name] for name in known], np.int64)
    named = np.full(len(blocks), -1, np.int64)
    named[blocks] = of_address[which] if len(of_address) else 0
    return names, named


# --- the verb -----------------------------------------------------------------------

_WINDOW = re.compile(r"([0-9]{1,15}):([0-9]{1,15})")
TOP = 5
"""Functions that are named in the head of a path."""
WIDTH = 100
_WEIGHTS: Mapping[RecordKind, Weight] = {
    RecordKind.INTERRUPTS: "limit",
    RecordKind.PREEMPT: "note",
    RecordKind.TASK: "unseen",
    RecordKind.WOKEN: "note",
    RecordKind.MARK: "alarm",
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
        put(json_text([as_dict(path) for path in paths], indent=1))
        return 0
    shown = (path_blocks(path, n, limit=limit) for n, path in enumerate(paths, 1))
    with stdout_console() as console:
        head = head_of(chosen.record, stream)
        print_blocks(chain((head,), *shown), console, width=WIDTH)
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


def head_of(record: RunRecord, trace: ExecTrace) -> str:
    """Name the run, and its quantum and the time of an instruction."""
    virtual = record.virtual
    assert virtual is not None
    return (
        f"{record.run.id} on virtual board {printable(virtual.board)}, kernel "
        f"{printable(virtual.kernel)}: {trace.cpus} CPUs, quantum "
        f"{trace.quantum} instructions, {trace.instruction_ns} virtual ns each"
    )


def path_blocks(path: ListedPath, number: int, *, limit: int) -> Iterator[Block]:
    """Yield one path: its head, then at most `limit` steps; 0 for all of them."""
    yield ""
    yield (_title(path, number), "strong")
    yield from ((f"  {one}", "muted") for one in _remarks(path))
    if path.section.left_out:
        return
    steps = path.steps if limit == 0 else _from_expiry(path)
    yield (f"{'virtual µs':>14} {'CPU':>4} {'executed ns':>13}  step", "muted")
    head, tail = _ends(steps, limit)
    yield from map(_row, head)
    if left := len(steps) - len(head) - len(tail):
        between = sum(s.executed_ns for s in steps[len(head) : len(steps) - len(tail)])
        yield (
            f"{'…':>14} {left:,} more steps with {between:,} ns: --limit 0 shows all",
            "muted",
        )
    yield from map(_row, tail)


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


def _row(step: Step) -> Words:
    at = f"{step.after_expiry_ns / 1000:>+14,.3f} {step.cpu:>4} "
    if step.kind is RecordKind.BLOCK:
        spans: tuple[Span, ...] = (
            f"{at}{step.executed_ns:>13,}  ",
            printable(step.what),
        )
    else:
        spans = f"{at}{'':>13}  ", (f"— {step.what}", _WEIGHTS.get(step.kind, ""))
    return Words(spans, fit="cut")
