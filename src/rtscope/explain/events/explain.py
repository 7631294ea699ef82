"""
From the events around a wake-up to an explanation. Pure.

The thread's own way (asleep, stopped, ready, running) is cut at its changes; each piece
is explained by what the CPU did that mattered then. Where events were lost, or are not
recorded on this machine, the piece stays without a cause, and says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtscope.explain.events.context import Scene, notes, priority_of
from rtscope.explain.events.gaps import pauses_apart
from rtscope.explain.events.irqdelay import Late, late_stretches
from rtscope.explain.events.scheduling import waiting_stretches
from rtscope.explain.events.spans import Doing, Frame, Span
from rtscope.explain.events.stacks import stack_under
from rtscope.explain.events.threadstates import Leg, Machine, State, Wakeup, legs_of
from rtscope.explain.events.waiting import Waiting
from rtscope.explain.model import Cause, Confidence, Explanation, Part, Stretch, joined
from rtscope.ftrace.events import Event, Window

_SLACK_NS = 1000


def explain_events(window: Window, wakeup: Wakeup, *, machine: Machine) -> Explanation:
    """Explain a wake-up from the events around it."""
    legs = legs_of(window, wakeup)
    woken = next(
        (
            leg.end
            for leg in legs
            if leg.state in (State.SLEEPING, State.STOPPED) and leg.end is not None
        ),
        None,
    )
    scene = Scene(
        window, wakeup, machine, {}, legs, woken, priority_of(window, wakeup.pid)
    )
    stretches = [stretch for leg in legs for stretch in _of_leg(scene, leg)]
    apart = pauses_apart(
        stretches,
        scene.events_of(scene.cpu),
        due_ns=wakeup.expiry_ns,
        machine=machine,
    )
    return Explanation(
        cpu=scene.cpu,
        sequence=wakeup.sequence,
        latency_ns=wakeup.latency_ns,
        stretches=joined(list(apart)),
        notes=tuple(notes(scene)),
    )


def _of_leg(scene: Scene, leg: Leg) -> Iterator[Stretch]:
    if leg.state is State.SLEEPING:
        yield from _asleep(scene, leg)
    elif leg.state is State.RUNNABLE:
        yield from _ready(scene, leg)
    elif leg.state is State.RUNNING:
        yield from _running(scene, leg)
    elif leg.state is State.STOPPED:
        yield _stopped(scene, leg)
    elif leg.state is State.BLOCKED:
        yield _blocked(scene, leg)
    else:
        yield _plain(
            scene, leg, Part.A, Cause.UNKNOWN, "no event of the thread in the trace"
        )


def _plain(
    scene: Scene,
    leg: Leg,
    part: Part,
    cause: Cause,
    name: str,
    *,
    evidence: tuple[str, ...] = (),
    confidence: Confidence = Confidence.SEEN,
) -> Stretch:
    due = scene.wakeup.expiry_ns
    if cause is Cause.UNKNOWN:
        confidence = Confidence.GUESSED
    return Stretch(
        part,
        leg.begin_ns - due,
        leg.end_ns - due,
        cause,
        name,
        evidence=evidence,
        confidence=confidence,
    )


def _stopped(scene: Scene, leg: Leg) -> Stretch:
    evidence = ["it was switched out in state T"]
    if leg.end is not None:
        evidence.append(f"woken again by {_waker(leg.end)}")
    part = Part.A if scene.woken is leg.end else Part.D
    return _plain(
        scene,
        leg,
        part,
        Cause.STOPPED,
        "SIGSTOP, or a debugger",
        evidence=tuple(evidence),
    )


def _blocked(scene: Scene, leg: Leg) -> Stretch:
    faults = _faults_before(scene, leg.begin_ns)
    if faults:
        return _plain(
            scene,
            leg,
            Part.E,
            Cause.PAGE_FAULT,
            scene.wakeup.comm,
            evidence=(f"{faults[-1].name}, and then it waited in state D",),
            confidence=Confidence.INFERRED,
        )
    return _plain(
        scene, leg, Part.E, Cause.UNKNOWN, "it waited in the kernel (state D)"
    )


def _asleep(scene: Scene, leg: Leg) -> Iterator[Stretch]:
    """Explain a sleep from the expiry to what woke the thread."""
    if leg.end is None:
        yield _plain(scene, leg, Part.A, Cause.UNKNOWN, "nothing seen that woke it")
        return
    if leg.end is not scene.woken:
        yield _plain(
            scene, leg, Part.E, Cause.UNKNOWN, "it slept again before its own code"
        )
        return
    frames = scene.frames_at(leg.end)
    interrupt = next((f for f in frames if f.doing is Doing.INTERRUPT), None)
    softirq = next((f for f in frames if f.doing is Doing.SOFTIRQ), None)
    if interrupt is not None:
        callback = next((f for f in frames if f.doing is Doing.CALLBACK), None)
        yield from _by_interrupt(scene, leg, interrupt, callback)
    elif softirq is not None:
        yield from _by_softirq(scene, leg, f"softirq {softirq.name}")
    elif _is_timer_thread(leg.end):
        yield from _by_softirq(scene, leg, leg.end.comm)
    elif leg.end.flags is None and not scene.has_interrupts:
        name = "the trace tells of no interrupts, and so not what woke it"
        yield _plain(scene, leg, Part.A, Cause.UNKNOWN, name)
    else:
        name = f"it was woken by {_waker(leg.end)}, not by a timer"
        yield _plain(scene, leg, Part.A, Cause.UNKNOWN, name)


def _by_interrupt(
    scene: Scene, leg: Leg, interrupt: Frame, callback: Frame | None
) -> Iterator[Stretch]:
    """Explain the time before the interrupt, then that in it until it woke."""
    assert leg.end is not None
    cpu, due = leg.end.cpu, scene.wakeup.expiry_ns
    entered = interrupt.entered_ns
    entered = leg.begin_ns if entered is None else max(leg.begin_ns, entered)
    slack_end = min(entered, _slack_end(scene, leg))
    if slack_end - leg.begin_ns < _SLACK_NS:
        slack_end = leg.begin_ns  # a real-time thread has none, and 1 ns can be asked
    if slack_end > leg.begin_ns:
        yield _plain(
            scene,
            replace(leg, end_ns=slack_end),
            Part.A,
            Cause.TIMER_SLACK,
            "it may expire later than asked",
            evidence=(
                "hrtimer_start: expires is later than softexpires, for the thread was "
                "not real-time when it went to sleep",
            ),
        )
    late = Late(
        expiry_ns=due,
        cpu=cpu,
        events=scene.events_of(cpu),
        known=scene.window.known,
        machine=scene.machine,
        depth=scene.depth_at(cpu, interrupt.entered_ns),
    )
    begin = max(leg.begin_ns, slack_end)
    yield from late_stretches(scene.spans_between(cpu, begin, entered), late)
    own = scene.spans_between(cpu, entered, leg.end_ns)
    waiting = _waiting(scene, leg, cpu, (interrupt, callback))
    yield from waiting_stretches(own, waiting)


def _by_softirq(scene: Scene, leg: Leg, name: str) -> Iterator[Stretch]:
    yield _plain(
        scene,
        leg,
        Part.A,
        Cause.LATE_TIMER,
        name,
        evidence=(
            "the timer expired in a softirq: the thread was not real-time when it "
            "went to sleep",
        ),
    )


def _ready(scene: Scene, leg: Leg) -> Iterator[Stretch]:
    """Explain why a thread that could run did not."""
    if leg.cpu is None:
        yield _plain(scene, leg, Part.D, Cause.UNKNOWN, "nobody knows on which CPU")
        return
    frames: tuple[Frame, ...] = ()
    if leg.began is not None and leg.began.cpu == leg.cpu:
        frames = scene.frames_at(leg.began)
    interrupt = next((f for f in frames if f.doing is Doing.INTERRUPT), None)
    callback = next((f for f in reversed(frames) if f.doing is Doing.CALLBACK), None)
    spans = scene.spans_between(leg.cpu, leg.begin_ns, leg.end_ns)
    waiting = _waiting(scene, leg, leg.cpu, (interrupt, callback))
    yield from waiting_stretches(spans, waiting)


def _waiting(
    scene: Scene, leg: Leg, cpu: int, inside: tuple[Frame | None, Frame | None]
) -> Waiting:
    """Return what judges a wait; `inside` are the interrupt and callback it woke in."""
    interrupt, callback = inside
    events = scene.events_of(cpu)
    since, queued = leg.begin_ns, leg.begin_ns
    if leg.began is not None and leg.began.name == "sched_switch":
        queued = since - 1  # it was preempted: that switch is the scheduler's choice
    else:
        queued = next(
            (
                e.at_ns
                for e in events
                if e.name == "sched_wakeup"
                and e.number("pid", -1) == scene.wakeup.pid
                and since <= e.at_ns <= leg.end_ns
            ),
            since,
        )
    return Waiting(
        expiry_ns=scene.wakeup.expiry_ns,
        cpu=cpu,
        pid=scene.wakeup.pid,
        priority=scene.priority,
        since_ns=since,
        queued_ns=queued,
        events=events,
        own_interrupt_ns=None if interrupt is None else interrupt.entered_ns,
        own_callback_ns=None if callback is None else callback.entered_ns,
        stack=_stack(events, interrupt) or (),
        interrupted_pid=_interrupted(events, interrupt),
        machine=scene.machine,
    )


def _stack(events: Sequence[Event], interrupt: Frame | None) -> list[str] | None:
    if interrupt is None or interrupt.entered_ns is None:
        return None
    return stack_under(events, interrupt.entered_ns)


def _interrupted(events: Sequence[Event], interrupt: Frame | None) -> int:
    if interrupt is None or interrupt.entered_ns is None:
        return -1
    return next((e.pid for e in events if e.at_ns == interrupt.entered_ns), -1)


def _running(scene: Scene, leg: Leg) -> Iterator[Stretch]:
    """Explain the way back: interrupts and page faults may still come."""
    before = leg.end is not None and leg is scene.legs[0]
    if before or leg.cpu is None:
        name = f"{scene.wakeup.comm} itself ran, and was not yet asleep"
        part = Part.A if before else Part.E
        yield _plain(scene, leg, part, Cause.RETURN, name)
        return
    due = scene.wakeup.expiry_ns
    faults = [
        e
        for e in scene.events_of(leg.cpu)
        if e.name.startswith("page_fault_")
        and e.pid == scene.wakeup.pid
        and leg.begin_ns <= e.at_ns < leg.end_ns
    ]
    for span in scene.spans_between(leg.cpu, leg.begin_ns, leg.end_ns):
        begin, end = span.begin_ns - due, span.end_ns - due
        if span.doing in (Doing.INTERRUPT, Doing.CALLBACK):
            yield Stretch(Part.B, begin, end, Cause.OTHER_INTERRUPT, span.name)
        elif span.doing is Doing.SOFTIRQ:
            yield Stretch(Part.E, begin, end, Cause.SOFTIRQ, span.name)
        elif span.doing is Doing.LOST:
            yield _plain(
                scene,
                replace(leg, begin_ns=span.begin_ns, end_ns=span.end_ns),
                Part.E,
                Cause.UNKNOWN,
                "events were lost, or the trace ends",
            )
        else:
            yield from _own_code(scene, span, faults)


def _own_code(scene: Scene, span: Span, faults: Sequence[Event]) -> Iterator[Stretch]:
    due, comm = scene.wakeup.expiry_ns, scene.wakeup.comm
    first = next((e.at_ns for e in faults if e.at_ns < span.end_ns), None)
    begin = span.begin_ns
    if first is not None:
        at = max(begin, first)
        if at > begin:
            yield Stretch(Part.E, begin - due, at - due, Cause.RETURN, comm)
        inside = [e for e in faults if e.at_ns < span.end_ns]
        yield Stretch(
            Part.E,
            at - due,
            span.end_ns - due,
            Cause.PAGE_FAULT,
            comm,
            evidence=tuple(
                f"{e.name} at +{(e.at_ns - due) / 1000:,.3f} us, address "
                f"{_hexadecimal(e)}"
                for e in inside[:4]
            ),
            confidence=Confidence.INFERRED,
        )
        return
    yield Stretch(
        Part.E,
        begin - due,
        span.end_ns - due,
        Cause.RETURN,
        comm,
        confidence=Confidence.INFERRED,
    )


def _hexadecimal(event: Event) -> str:
    value = event.fields.get("address", "")
    return f"{value:#x}" if isinstance(value, int) else value


def _slack_end(scene: Scene, leg: Leg) -> int:
    """Return when the timer had to expire: later than asked for by its slack."""
    for event in reversed(scene.window.events):
        if (
            event.name == "hrtimer_start"
            and event.pid == scene.wakeup.pid
            and event.at_ns <= leg.begin_ns
        ):
            soft, hard = event.number("softexpires"), event.number("expires")
            if abs(soft - scene.wakeup.expiry_ns) <= scene.window.resolution_ns:
                return leg.begin_ns + max(0, hard - soft)
            return leg.begin_ns
    return leg.begin_ns


def _faults_before(scene: Scene, at_ns: int) -> list[Event]:
    return [
        e
        for e in scene.window.events
        if e.name.startswith("page_fault_")
        and e.pid == scene.wakeup.pid
        and scene.wakeup.expiry_ns <= e.at_ns <= at_ns
    ]


def _is_timer_thread(event: Event) -> bool:
    """Tell whether a thread woke it that PREEMPT_RT runs softirqs in."""
    return event.comm.startswith(("ktimers/", "ksoftirqd/"))


def _waker(event: Event) -> str:
    return f"{event.comm or '<...>'}-{event.pid}" if event.pid else "an interrupt"
