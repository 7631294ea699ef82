"""A wait that a function does by itself, in a loop, is told as a wait."""

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, THREAD, TIMER
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation
from rtscope.explain.words import sentence

TABLE = symbols(
    *NAMES,
    *("step_gate", "grab_gate", "my_thread", "_raw_spin_trylock", "mutex_trylock"),
    *("try_claim", "relax_a_bit", "ktime_get", "__const_udelay", "delay_tsc"),
    *("down_read_trylock", "_raw_write_trylock", "swap", "my_work", "down_trylock"),
    *("touch_softlockup_watchdog", "rcu_momentary_eqs", "ww_mutex_trylock"),
    *("down_write_trylock", "_raw_spin_trylock_bh", "rt_mutex_trylock"),
    *("_mutex_trylock_nest_lock", "__percpu_down_read_trylock", "rt_read_trylock"),
    *("queued_spin_trylock", "console_trylock", "rt_mutex_slowtrylock"),
    *("_raw_spin_lock_irqsave", "_raw_spin_unlock_irqrestore", "migrate_disable"),
    *("try_to_take_rt_mutex", "rt_spin_trylock", "rt_mutex_slowtrylock.constprop.0"),
    *("do_raw_spin_trylock", "__local_bh_enable_ip", "raw_spin_rq_trylock"),
    *("rtnl_trylock", "my_claim"),
)
THEIRS: list[Step] = [(5, "my_thread", 1), (5, "grab_gate", 1)]
HELD: list[Step] = [(70, "grab_gate+", 1)]
AGAIN: list[Step] = [(10, "step_gate+")]


def tried(attempt: str) -> list[Step]:
    return [(20, attempt), (5, "step_gate+"), *HELD, (5, "step_gate+")]


def explained(turn: list[Step], *, turns: int = 40) -> Explanation:
    """Explain a wake-up behind a loop, in which another CPU holds something."""
    waits: list[Step] = [*THEIRS, (100, "step_gate"), *turn * turns, *AGAIN]
    steps = [*waits, *TIMER, *PREEMPT, *THREAD]
    late = sum(step[0] for step in steps) - 100
    tasks = ((0, "sh"), (0, "holder", 1, 120), (late + 75, "rtscope"))
    off = ((0, 1), (90, 0))
    path = section(steps, TABLE, late=late, flags=off, tasks=tasks, block_ns=1024)
    found = explain_path(path, TABLE, arch="x86_64")
    assert found.residual_ns == 0
    assert found.dominant is not None
    return found


@pytest.mark.parametrize(
    "attempt",
    [
        *("_raw_spin_trylock", "mutex_trylock", "down_read_trylock"),
        *("_raw_write_trylock", "ww_mutex_trylock", "down_write_trylock"),
        *("_raw_spin_trylock_bh", "rt_mutex_trylock", "_mutex_trylock_nest_lock"),
        *("__percpu_down_read_trylock", "queued_spin_trylock", "rt_read_trylock"),
    ],
)
def test_a_lock_that_is_tried_until_it_is_free_is_waited_for(attempt: str) -> None:
    found = explained(tried(attempt))

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (Cause.LOCK, "step_gate")
    assert "CPU 1 spent 100 % of its time in grab_gate" in sentence(found)


# What calls others is written from its first part on, as a recording has it.
NESTED: dict[str, list[Step]] = {
    "semaphore": [
        *((9, "down_trylock"), (8, "_raw_spin_lock_irqsave"), (6, "down_trylock+")),
        *((8, "_raw_spin_unlock_irqrestore"), (5, "down_trylock+")),
    ],
    "console": [
        *((6, "console_trylock"), (9, "down_trylock"), (8, "_raw_spin_lock_irqsave")),
        *((6, "down_trylock+"), (5, "console_trylock+")),
    ],
    "mutex of PREEMPT_RT": [
        *((9, "mutex_trylock"), (9, "rt_mutex_slowtrylock")),
        *((8, "_raw_spin_lock_irqsave"), (6, "rt_mutex_slowtrylock+")),
        *((20, "try_to_take_rt_mutex"), (5, "rt_mutex_slowtrylock+")),
        *((8, "_raw_spin_unlock_irqrestore"), (5, "rt_mutex_slowtrylock+")),
        (5, "mutex_trylock+"),
    ],
    "spin lock of PREEMPT_RT": [
        *((9, "rt_spin_trylock"), (6, "migrate_disable"), (5, "rt_spin_trylock+")),
        *((9, "rt_mutex_slowtrylock.constprop.0"), (8, "_raw_spin_lock_irqsave")),
        *((6, "rt_mutex_slowtrylock.constprop.0+"), (5, "rt_spin_trylock+")),
    ],
    "a checked lock": [
        *((9, "_raw_spin_trylock"), (9, "do_raw_spin_trylock")),
        (5, "_raw_spin_trylock+"),
    ],
    "softirqs off": [
        *((20, "_raw_spin_trylock_bh"), (5, "__local_bh_enable_ip")),
        (5, "_raw_spin_trylock_bh+"),
    ],
    "a run queue": [
        *((6, "raw_spin_rq_trylock"), (9, "_raw_spin_trylock")),
        (5, "raw_spin_rq_trylock+"),
    ],
    "network": [(6, "rtnl_trylock"), (9, "mutex_trylock"), (5, "rtnl_trylock+")],
    "of a driver": [(6, "my_claim"), (9, "_raw_spin_trylock"), (5, "my_claim+")],
}


@pytest.mark.parametrize("how", NESTED)
def test_an_attempt_within_an_attempt_is_part_of_the_wait(how: str) -> None:
    found = explained([*NESTED[how], (5, "step_gate+"), *HELD, (5, "step_gate+")])

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (Cause.LOCK, "step_gate")
    assert "CPU 1 spent 100 % of its time in grab_gate" in sentence(found)


@pytest.mark.parametrize(
    "delay",
    [
        [(30, "__const_udelay"), (300, "delay_tsc"), (10, "ktime_get")],
        [(10, "ktime_get"), (5, "step_gate+"), (300, "my_work")],
        [(700, "delay_tsc")],
    ],
)
def test_delays_between_two_attempts_are_part_of_the_wait(delay: list[Step]) -> None:
    is_long = any(name == "my_work" for _, name, *_ in delay)
    turn: list[Step] = [(20, "_raw_spin_trylock"), (5, "step_gate+"), *delay, *AGAIN]
    found = explained([*turn, *HELD])

    assert found.dominant is not None
    # What takes longer than a turn of a loop, and is no delay, is work.
    assert (found.dominant.cause is Cause.LOCK) is not is_long


@pytest.mark.parametrize(
    "turn",
    [
        [(10, "step_gate+")],
        [(10, "swap"), (5, "step_gate+")],
        [(10, "try_claim"), (5, "step_gate+"), (6, "relax_a_bit")],
    ],
)
def test_a_loop_that_pauses_in_each_turn_waits_for_another_cpu(
    turn: list[Step],
) -> None:
    found = explained([*turn, *HELD])

    assert found.dominant is not None
    told = found.dominant.cause, found.dominant.name
    assert told == (Cause.OTHER_CPU, "step_gate")
    assert "(holder, not real-time, nice 0)" in sentence(found)


@pytest.mark.parametrize(
    "turn",
    [
        [(20, "my_work"), (10, "step_gate+")],  # it never pauses
        [(10, "ktime_get"), (5, "step_gate+"), *HELD],  # a delay: it reads a clock
        [(900, "my_work"), (5, "step_gate+"), *HELD],  # work, and then a pause
    ],
)
def test_a_loop_that_works_or_lets_time_go_by_waits_for_none(turn: list[Step]) -> None:
    found = explained(turn)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.INTERRUPTS_OFF


def test_a_lock_that_is_tried_once_is_not_waited_for() -> None:
    found = explained([*tried("_raw_spin_trylock"), (900, "my_work")], turns=1)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.INTERRUPTS_OFF


@pytest.mark.parametrize(
    "attempt",
    ["down_trylock", "mutex_trylock", "rt_spin_trylock", "rt_mutex_trylock"],
)
def test_an_attempt_that_calls_others_is_one_attempt(attempt: str) -> None:
    inside: list[Step] = [(9, "swap"), (9, f"{attempt}+")]
    calls: list[Step] = [(9, attempt), *inside * 3, (5, "step_gate+")]
    found = explained([*calls, (900, "my_work"), (5, "step_gate+")], turns=2)

    assert not any(one.cause is Cause.LOCK for one in found.segments)


@pytest.mark.parametrize("helper", ["touch_softlockup_watchdog", "rcu_momentary_eqs"])
def test_a_helper_of_loops_that_wait_is_no_wait_by_itself(helper: str) -> None:
    """Who prints much tells the watchdog that its CPU is alive."""
    found = explained([(8, helper), (5, "step_gate+"), (900, "my_work"), *AGAIN])

    assert not any(one.cause is Cause.OTHER_CPU for one in found.segments)
    assert found.dominant is not None
    assert found.dominant.name == "step_gate"


# --- loops that wait for nobody -------------------------------------------------------

BESIDE: list[Step] = [*HELD, (5, "step_gate+")] * 60
"""Turns in which another CPU executes something each time."""
BY_HELPER: list[Step] = [(5, "relax_a_bit"), *HELD, (5, "step_gate+")] * 60
ALONE: list[Step] = [(500, "step_gate+")] * 60


def looped(*steps: Step) -> Explanation:
    """Explain a wake-up behind a loop with interrupts off, that looks at no clock."""
    before: list[Step] = [*THEIRS, (100, "step_gate"), *steps]
    return explained(before, turns=1)


@pytest.mark.parametrize(
    "steps",
    [
        [*BESIDE, *ALONE],
        [*ALONE, *BESIDE, *ALONE],
        [*BESIDE, *ALONE, *BESIDE, *ALONE],
        [*BY_HELPER, *[(500, "relax_a_bit"), (5, "step_gate+")] * 60],
        [*BESIDE, *[(250, "step_gate+"), (250, "swap"), (5, "step_gate+")] * 60],
    ],
)
def test_a_loop_that_goes_on_when_no_other_cpu_runs_waits_for_none(
    steps: list[Step],
) -> None:
    found = looped(*steps)

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (
        *(Cause.INTERRUPTS_OFF, "step_gate"),
    )


@pytest.mark.parametrize(
    "steps",
    [
        BESIDE,
        BY_HELPER,
        [*ALONE, *BESIDE],  # the other CPU slept before
        [*BESIDE, *ALONE, *BESIDE],  # and for a while
        [*BESIDE, *ALONE[:8]],  # by less than two clocks may differ
        [*BESIDE * 9, (500, "swap"), *[(500, "swap+")] * 60],  # other code follows
    ],
)
def test_a_loop_that_ends_when_another_cpu_has_run_waits_for_it(
    steps: list[Step],
) -> None:
    found = looped(*steps)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.OTHER_CPU
