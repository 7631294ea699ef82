"""
From what a thread did between two sleeps to its cycles. Pure.

A cycle begins with a wake-up that `programs.cycles.periods` names, at the time at which
its timer was due, or where it went on at once because that time had passed. Sleeps for
something else are waits within a cycle. Without a period a cycle begins with each end
of the wait in which the thread sleeps longest.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from statistics import median_low

from rtscope.programs.calls import the_longest
from rtscope.programs.cycles.paces import period_at
from rtscope.programs.cycles.periods import (
    Basis,
    Beginnings,
    beginnings_of,
    missed_in,
    periods_between,
)
from rtscope.programs.cycles.threadruns import RELATIVE, Run
from rtscope.programs.outside.clocks import Clock
from rtscope.programs.outside.deeds import Deeds
from rtscope.programs.outside.file import Kind, ProgramRecord
from rtscope.programs.outside.locks import is_of_a_lock
from rtscope.programs.outside.model import (
    Outside,
    OutsideCycle,
    OutsideThread,
    Wait,
)
from rtscope.programs.outside.stretches import (
    Stretch,
    idle_of,
    place_of,
    stretches_of,
    with_equal_requests,
    with_served,
)
from rtscope.programs.outside.wakeups import (
    OwnThread,
    Reader,
    Wakeup,
)


def outside_of(
    record: ProgramRecord,
    *,
    process: int | None = None,
    warmup_ns: int = 0,
    duration_ns: int | None = None,
    given_ns: Callable[[str], int | None] = lambda _name: None,
    most: int | None = None,
    functions: Sequence[str] = (),
    reader: Reader | None = None,
) -> Outside:
    """
    Return the cycles of each thread of a start of the program.

    `process` is the one that the start began with; None: of all. Judged is the time
    after its warm-up; `given_ns` gives the period of a thread by its name, `most` the
    number of cycles to judge, `functions` the names of those that were asked for.
    Where threads were held at their birth, the warm-up ends with what that delayed.
    `reader` is of this record, if there is one already.
    """
    reader = reader or Reader(record)
    threads = _of_start(reader.threads, process)
    first_ns = min((one.began_ns for one in threads), default=0)
    begin_ns = first_ns + warmup_ns
    begin_ns = max(begin_ns, _held_until_ns(record, {one.tid for one in threads}))
    end_ns = reader.end_ns
    if duration_ns is not None:
        end_ns = min(end_ns, begin_ns + duration_ns)
    clock = Clock(threads)
    made = (
        _thread(one, clock, (begin_ns, end_ns), given_ns(one.name), most, functions)
        for one in threads
    )
    return Outside(
        threads=tuple(one for one in made if one is not None),
        began_ns=begin_ns,
        ended_ns=end_ns,
        lost=record.lost,
        kinds=record.kinds,
        shift=record.shift,
        lived_ns=_lived_ns(threads, first_ns),
    )


def _lived_ns(threads: Sequence[OwnThread], first_ns: int) -> int | None:
    ends = [one.exit_ns for one in threads]
    known = [one for one in ends if one is not None]
    return max(known) - first_ns if known and len(known) == len(ends) else None


def _held_until_ns(record: ProgramRecord, tids: Set[int]) -> int:
    """
    Return when all is over that a hold of a thread has delayed; 0: none was held.

    Who waited meanwhile for the CPU may need as long again to catch up.
    """
    return max(
        (
            one.at_ns + 2 * one.value
            for one in record.entries
            if one.kind == Kind.HOLD and one.tid in tids
        ),
        default=0,
    )


def _of_start(
    threads: Sequence[OwnThread], process: int | None
) -> tuple[OwnThread, ...]:
    """Return the threads of a process and of its descendants."""
    if process is None:
        return tuple(threads)
    of: set[int] = {process}
    kept = []
    for one in threads:
        if one.tid in of or one.process in of or one.parent in of:
            of |= {one.tid, one.process}
            kept.append(one)
    return tuple(kept)


def _thread(
    thread: OwnThread,
    clock: Clock,
    judged_ns: tuple[int, int],
    given_ns: int | None,
    most: int | None,
    functions: Sequence[str],
) -> OutsideThread | None:
    begin_ns, end_ns = judged_ns
    stretches = [
        one
        for at, wakeup in enumerate(thread.wakeups)
        for one in stretches_of(at, wakeup, clock)
    ]
    ours = with_equal_requests([one for one in stretches if begin_ns <= one.begin_ns])
    if not ours:
        return None
    found = beginnings_of([one.run for one in ours], given_ns)
    if found is not None:
        ours, found = with_served(ours, found)
    found = _without_birth(found, ours)
    made = list(_cycles(ours, found, thread.wakeups, functions))
    begun = [first for first, _ in made if first.begin_ns < end_ns]
    cycles = [cycle for first, cycle in made if first.begin_ns < end_ns]
    whole = [one for one in cycles if one is not None and one.done_ns <= end_ns]
    cut = len(cycles) - len(whole)
    cut_ns = max((end_ns - one.begin_ns for one in begun[len(whole) :]), default=0)
    whole = whole[:most]
    if not whole:
        return None
    return OutsideThread(
        tid=thread.tid,
        process=thread.process,
        name=thread.name,
        prio=ours[-1].wakeup.prio,
        period_ns=None if found is None else found.period_ns,
        basis=None if found is None else found.basis,
        paces=() if found is None else found.paces,
        cycles=tuple(whole),
        missed=_missed(whole, found),
        cut=cut,
        cut_ns=cut_ns,
        asked_ns=_asked_ns([ours[at].run for at in sorted(found.at)] if found else ()),
    )


def _asked_ns(runs: Sequence[Run]) -> int | None:
    asked = [one.due_ns - one.armed_ns for one in runs if one.flags & RELATIVE]
    known = [ns for ns in asked if ns > 0]
    return median_low(known) if known else None


def _without_birth(
    found: Beginnings | None, ours: Sequence[Stretch]
) -> Beginnings | None:
    """Leave out the birth of a thread that others wake at a pace: nobody was due."""
    if found is None or found.basis is not Basis.WAKEUPS or ours[0].at:
        return found
    return replace(found, at=found.at - {0})


# --- cycles ---------------------------------------------------------------------------


def _begins(
    stretches: Sequence[Stretch],
    found: Beginnings | None,
    wakeups: Sequence[Wakeup],
) -> Sequence[int]:
    """
    Return the stretches that begin cycles.

    Without a period they follow the sleeps in which the thread slept longest.
    """
    if found is not None:
        return sorted(found.at)
    slept_ns: Counter[tuple[str, int]] = Counter()
    for before, one in pairwise(wakeups):
        if one.after is not None and before.asleep_ns is not None:
            slept_ns[place_of(one.after)] += one.woken_ns - before.asleep_ns
    places = list(slept_ns)
    longest = the_longest([slept_ns[one] for one in places])
    if longest is None:
        return range(len(stretches))
    return [
        index
        for index, one in enumerate(stretches)
        if (after := one.wakeup.after) is not None
        and place_of(after) == places[longest]
    ]


def _cycles(
    stretches: Sequence[Stretch],
    found: Beginnings | None,
    wakeups: Sequence[Wakeup],
    functions: Sequence[str],
) -> Iterator[tuple[Stretch, OutsideCycle | None]]:
    """Yield each cycle by its first part; None: its end is not in the record."""
    at = _begins(stretches, found, wakeups)
    waits = Counter(
        call.name for one in at if (call := stretches[one].wakeup.after) is not None
    )
    usual = max(waits, key=lambda name: waits[name], default="")
    ended_ns = 0
    for number, (first, after) in enumerate(pairwise([*at, len(stretches)])):
        parts, following = stretches[first:after], _after(stretches, after)
        if (alone := _until_it_waits(parts)) < len(parts):
            parts, following = parts[:alone], parts[alone]
        is_whole = following is not None or _waits_in(parts[-1].wakeup, usual)
        whole = (
            _cycle(number, parts, following, wakeups, functions) if is_whole else None
        )
        if whole is not None:
            late_ns = max(0, ended_ns - whole.begin_ns) if whole.timed else 0
            whole, ended_ns = replace(whole, late_ns=late_ns), whole.done_ns
        yield parts[0], whole


def _until_it_waits(parts: Sequence[Stretch]) -> int:
    """
    Return how many parts there are until it waits for its next cycle.

    That is where it slept before a timer began the cycle: who wakes it there then wants
    something else.
    """
    idle = idle_of(parts[0].wakeup.after)
    if idle is None or not parts[0].timed:
        return len(parts)
    for number, (one, following) in enumerate(pairwise(parts), 1):
        if following.slept and idle_of(one.wakeup.wait) == idle:
            return number
    return len(parts)


def _waits_in(wakeup: Wakeup, usual: str) -> bool:
    """Whether it went to sleep where the thread waits for its cycles, not to exit."""
    name = "" if wakeup.wait is None else wakeup.wait.name
    return not wakeup.exited and (name == usual or not usual)


def _after(stretches: Sequence[Stretch], index: int) -> Stretch | None:
    return stretches[index] if index < len(stretches) else None


def _cycle(
    number: int,
    parts: Sequence[Stretch],
    following: Stretch | None,
    wakeups: Sequence[Wakeup],
    functions: Sequence[str],
) -> OutsideCycle | None:
    first, last = parts[0], parts[-1]
    done_ns = _done(last, following)
    if done_ns is None:
        return None
    # With those of which no own instruction came: they slept again in the kernel.
    whole = wakeups[first.at : last.at + 1]
    did = Deeds(whole, first.first_ns, done_ns)
    on_cpu_ns, instructions = _used(whole, first, following)
    faulted = did.faulted
    return OutsideCycle(
        number=number,
        begin_ns=first.begin_ns,
        timed=first.timed,
        woken_ns=first.run.woken_ns,
        waker=first.wakeup.waker,
        behind=first.wakeup.behind if first.slept else None,
        first_ns=first.first_ns,
        done_ns=done_ns,
        on_cpu_ns=on_cpu_ns,
        user_instructions=instructions,
        preemptions=did.preemptions,
        waits=tuple(_waits(wakeups, range(first.at, last.at))),
        calls=did.calls,
        faults=len(faulted),
        slept=first.slept,
        faulted=faulted,
        allocations=did.allocations(functions),
        in_ns=first.wakeup.in_ns if first.slept else None,
        called=did.called,
    )


def _used(
    whole: Sequence[Wakeup], first: Stretch, following: Stretch | None
) -> tuple[int, int]:
    """Return the time on a CPU in ns, and the own instructions, of a cycle."""
    on_cpu_ns = sum(one.on_cpu_ns for one in whole)
    instructions = sum(one.user_instructions for one in whole)
    if following is not None and not following.slept:
        # the next one goes on in the same wake-up
        on_cpu_ns += following.before[0] - whole[-1].on_cpu_ns
        instructions += following.before[1] - whole[-1].user_instructions
    return on_cpu_ns - first.before[0], instructions - first.before[1]


def _done(last: Stretch, following: Stretch | None) -> int | None:
    """Return when the thread called what waits for its next cycle."""
    if following is not None and following.call is not None:
        return following.call.began_ns
    wakeup = last.wakeup
    if wakeup.asleep_ns is None:
        return None
    return wakeup.asleep_ns if wakeup.wait is None else wakeup.wait.began_ns


def _waits(wakeups: Sequence[Wakeup], within: range) -> Iterator[Wait]:
    for at in within:
        one, following = wakeups[at], wakeups[at + 1]
        if one.asleep_ns is None:
            continue
        name = "" if one.wait is None else one.wait.name
        is_lock = following.held_by is not None or (
            one.wait is not None and is_of_a_lock(one.wait, wakeups, at + 1)
        )
        by = following.held_by or following.waker
        less_urgent = (
            by is not None and by.own and by.prio is not None and by.prio > one.prio
        )
        yield Wait(
            name,
            one.asleep_ns,
            following.in_ns,
            by,
            is_lock,
            is_lock and less_urgent,
            0 if one.wait is None else one.wait.place,
        )


def _missed(cycles: Sequence[OutsideCycle], found: Beginnings | None) -> int | None:
    if found is None or found.period_ns is None or found.basis is Basis.INTERVAL:
        return None
    begins = [one.begin_ns for one in cycles]
    each_ns = [period_at(found.paces, ns, found.period_ns) for ns in begins]
    periods = periods_between(list(pairwise(begins)), each_ns[:-1], found.basis)
    both = zip(cycles, each_ns, strict=True)
    return missed_in(periods) + sum(one.response_ns > ns for one, ns in both)
