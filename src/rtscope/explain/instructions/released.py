"""
A thread that a known call woke, and no timer: its wait, and its milestones. Pure.

The call has a time of the CPU that made it; the thread's own CPU may be up to a quantum
ahead. What that CPU did because of the call shows when it knew of it at the latest.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rtscope.explain.instructions.absences import Absence, Wait
from rtscope.explain.instructions.calls import Frame, Run, begun
from rtscope.explain.instructions.elsewhere import ThreadsCpu, with_queue
from rtscope.explain.instructions.milestones import Milestones, first_of
from rtscope.explain.instructions.requested import BETWEEN_CPUS
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import switch_to
from rtscope.record.instructions.section import TraceSection, Woken, requests_of
from rtscope.record.instructions.symbols import USER

ON_THE_WAY = (Wait.CPU, Wait.LOCK, Wait.PAGE, Wait.OLD_PAGE)
"""What a task may wait for while it has an event."""


@dataclass(frozen=True, slots=True)
class Release:
    """What made the thread of a path runnable, where that was no timer."""

    call: Woken | None
    """None: it was awake."""
    at_ns: int
    """The time of the call, by the thread's own CPU."""
    entered_ns: int | None = None
    """Of an interrupt that was asked for then: when it began. It waits for no task."""


def released(
    absences: Sequence[Absence],
    release: Release,
    own: ThreadsCpu,
    runs_on: Callable[[int], Sequence[Run]],
    *,
    section: TraceSection,
    says_so: bool,
) -> list[Absence]:
    """
    Return absences, and of the wait that a release ended when it did.

    No call ends a wait for a lock but its release, nor one that begins behind it.
    """
    waits = (i for i, one in enumerate(absences) if one.wait not in ON_THE_WAY)
    at = next(waits, None)
    if release.call is None or at is None:
        return [*absences]
    call, wait = release.call, absences[at]
    skew_ns = 0 if call.cpu == own.cpu else section.quantum_ns
    if wait.begin_ns > call.at_ns + skew_ns:
        return [*absences]
    known = replace(
        wait,
        wait=Wait.THREAD,
        runnable_ns=call.at_ns,
        holder=None,
        is_sure=True,
        woken=(call.at_ns, call.cpu),
        queued=None,
    )
    arrived = switch_to(wait.end_ns, own.switches)
    known = with_queue(known, arrived, own.cpu, runs_on, says_so=says_so)
    by_own = known.runnable_ns + release.at_ns - call.at_ns
    runnable_ns = min(by_own, _answered_ns(known, own, by_own, section))
    known = replace(
        known, runnable_ns=max(wait.begin_ns, min(runnable_ns, wait.end_ns))
    )
    return [*absences[:at], known, *absences[at + 1 :]]


def is_end(call: Woken | None, held: Absence | None) -> bool:
    """Tell whether a call ended what held a thread back, and not a lock's release."""
    if call is None or held is None:
        return False
    return held.woken == (call.at_ns, call.cpu)


def _answered_ns(
    known: Absence, own: ThreadsCpu, by_ns: int, section: TraceSection
) -> int:
    """
    Return when the thread's CPU knew of the call at the latest, if it shows.

    An interrupt that began more than a quantum before the call is not of it, nor one
    that was asked for before.
    """
    runs, contexts = own.runs, own.contexts
    if known.woken is None or known.woken[1] == own.cpu:
        return by_ns
    if known.queued is not None and known.queued.by_interrupt:
        at = begun(runs, known.queued.at_ns)
        return runs[first_of(runs, contexts, at)].begin_ns if at < len(runs) else by_ns
    since_ns = max(known.begin_ns + 1, by_ns - section.quantum_ns)
    for number, (entered_ns, is_told) in enumerate(_interrupts(own, known.end_ns)):
        # A kernel that does not preempt its own code goes on behind the one of the
        # call: of those that came since, none is of another CPU.
        if entered_ns < since_ns or (is_told and entered_ns >= by_ns):
            break
        if entered_ns < by_ns and (is_told or not number):
            was_before = _was_asked_before(known.woken, own, entered_ns, section)
            return by_ns if was_before else entered_ns
    return by_ns


def _interrupts(own: ThreadsCpu, end_ns: int) -> Iterator[tuple[int, bool]]:
    """Yield when each interrupt began, the last first; and whether a CPU sent it."""
    runs, contexts = own.runs, own.contexts
    at = begun(runs, end_ns) - 1
    while at >= 0:
        if contexts[at].role is Role.INTERRUPT:
            first, entry = first_of(runs, contexts, at), contexts[at].frame
            is_told = any(
                _is_between_cpus(r.frame, entry) for r in runs[first : at + 1]
            )
            yield runs[first].begin_ns, is_told
            at = first
        at -= 1


def _is_between_cpus(frame: Frame, entry: Frame | None) -> bool:
    for one in frame.chain():
        if BETWEEN_CPUS in one.name.lower():
            return True
        if one is entry:
            break
    return False


def _was_asked_before(
    call: tuple[int, int], own: ThreadsCpu, entered_ns: int, section: TraceSection
) -> bool:
    """Tell whether an interrupt is the first that may answer an earlier request."""
    called_ns, by = call
    before = [
        one.at_ns
        for one in requests_of(section)
        if (one.by, one.cpu) == (by, own.cpu) and one.at_ns < called_ns
    ]
    if not before:
        return False
    runs, contexts = own.runs, own.contexts
    behind = range(begun(runs, max(before) - section.quantum_ns), len(runs))
    first = next((i for i in behind if contexts[i].role is Role.INTERRUPT), None)
    return first is not None and runs[first].begin_ns >= entered_ns


def of_awake(
    runs: Sequence[Run], since_ns: int, entered_ns: int | None = None
) -> Milestones:
    """Return the milestones of a thread that was awake, or of an interrupt."""
    first = bisect_right(runs, since_ns, key=lambda run: run.end_ns)
    entered = first if entered_ns is None else max(first, begun(runs, entered_ns))
    return Milestones(
        first=first,
        entered=entered,
        woken=None,
        late_timer=False,
        expired=None,
        scheduled=entered,
        switched=entered,
    )


def last_call_ns(own: ThreadsCpu, is_threads: Sequence[bool]) -> int:
    """
    Return when a thread began the last call that it waited in; 0: before all runs.

    Behind that it was in its program again, and read the clock there, or in a call.
    """
    seen = ""
    for i in range(len(own.runs) - 1, -1, -1):
        run, interrupt = own.runs[i], Role.INTERRUPT
        is_call = own.contexts[i].role is not interrupt
        if not is_threads[i] or not is_call or interrupt in run.frame.within:
            continue
        here = "program" if run.frame.name == USER else "kernel"
        if here == "program" and seen == "wait":
            return run.end_ns
        if here == "program" or (seen and here == "kernel"):
            seen = "program" if here == "program" else "wait"
    return 0
