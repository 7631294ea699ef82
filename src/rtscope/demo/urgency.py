"""What must happen between threads that are urgent to different degrees."""

from collections.abc import Iterator, Sequence

from rtscope.demo.model import CaseResult, Check, DemoResult, Lane
from rtscope.demo.words import ms
from rtscope.units import NS_PER_MS


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


TICK_NS = 10 * NS_PER_MS
"""Of the slowest kernels (HZ=100): slices are counted in ticks."""


def take_turns(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of two threads of one priority, as rr and as fifo."""
    rr, fifo = (turns(result.case(name).lanes) for name in ("rr", "fifo"))
    slice_ns = result.case("rr").lane("a").got.slice_ns
    yield Check(
        "rr threads take turns",
        len(rr) > 2,
        f"turns: {' '.join(name for name, _ in rr)}",
    )
    # The last one of each thread is what it had left.
    last = {name: at for at, (name, _) in enumerate(rr)}
    whole = [ran for at, (name, ran) in enumerate(rr) if at != last[name]]
    yield Check(
        f"a turn of rr is a slice of {ms(slice_ns)}, within a tick",
        bool(whole) and all(abs(ran - slice_ns) <= TICK_NS for ran in whole),
        f"turns that ended early: {', '.join(map(ms, whole)) or 'none'}",
    )
    yield Check(
        "a fifo thread runs to its end before one of the same priority begins",
        len(fifo) == 2,
        f"turns: {' '.join(name for name, _ in fifo)}",
    )


def turns(lanes: Sequence[Lane]) -> list[tuple[str, int]]:
    """Return who ran one after the other, and for how many ns."""
    found: list[tuple[str, int]] = []
    runs = [(run, lane.name) for lane in lanes for run in lane.runs]
    for run, name in sorted(runs, key=lambda pair: pair[0].from_ns):
        before = found.pop()[1] if found and found[-1][0] == name else 0
        found.append((name, before + run.length_ns))
    return found


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
