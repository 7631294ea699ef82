"""
What a thread did, seen from outside, in the form of what the agent of a machine counts.

Faults, allocations and preemptions are those of its whole cycles, as `rtscope test`
counts them; calls, waits and moves are those of the time that is judged. Pure.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from errno import ETIMEDOUT
from itertools import pairwise

from rtscope.contract import (
    EventCount,
    EventTimes,
    Inversion,
    Settable,
    Waker,
    WatchedCall,
    WatchedThread,
    WatchedWord,
)
from rtscope.contract.watching import Party
from rtscope.programs.calls import call_kinds
from rtscope.programs.outside.deeds import function_name
from rtscope.programs.outside.file import Entry, Kind
from rtscope.programs.outside.model import ORDINARY, OutsideThread
from rtscope.programs.outside.wakeups import (
    TIMER_ABSTIME,
    Call,
    OwnThread,
    Wakeup,
)
from rtscope.programs.outside.wakeups import Party as Other
from rtscope.verbs.app.descriptorflags import nonblocking_at

Span = tuple[int, int]
_STEADY_CLOCKS = (1, 7, 9)
"""CLOCK_MONOTONIC, CLOCK_BOOTTIME and its _ALARM: nobody sets them."""
_UNTIMED = ("none", "cycle")
_SLEEPS = ("clock_nanosleep", "clock_nanosleep_time64")
_FUTEX_WAITS = (0, 6, 9, 11, 13)
_FUTEX_WAKES = (1, 5, 7, 10)
_FUTEX_COMMAND = 0x7F
_FUTEX_CLOCK_REALTIME = 256
_LOCK_PI = 6
_IDLE = 0
"""The number of the idle thread of each CPU."""


@dataclass(frozen=True, slots=True)
class PlaceEvent:
    """Something that happened in a thread at a place of the program."""

    event: str
    place: int
    """The number of its stack."""
    call: str = ""
    key: int = 0
    address: int = 0


@dataclass(frozen=True, slots=True)
class Around:
    """What is known beside the record of a thread."""

    span: Span
    """The time that is judged."""
    functions: Sequence[str]
    """The names of those that were asked for, by their numbers."""
    priorities: Mapping[int, int]
    """The kernel's, of all threads that were there at the end, by TID."""
    nonblocking: Callable[[int], bool | None]
    """Whether a descriptor of the process does not block; None: unknown."""
    own: Mapping[int, OwnThread]
    """All threads of the program, by TID."""
    entries: Mapping[int, Sequence[Entry]]
    """The switches to and from each thread, in the time that is judged."""

    def priority(self, other: Other) -> int | None:
        """Return the kernel's priority of a thread; None: it is not known."""
        return self.priorities.get(other.tid) if other.prio is None else other.prio

    def party(self, other: Other) -> Party | None:
        """Return a thread for a finding; None: how urgent it is, is not known."""
        priority = self.priority(other)
        return None if priority is None else Party(other.tid, other.name, priority)


@dataclass(frozen=True, slots=True)
class ThreadSeen:
    """What a thread did, and where."""

    watched: WatchedThread
    events: tuple[PlaceEvent, ...]


@dataclass(frozen=True, slots=True)
class _Sleep:
    """From when a thread left its CPU for a wait until it had one again."""

    before: Wakeup
    after: Wakeup

    @property
    def began_ns(self) -> int:
        return self.before.asleep_ns or 0

    @property
    def ended_ns(self) -> int:
        return self.after.in_ns

    @property
    def by(self) -> Other | None:
        return self.after.held_by or self.after.waker

    @property
    def timed(self) -> tuple[int, int, str]:
        """Begin, length and who ended it."""
        by = "" if self.by is None else self.by.name
        return self.began_ns, max(0, self.ended_ns - self.began_ns), by


@dataclass(slots=True)
class _CallRow:
    call: Call
    harmless: int = 0
    undecided: int = 0
    times: list[tuple[int, int, str]] = field(default_factory=list)
    slept: list[tuple[int, int, str]] = field(default_factory=list)
    held: list[tuple[int, int, str]] = field(default_factory=list)


def seen_thread(
    thread: OwnThread, cycles: OutsideThread | None, around: Around
) -> ThreadSeen:
    """Return what a thread did; without whole cycles all that it did counts."""
    return _Seen(thread, cycles, around).result()


class _Seen:
    """Goes through what a thread did."""

    def __init__(
        self, thread: OwnThread, cycles: OutsideThread | None, around: Around
    ) -> None:
        self._thread, self._around = thread, around
        self._spans: Sequence[Span] = (
            [around.span]
            if cycles is None
            else [(one.first_ns, one.done_ns) for one in cycles.cycles]
        )
        self._events: list[PlaceEvent] = []
        self._sleeps = [
            _Sleep(before, after)
            for before, after in pairwise(thread.wakeups)
            if before.asleep_ns is not None and self._judged(before.asleep_ns)
        ]
        self._calls = [
            call
            for wakeup in thread.wakeups
            for call in wakeup.calls
            if self._judged(call.began_ns)
        ]

    def result(self) -> ThreadSeen:
        thread, (begin_ns, end_ns) = self._thread, self._around.span
        counts = {**self._in_cycles(), **self._switches(), **self._relative_sleeps()}
        watched = WatchedThread(
            tid=thread.tid,
            name=thread.name,
            from_ns=max(begin_ns, thread.began_ns),
            to_ns=end_ns if thread.exit_ns is None else min(end_ns, thread.exit_ns),
            ended=thread.exit_ns is not None and thread.exit_ns < end_ns,
            samples_lost=0,
            events=counts,
            wakers=tuple(self._wakers()),
            other_wakers=0,
            inversions=tuple(self._inversions()),
            records_lost=0,
            kernel_waits=_times(
                one.timed for one in self._sleeps if one.before.uninterruptible
            ),
            calls=self._call_rows(),
            other_calls=0,
            slept_elsewhere_ns=sum(
                one.timed[1] for one in self._sleeps if _is_elsewhere(one.before.wait)
            ),
            words=tuple(self._words()),
            other_words=0,
        )
        return ThreadSeen(watched, tuple(self._events))

    def _judged(self, at_ns: int) -> bool:
        begin_ns, end_ns = self._around.span
        return begin_ns <= at_ns < end_ns

    def _within(self, at_ns: int) -> bool:
        number = bisect_right(self._spans, at_ns, key=lambda one: one[0]) - 1
        return number >= 0 and at_ns < self._spans[number][1]

    # --- counted in its cycles --------------------------------------------------------

    def _in_cycles(self) -> dict[str, EventCount]:
        counts: Counter[str] = Counter()
        pushes: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        wakeups = self._of_cycles()
        for fault in (one for wakeup in wakeups for one in wakeup.faults):
            if self._within(fault.at_ns):
                self._note("minor_fault", fault.place, address=fault.value)
                counts["minor_fault"] += 1
        for use in (one for wakeup in wakeups for one in wakeup.uses):
            if self._within(use.began_ns):
                name = function_name(self._around.functions, use.function)
                self._note(name, use.place)
                counts[name] += 1
        for push in (one for wakeup in wakeups for one in wakeup.preemptions):
            if self._within(push.began_ns):
                ordinary = (self._around.priority(push.by) or 0) >= ORDINARY
                lasted = push.ended_ns - push.began_ns
                row = push.began_ns, lasted, push.by.name or f"thread {push.by.tid}"
                pushes["set_aside" if ordinary else "preempted"].append(row)
        found = {name: EventCount(count, 0) for name, count in counts.items()}
        timed = {
            name: EventCount(len(rows), 0, _times(rows))
            for name, rows in pushes.items()
        }
        return {**found, **timed}

    def _of_cycles(self) -> Sequence[Wakeup]:
        """Return the wake-ups that may have something of its cycles."""
        begin_ns, end_ns = self._around.span
        return [
            one
            for one in self._thread.wakeups
            if one.in_ns < end_ns
            and (one.asleep_ns is None or one.asleep_ns >= begin_ns)
        ]

    def _note(self, event: str, place: int, **more: object) -> None:
        if place:
            self._events.append(PlaceEvent(event, place, **more))  # type: ignore[arg-type]

    # --- switches ---------------------------------------------------------------------

    def _switches(self) -> dict[str, EventCount]:
        """Count moves between CPUs, and CPUs that stood idle while it was ready."""
        entries = self._around.entries.get(self._thread.tid, ())
        came = [one.cpu for one in entries if one.kind == Kind.IN]
        counts = {"migration": sum(a != b for a, b in pairwise(came))}
        aside = sum(
            one.kind == Kind.OUT and one.detail == 1 and one.value >> 32 == _IDLE
            for one in entries
        )
        if aside:
            counts["set_aside"] = aside
        return {name: EventCount(n, 0) for name, n in counts.items() if n}

    def _relative_sleeps(self) -> dict[str, EventCount]:
        found = [
            one
            for one in self._calls
            if one.name in _SLEEPS
            and (
                not one.arguments[1] & TIMER_ABSTIME
                or one.arguments[0] & 0xFFFFFFFF not in _STEADY_CLOCKS
            )
        ]
        for one in found:
            self._note("relative_sleep", one.place, call=one.name)
        return {"relative_sleep": EventCount(len(found), 0)} if found else {}

    # --- calls ------------------------------------------------------------------------

    def _call_rows(self) -> tuple[WatchedCall, ...]:
        rows: dict[tuple[str, str], _CallRow] = {}
        sleeps: dict[int, list[_Sleep]] = defaultdict(list)
        for sleep in self._sleeps:
            sleeps[id(sleep.before.wait)].append(sleep)
        says = nonblocking_at(self._calls, self._around.nonblocking)
        for call, nonblocking in zip(self._calls, says, strict=True):
            kind = call_kinds().get(call.name)
            effect = "" if kind is None else kind.effect
            if effect in (*_UNTIMED, "lock"):
                continue
            key = f"{call.arguments[0]:x}" if kind is not None and kind.idle else "0"
            row = rows.setdefault((call.name, key), _CallRow(call))
            harmless = kind is not None and kind.cannot_block(
                call.arguments, nonblocking
            )
            if harmless is not False and not call.slept:
                row.harmless += harmless is True
                row.undecided += harmless is None
                continue
            event = "memory_call" if effect == "memory" else "blocking_call"
            self._note(
                event,
                call.place,
                call=call.name,
                key=int(key, 16),
            )
            slept = sleeps[id(call)]
            if call.ended_ns is not None:
                lasted = call.ended_ns - call.began_ns
                row.times.append((call.began_ns, lasted, call.name))
            row.slept += [one.timed for one in slept]
            row.held += [one.timed for one in slept if one.before.uninterruptible]
        return tuple(_watched_call(*key, row) for key, row in rows.items())

    # --- locks ------------------------------------------------------------------------

    def _words(self) -> Iterator[WatchedWord]:
        waits: dict[int, list[_Sleep]] = defaultdict(list)
        for sleep in self._sleeps:
            call = sleep.before.wait
            if call is not None and _futex_command(call) in _FUTEX_WAITS:
                waits[call.arguments[0]].append(sleep)
                self._note(
                    "lock_wait", call.place, call=call.name, key=call.arguments[0]
                )
        wakes: dict[int, list[Call]] = defaultdict(list)
        for call in self._calls:
            if _futex_command(call) in _FUTEX_WAKES:
                wakes[call.arguments[0]].append(call)
                self._note(
                    "lock_wake", call.place, call=call.name, key=call.arguments[0]
                )
        for word, slept in waits.items():
            first = slept[0].before.wait
            longest = max(slept, key=lambda one: one.timed[1])
            values = {_expected(one.before.wait) for one in slept}
            if first is None:
                continue
            yield WatchedWord(
                word=f"{word:x}",
                value=_expected(first),
                command=_futex_command(first) or 0,
                values_differ=len(values) > 1,
                wakes=sum(one.began_ns > slept[0].began_ns for one in wakes[word]),
                looks=0,
                free=0,
                times=_times(one.timed for one in slept),
                waker=None if longest.by is None else self._around.party(longest.by),
                settable=_settable([one.before.wait for one in slept]),
            )

    def _inversions(self) -> Iterator[Inversion]:
        """Yield who had the CPU of the owner of a lock that it waited for."""
        rows: dict[tuple[Party, Party, str], list[tuple[int, int, str]]] = {}
        for sleep in self._sleeps:
            owner = None if sleep.by is None else self._around.own.get(sleep.by.tid)
            party = None if sleep.by is None else self._around.party(sleep.by)
            if owner is None or party is None or party.priority <= sleep.before.prio:
                continue
            word = _word_of(sleep.before.wait)
            if word is None and sleep.after.held_by is None:
                continue
            for push in (one for w in owner.wakeups for one in w.preemptions):
                begin = max(push.began_ns, sleep.began_ns)
                lasted = min(push.ended_ns, sleep.ended_ns) - begin
                by = self._around.party(push.by)
                if lasted > 0 and by is not None and by.priority > sleep.before.prio:
                    key = party, by, f"{word or 0:x}"
                    rows.setdefault(key, []).append((begin, lasted, ""))
        for (party, by, name), times in rows.items():
            yield Inversion(party, by, _times(times), name)

    # --- who wakes --------------------------------------------------------------------

    def _wakers(self) -> Iterator[Waker]:
        """Yield the less urgent threads that woke it; what interrupted them did not."""
        counts: Counter[tuple[Party, str]] = Counter()
        for one in self._thread.wakeups:
            if not self._judged(one.woken_ns) or one.waker is None or one.by_interrupt:
                continue
            by = self._around.party(one.waker)
            if by is not None and by.priority > one.prio and one.prio < ORDINARY:
                counts[by, f"{_word_of(one.after) or 0:x}"] += 1
        for (by, word), count in counts.items():
            yield Waker(by, softirq=False, count=count, word=word)


def _futex_command(call: Call | None) -> int | None:
    """Return what a call does with a word of memory; None: it is no such call."""
    if call is None or not call.name.startswith("futex"):
        return None
    return 0 if call.name == "futex_wait" else call.arguments[1] & _FUTEX_COMMAND


def _settable(calls: Sequence[Call | None]) -> Settable | None:
    """Return the waits that a time of CLOCK_REALTIME ended; None: none is known."""
    ended = sum(
        one is not None
        and one.result == -ETIMEDOUT
        and (
            _futex_command(one) == _LOCK_PI
            or bool(one.arguments[1] & _FUTEX_CLOCK_REALTIME)
        )
        for one in calls
    )
    return Settable(ended, ended) if ended else None


def _expected(call: Call | None) -> int:
    if call is None:
        return 0
    at = 1 if call.name == "futex_wait" else 2
    return call.arguments[at] & 0xFFFFFFFF


def _word_of(call: Call | None) -> int | None:
    command = _futex_command(call)
    return None if call is None or command is None else call.arguments[0]


def _is_elsewhere(call: Call | None) -> bool:
    """Whether a sleep is in no call that has a row of its own."""
    kind = None if call is None else call_kinds().get(call.name)
    return call is None or (kind is not None and kind.effect in _UNTIMED)


def _watched_call(name: str, key: str, row: _CallRow) -> WatchedCall:
    kind = call_kinds().get(name)
    return WatchedCall(
        name="" if kind is None else name,
        number=row.call.number,
        memory=kind is not None and kind.effect == "memory",
        idle=kind is not None and kind.idle,
        key=key,
        harmless=row.harmless,
        undecided=row.undecided,
        times=_times(row.times),
        slept=_times(row.slept),
        held=_times(row.held),
    )


def _times(rows: Iterable[tuple[int, int, str]]) -> EventTimes:
    """Return how long those lasted that have a begin, a length and a name."""
    some = list(rows)
    if not some:
        return EventTimes(0, 0, 0, 0, "")
    began_ns, lasted_ns, where = max(some, key=lambda one: one[1])
    return EventTimes(
        len(some), sum(one[1] for one in some), lasted_ns, began_ns, where
    )
