"""From events: interrupts, timers and softirqs in the thread's way are named."""

from dataclasses import replace

from fakes.events import ASKED, IRQ, asleep, event, explained, of, ran, told, woken
from rtscope.explain.model import Cause, Part
from rtscope.record.events.events import Flag


def test_a_softirq_is_named_by_its_number() -> None:
    found = explained(
        [
            *asleep(),
            *woken(1_000),
            event(7_000, "softirq_entry", flags=Flag.SOFTIRQ | ASKED, vec=3),
            event(307_000, "softirq_exit", flags=Flag.SOFTIRQ | ASKED, vec=3),
            ran(310_000),
        ],
        late_ns=311_000,
    )

    assert (Part.C, 7_000, 300_000, Cause.SOFTIRQ, "NET_RX") in told(found)


def test_a_storm_of_timers_is_one_cause_with_the_number_of_timers() -> None:
    storm = [
        event(1_000 + at, name, flags=IRQ, function="posix_timer_fn", hrtimer=9)
        for n in range(40)
        for at, name in (
            (500 + 5_000 * n, "hrtimer_expire_entry"),
            (4_000 + 5_000 * n, "hrtimer_expire_exit"),
        )
    ]
    found = explained(
        [*asleep(), *woken(1_000, before=storm), ran(210_000)], late_ns=211_000
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.TIMER_CALLBACK
    assert found.dominant.name == "posix_timer_fn"
    assert found.dominant.duration_ns == 198_500
    assert found.dominant.evidence == ("40 expired one after another",)


def test_a_timer_due_inside_an_interrupt_waits_for_what_expires_before_it() -> None:
    """It expires in the interrupt that has begun already: nothing is part A."""
    first = event(-1_000, "hrtimer_expire_entry", flags=IRQ, function="a_long_one")
    last = event(300_000, "hrtimer_expire_exit", flags=IRQ)
    found = explained(
        [
            *asleep(),
            *woken(-2_000, before=[first, last]),
            ran(310_000),
        ],
        late_ns=311_000,
    )

    assert found.parts_ns[Part.A] == 0
    assert of(found, Cause.TIMER_CALLBACK) == 300_000


def test_an_earlier_interrupt_keeps_the_timers_away() -> None:
    found = explained(
        [
            *asleep(),
            event(-3_000, "irq_handler_entry", flags=IRQ, irq=5, name="nvme0q1"),
            event(250_000, "irq_handler_exit", flags=IRQ, irq=5, name="nvme0q1"),
            *woken(251_000),
            ran(258_000),
        ],
        late_ns=259_000,
    )

    assert told(found)[0] == (
        *(Part.A, 0, 250_000),
        *(Cause.EARLIER_INTERRUPT, "nvme0q1 (irq 5)"),
    )


def test_where_the_timer_has_an_interrupt_of_its_own_that_is_the_timers() -> None:
    """As on arm64 and RISC-V, where no vectors are told apart."""
    way = woken(1_000)
    timer = {"entry": "irq_handler_entry", "exit": "irq_handler_exit"}
    way[0], way[-1] = (
        replace(e, name=timer[key], fields={"irq": 5, "name": "riscv-timer"})
        for e, key in ((way[0], "entry"), (way[-1], "exit"))
    )
    found = explained([*asleep(), *way, ran(7_000)], late_ns=8_000)

    assert told(found)[1] == (
        *(Part.B, 1_000, 5_000),
        *(Cause.TIMER_INTERRUPT, "riscv-timer (irq 5)"),
    )
