"""From events: a priority is that of the time for which it is used."""

import pytest

from fakes.events import (
    Who,
    explained_text,
    of,
    text_line,
    text_switch,
    text_waking,
)
from rtscope.explain.events.histories import Histories, histories_of
from rtscope.explain.events.window import WakeupSelector, choose, window_around
from rtscope.explain.model import Cause, Confidence, Explanation, Segment
from rtscope.explain.words import sentence
from rtscope.record.events.events import Window, window_of
from rtscope.record.events.text import text_trace

CTL: Who = ("ctl", 900, 4)
IDLE: Who = ("swapper/1", 0, 120)
CALL = "sched_setattr: pid: 0x0000004d, uattr: 0x7ffe01, flags: 0x00000000"


def worker(priority: int) -> Who:
    return ("kworker/1:1", 77, priority)


def behind(before: int, at_end: int, later: int, *between: str) -> Explanation:
    """
    Explain 78 us behind a worker.

    It has the first priority when it gets the CPU, 1 ms before, the second when it
    gives the CPU to the thread, and the third at its next run.
    """
    return explained_text(
        text_switch(5, IDLE, CTL, state="R"),
        text_switch(25, CTL, worker(before)),
        text_waking(1102, worker(before), CTL),
        *between,
        text_switch(1180, worker(at_end), CTL, state="R+"),
        text_switch(1200, CTL, worker(later)),
        text_switch(1300, worker(later), IDLE),
    )


def dominant(found: Explanation) -> Segment:
    assert found.dominant is not None
    return found.dominant


def histories(*lines: str) -> Histories:
    trace = text_trace(memoryview("\n".join(lines).encode()), name="trace.txt")
    return histories_of(window_of(trace, 0, 1 << 60))


def at(us: int) -> int:
    return 500_000_000_000 + 1_000 * us


# --- of the task that runs --------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "later", "name"),
    [
        (-1, 120, "kworker/1:1 (SCHED_DEADLINE at that time)"),
        (0, 120, "kworker/1:1 (real-time, priority 99 at that time)"),
        (4, 98, "kworker/1:1 (real-time, priority 95 at that time)"),
        (1, 139, "kworker/1:1 (real-time, priority 98 at that time)"),
        (-1, -1, "kworker/1:1 (SCHED_DEADLINE)"),
        (-1, 0, "kworker/1:1 (SCHED_DEADLINE at that time)"),
    ],
)
def test_a_task_has_the_priority_of_when_it_ran_not_of_its_next_run(
    then: int, later: int, name: str
) -> None:
    found = behind(then, then, later)

    assert dominant(found).cause is Cause.OTHER_TASK
    assert dominant(found).confidence is Confidence.SEEN
    assert dominant(found).name == name
    assert of(found, Cause.OTHER_TASK) == 76_000
    assert f"Another task, {name}: 76.0 µs" in sentence(found)
    assert found.broken == ()


def test_an_earlier_priority_does_not_excuse_a_task_that_is_ordinary_now() -> None:
    found = explained_text(
        text_switch(5, IDLE, worker(-1), state="R"),
        text_switch(600, worker(-1), CTL),
        text_switch(800, CTL, worker(120)),
        text_waking(1102, worker(120), CTL),
        text_switch(1180, worker(120), CTL, state="R+"),
    )

    assert dominant(found).cause is Cause.UNKNOWN
    assert "kworker/1:1" in dominant(found).name


@pytest.mark.parametrize(
    ("before", "at_end", "old", "new"),
    [
        (120, -1, "not real-time, nice 0", "SCHED_DEADLINE"),
        (120, 0, "not real-time, nice 0", "real-time, priority 99"),
        (-1, 120, "SCHED_DEADLINE", "not real-time, nice 0"),
        (2, 130, "real-time, priority 97", "not real-time, nice 10"),
        (50, 1, "real-time, priority 49", "real-time, priority 98"),
    ],
)
def test_a_change_that_no_event_tells_is_told_with_its_bounds(
    before: int, at_end: int, old: str, new: str
) -> None:
    found = behind(before, at_end, at_end)

    assert dominant(found).cause is Cause.OTHER_TASK
    assert dominant(found).confidence is Confidence.INFERRED
    told = f"kworker/1:1-77 changed from {old} to {new} between -1,077.000 us and +78."
    assert any(told in line for line in dominant(found).evidence)
    assert found.broken == ()


def test_a_system_call_that_changes_a_priority_tells_when() -> None:
    chrt = ("chrt", 50, 120)
    call = text_line(1150, chrt, f"sys_enter_{CALL}", cpu=0)
    facts = histories(
        text_switch(5, IDLE, worker(120), state="R"),
        call,
        text_switch(1180, worker(1), CTL, state="R+"),
    )

    assert facts.at(77, at(1149)).values == (120,)
    assert facts.at(77, at(1151)).values == (1,)


# --- of the thread itself ---------------------------------------------------------


def test_a_thread_that_becomes_real_time_while_it_waits_was_ordinary_before() -> None:
    late = (*CTL[:2], 120)
    found = explained_text(
        text_switch(5, CTL, worker(120)),
        text_waking(1102, worker(120), late),
        text_switch(1180, worker(120), CTL, state="R+"),
    )

    assert dominant(found).cause is Cause.NOT_REALTIME
    assert dominant(found).confidence is Confidence.INFERRED
    assert any("the thread changed from" in line for line in dominant(found).evidence)


def test_what_a_thread_was_in_an_earlier_wait_does_not_count_in_this_one() -> None:
    ordinary = (*CTL[:2], 120)
    found = explained_text(
        text_waking(10, worker(50), ordinary),
        text_switch(300, worker(50), ordinary),
        text_switch(600, CTL, worker(50)),
        text_waking(1102, worker(50), CTL),
        text_switch(1180, worker(50), CTL, state="R+"),
        at_us=1150,
    )

    assert dominant(found).cause is Cause.UNKNOWN
    assert not any("any other thread may delay it" in note for note in found.notes)


def test_the_nice_value_is_that_of_the_wait() -> None:
    def own(priority: int) -> Who:
        return ("ctl", 900, priority)

    found = explained_text(
        text_waking(10, worker(120), own(110)),
        text_switch(300, worker(120), own(110)),
        text_switch(600, own(110), worker(125)),
        text_waking(1102, worker(125), own(139)),
        text_switch(1480, worker(125), own(139), state="R+"),
        text_switch(1500, own(139), worker(120)),
        at_us=1200,
    )

    assert dominant(found).name == "kworker/1:1 (not real-time, nice 5 at that time)"
    assert "nice 19 at that time" in dominant(found).evidence[0]


# --- who has a PID ----------------------------------------------------------------


def test_a_pid_that_another_thread_gets_has_another_history() -> None:
    old, new = ("stress", 55, -1), ("make", 55, 120)
    facts = histories(
        text_switch(5, IDLE, old, state="R"),
        text_switch(100, old, IDLE, state="X"),
        text_line(
            200, IDLE, "sched_process_fork: comm=sh pid=1 child_comm=sh child_pid=55"
        ),
        text_line(
            210, IDLE, "sched_wakeup_new: comm=sh pid=55 prio=120 target_cpu=001"
        ),
        text_switch(300, IDLE, new, state="R"),
    )

    assert facts.at(55, at(50)).values == (-1,)
    assert facts.at(55, at(350)).values == (120,)
    assert not facts.at(55, at(350)).others
    assert facts.name(55, at(50)) == "stress"
    assert facts.name(55, at(350)) == "make"


def test_the_task_is_named_as_it_was_called_when_it_ran() -> None:
    found = explained_text(
        text_switch(5, IDLE, CTL, state="R"),
        text_switch(25, CTL, ("sh", 77, 1)),
        text_waking(1102, ("sh", 77, 1), CTL),
        text_switch(1180, ("sh", 77, 1), CTL, state="R+"),
        text_switch(1200, CTL, ("hackbench", 77, 1)),
    )

    assert dominant(found).name == "sh (real-time, priority 98)"


def test_nothing_is_known_of_a_thread_without_events() -> None:
    window = Window(0, 1, (), (), frozenset(), {}, {})

    assert histories_of(window).at(7, 0).values == ()
    assert histories_of(window).at(7, 0).words == "of unknown priority"
    assert histories_of(window).name(7, 0) == ""


def test_a_thread_that_is_only_seen_to_leave_has_the_priority_it_left_with() -> None:
    facts = histories(text_switch(25, CTL, worker(120)))

    assert facts.at(900, at(0)).values == (4,)
    assert facts.at(77, at(0)).values == (120,)


def test_a_task_that_executes_another_program_is_called_so_from_then_on() -> None:
    sh, program = ("sh", 77, 1), ("stress-ng", 77, 1)
    path = "sched_process_exec: filename=/usr/bin/stress-ng pid=77 old_pid=77"
    found = explained_text(
        text_switch(5, IDLE, CTL, state="R"),
        text_switch(25, CTL, sh),
        text_line(500, sh, path),
        text_waking(1102, program, CTL),
        text_switch(1180, program, CTL, state="R+"),
    )

    assert dominant(found).name == "stress-ng (real-time, priority 98)"


RENAMED = "task_rename: pid=77 oldcomm=sh newcomm=grinder oom_score_adj=0"


@pytest.mark.parametrize(("by", "cpu"), [(("sh", 77, 1), 1), (("admin", 9, 120), 0)])
def test_a_name_that_a_task_gets_is_its_own_from_then_on(by: Who, cpu: int) -> None:
    """Also from another one, on whichever CPU: by /proc/PID/comm."""
    sh, grinder = ("sh", 77, 1), ("grinder", 77, 1)
    found = explained_text(
        text_switch(5, IDLE, CTL, state="R"),
        text_switch(25, CTL, sh),
        text_line(30, by, RENAMED, cpu=cpu),
        text_waking(1102, grinder, CTL),
        text_switch(1180, grinder, CTL, state="R+"),
    )

    assert dominant(found).name == "grinder (real-time, priority 98)"


def test_a_thread_is_found_by_the_name_that_it_has_when_it_wakes_up() -> None:
    old, hog = ("python", 100, 1), ("hog", 77, 1)
    lines = [
        *(text_switch(5, IDLE, old), text_switch(25, old, IDLE)),
        *(text_waking(40, IDLE, old), text_switch(50, IDLE, old)),
        text_line(60, old, "task_rename: pid=100 oldcomm=python newcomm=ctl"),
        *(text_switch(70, ("ctl", 100, 1), hog), text_waking(90, hog, ("ctl", 100, 1))),
        text_switch(1180, hog, ("ctl", 100, 1), state="R+"),
    ]

    for lacks in ("", "task_rename"):
        told = [line for line in lines if not lacks or lacks not in line]
        found = explained_text(*told, thread="ctl")
        assert found.latency_ns == 1_090_000
    assert explained_text(*lines, thread="python").latency_ns == 10_000


def test_a_marks_name_is_that_of_its_time_and_not_the_traces_last() -> None:
    """The kernel writes the last name that it knows of a PID before each event."""
    old, now, last = ("python", 100, 1), ("ctl", 100, 1), ("gone", 100, 1)
    hit = "print: tracing_mark_write: hit latency threshold (90 > 50)"
    lines = [
        text_switch(5, IDLE, old),
        text_line(60, last, "task_rename: pid=100 oldcomm=python newcomm=ctl"),
        text_switch(70, now, IDLE),
        text_switch(80, IDLE, now),
        text_line(100, last, hit),
    ]
    trace = text_trace(memoryview("\n".join(lines).encode()), name="trace.txt")

    chosen = choose(trace, WakeupSelector(thread="ctl")).wakeup
    around, _ = window_around(trace, chosen)

    assert chosen.comm == "ctl"
    assert [(one.at_ns, one.comm) for one in around.events if one.pid == 100] == [
        (at(60), "ctl"),
        (at(70), "ctl"),
        (at(100), "ctl"),
    ]


def test_a_name_that_changed_without_an_event_is_told_with_both() -> None:
    found = explained_text(
        text_switch(5, IDLE, CTL, state="R"),
        text_switch(25, CTL, ("sh", 77, 1)),
        text_waking(1102, ("sh", 77, 1), CTL),
        text_switch(1180, ("stress-ng", 77, 1), CTL, state="R+"),
    )

    assert dominant(found).name == "sh (real-time, priority 98)"
    told = "at the end of its run it was called stress-ng"
    assert told in dominant(found).evidence[0]


def test_a_name_that_is_seen_later_is_told_as_such() -> None:
    found = explained_text(
        text_switch(5, IDLE, CTL, state="R"),
        text_switch(25, CTL, ("python", 77, 1)),
        text_waking(1102, ("python", 77, 1), CTL),
        text_switch(1180, ("python", 77, 1), CTL, state="R+"),
        text_switch(1190, CTL, ("culprit", 77, 1)),
    )

    assert dominant(found).name == "python (real-time, priority 98)"
    assert "; later it was called culprit" in dominant(found).evidence[0]
