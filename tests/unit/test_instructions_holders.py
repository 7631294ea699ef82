"""A lock's holder that could have run: the task that ran in its place is to blame."""

from collections.abc import Sequence

import numpy as np
import pytest

from fakes.paths import SIZE, TEXT, Step, Task, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, SWITCH, TIMER
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation, Part, Segment
from rtscope.explain.words import evidence, sentence
from rtscope.record.instructions.symbols import SymbolTable

TABLE = symbols(
    *NAMES,
    *("my_section", "my_wait", "rt_spin_lock", "rt_mutex_slowunlock", "pipe_read"),
    *("__mutex_lock", "__mutex_unlock_slowpath", "schedule", "ptrace_stop"),
    *("do_signal_stop", "mark_wakeup_next_waiter", "do_nanosleep"),
)
RIVAL, HOLDER = "not real-time, nice -20", "not real-time, nice 0"

Turn = tuple[str, int, list[Step]]
"""A task, its prio, and what it executes up to the end of its switch to the next."""


def explained(
    turns: Sequence[Turn],
    *,
    expiry_ns: int,
    table: SymbolTable = TABLE,
) -> Explanation:
    """Explain what CPU 0 did in these turns, from the expiry on."""
    steps: list[Step] = []
    tasks: list[Task] = []
    for name, prio, turn in turns:
        tasks.append((sum(step[0] for step in steps), name, 0, prio))
        steps += turn
    late = sum(step[0] for step in steps) - expiry_ns
    path = section(steps, TABLE, late=late, tasks=tasks, block_ns=1 << 20)
    found = explain_path(path, table, arch="riscv64")
    assert found.residual_ns == 0
    assert found.broken == ()
    return found


def turns(
    wait: str = "rt_spin_lock",
    release: str = "rt_mutex_slowunlock",
    left_in: Sequence[Step] = PREEMPT,
    back_in: Sequence[Step] = (),
) -> list[Turn]:
    """A thread wakes, wants a lock whose holder it preempted, and a rival runs."""
    wakes: list[Step] = [
        (30, "handle_softirqs"),
        (1370, "my_section"),
        *TIMER,
        *left_in,
    ]
    waits: list[Step] = [(1500, "my_wait"), (10, wait), *SWITCH]
    free: list[Step] = [*back_in, (5, "my_section+"), (1500, release), *PREEMPT]
    back: list[Step] = [(5, f"{wait}+"), (5, "my_wait+"), (9, "user")]
    return [
        ("ksoftirqd/0", 120, wakes),
        ("rtscope", 120, waits),
        ("hog", 100, [(5000, "user"), *TIMER, *PREEMPT]),
        ("ksoftirqd/0", 120, free),
        ("rtscope", 120, back),
    ]


def worst(found: Explanation) -> Segment:
    assert found.dominant is not None
    return found.dominant


def test_who_runs_in_the_place_of_a_locks_holder_delays_the_thread() -> None:
    found = explained(turns(), expiry_ns=1400)

    one = worst(found)
    assert (one.part, one.cause) == (Part.E, Cause.IN_PLACE_OF_HOLDER)
    assert (one.name, one.task, one.policy) == ("my_wait", "hog", RIVAL)
    assert one.duration_ns > 5000
    told = evidence(one)
    assert "the thread was not runnable: it waited in rt_spin_lock" in told
    assert (
        f"ksoftirqd/0 ({HOLDER}) held the lock, and was runnable on CPU 0: "
        f"hog ({RIVAL}) ran there"
    ) in told
    assert f"another task (hog, {RIVAL}) in place of a lock's holder" in sentence(found)


def test_the_holder_is_known_if_functions_of_one_name_release_locks() -> None:
    """Linux compiles its rt_mutex twice: for spin locks, and for all others."""
    starts = np.append(np.uint64(TEXT - SIZE), TABLE.starts)
    twice = SymbolTable(starts, ("rt_mutex_slowunlock", *TABLE.names), {})

    found = explained(turns(), expiry_ns=1400, table=twice)

    assert worst(found).cause is Cause.IN_PLACE_OF_HOLDER


def test_each_kind_of_lock_has_its_own_release() -> None:
    found = explained(turns("__mutex_lock", "__mutex_unlock_slowpath"), expiry_ns=1400)

    assert (worst(found).cause, worst(found).task) == (Cause.IN_PLACE_OF_HOLDER, "hog")


def test_a_holder_that_waits_itself_is_no_rivals_victim() -> None:
    sleeps: list[Step] = [(10, "pipe_read"), (5, "schedule"), *SWITCH]
    woken: list[Step] = [(5, "schedule+"), (5, "pipe_read+")]

    found = explained(turns(left_in=sleeps, back_in=woken), expiry_ns=1400)

    one = worst(found)
    assert (one.cause, one.name, one.task) == (Cause.LOCK, "my_wait", "")
    assert "made runnable again by ksoftirqd/0 on CPU 0" in evidence(one)


def test_a_holder_that_left_before_the_path_is_known_by_its_return() -> None:
    found = explained(
        [
            ("rtscope", 120, [(1500, "user"), *turns()[1][2]]),
            *turns(back_in=[(5, "preempt_schedule_irq+")])[2:],
        ],
        expiry_ns=4000,
    )

    assert (worst(found).part, worst(found).task) == (Part.A, "hog")
    assert worst(found).cause is Cause.IN_PLACE_OF_HOLDER


def test_a_chain_of_locks_is_followed_to_who_ran_in_the_place_of_the_last() -> None:
    wants: list[Step] = [(10, "rt_spin_lock"), (5, "schedule"), *SWITCH]
    gets: list[Step] = [(5, "schedule+"), (5, "rt_spin_lock+")]
    first, thread, rival, *rest = turns(left_in=wants, back_in=gets)
    owner: Turn = ("owner", 125, [(1500, "my_section"), *TIMER, *PREEMPT])
    frees: Turn = ("owner", 125, [(1500, "rt_mutex_slowunlock"), *PREEMPT])

    found = explained([owner, first, thread, rival, frees, *rest], expiry_ns=1600)

    one = worst(found)
    assert (one.cause, one.task) == (Cause.IN_PLACE_OF_HOLDER, "hog")
    assert any(
        line.startswith("owner (not real-time, nice 5)") for line in evidence(one)
    )


def test_a_holder_that_waited_for_the_same_lock_had_it_from_the_one_before() -> None:
    kthread: list[Step] = [(5, "pipe_read+"), (5, "my_wait"), (10, "rt_spin_lock")]
    gets: list[Step] = [(5, "schedule+"), (5, "rt_spin_lock+"), (5, "my_wait+")]
    first, thread, rival, frees, back = turns()
    wants: Turn = ("waiter/0", 98, [*kthread, (1300, "schedule"), *SWITCH])
    passes: Turn = ("waiter/0", 98, [*gets, (1500, "rt_mutex_slowunlock"), *PREEMPT])

    found = explained(
        [first, thread, rival, wants, frees, passes, back], expiry_ns=1400
    )

    assert (worst(found).cause, worst(found).task) == (Cause.IN_PLACE_OF_HOLDER, "hog")
    (line,) = (line for line in evidence(worst(found)) if "held the lock" in line)
    assert line.startswith(f"ksoftirqd/0 ({HOLDER})")


@pytest.mark.parametrize(
    ("function", "did"),
    [
        ("ptrace_stop", "was stopped by a debugger"),
        ("do_signal_stop", "was stopped by a signal"),
        ("do_nanosleep", "slept until a timer expired"),
        ("pipe_read", "waited for a descriptor"),
        ("__mutex_lock", "waited for another lock"),
        ("my_section", "waited for another thread"),
    ],
)
def test_a_holder_that_slept_itself_is_named_with_its_wait(
    function: str, did: str
) -> None:
    sleeps: list[Step] = [(10, function), (5, "schedule"), *SWITCH]
    woken: list[Step] = [(5, "schedule+"), (5, f"{function}+")]

    found = explained(turns(left_in=sleeps, back_in=woken), expiry_ns=1400)

    text = f"its holder ksoftirqd/0 {did} for 5."
    assert text in sentence(found)
    assert any(line.startswith(text) for line in evidence(worst(found)))


def test_a_holder_that_slept_itself_is_named_with_the_function_that_let_it() -> None:
    sleeps: list[Step] = [
        *((10, "my_section"), (5, "do_nanosleep"), (5, "schedule"), *SWITCH)
    ]
    woken: list[Step] = [(5, "schedule+"), (5, "do_nanosleep+"), (5, "my_section+")]

    found = explained(turns(left_in=sleeps, back_in=woken), expiry_ns=1400)

    said = sentence(found)
    assert "its holder ksoftirqd/0 slept until a timer expired for 5." in said
    assert " µs in my_section)" in said


@pytest.mark.parametrize("release", ["mark_wakeup_next_waiter", "rt_mutex_slowunlock"])
def test_the_holder_is_known_by_whatever_the_compiler_left_as_a_call(
    release: str,
) -> None:
    found = explained(turns(release=release), expiry_ns=1400)

    assert (worst(found).cause, worst(found).task) == (Cause.IN_PLACE_OF_HOLDER, "hog")


def test_of_a_holder_that_is_not_known_the_idle_cpus_are_told() -> None:
    idle: list[Step] = [(50, "do_idle"), (90000, "asleep"), *TIMER, *PREEMPT]
    first, thread, _rival, *rest = turns(release="my_section+")

    found = explained([first, thread, ("swapper/0", 120, idle), *rest], expiry_ns=1400)

    assert worst(found).cause is Cause.LOCK
    assert "its holder hardly ran: no other CPU executed" in sentence(found)


def test_of_a_holder_that_is_not_known_nothing_is_told_where_others_ran() -> None:
    found = explained(turns(release="my_section+"), expiry_ns=1400)

    assert worst(found).cause is Cause.LOCK
    assert "its holder" not in sentence(found)
