"""From events: why the timer's interrupt came late, and times without any event."""

from dataclasses import replace

import pytest

from fakes.events import (
    AWAKE,
    DUE,
    IDLE,
    IRQ,
    KNOWN,
    NICE_0,
    OTHER,
    asleep,
    event,
    explained,
    ran,
    told,
    woken,
)
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.model import Cause, Confidence, Explanation, Part, Segment
from rtscope.record.events.events import Event, Flag, Loss

BARE = MachineTraits(guest=False, preemptible=True, release=(6, 12))
GUEST = MachineTraits(guest=True, preemptible=True, release=(6, 12))
PREEMPTIRQ = KNOWN | {"irq_disable", "irq_enable"}
OFF = Flag.IRQS_OFF


def late(
    *events: Event,
    machine: MachineTraits = BARE,
    known: frozenset[str] = KNOWN,
    depth: int = 0,
) -> Explanation:
    """Explain an interrupt that comes 300 us late over an ordinary task."""
    return explained(
        [*asleep(), *events, *woken(300_000, depth=depth), ran(307_000)],
        late_ns=308_000,
        machine=machine,
        known=known,
    )


def first(found: Explanation) -> Segment:
    return found.segments[0]


# --- interrupts off, by events ----------------------------------------------------


def disabled(at_ns: int, caller: str = "f") -> Event:
    return event(at_ns, "irq_disable", flags=OFF, caller=caller)


def enabled(at_ns: int, caller: str = "g") -> Event:
    return event(at_ns, "irq_enable", caller=caller)


@pytest.mark.parametrize(
    ("events", "evidence"),
    [
        (
            [disabled(-10_000), enabled(299_000)],
            "irq_disable by f at -10.000 us, irq_enable by g at +299.000 us",
        ),
        (
            [disabled(0), enabled(150_000)],
            "irq_disable by f at +0.000 us, irq_enable by g at +150.000 us",
        ),
        ([disabled(150_000)], "irq_disable by f at +150.000 us"),
        ([disabled(10_000), disabled(20_000, "h")], "irq_disable by f at +10.000 us"),
        (
            [disabled(-20_000), enabled(-10_000), disabled(5_000, "h")],
            "irq_disable by h at +5.000 us",
        ),
        ([enabled(-10_000), disabled(5_000)], "irq_disable by f at +5.000 us"),
        ([disabled(5_000, "")], "irq_disable by an unknown function at +5.000 us"),
    ],
)
def test_who_had_interrupts_off_for_half_of_the_delay_is_the_cause(
    events: list[Event], evidence: str
) -> None:
    found = first(late(*events, known=PREEMPTIRQ))

    assert (found.cause, found.confidence) == (Cause.INTERRUPTS_OFF, Confidence.SEEN)
    assert found.evidence == (evidence,)
    assert found.name == evidence.removeprefix("irq_disable by ").partition(" at ")[0]


@pytest.mark.parametrize(
    "events",
    [
        [disabled(0), enabled(149_998)],
        [disabled(150_002)],
        [disabled(-20_000), enabled(-10_000)],
        [disabled(300_001)],
        [enabled(299_000)],
    ],
)
def test_interrupts_that_were_off_for_less_than_half_are_not_the_cause(
    events: list[Event],
) -> None:
    assert first(late(*events, known=PREEMPTIRQ)).cause is not Cause.INTERRUPTS_OFF


# --- by the stack that the interrupt found ----------------------------------------


def stack(*functions: str) -> Event:
    below = " < ".join(("hrtimer_interrupt", "asm_sysvec_x", *functions))
    return event(302_000, "kernel_stack", flags=IRQ, stack=below)


HOST = "in a guest the host may have made that time longer"


@pytest.mark.parametrize(
    ("functions", "callers"),
    [
        (("_raw_spin_unlock_irqrestore", "free", "exit"), ("free", "exit")),
        (("_raw_spin_unlock_irq", "free"), ("free",)),
        (("local_irq_enable",), ("local_irq_enable",)),
        (("arch_local_irq_restore", "free"), ("free",)),
    ],
)
def test_a_function_that_enables_interrupts_had_them_off_for_its_caller(
    functions: tuple[str, ...], callers: tuple[str, ...]
) -> None:
    found = first(late(stack(*functions)))

    assert (found.cause, found.confidence) == (
        Cause.INTERRUPTS_OFF,
        Confidence.INFERRED,
    )
    assert (found.name, found.callers) == (callers[0], callers)
    assert found.evidence == (
        f"the interrupt came when {functions[0]} enabled interrupts, in load-100",
    )


def test_in_a_guest_the_host_may_have_a_part_in_it() -> None:
    unlock = stack("_raw_spin_unlock_irq", "free")

    assert first(late(unlock, machine=GUEST)).evidence[1:] == (HOST,)


def test_an_interrupt_of_user_space_was_not_kept_away_by_the_kernel() -> None:
    found = first(late(stack()))

    assert (found.cause, found.name) == (
        Cause.HARDWARE,
        "while load ran in user space",
    )
    assert found.evidence == (
        "the interrupt came in user space, where interrupts are always on",
    )


def test_a_stack_in_other_code_is_shown_and_decides_nothing() -> None:
    found = first(late(stack("f1", "f2", "f3", "f4", "f5")))

    assert (found.cause, found.name) == (
        Cause.UNKNOWN,
        "interrupts off in load, or hardware",
    )
    assert found.evidence[0] == "the interrupt found f1 < f2 < f3 < f4"


def test_a_stack_that_is_missing_where_there_are_others_is_told() -> None:
    told = "stacks were recorded, but none in the interrupt that came then"

    assert told in first(late(known=KNOWN | {"kernel_stack"})).evidence
    assert told not in first(late()).evidence


# --- by events that show them on --------------------------------------------------


@pytest.mark.parametrize(
    ("at_ns", "flags", "on"),
    [
        (150_000, Flag(0), True),
        (149_999, Flag(0), False),
        (299_999, Flag(0), True),
        (200_000, Flag.SOFTIRQ, False),  # then a softirq has the CPU
        (200_000, OFF, False),
        (200_000, None, False),
    ],
)
def test_an_event_with_interrupts_on_leaves_hardware_alone(
    at_ns: int, flags: Flag | None, on: bool
) -> None:
    found = late(replace(event(at_ns, "sys_enter"), flags=flags))
    one = first(found)

    assert (one.cause is Cause.HARDWARE) is (on or flags is Flag.SOFTIRQ)
    if on:
        assert one.confidence is Confidence.INFERRED
        assert one.name == "while load ran"
        assert one.evidence[0] == (
            f"interrupts were on at {at_ns / 1000:+,.3f} us (sys_enter), and none came"
        )


def test_the_last_events_of_the_task_are_shown() -> None:
    before = [event(-50_000 + n, name) for n, name in enumerate("abcd")]
    others = event(-10_000, "x", pid=OTHER)
    found = first(late(*before, event(200_000, "sys_enter")))

    assert found.evidence[1] == "last events of load-100: b, c, d"
    assert others.name not in found.evidence[1]


# --- where nothing tells ----------------------------------------------------------

NO_EVENT = "no event on this CPU in this time"
NO_PREEMPTIRQ = "the trace has no preemptirq events (irq_disable, irq_enable)"
NONE_LONG = "no irq_disable event lasted that long"
A_GUEST = "; this is a guest: the host can take a CPU away at any time"
DEPTH = "load-100 had preemption off when the interrupt came (depth 2)"


@pytest.mark.parametrize(
    ("machine", "known", "depth", "cause", "name", "evidence"),
    [
        (
            *(BARE, KNOWN, 0, Cause.UNKNOWN),
            *("interrupts off in load, or hardware", (NO_EVENT, NO_PREEMPTIRQ)),
        ),
        (
            *(BARE, KNOWN, 2, Cause.UNKNOWN),
            *("interrupts off in load, or hardware", (NO_EVENT, DEPTH, NO_PREEMPTIRQ)),
        ),
        (
            *(GUEST, KNOWN, 2, Cause.UNKNOWN),
            "interrupts off in load, or the hypervisor",
            (NO_EVENT, DEPTH, NO_PREEMPTIRQ),
        ),
        (
            *(GUEST, KNOWN, 0, Cause.HARDWARE, "while load ran"),
            (NO_EVENT, f"guessed: {NO_PREEMPTIRQ}{A_GUEST}"),
        ),
        (
            *(BARE, PREEMPTIRQ, 0, Cause.HARDWARE, "while load ran"),
            (NO_EVENT, f"guessed: {NONE_LONG}"),
        ),
        (
            *(GUEST, PREEMPTIRQ, 2, Cause.HARDWARE, "while load ran"),
            (NO_EVENT, f"guessed: {NONE_LONG}{A_GUEST}"),
        ),
    ],
)
def test_without_any_event_the_cause_is_a_guess_at_most(
    machine: MachineTraits,
    known: frozenset[str],
    depth: int,
    cause: Cause,
    name: str,
    evidence: tuple[str, ...],
) -> None:
    found = first(late(machine=machine, known=known, depth=depth))

    assert (found.part, found.cause, found.name) == (Part.A, cause, name)
    assert found.evidence == evidence
    assert found.confidence is Confidence.GUESSED


def test_a_loss_before_the_interrupt_has_no_cause() -> None:
    loss = Loss(0, DUE - 10_000, DUE + 200_000, 5, "the ring was full")
    found = explained(
        [
            *asleep(),
            *(event(-10_000, "x"), event(200_000, "y"), *woken(300_000)),
            ran(307_000),
        ],
        late_ns=308_000,
        losses=[loss],
    )

    assert told(found)[0] == (
        *(Part.A, 0, 200_000, Cause.UNKNOWN),
        "5 events are missing: the ring was full",
    )


# --- earlier interrupts and idle --------------------------------------------------


def test_an_earlier_interrupt_is_named_with_what_it_did() -> None:
    found = late(
        event(-3_000, "irq_handler_entry", flags=IRQ, irq=5, name="nvme"),
        event(50_000, "hrtimer_expire_entry", flags=IRQ, function="poll"),
        event(250_000, "hrtimer_expire_exit", flags=IRQ),
        event(290_000, "irq_handler_exit", flags=IRQ, irq=5),
    )

    assert told(found)[:3] == [
        (Part.A, 0, 50_000, Cause.EARLIER_INTERRUPT, "nvme (irq 5)"),
        (Part.A, 50_000, 200_000, Cause.EARLIER_INTERRUPT, "nvme (irq 5): poll"),
        (Part.A, 250_000, 40_000, Cause.EARLIER_INTERRUPT, "nvme (irq 5)"),
    ]


def test_a_callback_of_a_softirq_keeps_no_interrupt_away() -> None:
    soft = Flag.SOFTIRQ
    found = late(
        event(-3_000, "softirq_entry", flags=soft, vec=1),
        event(-2_000, "timer_expire_entry", flags=soft, function="poll"),
        event(290_000, "timer_expire_exit", flags=soft),
        event(291_000, "softirq_exit", flags=soft, vec=1),
    )

    assert Cause.EARLIER_INTERRUPT not in {s.cause for s in found.segments}
    assert told(found)[0] == (
        *(Part.A, 0, 300_000, Cause.UNKNOWN),
        "interrupts off in load, or hardware",
    )


@pytest.mark.parametrize(
    ("state", "machine", "name", "evidence"),
    [
        (
            *(2, BARE, "idle state 2"),
            ("the CPU was in idle state 2 when the timer was due",),
        ),
        (
            *(2, GUEST, "idle state 2"),
            (
                "the CPU was in idle state 2 when the timer was due",
                "in a guest the host must run the CPU again first, which looks the "
                "same",
            ),
        ),
        (
            *(None, BARE, "idle"),
            (
                "the CPU was in idle when the timer was due",
                "the idle state is unknown: there is no cpu_idle event",
            ),
        ),
    ],
)
def test_leaving_an_idle_state_is_inferred(
    state: int | None, machine: MachineTraits, name: str, evidence: tuple[str, ...]
) -> None:
    entered = [] if state is None else [event(-170_000, "cpu_idle", pid=0, state=state)]
    found = explained(
        [
            *(*asleep(IDLE), *entered, *woken(120_000, pid=0, comm="swapper/0")),
            event(126_000, "cpu_idle", pid=0, state=AWAKE),
            ran(128_000, after=IDLE),
        ],
        late_ns=129_000,
        machine=machine,
    )
    one = first(found)

    assert (one.cause, one.name, one.confidence) == (
        *(Cause.IDLE_EXIT, name),
        Confidence.INFERRED,
    )
    assert one.evidence == evidence


# --- times without an event -------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "cause", "name", "guess"),
    [
        (BARE, Cause.UNKNOWN, "a lock or hardware, during the timer interrupt", ()),
        (
            *(GUEST, Cause.HARDWARE, "during the timer interrupt"),
            ("guessed: this is a guest: the host can take a CPU away",),
        ),
    ],
)
def test_a_pause_in_the_timers_interrupt_is_cut_out_of_it(
    machine: MachineTraits, cause: Cause, name: str, guess: tuple[str, ...]
) -> None:
    way = woken(1_000)
    paused = [replace(e, at_ns=e.at_ns + 900_000) for e in way[3:]]
    found = explained(
        [*asleep(), *way[:3], *paused, ran(907_000)], late_ns=908_000, machine=machine
    )

    pieces = [s for s in found.segments if s.part is Part.B]
    assert [(s.begin_ns, s.end_ns, s.cause) for s in pieces] == [
        (1_000, 2_500, Cause.TIMER_INTERRUPT),
        (2_500, 903_500, cause),
        (903_500, 906_000, Cause.TIMER_INTERRUPT),
    ]
    assert pieces[1].name == name
    assert pieces[1].evidence == (
        "901.000 us without an event, from sched_waking to sched_wakeup",
        *guess,
    )
    assert pieces[1].confidence is Confidence.GUESSED


@pytest.mark.parametrize(("pause_ns", "cut"), [(50_000, False), (50_001, True)])
def test_a_pause_of_more_than_50_us_is_cut_out(pause_ns: int, cut: bool) -> None:
    way = woken(1_000)
    moved = [replace(e, at_ns=e.at_ns + pause_ns - 1_000) for e in way[3:]]
    found = explained(
        [*asleep(), *way[:3], *moved, ran(200_000)], late_ns=201_000, machine=BARE
    )
    names = {s.name for s in found.segments if s.part is Part.B}

    assert ("a lock or hardware, during the timer interrupt" in names) is cut


def test_a_long_way_back_is_cut_between_its_events() -> None:
    def mark(at_ns: int) -> Event:
        return event(at_ns, "sys_exit", pid=77, comm="rtscope/0")

    marks = [mark(20_000), mark(30_000), mark(200_000)]
    found = explained(
        [*asleep(), *woken(1_000), ran(7_000), *marks], late_ns=300_000, machine=BARE
    )

    assert [(s.begin_ns, s.end_ns, s.cause) for s in found.segments[3:]] == [
        (7_000, 30_000, Cause.RETURN),
        (30_000, 300_000, Cause.UNKNOWN),
    ]
    assert found.segments[-1].evidence[0] == (
        "170.000 us without an event, from sys_exit to sys_exit"
    )


def test_a_way_back_without_any_event_is_cut_as_a_whole() -> None:
    found = explained(
        [*asleep(), *woken(1_000), ran(7_000)], late_ns=100_000, machine=BARE
    )

    assert found.segments[-1].evidence == (
        "93.000 us without an event, from sched_switch to its end",
    )
    assert found.segments[-1].name == "a lock or hardware, during the return path"


LOW = (OTHER, "low", NICE_0)


def test_interrupts_off_are_told_of_the_task_that_ran_then() -> None:
    way = woken(300_000, pid=OTHER, comm="low")
    found = explained(
        [*asleep(LOW), *way, ran(307_000, after=LOW)], late_ns=308_000, machine=BARE
    )

    assert first(found).name == "interrupts off in low, or hardware"
