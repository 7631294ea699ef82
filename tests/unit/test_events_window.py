"""Which wake-up of a trace is explained, and which events around it are looked at."""

from dataclasses import replace

import pytest

from rtscope.explain.events.threadstates import State, TracedWakeup
from rtscope.explain.events.window import (
    NoWakeup,
    WakeupSelector,
    choose,
    state_before,
    waits,
    window_around,
)
from rtscope.record.events.text import TextTrace, text_trace

US = 1_000
SECOND_US = 1_000_000
RT, LOW, LOAD = "rt-77", "low-88", "load-100"
PRIORITIES = {RT: 9, LOW: 120, LOAD: 120, "idle-0": 120, "kworker-9": 0}


def opened(*lines: str) -> TextTrace:
    return text_trace(memoryview("\n".join(lines).encode()), name="trace.txt")


def line(at_us: int, body: str, *, cpu: int = 0, task: str = LOAD) -> str:
    seconds, us = divmod(at_us, SECOND_US)
    return f" {task} [{cpu:03}] d..2. {seconds}.{us:06}: {body}"


def waking(
    at_us: int, task: str = RT, *, cpu: int = 0, name: str = "sched_waking"
) -> str:
    comm, _, pid = task.partition("-")
    prio = PRIORITIES[task]
    return line(
        at_us, f"{name}: comm={comm} pid={pid} prio={prio} target_cpu=000", cpu=cpu
    )


def switch(
    at_us: int, to: str = RT, *, before: str = LOAD, state: str = "R", cpu: int = 0
) -> str:
    (a, _, m), (b, _, n) = before.partition("-"), to.partition("-")
    body = (
        f"sched_switch: prev_comm={a} prev_pid={m} prev_prio={PRIORITIES[before]} "
        f"prev_state={state} ==> next_comm={b} next_pid={n} next_prio={PRIORITIES[to]}"
    )
    return line(at_us, body, cpu=cpu, task=before)


def left(at_us: int, state: str = "S", *, task: str = RT, cpu: int = 0) -> str:
    return switch(at_us, LOAD, before=task, state=state, cpu=cpu)


def chosen(trace: TextTrace, **asked: str | int) -> tuple[int, int, int]:
    """Return thread, begin and end in us of the wake-up that is chosen."""
    found = choose(trace, WakeupSelector(**asked)).wakeup  # type: ignore[arg-type]
    return found.pid, found.expiry_ns // US, found.wake_ns // US


def refusal(trace: TextTrace, **asked: str | int) -> str:
    with pytest.raises(NoWakeup) as caught:
        choose(trace, WakeupSelector(**asked))  # type: ignore[arg-type]
    return str(caught.value)


# --- waits ------------------------------------------------------------------------


def test_a_wait_is_from_a_threads_last_waking_to_the_switch_to_it() -> None:
    trace = opened(
        waking(10, LOW),
        waking(20, RT, cpu=1),
        waking(30, RT, cpu=1),
        switch(35, LOW, cpu=1),
        switch(40, RT, cpu=2),
        switch(50, RT, cpu=2),  # without a waking: it was preempted
        waking(60, RT),
    )

    assert (waits(trace) // [1, 1, US, US, 1, 1]).tolist() == [
        [77, 2, 30, 40, 9, 1],
        [88, 1, 10, 35, 120, 0],
    ]


def test_waits_of_threads_of_one_priority_are_kept_apart() -> None:
    trace = opened(waking(10, LOW), waking(20, LOAD), switch(30, LOAD), switch(40, LOW))

    assert (waits(trace)[:, [0, 2, 3]] // [1, US, US]).tolist() == [
        [88, 10, 40],
        [100, 20, 30],
    ]


def test_thread_numbers_above_16_bits_are_kept_apart() -> None:
    lines = waking(10, LOW), waking(20, LOAD), switch(30, LOAD), switch(40, LOW)
    other = 100 + (1 << 16)  # whose lower 16 bits are those of LOAD

    trace = opened(*(one.replace("=88", f"={other}") for one in lines))

    assert (waits(trace)[:, [0, 2, 3]] // [1, US, US]).tolist() == [
        [100, 20, 30],
        [other, 10, 40],
    ]


def test_idle_is_no_thread_that_waits() -> None:
    assert waits(opened(waking(1, "idle-0"), switch(2, "idle-0"))).tolist() == []


def test_without_waking_the_wakeup_counts_and_with_it_no_more() -> None:
    late = waking(20, name="sched_wakeup")
    ran = switch(30)

    assert waits(opened(late, ran))[:, 2].tolist() == [20 * US]
    assert waits(opened(waking(10), late, ran))[:, 2].tolist() == [10 * US]


@pytest.mark.parametrize(
    "lines",
    [
        [waking(10), waking(20)],
        [switch(10), switch(20)],
        [switch(10), waking(20)],
        [line(10, "cpu_idle: state=1 cpu_id=0")],
    ],
)
def test_without_a_waking_and_a_switch_nothing_can_be_explained(
    lines: list[str],
) -> None:
    assert len(waits(opened(*lines))) == 0
    assert refusal(opened(*lines)) == (
        "no thread is woken and then runs in this trace; record the events "
        "sched_waking (or sched_wakeup) and sched_switch"
    )


# --- the state before -------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ([left(10, "S")], State.SLEEPING),
        ([left(10, "D")], State.BLOCKED),
        ([left(10, "T")], State.STOPPED),
        ([left(10, "t")], State.STOPPED),
        ([left(10, "R")], State.RUNNABLE),
        ([left(10, "R+")], State.RUNNABLE),
        ([left(10, "S+")], State.SLEEPING),
        ([switch(10)], State.RUNNING),
        ([waking(10)], State.RUNNABLE),
        ([left(5), waking(10)], State.RUNNABLE),
        ([left(5), waking(10), switch(15)], State.RUNNING),
        ([waking(5), switch(10), left(15)], State.SLEEPING),
        ([waking(5, cpu=1), left(10)], State.SLEEPING),
        ([waking(10, cpu=1), left(5)], State.RUNNABLE),
        ([switch(10, LOW), waking(12, LOW)], State.UNKNOWN),
        ([left(99), switch(100)], State.SLEEPING),  # what is at the time is too late
        ([left(99), waking(101)], State.SLEEPING),
    ],
)
def test_the_state_of_a_thread_is_told_by_its_last_event(
    lines: list[str], state: State
) -> None:
    assert state_before(opened(*lines), 77, 100 * US) is state


@pytest.mark.parametrize(
    ("slept_us", "known"), [(10, False), (29, False), (40, True), (60, True)]
)
def test_a_loss_after_its_last_event_leaves_a_threads_state_unknown(
    slept_us: int, known: bool
) -> None:
    lines = [
        *([left(slept_us)] if slept_us < 20 else []),
        line(20, "cpu_idle: state=1 cpu_id=0"),
        *([left(slept_us)] if 20 < slept_us < 30 else []),
        "CPU:0 [LOST 3 EVENTS]",
        line(31, "cpu_idle: state=1 cpu_id=0"),
        *([left(slept_us)] if slept_us > 30 else []),
    ]
    wanted = State.SLEEPING if known else State.UNKNOWN

    assert state_before(opened(*lines), 77, 100 * US) is wanted


def test_a_loss_that_comes_later_hides_nothing() -> None:
    lines = [
        left(10),
        line(100, "cpu_idle: state=1 cpu_id=0"),
        "CPU:0 [LOST 3 EVENTS]",
        line(200, "cpu_idle: state=1 cpu_id=0"),
    ]

    assert state_before(opened(*lines), 77, 100 * US) is State.SLEEPING
    assert state_before(opened(*lines), 77, 101 * US) is State.UNKNOWN


def test_the_events_from_1_ms_before_to_200_us_after_are_looked_at() -> None:
    marks = (8_999, 9_000, 9_001, 10_200, 10_201)
    trace = opened(
        left(100),
        *(line(at, "cpu_idle: state=1 cpu_id=0") for at in marks),
    )
    wakeup = TracedWakeup(77, "rt", 0, expiry_ns=10_000 * US, wake_ns=10_000 * US)
    window, found = window_around(trace, wakeup)

    assert [event.at_ns // US for event in window.events] == [9_000, 9_001, 10_200]
    assert (window.begin_ns, window.end_ns) == (9_000 * US, 10_200 * US)
    assert found == replace(wakeup, asleep=State.SLEEPING)
    known = replace(wakeup, asleep=State.BLOCKED)
    assert window_around(trace, known)[1] == known


# --- the one that is chosen -------------------------------------------------------

TWO = (
    *(waking(10), switch(40)),
    *(waking(100), switch(150)),
    *(waking(200, LOW), switch(900, LOW)),
    *(waking(2 * SECOND_US), switch(2 * SECOND_US + 20)),
)


def test_the_longest_wait_of_a_real_time_thread_is_chosen() -> None:
    found = choose(opened(*TWO), WakeupSelector())

    assert found.how == "worst wake-up of a real-time thread"
    assert found.wakeup == TracedWakeup(
        *(77, "rt", 0, 100 * US, 150 * US), programmed=False, to_the_switch=True
    )


@pytest.mark.parametrize("thread", ["low", "88"])
def test_a_thread_is_named_by_its_name_or_its_number(thread: str) -> None:
    found = choose(opened(*TWO), WakeupSelector(thread=thread))

    assert found.how == f"worst wake-up of {thread}"
    assert (found.wakeup.comm, found.wakeup.latency_ns) == ("low", 700 * US)


def test_a_thread_that_became_real_time_is_judged_from_then_on() -> None:
    before = waking(10).replace("prio=9", "prio=120")
    ran = switch(90).replace("next_prio=9", "next_prio=120")
    lines = (before, ran, waking(100), switch(105))

    assert chosen(opened(*lines), thread="rt") == (77, 100, 105)
    assert chosen(opened(*lines), thread="rt", at_ns=50 * US) == (77, 10, 90)


def test_priority_99_below_100_is_real_time_and_100_is_none() -> None:
    def at(prio: int) -> TextTrace:
        woken = waking(10).replace("prio=9", f"prio={prio}")
        return opened(woken, switch(20).replace("next_prio=9", f"next_prio={prio}"))

    assert chosen(at(99)) == (77, 10, 20)
    assert refusal(at(100)) == (
        "no real-time thread wakes up in this trace; name one with --thread"
    )
    assert chosen(at(100), thread="rt") == (77, 10, 20)


@pytest.mark.parametrize(
    ("at_us", "wanted"),
    [
        (0, (77, 10, 40)),
        (25, (77, 10, 40)),
        (60, (77, 10, 40)),
        (80, (77, 100, 150)),
        (120, (77, 100, 150)),
        (SECOND_US, (77, 100, 150)),
        (SECOND_US + 150, (77, 2 * SECOND_US, 2 * SECOND_US + 20)),
        (3 * SECOND_US + 20, (77, 2 * SECOND_US, 2 * SECOND_US + 20)),
    ],
)
def test_a_time_chooses_the_wake_up_around_it_or_the_nearest(
    at_us: int, wanted: tuple[int, int, int]
) -> None:
    trace = opened(*TWO)

    assert chosen(trace, at_ns=at_us * US) == wanted
    found = choose(trace, WakeupSelector(at_ns=at_us * US))
    assert found.how == "wake-up at this time of a real-time thread"


def test_a_time_more_than_a_second_away_is_refused_with_the_times_there_are() -> None:
    assert refusal(opened(*TWO), at_ns=3 * SECOND_US * US + 20 * US + 1) == (
        "no such wake-up within 1 s of 3.000020; the first is at 0.000010, the last "
        "at 2.000020"
    )
    assert refusal(opened(*TWO), thread="nobody") == (
        "no thread nobody wakes up in this trace"
    )
    assert refusal(opened(*TWO), thread="5") == "no thread 5 wakes up in this trace"


def test_a_thread_has_its_name_from_either_event_of_its_waking() -> None:
    late = opened(waking(10, name="sched_wakeup"), switch(40))

    assert choose(late, WakeupSelector(thread="rt")).wakeup.comm == "rt"


# --- timers -----------------------------------------------------------------------


def armed(at_us: int, due_us: int, *, timer: str = "beef", cpu: int = 0) -> str:
    due = due_us * US
    body = f"hrtimer=0000{timer} function=f expires={due} softexpires={due} mode=ABS"
    return line(at_us, f"hrtimer_start: {body}", cpu=cpu)


def expired(
    at_us: int, *, now_us: int | None = None, timer: str = "beef", cpu: int = 0
) -> str:
    now = (at_us if now_us is None else now_us) * US
    body = f"hrtimer=0000{timer} function=f now={now}"
    return line(at_us, f"hrtimer_expire_entry: {body}", cpu=cpu)


def done(at_us: int, *, timer: str = "beef", cpu: int = 0) -> str:
    return line(at_us, f"hrtimer_expire_exit: hrtimer=0000{timer}", cpu=cpu)


def begin_of(*lines: str) -> int | None:
    """Return when the timer of the wake-up was due, in us; None if none is known."""
    found = choose(opened(*lines, switch(500)), WakeupSelector(thread="rt")).wakeup
    return found.expiry_ns // US if found.programmed else None


def test_a_wake_up_begins_when_the_timer_that_woke_it_was_due() -> None:
    assert begin_of(armed(50, 90), expired(100), waking(102), done(104)) == 90
    assert begin_of(armed(50, 90), expired(100), waking(104), done(104)) == 90
    # It was started again: the last start before it expired counts.
    again = (armed(40, 60), armed(50, 90), armed(200, 400))
    assert begin_of(*again, expired(100), waking(102), done(104)) == 90
    # It is due on the timer's own clock, which may be another's.
    away = 10 * SECOND_US
    other = (armed(50, 90 + away), expired(100, now_us=103 + away))
    assert begin_of(*other, waking(102), done(104)) == 87


@pytest.mark.parametrize(
    ("now_us", "begin_us"), [(10_000, 9_990), (9_999, 19_991), (30_000, 9_990)]
)
def test_a_clock_within_10_ms_of_the_timers_is_its_own(
    now_us: int, begin_us: int
) -> None:
    """On another one it was as late as the timer itself says."""
    lines = (armed(50, 9_990), expired(20_000, now_us=now_us), waking(20_002))
    found = choose(
        opened(*lines, done(20_004), switch(20_010)), WakeupSelector(thread="rt")
    )

    assert found.wakeup.expiry_ns == begin_us * US


@pytest.mark.parametrize(
    "lines",
    [
        [armed(50, 90), expired(100), done(101), waking(102), done(104)],
        [armed(50, 90), expired(100), waking(102, cpu=1), done(104)],
        [armed(50, 90, timer="cafe"), expired(100), waking(102), done(104)],
        [armed(50, 103), expired(100), waking(102), done(104)],
        [expired(100), waking(102), done(104), armed(150, 90)],
        [armed(50, 90), waking(95), expired(100), done(104)],
        [armed(50, 90), waking(95)],
        [waking(95), expired(100), done(104)],
        [armed(50, 90), expired(100), waking(121)],
    ],
)
def test_a_timer_that_did_not_wake_the_thread_is_not_its_own(lines: list[str]) -> None:
    assert begin_of(*lines) is None


def test_where_no_event_ends_a_callback_it_wakes_within_20_us() -> None:
    assert begin_of(armed(50, 90), expired(100), waking(120)) == 90


def test_an_earlier_callback_that_has_ended_does_not_end_a_later_one() -> None:
    first = (armed(10, 20), expired(30), done(35))

    assert begin_of(*first, armed(50, 90), expired(100), waking(102), done(104)) == 90
    assert begin_of(*first, armed(50, 90), expired(100), waking(102)) == 90


def test_a_timer_of_another_cpu_wakes_its_own_thread() -> None:
    other = (
        *(armed(50, 80, cpu=1), expired(100, cpu=1)),
        *(waking(103, LOW, cpu=1), done(105, cpu=1)),
    )
    lines = (*other, armed(60, 95, timer="cafe"), expired(101, timer="cafe"))

    assert begin_of(*lines, waking(102), done(104, timer="cafe")) == 95


def test_threads_that_a_timer_wakes_go_before_those_that_others_wake() -> None:
    lines = (
        *(waking(10, "kworker-9"), switch(400, "kworker-9")),
        *(armed(450, 490), expired(500), waking(502), done(503), switch(510)),
    )

    assert chosen(opened(*lines)) == (77, 490, 510)
    assert chosen(opened(*lines), thread="kworker") == (9, 10, 400)
    assert chosen(opened(*lines), at_ns=300 * US) == (9, 10, 400)


# --- marks ------------------------------------------------------------------------


def timerlat(at_us: int, late_us: int, context: str = "thread", cpu: int = 0) -> str:
    text = f"#7 context {context} timer_latency {late_us * US} ns"
    return line(at_us, text, cpu=cpu, task=f"timerlat/{cpu}-5{cpu}")


def mark(at_us: int, text: str, task: str = "cyclictest-60") -> str:
    return line(at_us, f"tracing_mark_write: {text}", task=task)


def test_timerlats_own_lines_say_which_wake_up_was_the_worst() -> None:
    trace = opened(
        *TWO,
        timerlat(5_000, 900, "irq"),
        timerlat(5_100, 30),
        timerlat(5_200, 70, "user"),
        timerlat(5_300, 70),
        timerlat(5_400, 60, cpu=1),
    )
    found = choose(trace, WakeupSelector())

    assert found.how == "worst wake-up of timerlat"
    assert found.wakeup == TracedWakeup(
        50, "timerlat/0", 0, expiry_ns=5_130 * US, wake_ns=5_200 * US
    )
    assert chosen(trace, thread="timerlat/1") == (51, 5_340, 5_400)
    assert chosen(trace, thread="51") == (51, 5_340, 5_400)
    # A thread that wrote no mark, or a time, is looked for among the waits.
    assert chosen(trace, thread="rt") == (77, 100, 150)
    assert chosen(trace, at_ns=5_200 * US)[0] == 77


def test_lines_of_timerlats_interrupts_alone_are_no_marks() -> None:
    assert chosen(opened(*TWO, timerlat(5_000, 900, "irq"))) == (77, 100, 150)


def test_cyclictests_mark_says_how_late_it_was() -> None:
    trace = opened(
        *TWO,
        mark(5_000, "hit latency threshold (312 > 300)"),
        mark(6_000, "hit latency threshold (4 > 300)"),
        mark(7_000, "hit latency threshold (x > 300)"),
        mark(8_000, "something else"),
    )
    found = choose(trace, WakeupSelector())

    assert found.how == "mark of cyclictest --tracemark"
    assert found.wakeup == TracedWakeup(
        60, "cyclictest", 0, expiry_ns=4_688 * US, wake_ns=5_000 * US
    )


@pytest.mark.parametrize("thread", ["9" * 5_000, "\u00b2", "\u0663", "9" * 39, "-1"])
def test_a_thread_that_is_no_number_is_a_name(thread: str) -> None:
    assert refusal(opened(*TWO), thread=thread).startswith(f"no thread {thread[:30]}")
