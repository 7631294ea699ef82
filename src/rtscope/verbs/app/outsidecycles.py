"""The cycles of a thread that was seen from outside, as those of a machine. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from rtscope.host.units import NS_PER_S
from rtscope.programs.cycles.paces import period_at
from rtscope.programs.cycles.periods import Basis, passed_in, periods_between
from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.stats.summary import summarize_samples
from rtscope.verbs.app.cycles import (
    Cycle,
    Period,
    ThreadCycles,
    exact_share,
    spreads_of,
)


def thread_cycles(thread: OutsideThread) -> ThreadCycles:
    """
    Return its cycles.

    A latency ends with its first own instruction, a response where it calls what waits
    for the next cycle.
    """
    cycles = tuple(map(_cycle, thread.cycles))
    return ThreadCycles(
        tid=thread.tid,
        cycles=cycles,
        cut=thread.cut,
        cut_longest_ns=thread.cut_ns,
        cut_unknown=0,
        before=0,
        between=0,
        withdrawn=0,
        sleeps_for_intervals=thread.basis is Basis.INTERVAL,
        period=_period(thread, cycles),
        **spreads_of(cycles),
    )


def _cycle(one: OutsideCycle) -> Cycle:
    return Cycle(
        begin_ns=one.begin_ns,
        in_ns=one.first_ns,
        end_ns=one.done_ns,
        ran_ns=one.on_cpu_ns,
        waits=len(one.waits),
        timed_waits=0,
        preempted=len(one.preemptions),
        slept=one.slept and not one.late_ns,
        timed=one.timed,
    )


def _period(thread: OutsideThread, cycles: Sequence[Cycle]) -> Period | None:
    period_ns, basis = thread.period_ns, thread.basis
    if period_ns is None or basis is None:
        return None
    pairs = list(pairwise(cycles))
    begins = [(a.begin_ns, b.begin_ns) for a, b in pairs]
    intervals = [b_ns - a_ns for a_ns, b_ns in begins]
    each_ns = [period_at(thread.paces, one.begin_ns, period_ns) for one in cycles]
    numbers = periods_between(begins, each_ns[:-1], basis)
    lasted = [one.response_ns for one, _ in pairs]
    starts = [
        abs(b.in_ns - a.in_ns - ns)
        for (a, b), number, ns in zip(pairs, numbers, each_ns[:-1], strict=True)
        if number == 1
    ]
    judged = thread.missed is not None
    both = list(zip(cycles, each_ns, strict=True))
    overruns = sum(one.response_ns > ns for one, ns in both)
    return Period(
        period_ns=period_ns,
        paces=thread.paces,
        basis=basis,
        asks_relative=thread.asked_ns is not None,
        exact_share=exact_share(intervals, each_ns[:-1]),
        missed=None if thread.missed is None else thread.missed - overruns,
        passed=passed_in(lasted, numbers, each_ns[:-1]) if judged else None,
        late_starts=sum(one.latency_ns >= ns for one, ns in both) if judged else None,
        overruns=overruns if judged else None,
        unsure=0,
        drift_ns_per_s=_drift(thread, intervals),
        start_jitter_ns=summarize_samples(starts) if starts else None,
    )


def _drift(thread: OutsideThread, intervals: Sequence[int]) -> float | None:
    if thread.basis is not Basis.INTERVAL:
        return 0.0 if thread.basis is Basis.TIME else None
    if thread.asked_ns is None or not intervals:
        return None
    mean = fmean(intervals)
    return (mean - thread.asked_ns) / mean * NS_PER_S
