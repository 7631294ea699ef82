"""
The pieces of a path, and the name of each segment: the call that it is blamed on. Pure.

Where an interrupt was off or nothing was preempted, the call in which that ended; of
interrupts and softirqs the handler; of all else the first call that says something.

With a tracer on, each function has a piece of its own, so a path may have hundreds of
thousands. Such a path is divided into 200 parts, and within each part the pieces of one
cause become one: all durations stay, the order within a part is lost.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from rtscope.explain.instructions.calls import (
    BEGINS_HERE,
    Frame,
    Run,
    is_handler,
    is_primitive,
    plain,
    role_of,
    spent_in,
    title_index,
)
from rtscope.explain.instructions.causes import Kind
from rtscope.explain.instructions.contexts import (
    RUN_TIMERS,
    IrqsOff,
    callback_of,
    shown,
)
from rtscope.explain.instructions.milestones import TICK
from rtscope.explain.instructions.path import WakeupPath
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.stretches import NAMELESS
from rtscope.explain.model import COMPETING_TASKS, Cause, Part
from rtscope.record.instructions.symbols import USER

ASLEEP = "(asleep)"
A_CALL = "the system call"
# An idle CPU finds the calls of others by itself, without an interrupt.
_ENTRY = frozenset({Role.INTERRUPT, Role.TRAP, Role.IDLE})
_SOFTIRQ = frozenset({Role.SOFTIRQ})
_SYSTEM_CALL = re.compile(r"__(?:x64|ia32|arm64|riscv|do|se)_sys_(\w+)")
_BREAKPOINT = ("asm_exc_int3", "exc_int3", "do_int3", "paranoid_entry")
_EXCEPTION = ("asm_exc_", "exc_", "el1h_64_sync", "handle_exception")
_BY_HANDLER = frozenset(
    {Cause.EARLIER_INTERRUPT, Cause.OTHER_INTERRUPT, Cause.SOFTIRQ, Cause.PROBE}
)
_LED_TO = frozenset(
    {
        *(Role.INTERRUPT, Role.TRAP, Role.DISPATCH, Role.SOFTIRQ, Role.SOFT_TIMER),
        Role.DELIVER,
    }
)
_IRQ_THREADS = ("irq_thread", "irq_forced_thread")
Named = tuple[str, Sequence[str]]
"""The name of a segment, and the calls it happened in, innermost first."""


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """How a segment ended."""

    path: WakeupPath
    last: int
    """Its last run."""
    irqs_off: IrqsOff | None
    """Who had interrupts off in it; None if they are not its cause."""


def _until_on(irqs_off: IrqsOff, chain: Sequence[Frame]) -> Named | None:
    """
    Name interrupts that were off after the call that had them off to the end.

    What it called spent the time. None if that call is not known.
    """
    if not chain or irqs_off.on is None or irqs_off.until_ns is None:
        return None
    return _common(chain, irqs_off.on.frame)


def _until_preempted(
    path: WakeupPath, last: int, chain: Sequence[Frame]
) -> Named | None:
    """
    Name a time without preemption after the call in which it ended.

    That is where the kernel preempts it; and if it does not preempt its own code, the
    call that lasted until it gave way itself: there a delay helper is no name.
    """
    if not chain or last + 1 >= len(path.runs):
        return None
    after = path.runs[last + 1].frame
    preempted = next((f for f in after.chain() if f.role is Role.PREEMPT), None)
    if preempted is not None:
        return _common(chain, preempted.caller)
    at = title_index([plain(one.name) for one in chain], _stops(chain))
    if chain[at] not in path.delays:
        return None
    left = set(after.chain())
    common = next((i for i, one in enumerate(chain) if one in left), 0)
    return _named(chain, max(at, common - 1)) if common else None


def _common(chain: Sequence[Frame], end: Frame | None) -> Named | None:
    """Name the innermost call of a chain that was there at an end, if one was."""
    left = set(end.chain()) if end is not None else set()
    at = next((i for i, one in enumerate(chain) if one in left), None)
    if at is None or any(_stops(chain[: at + 1])):
        return None
    names = [shown(one) for one in chain]
    while at + 1 < len(chain) and is_primitive(names[at]):
        at += 1
    if at and names[at].startswith(_EXCEPTION):
        return None  # its entry says nothing of what handles it
    return None if is_primitive(names[at]) else _named(chain, at)


def _named(chain: Sequence[Frame], at: int) -> Named:
    names = [shown(one) for one in chain]
    return names[at], names


def _stops(chain: Sequence[Frame]) -> Sequence[bool]:
    return [one.role in BEGINS_HERE for one in chain]


def name_of(
    kind: Kind,
    runs: Sequence[Run],
    inside: Sequence[Frame],
    title: int,
    *,
    end: SegmentEnd,
) -> Named:
    """
    Return the name of a segment, and the calls that nearly all of it happened in.

    They are `inside`, innermost first; `title` is the one that it is named after,
    unless its `end` names it.
    """
    named = None
    if end.irqs_off is not None:
        named = _until_on(end.irqs_off, inside)
    elif kind.cause is Cause.PREEMPTION_OFF:
        named = _until_preempted(end.path, end.last, inside)
    elif kind.cause is Cause.PUT_OFF and end.path.put_off is not None:
        named = end.path.put_off.callback, ()
    return named or _name_inside(kind, runs, inside, title)


def _name_inside(
    kind: Kind, runs: Sequence[Run], inside: Sequence[Frame], title: int
) -> Named:
    cause, context = kind.cause, kind.context
    if cause in (Cause.EARLIER_INTERRUPT, Cause.OTHER_INTERRUPT):
        return _handler(runs, cause), _calls_of_interrupt(inside)
    if cause is Cause.PROBE:
        name, _ = _handlers(runs, cause).most_common(1)[0]
        chain = [plain(f.name) for f in inside if not _is_of_probes(f)]
        return name, chain if name in chain else (name, *chain)
    if cause is Cause.TIMER_CALLBACK:
        return plain(callback_of(runs[0]) or ""), ()
    if cause is Cause.TIMER_INTERRUPT:
        return "hrtimer_interrupt", ()
    if cause is Cause.TICK:
        return TICK, ()
    if cause is Cause.SCHEDULER and context.frame is not None:
        return plain(context.frame.name), ()
    if not runs:  # another ran while the thread slept in its page fault
        return ASLEEP, ()
    chain = [shown(one) for one in inside]
    if cause is Cause.SOFTIRQ:
        return _of_softirq(chain, runs)
    if not chain:
        return _most_of(cause, runs), chain
    return chain[title], chain


def _most_of(cause: Cause, runs: Sequence[Run]) -> str:
    """Name what no call has nearly all of: by its longest piece, or function."""
    for name, _ in pieces_of(cause, runs)[:1]:
        if name:
            return name
    return plain(spent_in(runs)[0][0])


def _calls_of_interrupt(inside: Sequence[Frame]) -> Sequence[str]:
    """Return the calls that nearly all of an interrupt was in, up to its entry."""
    entry = next((i for i, one in enumerate(inside) if one.role in _ENTRY), None)
    return [plain(one.name) for one in inside[: entry + 1]] if entry else []


def in_faults(runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs of page faults."""
    return [run for run in runs if Role.FAULT in run.frame.within]


def _of_softirq(chain: Sequence[str], runs: Sequence[Run]) -> tuple[str, Sequence[str]]:
    name = _handler(runs, Cause.SOFTIRQ)
    if name in chain:
        return name, chain[chain.index(name) :]
    outside = [at for at, one in enumerate(chain) if role_of(one) in _LED_TO]
    return name, (name, *chain[outside[0] :]) if outside else (name,)


def _is_of_probes(frame: Frame) -> bool:
    """Tell whether a call leads to a probe's handler, by a breakpoint or without."""
    of_probes = frame.role is Role.PROBE or frame.name.startswith(_BREAKPOINT)
    return of_probes or plain(frame.name) == NAMELESS


def pieces_of(cause: Cause, runs: Sequence[Run]) -> list[tuple[str, int]]:
    """
    Return what a segment is made of, with own ns, most first; nothing if it is one.

    Handlers of interrupts, softirqs and probes; the program and the system calls of a
    task.
    """
    if cause in _BY_HANDLER:
        return _handlers(runs, cause).most_common()
    by_place = COMPETING_TASKS - {Cause.IN_PLACE_OF_HOLDER} | {Cause.SYSTEM_CALL}
    if cause not in by_place:
        return []
    spent: Counter[str] = Counter()
    for run in runs:
        spent[_place_of(run)] += run.executed_ns
    return [] if set(spent) == {""} else spent.most_common()


def system_call(function: str) -> str:
    """Name the system call that a function is the entry of; or nothing."""
    found = _SYSTEM_CALL.match(function)
    return f"{A_CALL} {found[1]}" if found else ""


def _place_of(run: Run) -> str:
    """Return the system call that a task is in, or its program; else nothing."""
    if run.frame.name == USER:
        return USER
    for frame in run.frame.chain():
        call = system_call(frame.name)
        if call:
            return call
        if frame.role is Role.FAULT:
            return "page faults"
    in_call = Role.SYSCALL in run.frame.within
    return "the entry and exit of system calls" if in_call else ""


def _handlers(runs: Sequence[Run], cause: Cause) -> Counter[str]:
    """Return own ns by the handler of an interrupt, a softirq or a probe."""
    entry = _SOFTIRQ if cause is Cause.SOFTIRQ else _ENTRY
    spent: Counter[str] = Counter()
    for run in runs:
        name = (
            _handled_by_probe(run) if cause is Cause.PROBE else _handled_at(run, entry)
        )
        if name is not None:
            spent[name] += run.executed_ns
    return spent


def _handled_by_probe(run: Run) -> str | None:
    """Return the function that the probes' own code led to; that code if to none."""
    handler: Frame | None = None
    for frame in run.frame.chain():
        if frame.role is Role.PROBE:
            caller = frame.caller
            is_itself = caller is not None and is_handler(frame.name, caller.name)
            return shown(frame if handler is None or is_itself else handler)
        handler = frame
    return None


def _handler(runs: Sequence[Run], cause: Cause) -> str:
    """Name an interrupt by its handler: where most went, behind the entry code."""
    spent = _handlers(runs, cause)
    if spent:
        return max(spent, key=lambda name: spent[name])
    entry = _SOFTIRQ if cause is Cause.SOFTIRQ else _ENTRY
    led_to = [f for f in runs[0].frame.chain() if f.role in entry]
    return plain((led_to[0] if led_to else runs[0].frame).name).removeprefix("asm_")


def handled_in(run: Run) -> str | None:
    """Return what an interrupt or a softirq called, or its thread, in a run."""
    if (_ENTRY | _SOFTIRQ) & run.frame.within:
        return _handled_at(run, _ENTRY | _SOFTIRQ)
    handler = None
    for frame in run.frame.chain():
        if plain(frame.name).startswith(_IRQ_THREADS):
            return handler
        handler = plain(frame.name)
    return None


def _handled_at(run: Run, entry: frozenset[Role]) -> str | None:
    """
    Return the function that the entry led to, or else a dispatcher inside that.

    The innermost of all dispatchers counts: the handler of a line of another controller
    is called by that controller's, and an interrupt line's by the kernel's.
    """
    handler = inside = None
    for frame in run.frame.chain():
        role, name = frame.role, plain(frame.name)
        if role in entry:
            return handler or inside
        if role in _LED_TO or name == RUN_TIMERS:
            handler = handler or inside
        else:
            inside = name
    return None


# --- the pieces of a path: neighbouring runs of one kind ------------------------------

MOST_PIECES = 1000
"""In a path with more, pieces are merged."""
GRAINS = 200
"""Parts of such a path; in each, the pieces of one cause become one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Runs that become one segment."""

    kind: Kind
    runs: Sequence[int]
    """Their indices in the path, in order; neighbours, unless it is `moved`."""
    moved: tuple[int, int] | None = None
    """Virtual begin and end, where that is not from its first run to its last."""


Also = Callable[[int], Hashable]
"""What else neighbours must share, of the run of an index."""


def pieces_of_path(
    kinds: Sequence[Kind], runs: Sequence[Run], *, begin_ns: int, first: int, also: Also
) -> Sequence[Piece]:
    """
    Return the pieces of a path from a time on.

    `kinds` are those of its runs from `first` on.
    """
    pieces = [*islice(_neighbours(kinds, first, also), MOST_PIECES + 1)]
    if len(pieces) <= MOST_PIECES:
        return pieces
    grain_ns = max(1, (runs[-1].end_ns - begin_ns) // GRAINS)
    every = _neighbours(kinds, first, also)
    return [*_fewer(every, runs, begin_ns, grain_ns, also)]


def _neighbours(kinds: Sequence[Kind], first: int, also: Also) -> Iterator[Piece]:
    at = range(first, first + len(kinds))
    begin = first
    for (kind, _), group in groupby(at, key=lambda i: (kinds[i - first], also(i))):
        end = begin + sum(1 for _ in group)
        yield Piece(kind, range(begin, end))
        begin = end


def _fewer(
    pieces: Iterable[Piece],
    runs: Sequence[Run],
    first_ns: int,
    grain_ns: int,
    also: Also,
) -> Iterator[Piece]:
    """Put the pieces of each grain of a part together, by their causes."""
    waiting: dict[Hashable, list[Piece]] = {}
    begin_ns, part = first_ns, Part.A
    for piece in pieces:
        since_ns = max(first_ns, runs[piece.runs[0]].begin_ns)
        # What held the thread itself back stays where it is.
        stays = piece.kind.held is not None
        if stays or piece.kind.part is not part or since_ns - begin_ns >= grain_ns:
            yield from _in_a_row(waiting.values(), runs, begin_ns)
            waiting, begin_ns, part = {}, since_ns, piece.kind.part
        if stays:
            yield piece
            begin_ns = runs[piece.runs[-1]].end_ns
            continue
        key = piece.kind.cause, piece.kind.in_place, also(piece.runs[0])
        waiting.setdefault(key, []).append(piece)
    yield from _in_a_row(waiting.values(), runs, begin_ns)


def _in_a_row(
    together: Iterable[Sequence[Piece]], runs: Sequence[Run], begin_ns: int
) -> Iterator[Piece]:
    since_ns = begin_ns
    for pieces in together:
        at = [i for piece in pieces for i in piece.runs]
        ns = sum(runs[i].end_ns - max(begin_ns, runs[i].begin_ns) for i in at)
        yield Piece(pieces[0].kind, at, (since_ns, since_ns + ns))
        since_ns += ns


def told_in_fewer(pieces: Sequence[Piece]) -> Iterator[str]:
    """Say that pieces of one cause were merged, if they were."""
    if any(piece.moved is not None for piece in pieces):
        yield (
            f"this path has more than {MOST_PIECES:,} pieces: it is shown in {GRAINS} "
            "parts, and in each the pieces of one cause are one, with their times added"
        )
