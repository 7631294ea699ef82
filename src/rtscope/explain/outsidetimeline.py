"""
One cycle over all CPUs: who had each of them, and what ended each wait. Pure.

What the plugin recorded of the program alone names its threads, and who had a CPU
directly before and after them. All else on a CPU is not in that record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.holders import IDLE
from rtscope.explain.timeline import LEAD_SHARE, Slice, Timeline, Track
from rtscope.host.units import format_us
from rtscope.programs.outside.file import Entry, Kind, ProgramRecord, name_of
from rtscope.programs.outside.model import OutsideCycle

NOT_SEEN = (
    "Seen of the program alone: its threads, and who had a CPU directly before and "
    "after them. Interrupts, and what other threads did at other times, are not in it."
)


def marks_of(cycle: OutsideCycle) -> tuple[tuple[int, str], ...]:
    """Return the times of a cycle that have names, since it began, in their order."""
    since = cycle.begin_ns
    began = "due" if cycle.timed else "woken"
    named = [(0, began)]
    if cycle.timed and cycle.slept:
        named.append((cycle.woken_ns - since, "woken"))
    named.append((cycle.first_ns - since, "first instruction"))
    for wait in cycle.waits:
        by = f" by {wait.ended_by.name}" if wait.ended_by else ""
        named.append((wait.ended_ns - since, f"wait ended{by}"))
    named.append((cycle.done_ns - since, "done"))
    shown = sorted(named, key=lambda one: one[0])
    return tuple((ns, f"{words} {format_us(ns)}") for ns, words in shown)


def outside_timeline(record: ProgramRecord, cycle: OutsideCycle) -> Timeline:
    """Return what each CPU did in a cycle, as far as the program's record tells it."""
    begin_ns = cycle.begin_ns - int(LEAD_SHARE * cycle.response_ns)
    first, last = begin_ns - cycle.begin_ns, max(1, cycle.response_ns)
    lanes: dict[int, list[Slice]] = {}
    for one in _stays(record.entries, end_ns=cycle.done_ns):
        since = max(first, one.began_ns - cycle.begin_ns)
        until = min(last, one.ended_ns - cycle.begin_ns)
        if since < until:
            lanes.setdefault(one.cpu, []).append(Slice(0, since, until, one.name))
    return Timeline(
        begin_ns=first,
        end_ns=last,
        tracks=tuple(
            Track(cpu, tuple(sorted(lanes[cpu], key=lambda one: one.begin_ns)))
            for cpu in sorted(lanes)
        ),
        left_out=0,
        longest_left_out_ns=0,
    )


@dataclass(frozen=True, slots=True)
class _Stay:
    """A time in which a thread had a CPU."""

    cpu: int
    began_ns: int
    ended_ns: int
    name: str


def _stays(entries: Sequence[Entry], *, end_ns: int) -> Iterator[_Stay]:
    """Yield the stays of the program's threads, and of who followed them."""
    names: dict[int, str] = {}
    now: dict[int, tuple[int, int]] = {}
    for one in entries:
        if one.kind == Kind.NAME:
            names[one.tid] = name_of(one)
        if one.kind not in (Kind.IN, Kind.OUT):
            continue
        if one.kind == Kind.IN:
            yield from _stay(names, now.get(one.cpu), one)
            now[one.cpu] = one.tid, one.at_ns
            continue
        began = now.get(one.cpu)
        if began is not None and began[0] == one.tid:
            yield from _stay(names, began, one)
        now[one.cpu] = one.value >> 32, one.at_ns
    for cpu, (tid, began_ns) in now.items():
        yield _Stay(cpu, began_ns, max(began_ns, end_ns), _name(names, tid))


def _stay(
    names: dict[int, str], began: tuple[int, int] | None, until: Entry
) -> Iterator[_Stay]:
    if began is None:
        return
    tid, began_ns = began
    came_before = until.value & 0xFFFFFFFF if until.kind == Kind.IN else tid
    name = _name(names, tid)
    if came_before != tid:  # another one had it in between
        name = f"{name}, then {_name(names, came_before)}"
    yield _Stay(until.cpu, began_ns, until.at_ns, name)


def _name(names: dict[int, str], tid: int) -> str:
    name = names.get(tid, "") or (f"thread {tid}" if tid else "idle")
    return "idle" if name.startswith(IDLE) else name
