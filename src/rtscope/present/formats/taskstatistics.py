"""The statistics that programs keep of their tasks: for a terminal, and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict

from rtscope.host.escape import printable
from rtscope.host.units import format_duration
from rtscope.machine.tasks.statistics import (
    Program,
    Spread,
    State,
    Statistics,
    TaskStatistics,
)
from rtscope.present.document import Block, Column, Table
from rtscope.present.words import NOTHING

_HEADS = ("TID", "TASK", "CYCLES", "MISSED", "OVER", "SKIP", "FAULTS")
_TIMES = ("LATENCY", "EXEC", "RESPONSE", "JITTER")


def statistics_blocks(statistics: Statistics) -> Iterator[Block]:
    """Yield each program's tasks, with the maximum of each time; nothing for none."""
    for program in statistics.programs:
        yield (_title(program), "strong")
        columns = (Column(head, right=head != "TASK") for head in (*_HEADS, *_TIMES))
        if program.tasks:
            yield Table(tuple(columns), list(map(_cells, program.tasks)), gap=1)
        else:
            yield "  it has started none"
        for task in program.tasks:
            for note in _notes(program, task):
                yield f"  {printable(task.name)}: {note}"
        yield ""
    for unread in statistics.unread:
        yield (f"not read: {printable(unread)}", "muted")


def statistics_rows(statistics: Statistics) -> list[dict[str, object]]:
    """Return the programs for a JSON document: times in ns."""
    rows = []
    for program in statistics.programs:
        row = asdict(program)
        for task, one in zip(row["tasks"], program.tasks, strict=True):
            task["state"] = one.state.name.lower()
        rows.append(row)
    return rows


def _title(program: Program) -> str:
    said = f"{printable(program.name)} [{program.pid}]"
    if not program.crashed:
        return f"{said} keeps statistics of its tasks (times are maxima):"
    return (
        f"{said} ended without closing the statistics of its tasks (times are maxima); "
        f"delete {program.path}:"
    )


def _cells(task: TaskStatistics) -> list[str]:
    counts = (task.cycles, task.missed, task.overruns, task.skipped)
    faults = task.minor_faults + task.major_faults
    times = (task.latency, task.execution, task.response, task.jitter)
    return [
        str(task.tid),
        printable(task.name),
        *map(str, (*counts, faults)),
        *(_most(time) for time in times),
    ]


def _most(spread: Spread) -> str:
    if spread.max_ns is None:
        return NOTHING
    return format_duration(spread.max_ns).replace(" ", "")


def _notes(program: Program, task: TaskStatistics) -> list[str]:
    notes = []
    if task.state is State.OVERRAN:
        notes.append(f"stopped by an overrun after release {task.number}")
    if program.crashed and task.in_cycle:
        notes.append(f"was in the cycle of release {task.number}")
    if program.crashed and task.usage_cycle != task.number:
        notes.append(f"page faults are counted {_counted(task)}")
    if task.last_fault_cycle is not None:
        notes.append(f"last page fault in {_fault(task)}")
    if task.torn:
        notes.append("was being written: its values may be of two cycles")
    return notes


def _counted(task: TaskStatistics) -> str:
    if task.usage_cycle is None:
        return "in no cycle"
    return f"up to the end of the cycle of release {task.usage_cycle}"


def _fault(task: TaskStatistics) -> str:
    if task.fault_since_cycle == task.last_fault_cycle:
        return f"the cycle of release {task.last_fault_cycle}"
    return (
        f"one of the cycles of releases {task.fault_since_cycle} to "
        f"{task.last_fault_cycle}"
    )
