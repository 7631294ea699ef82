"""
Explanations without recorded switches: from osnoise events, and tracers' own reports.

The report is the evidence: a length, a task, functions. It has sums and no times, so
the pieces are put in the order of a wake-up. What the report does not say is unknown.

The tracer's own lines say when its interrupt and its thread were how late. Events of
noise tell what ran: each comes at its end, with its begin and its net length. What
nests over a thread is laid over it. Priorities are in none of these events.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise

from rtscope.explain.events.histories import priority_words
from rtscope.explain.events.irqdelay import UNMASKING
from rtscope.explain.events.spans import SOFTIRQS, below_the_interrupt
from rtscope.explain.events.threadstates import STRAIGHT_NS, TracedWakeup
from rtscope.explain.joining import joined
from rtscope.explain.model import Cause, Confidence, Explanation, Part, Segment
from rtscope.host.units import format_us
from rtscope.record.events.events import Event, Window
from rtscope.record.events.reports import OFF_TRACERS, Analysis, Head, Row

_WHAT = {
    "irqsoff": (Cause.INTERRUPTS_OFF, "interrupts off"),
    "preemptoff": (Cause.PREEMPTION_OFF, "preemption off"),
    "preemptirqsoff": (Cause.PREEMPTION_OFF, "interrupts or preemption off"),
}
_INTERFERENCES = (
    ("NMI interference", Part.B, Cause.OTHER_INTERRUPT, "NMI"),
    ("IRQ interference", Part.B, Cause.OTHER_INTERRUPT, "interrupts"),
    ("Softirq interference", Part.C, Cause.SOFTIRQ, "softirqs"),
    ("Thread interference", Part.D, Cause.OTHER_TASK, "threads"),
)
_SHOWN = 6
_SLIGHT_NS = 2_000
_IS_FIFO, _IS_RR, _IS_DEADLINE = 1, 2, 6
_SUMS = "rtla reports sums: the order of the pieces is that of a wake-up, not measured"


def explained_reports(reports: Sequence[Head | Analysis]) -> Sequence[Explanation]:
    """
    Return the explanations of reports, worst first.

    None of a tracer of wake-ups whose lines have the wake-up and the switch: they are
    events like any others.
    """
    found: list[Explanation] = []
    for one in reports:
        if isinstance(one, Analysis):
            found.append(_of_analysis(one))
        elif one.tracer in OFF_TRACERS:
            found.append(_of_head(one))
        elif not one.switched:
            found.append(_of_wait(one))
    return sorted(found, key=lambda one: -one.latency_ns)


def thread_of(reports: Sequence[Head | Analysis]) -> str | None:
    """Return the number of the thread whose wait a tracer reports; None without it."""
    heads = (str(one.pid) for one in reports if isinstance(one, Head) and one.task)
    return next(heads, None)


def with_head(
    explanation: Explanation, reports: Sequence[Head | Analysis]
) -> Explanation:
    """Note where the head of a tracer says another length than its lines."""
    heads = [one for one in reports if isinstance(one, Head)]
    if not heads:
        return explanation
    said_ns, told_ns = heads[0].latency_ns, explanation.latency_ns
    if abs(said_ns - told_ns) <= max(_SLIGHT_NS, told_ns // 20):
        return explanation
    note = (
        f"the head says {format_us(said_ns)} µs: the tracer counts on until it has "
        f"written the line of the switch, {format_us(told_ns)} µs behind that of the "
        "wake-up"
    )
    return replace(explanation, notes=(*explanation.notes, note))


def _of_wait(head: Head) -> Explanation:
    """Return what the head of a tracer of wake-ups says, if no line below it does."""
    name = f"only the head of {head.tracer} says that {_task_of(head)} waited"
    segment = Segment(
        Part.D, 0, head.latency_ns, Cause.UNKNOWN, name, confidence=Confidence.GUESSED
    )
    return Explanation(
        head.cpu, -1, head.latency_ns, (segment,), notes=tuple(_notes_of(head))
    )


def _of_head(head: Head) -> Explanation:
    cause, what = _WHAT[head.tracer]
    task = _task_of(head)
    place = head.started or (head.calls[0][1] if head.calls else "an unknown function")
    evidence = [
        f"{what} from {place} to {head.ended or 'an unknown function'}, in {task}",
        *_longest_call(head),
    ]
    if head.stack:
        evidence.append(f"ended by {' < '.join(head.stack[:_SHOWN])}")
    segment = Segment(
        Part.A if cause is Cause.INTERRUPTS_OFF else Part.C,
        0,
        head.latency_ns,
        cause,
        f"{place}, in {task}",
        evidence=tuple(evidence),
    )
    return Explanation(
        cpu=head.cpu,
        sequence=-1,
        latency_ns=head.latency_ns,
        segments=(segment,),
        notes=tuple(_notes_of(head)),
        head=f"CPU {head.cpu} had {what} for {format_us(head.latency_ns)} µs",
    )


def _longest_call(head: Head) -> Iterator[str]:
    """Name the function behind which the longest time without a line begins."""
    if len(head.calls) < 2:
        return
    gaps = [(b[0] - a[0], a, b) for a, b in pairwise(head.calls)]
    gap_ns, before, after = max(gaps, key=lambda row: row[0])
    yield (
        f"the longest time between two functions: {format_us(gap_ns)} µs, from "
        f"{before[1]} at +{format_us(before[0])} µs to {after[1]}"
    )


def _task_of(head: Head) -> str:
    if not head.task:
        return "an unknown task"
    number = 120 + head.nice
    if head.policy in (_IS_FIFO, _IS_RR):
        number = 99 - head.rt_priority
    elif head.policy == _IS_DEADLINE:
        number = -1
    return f"{head.task}-{head.pid} ({priority_words(number)})"


def _notes_of(head: Head) -> Iterator[str]:
    kernel = f" on {head.kernel}" if head.kernel else ""
    yield f"as the tracer {head.tracer} reports it{kernel}; its times are whole µs"
    if head.tracer in OFF_TRACERS:
        yield (
            "this is a section of the kernel and no wake-up: a thread is late by it "
            "only if its timer expires in it"
        )
    if not head.calls:
        yield "the text has no functions of this time: what took it is not known closer"


def _of_analysis(analysis: Analysis) -> Explanation:
    segments: list[Segment] = []
    at_ns = 0
    for part, cause, name, length_ns, evidence, sure in _pieces(analysis):
        if length_ns > 0:
            end_ns = at_ns + length_ns
            segments.append(
                Segment(
                    *(part, at_ns, end_ns, cause, name),
                    evidence=tuple(evidence),
                    confidence=sure,
                )
            )
            at_ns = end_ns
    what = "the timerlat thread" if analysis.of_thread else "the interrupt of timerlat"
    return Explanation(
        cpu=analysis.cpu,
        sequence=-1,
        latency_ns=max(analysis.latency_ns, at_ns),
        segments=tuple(segments),
        notes=tuple(_notes_of_analysis(analysis)),
        head=(
            f"CPU {analysis.cpu}: {what} was {format_us(analysis.latency_ns)} µs late"
        ),
    )


Piece = tuple[Part, Cause, str, int, Sequence[str], Confidence]


def _pieces(analysis: Analysis) -> Iterator[Piece]:
    """Yield what rtla lists, in the order of a wake-up."""
    delay = analysis.row("IRQ handler delay")
    delay_ns = (delay.length_ns if delay else None) or 0
    irq = analysis.row("IRQ latency")
    if not analysis.of_thread:
        # Of a late interrupt nothing else is printed, and the delay may be 0.
        delay_ns = max(delay_ns, (irq.length_ns if irq else None) or 0)
    if delay_ns:
        yield _delayed(analysis, delay, delay_ns)
    if not analysis.of_thread:
        return
    own = analysis.row("Timerlat IRQ duration")
    if own is not None and own.length_ns:
        cause, sure = Cause.TIMER_INTERRUPT, Confidence.SEEN
        yield Part.B, cause, "the timerlat interrupt", own.length_ns, (), sure
    blocking = analysis.row("Blocking thread")
    if blocking is not None and blocking.length_ns:
        name = _first_name(blocking) or "an unknown thread"
        chain = _blocked_in(analysis)
        at = f", in {chain[0]}" if chain and not _is_delay(analysis) else ""
        why = [f"rtla: {name} kept the CPU from the thread"]
        why += [f"its stack: {' < '.join(chain[:_SHOWN])}"] if chain else []
        cause, sure = Cause.PREEMPTION_OFF, Confidence.INFERRED
        yield Part.C, cause, f"{name}{at}", blocking.length_ns, why, sure
    for label, part, cause, what in _INTERFERENCES:
        row = analysis.row(label)
        if row is not None and row.length_ns:
            yield from _interference(row, part, cause, what)


def _interference(row: Row, part: Part, cause: Cause, what: str) -> Iterator[Piece]:
    """Yield each task or interrupt of a line, and what it does not list."""
    rest_ns = row.length_ns or 0
    for name, length_ns in row.pieces:
        if length_ns:
            yield part, cause, name, length_ns, (f"rtla: {row.label}",), Confidence.SEEN
            rest_ns -= length_ns
    if rest_ns > 0:
        yield part, cause, what, rest_ns, (f"rtla: {row.label}",), Confidence.SEEN


def _delayed(analysis: Analysis, delay: Row | None, length_ns: int) -> Piece:
    if delay is not None and delay.from_idle:
        why = ("rtla: the CPU left idle (exit from idle)",)
        return Part.A, Cause.IDLE_EXIT, "idle", length_ns, why, Confidence.INFERRED
    chain = _blocked_in(analysis)
    blocking = analysis.row("Blocking thread")
    thread = (_first_name(blocking) if blocking else "") or "an unknown thread"
    if chain and chain[0].startswith(UNMASKING):
        chain = chain[1:] or chain  # its caller had turned them off
    if chain:
        why = (f"the interrupt came in {' < '.join(chain[:_SHOWN])}",)
        name, sure = f"{chain[0]}, in {thread}", Confidence.INFERRED
        return Part.A, Cause.INTERRUPTS_OFF, name, length_ns, why, sure
    name = f"interrupts off in {thread}, or the hypervisor or hardware"
    why = ("rtla printed no stack",)
    return Part.A, Cause.UNKNOWN, name, length_ns, why, Confidence.GUESSED


def _is_delay(analysis: Analysis) -> bool:
    """Tell whether the interrupt was later than the thread behind it."""
    delay, blocking = (
        (row.length_ns if row is not None else None) or 0
        for row in map(analysis.row, ("IRQ handler delay", "Blocking thread"))
    )
    return delay > blocking


def _blocked_in(analysis: Analysis) -> Sequence[str]:
    """Return the functions below the interrupt, or all where none is in the stack."""
    if not analysis.stack:
        return ()
    below = below_the_interrupt(analysis.stack)
    return analysis.stack if below is None else below


def _first_name(row: Row) -> str:
    return row.pieces[0][0] if row.pieces else ""


def _notes_of_analysis(analysis: Analysis) -> Iterator[str]:
    yield _SUMS
    previous = analysis.row("Previous IRQ interference")
    if previous is not None and previous.length_ns:
        yield (
            "an interrupt before it delayed the timer by up to "
            f"{format_us(previous.length_ns)} µs"
        )
    if not analysis.of_thread:
        yield "rtla stopped at the interrupt: what the thread waited for is unknown"


# --- A late wake-up of timerlat from osnoise events, where no switch was recorded -----

_KINDS = ("thread_noise", "softirq_noise", "irq_noise", "nmi_noise")
"""What comes later nests over what comes before."""
_UNKNOWN_TIME = "no event of noise tells what ran"


def is_of_noise(window: Window, wakeup: TracedWakeup) -> bool:
    """Tell whether a wake-up is one that timerlat's own lines tell."""
    return any(
        event.name == "timerlat" and event.at_ns == wakeup.wake_ns
        for event in window.events
    )


@dataclass(frozen=True, slots=True)
class _Ran:
    begin_ns: int
    end_ns: int
    layer: int
    name: str


def explain_noise(window: Window, wakeup: TracedWakeup) -> Explanation:
    """Explain a wake-up of timerlat by its lines and the noise around it."""
    cpu = wakeup.cpu or 0
    events = [event for event in window.events if event.cpu == cpu]
    irq_ns = _interrupt_of(events, wakeup)
    ran = [one for one in map(_ran, events) if one is not None]
    segments = joined(
        [
            *_before(events, ran, wakeup, irq_ns),
            *_behind(events, ran, wakeup, irq_ns),
        ]
    )
    return Explanation(
        cpu=cpu,
        sequence=wakeup.sequence,
        latency_ns=wakeup.latency_ns,
        segments=segments,
        notes=tuple(_notes(window)),
    )


def _interrupt_of(events: Sequence[Event], wakeup: TracedWakeup) -> int:
    """Return when the interrupt of a wake-up came; its expiry, if no line says it."""
    lines = [
        event
        for event in events
        if event.name == "timerlat"
        and event.text("context") in ("irq", "0")
        and wakeup.expiry_ns <= event.at_ns <= wakeup.wake_ns
    ]
    if not lines:
        return wakeup.expiry_ns
    # The line is written later than what it says.
    late_ns = lines[-1].numbers.get("timer_latency", 0)
    return min(wakeup.expiry_ns + late_ns, lines[-1].at_ns)


def _ran(event: Event) -> _Ran | None:
    if event.name not in _KINDS:
        return None
    begin = event.numbers.get("start", event.at_ns)
    begin = begin if begin <= event.at_ns else event.at_ns
    if event.name == "softirq_noise":
        vector = event.numbers.get("vector", -1)
        known = 0 <= vector < len(SOFTIRQS)
        name = SOFTIRQS[vector] if known else f"softirq {vector}"
    elif event.name == "irq_noise":
        vector = event.numbers.get("vector", -1)
        name = f"{event.text('desc') or 'interrupt'} ({vector})"
    elif event.name == "nmi_noise":
        name = "NMI"
    else:
        name = event.text("comm") or f"thread {event.numbers.get('pid', -1)}"
    return _Ran(begin, event.at_ns, _KINDS.index(event.name), name)


def _before(
    events: Sequence[Event], ran: Sequence[_Ran], wakeup: TracedWakeup, irq_ns: int
) -> Iterator[Segment]:
    """Explain the time until the interrupt of the timer."""
    pieces = _cut(ran, wakeup.expiry_ns, irq_ns)
    threads = _innermost([one for one in ran if one.layer == 0], pieces)
    current, chain = _current_at(events, irq_ns), _stack_of(events, wakeup)
    both = zip(pieces, _innermost(ran, pieces), threads, strict=True)
    for (begin, end), one, thread in both:
        if one is not None and one.layer > 1 and one.end_ns <= irq_ns:
            cause, name = Cause.EARLIER_INTERRUPT, one.name
            yield _segment(wakeup, begin, end, Part.A, cause, name)
        else:
            name = current if thread is None else thread.name
            yield _delayed_by_noise(chain, wakeup, begin, end, name)


def _current_at(events: Sequence[Event], at_ns: int) -> str:
    """Return the task that the first event behind an instant names as current."""
    after = (event.comm for event in events if event.at_ns >= at_ns)
    return next(after, "") or "an unknown thread"


def _delayed_by_noise(
    chain: Sequence[str],
    wakeup: TracedWakeup,
    begin_ns: int,
    end_ns: int,
    thread: str,
) -> Segment:
    if chain:
        why = f"the interrupt came in {' < '.join(chain[:_SHOWN])}, in {thread}"
        off = chain[0].startswith(UNMASKING)
        holder = chain[1] if off and len(chain) > 1 else chain[0]
        cause, sure = Cause.INTERRUPTS_OFF, Confidence.INFERRED
        return _segment(wakeup, begin_ns, end_ns, Part.A, cause, holder, why, sure=sure)
    name = f"interrupts off in {thread}, or the hypervisor or hardware"
    return _segment(wakeup, begin_ns, end_ns, Part.A, Cause.UNKNOWN, name)


def _stack_of(events: Sequence[Event], wakeup: TracedWakeup) -> Sequence[str]:
    """Return what the timer's interrupt found, innermost first; or nothing."""
    stacks = (
        below_the_interrupt(event.text("stack").split(" < "))
        for event in events
        if event.name == "kernel_stack" and event.at_ns >= wakeup.expiry_ns
    )
    return next((stack for stack in stacks if stack), ())


def _behind(
    events: Sequence[Event], ran: Sequence[_Ran], wakeup: TracedWakeup, irq_ns: int
) -> Iterator[Segment]:
    """Explain the time from the interrupt of the timer to the thread."""
    pieces = _cut(ran, irq_ns, wakeup.wake_ns)
    for (begin, end), one in zip(pieces, _innermost(ran, pieces), strict=True):
        if one is None and end - begin > STRAIGHT_NS:
            part, cause, name = Part.D, Cause.UNKNOWN, _UNKNOWN_TIME
            sure, why = Confidence.GUESSED, f"for more than {STRAIGHT_NS // 1000} us"
        elif one is None:
            part, cause, name = Part.D, Cause.SCHEDULER, "to the thread"
            sure, why = Confidence.INFERRED, _UNKNOWN_TIME
        elif one.layer > 1:
            ours = one.begin_ns <= irq_ns < one.end_ns
            part, name, sure = Part.B, one.name, Confidence.SEEN
            cause = Cause.TIMER_INTERRUPT if ours else Cause.OTHER_INTERRUPT
            why = "irq_noise, or nmi_noise"
        elif one.layer == 1:
            part, cause, name = Part.C, Cause.SOFTIRQ, one.name
            sure, why = Confidence.SEEN, "softirq_noise"
        else:
            part, cause, name = Part.C, Cause.PREEMPTION_OFF, one.name
            sure = Confidence.INFERRED
            why = f"thread_noise: {one.name} kept the CPU behind the interrupt"
        yield _segment(wakeup, begin, end, part, cause, name, why, sure=sure)


def _cut(ran: Sequence[_Ran], begin_ns: int, end_ns: int) -> Sequence[tuple[int, int]]:
    """Return the pieces of a time: it is cut where something begins or ends."""
    cuts = {begin_ns, end_ns}
    for one in ran:
        cuts |= {at for at in (one.begin_ns, one.end_ns) if begin_ns < at < end_ns}
    return [*pairwise(sorted(cuts))]


def _innermost(
    ran: Sequence[_Ran], pieces: Sequence[tuple[int, int]]
) -> Iterator[_Ran | None]:
    """Yield the innermost thing that ran in each piece of a time; None if none did."""
    order = sorted(range(len(ran)), key=lambda at: ran[at].begin_ns, reverse=True)
    begun: list[tuple[int, int]] = []
    for begin, end in pieces:
        while order and ran[order[-1]].begin_ns <= begin:
            at = order.pop()
            heappush(begun, (-ran[at].layer, at))
        while begun and ran[begun[0][1]].end_ns < end:
            heappop(begun)
        yield ran[begun[0][1]] if begun else None


def _segment(
    wakeup: TracedWakeup,
    begin_ns: int,
    end_ns: int,
    part: Part,
    cause: Cause,
    name: str,
    *evidence: str,
    sure: Confidence = Confidence.SEEN,
) -> Segment:
    begin, end = begin_ns - wakeup.expiry_ns, end_ns - wakeup.expiry_ns
    sure = Confidence.GUESSED if cause is Cause.UNKNOWN else sure
    return Segment(part, begin, end, cause, name, evidence=evidence, confidence=sure)


def _notes(window: Window) -> Iterator[str]:
    yield (
        "from timerlat's own lines and events of osnoise: they have no priorities and "
        "no switches; record sched_switch and sched_waking, too"
    )
    missing = [kind for kind in _KINDS[:3] if kind not in window.known]
    if missing:
        yield f"the trace has no {' and no '.join(missing)} events"
