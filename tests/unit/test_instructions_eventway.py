"""The way of an event to the thread that waits: who carried it, what took time."""

from dataclasses import replace

import pytest

from fakes.paths import ASLEEP, Step, Task, section, symbols
from fakes.wakeuppaths import NAMES
from rtscope.explain.carrying import UNKNOWN_WAY
from rtscope.explain.instructions.carriers import Search
from rtscope.explain.instructions.eventway import explain_event, explainer_of
from rtscope.explain.instructions.path import all_cpus
from rtscope.explain.model import Cause, Explanation, Part, Segment, Since
from rtscope.explain.words import sentence
from rtscope.record.instructions.section import TraceSection
from rtscope.record.model import POLL

TABLE = symbols(
    *(*NAMES, "do_syscall_64", "__x64_sys_write", "my_write", "try_to_wake_up"),
    *("enqueue_task_rt", "enqueue_task_fair", "resched_curr", "my_handler"),
    *("native_smp_send_reschedule", "asm_sysvec_reschedule_ipi", "pipe_read"),
    *("worker_thread", "my_work", "common_interrupt", "asm_common_interrupt"),
    *("bpf_prog_run_generic_xdp", "bpf_dispatcher_xdp"),
    *("__napi_schedule", "my_tasklet", "net_rx_action", "wake_up_process"),
    *("asm_sysvec_apic_timer_interrupt", "my_watchdog", "__netif_reschedule"),
    *("dev_hard_start_xmit", "ktime_get", "rt_spin_lock", "rtlock_slowlock_locked"),
    "rt_mutex_slowunlock",
)
QUANTUM_NS = 5_000
RECEIVER, SENDER, WORKER = "rtscope/10", "rtscope-ev/1", "kworker/1:2"
ASLEEP_SENDER: list[Step] = [(200, "do_nanosleep+", 1)]


def on(cpu: int, *names: str) -> list[Step]:
    """Return steps of 10 ns of a CPU."""
    return [(10, name, cpu) for name in names]


def waking(cpu: int, kind: str = "enqueue_task_rt") -> list[Step]:
    """Return a call that wakes a thread of another CPU."""
    return on(cpu, "try_to_wake_up", kind, "resched_curr", "native_smp_send_reschedule")


SENT = on(1, "user", "do_syscall_64", "__x64_sys_write")
GOES_TO_SLEEP: list[Step] = [
    *((20, "user"), (10, "pipe_read"), (20, "__schedule"), (20, "__switch_to")),
    (60, "do_idle"),
]
TOLD: list[Step] = [
    (40, "asm_sysvec_reschedule_ipi"),
    (5, "asm_sysvec_reschedule_ipi+"),
]
WAKES_UP: list[Step] = [
    *((20, "do_idle+"), (40, "__schedule"), (20, "__switch_to"), (10, "__schedule+")),
    *((15, "pipe_read+"), (5, "user")),
]
SLEPT_NS = 70
"""The receiver leaves its CPU."""


def answered(
    way: list[Step],
    *,
    wakes: tuple[tuple[int, str], ...],
    tasks: tuple[Task, ...] = (),
    before: list[Step] | None = None,
    told: list[Step] = TOLD,
    asked_ns: int | None = None,
    asked: int = 0,
    reads: list[Step] | None = None,
) -> Explanation:
    """Explain an event that CPU 1 carries to a receiver that sleeps on CPU 0."""
    found = carried(
        *(way,),
        wakes=wakes,
        tasks=tasks,
        before=before,
        told=told,
        asked_ns=asked_ns,
        asked=asked,
        reads=reads,
    )
    explanation = explain_event(found, TABLE, arch="x86_64")
    assert explanation.residual_ns == 0
    assert not explanation.broken
    assert explanation.since is Since.SENT
    return explanation


def carried(
    way: list[Step],
    *,
    wakes: tuple[tuple[int, str], ...],
    tasks: tuple[Task, ...] = (),
    before: list[Step] | None = None,
    told: list[Step] = TOLD,
    asked_ns: int | None = None,
    asked: int = 0,
    reads: list[Step] | None = None,
) -> TraceSection:
    """
    Return the path of such an event.

    `before` is what CPU 1 did before the event was sent, and `told` how CPU 0 hears of
    it; `asked_ns` is when CPU 1 asked it, or CPU `asked`, for an interrupt; `wakes`
    has, of each call of CPU 1 that wakes a task, its number and the task. `reads` is
    what the receiver calls once it is awake.
    """
    begins = [*GOES_TO_SLEEP, (0, ASLEEP), *(before or []), *ASLEEP_SENDER]
    sent_ns = sum(step[0] for step in begins)
    steps = [*begins, *way, (9, "user", 1), *told, *WAKES_UP]
    woken_ns = sum(step[0] for step in steps)
    steps += reads or []
    total_ns = sum(step[0] for step in steps)
    calls, at_ns = [], 0
    for step in steps:
        if step[1] == "try_to_wake_up":
            calls.append(at_ns)
        at_ns += step[0]
    return section(
        steps,
        TABLE,
        late=total_ns - sent_ns,
        tasks=(
            *((0, RECEIVER, 0, 15), (SLEPT_NS, "swapper/0", 0, 120)),
            *((0, SENDER, 1, 20), *tasks, (woken_ns - 25, RECEIVER, 0, 15)),
        ),
        wakes=[(calls[number], 1, task) for number, task in wakes],
        asked=() if asked_ns is None else ((asked_ns, 1, asked),),
        block_ns=40_000,
        quantum_ns=QUANTUM_NS,
    )


def causes(explanation: Explanation) -> list[Cause]:
    """Return the causes of the segments, each once in a row."""
    found: list[Cause] = []
    for one in explanation.segments:
        if found[-1:] != [one.cause]:
            found.append(one.cause)
    return found


def of(explanation: Explanation, cause: Cause) -> Segment:
    """Return the first segment of a cause."""
    return next(one for one in explanation.segments if one.cause is cause)


def test_an_event_is_sent_told_by_an_interrupt_and_received() -> None:
    found = answered([*SENT, (500, "my_write", 1), *waking(1)], wakes=((0, RECEIVER),))

    assert causes(found) == [
        *(Cause.SENDING, Cause.ON_ITS_WAY, Cause.EVENT_INTERRUPT),
        *(Cause.SCHEDULER, Cause.RETURN),
    ]
    sent = of(found, Cause.SENDING)
    assert (sent.part, sent.begin_ns) == (Part.A, 0)
    assert sent.name == "the system call write"
    assert of(found, Cause.EVENT_INTERRUPT).name == "sysvec_reschedule_ipi"
    assert "had the event" in sentence(found)


def test_what_interrupts_the_receivers_program_is_no_call_of_it() -> None:
    begins = [*GOES_TO_SLEEP, (0, ASLEEP), *ASLEEP_SENDER]
    steps = [
        *(*begins, *SENT, (500, "my_write", 1), *waking(1), (9, "user", 1), *TOLD),
        *(*WAKES_UP, (30, "asm_common_interrupt"), (5, "user")),
    ]
    total_ns, sent_ns = (sum(step[0] for step in those) for those in (steps, begins))
    path = section(
        steps,
        TABLE,
        late=total_ns - sent_ns,
        tasks=(
            *((0, RECEIVER, 0, 15), (SLEPT_NS, "swapper/0", 0, 120)),
            *((0, SENDER, 1, 20), (total_ns - 60, RECEIVER, 0, 15)),
        ),
        wakes=[(sent_ns + 530, 1, RECEIVER)],
        block_ns=40_000,
        quantum_ns=QUANTUM_NS,
    )

    found = explain_event(path, TABLE, arch="x86_64")

    assert not found.broken
    assert found.segments[0].cause is Cause.SENDING


def test_what_interrupts_the_sender_delays_the_event_and_is_no_timer_of_it() -> None:
    tick: list[Step] = [
        (10, "asm_common_interrupt", 1),
        (3000, "my_handler", 1),
        *((10, "asm_common_interrupt+", 1), (10, "my_write+", 1)),
    ]
    found = answered(
        [*SENT, *on(1, "my_write"), *tick, *waking(1)], wakes=((0, RECEIVER),)
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.OTHER_INTERRUPT
    assert found.dominant.part is Part.A
    assert SENDER in found.dominant.holder


@pytest.mark.parametrize("ago_ns", [100, 2 * QUANTUM_NS])
def test_an_interrupt_long_before_the_call_did_not_tell_of_it(ago_ns: int) -> None:
    tick: list[Step] = [(10, "asm_common_interrupt"), (10, "asm_common_interrupt+")]
    found = answered(
        [*SENT, (7_000, "my_write", 1), *waking(1)],
        before=[*tick, (10, "do_idle+"), (ago_ns, "zap", 1)],
        wakes=((0, RECEIVER),),
        told=[(100, "worker_thread")],
    )

    assert causes(found)[0] is Cause.SENDING
    assert of(found, Cause.SENDING).duration_ns >= 7_000


@pytest.mark.parametrize("begins", [0, 1])
def test_an_interrupt_that_was_asked_for_before_did_not_tell_of_it(begins: int) -> None:
    asked_ns = sum(step[0] for step in GOES_TO_SLEEP)
    other: list[Step] = [(10, "asm_common_interrupt"), (10, "asm_common_interrupt+")]
    found = answered(
        [*SENT, (1_000, "my_write", 1), *waking(1)],
        before=[(10, "zap", 1), *other, (10, "do_idle+")],
        wakes=((0, RECEIVER),),
        told=[(100, "worker_thread")],
        asked_ns=asked_ns + begins,
    )

    assert causes(found)[0] is Cause.SENDING
    assert of(found, Cause.SENDING).duration_ns >= 1_000


def test_a_kernel_that_goes_on_behind_the_interrupt_kept_the_event() -> None:
    tick: list[Step] = [(10, "asm_common_interrupt"), (10, "asm_common_interrupt+")]
    switched: list[Step] = [(20, "__schedule"), (20, "__switch_to")]
    # CPU 0 is ahead of CPU 1, and answered before that one's time of the call.
    found = answered(
        [*SENT, (500, "my_write", 1), *waking(1)],
        before=[*switched, (10, "worker_thread+"), *TOLD, (10, "worker_thread+")],
        tasks=((sum(step[0] for step in [*GOES_TO_SLEEP, *switched]), WORKER, 0, 120),),
        wakes=((0, RECEIVER),),
        told=[(30_000, "worker_thread+"), *tick, (2_000, "worker_thread+")],
    )

    assert found.dominant is not None
    assert (found.dominant.part, found.dominant.name) == (Part.C, "worker_thread")
    assert found.dominant.begin_ns == 0
    assert not {Cause.DELIVERY, Cause.ON_ITS_WAY} & {*causes(found)}


def test_a_thread_that_carries_the_event_is_named_and_so_is_who_kept_it() -> None:
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    way = [
        *SENT,
        *on(1, "try_to_wake_up", "enqueue_task_fair"),
        *((4000, "zap", 1), *switched, (10, "__schedule+", 1)),
        *((300, "my_work", 1), *waking(1)),
    ]
    before_ns = sum(s[0] for s in [*GOES_TO_SLEEP, *ASLEEP_SENDER])
    to_ns = before_ns + sum(s[0] for s in way[:8])
    found = answered(
        way,
        wakes=((0, WORKER), (1, RECEIVER)),
        tasks=((before_ns + 50, "hog", 1, 19), (to_ns, WORKER, 1, 120)),
    )

    carried = of(found, Cause.CARRIER)
    assert carried.task == WORKER
    assert found.dominant is not None
    assert found.dominant.task == "hog"
    assert WORKER in found.dominant.holder
    assert found.segments[0].cause is Cause.SENDING


def test_a_loop_of_a_carrier_that_pauses_has_all_of_its_time() -> None:
    """It reads a clock: its CPU executes little, and waits for nobody."""
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    turn: list[Step] = [(10, "ktime_get", 1), (5, "my_work+", 1), (900, "do_idle+")]
    way = [
        *(*SENT, *on(1, "try_to_wake_up", "enqueue_task_fair"), (900, "zap", 1)),
        *(*switched, (10, "__schedule+", 1), (200, "worker_thread+", 1)),
        *((10, "my_work", 1), *turn, *turn, *turn, *turn, *turn, *turn, *turn),
        *((10, "ktime_get", 1), (5, "my_work+", 1), (200, "worker_thread+", 1)),
        *waking(1),
    ]
    before_ns = sum(s[0] for s in [*GOES_TO_SLEEP, *ASLEEP_SENDER])
    hog_ns = before_ns + sum(s[0] for s in way[:5])
    found = answered(
        way,
        wakes=((0, WORKER), (1, RECEIVER)),
        tasks=((hog_ns, "hog", 1, 19), (hog_ns + 960, WORKER, 1, 120)),
    )

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.task) == (Cause.CARRIER, WORKER)
    assert found.dominant.name == "my_work"


def test_a_carrier_that_was_woken_before_the_record_waited_for_its_cpu() -> None:
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    way = [
        *(*SENT, *on(1, "user"), (9_000, "zap", 1), *switched, (10, "__schedule+", 1)),
        *((10, "worker_thread+", 1), (300, "my_work", 1), *waking(1)),
    ]
    sent_ns = sum(s[0] for s in [*GOES_TO_SLEEP, *ASLEEP_SENDER])
    found = answered(
        way,
        wakes=((0, RECEIVER),),
        tasks=((sent_ns + 40, "hog", 1, 19), (sent_ns + 9_100, WORKER, 1, 49)),
    )

    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.task) == (Cause.OTHER_TASK, "hog")
    assert WORKER in found.dominant.holder
    assert Cause.BLOCKED not in causes(found)


def test_a_carrier_that_was_awake_has_the_event_from_a_store_of_the_sender() -> None:
    """The sender makes no call to send, as for a device whose memory it has."""
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    way: list[Step] = [
        *((300, "user", 1), (10, "do_syscall_64", 1), (10, "do_nanosleep", 1)),
        *((9_000, "zap", 1), *switched, (10, "__schedule+", 1)),
        *((10, "worker_thread+", 1), (300, "my_work", 1), *waking(1)),
    ]
    sent_ns = sum(s[0] for s in [*GOES_TO_SLEEP, *ASLEEP_SENDER])
    found = answered(
        way,
        wakes=((0, RECEIVER),),
        tasks=((sent_ns + 320, "hog", 1, 19), (sent_ns + 9_380, WORKER, 1, 49)),
    )

    assert UNKNOWN_WAY not in found.notes
    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.task) == (Cause.OTHER_TASK, "hog")


def test_no_call_ends_a_carriers_wait_for_a_lock_but_its_release() -> None:
    """It was woken before the event was sent, and again while it waited."""
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    wakes: list[Step] = on(1, "try_to_wake_up", "enqueue_task_rt", "zap+")
    before: list[Step] = [
        *((10, "user", 1), *wakes, *switched, (10, "worker_thread", 1)),
        *(*on(1, "rt_spin_lock", "rtlock_slowlock_locked"), *switched),
        (9_000, "zap", 1),
    ]
    way: list[Step] = [
        *(*SENT, *on(1, "user"), *switched, (4_000, "zap", 1), *wakes),
        (5_000, "zap", 1),
        *(*on(1, "rt_mutex_slowunlock", "try_to_wake_up", "zap+"), *switched),
        *((10, "rtlock_slowlock_locked+", 1), (10, "rt_spin_lock+", 1)),
        *((10, "worker_thread+", 1), (300, "my_work", 1), *waking(1)),
    ]
    begin_ns = sum(s[0] for s in GOES_TO_SLEEP)
    sent_ns = begin_ns + sum(s[0] for s in [*before, *ASLEEP_SENDER])
    found = answered(
        way,
        before=before,
        wakes=((0, WORKER), (1, WORKER), (2, WORKER), (3, RECEIVER)),
        tasks=(
            *((begin_ns + 100, WORKER, 1, 49), (begin_ns + 190, SENDER, 1, 20)),
            *((sent_ns + 100, "hog", 1, 120), (sent_ns + 9_220, WORKER, 1, 49)),
        ),
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.LOCK
    assert found.dominant.duration_ns > 9_000
    assert "hog" in found.dominant.holder


READS_AGAIN: list[Step] = [
    *((20, "do_syscall_64"), (10, "pipe_read"), (5, "do_syscall_64+"), (5, "user")),
]


def test_a_call_need_not_wait_for_what_came_with_an_earlier_event() -> None:
    """The receiver slept until both had come, and had the first one before."""
    found = answered(
        [*SENT, (8_000, "my_write", 1), *waking(1)],
        wakes=((0, RECEIVER),),
        reads=READS_AGAIN,
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.SENDING
    assert Cause.DESCRIPTOR not in causes(found)


def test_a_device_may_keep_an_event_until_a_later_one_is_sent() -> None:
    sends: list[Step] = [*SENT, (30, "my_write", 1)]
    sleeps: list[Step] = [
        *on(1, "my_write+", "__x64_sys_write+", "do_syscall_64+", "user"),
        *((10, "do_syscall_64", 1), (20_000, "do_nanosleep", 1)),
        (10, "do_syscall_64+", 1),
    ]
    told: list[Step] = [(10, "asm_common_interrupt", 1), (20, "my_handler", 1)]
    until = [*GOES_TO_SLEEP, *ASLEEP_SENDER, *sends, *sleeps, *sends]
    found = answered(
        [*sends, *sleeps, *sends, *told, *waking(1)],
        wakes=((0, RECEIVER),),
        asked_ns=sum(step[0] for step in until),
        asked=1,
    )

    assert causes(found)[:3] == [Cause.SENDING, Cause.DEVICE, Cause.EVENT_INTERRUPT]
    assert found.dominant is not None
    assert found.dominant.cause is Cause.DEVICE
    assert found.dominant.duration_ns > 20_000
    assert "later event" in " ".join(found.dominant.evidence)


def test_a_later_send_transmits_what_a_timer_let_go_from_its_queue() -> None:
    sends: list[Step] = [*SENT, (30, "my_write", 1)]
    sleeps: list[Step] = [
        *on(1, "my_write+", "__x64_sys_write+", "do_syscall_64+", "user"),
        *((10, "do_syscall_64", 1), (20_000, "do_nanosleep", 1)),
        (10, "do_syscall_64+", 1),
    ]
    entry = ("asm_sysvec_apic_timer_interrupt", "hrtimer_interrupt")
    releases: list[Step] = [
        *on(1, *entry, "__hrtimer_run_queues", "my_watchdog", "__netif_reschedule"),
        *on(1, "my_watchdog+", "asm_sysvec_apic_timer_interrupt+", "my_write+"),
        (100, "dev_hard_start_xmit", 1),
    ]
    told: list[Step] = [(10, "asm_common_interrupt", 1), (20, "my_handler", 1)]
    until = [*GOES_TO_SLEEP, *ASLEEP_SENDER, *sends, *sleeps, *sends, *releases]
    found = answered(
        [*sends, *sleeps, *sends, *releases, *told, *waking(1)],
        wakes=((0, RECEIVER),),
        asked_ns=sum(step[0] for step in until),
        asked=1,
    )

    assert causes(found)[:4] == [
        *(Cause.SENDING, Cause.QUEUED, Cause.SENDING, Cause.EVENT_INTERRUPT),
    ]
    assert found.dominant is not None
    assert found.dominant.cause is Cause.QUEUED
    assert found.dominant.name == "my_watchdog"


LEAVES: list[Step] = [
    (10, "asm_sysvec_apic_timer_interrupt", 1),
    *((10, "handle_softirqs", 1), (100, "my_tasklet", 1)),
    *((10, "asm_common_interrupt", 1), (20, "my_handler", 1)),
    *((10, "__napi_schedule", 1), (5, "my_handler+", 1)),
    *((5, "asm_common_interrupt+", 1), (3_000, "my_tasklet+", 1)),
    *((10, "handle_softirqs+", 1), (10, "wake_up_process", 1)),
    *(*on(1, "try_to_wake_up", "enqueue_task_fair"), (5, "try_to_wake_up+", 1)),
    *((10, "handle_softirqs+", 1), (5, "asm_sysvec_apic_timer_interrupt+", 1)),
]
"""A softirq, in which a driver asks for its poll, ends and leaves that to ksoftirqd."""
POLLS = on(1, "asm_sysvec_apic_timer_interrupt", "handle_softirqs", "net_rx_action")


WORKS: list[Step] = [(8_000, "my_work+", 1)]


def left_to_ksoftirqd(between: list[Step], runs: list[Step] = WORKS) -> Explanation:
    """Explain an event whose poll a later interrupt did, behind what quayhand runs."""
    sends: list[Step] = [*SENT, (30, "my_write", 1)]
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    before_ns = sum(s[0] for s in [*GOES_TO_SLEEP, *ASLEEP_SENDER])
    asked_ns = before_ns + sum(s[0] for s in sends)
    to_ns = asked_ns + sum(s[0] for s in [*LEAVES, *between, *switched])
    return answered(
        [*sends, *LEAVES, *between, *switched, *runs, *POLLS, *waking(1)],
        wakes=((0, "ksoftirqd/1"), (1, RECEIVER)),
        tasks=((to_ns, "quayhand", 1, 98),),
        asked_ns=asked_ns,
        asked=1,
    )


def test_a_poll_that_was_left_to_ksoftirqd_waits_behind_who_has_its_cpu() -> None:
    found = left_to_ksoftirqd([])

    assert of(found, Cause.EVENT_INTERRUPT).name == "common_interrupt"
    assert of(found, Cause.SOFTIRQ).name == "my_tasklet"
    assert of(found, Cause.SCHEDULER).duration_ns == 60
    assert found.dominant is not None
    assert found.dominant.cause is Cause.NOT_REALTIME
    assert (found.dominant.task, found.dominant.name) == ("quayhand", "my_work")
    assert "ksoftirqd/1" in found.dominant.holder
    assert "ksoftirqd" in " ".join(found.dominant.evidence)


def test_who_has_the_cpu_of_a_poll_is_named_by_what_it_was_in_for_longest() -> None:
    turn: list[Step] = [(900, "zap", 1), (100, "my_work+", 1)]
    runs: list[Step] = [
        *((1_000, "worker_thread+", 1), (100, "my_work", 1), *turn, *turn, *turn),
        (300, "worker_thread+", 1),
    ]

    stay = of(left_to_ksoftirqd([], runs), Cause.NOT_REALTIME)

    assert (stay.name, stay.callers) == ("my_work", ("my_work", "worker_thread"))


def test_what_was_asked_for_before_another_poll_is_not_left_to_ksoftirqd() -> None:
    found = left_to_ksoftirqd([*POLLS, (10, "asm_sysvec_apic_timer_interrupt+", 1)])

    assert Cause.NOT_REALTIME not in causes(found)


def test_a_thread_that_was_woken_for_an_earlier_event_waits_for_its_cpu() -> None:
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    before: list[Step] = [
        *((10, "worker_thread", 1), *switched, (10, "user", 1)),
        *(*on(1, "try_to_wake_up", "enqueue_task_fair"), (9_000, "zap", 1)),
    ]
    way: list[Step] = [
        *((10, "user", 1), (300, "my_write", 1), (20, "user", 1)),
        *((4000, "zap", 1), *on(1, "try_to_wake_up", "zap+")),
        *(*switched, (10, "__schedule+", 1)),
        *((10, "worker_thread+", 1), (300, "my_work", 1), *waking(1)),
    ]
    begin_ns = sum(s[0] for s in GOES_TO_SLEEP)
    sent_ns = begin_ns + sum(s[0] for s in [*before, *ASLEEP_SENDER])
    found = carried(
        way,
        before=before,
        wakes=((0, WORKER), (1, "another"), (2, RECEIVER)),
        tasks=(
            *((begin_ns + 1, WORKER, 1, 120), (begin_ns + 71, SENDER, 1, 20)),
            *((sent_ns + 330, "hog", 1, 19), (sent_ns + 4_411, WORKER, 1, 120)),
        ),
    )

    cpus = all_cpus(found, TABLE, arch="x86_64")
    *_, carrier = Search(found, TABLE, cpus).way().carriers

    assert carrier.task.name == WORKER
    assert carrier.was_awake
    assert carrier.call is not None
    assert carrier.call.at_ns < sent_ns


def test_a_task_woken_just_before_the_event_has_it_from_the_sender() -> None:
    """Of the sender only what it did before that call is asked for: it slept then."""
    asleep: list[Step] = [*GOES_TO_SLEEP[:-1], (200, "user"), (10, "do_syscall_64")]
    begins: list[Step] = [
        *((500, "do_idle", 1), *asleep, (10, "try_to_wake_up"), (900, "zap")),
        *((40, "__schedule", 1), (20, "__switch_to", 1), *ASLEEP_SENDER),
    ]
    switched: list[Step] = [
        (40, "__schedule"),
        (20, "__switch_to"),
        (10, "__schedule+"),
    ]
    way: list[Step] = [
        *(*SENT, (300, "my_write", 1), (90, "user", 1), *switched, (300, "my_work")),
        *((10, "try_to_wake_up"), (10, "enqueue_task_rt"), (10, "resched_curr")),
        *(*switched, (15, "pipe_read+"), (5, "user")),
    ]
    steps, calls, at_ns = [*begins, *way], list[int](), 0
    for step in steps:
        calls += [at_ns] if step[1] == "try_to_wake_up" else []
        at_ns += step[0]
    sends_ns = sum(s[0] for s in begins[:-1])
    works_ns = sum(s[0] for s in [*begins, *way[:7]])
    found = section(
        steps,
        TABLE,
        late=sum(s[0] for s in way),
        tasks=(
            *((0, RECEIVER, 0, 15), (0, "swapper/1", 1, 120)),
            *((570, "hog", 0, 120), (sends_ns, SENDER, 1, 20)),
            *((works_ns, WORKER, 0, 49), (at_ns - 30, RECEIVER, 0, 15)),
        ),
        wakes=[(calls[0], 0, WORKER), (calls[1], 0, RECEIVER)],
        block_ns=40_000,
        quantum_ns=QUANTUM_NS,
    )

    cpus = all_cpus(found, TABLE, arch="x86_64")
    carriers = Search(found, TABLE, cpus).way().carriers

    assert all(one.begin_ns <= one.end_ns for one in carriers)
    assert [one.is_sender for one in carriers] == [True, False, False]
    assert explain_event(found, TABLE, arch="x86_64").residual_ns == 0


def test_a_program_of_bpf_that_takes_the_packet_is_no_probe() -> None:
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    way: list[Step] = [
        *(*SENT, *on(1, "try_to_wake_up", "enqueue_task_fair"), (50, "zap", 1)),
        *(*switched, (10, "__schedule+", 1), (300, "my_work", 1)),
        *((10, "bpf_prog_run_generic_xdp", 1), (9_000, "bpf_dispatcher_xdp", 1)),
        *((10, "my_work+", 1), *waking(1)),
    ]
    before_ns = sum(s[0] for s in [*GOES_TO_SLEEP, *ASLEEP_SENDER])
    to_ns = before_ns + sum(s[0] for s in way[:8])
    found = answered(
        way, wakes=((0, WORKER), (1, RECEIVER)), tasks=((to_ns, WORKER, 1, 120),)
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.CARRIER
    assert Cause.PROBE not in causes(found)


def test_a_path_that_does_not_say_who_woke_the_thread_names_no_way() -> None:
    found = answered([*SENT, *waking(1)], wakes=())

    assert UNKNOWN_WAY in found.notes
    assert Cause.SENDING not in causes(found)


@pytest.mark.parametrize(("begins", "since_ns"), [([], 0), (GOES_TO_SLEEP, SLEPT_NS)])
def test_a_thread_that_was_woken_before_the_record_waited_for_its_cpu(
    begins: list[Step], since_ns: int
) -> None:
    before: list[Step] = [*begins, (300, "zap"), *ASLEEP_SENDER]
    steps: list[Step] = [
        *(*before, *SENT, *on(1, "try_to_wake_up"), (9, "user", 1), (9_000, "zap+")),
        *((40, "__schedule"), (20, "__switch_to"), (10, "__schedule+")),
        *((15, "pipe_read+"), (5, "user")),
    ]
    total_ns, sent_ns = (sum(step[0] for step in those) for those in (steps, before))
    path = section(
        steps,
        TABLE,
        late=total_ns - sent_ns,
        tasks=(
            *((0, RECEIVER, 0, 15), (since_ns, "hog", 0, 120), (0, SENDER, 1, 20)),
            (total_ns - 25, RECEIVER, 0, 15),
        )[not begins :],
        wakes=[(sent_ns + 30, 1, "another")],
        block_ns=40_000,
        quantum_ns=QUANTUM_NS,
    )

    found = explain_event(path, TABLE, arch="x86_64")

    # Where it went to sleep in the record, the call that woke it should be there too.
    assert (UNKNOWN_WAY in found.notes) == bool(begins)
    assert found.dominant is not None
    assert (found.dominant.cause is Cause.DESCRIPTOR) == bool(begins)


def test_a_thread_that_was_awake_was_held_up_by_what_ran_meanwhile() -> None:
    interrupted: list[Step] = [
        *((100, "user"), (10, "asm_common_interrupt"), (900, "my_handler")),
        *((10, "asm_common_interrupt+"), (20, "user")),
    ]
    found = explain_event(
        section(
            interrupted,
            TABLE,
            late=1_000,
            tasks=((0, RECEIVER, 0, 15),),
            block_ns=40_000,
        ),
        TABLE,
        arch="x86_64",
    )

    assert found.residual_ns == 0
    assert not found.notes
    assert found.dominant is not None
    assert found.dominant.cause is Cause.OTHER_INTERRUPT


@pytest.mark.parametrize("handler", ["my_handler", "hrtimer_interrupt"])
def test_a_gap_of_a_loop_that_never_sleeps_has_its_cause(handler: str) -> None:
    steps: list[Step] = [
        *((100, "user"), (10, "asm_common_interrupt"), (5_000, handler)),
        *((10, "asm_common_interrupt+"), (20, "user")),
    ]
    path = section(
        steps, TABLE, late=5_080, tasks=((0, RECEIVER, 0, 15),), block_ns=40_000
    )

    found = explainer_of(POLL)(path, TABLE, arch="x86_64", preemptible=True)

    assert found.since is Since.GAP
    assert found.dominant is not None
    assert (found.dominant.cause, found.dominant.name) == (
        Cause.OTHER_INTERRUPT,
        handler,
    )
    assert "had a gap of" in sentence(found)


def records_of(path: TraceSection, rows: slice) -> TraceSection:
    """Return a path of which only these records were kept."""
    return replace(
        path,
        at_ns=path.at_ns[rows],
        cpus=path.cpus[rows],
        kinds=path.kinds[rows],
        values=path.values[rows],
    )


@pytest.mark.parametrize("event", ["futex", POLL])
@pytest.mark.parametrize(
    ("rows", "left_out", "says"),
    [
        (slice(0), True, "no memory was left"),
        (slice(-1, None), False, "no path was recorded"),
    ],
)
def test_a_path_without_records_is_said_to_be_none(
    rows: slice, left_out: bool, says: str, event: str
) -> None:
    whole = section([(100, "user")], TABLE, late=50, tasks=((0, RECEIVER, 0, 15),))
    path = replace(records_of(whole, rows), left_out=left_out)

    found = explainer_of(event)(path, TABLE, arch="x86_64", preemptible=True)

    assert (found.residual_ns, found.dominant) == (50, None)
    assert "the cause is unknown" in sentence(found)
    (note,) = found.notes
    assert says in note
