"""Sections from preemptirq events, on lists written by hand; times in ns."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rtscope.explain.bound import Section
from rtscope.explain.events.sections import (
    NEEDED,
    SWITCH,
    bounds_of_events,
    why_no_sections,
)
from rtscope.record.events.events import Event, Flag
from rtscope.record.explanation import CpuBound

NONE = Flag(0)
OURS = 77
OTHER = 5


def made(
    at_ns: int,
    name: str,
    pid: int = OTHER,
    *,
    flags: Flag | None = NONE,
    fields: Mapping[str, int | str] | None = None,
) -> Event:
    return Event(at_ns, 0, name, pid, "", flags, 0, fields or {})


def at(
    ns: int,
    name: str,
    caller: str = "",
    parent: str = "",
    *,
    pid: int = OTHER,
    flags: Flag | None = NONE,
) -> Event:
    fields: dict[str, int | str] = {"caller": f"{caller}+0x1c/0x80", "parent": parent}
    return made(ns, name, pid, flags=flags, fields=fields)


def switch(ns: int, next_pid: int, *, pid: int = OTHER) -> Event:
    return made(ns, SWITCH, pid, fields={"prev_pid": pid, "next_pid": next_pid})


STARTED = made(0, "irq_enable")


def bound_of(*events: Event) -> CpuBound:
    (bound,) = bounds_of_events([STARTED, *events], measuring={0: OURS})
    return bound


def longest(*events: Event) -> dict[Section, int]:
    return {Section(one.section): one.duration_ns for one in bound_of(*events).sections}


def scheduling(begin: int) -> list[Event]:
    """PSD of 90, its tail of 60."""
    return [
        at(begin, "preempt_disable", "schedule"),
        at(begin + 30, "irq_disable", "__schedule"),
        switch(begin + 50, OURS),
        at(begin + 80, "irq_enable", "finish_task_switch", pid=OURS),
        at(begin + 90, "preempt_enable", "schedule", pid=OURS),
    ]


def interrupt(begin: int, end: int) -> list[Event]:
    return [
        at(begin, "irq_disable", "irqentry_enter"),
        made(begin + 2, "local_timer_entry", fields={"vector": 236}),
        made(end, "local_timer_exit", fields={"vector": 236}),
        at(end + 5, "irq_enable", "irqentry_exit"),
    ]


def test_a_section_lasts_until_both_are_enabled_again() -> None:
    found = bound_of(
        at(100, "preempt_disable", "a_lock", "its_user"),
        at(150, "irq_disable"),
        at(400, "preempt_enable"),
        at(450, "irq_enable"),
    ).sections
    assert [(f.section, f.duration_ns) for f in found] == [(Section.POID, 350)]
    assert found[0].callers == ("a_lock", "its_user")


def test_the_longest_of_a_kind_stays() -> None:
    first = [at(100, "irq_disable"), at(180, "irq_enable")]
    second = [at(200, "irq_disable"), at(230, "irq_enable")]
    assert longest(*first, *second) == {Section.POID: 80}


def test_the_schedulers_own_sections_are_told_by_its_functions() -> None:
    assert longest(*scheduling(1000)) == {Section.PSD: 90, Section.ST: 60}


def test_an_interrupt_is_taken_off_the_section_that_it_lies_in() -> None:
    events = [
        at(100, "preempt_disable"),
        *interrupt(200, 300),
        at(500, "preempt_enable"),
    ]
    found = bound_of(*events)
    # 400 whole; the interrupt from interrupts off at 200 to its exit at 300
    assert [one.duration_ns for one in found.sections] == [300]
    (timer,) = found.interrupts
    assert (timer.vector, timer.arrivals, timer.longest_ns) == (
        "local_timer 236",
        1,
        100,
    )


def test_an_interrupt_alone_is_no_section_but_its_way_out_is() -> None:
    assert longest(*interrupt(200, 300)) == {Section.POID: 5}


def test_what_is_due_and_not_forbidden_counts_from_the_enabling_on() -> None:
    events = [
        at(100, "preempt_disable"),
        at(140, "preempt_enable", flags=Flag.NEED_RESCHED),
        *scheduling(200),
    ]
    assert longest(*events)[Section.PAIE] == 60


def test_what_is_no_more_due_was_never_waited_for() -> None:
    due = [
        at(100, "preempt_disable"),
        at(140, "preempt_enable", flags=Flag.NEED_RESCHED),
    ]
    undone = [at(150, "irq_disable"), at(160, "irq_enable")]
    assert Section.PAIE not in longest(*due, *undone, *scheduling(200))


def test_the_way_back_lasts_until_the_measuring_thread_sleeps() -> None:
    sleeps = at(1400, "preempt_disable", "schedule", pid=OURS)
    assert longest(*scheduling(1000), sleeps)[Section.BACK] == 310


def test_of_the_idle_task_only_its_call_of_the_scheduler_counts() -> None:
    events = [
        at(100, "irq_disable", pid=0),
        at(900_000, "irq_enable", pid=0),
        at(900_100, "irq_disable", "__schedule", pid=0),
        switch(900_130, OURS, pid=0),
        at(900_200, "irq_enable", "finish_task_switch", pid=OURS),
        at(900_210, "preempt_enable", "schedule", pid=OURS),
    ]
    assert longest(*events) == {Section.PSD: 110, Section.ST: 110}


def test_a_switch_to_idle_ends_where_interrupts_are_enabled() -> None:
    events = [
        at(100, "preempt_disable", "schedule"),
        at(130, "irq_disable", "__schedule"),
        switch(150, 0),
        at(170, "irq_enable", "finish_task_switch", pid=0),
    ]
    assert longest(*events) == {Section.PSD: 70, Section.ST: 40}


def test_a_bound_is_composed_of_all_of_them() -> None:
    events = [
        at(100, "preempt_disable"),
        at(140, "preempt_enable", flags=Flag.NEED_RESCHED),
        *scheduling(200),
        at(400, "preempt_disable", "schedule", pid=OURS),
        *scheduling(10_000)[1:],
        *interrupt(20_000, 20_100),
    ]
    found = bound_of(*events)
    parts = {one.section: one.duration_ns for one in found.sections}
    assert found.bound_ns == (
        max(parts[Section.POID], parts[Section.ST])
        + parts[Section.PAIE]
        + parts[Section.PSD]
        + parts[Section.BACK]
        + 100
    )
    assert found.complete


def test_nothing_counts_before_interrupts_were_seen_enabled() -> None:
    early = [made(1, "irq_disable"), made(9_000, "preempt_enable")]
    (bound,) = bounds_of_events([*early, STARTED], measuring={0: OURS})
    assert bound.sections == ()
    assert not bound.complete


def test_losses_and_missing_flags_leave_a_bound_incomplete() -> None:
    events = [STARTED, *scheduling(100)]
    (lossy,) = bounds_of_events(events, measuring={0: OURS}, not_recorded=["20 events"])
    blind = [made(300, "irq_disable", OURS), made(310, "irq_enable", OURS, flags=None)]
    (unknown,) = bounds_of_events([*events, *blind], measuring={0: OURS})
    assert (lossy.not_recorded, lossy.complete) == (("20 events",), False)
    assert unknown.not_recorded == (
        "whether a switch was due, because the trace has no flags",
    )


def test_other_cpus_are_not_followed() -> None:
    events = [
        STARTED,
        replace(made(100, "irq_disable"), cpu=1),
        replace(made(900, "irq_enable"), cpu=1),
    ]
    (bound,) = bounds_of_events(events, measuring={0: OURS})
    assert bound.sections == ()


@pytest.mark.parametrize("missing", [*NEEDED, SWITCH])
def test_a_trace_without_these_events_is_refused_with_the_reason(missing: str) -> None:
    known = {*NEEDED, SWITCH} - {missing}
    assert f"has no {missing}," in why_no_sections(known)
    assert why_no_sections({*NEEDED, SWITCH, "irq_handler_entry"}) == ""
