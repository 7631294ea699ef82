"""
The worst wake-ups of a run on a real machine, explained from the trace it kept.

The agent reports when each of them was due and when its thread ran; the kernel's trace
beside the record has the events around them. Without a trace there are only the counts
by which counters grew around a wake-up.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rtscope.contract import Around, CounterDelta, ThreadResult
from rtscope.explain.activity import ExplainedWindow
from rtscope.explain.events.eventway import explain_event, explain_gap
from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import MachineTraits, TracedWakeup
from rtscope.explain.events.window import window_around
from rtscope.explain.model import Explanation
from rtscope.host.units import NS_PER_MS
from rtscope.record.events.events import MAX_EVENTS, Trace, Window
from rtscope.record.events.writer import TRACE
from rtscope.record.model import POLL, TIMER, RunRecord

MOST = 16
"""As many wake-ups as the agent keeps the events of."""
_LEAST_EVENTS = 5_000
"""Of a wake-up, if there are too many of others."""
_NAMED = 4


def why_untraced(record: RunRecord) -> str:
    """Return why no events were kept, with a remedy."""
    tracing = record.result.tracing
    if tracing is None:
        return f"{TRACE} is missing; measure again with rtscope run --explain"
    if tracing.enabled:
        why = record.why_lost(TRACE)
        return (
            f"{TRACE} could not be written: {why}"
            if why
            else f"{TRACE} was deleted from the run's directory"
        )
    return f"{tracing.reason}; {tracing.remedy}"


def counted_wakeups(record: RunRecord) -> list[Explanation]:
    """
    Return the worst wake-ups around which counters were kept instead of events.

    No cause is claimed: the growth of the counters is in the notes.
    """
    tracing = record.result.tracing
    if tracing is None:
        return []
    return [
        Explanation(
            cpu=around.cpu or 0,
            sequence=around.seq,
            latency_ns=around.wake_ns - around.expiry_ns,
            segments=(),
            notes=tuple(around_words(around)),
        )
        for around in tracing.counter_deltas
    ]


def explained_windows(
    record: RunRecord, trace: Trace, machine: MachineTraits
) -> list[ExplainedWindow]:
    """
    Explain the worst wake-ups of a run, the worst first.

    Those whose events were not kept have an explanation without segments.
    """
    explained, explain = [], explainer_of(record, machine)
    left = MAX_EVENTS
    for number, kept in enumerate(worst_wakeups(record), 1):
        # All windows are kept: the worst may have half of the events, and so on.
        window, wakeup = window_around(trace, kept, most=max(left // 2, _LEAST_EVENTS))
        left -= len(window.events)
        if any(
            wakeup.pid
            in (event.pid, event.numbers.get("pid"), event.numbers.get("next_pid"))
            for event in (*window.earlier, *window.events)
        ):
            explanation = explain(window, wakeup)
        else:
            explanation = Explanation(
                cpu=wakeup.cpu or 0,
                sequence=wakeup.sequence,
                latency_ns=wakeup.latency_ns,
                segments=(),
                notes=("the trace has no event of this thread",),
            )
        title = f"{record.run.id}, worst wake-up {number}"
        explained.append(ExplainedWindow(title, window, wakeup, explanation))
    return explained


def explainer_of(
    record: RunRecord, machine: MachineTraits
) -> Callable[[Window, TracedWakeup], Explanation]:
    """Return what explains the wake-ups of a run by what woke its threads."""
    if record.run.event == TIMER:
        return partial(explain_events, machine=machine)
    if record.run.event == POLL:
        return partial(explain_gap, machine=machine)
    senders = {t.tid: t.event.stimulus_tid for t in record.result.threads if t.event}

    def explained(window: Window, wakeup: TracedWakeup) -> Explanation:
        sender = senders.get(wakeup.pid, -1)
        return explain_event(window, wakeup, machine=machine, sender=sender)

    return explained


def worst_wakeups(record: RunRecord) -> list[TracedWakeup]:
    """Return the worst wake-ups of all measuring threads, the worst first."""
    return wakeups_of(record.result.threads)


def wakeups_of(threads: Sequence[ThreadResult]) -> list[TracedWakeup]:
    """Return the worst wake-ups of threads, the worst first."""
    wakeups = [
        TracedWakeup(
            pid=thread.tid,
            comm=f"rtscope/{worst.cpu}",
            cpu=worst.cpu,
            expiry_ns=worst.expiry_ns,
            wake_ns=worst.wake_ns,
            sequence=worst.seq,
        )
        for thread in threads
        for worst in thread.worst
    ]
    wakeups.sort(key=lambda one: (-one.latency_ns, one.expiry_ns))
    return wakeups[:MOST]


def around_words(around: Around) -> Iterator[str]:
    """Write how the counters grew between the two snapshots, most first."""
    before = (around.expiry_ns - around.from_ns) / NS_PER_MS
    after = (around.to_ns - around.wake_ns) / NS_PER_MS
    yield (
        "no events were recorded, only counters, from "
        f"{before:.0f} ms before the expiry to {after:.0f} ms after the wake-up: the "
        "cause cannot be determined"
    )
    if around.truncated:
        yield "the first counter snapshot came after the expiry: counts are too low"
    for time in around.cpu_times:
        if time.cpu == around.cpu and time.steal_ns:
            yield f"a hypervisor took {time.steal_ns / NS_PER_MS:.0f} ms of this CPU"
    for what, deltas in (
        ("interrupts", around.interrupts),
        ("softirqs", around.softirqs),
    ):
        named = _most(deltas, around.cpu)
        if named:
            yield f"{what} on this CPU: {named}"
    for run in around.schedstat:
        if run.cpu == around.cpu:
            yield (
                f"tasks ran {run.tasks} times on this CPU, and waited "
                f"{run.waited_ns / NS_PER_MS:.1f} ms for it in total"
            )
    if not around.schedstat and around.switches >= 0:
        yield f"{around.switches} task switches on all CPUs"


def _most(deltas: tuple[CounterDelta, ...], cpu: int | None) -> str:
    """Name the most frequent: `local timer interrupts 107, eth0 12`."""
    counts = [
        (sum(n for at, n in one.per_cpu.items() if cpu is None or at == cpu), one)
        for one in deltas
    ]
    counts = [(n, one) for n, one in counts if n]
    counts.sort(key=lambda row: (-row[0], row[1].id))
    return ", ".join(f"{one.name or one.id} {n:,}" for n, one in counts[:_NAMED])
