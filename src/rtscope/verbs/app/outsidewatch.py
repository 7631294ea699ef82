"""What was seen of a program from outside, in the form of what an agent sees."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtscope.boards.parts.program import Program
from rtscope.boards.recording.programseen import OutsideStart
from rtscope.boards.recording.programstacks import (
    PlaceStacks,
    stack_pointer,
    stacks_of_places,
)
from rtscope.boards.recording.programuses import NO_DEBUG_FILES, content_of
from rtscope.contract import (
    WatchBegin,
    WatchedEvent,
    WatchEnd,
)
from rtscope.contract.values import SCHEMA
from rtscope.host.units import format_us
from rtscope.present.words import enumeration
from rtscope.programs.images import Images
from rtscope.programs.memorymap import MemoryMap
from rtscope.programs.naming import BareFile, NamedStack
from rtscope.programs.outside.file import Entry, Kind, ProgramRecord
from rtscope.programs.outside.model import Outside
from rtscope.programs.outside.parts import cycle_parts
from rtscope.programs.outside.wakeups import OwnThread, Reader
from rtscope.programs.probes import is_allocation
from rtscope.programs.stackwords import frame_words
from rtscope.verbs.app.eventstacks import of_event, same_piece
from rtscope.verbs.app.model import OUTSIDE, EventStack, Observation, Watch
from rtscope.verbs.app.outsidecycles import thread_cycles
from rtscope.verbs.app.outsidethreads import (
    Around,
    PlaceEvent,
    ThreadSeen,
    seen_thread,
)
from rtscope.verbs.app.watch import ProcessSnapshot
from rtscope.verbs.app.watchedcycles import CycleRecording, recording_without_agent

_BLIND = ("major_fault", "signal", "alignment_fault", "emulation_fault")
"""Kinds of events that no board's record has."""
_NOT_OF_X86 = ("alignment_fault", "emulation_fault")
_BLIND_WHY = "the record of a virtual board does not have it"
_BLIND_REMEDY = "check it on a machine: --target ssh:HOST"
_BY_CALLS = (
    *("relative_sleep", "blocking_call", "memory_call", "lock_wait", "timeline"),
)
_BY_SWITCHES = ("preempted", "set_aside", "migration")
_MOST_PARTS = 4


@dataclass(frozen=True, slots=True)
class Facts:
    """What /proc said of a program when the time that is judged was over."""

    snapshot: ProcessSnapshot
    nonblocking: Callable[[int], bool | None]
    """Whether a descriptor does not block; None: it is not known."""


@dataclass(frozen=True, slots=True)
class OutsideWatch:
    """What was seen of the process that a start began with."""

    observation: Observation
    recording: CycleRecording
    longest: Mapping[int, str]
    """What took the time of the longest cycle of a thread, by TID."""


def outside_watch(
    program: Program, reader: Reader, seen: OutsideStart, facts: Facts
) -> OutsideWatch:
    """Return what was seen of the process that a start began with."""
    pid, record = seen.start.pid, reader.record
    threads = _threads(reader, seen, facts)
    pieces = facts.snapshot.maps
    with Images(content_of(program), debug_files=NO_DEBUG_FILES, find=()) as images:
        images.read(pieces)
        wanted = {
            one.place: is_allocation(one.event)
            for thread in threads
            for one in thread.events
        }
        named = stacks_of_places(record, wanted, pieces, images)
    begin, end = seen.outside.began_ns, seen.outside.ended_ns
    watch = Watch(
        WatchBegin(
            schema=SCHEMA,
            pid=pid,
            arch=record.arch,
            from_ns=begin,
            stack_bytes=0,
            events=tuple(_events(record)),
        ),
        tuple(one.watched for one in threads),
        WatchEnd(
            to_ns=end,
            stopped="",
            threads=len(threads),
            vanished=0,
            not_watched=0,
            stacks=len(named.stacks),
            agent_cpu_ns=0,
            costs={},
            records_lost=record.lost,
        ),
        _stacks(threads, record, named, MemoryMap(pieces)),
        own_faults={},
        from_outside=True,
    )
    names = (t.name for t in facts.snapshot.listing.threads if t.line.tid == pid)
    observation = Observation(
        pid=pid,
        name=next(names, ""),
        listing=facts.snapshot.listing,
        files=facts.snapshot.files,
        watch=watch,
        lazy_images=images.lazy,
        unread_images=images.unread,
        no_probe=seen.hidden.get(pid, ""),
        not_named=named.about.not_named,
        bare_files={
            path: BareFile(build_id, "") for path, build_id in named.about.bare.items()
        },
    )
    return OutsideWatch(
        observation,
        _cycles(reader, seen.outside, pid),
        _longest(seen.outside, named.stacks),
    )


def _threads(reader: Reader, seen: OutsideStart, facts: Facts) -> Sequence[ThreadSeen]:
    outside, pid = seen.outside, seen.start.pid
    span = outside.began_ns, outside.ended_ns
    own = {one.tid: one for one in reader.threads if one.process == pid}
    around = Around(
        span=span,
        functions=seen.functions,
        priorities={
            one.line.tid: effective + 100
            for one in facts.snapshot.listing.threads
            if (effective := one.own_effective) is not None
        },
        nonblocking=facts.nonblocking,
        own=own,
        entries=_switches(reader.record, own, span),
    )
    cycles = {one.tid: one for one in outside.threads}
    return [
        seen_thread(one, cycles.get(one.tid), around)
        for one in own.values()
        if one.began_ns < span[1] and (one.exit_ns is None or one.exit_ns > span[0])
    ]


def _switches(
    record: ProgramRecord, own: Mapping[int, OwnThread], span: tuple[int, int]
) -> Mapping[int, Sequence[Entry]]:
    found: dict[int, list[Entry]] = defaultdict(list)
    for one in record.entries:
        is_switch = one.kind in (Kind.IN, Kind.OUT)
        if is_switch and one.tid in own and span[0] <= one.at_ns < span[1]:
            found[one.tid].append(one)
    return found


def _events(record: ProgramRecord) -> Iterator[WatchedEvent]:
    """Yield which kinds of events are in the record, and why others are not."""
    for name in _BLIND:
        if name not in _NOT_OF_X86 or record.arch != "x86_64":
            yield _event(name, _BLIND_WHY, OUTSIDE, _BLIND_REMEDY)
    for names, kind in (
        (("minor_fault",), Kind.FAULT),
        (_BY_CALLS, Kind.CALL),
        (_BY_SWITCHES, Kind.IN),
    ):
        why = "" if kind in record.kinds else "this kernel does not allow to see it"
        for name in names:
            yield _event(name, why)


def _event(name: str, why: str, cause: str = "", remedy: str = "") -> WatchedEvent:
    return WatchedEvent(
        name, seen=not why, user_only=False, cause=cause, reason=why, remedy=remedy
    )


# --- stacks ---------------------------------------------------------------------------


def _stacks(
    threads: Iterable[ThreadSeen],
    record: ProgramRecord,
    named: PlaceStacks,
    maps: MemoryMap,
) -> Mapping[tuple[int, str], tuple[EventStack, ...]]:
    """Return the stacks of events by thread and kind, the most frequent first."""
    groups: dict[tuple[int, str], dict[tuple[int, str, int], list[PlaceEvent]]] = {}
    for thread in threads:
        for one in thread.events:
            of_kind = groups.setdefault((thread.watched.tid, one.event), {})
            of_kind.setdefault((one.place, one.call, one.key), []).append(one)
    return {
        of: tuple(
            _event_stack(same, named.stacks[same[0].place], record, maps)
            for same in sorted(kinds.values(), key=lambda one: -len(one))
            if same[0].place in named.stacks
        )
        for of, kinds in groups.items()
    }


def _event_stack(
    same: Sequence[PlaceEvent],
    stack: NamedStack,
    record: ProgramRecord,
    maps: MemoryMap,
) -> EventStack:
    one = same[0]
    pointer = stack_pointer(record.stacks[one.place - 1], record.arch)
    return EventStack(
        of_event(stack, one.event, one.call),
        times=len(same),
        address=one.address,
        call=one.call,
        key=one.key,
        own_memory=same_piece(maps, one.key, pointer),
    )


# --- cycles ---------------------------------------------------------------------------


def _cycles(reader: Reader, outside: Outside, pid: int) -> CycleRecording:
    return recording_without_agent(
        pid,
        (outside.began_ns, outside.ended_ns),
        {one.tid: thread_cycles(one) for one in outside.threads if one.process == pid},
        runs=sum(len(one.wakeups) for one in reader.threads),
        left_out=reader.record.lost,
    )


def _longest(outside: Outside, stacks: Mapping[int, NamedStack]) -> dict[int, str]:
    def where(place: int) -> str:
        stack = stacks.get(place)
        if stack is None or stack.leading is None:
            return ""
        return frame_words(stack.frames[stack.leading])

    found = {}
    for thread in outside.threads:
        worst = thread.worst
        parts = cycle_parts(worst, outside.shift, where)[:_MOST_PARTS]
        said = enumeration([f"{format_us(ns)} µs {what}" for ns, what in parts])
        begin = "its time" if worst.timed else "its wake-up"
        response = format_us(worst.response_ns)
        found[thread.tid] = f"{response} µs from {begin} to its end: {said}"
    return found
