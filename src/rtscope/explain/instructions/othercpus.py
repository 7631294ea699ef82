"""
What other CPUs executed while this one waited, and loops that wait for them. Pure.

A CPU that waits for another executes a loop: in a lock's slow path, in a function that
awaits an answer (`waits.toml`), or in any that looks at memory and pauses. The culprit
is what the other CPU did meanwhile; a helper in that only spent the time.

A CPU that waits pauses in each turn of a loop, or tries to take a lock in each. A turn
may call helpers: to tell a watchdog, or RCU, that the CPU is alive. They are part of
the wait, also where a helper has interrupts off for some instructions.

A loop that goes on when no other CPU executes anything waits for none: it counts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from rtscope.explain.instructions.absences import spin_of
from rtscope.explain.instructions.calls import (
    Frame,
    Run,
    delay_helpers,
    is_attempt,
    is_clock,
    is_delay,
    jumped_to,
    main_frame,
    plain,
    runs_of,
    spent_in,
    title_frame,
)
from rtscope.explain.instructions.contexts import Context, shown
from rtscope.explain.instructions.roles import Role
from rtscope.explain.model import Cause, OtherCpuActivity, Segment
from rtscope.record.instructions.section import (
    RecordKind,
    TaskSwitch,
    TraceSection,
    blocks_of,
    cpus_of,
)
from rtscope.record.instructions.symbols import SymbolTable

MOSTLY = 0.5
"""Of what a CPU executed: the innermost call with more than this is what it did."""


@dataclass(frozen=True, slots=True)
class OtherCpus:
    """All CPUs of a section but the one of its wake-up."""

    cpus: tuple[int, ...]
    section: TraceSection
    symbols: SymbolTable
    arch: str
    switches: Sequence[TaskSwitch] = ()
    _runs: dict[int, list[Run]] = field(default_factory=dict)
    """By CPU; filled when it is first asked for: few paths wait for a lock."""
    _delays: dict[int, frozenset[Frame]] = field(default_factory=dict)

    def attached_to(
        self, segment: Segment, expiry_ns: int, *, readers: str = ""
    ) -> Segment:
        """Return a segment with what these CPUs did in it; `readers`: see `between`."""
        begin_ns, end_ns = segment.begin_ns + expiry_ns, segment.end_ns + expiry_ns
        did = self.between(begin_ns, end_ns, readers=readers)
        return replace(segment, other_cpus=tuple(did))

    def between(
        self, begin_ns: int, end_ns: int, *, readers: str = ""
    ) -> Iterator[OtherCpuActivity]:
        """
        Return the activity of each CPU that ran between two times.

        `readers` is what ends a section of those that a grace period waits for: such a
        section that was open at the begin is what the CPU did, however little.
        """
        for cpu in self.cpus:
            runs = self.runs_on(cpu)
            inside = [
                part_of(run, begin_ns, end_ns)
                for run in overlapping(runs, begin_ns, end_ns)
            ]
            total = sum(run.executed_ns for run in inside)
            if total:
                reader = _open_section(inside, readers) if readers else None
                yield self._activity(
                    cpu, inside, total, reader, MOSTLY * (end_ns - begin_ns)
                )

    def _activity(
        self,
        cpu: int,
        inside: Sequence[Run],
        total: int,
        reader: Frame | None,
        busy_ns: float,
    ) -> OtherCpuActivity:
        of_reader = [run for run in inside if reader and reader in run.frame.chain()]
        longest = max(of_reader or inside, key=lambda run: run.executed_ns)
        task = self._task_at(cpu, longest.begin_ns)
        delays = self._delays_of(cpu)
        frame = reader or main_frame(inside, share=MOSTLY)
        if frame is None:
            name, own = spent_in(inside)[0]
            return OtherCpuActivity(cpu, plain(name), own / total, total)
        chain = list(frame.chain())
        names = tuple(shown(one) for one in chain)
        first = title_frame(chain, delays)
        jump = "" if reader else jumped_to(chain, names[first], delays)
        own = sum(run.executed_ns for run in inside if frame in run.frame.chain())
        # An idle CPU also takes interrupts and calls: for long, they are what it did.
        is_idle = Role.IDLE in frame.within and (
            frame.role is Role.IDLE or own < busy_ns
        )
        return OtherCpuActivity(
            cpu,
            names[first],
            own / total,
            total,
            callers=names[first:],
            helper=names[0] if first else "",
            task=task.name if task else "",
            policy=task.policy if task else "",
            waits=spin_of(longest.frame) is not None,
            is_idle=is_idle,
            jumped_to=jump,
        )

    def calling(self, function: str) -> Sequence[Run]:
        """Return the runs of all those that called a function; without one, nothing."""
        begin = _begin_of(self.symbols, function)
        if begin is None:
            return ()
        called = (self.section.kinds == RecordKind.BLOCK) & (
            self.section.values == begin
        )
        cpus = cpus_of(self.section.cpus[called])
        return [r for cpu in self.cpus if cpu in cpus for r in self.runs_on(cpu)]

    def _task_at(self, cpu: int, at_ns: int) -> TaskSwitch | None:
        mine = [one for one in self.switches if one.cpu == cpu and one.at_ns <= at_ns]
        return mine[-1] if mine else None

    def runs_on(self, cpu: int) -> list[Run]:
        """Return what a CPU executed, in order."""
        if cpu not in self._runs:
            self._runs[cpu] = runs_of(
                blocks_of(self.section, cpu), self.symbols, arch=self.arch
            )
        return self._runs[cpu]

    def _delays_of(self, cpu: int) -> frozenset[Frame]:
        if cpu not in self._delays:
            self._delays[cpu] = delay_helpers(self.runs_on(cpu))
        return self._delays[cpu]


@lru_cache(maxsize=16)
def _begin_of(symbols: SymbolTable, function: str) -> int | None:
    """Return where a function begins; looked for once in a table of 100,000 names."""
    if function not in symbols.names:
        return None
    return int(symbols.starts[symbols.names.index(function)])


def _open_section(runs: Sequence[Run], end: str) -> Frame | None:
    """Return the call that ends a section which none of these runs has begun."""
    depth, seen = 0, set[Frame]()
    for run in runs:
        frame, name = run.frame, plain(run.frame.name)
        if frame in seen or name not in (end, end.replace("unlock", "lock")):
            continue
        seen.add(frame)
        depth += -1 if name == end else 1
        if depth < 0:
            return frame.caller
    return None


def overlapping(runs: Sequence[Run], begin_ns: int, end_ns: int) -> Sequence[Run]:
    """
    Return the runs of one CPU that were partly between two times.

    Each ends where the next begins, so both are in order: a path may wait for a lock
    some 10,000 times, and looking at every run each time took minutes.
    """
    first = bisect_right(runs, begin_ns, key=lambda run: run.end_ns)
    return runs[
        first : bisect_left(runs, end_ns, lo=first, key=lambda run: run.begin_ns)
    ]


def part_of(run: Run, begin_ns: int, end_ns: int) -> Run:
    """Return what of a run was between two times: it executes first, then pauses."""
    if begin_ns <= run.begin_ns and run.end_ns <= end_ns:
        return run
    since, until = max(run.begin_ns, begin_ns), min(run.end_ns, end_ns)
    executed_ns = min(run.begin_ns + run.executed_ns, until) - since
    return replace(run, begin_ns=since, end_ns=until, executed_ns=max(0, executed_ns))


def with_pauses(run: Run) -> Run:
    """Return a run with the pauses of its loop as executed: all but those of idle."""
    is_idle = Role.IDLE in run.frame.within
    return run if is_idle else replace(run, executed_ns=run.end_ns - run.begin_ns)


# --- loops in which a CPU waits for another one ---------------------------------------

POLLED_NS = 200
"""A CPU that pauses for longer, and is not idle, looks at memory in a loop."""
SHORT_NS = 200
"""A turn of a loop takes less; what takes longer is no helper of it."""
TURNS = 8
"""So many pauses of one loop, one soon after the other, are a wait too."""
ATTEMPTS = 3
"""A lock that a function tries to take so often is waited for."""
WAITS = frozenset({Cause.LOCK, Cause.OTHER_CPU})
_SKEW_BLOCKS = 10
"""The longest blocks in two quanta: by so much the clocks of CPUs may differ."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Runs of one loop: from the first to before the last."""

    first: int
    last: int
    cause: Cause
    """What the loop waits for."""


def polls(runs: Sequence[Run], i: int) -> bool:
    """
    Tell whether a run looks at memory that another CPU is to change.

    It pauses in its loop, as cpu_relax() lets it, and reads no clock there: that would
    be a delay. Idle CPUs pause too, and wait for nobody.
    """
    return _paused_ns(runs[i]) > POLLED_NS and _pauses(runs, i)


def _paused_ns(run: Run) -> int:
    return run.end_ns - run.begin_ns - run.executed_ns


def _pauses(runs: Sequence[Run], i: int) -> bool:
    run = runs[i]
    if _paused_ns(run) <= 0 or Role.IDLE in run.frame.within:
        return False
    name = plain(run.frame.name)
    if is_clock(name) or is_delay(name) or run.frame.role is Role.SWITCH:
        return False
    near = (runs[at] for at in (i - 1, i + 1) if 0 <= at < len(runs))
    return not any(
        one.frame.caller is run.frame and is_clock(plain(one.frame.name))
        for one in near
    )


def countdowns(section: TraceSection, runs: Sequence[Run]) -> frozenset[Frame]:
    """
    Return the calls with loops that pause in each turn, and wait for nobody.

    The code that paused beside another CPU goes on when all others have stopped. Only
    of CPUs with clocks of their own, as others pause wherever another executes.
    """
    first: dict[Frame, int] = {}
    last: dict[Frame, int] = {}
    for i in range(len(runs) if section.block_ns else 0):
        if _pauses(runs, i):
            for frame in filter(None, (runs[i].frame, runs[i].frame.caller)):
                first.setdefault(frame, i)
                last[frame] = i
    found: set[Frame] = set()
    for frame, at in last.items():
        end = at
        while end + 1 < len(runs) and frame in runs[end + 1].frame.chain():
            end += 1
        if _turns_alone(section, runs[first[frame]].begin_ns, runs[end].end_ns) > TURNS:
            found.add(frame)
    return frozenset(found)


def _turns_alone(section: TraceSection, begin_ns: int, end_ns: int) -> int:
    """Count the blocks that paused before, behind the last of all other CPUs."""
    rows = slice(*np.searchsorted(section.at_ns, (begin_ns, end_ns)))
    kinds, at_ns = section.kinds[rows], section.at_ns[rows]
    mine, is_block = section.cpus[rows] == section.cpu, kinds == RecordKind.BLOCK
    others = np.flatnonzero(is_block & ~mine)
    stopped_ns = int(at_ns[others[-1]]) if len(others) else begin_ns
    own = np.flatnonzero(mine & is_block)
    pauses = np.flatnonzero(mine & (kinds == RecordKind.PAUSE))
    before = np.searchsorted(own, pauses) - 1
    paused = section.values[rows][own[before[before >= 0]]]
    alone = own[at_ns[own] > stopped_ns + _SKEW_BLOCKS * section.block_ns]
    return int(np.isin(section.values[rows][alone], paused).sum())


def gaps_in_loops(
    runs: Sequence[Run],
    contexts: Sequence[Context],
    causes: Sequence[Cause],
    *,
    first: int,
    spins: Collection[str],
) -> Iterator[Gap]:
    """
    Yield the runs that belong to a loop by their callers only; indices of `runs`.

    `causes` are those of the runs from `first` on, `spins` the functions that wait in a
    loop. A call between two turns belongs to the loop if the function that waits has
    called it, directly or not, it was short, and no interrupt.
    """
    waiting = [first + at for at, cause in enumerate(causes) if cause in WAITS]
    for before, after in pairwise(waiting):
        cause = causes[before - first]
        if after == before + 1 or causes[after - first] is not cause:
            continue
        if runs[after].begin_ns - runs[before].end_ns > SHORT_NS:
            continue
        loops = _spinning(runs[before], spins) & _spinning(runs[after], spins)
        between = range(before + 1, after)
        of_loop = all(loops & set(runs[i].frame.chain()) for i in between)
        if of_loop and all(contexts[i] == contexts[before] for i in between):
            yield Gap(before + 1, after, cause)


def _spinning(run: Run, spins: Collection[str]) -> set[Frame]:
    return {frame for frame in run.frame.chain() if plain(frame.name) in spins}


def loops_by_hand(
    runs: Sequence[Run], contexts: Sequence[Context], *, first: int
) -> Iterator[Gap]:
    """
    Yield the waits that a function does by itself, without one of the kernel's locks.

    It tries to take a lock again and again, whatever it does between; or it pauses in
    each turn, and reads no clock.
    """
    pauses = [i for i in range(first, len(runs)) if _pauses(runs, i)]
    yield from _chains(_attempts(runs, first), runs, contexts, ATTEMPTS, Cause.LOCK)
    yield from _chains(pauses, runs, contexts, TURNS, Cause.OTHER_CPU)


def _attempts(runs: Sequence[Run], first: int) -> Sequence[int]:
    """Return the last run of each call that tried to take a lock."""
    at = [i for i in range(first, len(runs)) if is_attempt(plain(runs[i].frame.name))]
    # A call may have called others in between: it is one attempt all the same.
    # So is one that tries another lock within: the outermost of them is the attempt.
    return sorted({_attempt_of(runs[i].frame): i for i in at}.values())


def _attempt_of(frame: Frame) -> Frame:
    """Return the outermost attempt that a call of one is part of."""
    return [one for one in frame.chain() if is_attempt(plain(one.name))][-1]


def _chains(
    at: Sequence[int],
    runs: Sequence[Run],
    contexts: Sequence[Context],
    least: int,
    cause: Cause,
) -> Iterator[Gap]:
    """Yield each sequence of so many of these runs that are turns of one loop."""
    loop: Frame | None = None
    turns: list[int] = []
    for i in at:
        shared = _loop_of(turns[-1], i, runs, contexts, cause) if turns else None
        if shared is not None and (loop is None or shared is loop):
            loop = shared
            turns.append(i)
            continue
        if len(turns) >= least:
            yield Gap(turns[0], turns[-1] + 1, cause)
        turns, loop = [i], None
    if len(turns) >= least:
        yield Gap(turns[0], turns[-1] + 1, cause)


def _loop_of(
    before: int,
    after: int,
    runs: Sequence[Run],
    contexts: Sequence[Context],
    cause: Cause,
) -> Frame | None:
    """Return the call that both runs are turns of a loop of; None if they are not."""
    if contexts[before] != contexts[after]:
        return None
    own: Frame | None = runs[before].frame
    if own and cause is Cause.LOCK:
        own = _attempt_of(own).caller
    mine = set(own.chain()) if own else set()
    shared = next((f for f in runs[after].frame.chain() if f in mine), None)
    between = range(before + 1, after)
    if shared is None or any(contexts[i] != contexts[before] for i in between):
        return None
    if cause is Cause.LOCK:
        helps = all(
            runs[i].frame is shared or _lets_time_go_by(runs[i], shared)
            for i in between
        )
        return shared if helps else None
    executed_ns = runs[after].begin_ns - runs[before].end_ns
    inside = all(
        shared in runs[i].frame.chain() and not is_clock(plain(runs[i].frame.name))
        for i in between
    )
    return shared if inside and executed_ns <= SHORT_NS else None


def _lets_time_go_by(run: Run, loop: Frame) -> bool:
    """Tell whether a run of a loop only delays it: it reads clocks, or relaxes."""
    for frame in run.frame.chain():
        if frame is loop:
            return run.executed_ns <= SHORT_NS
        name = plain(frame.name)
        if is_delay(name) or is_clock(name):
            return True
    return False
