"""Records of a program as the plugin writes them, from a few words each."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from rtscope.programs.outside.file import VERSION, Kind

HEADER = struct.Struct("<8sII16sIIQ16x")
RECORD = struct.Struct("<QIIQQ")
ALL = sum(1 << kind for kind in Kind)

CLOCK_NANOSLEEP, FUTEX, READ, EXIT = 230, 202, 0, 60
"""Of x86-64."""
ABSTIME = 1
CLOCK_NS = 1_000_000_000
"""CLOCK_MONOTONIC is so far behind the board's time."""


def file_of(records: Iterable[bytes], *, cpus: int = 2, kinds: int = ALL) -> bytes:
    """Return a whole file."""
    head = HEADER.pack(b"RTSCPROG", VERSION, cpus, b"x86_64", 1, kinds, 2500)
    return head + b"".join(records)


@dataclass
class Written:
    """A record that is being written; times in us since the board was switched on."""

    records: list[bytes] = field(default_factory=list)
    user: int = 0

    def put(
        self,
        kind: Kind,
        at_us: float,
        tid: int,
        *,
        cpu: int = 0,
        detail: int = 0,
        value: int = 0,
        user: int | None = None,
    ) -> None:
        """Write one record."""
        stamp = kind << 56 | cpu << 48 | round(at_us * 1000)
        count = self.user if user is None else user
        value &= (1 << 64) - 1
        self.records.append(RECORD.pack(stamp, tid, detail, value, count))

    def thread(
        self,
        tid: int,
        name: str,
        *,
        own: bool = True,
        parent: int = 1,
        at_us: float = 0,
    ) -> None:
        """Mention a thread."""
        first, second = struct.unpack("<QQ", name.encode().ljust(16, b"\0"))
        self.put(Kind.THREAD, at_us, tid, detail=100, value=1, user=int(own))
        self.put(Kind.NAME, at_us, tid, value=first, user=second)

    def wake(
        self, tid: int, at_us: float, *, by: int = 0, due_us: float | None = None
    ) -> None:
        """Wake a thread, by its timer if that has a time."""
        if due_us is not None:
            due_ns = round(due_us * 1000)
            self.put(
                *(Kind.RELEASE, at_us, tid),
                detail=1,
                value=due_ns,
                user=due_ns - CLOCK_NS & (1 << 64) - 1,
            )
        self.put(Kind.WAKE, at_us, tid, value=by)

    def runs(
        self, tid: int, at_us: float, *, first_us: float | None = None, prio: int = 2
    ) -> None:
        """Switch to a thread, and have it execute its own instructions."""
        self.put(Kind.IN, at_us, tid, detail=prio)
        if first_us is not None:
            self.put(Kind.FIRST, first_us, tid)

    def call(
        self,
        tid: int,
        at_us: float,
        number: int,
        *,
        asked_us: float | None = None,
        for_us: float | None = None,
        first: int = 1,
        rest: tuple[int, int] | None = None,
    ) -> None:
        """Call the kernel; with a time to sleep to, or for, or other arguments."""
        self.put(Kind.CALL, at_us, tid, detail=number, value=first)
        if rest is not None:
            second, third = rest
            self.put(
                *(Kind.ARGUMENTS, at_us, tid), detail=number, value=second, user=third
            )
        if asked_us is not None:
            asked_ns = round(asked_us * 1000) - CLOCK_NS
            self.put(Kind.ARGUMENTS, at_us, tid, detail=number, value=ABSTIME, user=0)
            self.put(Kind.ASKED, at_us, tid, detail=ABSTIME, value=asked_ns)

        if for_us is not None:
            self.put(Kind.ARGUMENTS, at_us, tid, detail=number, value=0, user=0)
            self.put(Kind.ASKED, at_us, tid, detail=0, value=round(for_us * 1000))

    def returns(self, tid: int, at_us: float, number: int, result: int = 0) -> None:
        """Return from the kernel."""
        self.put(Kind.RETURN, at_us, tid, detail=number, value=result)

    def leaves(
        self, tid: int, at_us: float, *, by: int = 0, slept: bool = True
    ) -> None:
        """Switch away from a thread, which sleeps or is preempted."""
        self.put(Kind.OUT, at_us, tid, detail=int(not slept), value=by << 32)

    def cycle(
        self,
        tid: int,
        due_us: float,
        *,
        late_us: float = 5,
        work: int = 10_000,
        inside: Iterable[tuple[Kind, int]] = (),
    ) -> None:
        """
        Write a cycle of a loop: late, some instructions of 2 ns, then asleep.

        Inside are records by kind and detail.
        """
        at = due_us + late_us
        self.wake(tid, due_us + 1, due_us=due_us)
        self.runs(tid, at - 1, first_us=at)
        self.returns(tid, at, CLOCK_NANOSLEEP)
        for kind, detail in inside:
            self.put(kind, at, tid, detail=detail)
        self.user += work
        at += work * 2 / 1000
        self.call(tid, at, CLOCK_NANOSLEEP, asked_us=due_us + 1000)
        self.leaves(tid, at + 2)
