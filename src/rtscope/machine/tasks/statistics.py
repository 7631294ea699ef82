"""
The statistics that programs with `lib/rtscope_task` keep of their tasks.

They lie in shared memory (`/dev/shm/rtscope-task.PID`) in words of 64 bits, as
`lib/rtscope_task.h` describes them. They are read without a lock: a copy whose counts
do not agree was taken while the task wrote, and is read again.
"""

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from rtscope.machine.reader import Content, Denied, Missing, Reader

PATTERN = "/dev/shm/rtscope-task.*"
LAYOUT = 1
TRIES = 5

_MAGIC = b"rtsctask"
_HEADER_BYTES = 4096
_PROGRAM = slice(128, 192)
_SLOT_WORDS = 2048
_SLOT_BYTES = 8 * _SLOT_WORDS
_NAME = slice(25 * 8, 29 * 8)
_HISTOGRAMS = 32
_HISTOGRAM_WORDS = 504
_SUB_BITS = 4
_MAX_SLOTS = 256
"""More than a file of reader.MAX_FILE_BYTES holds."""


class State(IntEnum):
    """What a task does; the numbers of the library."""

    FREE = 0
    READY = 1
    RUNNING = 2
    ENDED = 3
    OVERRAN = 4


@dataclass(frozen=True, slots=True)
class Spread:
    """Times of one kind, one for each cycle."""

    count: int
    early: int
    """Below 0, and in no other field."""
    overflow: int
    min_ns: int | None
    max_ns: int | None
    mean_ns: float | None
    buckets: tuple[tuple[int, int], ...]
    """Those that are not empty: smallest value in ns, count."""

    @property
    def agrees(self) -> bool:
        """Whether each value is in a bucket, or counted as one that has none."""
        return self.count == self.overflow + sum(count for _, count in self.buckets)


@dataclass(frozen=True, slots=True)
class TaskStatistics:
    """What a task has counted since its first release."""

    tid: int
    name: str
    state: State
    period_ns: int
    """0: it is woken by events."""
    offset_ns: int
    deadline_ns: int
    cycles: int
    missed: int
    overruns: int
    skipped: int
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int
    last_fault_cycle: int | None
    """The last that the last fault may have been in."""
    fault_since_cycle: int | None
    """The first that it may have been in: most often the same."""
    usage_cycle: int | None
    """Faults and switches are counted up to the end of this one."""
    usage_ns: int | None
    """The time of that end, of the machine's CLOCK_MONOTONIC."""
    number: int
    """Of the release that began last."""
    in_cycle: bool
    latency: Spread
    execution: Spread
    response: Spread
    jitter: Spread
    torn: bool
    """Whether it was being written: its values may be of two cycles."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that keeps statistics, or has left them behind."""

    path: str
    pid: int
    name: str
    closed: bool
    tasks: tuple[TaskStatistics, ...]
    crashed: bool = False
    """Whether it ended without closing its statistics."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """All that was found on a machine."""

    programs: tuple[Program, ...]
    unread: tuple[str, ...]
    """Files that could not be read, with the reason."""

    def of(self, pids: Collection[int], *, whole: bool) -> "Statistics":
        """Return those of some processes; of the whole machine: of dead ones too."""
        programs = [p for p in self.programs if p.pid in pids or (whole and p.crashed)]
        return Statistics(tuple(programs), self.unread if whole else ())


def read_statistics(reader: Reader, pids: Collection[int]) -> Statistics:
    """
    Read the statistics of all programs; `pids` are the processes that live.

    Raises TargetError if the machine does not answer.
    """
    programs: dict[str, Program] = {}
    unread: dict[str, str] = {}
    for _ in range(TRIES):
        for path, content in reader.read_many([PATTERN]).items():
            if path in programs and not any(t.torn for t in programs[path].tasks):
                continue
            program = _program(path, content)
            if isinstance(program, Program):
                gone = program.pid not in pids and not program.closed
                programs[path] = replace(program, crashed=gone)
            elif program:
                unread[path] = program
        # What a dead program was writing stays torn.
        if not any(t.torn for p in programs.values() if not p.crashed for t in p.tasks):
            break
    return Statistics(
        tuple(programs[path] for path in sorted(programs)),
        tuple(f"{path}: {why}" for path, why in sorted(unread.items())),
    )


def _program(path: str, content: Content) -> Program | str:
    """Return what is in a file, or why it has none; "" if there is no file."""
    if isinstance(content, Missing):
        return ""
    if isinstance(content, Denied):
        return content.reason
    order = {_MAGIC: "<", _MAGIC[::-1]: ">"}.get(content[:8])
    if order is None or len(content) < _HEADER_BYTES:
        return "no statistics of rtscope_task, or not yet"
    layout, header, slot_bytes, slots = struct.unpack_from(f"{order}4Q", content, 8)
    if (layout, header, slot_bytes) != (LAYOUT, _HEADER_BYTES, _SLOT_BYTES):
        return f"layout {layout} is unknown to this rtscope, which knows {LAYOUT}"
    if slots > _MAX_SLOTS or len(content) < header + slots * slot_bytes:
        return "it is cut off"
    (pid,) = struct.unpack_from(f"{order}Q", content, 7 * 8)
    (closed,) = struct.unpack_from(f"{order}Q", content, 10 * 8)
    return Program(
        path,
        pid,
        _text(content[_PROGRAM]),
        bool(closed),
        tuple(_tasks(content, order, slots)),
    )


def _tasks(content: bytes, order: str, slots: int) -> Iterator[TaskStatistics]:
    for number in range(slots):
        start = _HEADER_BYTES + number * _SLOT_BYTES
        slot = content[start : start + _SLOT_BYTES]
        words = struct.unpack(f"{order}{_SLOT_WORDS}Q", slot)
        if words[1] in set(State) - {State.FREE}:
            yield _task(words, _text(slot[_NAME]))


def _task(words: Sequence[int], name: str) -> TaskStatistics:
    cycles, overruns = words[12], words[14]
    last_fault, usage_cycle = _cycle(words[20]), _cycle(words[29])
    latency, execution, response, jitter = (
        _spread(words[_HISTOGRAMS + i * _HISTOGRAM_WORDS :][:_HISTOGRAM_WORDS])
        for i in range(4)
    )
    in_cycle = bool(words[24])
    begun = cycles + in_cycle
    woken = latency.count + latency.early + overruns
    if words[8]:
        agrees = woken == begun and jitter.count == max(begun - 1, 0)
    else:  # woken by events: only those whose time is known have a latency
        agrees = woken <= begun and overruns == jitter.count == 0
    agrees = (
        agrees
        and words[0] % 2 == 0
        and all(s.agrees for s in (latency, execution, response, jitter))
        and response.count + response.early == cycles
        and execution.count + execution.early == cycles
    )
    return TaskStatistics(
        tid=words[2],
        name=name,
        state=State(words[1]),
        period_ns=words[8],
        offset_ns=words[9],
        deadline_ns=words[10],
        cycles=cycles,
        missed=words[13],
        overruns=overruns,
        skipped=words[15],
        minor_faults=words[16],
        major_faults=words[17],
        voluntary_switches=words[18],
        involuntary_switches=words[19],
        last_fault_cycle=last_fault,
        fault_since_cycle=None if last_fault is None else words[31],
        usage_cycle=usage_cycle,
        usage_ns=None if usage_cycle is None else words[30],
        number=words[21],
        in_cycle=in_cycle,
        latency=latency,
        execution=execution,
        response=response,
        jitter=jitter,
        torn=not agrees,
    )


def _cycle(word: int) -> int | None:
    return None if word == 2**64 - 1 else word


def _spread(words: Sequence[int]) -> Spread:
    count, early, overflow, low, high, total, carried = words[:7]
    return Spread(
        count,
        early,
        overflow,
        low if count else None,
        high if count else None,
        ((carried << 64) + total) / count if count else None,
        tuple((bucket_low_ns(i), n) for i, n in enumerate(words[8:]) if n),
    )


def bucket_low_ns(bucket: int) -> int:
    """Return the smallest value of a bucket, as the library's function does."""
    sub = 1 << _SUB_BITS
    if bucket < 2 * sub:
        return bucket
    return ((bucket & (sub - 1)) + sub) << ((bucket >> _SUB_BITS) - 1)


def _text(content: bytes) -> str:
    return content.partition(b"\0")[0].decode("utf-8", "backslashreplace")
