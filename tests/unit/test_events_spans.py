"""From events: what a CPU did at each moment, by name, and where that is unknown."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.events import AWAKE, DUE, IDLE, IRQ, LOAD, LOADING, OTHER, event, switch
from fakes.events import window as window_of
from rtscope.explain.events.histories import histories_of
from rtscope.explain.events.spans import (
    SOFTIRQS,
    Doing,
    Frame,
    Span,
    Task,
    is_entry,
    is_exit,
    spans_of,
)
from rtscope.record.events.events import Event, Flag, Loss, Window

SOFT = Flag.SOFTIRQ
MAKE = (OTHER, "make", 110)
NOT_RECORDED = "not recorded"
SWITCH_MISSING = "another task ran without a sched_switch event"
EXIT_MISSING = "an interrupt ended without an event"
END = 100_000_000

Seen = tuple[int, int, str, str]
"""Begin and end since the expiry, what was done, and its name."""


def spans(window: Window, cpu: int) -> tuple[Span, ...]:
    return spans_of(window, cpu, histories_of(window))


def seen(window: Window, cpu: int = 0) -> list[Seen]:
    return [
        (s.begin_ns - DUE, s.end_ns - DUE, s.doing.value, s.name)
        for s in spans(window, cpu)
    ]


def of(at_ns: int, name: str, flags: Flag, /, **fields: int | str) -> Event:
    return replace(event(at_ns, name, flags=flags), fields=fields)


def inner(events: Sequence[Event]) -> list[Seen]:
    """Return what a CPU did between the first of these events and the last."""
    first, last = events[0].at_ns - DUE, events[-1].at_ns - DUE
    return [one for one in seen(window_of(events)) if first <= one[0] < last]


def test_interrupts_softirqs_and_callbacks_nest_over_the_task() -> None:
    events = [
        event(0, "local_timer_entry", flags=IRQ, vector=236),
        event(10, "hrtimer_expire_entry", flags=IRQ, function="tick"),
        event(20, "irq_handler_entry", flags=IRQ, irq=5, name="nvme"),
        event(30, "irq_handler_exit", flags=IRQ, irq=5),
        event(40, "hrtimer_expire_exit", flags=IRQ),
        event(50, "local_timer_exit", flags=IRQ, vector=236),
        event(60, "softirq_entry", flags=SOFT, vec=1),
        event(70, "timer_expire_entry", flags=SOFT, function="poll/0x0"),
        event(80, "timer_expire_exit", flags=SOFT),
        event(90, "softirq_exit", flags=SOFT, vec=1),
    ]

    assert seen(window_of(events)) == [
        (-DUE, 0, "task", "load"),
        (0, 10, "interrupt", "local_timer"),
        (10, 20, "callback", "tick"),
        (20, 30, "interrupt", "nvme (irq 5)"),
        (30, 40, "callback", "tick"),
        (40, 50, "interrupt", "local_timer"),
        (50, 60, "task", "load"),
        (60, 70, "softirq", "TIMER"),
        (70, 80, "callback", "poll"),
        (80, 90, "softirq", "TIMER"),
        (90, END, "task", "load"),
    ]
    nested = spans(window_of(events), 0)[3]
    assert [(f.doing, f.name, f.entered_ns) for f in nested.frames] == [
        (Doing.INTERRUPT, "local_timer", DUE),
        (Doing.CALLBACK, "tick", DUE + 10),
        (Doing.INTERRUPT, "nvme (irq 5)", DUE + 20),
    ]
    assert nested.interrupt == nested.frames[0]
    assert nested.task == Task(LOAD, "load")


def test_an_interrupt_that_ends_ends_what_it_holds_and_no_more() -> None:
    events = [
        event(0, "softirq_entry", flags=SOFT, vec=3),
        event(10, "local_timer_entry", flags=IRQ, vector=236),
        event(20, "hrtimer_expire_entry", flags=IRQ, function="tick"),
        event(30, "local_timer_exit", flags=IRQ, vector=236),
        event(40, "local_timer_exit", flags=SOFT, vector=236),
        event(50, "softirq_exit", flags=SOFT, vec=3),
        event(60, "cpu_frequency"),
    ]

    assert inner(events) == [
        (0, 10, "softirq", "NET_RX"),
        (10, 20, "interrupt", "local_timer"),
        (20, 30, "callback", "tick"),
        (30, 50, "softirq", "NET_RX"),
        (50, END, "task", "load"),
    ]


# include/linux/interrupt.h
KINDS = (
    *("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED"),
    *("HRTIMER", "RCU"),
)


@pytest.mark.parametrize(
    ("number", "name"),
    [*enumerate(KINDS), (10, "softirq 10"), (-1, "softirq -1"), (-2, "softirq -2")],
)
def test_a_softirq_has_the_kernels_name_or_its_number(number: int, name: str) -> None:
    events = [
        event(0, "softirq_entry", flags=SOFT, vec=number),
        event(10, "softirq_exit", flags=SOFT, vec=number),
    ]

    assert inner(events) == [(0, 10, "softirq", name)]
    assert seen(window_of(events[1:]))[0] == (-DUE, 10, "softirq", name)
    assert len(SOFTIRQS) == len(KINDS)


@pytest.mark.parametrize(
    ("kind", "fields", "name"),
    [
        ("irq_handler", {"irq": 5, "name": "eth0"}, "eth0 (irq 5)"),
        ("irq_handler", {"irq": 5}, "irq 5"),
        ("ipi", {"reason": "Rescheduling interrupts"}, "Rescheduling interrupts"),
        ("ipi", {}, "IPI"),
        ("reschedule", {"vector": 253}, "reschedule"),
        ("local_timer", {"vector": 236}, "local_timer"),
    ],
)
def test_an_interrupt_is_named_by_its_device_its_reason_or_its_vector(
    kind: str, fields: dict[str, int | str], name: str
) -> None:
    entry = of(0, f"{kind}_entry", IRQ, **fields)
    end = of(10, f"{kind}_exit", IRQ, **fields)

    assert is_entry(entry)
    assert not is_exit(entry)
    assert is_exit(end)
    assert not is_entry(end)
    assert inner([entry, end]) == [(0, 10, "interrupt", name)]
    # A trace that begins inside it knows its name from its end.
    assert seen(window_of([end]))[:2] == [
        (-DUE, 10, "interrupt", name),
        (10, END, "task", "load"),
    ]
    assert spans(window_of([end]), 0)[0].frames[0].entered_ns is None


@pytest.mark.parametrize("name", ["sys_entry", "sys_exit", "vector_entry_x", "entry"])
def test_what_has_no_vector_is_no_interrupt(name: str) -> None:
    assert not is_entry(event(0, name))
    assert not is_exit(event(0, name))


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("hrtimer_expire", {"function": "tick"}, "tick"),
        ("hrtimer_expire", {"function": "tick/0x0"}, "tick"),
        ("timer_expire", {"function": "poll"}, "poll"),
        ("csd_function", {"func": "flush"}, "flush"),
        ("csd_function", {}, NOT_RECORDED),
    ],
)
def test_a_callback_is_named_by_its_function(
    name: str, fields: dict[str, str], told: str
) -> None:
    events = [
        event(0, "local_timer_entry", flags=IRQ, vector=236),
        of(10, f"{name}_entry", IRQ, **fields),
        event(20, f"{name}_exit", flags=IRQ),
        event(30, "local_timer_exit", flags=IRQ, vector=236),
    ]

    assert inner(events) == [
        (0, 10, "interrupt", "local_timer"),
        (10, 20, "callback", told),
        (20, 30, "interrupt", "local_timer"),
    ]


def test_what_a_task_calls_itself_is_no_callback() -> None:
    events = [
        event(0, "csd_function_entry", func="flush"),
        event(10, "csd_function_exit"),
        event(20, "cpu_frequency"),
    ]

    assert seen(window_of(events)) == [(-DUE, END, "task", "load")]


# --- idle and tasks -----------------------------------------------------------------


def idle(at_ns: int, state: int) -> Event:
    return event(at_ns, "cpu_idle", pid=0, comm="swapper/0", state=state)


def test_idle_has_its_state_until_it_is_left() -> None:
    events = [
        switch(0, LOADING, IDLE),
        idle(10, 2),
        idle(20, AWAKE),
        idle(30, 0),
        idle(40, AWAKE),
        switch(50, IDLE, LOADING),
    ]

    assert seen(window_of(events)) == [
        (-DUE, 0, "task", "load"),
        (0, 10, "idle", "idle"),
        (10, 20, "idle", "idle state 2"),
        (20, 30, "idle", "idle"),
        (30, 40, "idle", "idle state 0"),
        (40, 50, "idle", "idle"),
        (50, END, "task", "load"),
    ]


def test_a_cpu_that_is_woken_first_of_all_was_in_an_unknown_idle_state() -> None:
    assert seen(window_of([idle(10, AWAKE)])) == [(-DUE, END, "idle", "idle")]


def test_before_a_switch_the_task_that_it_names_ran() -> None:
    """Whatever stands before the line: it may have been cut."""
    first = replace(switch(0, MAKE, LOADING), pid=-1, comm="<...>")

    assert seen(window_of([first])) == [
        (-DUE, 0, "task", "make"),
        (0, END, "task", "load"),
    ]


def test_a_state_of_idle_ends_with_the_switch_to_a_task() -> None:
    events = [
        idle(0, 3),
        switch(10, IDLE, LOADING),
        switch(20, LOADING, IDLE),
        idle(30, AWAKE),
    ]

    assert inner(events)[:3] == [
        (0, 10, "idle", "idle state 3"),
        (10, 20, "task", "load"),
        (20, END, "idle", "idle"),
    ]


def test_a_task_that_is_switched_away_in_a_softirq_goes_on_with_it() -> None:
    """As PREEMPT_RT does."""
    events = [
        event(0, "softirq_entry", flags=SOFT, vec=3),
        switch(10, LOADING, MAKE),
        switch(20, MAKE, LOADING),
        event(30, "softirq_exit", flags=SOFT, vec=3),
        switch(40, LOADING, MAKE),
    ]
    # A task that is in a softirq has the flag when it is switched away.
    events[1] = replace(events[1], flags=SOFT)

    assert inner(events) == [
        (0, 10, "softirq", "NET_RX"),
        (10, 20, "task", "make"),
        (20, 30, "softirq", "NET_RX"),
        (30, 40, "task", "load"),
    ]


# --- flags ------------------------------------------------------------------------


def test_flags_show_an_interrupt_that_has_no_event() -> None:
    events = [
        event(0, "sched_stat_runtime"),
        event(10, "sched_waking", flags=IRQ),
        event(20, "sched_wakeup", flags=IRQ),
        event(30, "sched_stat_runtime"),
    ]

    assert seen(window_of(events)) == [
        (-DUE, 10, "task", "load"),
        (10, 20, "interrupt", NOT_RECORDED),
        # Its end is unknown: it is not taken for longer than its last event.
        (20, END, "task", "load"),
    ]


def test_a_trace_that_begins_in_an_interrupt_has_one_without_an_entry() -> None:
    events = [event(10, "sched_waking", flags=IRQ), event(20, "sched_wakeup")]
    first = spans(window_of(events), 0)[0]

    assert seen(window_of(events))[0] == (-DUE, 10, "interrupt", NOT_RECORDED)
    assert first.frames == (Frame(Doing.INTERRUPT, NOT_RECORDED, None),)


@pytest.mark.parametrize("flags", [None, IRQ | Flag.NMI, Flag.NMI])
def test_no_flags_and_those_of_an_nmi_show_nothing(flags: Flag | None) -> None:
    events = [
        event(0, "softirq_entry", flags=SOFT, vec=3),
        replace(event(10, "x"), flags=flags),
        event(20, "softirq_exit", flags=SOFT, vec=3),
    ]

    assert inner(events) == [(0, 20, "softirq", "NET_RX")]


@pytest.mark.parametrize(
    ("flags", "goes_on"),
    [
        (Flag(0), False),
        (Flag.IRQS_OFF, False),
        (SOFT, True),
        (Flag.HARDIRQ, True),
        (SOFT | Flag.HARDIRQ, True),
    ],
)
def test_flags_show_that_a_softirq_is_over(flags: Flag, goes_on: bool) -> None:
    events = [
        event(0, "softirq_entry", flags=SOFT, vec=3),
        event(10, "x", flags=flags),
        event(20, "y", flags=flags),
    ]
    (first, *after) = inner(events)

    assert first[2:] == ("softirq", "NET_RX")
    assert (first[1] > 10 or after[0][2] == "interrupt") is goes_on


def test_an_interrupt_without_an_end_is_unknown_after_its_last_event() -> None:
    events = [
        event(0, "local_timer_entry", flags=IRQ, vector=236),
        event(10, "sched_waking", flags=IRQ),
        event(50, "cpu_frequency"),
    ]
    lost = next(s for s in spans(window_of(events), 0) if s.doing is Doing.LOST)

    assert inner(events) == [
        (0, 10, "interrupt", "local_timer"),
        (10, 50, "lost", ""),
    ]
    assert lost.loss == Loss(0, DUE + 10, DUE + 50, None, EXIT_MISSING)


def test_a_switch_without_an_event_is_unknown_time() -> None:
    events = [
        event(0, "cpu_frequency"),
        event(10, "cpu_frequency", pid=OTHER, comm="make"),
        event(20, "cpu_frequency", pid=-1),
        event(30, "cpu_frequency", pid=OTHER, comm="make"),
    ]
    lost = next(s for s in spans(window_of(events), 0) if s.doing is Doing.LOST)

    assert seen(window_of(events)) == [
        (-DUE, 0, "task", "load"),
        (0, 10, "lost", ""),
        (10, END, "task", "make"),
    ]
    assert lost.loss == Loss(0, DUE, DUE + 10, None, SWITCH_MISSING)
    assert lost.task == Task(-1, "")


# --- losses -----------------------------------------------------------------------

PLAIN = [event(0, "cpu_frequency"), event(100, "cpu_frequency")]


def loss(after: int, before: int, cpu: int = 0) -> Loss:
    return Loss(cpu, DUE + after, DUE + before, 7, "the ring was full")


def test_a_loss_is_unknown_time_and_what_follows_is_known() -> None:
    found = spans(window_of(PLAIN, losses=[loss(0, 100)]), 0)

    assert [s.doing for s in found] == [Doing.TASK, Doing.LOST, Doing.TASK]
    assert found[1] == replace(found[1], begin_ns=DUE, end_ns=DUE + 100)
    assert found[1].loss == loss(0, 100)


def test_a_loss_of_another_cpu_changes_nothing() -> None:
    assert seen(window_of(PLAIN, losses=[loss(0, 100, cpu=1)])) == [
        (-DUE, END, "task", "load")
    ]


def test_what_a_loss_hides_is_forgotten_but_softirqs_that_wait() -> None:
    events = [
        event(0, "softirq_entry", flags=SOFT, vec=3),
        replace(switch(10, LOADING, MAKE), flags=SOFT),
        event(20, "local_timer_entry", pid=OTHER, comm="make", flags=IRQ, vector=236),
        event(30, "cpu_frequency", pid=OTHER, comm="make"),
        switch(40, MAKE, LOADING),
        event(50, "softirq_exit", flags=SOFT, vec=3),
    ]
    window = window_of(events, losses=[loss(20, 30)])

    assert [one for one in seen(window) if one[0] >= 10] == [
        (10, 20, "task", "make"),
        (20, 30, "lost", ""),
        (30, 40, "task", "make"),
        (40, 50, "softirq", "NET_RX"),
        (50, END, "task", "load"),
    ]


@pytest.mark.parametrize(
    ("first_ns", "losses", "known"),
    [
        (DUE - 1, [], True),
        (DUE, [], False),
        (DUE + 1, [], False),
        (-1, [loss(-50, 0)], False),
        (DUE, [loss(0, 0)], False),
        (-1, [loss(0, 0)], True),
        (-1, [loss(-50, -1)], True),
    ],
)
def test_before_the_first_event_all_is_known_if_the_trace_was_on_by_then(
    first_ns: int, losses: list[Loss], known: bool
) -> None:
    window = replace(window_of(PLAIN, losses=losses), first_ns={0: first_ns})
    first = spans(window, 0)[0]

    assert (first.doing is Doing.TASK) is known
    assert first.begin_ns == window.begin_ns
    if not known:
        assert first.end_ns == DUE
        assert first.loss == (losses[0] if losses else None)


@pytest.mark.parametrize(
    ("last_ns", "known"), [(END - 1, False), (END, True), (END + 1, True)]
)
def test_after_the_last_event_all_is_known_if_the_trace_goes_on(
    last_ns: int, known: bool
) -> None:
    window = replace(window_of(PLAIN), last_ns={0: DUE + last_ns})
    last = spans(window, 0)[-1]

    assert (last.doing is Doing.TASK) is known
    assert last.end_ns == DUE + END


def test_a_cpu_without_events_is_unknown_all_the_time() -> None:
    losses = [loss(5, 9, cpu=1), loss(2, 3), loss(4, 5)]

    assert seen(window_of([])) == [(-DUE, END, "lost", "")]
    assert spans(window_of([], losses=losses), 0)[0].loss == loss(2, 3)
    assert spans(window_of([]), 0)[0].loss is None


def test_events_of_other_cpus_say_nothing() -> None:
    events = [*PLAIN, switch(50, MAKE, IDLE, cpu=1)]

    assert seen(window_of(events)) == [(-DUE, END, "task", "load")]
    assert seen(window_of(events), cpu=1) == [
        (-DUE, 50, "task", "make"),
        (50, END, "idle", "idle"),
    ]
