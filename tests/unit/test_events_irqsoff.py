"""From events: who had interrupts or preemption off, and where nothing tells."""

from dataclasses import replace

import pytest

from fakes.events import IRQ, KNOWN, asleep, event, explained, of, ran, woken
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.model import Cause, Confidence, Part
from rtscope.explain.words import caveats_of, sentence
from rtscope.record.events.events import Flag

BARE = MachineTraits(guest=False, preemptible=True, release=(6, 12))
GUEST = MachineTraits(guest=True, preemptible=True, release=(6, 12))


def test_preemption_that_was_off_when_the_interrupt_came_is_seen() -> None:
    found = explained(
        [*asleep(), *woken(1_000, depth=1), ran(400_000)], late_ns=401_000
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.PREEMPTION_OFF
    assert found.dominant.part is Part.C
    assert found.dominant.confidence is Confidence.SEEN
    assert found.dominant.evidence == (
        "load-100 had preemption off when local_timer interrupted it at +1.000 us "
        "(depth 1)",
    )


def test_where_nothing_tells_preemption_from_hardware_no_cause_is_claimed() -> None:
    found = explained([*asleep(), *woken(1_000), ran(400_000)], late_ns=401_000)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.UNKNOWN
    assert found.attributed_share < 0.05
    assert any("is unknown" in caveat for caveat in caveats_of(found))


def test_events_of_interrupts_going_off_and_on_name_the_function() -> None:
    found = explained(
        [
            *asleep(),
            event(-10_000, "irq_disable", flags=Flag.IRQS_OFF, caller="free_pages"),
            event(299_000, "irq_enable", caller="free_pages"),
            *woken(300_000),
            ran(307_000),
        ],
        late_ns=308_000,
        known=KNOWN | {"irq_disable"},
    )

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (
        Cause.INTERRUPTS_OFF,
        "free_pages",
    )
    assert found.dominant.confidence is Confidence.SEEN


def test_a_stack_from_user_space_leaves_only_hardware_or_the_hypervisor() -> None:
    stack = event(
        302_000,
        "kernel_stack",
        flags=IRQ,
        stack="hrtimer_wakeup < hrtimer_interrupt < asm_sysvec_apic_timer_interrupt",
    )
    found = explained(
        [*asleep(), *woken(300_000), stack, ran(307_000)], late_ns=308_000
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.HARDWARE
    assert found.dominant.confidence is Confidence.INFERRED


def test_a_stack_that_switches_interrupts_on_names_who_had_them_off() -> None:
    stack = event(
        302_000,
        "kernel_stack",
        flags=IRQ,
        stack="hrtimer_interrupt < asm_sysvec_apic_timer_interrupt < "
        "_raw_spin_unlock_irqrestore < free_pages < exit_mmap",
    )
    found = explained(
        [*asleep(), *woken(300_000), stack, ran(307_000)], late_ns=308_000
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.INTERRUPTS_OFF
    assert found.dominant.name == "free_pages"
    assert found.dominant.callers == ("free_pages", "exit_mmap")


@pytest.mark.parametrize(
    ("machine", "depth", "cause"),
    [
        (GUEST, 0, Cause.HARDWARE),
        (GUEST, 1, Cause.UNKNOWN),  # it held a lock, so interrupts may have been off
        (BARE, 0, Cause.UNKNOWN),
    ],
)
def test_a_late_interrupt_without_any_event_is_at_most_a_guess(
    machine: MachineTraits, depth: int, cause: Cause
) -> None:
    found = explained(
        [*asleep(), *woken(300_000, depth=depth), ran(307_000)],
        late_ns=308_000,
        machine=machine,
    )

    assert found.segments[0].cause is cause
    assert found.segments[0].confidence is Confidence.GUESSED
    assert found.attributed_share < 0.05
    assert ("Probably hardware" in sentence(found)) == (cause is Cause.HARDWARE)


@pytest.mark.parametrize(
    ("machine", "cause"), [(GUEST, Cause.HARDWARE), (BARE, Cause.UNKNOWN)]
)
def test_a_pause_inside_the_timers_interrupt_is_not_the_interrupts_own(
    machine: MachineTraits, cause: Cause
) -> None:
    late = [replace(e, at_ns=e.at_ns + 900_000) for e in woken(1_000)[3:]]
    found = explained(
        [*asleep(), *woken(1_000)[:3], *late, ran(907_000)],
        late_ns=908_000,
        machine=machine,
    )

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.duration_ns) == (cause, 901_000)
    assert found.dominant.confidence is Confidence.GUESSED
    assert "from sched_waking to sched_wakeup" in found.dominant.evidence[0]
    assert of(found, Cause.TIMER_INTERRUPT) == 4_000
