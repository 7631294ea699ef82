"""
Which runs of a thread begin its cycles, and at which period. Pure.

A loop has one wake-up of a cycle, and others within it: a lock, a wait with a timeout.
Times that are whole periods apart to the ns are those of the cycle, whatever else wakes
the thread. Without such, all timers are tried, then waits for one interval, the longest
first; without a timer, wake-ups that come at one pace.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from statistics import median_low

from rtscope.host.units import NS_PER_MS
from rtscope.programs.cycles.paces import NEAR_NS, Pace, commonest_ns, paces_of
from rtscope.programs.cycles.threadruns import GAP, NO_SLEEP, RELATIVE, WITHIN, Run

NEAR_SHARE = 0.25
"""An interval this near to a multiple of the period is that many periods."""
ANY_SHARE = 0.5
"""Every interval is this near to a number of periods that the user gave."""
NEARER_SHARE = 0.1
"""The same for sums of several intervals, which differ less by themselves."""
STEADY_SHARE = 0.9
"""Of the intervals, near to a multiple: else the timer is none of a cycle."""
SINGLE_SHARE = 0.5
"""Of the intervals, near to one period: else the median is not the period."""
SINGLE_PACES = 0.75
"""The same of wake-ups without a timer: several of a cycle look like missed ones."""
FEWEST = 4
"""Intervals without which nothing is called a period."""
EXACT_SHARE = 0.4
"""Of the intervals between every n-th timer, equal to the ns: else it is no grid."""
A_ROW = 3
"""Times that are whole periods apart, after which a loop begins anew from then on."""
MOST_PERIODS = 3
"""In the mean of the intervals: more, and the shorter of two waits is no period."""
MOST_WAKEUPS = 8
"""Of a cycle with a timer, among which its own is looked for."""
AT_ONCE = 16
"""Intervals of wake-ups without a timer, at most, whose mean is a period."""
MOST_PACES = 4
"""Of a cycle without one: more add up to a pace that none of them has."""
SAME_REQUEST = 1.5
"""Two requests are of one interval if the longer is not this many times the other."""
SAME_SHARE = 0.05
"""A request differs by less from the median of those that are always the same."""
SLEEPS_SHARE = 0.5
"""Of the wake-ups, the end of a sleep for an interval: each begins a cycle then."""
ADAPTS = 2
"""A request that varies this many times more than the time it leads to adapts to it."""

READING_NS = 10_000
"""From the begin of a wait until the kernel sets its timer: at most, mostly."""

SLIP_SHARE = 0.02
"""A time that is made of the rest of a period is this near to it: the clock is read
again for it (time.sleep of Python)."""


class Basis(StrEnum):
    """What the period of a thread is known from."""

    TIME = "time"
    """Its timer is due at times that are a period apart, whatever the thread does."""
    INTERVAL = "interval"
    """It sleeps for an interval from then on: nothing is due, so nothing is missed."""
    WAKEUPS = "wake-ups"
    """Something else than a timer of the process wakes it, at a steady pace."""
    GIVEN = "given"
    """The user gave it."""


@dataclass(frozen=True, slots=True)
class Beginnings:
    """The runs with which cycles begin."""

    period_ns: int | None
    """None: the sleeps are for an interval, and the work between them differs much."""
    basis: Basis
    at: frozenset[int]
    """Indices of the runs."""
    paces: tuple[Pace, ...] = ()
    """Its periods, where it changes them: `period_ns` is the one of most cycles."""

    @property
    def grid_ns(self) -> int | None:
        """The period of the times of all cycles; None: no such times, or several."""
        return self.period_ns if self.basis is Basis.TIME and not self.paces else None


def beginnings_of(
    runs: Sequence[Run], given_ns: int | None = None
) -> Beginnings | None:
    """Find the runs with which cycles begin; None: each run is a cycle of its own."""
    if given_ns is not None:
        return _at_given(runs, given_ns)
    due = _once_each(runs)
    if (changing := _changing(runs, due)) is not None:
        return changing
    for members in _families(runs, due):
        period_ns = steady_ns(_intervals(runs, members))
        if period_ns is not None:
            on_grid = _keeps_a_grid(runs, members, period_ns)
            basis = Basis.TIME if on_grid else Basis.INTERVAL
            return Beginnings(period_ns, basis, frozenset(members))
    return _after_sleeps(runs, due) or _paced(runs)


def _once_each(runs: Sequence[Run]) -> list[int]:
    """
    Return the timed runs, of those that follow each other at one time the first.

    A loop that has served another when its time had come waits for that time again, and
    goes on at once with its cycle.
    """
    due: list[int] = []
    for index, run in enumerate(runs):
        if run.due_ns and not (due and runs[due[-1]].due_ns == run.due_ns):
            due.append(index)
    return due


def _changing(runs: Sequence[Run], due: Sequence[int]) -> Beginnings | None:
    """Find the cycles of a thread that has one period after another."""
    at = [index for index in due if not runs[index].flags & RELATIVE]
    last = [after - 1 for after in (*at, len(runs))][1:]
    ended_ns = [runs[index].out_ns for index in last]
    paces = paces_of([runs[index].due_ns for index in at], ended_ns)
    if not paces:
        return None
    return Beginnings(commonest_ns(paces), Basis.TIME, frozenset(at), paces)


def begun_of(
    runs: Sequence[Run], given_ns: int | None = None
) -> tuple[Sequence[Run], Beginnings | None]:
    """
    Return the runs with those cut in two in which a time came, and where cycles begin.

    A loop that waits on a condition until a time, as an executor of callbacks, has no
    sleep before a cycle whose time comes while it serves another wake-up. Only a time
    of its own grid begins one: else it was that of a timeout.
    """
    plain = [_untimed(run) if run.flags & WITHIN else run for run in runs]
    found = beginnings_of(plain, given_ns)
    if found is None or not found.grid_ns:
        return plain, found
    due_ns = sorted(plain[at].due_ns for at in found.at)
    near_ns = _near_to_grid_ns(due_ns, found.grid_ns)
    made: list[Run] = []
    begins: list[int] = []
    for at, (run, without) in enumerate(zip(runs, plain, strict=True)):
        is_due = run.flags & WITHIN and (
            _off_grid_ns(run.due_ns, due_ns, found.grid_ns) < near_ns
        )
        made += _cut_in_two(run, without) if is_due else [without]
        if is_due or at in found.at:
            begins.append(len(made) - 1)
    return made, replace(found, at=frozenset(begins))


def _near_to_grid_ns(due_ns: Sequence[int], grid_ns: int) -> float:
    """Return how near to its grid a time is one of it: less where times are exact."""
    exact = sum((b - a) % grid_ns == 0 for a, b in pairwise(due_ns))
    is_exact = exact >= EXACT_SHARE * (len(due_ns) - 1)
    return NEAR_NS if is_exact else SLIP_SHARE * grid_ns


def _off_grid_ns(ns: int, due_ns: Sequence[int], grid_ns: int) -> int:
    """Return how far from whole periods a time is after the last one, or the next."""
    at = bisect_left(due_ns, ns)
    off_ns = [(ns - one) % grid_ns for one in due_ns[max(0, at - 1) : at + 1]]
    return min(min(one, grid_ns - one) for one in off_ns)


def _untimed(run: Run) -> Run:
    return replace(run, armed_ns=0, due_ns=0, flags=run.flags & ~WITHIN)


def _cut_in_two(run: Run, without: Run) -> list[Run]:
    """Return it until its time came, and since; one run if it had no CPU before."""
    timed = replace(run, flags=without.flags)
    if not run.in_ns or run.in_ns >= run.due_ns:
        return [timed]
    since_ns = min(run.ran_ns, run.out_ns - run.due_ns)
    return [
        replace(without, out_ns=run.due_ns, ran_ns=run.ran_ns - since_ns, preempted=0),
        replace(
            timed,
            woken_ns=run.due_ns,
            in_ns=run.due_ns,
            ran_ns=since_ns,
            flags=without.flags & ~GAP | NO_SLEEP,
        ),
    ]


def _intervals(runs: Sequence[Run], at: Sequence[int], step: int = 1) -> list[int]:
    """Return the times from one to the `step`-th after it, where no run was lost."""
    return [
        runs[last].begin_ns - runs[first].begin_ns
        for first, last in zip(at, at[step:], strict=False)
        if not any(run.flags & GAP for run in runs[first + 1 : last + 1])
    ]


def steady_ns(
    intervals: Sequence[int], near: float = NEAR_SHARE, least: float = SINGLE_SHARE
) -> int | None:
    """Return the median interval if most are near to it or to multiples of it."""
    if len(intervals) < FEWEST:
        return None
    period_ns = median_low(intervals)
    if period_ns <= 0:
        return None
    periods = [periods_in(one, period_ns, near) for one in intervals]
    multiple = sum(number is not None for number in periods)
    single = sum(number == 1 for number in periods)
    is_steady = (
        multiple >= STEADY_SHARE * len(periods)
        and single >= least * len(periods)
        and sum(filter(None, periods)) <= MOST_PERIODS * len(periods)
    )
    return period_ns if is_steady else None


def periods_in(
    interval_ns: int, period_ns: int, near: float = NEAR_SHARE
) -> int | None:
    """Return how many periods an interval is; None if it is near to no number."""
    number = round(interval_ns / period_ns)
    off_ns = abs(interval_ns - number * period_ns)
    return number if number > 0 and off_ns <= near * period_ns else None


def near_of(basis: Basis) -> float:
    """Return how near to a number of periods an interval of this basis has to be."""
    return ANY_SHARE if basis is Basis.GIVEN else NEAR_SHARE


def periods_between(
    begins_ns: Sequence[tuple[int, int]], periods_ns: Sequence[int], basis: Basis
) -> Sequence[int | None]:
    """Return how many periods lie between each two begins; None: near to no number."""
    near = near_of(basis)
    both = zip(begins_ns, periods_ns, strict=True)
    return [periods_in(b_ns - a_ns, ns, near) for (a_ns, b_ns), ns in both]


def missed_in(periods: Sequence[int | None]) -> int:
    """Return the whole periods that a thread skipped: it was not due in them."""
    return sum(number - 1 for number in periods if number)


def passed_in(
    lasted_ns: Sequence[int],
    periods: Sequence[int | None],
    periods_ns: Sequence[int],
) -> int:
    """Return those of the skipped periods that began within the cycle before them."""
    rows = zip(lasted_ns, periods, periods_ns, strict=True)
    return sum(min(number - 1, ns // each) for ns, number, each in rows if number)


def _families(runs: Sequence[Run], due: Sequence[int]) -> Iterator[Sequence[int]]:
    """Give the timed runs that may be of one timer, the likeliest first."""
    absolute = [index for index in due if not runs[index].flags & RELATIVE]
    period_ns, grid = _on_a_grid(runs, absolute)
    if grid:
        yield _with_slipped(runs, absolute, grid, period_ns)
    if _are_rests_in_ms(runs, absolute):
        return
    yield due
    requests = sorted(due, key=lambda index: _request_ns(runs[index]), reverse=True)
    alike: list[int] = []
    for index in requests:
        ns = _request_ns(runs[index])
        if alike and ns * SAME_REQUEST < _request_ns(runs[alike[-1]]):
            yield sorted(alike)
            alike = []
        alike.append(index)
    if alike:
        yield sorted(alike)


def _are_rests_in_ms(runs: Sequence[Run], absolute: Sequence[int]) -> bool:
    """Whether they are of poll() or epoll_wait(), each up to 1 ms off a time."""
    requests = [_request_ns(runs[index]) for index in absolute]
    whole = sum(-one % NS_PER_MS <= READING_NS for one in requests)
    if not requests or whole < STEADY_SHARE * len(requests):
        return False
    return spread_ns(requests) > SAME_SHARE * median_low(requests)


def _request_ns(run: Run) -> int:
    return run.due_ns - run.armed_ns


def _on_a_grid(
    runs: Sequence[Run], absolute: Sequence[int]
) -> tuple[int, Sequence[int]]:
    """
    Return a period, and the runs that are whole ones apart, to the ns; none if few.

    A loop that reads its clock again for each sleep is some ns off each time, and keeps
    a time over several periods to the ns more often than that over one.
    """
    anew: tuple[int, Sequence[int]] = 0, ()
    for step in range(1, MOST_WAKEUPS + 1):
        apart = Counter(_intervals(runs, absolute, step))
        if not apart:
            break
        over_ns, number = apart.most_common(1)[0]
        wanted = max(FEWEST, EXACT_SHARE * apart.total() / step)
        if over_ns <= 0 or number < wanted:
            continue
        is_each = _are_near(_intervals(runs, absolute), over_ns / step)
        period_ns = round(over_ns / step) if is_each else over_ns
        phases = _phases(runs, absolute, period_ns)
        found = period_ns, [index for some in phases for index in some]
        # Two timers are as far apart in each period: that is none.
        lasted_ns = runs[absolute[-1]].due_ns - runs[absolute[0]].due_ns
        least = lasted_ns / (MOST_PERIODS * period_ns)
        if max(map(len, phases)) >= least:
            return found
        rows = [some for some in phases if len(some) >= A_ROW]
        if not anew[0] and sum(map(len, rows)) >= least:
            anew = found
    return anew


def _are_near(intervals: Sequence[int], period_ns: float) -> bool:
    """Whether most are one period, but for a time to read the clock."""
    near = [abs(one - period_ns) <= SLIP_SHARE * period_ns for one in intervals]
    return sum(near) >= STEADY_SHARE * len(near)


def _phases(
    runs: Sequence[Run], absolute: Sequence[int], period_ns: int
) -> Sequence[Sequence[int]]:
    """
    Return those of the commonest phase; of equals, the one after most sleep.

    Before and after these, those of another phase: a loop may begin anew from now on,
    as after a cycle that was too long. Two timers are at two phases all the time.
    """
    phases: dict[int, list[int]] = {}
    for index in absolute:
        phases.setdefault(runs[index].due_ns % period_ns, []).append(index)
    most = max(map(len, phases.values()))
    # Of two sleeps in each cycle one may be left out at an end of the recording.
    likely = [some for some in phases.values() if len(some) >= most - 1]
    main = max(likely, key=lambda some: _slept_ns(runs, some) / len(some))
    others = [some for some in phases.values() if some is not main and len(some) > 1]
    kept = [main]
    for some in sorted(others, key=len, reverse=True):
        at = bisect_left(kept, some[0], key=lambda one: one[0])
        is_after = at == 0 or kept[at - 1][-1] < some[0]
        if is_after and (at == len(kept) or some[-1] < kept[at][0]):
            kept.insert(at, some)
    return kept


def _with_slipped(
    runs: Sequence[Run],
    absolute: Sequence[int],
    members: Sequence[int],
    period_ns: int,
) -> Sequence[int]:
    """
    Add the nearest time of each period that none of the members is of.

    Which period it is, and its phase, are known from the members alone.
    """
    first_ns = runs[members[0]].due_ns
    periods = {(runs[at].due_ns - first_ns) // period_ns for at in members}
    nearest: dict[int, tuple[int, int]] = {}
    for at in absolute:
        since_ns = runs[at].due_ns - first_ns
        period = round(since_ns / period_ns)
        off_ns = abs(since_ns - period * period_ns)
        is_near = off_ns <= SLIP_SHARE * period_ns
        if is_near and period not in periods:
            nearest[period] = min((off_ns, at), nearest.get(period, (off_ns, at)))
    return sorted([*members, *(at for _, at in nearest.values())])


def _slept_ns(runs: Sequence[Run], some: Sequence[int]) -> int:
    """Return how long the thread slept before these runs."""
    return sum(
        max(0, runs[index].woken_ns - runs[index - 1].out_ns) for index in some if index
    )


def _keeps_a_grid(runs: Sequence[Run], at: Sequence[int], period_ns: int) -> bool:
    """
    Whether the times are due whatever the thread did before.

    A sleep to a time asks for the rest of a period, which varies as the cycle does; one
    for an interval always asks for the same, and its times vary. Functions of a library
    may ask for a time that they have made of an interval, or the other way round.
    """
    due = [runs[index] for index in at]
    intervals = _intervals(runs, at)
    requests = [_request_ns(run) for run in due[1:]]
    near = [one for one in intervals if periods_in(one, period_ns) == 1]
    if any(run.flags & RELATIVE for run in due):
        return spread_ns(requests) > ADAPTS * spread_ns(near)
    return spread_ns(near) <= spread_ns(requests)


def spread_ns(values: Sequence[int]) -> int:
    """Return the median distance from the median."""
    middle = median_low(values)
    return median_low([abs(one - middle) for one in values])


def _paced(runs: Sequence[Run]) -> Beginnings | None:
    """Find the pace of wake-ups: of all, or of every n-th, the one after most sleep."""
    for step in range(1, MOST_PACES + 1):
        near = NEAR_SHARE if step == 1 else NEARER_SHARE
        series = [range(first, len(runs), step) for first in range(step)]
        likely = max(series, key=lambda some: _slept_ns(runs, some) / max(1, len(some)))
        intervals = _intervals(runs, likely)
        period_ns = steady_ns(intervals, near, SINGLE_PACES)
        if period_ns is not None:
            mean_ns = _mean_ns(intervals, period_ns, near)
            return Beginnings(mean_ns, Basis.WAKEUPS, frozenset(likely))
    return None


def _mean_ns(intervals: Sequence[int], period_ns: int, near: float) -> int:
    """
    Return the median of the means of several that follow each other.

    A wake-up that is late makes one interval longer and the next one shorter.
    """
    both = [(one, periods_in(one, period_ns, near)) for one in intervals]
    known = [(one, number) for one, number in both if number is not None]
    several = min(AT_ONCE, (len(known) + 1) // 2)
    rows = [known[at : at + several] for at in range(len(known) - several + 1)]
    return median_low(
        [round(sum(one for one, _ in row) / sum(n for _, n in row)) for row in rows]
    )


def _after_sleeps(runs: Sequence[Run], due: Sequence[int]) -> Beginnings | None:
    """Begin a cycle with each end of a sleep for an interval, whatever lies between."""
    if not due:
        return None
    middle_ns = median_low([_request_ns(runs[index]) for index in due])
    slept = [
        index
        for index in due
        if runs[index].flags & RELATIVE
        or abs(_request_ns(runs[index]) - middle_ns) <= SAME_SHARE * middle_ns
    ]
    if len(slept) <= FEWEST or len(slept) < SLEEPS_SHARE * len(runs):
        return None
    return Beginnings(None, Basis.INTERVAL, frozenset(slept))


def _at_given(runs: Sequence[Run], period_ns: int) -> Beginnings | None:
    """Begin a cycle with the run that is nearest to a period after the last one."""
    if not runs:
        return None
    soon = [i for i, run in enumerate(runs) if _since_ns(runs, 0, run) < period_ns]
    at = [max(soon, key=lambda index: _slept_ns(runs, [index]))]
    while (nearest := _after_a_period(runs, at[-1], period_ns)) is not None:
        at.append(nearest)
    return Beginnings(period_ns, Basis.GIVEN, frozenset(at))


def _since_ns(runs: Sequence[Run], index: int, run: Run) -> int:
    return run.begin_ns - runs[index].begin_ns


def _after_a_period(runs: Sequence[Run], last: int, period_ns: int) -> int | None:
    nearest: int | None = None
    best_ns = period_ns
    for index in range(last + 1, len(runs)):
        since_ns = _since_ns(runs, last, runs[index])
        if since_ns <= period_ns / 2:
            continue
        off_ns = abs(since_ns - period_ns)
        if nearest is None or off_ns < best_ns:
            nearest, best_ns = index, off_ns
        if since_ns >= period_ns:
            break
    return nearest
