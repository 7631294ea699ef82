"""From events: callbacks that follow each other, and stacks under an interrupt."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.events import DUE, IRQ, LOAD, event
from rtscope.explain.events.eventlists import EventList
from rtscope.explain.events.spans import (
    Doing,
    Frame,
    Span,
    Task,
    callbacks_together,
    stack_under,
)
from rtscope.record.events.events import Event

Seen = tuple[int, int, str, str]
"""Begin and end, name, and of how many it was made."""

TICK = Frame(Doing.INTERRUPT, "local_timer", 0)


def callback(begin: int, name: str = "tick", *, outer: Frame = TICK) -> Span:
    """A callback of 10 ns."""
    frames = (outer, Frame(Doing.CALLBACK, name, begin))
    task = Task(LOAD, "load")
    return Span(begin, begin + 10, Doing.CALLBACK, name, task, frames)


def between(begin: int, *, outer: Frame = TICK) -> Span:
    """The interrupt itself, for 5 ns."""
    task = Task(LOAD, "load")
    return Span(begin, begin + 5, outer.doing, outer.name, task, (outer,))


def together(spans: Sequence[Span], waking_ns: int | None = None) -> list[Seen]:
    return [
        (s.begin_ns, s.end_ns, s.name, str(s.count))
        for s in callbacks_together(spans, waking_ns=waking_ns)
    ]


STORM = [
    *(between(0), callback(5), between(15), callback(20)),
    *(between(30), callback(35), between(45)),
]


def test_callbacks_of_one_function_one_after_another_are_one() -> None:
    assert together(STORM) == [
        (0, 5, "local_timer", "1"),
        (5, 45, "tick", "3"),
        (45, 50, "local_timer", "1"),
    ]
    assert together([callback(0), callback(10)]) == [(0, 20, "tick", "2")]
    assert together([]) == []


@pytest.mark.parametrize(
    ("waking_ns", "wanted"),
    [
        (5, [(0, 5, "1"), (5, 15, "1"), (15, 20, "1"), (20, 45, "2"), (45, 50, "1")]),
        (20, [(0, 5, "1"), (5, 15, "1"), (15, 20, "1"), (20, 30, "1")]),
        (35, [(0, 5, "1"), (5, 30, "2"), (30, 35, "1"), (35, 45, "1"), (45, 50, "1")]),
        (6, [(0, 5, "1"), (5, 45, "3"), (45, 50, "1")]),
    ],
)
def test_the_callback_of_the_threads_own_timer_stays_alone(
    waking_ns: int, wanted: list[tuple[int, int, str]]
) -> None:
    found = [(begin, end, count) for begin, end, _, count in together(STORM, waking_ns)]

    assert found[: len(wanted)] == wanted


def test_callbacks_of_other_functions_or_interrupts_stay_apart() -> None:
    other = Frame(Doing.INTERRUPT, "other", 0)
    alone = [
        [callback(0), callback(10, "poll")],
        [callback(0), between(10), callback(15, "poll")],
        [callback(0), between(10, outer=other), callback(15)],
        [callback(0), between(10), callback(15, outer=other)],
        [callback(0), between(10)],
        [between(0), between(5)],
    ]

    for spans in alone:
        assert callbacks_together(spans) == spans


def test_a_callback_is_known_by_the_time_it_was_entered() -> None:
    one = callback(5)

    assert one.is_callback(5)
    assert not one.is_callback(0)  # its interrupt was
    assert not one.is_callback(None)
    assert not between(0).is_callback(0)
    unknown = replace(one, frames=(TICK, Frame(Doing.CALLBACK, "tick", None)))
    assert not unknown.is_callback(None)


def test_what_lies_in_a_time_is_cut_at_its_ends() -> None:
    one = callback(10)

    assert one.clipped(12, 18) == replace(one, begin_ns=12, end_ns=18)
    assert one.clipped(0, 15) == replace(one, end_ns=15)
    assert one.clipped(15, 99) == replace(one, begin_ns=15)
    assert between(0).interrupt == TICK
    assert replace(one, frames=one.frames[1:]).interrupt is None


def stack(at_ns: int, *functions: str) -> Event:
    return event(at_ns, "kernel_stack", flags=IRQ, stack=" < ".join(functions))


ENTRIES = (
    *("asm_sysvec_apic_timer_interrupt", "asm_common_interrupt"),
    *("asm_spurious_interrupt", "el1h_64_irq", "el0t_64_irq", "el1_interrupt"),
    *("__irq_svc", "__irq_usr", "handle_exception", "ret_from_exception", "do_irq"),
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_stack_under_an_interrupt_is_what_it_interrupted(entry: str) -> None:
    events = [stack(5, "hrtimer_wakeup", entry, "free_pages", "exit_mmap", "")]

    assert stack_under(EventList(events), DUE + 5) == ["free_pages", "exit_mmap"]
    assert stack_under(EventList([stack(5, "tick", entry)]), DUE) == []


@pytest.mark.parametrize(
    "function", ["do_irq_work", "handle_exceptions", "asm_exc_page_fault", "xdo_irq"]
)
def test_a_stack_without_an_entry_tells_nothing(function: str) -> None:
    assert stack_under(EventList([stack(5, "tick", function)]), DUE) is None


def test_entries_one_below_the_other_are_one() -> None:
    nested = stack(5, "a", "el1_interrupt", "el1h_64_irq", "b", "el0t_64_irq", "c")

    assert stack_under(EventList([nested]), DUE) == ["b", "el0t_64_irq", "c"]


def test_the_stack_is_that_of_the_interrupt_which_was_entered_then() -> None:
    before = stack(4, "asm_sysvec_x", "early")
    ended = event(6, "local_timer_exit", flags=IRQ, vector=236)
    after = stack(7, "asm_sysvec_x", "late")
    woken = event(5, "sched_waking", flags=IRQ)

    assert stack_under(EventList([before, woken, ended, after]), DUE + 5) is None
    assert stack_under(EventList([before, ended, after]), DUE + 4) == ["early"]
    assert stack_under(EventList([before, ended, after]), DUE + 7) == ["late"]
    assert stack_under(EventList([woken, after]), DUE + 5) == ["late"]
    assert stack_under(EventList([woken]), DUE + 5) is None


@pytest.mark.parametrize(
    ("task", "label", "numbered"),
    [
        (Task(0, "swapper/3"), "idle", "swapper/3-0"),
        (Task(1, "init"), "init", "init-1"),
        (Task(9, ""), "thread 9", "<...>-9"),
    ],
)
def test_a_task_is_called_by_name_or_by_number(
    task: Task, label: str, numbered: str
) -> None:
    assert (task.label, task.numbered) == (label, numbered)
