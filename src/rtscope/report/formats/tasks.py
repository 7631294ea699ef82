"""A list of threads: its table with what is to note, and the same as JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rtscope.report.escape import printable
from rtscope.report.formats.tasktable import print_threads, shown_name
from rtscope.report.words import capital, duration, enumeration, plural
from rtscope.tasks.choice import Order
from rtscope.tasks.marks import KINDS
from rtscope.tasks.model import Kind, Listing, Thread
from rtscope.tasks.notes import notes_of
from rtscope.units import format_duration

SCHEMA = 1
MAX_SHOWN_MARKED = 8

_POLICIES = ("deadline", "fifo", "rr", "ext", "batch", "idle", "other")


def print_tasks(
    listing: Listing, shown: Sequence[Thread], console: Console, *, order: Order
) -> None:
    """Print the threads that were chosen, what is to note of them, and a summary."""
    window = listing.end.window_ns is not None
    print_threads(shown, console, order=order, window=window)
    console.print()
    for line in _marked(shown):
        console.print(line)
    for note in notes_of(listing):
        console.print(Text(printable(note), style="dim"))
    console.print(Text(summary(listing, shown), style="bold"))


def summary(listing: Listing, shown: Sequence[Thread]) -> str:
    """Return how many threads there are, of which policies and kinds."""
    policies = Counter(thread.line.policy for thread in shown)
    order = [*_POLICIES, *sorted(set(policies) - set(_POLICIES))]
    kinds = Counter(thread.kind for thread in shown)
    said = ", ".join(f"{policies[p]:,} {p}" for p in order if policies[p])
    told = f"{plural(len(shown), 'thread')}"
    if len(shown) != len(listing.threads):
        told += f" of {len(listing.threads):,}"
    if said:
        told += (
            f": {said}; {kinds[Kind.USER]:,} user, {kinds[Kind.KERNEL]:,} kernel, "
            f"{kinds[Kind.IRQ]:,} interrupt"
        )
    if listing.end.window_ns is not None:
        told += f"; CPU% over {format_duration(listing.end.window_ns)}"
    return told


def render_tasks_json(listing: Listing, shown: Sequence[Thread], *, target: str) -> str:
    """Return the threads as JSON, one a line: stable keys, times in ns."""
    around = listing.around
    isolated = None if around.isolated is None else sorted(around.isolated)
    head = {
        "schema": SCHEMA,
        "target": target,
        "isolated": isolated,
        "sched_ext": around.sched_ext,
        "processes": listing.end.processes,
        "threads_seen": len(listing.threads),
        "vanished": listing.end.vanished,
        "missed": listing.end.missed,
        "window_ns": listing.end.window_ns,
        "notes": notes_of(listing),
    }
    opening = json.dumps(head, indent=1)[:-2]
    rows = ",\n".join(f"  {json.dumps(task_row(thread))}" for thread in shown)
    return f'{opening},\n "threads": [\n{rows}\n ]\n}}\n'


def task_row(thread: Thread) -> dict[str, object]:
    """Return a thread for a JSON document."""
    line = asdict(thread.line)
    for key in ("type", "name_hex", "kind", "name"):
        del line[key]
    irq = thread.irq
    return {
        "pid": line.pop("pid"),
        "tid": line.pop("tid"),
        "name": thread.name,
        "process": thread.process,
        "kind": thread.kind.value,
        "irq": None if irq is None else {"number": irq.number, "device": irq.device},
        **line,
        "share": thread.share,
        "boosted": thread.boosted,
        "marks": [{"id": mark.id, "detail": mark.detail} for mark in thread.marks],
    }


def _marked(shown: Sequence[Thread]) -> Iterator[Text | Padding]:
    for id_, kind in KINDS.items():
        found = [
            (thread, mark.detail)
            for thread in shown
            for mark in thread.marks
            if mark.id == id_
        ]
        if not found:
            continue
        style = "bold red" if kind.grave else "cyan"
        head = Text(f"{kind.word:5} ", style=style)
        head.append(f"{capital(kind.title)}: {len(found):,}. ", style="default bold")
        yield head.append(kind.why, style="default not bold")
        for thread, detail in found[:MAX_SHOWN_MARKED]:
            said = f"{thread.line.tid} {shown_name(thread)}: {printable(detail)}"
            yield Padding(
                Text(said + _parameters(thread, id_)), (0, 0, 0, 6), expand=False
            )
        if len(found) > MAX_SHOWN_MARKED:
            left = len(found) - MAX_SHOWN_MARKED
            yield Padding(
                Text(f"and {left:,} more", style="dim"), (0, 0, 0, 6), expand=False
            )
        yield Text()


def _parameters(thread: Thread, mark: str) -> str:
    deadline = thread.line.deadline
    if mark != "deadline" or deadline is None:
        return ""
    flags = [
        word
        for word, there in (
            ("reclaims", deadline.reclaim),
            ("is signalled at an overrun", deadline.overrun_signal),
        )
        if there
    ]
    return (
        f" ({duration(deadline.runtime_ns)} in each "
        f"{duration(deadline.period_ns)}, within {duration(deadline.deadline_ns)}"
        f"{'; ' if flags else ''}{enumeration(flags)})"
    )
