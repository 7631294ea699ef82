"""
Which request an interrupt answers: of which CPU's instruction, or of a device. Pure.

A board's device asks for an interrupt in the store by which a CPU uses it, or later, by
a timer of its own: it moderates its interrupts, or takes its time.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from rtscope.explain.instructions.calls import Frame, Run, begun, plain
from rtscope.explain.instructions.contexts import callback_of
from rtscope.explain.instructions.roles import Role
from rtscope.record.instructions.section import Asked, TraceSection, requests_of

BETWEEN_CPUS = "ipi"
"""In the name of each function that sends an interrupt to another CPU."""

_ENDS = "_eoi"
"""In the name of each function that ends an interrupt, as `gic_eoi_irq` does."""

FLUSHES_CALLS = frozenset(
    {"flush_smp_call_function_queue", "__flush_smp_call_function_queue"}
)
"""What calls the functions that other CPUs ask for; idle, also without an interrupt."""

_TICKS = ("tick_", "hrtimer_wakeup")
"""Callbacks that carry nothing: of the tick, and of who slept for a time."""


def asked_in(runs: Sequence[Run], asked: Asked) -> int | None:
    """Return the run whose instruction asked; None: none. Its time is behind that."""
    at = begun(runs, asked.at_ns) - 1
    return at if at >= 0 and asked.at_ns <= runs[at].end_ns else None


def request_of(
    section: TraceSection,
    runs_on: Callable[[int], Sequence[Run]],
    *,
    cpu: int,
    entered_ns: int,
    since_ns: int,
) -> Asked | None:
    """
    Return the request that an interrupt of a device answers; None if none was seen.

    That is the last one for its CPU before it began; one of another CPU may have a time
    up to a quantum later. None before `since_ns` counts, and none that a CPU makes of
    another's interrupt controller, or of its own in an interrupt, or as it ends one:
    that one tells of what was asked for before. A CPU that idles executes nothing: a
    timer of the device asks then.
    """
    found = None
    for one in requests_of(section):
        is_others = one.by not in (None, cpu)
        until_ns = entered_ns + (section.quantum_ns if is_others else 0)
        if one.cpu != cpu or not since_ns <= one.at_ns <= until_ns:
            continue
        if one.by is None or _is_of_device(one, one.by, runs_on(one.by)):
            is_idle = one.by is not None and _idles(one, runs_on(one.by))
            found = replace(one, by=None) if is_idle else one
    return found


def _idles(one: Asked, runs: Sequence[Run]) -> bool:
    at = asked_in(runs, one)
    within = frozenset() if at is None else runs[at].frame.within
    return Role.IDLE in within and Role.INTERRUPT not in within


def call_of(
    section: TraceSection,
    runs_on: Callable[[int], Sequence[Run]],
    *,
    cpu: int,
    times_ns: tuple[int, int],
    since_ns: int,
) -> Asked | None:
    """
    Return the request by which another CPU had a function called in an interrupt.

    `times_ns` are those of the interrupt, up to what it is asked of. That is the last
    one, of an instruction that sends interrupts to CPUs; None if it was no such call.
    """
    entered_ns, until_ns = times_ns
    runs = runs_on(cpu)
    inside = runs[begun(runs, entered_ns) : begun(runs, until_ns) + 1]
    called = {plain(one.name) for run in inside for one in run.frame.chain()}
    if not called & FLUSHES_CALLS:
        return None
    found = None
    for one in requests_of(section):
        is_before = since_ns <= one.at_ns <= entered_ns + section.quantum_ns
        if one.cpu == cpu and one.by not in (None, cpu) and is_before:
            found = one
    if found is None or found.by is None:
        return None
    at = asked_in(runs_on(found.by), found)
    frames = () if at is None else runs_on(found.by)[at].frame.chain()
    return found if any(BETWEEN_CPUS in f.name.lower() for f in frames) else None


def _is_of_device(one: Asked, by: int, runs: Sequence[Run]) -> bool:
    at = asked_in(runs, one)
    if at is None:
        return by != one.cpu
    if by == one.cpu and Role.INTERRUPT in runs[at].frame.within:
        return False
    names = [frame.name.lower() for frame in runs[at].frame.chain()]
    return not any(BETWEEN_CPUS in name or _ENDS in name for name in names)


def interrupt_to(runs: Sequence[Run], at: int) -> Sequence[Run]:
    """Return the runs of an interrupt, and of its softirqs, up to one of them."""
    first = at
    while first and {Role.INTERRUPT, Role.SOFTIRQ} & runs[first - 1].frame.within:
        first -= 1
    return runs[first : at + 1]


def begin_of(entry: Frame, runs: Sequence[Run], at: int) -> int:
    """Return when an interrupt began that is not over at a run."""
    while at > 0 and entry in runs[at - 1].frame.chain():
        at -= 1
    return runs[at].begin_ns


def timers_in(runs: Sequence[Run]) -> tuple[str, ...]:
    """
    Return the timers' callbacks of an interrupt that begins with the first run.

    On PREEMPT_RT a thread runs most of them, behind it. None if it is no timer's.
    """
    inside = takewhile(lambda run: Role.INTERRUPT in run.frame.within, runs)
    if not any(Role.TIMER in run.frame.within for run in inside):
        return ()
    found = (callback_of(run) for run in runs)
    names = dict.fromkeys(plain(one) for one in found if one is not None)
    return tuple(one for one in names if not one.startswith(_TICKS))


def released_by(runs: Sequence[Run], first: int, at: int) -> tuple[str, ...]:
    """
    Return the timers' callbacks that had a frame transmitted at a run; none did: none.

    Of the interrupt that transmits, or on PREEMPT_RT, where ksoftirqd does so behind
    it, the last one since the `first` run that let the queue of an interface go on.
    """
    if inside := timers_in(interrupt_to(runs, at)):
        return inside
    for run in reversed(runs[first:at]):
        callback = callback_of(run)
        names = {plain(frame.name) for frame in run.frame.chain()}
        if callback is not None and names & _LET_GO_ON:
            return (plain(callback),)
    return ()


_LET_GO_ON = frozenset({"__netif_schedule", "__netif_reschedule"})


def transmits(run: Run) -> bool:
    """Tell whether a frame is handed to the driver of its interface."""
    return any(
        plain(frame.name) == "dev_hard_start_xmit" for frame in run.frame.chain()
    )
