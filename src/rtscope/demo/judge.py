"""What must happen in a demonstration, and whether it did."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from rtscope.demo.model import Check, Judged, Lane, Performance, Scenario, Story
from rtscope.demo.performance import digest_of
from rtscope.units import NS_PER_MS

Performances = Mapping[str, Performance]
"""By the names of their cases."""


def judged(story: Story, performances: Sequence[Performance], target: str) -> Judged:
    """Return a demonstration with all of its checks."""
    by_case = {one.case.name: one for one in performances}
    checks = (
        *(
            replace(check, says=f"{one.case.title}: {check.says}")
            if len(performances) > 1
            else check
            for one in performances
            for check in common_checks(one)
        ),
        *_CHECKS[story.scenario](by_case),
    )
    return Judged(
        story, target, tuple(performances), checks, digest=digest_of(performances)
    )


# --- what must hold of every performance ------------------------------------------


def common_checks(one: Performance) -> Iterator[Check]:
    """Yield what must hold of any performance, whatever it shows."""
    wrong = [lane for lane in one.lanes if _wanted(lane) != _policy(lane)]
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
    lost = sum(lane.end.events_lost for lane in one.lanes)
    stopped = [lane.name for lane in one.lanes if lane.times("done")[0][1]]
    yield Check(
        "all took their last step, and every step was noted",
        not lost and not stopped,
        f"{lost} events lost, stopped: {', '.join(stopped) or 'none'}",
    )


def _wanted(lane: Lane) -> str:
    _, policy, parameter, _ = lane.script.split(":")
    return policy if policy in ("other", "deadline") else f"{policy} {parameter}"


def _policy(lane: Lane) -> str:
    priority = f" {lane.got.priority}" if lane.got.priority else ""
    return f"{lane.got.policy}{priority}"


# --- preempt --------------------------------------------------------------------


def _preempt(cases: Performances) -> Iterator[Check]:
    one = cases["preempt"]
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


def ms(ns: int) -> str:
    """Return a time in ms."""
    return f"{ns / NS_PER_MS:,.1f} ms"


_CHECKS: Mapping[Scenario, Callable[[Performances], Iterator[Check]]] = {
    Scenario.PREEMPT: _preempt,
}
