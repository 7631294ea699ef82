"""A timer that expires on another CPU than its thread's, as by nohz_full=."""

from dataclasses import replace

import pytest

from fakes.paths import ASLEEP, Step, Task, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, SWITCH, THREAD, TIMER
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Confidence, Explanation, Part
from rtscope.explain.words import caveats_of, evidence, sentence

TABLE = symbols(*NAMES, "my_holder", "native_smp_send_reschedule", "irq_exit_rcu")
BUSY: list[Step] = [(1000, "zap")]
AWAY: list[Step] = [(300, "my_holder", 1)]
"""What the other CPU does before it looks at its timers."""
ASKED: list[Step] = [
    *((10, "handle_exception"), (10, "do_irq"), (8, "ipi_handler"), (5, "do_irq+"))
]


def wakes(*, asks: bool) -> list[Step]:
    """Return the callback on CPU 1, which may interrupt this CPU: 30 + 10 ns."""
    sends: list[Step] = [(10, "native_smp_send_reschedule", 1)] if asks else []
    return [
        *((10, "handle_exception", 1), (10, "do_irq", 1), (20, "hrtimer_interrupt", 1)),
        *((10, "__hrtimer_run_queues", 1), (30, "hrtimer_wakeup", 1), *sends),
        *((5, "hrtimer_wakeup+", 1), (5, "__hrtimer_run_queues+", 1)),
        *((5, "hrtimer_interrupt+", 1), (5, "do_irq+", 1), (40, "my_holder+", 1)),
    ]


def explained(
    steps: list[Step],
    *,
    flags: tuple[tuple[int, int], ...] = ((0, 1),),
    first: int = 0,
    before: tuple[Task, ...] = ((0, "hog", 1),),
    prio: int = 0,
) -> Explanation:
    """Explain a wake-up that was due when the first step, of 1000 ns, had ended."""
    ended = sum(step[0] for step in steps)
    tasks: tuple[Task, ...] = (
        *((0, "sh"), *before),
        (ended - 30, "rtscope", 0, prio),
    )
    late = ended - 1000
    path = section(steps, TABLE, late=late, flags=flags, tasks=tasks, block_ns=1024)
    found = explain_path(replace(path, first_ns=first), TABLE, arch="x86_64")
    assert found.residual_ns == 0
    return found


def segments(found: Explanation) -> list[tuple[Part, Cause, int, int]]:
    return [(one.part, one.cause, one.begin_ns, one.end_ns) for one in found.segments]


def test_a_timer_that_expires_on_another_cpu_is_as_late_as_that() -> None:
    steps = [*BUSY, *AWAY, *wakes(asks=True), (20, "zap+"), *ASKED, *PREEMPT, *THREAD]

    found = explained(steps)

    parts = [(part, cause) for part, cause, _, _ in segments(found)]
    assert parts == [
        (Part.A, Cause.TIMER_ELSEWHERE),
        (Part.A, Cause.DELIVERY),
        (Part.B, Cause.OTHER_INTERRUPT),
        (Part.D, Cause.SCHEDULER),
        (Part.E, Cause.RETURN),
    ]
    assert found.segments[0].duration_ns == 380
    assert found.broken == ()
    assert caveats_of(found) == ()
    assert found.dominant is not None
    assert (found.dominant.name, found.dominant.confidence) == (
        "CPU 1",
        Confidence.SEEN,
    )
    told = evidence(found.dominant)
    assert any("wakes a sleeping thread, 350 ns after" in line for line in told)
    assert any("380 ns after the expiry it asked" in line for line in told)
    assert any("kernel.timer_migration=0" in line for line in told)
    assert not any("executed most" in line for line in told)
    said = sentence(found)
    assert "Waiting for the timer to expire on CPU 1: 0.380 µs" in said
    assert "CPU 1 spent 100 % of its time in my_holder (hog)" in said


def test_what_another_cpu_executes_for_its_own_threads_wakes_none_here() -> None:
    own, ours = wakes(asks=False), wakes(asks=True)
    steps = [*BUSY, *ours, *own, (20, "zap+"), *ASKED, *PREEMPT, *THREAD]

    found = explained(steps)

    assert found.segments[0].cause is Cause.TIMER_ELSEWHERE
    assert any(
        "80 ns after the expiry it asked" in one for one in found.segments[0].evidence
    )
    assert found.broken == ()


def test_a_cpu_that_need_not_be_asked_is_only_inferred_to_be_woken() -> None:
    steps = [*BUSY, *wakes(asks=False), (20, "zap+"), *PREEMPT, *THREAD]

    found = explained(steps)

    assert segments(found)[0] == (Part.A, Cause.TIMER_ELSEWHERE, 0, 85)
    assert found.segments[0].confidence is Confidence.INFERRED


def test_interrupts_that_are_off_when_another_cpu_asks_delay_the_thread() -> None:
    off: list[Step] = [(5, "zap+"), (700, "free_pages"), (5, "zap+")]
    steps = [*BUSY, *wakes(asks=True), *off, *ASKED, *PREEMPT, *THREAD]
    # The time of CPU 1's calls is a pause of this CPU.
    since = 1000 + 150
    flags = ((0, 1), (since + 5, 0), (since + 705, 1))

    found = explained(steps, flags=flags)

    (waited,) = (one for one in found.segments if one.cause is Cause.INTERRUPTS_OFF)
    assert (waited.part, waited.duration_ns) == (Part.A, 700)
    assert waited.name == "free_pages"
    assert any(
        "interrupts off since 155 ns after the expiry" in line
        for line in evidence(waited)
    )
    assert found.broken == ()


def test_what_is_under_way_when_another_cpu_asks_delays_only_from_then_on() -> None:
    steps = [(1000, "free_pages"), *wakes(asks=True), (9_000, "free_pages+")]
    ends = [(5, "zap+"), *ASKED, *PREEMPT, *THREAD]

    found = explained([*steps, *ends], flags=((0, 0), (10_150, 1)))

    assert segments(found)[:2] == [
        (Part.A, Cause.TIMER_ELSEWHERE, 0, 80),
        (Part.A, Cause.INTERRUPTS_OFF, 80, 9_150),
    ]


def test_interrupts_that_are_off_once_more_behind_the_interrupt_are_no_cause() -> None:
    off: list[Step] = [(5, "zap+"), (700, "free_pages"), (5, "zap+")]
    steps = [*BUSY, *wakes(asks=True), (20, "zap+"), *ASKED, *off, *PREEMPT, *THREAD]
    since = 1000 + 150 + 20 + 33 + 5

    found = explained(steps, flags=((0, 1), (since, 0), (since + 700, 1)))

    (late,) = (one for one in found.segments if one.part is Part.C)
    assert (late.cause, late.duration_ns) == (Cause.PREEMPTION_OFF, 710)


@pytest.mark.parametrize(("off", "asked_ns"), [(True, 80), (False, 1_230)])
def test_of_several_calls_the_one_counts_that_the_interrupt_answers(
    off: bool, asked_ns: int
) -> None:
    twice = [*wakes(asks=True), (1_000, "zap+"), *wakes(asks=True)]
    steps = [*BUSY, *twice, (20, "zap+"), *ASKED, *PREEMPT, *THREAD]
    flags = ((0, 1), (900, 0), (2_320, 1)) if off else ((0, 1),)

    found = explained(steps, flags=flags)

    assert segments(found)[0][1:] == (Cause.TIMER_ELSEWHERE, 0, asked_ns)
    assert found.segments[0].confidence is Confidence.INFERRED


@pytest.mark.parametrize("first", ["do_idle", ASLEEP])
def test_a_cpu_that_sleeps_meanwhile_makes_nothing_more_certain(first: str) -> None:
    sleeps: list[Step] = [(1000, first), (200, ASLEEP)]
    steps = [*sleeps, *wakes(asks=False), (20, "do_idle+"), *SWITCH, *THREAD]

    found = explained(steps)

    assert found.segments[0].cause is Cause.TIMER_ELSEWHERE
    assert found.segments[0].confidence is Confidence.INFERRED


def test_a_thread_that_slept_on_the_other_cpu_has_its_timer_there_anyway() -> None:
    steps = [*BUSY, *wakes(asks=True), (20, "zap+"), *ASKED, *PREEMPT, *THREAD]

    found = explained(steps, before=((0, "rtscope", 1), (500, "hog", 1)))

    assert not any(one.cause is Cause.TIMER_ELSEWHERE for one in found.segments)


def test_slack_of_a_thread_that_is_not_real_time_is_told() -> None:
    steps = [*BUSY, *wakes(asks=True), (20, "zap+"), *ASKED, *PREEMPT, *THREAD]

    found = explained(steps, prio=120)

    (late,) = (one for one in found.segments if one.cause is Cause.TIMER_ELSEWHERE)
    assert late.confidence is Confidence.INFERRED
    assert any("may be timer slack" in line for line in evidence(late))


def test_a_path_that_begins_behind_the_expiry_blames_no_timer_elsewhere() -> None:
    steps = [*BUSY, *wakes(asks=True), (20, "zap+"), *ASKED, *PREEMPT, *THREAD]

    found = explained(steps, first=1100)

    assert not any(one.cause is Cause.TIMER_ELSEWHERE for one in found.segments)


def test_a_timer_that_expires_here_is_nobody_elses() -> None:
    steps = [*BUSY, *wakes(asks=True), (20, "zap+"), *TIMER, *PREEMPT, *THREAD]

    found = explained(steps)

    assert not any(one.cause is Cause.TIMER_ELSEWHERE for one in found.segments)
