"""A timer that waits for the tick, because high-resolution timers are off."""

import pytest

from fakes.paths import ASLEEP, Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, THREAD
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation, Part
from rtscope.explain.words import caveats_of, evidence, sentence

TABLE = symbols(*NAMES, "tick_handle_periodic", "hrtimer_run_queues")
ENTRY: list[Step] = [(10, "handle_exception"), (10, "do_irq")]
LOOK: list[Step] = [(20, "tick_handle_periodic"), (10, "hrtimer_run_queues")]
TICK: list[Step] = [
    *ENTRY,
    *LOOK,
    *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup")),
    *((5, "__hrtimer_run_queues+"), (5, "hrtimer_run_queues+")),
    *((5, "tick_handle_periodic+"), (5, "do_irq+")),
]
ENDS: list[Step] = [*PREEMPT, *THREAD]


def explained(
    before: list[Step],
    after: list[Step],
    flags: tuple[tuple[int, int], ...] = ((0, 1),),
) -> Explanation:
    late = sum(step[0] for step in after)
    found = section([*before, *after], TABLE, late=late, flags=flags, block_ns=20_000)
    return explain_path(found, TABLE, arch="riscv64")


def causes(explanation: Explanation) -> list[tuple[Part, Cause, int]]:
    return [(one.part, one.cause, one.duration_ns) for one in explanation.segments]


def test_a_cpu_that_sleeps_until_the_tick_waits_for_it() -> None:
    told = explained(
        [(100, "do_idle")], [(5, "do_idle+"), (900_000, ASLEEP), *TICK, *ENDS]
    )

    assert causes(told)[0] == (Part.A, Cause.TICK, 900_005)
    assert told.dominant is told.segments[0]
    assert (told.broken, told.residual_ns, caveats_of(told)) == ((), 0, ())
    assert any(
        "remedy: boot without highres=off" in e for e in evidence(told.segments[0])
    )
    assert "waits for the tick: high-resolution timers are off" in sentence(told)


def test_whatever_the_cpu_does_until_the_tick_delays_nothing() -> None:
    other = [*ENTRY, (3_000, "usb_irq"), (5, "do_irq+"), (5, "handle_exception+")]

    told = explained(
        [(100, "zap")], [(20_000, "zap+"), *other, (15_000, "zap+"), *TICK]
    )

    assert causes(told)[0] == (Part.A, Cause.TICK, 38_030)
    assert (told.segments[1].part, told.segments[1].cause) == (
        Part.B,
        Cause.TIMER_INTERRUPT,
    )


def test_interrupts_that_are_off_when_the_tick_comes_delay_it() -> None:
    told = explained(
        [(100, "zap")],
        [(20_000, "zap+"), (7_000, "free_pages"), *TICK, *ENDS],
        flags=((0, 1), (20_100, 0), (27_100, 1)),
    )

    assert causes(told)[:2] == [
        (Part.A, Cause.TICK, 20_000),
        (Part.A, Cause.INTERRUPTS_OFF, 7_000),
    ]


def test_a_cpu_that_sleeps_with_interrupts_off_waits_for_the_tick_all_the_same() -> (
    None
):
    told = explained(
        [(100, "do_idle")],
        [(500, "do_idle+"), (900_000, ASLEEP), *TICK, *ENDS],
        flags=((0, 0), (900_600, 1)),
    )

    assert causes(told)[0] == (Part.A, Cause.TICK, 900_500)


def test_a_tick_that_another_timer_s_interrupt_runs_is_not_waited_for() -> None:
    of_high_resolution: list[Step] = [
        *ENTRY,
        *((20, "hrtimer_interrupt"), (10, "__hrtimer_run_queues")),
        *((10, "tick_nohz_handler"), (5, "hrtimer_run_queues")),
        *((5, "tick_nohz_handler+"), (30, "__hrtimer_run_queues+")),
        *((30, "hrtimer_wakeup"), (5, "__hrtimer_run_queues+")),
        *((5, "hrtimer_interrupt+"), (5, "do_irq+")),
    ]

    told = explained([(100, "zap")], [(50, "zap+"), *of_high_resolution, *ENDS])

    assert Cause.TICK not in [one.cause for one in told.segments]


@pytest.mark.parametrize("before", [[], [(100, "user", 1)]])
def test_a_cpu_of_which_nothing_is_recorded_slept_until_the_tick(
    before: list[Step],
) -> None:
    told = explained(before, [(400_000, ASLEEP), *TICK, *ENDS])

    assert causes(told)[0] == (Part.A, Cause.TICK, 400_000)
    assert told.broken == ()


def test_a_thread_that_is_not_real_time_waits_for_the_tick_and_then_its_softirq() -> (
    None
):
    tick: list[Step] = [*ENTRY, *LOOK, (5, "tick_handle_periodic+"), (5, "do_irq+")]
    softirq: list[Step] = [
        *((10, "handle_softirqs"), (10, "hrtimer_run_softirq")),
        *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup")),
        *((5, "__hrtimer_run_queues+"), (5, "hrtimer_run_softirq+")),
        (5, "handle_softirqs+"),
    ]

    told = explained([(100, "zap")], [(9_000, "zap+"), *tick, *softirq, *ENDS])

    assert causes(told)[0] == (Part.A, Cause.TICK, 9_000)
    assert told.broken == ()
