"""Events of the kernel's trace around a wake-up, made by hand."""

from collections.abc import Iterable, Sequence

from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import MachineTraits, State, TracedWakeup
from rtscope.explain.events.window import WakeupSelector, choose, window_around
from rtscope.explain.model import Cause, Explanation, Part
from rtscope.record.events.events import Event, Flag, Loss, Window
from rtscope.record.events.text import text_trace

DUE = 1_000_000
"""When the timer is to expire; the window begins at 0."""
THREAD, LOAD, OTHER = 77, 100, 200
FIFO_99, FIFO_80, FIFO_50, NICE_0 = 0, 19, 49, 120
IRQ = Flag.IRQS_OFF | Flag.HARDIRQ
ASKED = Flag.NEED_RESCHED
AWAKE = 0xFFFFFFFF
KNOWN = frozenset(
    {
        *("sched_switch", "sched_waking", "sched_wakeup", "local_timer_entry"),
        *("hrtimer_expire_entry", "cpu_idle", "softirq_entry", "irq_handler_entry"),
    }
)

Told = tuple[Part, int, int, Cause, str]
"""Of a stretch: part, begin since the expiry, duration, cause and name."""


def event(
    at_ns: int,
    name: str,
    /,
    *,
    pid: int = LOAD,
    comm: str = "load",
    flags: Flag = Flag(0),  # noqa: B008 -- a Flag is a number
    depth: int = 0,
    cpu: int = 0,
    **fields: int | str,
) -> Event:
    """Return an event; times are since the expiry."""
    return Event(DUE + at_ns, cpu, name, pid, comm, flags, depth, fields)


def switch(
    at_ns: int,
    prev: tuple[int, str, int],
    following: tuple[int, str, int],
    *,
    state: str = "R",
    cpu: int = 0,
) -> Event:
    """Return a sched_switch; a task is its pid, its name and its priority."""
    return event(
        at_ns,
        "sched_switch",
        pid=prev[0],
        comm=prev[1],
        flags=Flag.IRQS_OFF,
        depth=2,
        cpu=cpu,
        prev_pid=prev[0],
        prev_comm=prev[1],
        prev_prio=prev[2],
        prev_state=state,
        next_pid=following[0],
        next_comm=following[1],
        next_prio=following[2],
    )


def thread(priority: int = FIFO_99) -> tuple[int, str, int]:
    """Return the measuring thread."""
    return THREAD, "rtscope/0", priority


LOADING = (LOAD, "load", NICE_0)
IDLE = (0, "swapper/0", NICE_0)


def asleep(
    task: tuple[int, str, int] = LOADING, *, priority: int = FIFO_99
) -> list[Event]:
    """Return the thread's last steps before it sleeps, and who runs then."""
    return [
        event(
            -190_000,
            "hrtimer_start",
            pid=THREAD,
            comm="rtscope/0",
            hrtimer=1,
            expires=DUE,
            softexpires=DUE,
            function="hrtimer_wakeup",
        ),
        switch(-180_000, thread(priority), task, state="S"),
    ]


def woken(
    at_ns: int,
    *,
    pid: int = LOAD,
    comm: str = "load",
    depth: int = 0,
    priority: int = FIFO_99,
    before: Sequence[Event] = (),
) -> list[Event]:
    """Return the timer's interrupt that wakes the thread: 5 us from entry to exit."""

    def step(after: int, name: str, flags: Flag, **fields: int) -> Event:
        return event(
            at_ns + after,
            name,
            pid=pid,
            comm=comm,
            flags=flags,
            depth=depth,
            **fields,
        )

    who: dict[str, int | str] = {
        "pid": THREAD,
        "comm": "rtscope/0",
        "prio": priority,
        "target_cpu": 0,
    }
    late = max((e.at_ns - DUE - at_ns for e in before), default=0)
    return [
        step(0, "local_timer_entry", IRQ, vector=236),
        *before,
        event(
            at_ns + late + 1_000,
            "hrtimer_expire_entry",
            pid=pid,
            comm=comm,
            flags=IRQ,
            depth=depth,
            function="hrtimer_wakeup",
        ),
        Event(
            DUE + at_ns + late + 1_500, 0, "sched_waking", pid, comm, IRQ, depth, who
        ),
        Event(
            at_ns=DUE + at_ns + late + 2_500,
            cpu=0,
            name="sched_wakeup",
            pid=pid,
            comm=comm,
            flags=IRQ | ASKED,
            preempt_depth=depth,
            fields=who,
        ),
        step(late + 3_000, "hrtimer_expire_exit", IRQ | ASKED, hrtimer=1),
        step(late + 5_000, "local_timer_exit", IRQ | ASKED, vector=236),
    ]


def window(
    events: Iterable[Event],
    *,
    losses: Sequence[Loss] = (),
    known: frozenset[str] = KNOWN,
) -> Window:
    """Return a window of 1 ms before the expiry, to 100 ms after it."""
    ordered = sorted(events, key=lambda one: one.at_ns)
    return Window(
        begin_ns=0,
        end_ns=DUE + 100_000_000,
        events=tuple(ordered),
        losses=tuple(losses),
        known=known,
        first_ns={0: -1, 1: -1},
        last_ns={0: DUE + 100_000_000, 1: DUE + 100_000_000},
    )


def explained(
    events: Iterable[Event],
    *,
    late_ns: int,
    losses: Sequence[Loss] = (),
    known: frozenset[str] = KNOWN,
    machine: MachineTraits | None = None,
    state: State = State.SLEEPING,
    to_the_end: bool = False,
) -> Explanation:
    """Explain a wake-up of the thread on CPU 0 that was so late; or its whole cycle."""
    wakeup = TracedWakeup(
        pid=THREAD,
        comm="rtscope/0",
        cpu=0,
        expiry_ns=DUE,
        wake_ns=DUE + late_ns,
        sequence=1,
        asleep=state,
        to_the_end=to_the_end,
    )
    return explain_events(
        window(events, losses=losses, known=known),
        wakeup,
        machine=machine
        or MachineTraits(guest=False, preemptible=True, release=(6, 12)),
    )


def of(explanation: Explanation, cause: Cause) -> int:
    """Return how long a cause is told for, in ns."""
    return sum(s.duration_ns for s in explanation.segments if s.cause is cause)


def told(explanation: Explanation) -> list[Told]:
    """Return the stretches in order."""
    return [
        (s.part, s.begin_ns, s.duration_ns, s.cause, s.name)
        for s in explanation.segments
    ]


def ran(at_ns: int, *, after: tuple[int, str, int] = LOADING) -> Event:
    """The thread gets the CPU."""
    return switch(at_ns, after, thread())


# --- a trace as text --------------------------------------------------------------

Who = tuple[str, int, int]
"""Of a task: name, PID and priority at that time."""


def text_line(
    us: int, by: Who, body: str, *, cpu: int = 1, flags: str = "d..2."
) -> str:
    """Return a line of a trace at a time since 500 s; `by` is the current task."""
    return f"  {by[0]}-{by[1]} [{cpu:03}] {flags} 500.{us:06}: {body}"


def text_switch(us: int, prev: Who, to: Who, *, state: str = "S", cpu: int = 1) -> str:
    """Return a switch between two tasks."""
    body = (
        f"sched_switch: prev_comm={prev[0]} prev_pid={prev[1]} prev_prio={prev[2]} "
        f"prev_state={state} ==> next_comm={to[0]} next_pid={to[1]} next_prio={to[2]}"
    )
    return text_line(us, prev, body, cpu=cpu)


def text_waking(us: int, by: Who, who: Who, *, cpu: int = 1) -> str:
    """Return the two events of a wake-up, 2 us apart."""
    told = f"comm={who[0]} pid={who[1]} prio={who[2]} target_cpu={cpu:03}"
    return "\n".join(
        text_line(us + 2 * after, by, f"{name}: {told}", cpu=cpu, flags="d.h4.")
        for after, name in enumerate(("sched_waking", "sched_wakeup"))
    )


def text_lent(us: int, by: Who, who: Who, newprio: int, *, cpu: int = 1) -> str:
    """Return a change of a priority by inheritance, from that of `who`."""
    told = f"comm={who[0]} pid={who[1]} oldprio={who[2]} newprio={newprio}"
    return text_line(us, by, f"sched_pi_setprio: {told}", cpu=cpu)


def explained_text(
    *lines: str, thread: str = "ctl", at_us: int | None = None
) -> Explanation:
    """Explain the worst wake-up of a thread in a trace, or the one at a time."""
    trace = text_trace(memoryview("\n".join(lines).encode()), name="trace.txt")
    at_ns = None if at_us is None else 500_000_000_000 + 1_000 * at_us
    wakeup = choose(trace, WakeupSelector(thread=thread, at_ns=at_ns)).wakeup
    around, wakeup = window_around(trace, wakeup)
    return explain_events(around, wakeup, machine=MachineTraits())
