"""What must happen between threads that are urgent to different degrees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rtscope.host.units import NS_PER_MS
from rtscope.verbs.demo.model import CaseResult, Check, DemoResult, Lane
from rtscope.verbs.demo.words import ms


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
