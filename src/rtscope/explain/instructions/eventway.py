"""
The way of an event, explained: to the thread that waits, then the thread's own. Pure.

The times of a carrier are those of its CPU. Another CPU may be up to a quantum ahead,
so only their lengths count: they lie behind each other.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rtscope.explain.carrying import (
    OWN,
    UNKNOWN_WAY,
    Bearer,
    of_others,
    parts_of_the_way,
)
from rtscope.explain.instructions.calls import plain
from rtscope.explain.instructions.carriers import Carrier, Search, Way
from rtscope.explain.instructions.deferred import THREAD
from rtscope.explain.instructions.explain import explain_path, explanation_of
from rtscope.explain.instructions.path import (
    Cpus,
    WakeupPath,
    all_cpus,
    wakeup_path,
)
from rtscope.explain.instructions.released import Release, is_end
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.titles import A_CALL
from rtscope.explain.joining import joined
from rtscope.explain.model import (
    Broken,
    Cause,
    Explanation,
    Part,
    Segment,
    Since,
)
from rtscope.explain.words import NOT_RECORDED
from rtscope.record.instructions.section import TraceSection, marked_at
from rtscope.record.instructions.symbols import USER, SymbolTable
from rtscope.record.model import POLL, TIMER

QUANTUM = (
    "a virtual board tells another CPU of an interrupt up to a quantum late: this is "
    "no time of hardware"
)
DEVICE = "the device"
MODERATED = (
    "no instruction of a CPU asked for the interrupt, but a timer of the device: it "
    "moderates its interrupts (coalescing), or takes its time"
)
KEPT = (
    "the device asked for its interrupt when a later event had come, as a UART does "
    "whose FIFO has a trigger level (rx_trig_bytes)"
)
POLLED = (
    "no interrupt of the device told of the event: a timer let the driver poll, as "
    "with gro_flush_timeout and napi_defer_hard_irqs"
)
RELEASED = (
    "the sender was done, and its device had not got the event: a timer let the queue "
    "of the interface (qdisc, or its stopped ring) go on"
)
LEFT = (
    "a softirq that ran already ended without the driver's poll, because a thread was "
    "to run, and left it to ksoftirqd"
)
_OF_STAYS = {
    Role.SCHEDULE: Cause.SCHEDULER,
    Role.SOFTIRQ: Cause.SOFTIRQ,
    Role.INTERRUPT: Cause.OTHER_INTERRUPT,
}

_LONG_NS = 50_000
"""A shorter interrupt has the name of its entry."""
_Timed = TypeVar("_Timed", Segment, Broken)
Explainer = Callable[..., Explanation]
"""Explains a path: of a section, symbols, `arch` and `preemptible`."""


def explainer_of(event: str) -> Explainer:
    """Return what explains the wake-ups of a run by what woke its threads."""
    return {TIMER: explain_path, POLL: explain_gap}.get(event, explain_event)


def explain_event(
    section: TraceSection,
    symbols: SymbolTable,
    *,
    arch: str,
    preemptible: bool | None = None,
) -> Explanation:
    """Explain a wake-up by an event: the way of the event, then the thread's own."""
    cpus = all_cpus(section, symbols, arch=arch)
    way = Search(section, symbols, cpus).way()
    sent_ns = section.last_ns - section.latency_ns
    took_ns = sum(one.end_ns - one.begin_ns for one in way.carriers)
    release = Release(way.call, _called_ns(way, section, sent_ns + took_ns))
    awake_ns = (way.awake_until_ns or sent_ns) - sent_ns
    cpus = _since_then(cpus, awake_ns)
    path = wakeup_path(section, symbols, arch=arch, release=release, cpus=cpus)
    own = explanation_of(path, preemptible=preemptible)
    is_told = is_end(way.call, path.held)
    woken_ns = path.held.runnable_ns - sent_ns if path.held and is_told else 0
    woken_ns = max(0, woken_ns)
    known = [*_carried(way, path, release, section, symbols, arch, preemptible)]
    segments, broken = list[Segment](), list[Broken]()
    at_ns = woken_ns - sum(one.length_ns for one in known)
    for one in known:
        moved = [_moved(s, at_ns, woken_ns) for s in one.segments]
        segments += [s for s in moved if s.duration_ns > 0]
        broken += [_shifted(b, at_ns) for b in one.broken]
        at_ns += one.length_ns
    segments[:1] = _from_the_begin(segments[:1], _late_ns(section))
    behind = [_since(_shifted(one, awake_ns), woken_ns) for one in own.segments]
    behind = [of_others(one) for one in behind if one.duration_ns > 0]
    behind = _after(way.carriers[-1:], section.cpu, behind)
    if way.call is not None and is_told:
        behind = _told_to_cpu(path, way.call.cpu, behind)
    later = [_shifted(one, awake_ns) for one in own.broken]
    notes = own.notes if way.is_known else (*own.notes, UNKNOWN_WAY)
    return replace(
        own,
        segments=tuple(map(_by_handler, joined([*segments, *behind]))),
        notes=tuple(dict.fromkeys(notes)),
        latency_ns=section.latency_ns,
        broken=(*broken, *(one for one in later if one.end_ns > woken_ns)),
        since=Since.SENT,
    )


def _by_handler(segment: Segment) -> Segment:
    """Return the event's interrupt, named after the handler that took most of it."""
    if segment.cause is not Cause.EVENT_INTERRUPT or not segment.pieces:
        return segment
    name, ns = max(segment.pieces, key=lambda piece: piece[1])
    if 2 * ns < (segment.executed_ns or 0) or segment.duration_ns < _LONG_NS:
        return segment
    return replace(
        segment, name=name, evidence=(*segment.evidence, f"entered by {segment.name}")
    )


def _since_then(cpus: Cpus, awake_ns: int) -> Cpus:
    """
    Return the CPUs for a thread that was awake for a time after the event was sent.

    What it did until it slept delays no event: its way counts from then on.
    """
    own, others = cpus
    whole = others.section
    if not awake_ns:
        return cpus
    since = marked_at(
        whole, whole.last_ns, cpu=whole.cpu, latency_ns=whole.latency_ns - awake_ns
    )
    return own, replace(others, section=since)


def explain_gap(
    section: TraceSection,
    symbols: SymbolTable,
    *,
    arch: str,
    preemptible: bool | None = None,
) -> Explanation:
    """Explain a gap in the time of a thread that never sleeps."""
    begun_ns = section.last_ns - section.latency_ns
    path = wakeup_path(section, symbols, arch=arch, release=Release(None, begun_ns))
    own = explanation_of(path, preemptible=preemptible)
    segments = joined([of_others(one) for one in own.segments])
    return replace(own, segments=segments, since=Since.GAP)


def _called_ns(way: Way, section: TraceSection, carried_ns: int) -> int:
    """Return when the thread was woken, by the time of its own CPU."""
    if way.call is not None and (way.call.cpu == section.cpu or not way.carriers):
        return way.call.at_ns
    return carried_ns


@dataclass(frozen=True, slots=True)
class _Carried:
    """What took the time of a carrier; times in ns since it was in the queue."""

    length_ns: int
    segments: Sequence[Segment]
    broken: Sequence[Broken]


def _carried(
    way: Way,
    path: WakeupPath,
    release: Release,
    section: TraceSection,
    symbols: SymbolTable,
    arch: str,
    preemptible: bool | None,
) -> Sequence[_Carried]:
    """
    Return what took the time of each carrier, in their order.

    Each has the event until its call has put the next one into a queue.
    """
    found: list[_Carried] = []
    if path.held is None or not is_end(way.call, path.held):
        return found
    more_ns = max(0, path.held.runnable_ns - release.at_ns)
    for i in reversed(range(len(way.carriers))):
        carrier = way.carriers[i]
        one = replace(carrier, end_ns=carrier.end_ns + more_ns)
        if one.is_device:
            found.append(_waited(one))
            more_ns = 0
            continue
        if one.stays:
            found.append(_left(one))
            more_ns = 0
            continue
        its_path, carried = _explained(one, section, symbols, arch, preemptible)
        held = its_path.held if is_end(one.call, its_path.held) else None
        more_ns = 0 if held is None else max(0, held.runnable_ns - one.begin_ns)
        since = [_since(s, more_ns) for s in carried.segments]
        since = [s for s in since if s.duration_ns > 0]
        since = _after(way.carriers[max(0, i - 1) : i], one.cpu, since)
        if one.is_interrupt:
            since = _before_entry(its_path, one, since)
        if one.call is not None and held is not None and not one.was_awake:
            since = _told_to_cpu(its_path, one.call.cpu, since)
        moved = [_shifted(s, -more_ns) for s in _of_carrier(one, since)]
        later = (b for b in carried.broken if b.end_ns > more_ns)
        broken = [_shifted(b, -more_ns) for b in later]
        found.append(_Carried(one.end_ns - one.begin_ns - more_ns, moved, broken))
    return found[::-1]


def _before_entry(
    path: WakeupPath, one: Carrier, since: Sequence[Segment]
) -> list[Segment]:
    """
    Return what an interrupt waited for, and the interrupt.

    Its CPU had interrupts off, or another CPU's request was on its way to it.
    """
    found = [*since]
    if one.entered_ns is None:
        return found
    begun_ns = one.entered_ns - one.begin_ns
    before = [i for i, s in enumerate(found) if s.end_ns <= begun_ns]
    is_off = [2 * _off_ns(path, found[i]) > found[i].duration_ns for i in before]
    for i in before:
        if is_off[i] and found[i].cause is not Cause.EARLIER_INTERRUPT:
            found[i] = replace(found[i], cause=Cause.INTERRUPTS_OFF, holder="")
    on = [i for i in before if not is_off[i]]
    if not on or one.asked_by in (None, one.cpu):
        return found
    if found[on[-1]].end_ns > _late_ns(path.section):
        return found
    return [_on_its_way(one.asked_by, found[: on[-1] + 1]), *found[on[-1] + 1 :]]


def _off_ns(path: WakeupPath, segment: Segment) -> int:
    begin_ns, end_ns = segment.begin_ns, segment.end_ns
    return path.flags.off_in(path.expiry_ns + begin_ns, path.expiry_ns + end_ns)


def _on_its_way(teller: int | None, before: Sequence[Segment]) -> Segment:
    return Segment(
        Part.A,
        before[0].begin_ns,
        before[-1].end_ns,
        Cause.ON_ITS_WAY,
        f"CPU {teller}",
        sum(one.executed_ns or 0 for one in before),
        evidence=(QUANTUM,),
    )


def _after(
    before: Sequence[Carrier], cpu: int, since: Sequence[Segment]
) -> list[Segment]:
    """Return what followed an interrupt's call on its CPU: first what is left of it."""
    found = [*since]
    if not before or not before[0].is_interrupt or before[0].cpu != cpu:
        return found
    for i, one in enumerate(found):
        if one.cause is not Cause.OTHER_INTERRUPT:
            break
        found[i] = _as_interrupt(one, before[0].entry)
    return found


def _as_interrupt(segment: Segment, name: str) -> Segment:
    return replace(
        segment, cause=Cause.EVENT_INTERRUPT, name=name, task="", policy="", holder=""
    )


def _waited(one: Carrier) -> _Carried:
    """Return the time of a device that waits before it asks for its interrupt."""
    length_ns = one.end_ns - one.begin_ns
    why = KEPT if one.until_later else MODERATED
    segment = Segment(Part.A, 0, length_ns, Cause.DEVICE, DEVICE, evidence=(why,))
    if one.timers:
        cause = Cause.QUEUED if one.sends else Cause.DEFERRED
        evidence = (RELEASED if one.sends else POLLED,)
        name = ", ".join(one.timers)
        segment = replace(segment, cause=cause, name=name, evidence=evidence)
    return _Carried(length_ns, [segment], ())


def _left(one: Carrier) -> _Carried:
    """Return the time in which a driver's poll was left to ksoftirqd."""
    thread = f"{THREAD}{one.cpu}"
    segments = list[Segment]()
    for stay in one.stays:
        times_ns = stay.begin_ns - one.begin_ns, stay.end_ns - one.begin_ns
        cause = _OF_STAYS.get(stay.role, Cause.NOT_REALTIME)
        segment = Segment(Part.A, *times_ns, cause, stay.calls[0], evidence=(LEFT,))
        segment = replace(segment, callers=stay.calls)
        if stay.task is not None:
            segment = replace(
                segment,
                task=stay.task.name,
                policy=stay.task.policy,
                holder=f"{thread} on CPU {one.cpu} was to carry the event",
            )
        segments.append(segment)
    return _Carried(one.end_ns - one.begin_ns, segments, ())


def _from_the_begin(first: Sequence[Segment], late_ns: int) -> list[Segment]:
    """
    Return the first segment from the begin of the latency on.

    What the sender reads is the board's clock, a quantum at most from its CPU's time:
    of a longer time before it nothing is known.
    """
    found = list[Segment]()
    for one in first:
        if one.begin_ns > late_ns:
            unknown = Segment(Part.A, 0, one.begin_ns, Cause.UNKNOWN, NOT_RECORDED)
            found += [unknown, one]
        else:
            found.append(one if one.begin_ns <= 0 else replace(one, begin_ns=0))
    return found


def _told_to_cpu(
    path: WakeupPath, teller: int, behind: Sequence[Segment]
) -> list[Segment]:
    """
    Return what came behind a call, with the interrupt by which its CPU told this one.

    As long as that had interrupts on, and executed something else, it was on its way.
    """
    section, entered = path.section, path.milestones.entered
    if teller == section.cpu:
        return [*behind]
    found = [*behind]
    waited = [i for i, s in enumerate(found) if s.part is Part.A and _is_open(s)]
    if waited and found[waited[-1]].end_ns - found[0].begin_ns <= _late_ns(section):
        first = _on_its_way(teller, found[: waited[-1] + 1])
        found = [first, *found[waited[-1] + 1 :]]
    if entered is None or entered >= len(path.runs):
        return found
    entered_ns = path.runs[entered].begin_ns - path.expiry_ns
    return [
        _as_interrupt(one, _entry_of(path, entered))
        if one.cause is Cause.OTHER_INTERRUPT and one.begin_ns == entered_ns
        else one
        for one in found
    ]


def _is_open(segment: Segment) -> bool:
    """Tell whether an interrupt would have come in a segment: it waits for none."""
    asleep = segment.cause is Cause.IDLE_EXIT and segment.executed_ns == 0
    return segment.cause is Cause.DELIVERY or asleep


def _late_ns(section: TraceSection) -> int:
    return section.quantum_ns + 10 * section.block_ns


def _entry_of(path: WakeupPath, at: int) -> str:
    """Return the name of the interrupt that a run begins."""
    frame = path.contexts[at].frame or path.runs[at].frame
    inside = [one for one in path.runs[at].frame.chain() if one.role is Role.INTERRUPT]
    return plain((inside[0] if inside else frame).name).removeprefix("asm_")


def _since(segment: Segment, begin_ns: int) -> Segment:
    """Return what of a segment is behind a time."""
    if segment.begin_ns >= begin_ns:
        return segment
    return _cut(segment, begin_ns, max(begin_ns, segment.end_ns))


def _moved(segment: Segment, by_ns: int, end_ns: int) -> Segment:
    """Return a segment later, and of it what is before a time."""
    begin_ns = max(0, min(segment.begin_ns + by_ns, end_ns))
    end_ns = max(begin_ns, min(segment.end_ns + by_ns, end_ns))
    return _cut(segment, begin_ns, end_ns)


def _shifted(one: _Timed, by_ns: int) -> _Timed:
    return replace(one, begin_ns=one.begin_ns + by_ns, end_ns=one.end_ns + by_ns)


def _cut(segment: Segment, begin_ns: int, end_ns: int) -> Segment:
    executed_ns = segment.executed_ns
    if executed_ns is not None:
        executed_ns = min(executed_ns, end_ns - begin_ns)
    return replace(segment, begin_ns=begin_ns, end_ns=end_ns, executed_ns=executed_ns)


def _explained(
    one: Carrier,
    section: TraceSection,
    symbols: SymbolTable,
    arch: str,
    preemptible: bool | None,
) -> tuple[WakeupPath, Explanation]:
    """Return what took the time of a carrier, as of a thread that a mark ends."""
    length_ns = one.end_ns - one.begin_ns
    marked = marked_at(section, one.end_ns, cpu=one.cpu, latency_ns=length_ns)
    release = Release(one.call, one.begin_ns, entered_ns=one.entered_ns)
    path = wakeup_path(marked, symbols, arch=arch, to_the_end=True, release=release)
    return path, explanation_of(path, preemptible=preemptible)


def _of_carrier(one: Carrier, segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments of a carrier as parts of the way of the event."""
    if one.is_interrupt:
        cause = Cause.EVENT_INTERRUPT
    else:
        cause = Cause.SENDING if one.is_sender else Cause.CARRIER
    name = one.task.name or "an unknown task"
    who = "an interrupt" if one.is_interrupt else name
    begins_ns = None if one.entered_ns is None else one.entered_ns - one.begin_ns
    bearer = Bearer(cause, who, one.cpu, one.task.policy, begins_ns)
    return parts_of_the_way(bearer, segments, one.entry or _place_of(segments))


def _place_of(segments: Sequence[Segment]) -> str:
    """Return what a carrier did of its own for longest: the call, or the function."""
    own = [one for one in segments if one.cause in OWN and one.name != USER]
    longest = max(own, key=lambda one: one.duration_ns, default=None)
    calls = Counter[str]()
    for name, ns in (piece for one in own for piece in one.pieces):
        calls[name] += ns if name.startswith(A_CALL) else 0
    if calls.total():
        return calls.most_common(1)[0][0]
    return USER if longest is None else longest.name
