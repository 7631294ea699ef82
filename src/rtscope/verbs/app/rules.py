"""
The findings: each is one rule about what was seen of a process.

Threads are judged that have a real-time policy, or those that were named; if the
process has no such thread, that is the first finding, and all are judged.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtscope.contract import FIXED_PRIORITY, WatchedThread
from rtscope.host.errors import UsageError
from rtscope.host.units import is_whole, plural
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.tasks.marks import enumerated
from rtscope.machine.tasks.model import Thread, ThreadKind
from rtscope.present.words import duration
from rtscope.programs.memorymap import MemoryMap, Piece, pieces_in
from rtscope.programs.probes import is_allocation, plain_name
from rtscope.verbs.app.deadlines import DEADLINE, apart_from_yields, without_yields
from rtscope.verbs.app.lookups import lookups
from rtscope.verbs.app.model import (
    RANK,
    EventStack,
    Examined,
    Finding,
    Observation,
)
from rtscope.verbs.app.settable import by_settable_clock
from rtscope.verbs.app.spins import without_spins
from rtscope.verbs.app.unseen import unseen_of
from rtscope.verbs.app.waits import (
    locks_in,
    of_waits,
    rate_of,
    unseen_waits,
    worst_of,
)

_EVENTS = {
    "minor_fault": "RA05",
    "major_fault": "RA06",
    "relative_sleep": "RA09",
    "preempted": "RA13",
    "set_aside": "RA14",
    "migration": "RA15",
    "signal": "RA21",
    "alignment_fault": "RA22",
    "emulation_fault": "RA22",
}
_OF_REAL_TIME = ("preempted", "set_aside")
"""What a scheduler does to ordinary threads all the time."""

_FAULTS = ("minor_fault", "major_fault")
_TRAPS = {
    "alignment_fault": "addresses that the kernel has to align",
    "emulation_fault": "instructions that the kernel has to emulate",
}
HIGHEST = 99
TIMER_SLACK_NS = 1000
MEMLOCK_NEAR = 0.8


def examine(observation: Observation, *, threads: Sequence[str] = ()) -> Examined:
    """
    Return the findings, the worst first.

    `threads`: names or TIDs of those to judge. Raises UsageError for one that the
    process does not have.
    """
    judged = _judged(observation, threads)
    findings = [
        *_policies(observation, judged),
        *_set_up(observation, judged),
        *_events(observation, judged),
        *_memory(observation),
        *_limits(observation, judged),
        *_surroundings(observation),
    ]
    findings.sort(key=lambda one: (RANK[one.weight], one.id, -(one.count or 0)))
    found = {one.id for one in findings}
    unseen = (*unseen_of(observation, _EVENTS), *unseen_waits(observation.watch, found))
    return Examined(observation, judged, tuple(findings), unseen)


def _judged(seen: Observation, named: Sequence[str]) -> tuple[Thread, ...]:
    if named:
        chosen = [t for t in seen.threads if {t.name, str(t.line.tid)} & set(named)]
        known = {word for t in chosen for word in (t.name, str(t.line.tid))}
        if missing := [name for name in named if name not in known]:
            names = ", ".join(f"{t.line.tid} {t.name}" for t in seen.threads[:20])
            raise UsageError(
                f"--thread {missing[0]}: process {seen.pid} has no such thread; it "
                f"has {names}"
            )
        return tuple(chosen)
    real_time = tuple(t for t in seen.threads if t.real_time and not _of_kernel(t))
    return real_time or seen.threads


_WORKER = re.compile(r"iou-(?:wrk|sqp)-\d+")


def _of_kernel(thread: Thread) -> bool:
    """Whether the kernel made it of the process, for calls that io_uring lets wait: it
    has the priority of who asked, and no cycle."""
    return _WORKER.fullmatch(thread.name) is not None


def _policies(seen: Observation, judged: Sequence[Thread]) -> Iterator[Finding]:
    if not any(t.real_time for t in seen.threads):
        total = len(seen.threads)
        variant = "musl" if _has_musl(seen) else ""
        detail = f"none of its {total} threads is: all are judged"
        yield Finding("RA01", detail, variant=variant)
        return
    for thread in judged:
        if not thread.real_time:
            yield _about(thread, "RA01", f"policy {thread.line.policy}")
    if all(thread.real_time for thread in judged):
        yield from _ordinary_beside(seen, judged)


_MUSL = re.compile(r"/ld-musl-|-linux-musl[^/\n]*/libc\.so|/musl[^/\n]*/src/")


def _has_musl(seen: Observation) -> bool:
    """Whether its C library, also one that is linked into it, is musl."""
    files = (
        frame.file
        for stacks in seen.watch.stacks.values()
        for one in stacks
        for frame in one.stack.frames
    )
    return any(map(_MUSL.search, (seen.files.smaps or "", *files)))


def _ordinary_beside(seen: Observation, judged: Sequence[Thread]) -> Iterator[Finding]:
    """Find ordinary threads on which real-time ones depend, or that there are some."""
    ordinary = {t.line.tid: t for t in seen.threads if not t.real_time}
    links: dict[int, list[str]] = {}
    tids = {t.line.tid for t in judged}
    for watched in seen.watch.threads:
        if watched.tid not in tids:
            continue
        woke: Counter[int] = Counter()
        for waker in watched.wakers:
            if waker.by.tid in ordinary and not waker.softirq:
                woke[waker.by.tid] += waker.count
        for tid, count in woke.items():
            said = f"it woke {watched.name} ({watched.tid}) {plural(count, 'time')}"
            links.setdefault(tid, []).append(said)
        locks = locks_in(seen.watch, watched)
        for one in watched.inversions:
            if one.owner.tid in ordinary and one.word in locks:
                said = f"it had a lock that {watched.name} ({watched.tid}) waited for"
                links.setdefault(one.owner.tid, []).append(said)
    for tid, every in links.items():
        yield _about(ordinary[tid], "RA01", ", ".join(dict.fromkeys(every)))
    first = seen.threads[0]
    alone = [t for t in seen.threads if t.real_time] == [first] and first.is_leader
    if ordinary and alone and not links:
        others = plural(len(ordinary), "other")
        detail = f"only the first thread is real-time, {others} not"
        yield Finding("RA01", detail, variant="apart")


def _about(thread: Thread, id_: str, detail: str) -> Finding:
    return Finding(id_, detail, tid=thread.line.tid, thread=thread.name)


def _set_up(seen: Observation, judged: Sequence[Thread]) -> Iterator[Finding]:
    """Find priorities, CPUs and slack that do not fit: each once of the process."""
    fifo = [t for t in judged if t.line.policy in FIXED_PRIORITY]
    peers = list(_peers(seen, fifo))
    yield from _once(
        "RA02", [*((t, f"{t.line.policy} 99") for t in fifo if _is_99(t)), *peers]
    )
    wide = [t for t in fifo if len(t.cpus) > 1]
    yield from _once(
        "RA03",
        [
            *((t, f"may run on CPU {format_cpulist(t.cpus)}") for t in wide),
            *(
                (thread, mark.detail)
                for thread in judged
                for mark in thread.marks
                if mark.id == "housekeeping"
            ),
        ],
    )
    yield from _once(
        "RA18",
        [
            (thread, f"timer slack {duration(slack)}")
            for thread in judged
            if not thread.real_time
            and (slack := thread.line.timer_slack_ns) is not None
            and slack > TIMER_SLACK_NS
        ],
    )


def _is_99(thread: Thread) -> bool:
    return thread.line.priority == HIGHEST


def _peers(seen: Observation, judged: Sequence[Thread]) -> Iterator[tuple[Thread, str]]:
    """Give the FIFO threads that may meet an equal one of a program on their CPUs."""
    fifo = [
        one
        for one in seen.listing.threads
        if one.line.policy == "fifo"
        and one.kind is ThreadKind.USER
        and not _of_kernel(one)
    ]
    for thread in judged:
        meeting = [
            one
            for one in fifo
            if one.line.tid == thread.line.tid
            or (one.line.priority == thread.line.priority and one.cpus & thread.cpus)
        ]
        if len(meeting) > 1 and thread.line.policy == "fifo":
            of = f"{len(meeting)} of priority {thread.line.priority}"
            yield thread, f"{of}: {_names(meeting)}"


def _names(threads: Sequence[Thread]) -> str:
    return enumerated(threads, len(threads), most=None)


def _once(id_: str, some: Sequence[tuple[Thread, str]]) -> Iterator[Finding]:
    """Yield one finding about all of them; about a single thread with its TID."""
    of_thread: dict[int, tuple[Thread, list[str]]] = {}
    for thread, detail in some:
        of_thread.setdefault(thread.line.tid, (thread, []))[1].append(detail)
    alike: dict[str, list[Thread]] = {}
    for thread, details in of_thread.values():
        alike.setdefault(", ".join(details), []).append(thread)
    if len(of_thread) == 1:
        ((detail, (thread,)),) = alike.items()
        yield _about(thread, id_, detail)
    elif of_thread:
        words = [
            text if (names := _names(group)) in text else f"{names}: {text}"
            for text, group in alike.items()
        ]
        yield Finding(id_, f"{plural(len(of_thread), 'thread')}: {'; '.join(words)}")


def _events(seen: Observation, judged: Sequence[Thread]) -> Iterator[Finding]:
    listed = {t.line.tid for t in seen.threads}
    tids = {t.line.tid for t in judged}
    judge_all = len(judged) == len(seen.threads)
    maps = [p.mapping for p in pieces_in(seen.files.smaps or "")]
    policies = {t.line.tid: t.line.policy for t in judged}
    for one in seen.watch.threads:
        # one that came and went was in no list of threads
        if one.tid not in tids and not (judge_all and one.tid not in listed):
            continue
        of_deadline = policies.get(one.tid) == DEADLINE
        watched = without_yields(one) if of_deadline else one
        watched, spun = without_spins(seen.watch, watched)
        yield from spun
        real_time = one.tid in {t.line.tid for t in judged if t.real_time}
        for kind, id_ in _EVENTS.items():
            if kind in _OF_REAL_TIME and not real_time:
                continue
            if count := _count(seen, watched, kind):
                found = _event(seen, watched, id_, kind, count, MemoryMap(maps))
                yield _of_deadline(found) if of_deadline else found
        yield from _allocations(seen, watched)
        yield from lookups(seen, watched)
        yield from of_waits(seen.watch, watched)
        yield from by_settable_clock(seen.watch, watched)


def _of_deadline(found: Finding) -> Finding:
    """Return a finding as it is of a thread that has a runtime of its own."""
    if found.id == "RA15":
        return replace(found, variant="deadline")
    if found.id not in ("RA13", "RA14"):
        return found
    variant = "runtime" if found.id == "RA14" else found.variant
    return replace(found, stacks=apart_from_yields(found.stacks), variant=variant)


def _count(seen: Observation, watched: WatchedThread, kind: str) -> int:
    """Return how often it happened but for what the watching did."""
    if kind not in watched.events:
        return 0
    own = seen.watch.own_faults.get(watched.tid, 0) if kind == "minor_fault" else 0
    return max(0, watched.events[kind].count - own)


def _event(
    seen: Observation,
    watched: WatchedThread,
    id_: str,
    kind: str,
    count: int,
    maps: MemoryMap,
) -> Finding:
    stacks = seen.watch.stacks_of(watched, kind)
    detail = ""
    if stacks and kind in _FAULTS:
        where = {_class_of(one, maps): None for one in stacks}
        detail = f"in {', '.join(where)}"
    elif kind in _TRAPS:
        detail = _TRAPS[kind]
    elif kind == "relative_sleep":
        detail = "sleeps that are not to a time of CLOCK_MONOTONIC"
    forks = kind == "minor_fault" and _forks(seen)
    return Finding(
        id_,
        detail,
        tid=watched.tid,
        thread=watched.name,
        count=count,
        rate_per_s=rate_of(count, watched),
        stacks=stacks,
        worst=worst_of(seen.watch, watched.events[kind].times),
        variant="fork" if forks else "",
    )


_FORK = re.compile(r"_*(?:GI_+|libc_)*[fF]ork(?:pty)?")


def _forks(seen: Observation) -> bool:
    """Whether a thread made processes that share its memory until one writes."""
    return any(
        _FORK.fullmatch(frame.function)
        for (_, event), stacks in seen.watch.stacks.items()
        for one in stacks
        if event == "blocking_call"
        for frame in one.stack.frames
    )


def _class_of(stack: EventStack, maps: MemoryMap) -> str:
    """Return what kind of memory was touched."""
    mapping = maps.at(stack.address)
    if mapping is None:
        return "memory that is gone"
    if mapping.path in ("[heap]", "[stack]"):
        return mapping.path.strip("[]")
    if not mapping.path or mapping.path.startswith("["):
        return "anonymous memory"
    if mapping.executable:
        return "code"
    return "a file" if "s" in mapping.permissions else "data of a file"


def _allocations(seen: Observation, watched: WatchedThread) -> Iterator[Finding]:
    counts: Counter[str] = Counter()
    stacks: list[EventStack] = []
    for name, one in watched.events.items():
        if is_allocation(name) and one.count:
            counts[plain_name(name)] += one.count
            stacks += seen.watch.stacks_of(watched, name)
    if not counts:
        return
    stacks.sort(key=lambda one: -one.times)
    total = sum(counts.values())
    yield Finding(
        "RA07",
        ", ".join(f"{name} {count:,}" for name, count in counts.items()),
        tid=watched.tid,
        thread=watched.name,
        count=total,
        rate_per_s=rate_of(total, watched),
        stacks=tuple(stacks),
    )


def _memory(seen: Observation) -> Iterator[Finding]:
    pieces = list(pieces_in(seen.files.smaps or ""))
    takeable = [piece for piece in pieces if piece.takeable]
    if takeable:
        whole = sum(piece.resident_kb for piece in pieces)
        part = sum(piece.resident_kb for piece in takeable)
        yield Finding(
            "RA04", f"{part:,} of {whole:,} KiB in memory, most in {_most(takeable)}"
        )
    missing = [piece for piece in pieces if piece.missing_code_kb]
    if missing:
        worst = max(missing, key=lambda piece: piece.missing_code_kb)
        total = sum(piece.missing_code_kb for piece in missing)
        yield Finding("RA23", f"{total:,} KiB, most in {worst.mapping.path}")


def _most(pieces: Sequence[Piece]) -> str:
    worst = max(pieces, key=lambda piece: piece.resident_kb)
    return worst.mapping.path or "anonymous memory"


_CAP_IPC_LOCK = 14
_LIMIT = re.compile(r"(Max [a-z ]+?) {2,}(\S+) +(\S+) *(\S*)")


def _limits(seen: Observation, judged: Sequence[Thread]) -> Iterator[Finding]:
    limits = {
        match[1]: match[2]
        for line in (seen.files.limits or "").splitlines()
        if (match := _LIMIT.match(line))
    }
    time_us = limits.get("Max realtime timeout", "unlimited")
    if is_whole(time_us) and any(t.real_time for t in judged):
        yield Finding(
            "RA19",
            f"RLIMIT_RTTIME is {time_us} µs: a real-time thread that runs longer "
            "without a sleep gets SIGXCPU",
        )
    lock = limits.get("Max locked memory", "unlimited")
    locked_kb = _status_number(seen, "VmLck")
    caps = re.search(r"^CapEff:\s+([0-9a-f]+)", seen.files.status or "", re.MULTILINE)
    unlimited = caps is not None and int(caps[1], 16) >> _CAP_IPC_LOCK & 1
    if is_whole(lock) and not unlimited and locked_kb * 1024 > MEMLOCK_NEAR * int(lock):
        yield Finding(
            "RA19",
            f"RLIMIT_MEMLOCK is {int(lock) // 1024:,} KiB, of which "
            f"{locked_kb:,} are used: the next thread may not start",
        )


def _status_number(seen: Observation, key: str) -> int:
    match = re.search(rf"^{key}:\s+([0-9]+)", seen.files.status or "", re.MULTILINE)
    return int(match[1]) if match else 0


def _surroundings(seen: Observation) -> Iterator[Finding]:
    if tracer := _status_number(seen, "TracerPid"):
        yield Finding("RA20", f"process {tracer} traces it (ptrace)")
    if _status_number(seen, "Seccomp") == 2:
        yield Finding("RA20", "a seccomp filter runs at each of its system calls")
