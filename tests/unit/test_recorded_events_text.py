"""Text of ftrace, in the forms that kernels and trace-cmd write it in."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.events.window import WakeupSelector, choose, window_around
from rtscope.explain.model import Cause
from rtscope.host.errors import RecordError
from rtscope.record.events.events import Event, Flag
from rtscope.record.events.text import TextTrace, text_trace


def opened(text: str) -> TextTrace:
    return text_trace(memoryview(text.encode()), name="trace.txt")


def events(text: str) -> list[Event]:
    trace = opened(text)
    return [
        event
        for rows in trace.rows
        for event in trace.events(rows, np.arange(len(rows.at_ns)))
    ]


HEAD = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 4/4   #P:2
#
#                                _-----=> irqs-off/BH-disabled
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""
SWITCHED: Mapping[str, int | str] = {
    "prev_comm": "Web Content",
    "prev_pid": 100,
    "prev_prio": 120,
    "prev_state": "R",
    "next_comm": "rtscope/1",
    "next_pid": 77,
    "next_prio": 0,
}
FIELDS = (
    "prev_comm=Web Content prev_pid=100 prev_prio=120 prev_state=R ==> "
    "next_comm=rtscope/1 next_pid=77 next_prio=0"
)
PLUGIN = "Web Content:100 [120] R ==> rtscope/1:77 [0]"


US, NS, RELATIVE = 12_345_678_000, 12_345_678_901, 42_000


@pytest.mark.parametrize(
    ("head", "body", "at_ns"),
    [
        (" Web Content-100     [001] d.h2.   12.345678:", FIELDS, US),
        (" Web Content-100     [001] d.h2    12.345678:", FIELDS, US),
        (" Web Content-100   (    99) [001] d.h2. 12.345678:", FIELDS, US),
        (" Web Content-100     [001] d..h2.. 12.345678:", FIELDS, US),
        ("Web Content-100     1d.h2.   42us+:", FIELDS, RELATIVE),
        ("Web Content-100     1d.h2.   42us :", FIELDS, RELATIVE),
        ("Web Content-100   [001] 12.345678901:", PLUGIN, NS),
        ("  Web Content-100     1d.h2. 12.345678:", PLUGIN, US),
    ],
)
def test_a_switch_is_the_same_in_every_form(head: str, body: str, at_ns: int) -> None:
    (event,) = events(f"{HEAD}{head} sched_switch: {body}\n")

    assert (event.at_ns, event.cpu, event.name) == (at_ns, 1, "sched_switch")
    assert (event.pid, event.comm) == (100, "Web Content")
    assert event.fields == SWITCHED
    if event.flags is not None:
        assert event.flags == Flag.IRQS_OFF | Flag.HARDIRQ
        assert event.preempt_depth == 2


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (
            "softirq_entry: vec=1 [action=TIMER]",
            {"vec": 1, "action": "TIMER"},
        ),
        ("irq_handler_entry: irq=41 name=eth0-rx", {"irq": 41, "name": "eth0-rx"}),
        (
            "hrtimer_expire_entry: hrtimer=00000000a1b2c3d4 "
            "function=tick_sched_timer/0x0 now=123",
            {"hrtimer": "00000000a1b2c3d4", "function": "tick_sched_timer", "now": 123},
        ),
        (
            "irq_disable: caller=free_pages+0x12/0x40 parent=exit_mmap+0x1/0x2",
            {"caller": "free_pages", "parent": "exit_mmap"},
        ),
        (
            "csd_function_entry: func=flush_tlb_func, csd=00000000abcdef01",
            {"func": "flush_tlb_func", "csd": "00000000abcdef01"},
        ),
        ("ipi_entry: (Rescheduling interrupts)", {"reason": "Rescheduling interrupts"}),
        (
            "sched_wakeup: rtscope/1:77 [0] CPU:001",
            {"comm": "rtscope/1", "pid": 77, "prio": 0, "target_cpu": 1},
        ),
        (
            "sched_wakeup: rtscope/1:77 [0] success=1 CPU:001",
            {"comm": "rtscope/1", "pid": 77, "prio": 0, "target_cpu": 1},
        ),
        (
            "sched_waking: comm=a b pid=77 prio=-1 target_cpu=001",
            {"comm": "a b", "pid": 77, "prio": -1, "target_cpu": 1},
        ),
        ("tracing_mark_write: hello = 1", {"buf": "hello = 1"}),
        (
            "#5678  context thread timer_latency   12345 ns",
            {"seqnum": 5678, "context": "thread", "timer_latency": 12345},
        ),
    ],
)
def test_fields_are_read_from_what_was_printed(
    body: str, fields: Mapping[str, int | str]
) -> None:
    (event,) = events(f"  <idle>-0       [000] d.h1.  1.000001: {body}\n")

    assert event.fields == fields
    assert event.comm == "swapper"


def test_a_stack_belongs_to_the_line_before_it() -> None:
    text = (
        " load-100 [000] d.h3. 1.000001: kernel_stack: <stack trace>\n"
        " => hrtimer_wakeup\n => asm_sysvec_apic_timer_interrupt+0x1a/0x20\n"
        " => free_pages (ffffffff81000000)\n"
        " load-100 [000] d.h3. 1.000002: local_timer_exit: vector=236\n"
    )
    stack, _ = events(text)

    assert stack.fields["stack"] == (
        "hrtimer_wakeup < asm_sysvec_apic_timer_interrupt < free_pages"
    )


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("CPU:0 [LOST 17 EVENTS]", 17),
        ("CPU:0 [17 EVENTS DROPPED]", 17),
        ("CPU:0 [EVENTS DROPPED]", None),
    ],
)
def test_lost_events_are_noted_where_the_text_tells_of_them(
    line: str, count: int | None
) -> None:
    mark = "load-100 [000] d.... {}.000000: cpu_idle: state=1 cpu_id=0\n"
    trace = opened(f"{mark.format(1)}{line}\n{mark.format(2)}")

    (loss,) = trace.losses
    assert (loss.after_ns, loss.before_ns) == (10**9, 2 * 10**9)
    assert loss.count == count


def test_files_of_cpus_one_after_another_are_sorted_by_time() -> None:
    mark = "load-100 [00{}] d.... {}.000000: cpu_idle: state=1 cpu_id=0\n"
    trace = opened(
        "".join(mark.format(cpu, at) for cpu, at in ((0, 5), (1, 1), (0, 2)))
    )

    assert [rows.at_ns.tolist() for rows in trace.rows] == [
        [2 * 10**9, 5 * 10**9],
        [10**9],
    ]


@pytest.mark.parametrize("text", ["hello\n", "a,b,c\n1,2,3\n", "\n" * 10])
def test_text_that_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(RecordError, match="neither a trace"):
        opened(text)


@given(st.binary(min_size=1, max_size=400))
def test_any_bytes_are_a_trace_or_refused(content: bytes) -> None:
    try:
        trace = text_trace(memoryview(content), name="x")
    except RecordError:
        return
    for rows in trace.rows:
        trace.events(rows, np.arange(len(rows.at_ns)))


TEXT = """\
       rtscope/0-77   [000] d..2.   10.000100: sched_switch: prev_comm=rtscope/0 \
prev_pid=77 prev_prio=49 prev_state=S ==> next_comm=hog next_pid=200 next_prio=19
             hog-200  [000] d.h..   10.000501: local_timer_entry: vector=236
             hog-200  [000] d.h1.   10.000502: sched_waking: comm=rtscope/0 pid=77 \
prio=49 target_cpu=000
             hog-200  [000] d.h1.   10.000503: sched_wakeup: comm=rtscope/0 pid=77 \
prio=49 target_cpu=000
             hog-200  [000] d.h..   10.000506: local_timer_exit: vector=236
             hog-200  [000] d..2.   10.004506: sched_switch: prev_comm=hog \
prev_pid=200 prev_prio=19 prev_state=S ==> next_comm=rtscope/0 next_pid=77 next_prio=49
"""


def test_a_wake_up_of_a_text_is_found_and_explained() -> None:
    trace = opened(TEXT)
    chosen = choose(trace, WakeupSelector())
    window, wakeup = window_around(trace, chosen.wakeup)
    found = explain_events(window, wakeup, machine=MachineTraits())

    assert chosen.how == "worst wake-up of a real-time thread"
    assert found.latency_ns == 4_004_000
    assert found.dominant is not None
    assert found.dominant.cause is Cause.OTHER_TASK
    assert found.dominant.name == "hog (real-time, priority 80)"
    assert any("the expiry of the timer is unknown" in note for note in found.notes)
    assert any("1000 ns" in note for note in found.notes)


@pytest.mark.parametrize("piece", ["a", " ", "\n", "=", "a=", "- [0] "])
def test_long_nonsense_is_refused_at_once(piece: str) -> None:
    with pytest.raises(RecordError):
        opened(piece * 300_000)


def test_a_line_of_any_length_is_one_event() -> None:
    (event,) = events(f"a-1 [000] d.... 1.000001: x: {'b' * 300_000}\n")

    assert event.name == "x"


def with_timer(*, clock_ahead_us: int) -> str:
    """Return a wake-up whose timer was due at 10.000400 s, and expired 100 us late."""

    def at(us: int) -> str:
        return f"10.{us + clock_ahead_us:06}"

    return f"""\
       rtscope/0-77   [000] d..1.   {at(50)}: hrtimer_start: hrtimer=00000000deadbeef \
function=hrtimer_wakeup expires=10000400000 softexpires=10000400000 mode=ABS
       rtscope/0-77   [000] d..2.   {at(60)}: sched_switch: prev_comm=rtscope/0 \
prev_pid=77 prev_prio=0 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
          <idle>-0    [000] d.h1.   {at(500)}: local_timer_entry: vector=236
          <idle>-0    [000] d.h1.   {at(501)}: hrtimer_expire_entry: \
hrtimer=00000000deadbeef function=hrtimer_wakeup now=10000500000
          <idle>-0    [000] d.h2.   {at(502)}: sched_waking: comm=rtscope/0 pid=77 \
prio=0 target_cpu=000
          <idle>-0    [000] dNh1.   {at(504)}: hrtimer_expire_exit: \
hrtimer=00000000deadbeef
          <idle>-0    [000] dNh1.   {at(505)}: local_timer_exit: vector=236
          <idle>-0    [000] d..2.   {at(508)}: sched_switch: prev_comm=swapper/0 \
prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=rtscope/0 next_pid=77 next_prio=0
"""


@pytest.mark.parametrize(
    ("ahead_us", "late_us"),
    [
        (0, 108),  # the measuring clock: the expiry is that of hrtimer_start
        (900_000, 107),  # another: as late as `now` was, when the callback began
    ],
)
def test_the_expiry_of_the_timer_is_found_on_any_clock(
    ahead_us: int, late_us: int
) -> None:
    trace = opened(with_timer(clock_ahead_us=ahead_us))
    chosen = choose(trace, WakeupSelector())
    window, wakeup = window_around(trace, chosen.wakeup)
    found = explain_events(window, wakeup, machine=MachineTraits())

    assert wakeup.programmed
    assert found.latency_ns == 1000 * late_us
    assert found.segments[0].cause is Cause.IDLE_EXIT


def test_a_thread_that_another_wakes_has_no_timer_that_was_due() -> None:
    """A callback that had ended before it was woken is not taken for its own."""
    woken_by_load = (
        "load-100 [000] d..2. 10.000600: sched_waking: comm=migration/0 pid=9 prio=0 "
        "target_cpu=000\n"
        "load-100 [000] d..2. 10.003600: sched_switch: prev_comm=load prev_pid=100 "
        "prev_prio=120 prev_state=R ==> next_comm=migration/0 next_pid=9 next_prio=0\n"
    )
    trace = opened(with_timer(clock_ahead_us=0) + woken_by_load)

    named = choose(trace, WakeupSelector(thread="migration/0"))
    assert not named.wakeup.programmed
    assert named.wakeup.latency_ns == 3_000_000
    assert choose(trace, WakeupSelector()).wakeup.comm == "rtscope/0"
