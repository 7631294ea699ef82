"""Many threads that one timer interrupt wakes; an exception and its handler."""

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, THREAD, explained
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause
from rtscope.explain.words import sentence

TABLE = symbols(
    *(*NAMES, "enqueue_task_rt", "enqueue_task_fair", "asm_exc_debug", "exc_debug"),
    *("watch_handler", "my_writer", "asm_sysvec_apic_timer_interrupt"),
)


def woken(kind: str) -> list[Step]:
    return [
        *((40, "hrtimer_wakeup"), (30, kind), (5, "hrtimer_wakeup+")),
        (10, "__hrtimer_run_queues+"),
    ]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (
            ["enqueue_task_fair"] * 20,
            "20 other threads woken before this one ran, none",
        ),
        (["enqueue_task_rt"] * 20, "20 other threads woken before this one ran, all"),
        (
            ["enqueue_task_rt", *["enqueue_task_fair"] * 19],
            "20 other threads woken before this one ran)",
        ),
    ],
)
def test_the_threads_that_one_interrupt_wakes_too_are_counted(
    others: list[str], told: str
) -> None:
    interrupt: list[Step] = [
        *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
        *((10, "__hrtimer_run_queues"), *woken("enqueue_task_rt")),
        *(step for kind in others for step in woken(kind)),
        *((5, "hrtimer_interrupt+"), (5, "do_irq+")),
    ]
    after = [*interrupt, *PREEMPT, *THREAD]
    path = section(
        [(100, "user"), *after],
        TABLE,
        late=sum(step[0] for step in after),
    )

    found = explain_path(path, TABLE, arch="riscv64")

    assert found.dominant is not None
    assert found.dominant.cause is Cause.TIMER_CALLBACK
    assert found.dominant.name == "hrtimer_wakeup"
    assert told in sentence(found)
    of_others = [s for s in found.segments if s.cause is Cause.TIMER_CALLBACK]
    assert sum(one.duration_ns for one in of_others) == 20 * 75


def test_the_wake_up_of_the_thread_itself_is_the_timers_own() -> None:
    interrupt: list[Step] = [
        *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
        *((10, "__hrtimer_run_queues"), (500, "hrtimer_wakeup")),
        *((5, "hrtimer_interrupt+"), (5, "do_irq+")),
    ]

    found = explained([(100, "user")], [*interrupt, *PREEMPT, *THREAD])

    assert not any(s.cause is Cause.TIMER_CALLBACK for s in found.segments)
    assert "other thread" not in sentence(found)


def test_interrupts_off_in_an_exception_are_blamed_on_its_handler() -> None:
    after: list[Step] = [
        *((2000, "watch_handler"), (10, "exc_debug+"), (20, "asm_exc_debug+")),
        *((10, "handle_exception"), (10, "do_irq"), (20, "hrtimer_interrupt")),
        *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup")),
        *((5, "hrtimer_interrupt+"), (5, "do_irq+"), *PREEMPT, *THREAD),
    ]
    before: list[Step] = [
        *((50, "user"), (10, "my_writer"), (10, "asm_exc_debug"), (10, "exc_debug")),
        (20, "watch_handler"),
    ]
    path = section(
        [
            *before,
            *((s[0], s[1].replace("watch_handler", "watch_handler+")) for s in after),
        ],
        TABLE,
        late=sum(step[0] for step in after),
        flags=((0, 1), (70, 0), (100 + 2030, 1)),
    )

    found = explain_path(path, TABLE, arch="x86_64")

    assert found.dominant is not None
    assert found.dominant.cause is Cause.INTERRUPTS_OFF
    assert found.dominant.name == "watch_handler"
