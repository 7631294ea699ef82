"""What must happen to a thread that works in every period."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rtscope.host.units import NS_PER_MS
from rtscope.verbs.demo.caseresult import PAUSE_NS
from rtscope.verbs.demo.model import CaseResult, Check, DemoResult, Lane, Span
from rtscope.verbs.demo.words import ms, percent

PERIOD_NS, WORK_NS, CYCLES = 20 * NS_PER_MS, 2 * NS_PER_MS, 20
"""Of the thread p, as its script has them."""

TICK_NS = 10 * NS_PER_MS
"""Of the slowest kernels: most check at ticks what a deadline thread has used."""


def periodic(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of an absolute grid, and of sleeps for some time."""
    grid, relative = (releases(result.case(n).lane("p")) for n in ("grid", "relative"))
    wanted = [PERIOD_NS * k for k in range(CYCLES + 1)]
    yield Check(
        "the grid: each release is at its multiple of the period, none is missing",
        grid == wanted,
        f"{len(grid)} releases, the last one at {ms(grid[-1])}",
    )
    drift_ns = relative[-1] - wanted[-1]
    least_ns = CYCLES * WORK_NS
    yield Check(
        f"a sleep of a period: each cycle adds its own work, {ms(least_ns)} in all",
        len(relative) == len(wanted) and drift_ns >= least_ns,
        f"{len(relative)} releases, the last one at {ms(relative[-1])}",
    )
    yield (
        f"After {CYCLES} periods the thread that sleeps for some time is "
        f"{ms(drift_ns)} behind the grid."
    )


def releases(lane: Lane) -> list[int]:
    """Return when its sleeps should have been over."""
    return [due_ns for _, due_ns in lane.times("woke")]


def deadline(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of a deadline thread that asks for less, and for more."""
    cases = [result.case(name) for name in ("honest", "greedy")]
    yield from _displaced(cases)
    honest, greedy = (one.lane("d") for one in cases)
    runtime_ns, period_ns = honest.got.runtime_ns, honest.got.period_ns
    begins = [at_ns for at_ns, _ in honest.times("woke")]
    ends = _ends(honest, begins)
    longest_ns = max((b - a for a, b in zip(begins, ends, strict=False)), default=0)
    yield Check(
        "it had its requested time within each period, beside fifo 90",
        len(ends) == len(begins) - 1 and longest_ns <= period_ns,
        f"longest {ms(longest_ns)} of {ms(period_ns)}, in {len(ends)} periods",
    )
    steps = [b - a for a, b in pairwise(begins[1:])]
    yield Check(
        "a yield lasts until the next period",
        all(abs(step - period_ns) < period_ns / 2 for step in steps),
        f"from one to the next: {ms(min(steps))} to {ms(max(steps))}",
    )
    span_ns = greedy.done_ns - greedy.woke_ns
    whole, most = span_ns // period_ns, span_ns // period_ns + 1
    ran_ns = greedy.ran_within(greedy.woke_ns, greedy.done_ns)
    yield Check(
        f"asking for all, it had {ms(runtime_ns)} in each period, and no more",
        whole * runtime_ns - TICK_NS <= ran_ns <= most * runtime_ns + TICK_NS,
        f"{ms(ran_ns)} in {ms(span_ns)}: {percent(ran_ns / span_ns)}",
    )


def _displaced(cases: Sequence[CaseResult]) -> Iterator[Check | str]:
    """
    Yield whether the deadline thread took the CPU from the hog.

    It begins on that CPU. The kernel may move it when its next period begins after it
    was throttled or gave up the CPU, and lets nobody pin it.
    """
    at_once = [
        [one.lane("hog").ran_within(run.from_ns, run.to_ns) for run in _long_runs(one)]
        for one in cases
    ]
    yield Check(
        "the hog waited for the first run of the deadline thread",
        all(case and case[0] == 0 for case in at_once),
        ", ".join(f"{ms(case[0]) if case else 'no run'} at once" for case in at_once),
    )
    if moved_ns := sum(map(sum, at_once)):
        yield (
            f"Later the kernel moved the deadline thread to another CPU: for "
            f"{ms(moved_ns)} it ran at the same time as the hog."
        )


def _long_runs(one: CaseResult) -> list[Span]:
    """Return the runs of d that leave a hole in those of a thread on its CPU."""
    return [run for run in one.lane("d").runs if run.length_ns > PAUSE_NS]


def _ends(lane: Lane, begins: list[int]) -> list[int]:
    """Return when the work of each cycle was done."""
    ends = []
    for begin_ns, next_ns in pairwise(begins):
        runs = [r.to_ns for r in lane.runs if begin_ns <= r.from_ns < next_ns]
        ends += [max(runs)] if runs else []
    return ends
