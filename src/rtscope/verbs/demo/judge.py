"""What must happen in a demonstration, and whether it did."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rtscope.host.units import NS_PER_MS, format_duration
from rtscope.verbs.demo.limits import throttle
from rtscope.verbs.demo.model import (
    PAUSE_NS,
    CaseResult,
    Check,
    Demo,
    DemoResult,
    Judged,
    Lane,
    Scenario,
    Span,
    digest_of,
    ms,
    percent,
)

TICK_NS = 10 * NS_PER_MS
"""Of the slowest kernels (HZ=100): slices, and mostly what a deadline thread has used,
are counted in ticks."""


# --- threads of different priority --------------------------------------------------


def preempt(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of main and two fifo threads."""
    one = result.case("preempt")
    m, two, three = (one.lane(name) for name in ("m", "2", "3"))
    yield _interrupts(three, two)
    yield _alone(three, two)
    yield _interrupts(two, m)
    yield _alone(two, m)
    yield _alone(three, m)
    order = sorted((m, two, three), key=lambda lane: lane.done_ns)
    yield Check(
        "they ended by urgency: 3, then 2, then m",
        [lane.name for lane in order] == ["3", "2", "m"],
        ", ".join(f"{lane.name} at {ms(lane.done_ns)}" for lane in order),
    )
    faults = {lane.name: lane.end.minor_faults for lane in one.lanes}
    yield Check(
        "with locked memory nobody met a page fault",
        not any(faults.values()),
        ", ".join(f"{name} {count}" for name, count in faults.items()),
    )


def _interrupts(urgent: Lane, other: Lane) -> Check:
    return Check(
        f"{urgent.name} began while {other.name} had work left",
        other.woke_ns < urgent.woke_ns < other.done_ns,
        f"{other.name} from {ms(other.woke_ns)} to {ms(other.done_ns)}, "
        f"{urgent.name} at {ms(urgent.woke_ns)}",
    )


def _alone(urgent: Lane, other: Lane) -> Check:
    ran_ns = other.ran_within(urgent.woke_ns, urgent.done_ns)
    return Check(
        f"{other.name} did not run until {urgent.name} was done",
        ran_ns == 0,
        f"{other.name} ran {ms(ran_ns)} between {ms(urgent.woke_ns)} and "
        f"{ms(urgent.done_ns)}",
    )


MOST_OF_IDLE = 0.1
"""Of what an ordinary thread has: by its weight 0.3 %, and a tick until that counts."""


def classes(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of a thread of each class, and of each rank in one."""
    one = result.case("classes")
    d, nine, five, o, i = (one.lane(name) for name in ("d", "9", "5", "o", "i"))
    ranks = [d, nine, five, o, i]
    due_ns = {lane.name: lane.times("woke")[0][1] for lane in ranks}
    yield Check(
        "each wanted the CPU while those below it had work left",
        all(due_ns[b.name] <= a.woke_ns < b.done_ns for a, b in pairwise(ranks)),
        ", ".join(f"{x.name} {ms(due_ns[x.name])} to {ms(x.done_ns)}" for x in ranks),
    )
    for urgent in (d, nine, five):
        less = ranks[ranks.index(urgent) + 1 :]
        ran_ns = [one.ran_within(urgent.woke_ns, urgent.done_ns) for one in less]
        names = ", ".join(lane.name for lane in less)
        yield Check(
            f"while {urgent.name} wanted the CPU, none of {names} ran",
            not any(ran_ns),
            ", ".join(f"{a.name} {ms(ns)}" for a, ns in zip(less, ran_ns, strict=True)),
        )
    had_ns = [one.ran_within(o.woke_ns, o.done_ns) for one in (o, i)]
    yield Check(
        f"while o wanted it, i had at most {percent(MOST_OF_IDLE)} of what o had",
        had_ns[1] <= MOST_OF_IDLE * had_ns[0],
        f"o {ms(had_ns[0])}, i {ms(had_ns[1])}",
    )
    yield (
        "The scheduler asks the classes in this order, and takes the first thread that "
        "one has: stop (only the kernel's migration/N), deadline (the earliest), rt "
        "(fifo and rr: the highest priority, of equals the first), fair (other, batch "
        "and idle: one that is behind its share), ext (of a BPF scheduler); if all are "
        "empty, the idle task."
    )
    yield "Policy idle is no class: its weight in the fair class is 3, of other 1024."


def take_turns(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of two threads of one priority, as rr and as fifo."""
    rr, fifo = (turns(result.case(name).lanes) for name in ("rr", "fifo"))
    slice_ns = result.case("rr").lane("a").got.slice_ns
    yield Check(
        "rr threads take turns",
        len(rr) > 2,
        f"turns: {' '.join(turn.name for turn in rr)}",
    )
    # The last one of each thread is what it had left.
    last = {turn.name: at for at, turn in enumerate(rr)}
    whole = [turn for at, turn in enumerate(rr) if at != last[turn.name]]
    yield Check(
        f"a turn of rr is a slice of {ms(slice_ns)}, within a tick",
        bool(whole) and all(turn.is_slice(slice_ns) for turn in whole),
        f"turns that ended early: {', '.join(map(str, whole)) or 'none'}",
    )
    yield Check(
        "a fifo thread runs to its end before one of the same priority begins",
        len(fifo) == 2,
        f"turns: {' '.join(turn.name for turn in fifo)}",
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """The time of one thread until the other one runs."""

    name: str
    ran_ns: int
    from_ns: int
    to_ns: int
    """When the next turn begins."""

    @property
    def lasted_ns(self) -> int:
        """With what others took of it."""
        return self.to_ns - self.from_ns

    def is_slice(self, slice_ns: int) -> bool:
        """
        Whether the thread had a slice, within a tick.

        The kernel counts the ticks that find the thread running. What others took of
        its turn between two ticks it counts as the thread's.
        """
        return self.ran_ns - TICK_NS <= slice_ns <= self.lasted_ns + TICK_NS

    def __str__(self) -> str:
        is_shared = self.lasted_ns - self.ran_ns > TICK_NS
        return ms(self.ran_ns) + f" of {ms(self.lasted_ns)}" * is_shared


def turns(lanes: Sequence[Lane]) -> list[Turn]:
    """Return who ran one after the other, and for how long."""
    sequence: list[Turn] = []
    runs = [(run, lane.name) for lane in lanes for run in lane.runs]
    for run, name in sorted(runs, key=lambda pair: pair[0].from_ns):
        turn = Turn(name, run.length_ns, run.from_ns, run.to_ns)
        if sequence and sequence[-1].name == name:
            begun = sequence.pop()
            ran_ns = begun.ran_ns + run.length_ns
            turn = replace(turn, ran_ns=ran_ns, from_ns=begun.from_ns)
        sequence.append(turn)
    ended = [replace(one, to_ns=after.from_ns) for one, after in pairwise(sequence)]
    return [*ended, *sequence[-1:]]


def inherit(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of a mutex without and with priority inheritance."""
    plain, inherited = (result.case(name) for name in ("plain", "inherit"))
    waits = {one.case.name: _wait(one) for one in (plain, inherited)}
    mid_ns = {
        one.case.name: one.lane("mid").ran_within(*waits[one.case.name])
        for one in (plain, inherited)
    }
    mid, (want_ns, got_ns) = plain.lane("mid"), waits["plain"]
    yield Check(
        "without inheritance mid does all its work while high waits for low",
        want_ns < mid.woke_ns and mid.done_ns < got_ns,
        f"high waited {ms(_length(waits['plain']))}, mid ran {ms(mid_ns['plain'])} "
        "of them",
    )
    yield Check(
        "with inheritance mid does not run while high waits",
        mid_ns["inherit"] == 0,
        f"high waited {ms(_length(waits['inherit']))}, mid ran "
        f"{ms(mid_ns['inherit'])} of them",
    )
    yield Check(
        "in both cases high has the mutex only after low gave it back",
        all(
            one.lane("low").times("left")[0][0] <= waits[one.case.name][1]
            for one in (plain, inherited)
        ),
        ", ".join(f"{name} {ms(wait[1])}" for name, wait in waits.items()),
    )
    saved_ns = _length(waits["plain"]) - _length(waits["inherit"])
    yield f"Priority inheritance saves high {ms(saved_ns)} of waiting."


def _wait(one: CaseResult) -> tuple[int, int]:
    high = one.lane("high")
    return high.times("want")[0][0], high.times("got")[0][0]


def _length(wait: tuple[int, int]) -> int:
    return wait[1] - wait[0]


# --- threads that work in every period ----------------------------------------------

PERIOD_NS, WORK_NS, CYCLES = 20 * NS_PER_MS, 2 * NS_PER_MS, 20
"""Of the thread p, as its script has them."""


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


# --- threads that write to memory ---------------------------------------------------


def faults_of(one: CaseResult) -> tuple[int, ...]:
    """Return the page faults of each time that memory was written to."""
    return tuple(count for lane in one.lanes for _, count in lane.times("faults"))


def longest_ns(one: CaseResult) -> int:
    """Return how long the longest of these times took."""
    return max(took for lane in one.lanes for _, took in lane.times("took"))


def pagefault(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of memory that is new, and of memory that was there."""
    yield from _without(result, "fresh", "ready")


def malloc(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of memory from malloc, and of memory from a pool."""
    yield from _without(result, "malloc", "pool")


def _without(result: DemoResult, new: str, had: str) -> Iterator[Check | str]:
    """Yield that one case has page faults in every period, and the other none."""
    meets, spared = result.case(new), result.case(had)
    yield Check(
        f"{meets.case.title}: page faults in every period",
        all(faults_of(meets)),
        _counts(meets),
    )
    yield Check(
        f"{spared.case.title}: no page fault in any period",
        not any(faults_of(spared)),
        _counts(spared),
    )
    yield Check(
        "locked memory was locked, and other was not",
        spared.begin.memory_locked and not meets.begin.memory_locked,
        f"{new} {meets.begin.memory_locked}, {had} {spared.begin.memory_locked}",
    )
    met, spent = (format_duration(longest_ns(one)) for one in (meets, spared))
    yield (
        f"The longest of {len(faults_of(meets))} periods took {met} with page faults, "
        f"and {spent} without."
    )


def _counts(one: CaseResult) -> str:
    return f"faults: {' '.join(map(str, faults_of(one)))}"


# --- every demonstration ------------------------------------------------------------


def judged(demo: Demo, result: DemoResult, target: str) -> Judged:
    """Return a demonstration with all of its checks."""
    common = _folded([list(common_checks(one)) for one in result.results], result)
    checks_and_notes = (*common, *_CHECKS[demo.scenario](result))
    return Judged(
        demo,
        target,
        result.results,
        checks=tuple(one for one in checks_and_notes if isinstance(one, Check)),
        notes=tuple(one for one in checks_and_notes if isinstance(one, str)),
        settings=result.facts,
        settings_after=result.facts_after,
        not_tried=result.not_tried,
        digest=digest_of(result.results),
    )


def _folded(by_case: Sequence[Sequence[Check]], result: DemoResult) -> Iterator[Check]:
    """Yield each check once for all cases, with what was seen where it failed."""
    titles = [one.case.title for one in result.results]
    for same in zip(*by_case, strict=True):
        pairs = list(zip(titles, same, strict=True))
        failed = [f"{title}: {one.seen}" for title, one in pairs if not one.held]
        seen = same[0].seen if len(same) == 1 else f"in {len(same)} cases"
        yield Check(same[0].says, not failed, "; ".join(failed) or seen)


# --- what must hold of every case ---------------------------------------------------


def common_checks(one: CaseResult) -> Iterator[Check]:
    """Yield what must hold of any case, whatever it shows."""
    wrong = [lane for lane in one.lanes if lane.script.split(":")[1:3] != _had(lane)]
    yield Check(
        "each thread had its policy before its first step",
        not wrong,
        ", ".join(f"{lane.name} {_policy(lane)}" for lane in one.lanes),
    )
    pinned = [lane for lane in one.lanes if lane.got.policy != "deadline"]
    yield Check(
        "all had one CPU",
        {lane.got.affinity for lane in pinned} <= {str(one.begin.cpu)},
        f"CPU {', '.join(sorted({lane.got.affinity for lane in pinned})) or '-'}",
    )
    stopped = [lane.name for lane in one.lanes if lane.times("done")[0][1]]
    yield Check(
        "all took their last step",
        not stopped,
        f"stopped: {', '.join(stopped) or 'none'}",
    )


def _had(lane: Lane) -> list[str]:
    """Return policy and parameter as a script has them."""
    got = lane.got
    if got.policy == "deadline":
        return [got.policy, f"{got.runtime_ns}/{got.period_ns}"]
    return [got.policy, f"{got.priority}"]


def _policy(lane: Lane) -> str:
    got = lane.got
    if got.policy == "deadline":
        return f"deadline {ms(got.runtime_ns)} in {ms(got.period_ns)}"
    return f"{got.policy} {got.priority}" if got.priority else got.policy


_CHECKS: Mapping[Scenario, Callable[[DemoResult], Iterator[Check | str]]] = {
    Scenario.PREEMPT: preempt,
    Scenario.RR: take_turns,
    Scenario.DEADLINE: deadline,
    Scenario.CLASSES: classes,
    Scenario.THROTTLE: throttle,
    Scenario.INVERSION: inherit,
    Scenario.PAGEFAULT: pagefault,
    Scenario.MALLOC: malloc,
    Scenario.PERIODIC: periodic,
}
