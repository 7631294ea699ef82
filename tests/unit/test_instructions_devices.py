"""The way of an event through a device: its request, and the interrupt that answers."""

import pytest

from fakes.paths import ASLEEP, BY_TIMER, Step, section, symbols
from fakes.wakeuppaths import NAMES
from rtscope.explain.carrying import UNKNOWN_WAY
from rtscope.explain.instructions.calls import Frame, Run, delay_helpers
from rtscope.explain.instructions.contexts import contexts_of
from rtscope.explain.instructions.eventway import explain_event
from rtscope.explain.instructions.roles import Role
from rtscope.explain.model import Cause, Explanation, Segment
from rtscope.explain.words import sentence

TABLE = symbols(
    *(*NAMES, "do_syscall_64", "__x64_sys_write", "my_xmit", "try_to_wake_up"),
    *("enqueue_task_rt", "resched_curr", "my_handler", "native_send_ipi", "sock_read"),
    *("common_interrupt", "asm_common_interrupt", "irq_entries_start"),
    *("asm_sysvec_apic_timer_interrupt", "my_watchdog", "irq_thread", "my_tap [tap]"),
    *("__netif_receive_skb_core", "my_poll [driver]", "ktime_get", "__napi_poll"),
    *("dev_hard_start_xmit", "asm_sysvec_call_function_single"),
    *("flush_smp_call_function_queue", "gic_eoi_irq"),
)
QUANTUM_NS = 5_000
RECEIVER, SENDER = "rtscope/10", "rtscope-ev/1"

GOES_TO_SLEEP: list[Step] = [
    *((20, "user"), (10, "sock_read"), (20, "__schedule"), (20, "__switch_to")),
    (60, "do_idle"),
]
SLEPT_NS = 70
SENDS: list[Step] = [
    (10, "user", 1),
    *((10, "do_syscall_64", 1), (10, "__x64_sys_write", 1), (400, "my_xmit", 1)),
    *((10, "do_syscall_64+", 1), (20, "user", 1)),
]
SLEEPS: list[Step] = [
    *((10, "do_syscall_64", 1), (200, "do_nanosleep", 1), (5, "do_syscall_64+", 1)),
]
SENT_NS = sum(step[0] for step in SENDS)
ANSWERS: list[Step] = [
    (30, "asm_common_interrupt"),
    (600, "my_handler"),
    *((10, "try_to_wake_up"), (10, "enqueue_task_rt"), (10, "resched_curr")),
    (5, "asm_common_interrupt+"),
]
WAKES_UP: list[Step] = [
    *((20, "do_idle+"), (40, "__schedule"), (20, "__switch_to"), (10, "__schedule+")),
    *((15, "sock_read+"), (5, "user")),
]


def answered(
    between: list[Step],
    *,
    asked: tuple[int, int, int] | None,
    flags: tuple[tuple[int, int], ...] = (),
    asleep: bool = True,
    begins: list[Step] = GOES_TO_SLEEP,
    awake: list[Step] | None = None,
    sends: list[Step] = SENDS,
    answers: list[Step] = ANSWERS,
    by_timer_of: int | None = None,
    woken: tuple[int, int] | None = None,
    handed_ns: int | None = None,
    tasks: tuple[tuple[int, str, int], ...] = (),
) -> Explanation:
    """
    Explain an event that CPU 1 sends to a receiver on CPU 0, through a device.

    `between` is what comes behind the sending and before the interrupt. The times of
    `asked` and `flags` count from the begin of the sending. `awake` is what the
    receiver still does before it sleeps, when the event is sent. `answers` is the
    interrupt, `by_timer_of` the CPU whose timer asks as `between` begins, and `woken`
    when and by which CPU the receiver was woken, if that was no part of the answer. At
    `handed_ns`, if it did, CPU 1 asked CPU 0 for an interrupt. `tasks` had CPU 1 since.
    """
    first: list[Step] = [*begins, *([(0, ASLEEP)] if asleep else [])]
    first += SLEEPS
    sent_ns = sum(step[0] for step in first)
    after = [*sends, *(awake or []), *between, *answers]
    woken_ns, by = woken or (sent_ns + sum(step[0] for step in after[:-4]), 0)
    timer_ns = sent_ns + sum(step[0] for step in sends)
    requests = [] if asked is None else [(sent_ns + asked[0], asked[1], asked[2])]
    if handed_ns is not None:
        requests += [(sent_ns + handed_ns, 1, 0)]
    if by_timer_of is not None:
        requests += [(timer_ns + 7_000, by_timer_of, by_timer_of + BY_TIMER)]
    total_ns = sent_ns + sum(step[0] for step in [*after, *WAKES_UP])
    left_ns = SLEPT_NS if awake is None else sent_ns + SENT_NS + 40
    found = section(
        [*first, *after, *WAKES_UP],
        TABLE,
        late=total_ns - sent_ns,
        tasks=(
            *((0, RECEIVER, 0, 15), (left_ns, "swapper/0", 0, 120)),
            *((0, SENDER, 1, 20), (total_ns - 25, RECEIVER, 0, 15)),
            *((sent_ns + at_ns, name, 1, prio) for at_ns, name, prio in tasks),
        ),
        wakes=((woken_ns, by, RECEIVER),),
        asked=sorted(requests),
        flags=tuple((sent_ns + at, on) for at, on in flags),
        block_ns=40_000,
        quantum_ns=QUANTUM_NS,
    )
    explanation = explain_event(found, TABLE, arch="x86_64")
    assert explanation.residual_ns == 0
    assert not explanation.broken
    assert explanation.latency_ns == total_ns - sent_ns
    return explanation


def causes(explanation: Explanation) -> list[Cause]:
    """Return the causes of the segments, each once in a row."""
    found: list[Cause] = []
    for one in explanation.segments:
        if found[-1:] != [one.cause]:
            found.append(one.cause)
    return found


def of(explanation: Explanation, cause: Cause) -> Segment:
    return next(one for one in explanation.segments if one.cause is cause)


def test_a_store_of_the_sender_asks_for_the_interrupt_that_wakes_the_thread() -> None:
    found = answered([], asked=(250, 1, 0))

    assert UNKNOWN_WAY not in found.notes
    assert causes(found)[0] is Cause.SENDING
    assert Cause.EVENT_INTERRUPT in causes(found)
    assert Cause.DEVICE not in causes(found)
    assert found.dominant is not None
    assert found.dominant.cause is Cause.EVENT_INTERRUPT
    assert found.dominant.name == "common_interrupt"
    assert of(found, Cause.SENDING).name == "the system call write"


@pytest.mark.parametrize("by", [BY_TIMER, 0], ids=["a timer", "a CPU that idles"])
def test_a_device_that_asks_later_by_itself_is_what_took_the_time(by: int) -> None:
    """A CPU that idles executes nothing that asks: a timer of the device does then."""
    found = answered([(7_000, "do_syscall_64", 1)], asked=(7_430, 0, by))

    waits = of(found, Cause.DEVICE)
    assert causes(found)[:2] == [Cause.SENDING, Cause.DEVICE]
    assert waits.duration_ns == pytest.approx(7_000, abs=50)
    assert found.dominant is waits
    assert "coalescing" in waits.evidence[0]
    assert "The device waiting before its interrupt" in sentence(found)
    assert "coalescing" in sentence(found)


def test_a_task_that_preempts_a_sender_behind_its_store_carries_nothing() -> None:
    """The device asks while that task has the CPU of the sender."""
    switched: list[Step] = [(40, "__schedule", 1), (20, "__switch_to", 1)]
    between: list[Step] = [
        *((7_000, "zap", 1), *switched, (10, "__schedule+", 1)),
        *((10, "do_syscall_64+", 1), (20, "user", 1)),
    ]
    found = answered(
        between,
        sends=[*SENDS[:4], *switched],
        asked=(5_000, 0, BY_TIMER),
        tasks=((490, "hog", 15), (7_550, SENDER, 20)),
    )

    assert causes(found)[:2] == [Cause.SENDING, Cause.DEVICE]
    assert of(found, Cause.DEVICE).duration_ns == pytest.approx(4_510, abs=50)
    assert "hog" not in {one.task for one in found.segments}


def test_interrupts_off_on_its_cpu_keep_an_interrupt_waiting() -> None:
    found = answered(
        [(8_000, "zap")],
        asked=(250, 1, 0),
        flags=((-20, 0), (8_440, 1)),
        asleep=False,
        begins=[*GOES_TO_SLEEP, (300, "zap")],
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.INTERRUPTS_OFF
    assert found.dominant.name == "zap"
    assert "an interrupt on CPU 0 was to carry the event" in found.dominant.holder


@pytest.mark.parametrize("name", ["native_send_ipi", "gic_eoi_irq"])
def test_requests_of_one_cpu_to_another_are_of_no_device(name: str) -> None:
    """Nor those that its interrupt controller makes as it ends an interrupt."""
    sends: list[Step] = [(10, name, 1)]

    found = answered(sends, asked=(SENT_NS + 5, 1, 0))

    assert UNKNOWN_WAY in found.notes
    assert Cause.SENDING not in causes(found)


def test_an_interrupt_may_have_been_asked_for_before_the_event() -> None:
    found = answered(
        [(8_000, "zap")],
        asked=(-6_000, 1, 0),
        flags=((-8_000, 0), (8_440, 1)),
        asleep=False,
        begins=[*GOES_TO_SLEEP, (9_000, "zap")],
    )

    assert UNKNOWN_WAY not in found.notes
    assert found.dominant is not None
    assert found.dominant.cause is Cause.INTERRUPTS_OFF


def test_a_request_that_another_interrupt_answered_was_not_for_the_event() -> None:
    answer: list[Step] = [
        *((50, "asm_common_interrupt"), (100, "my_handler")),
        *((5, "asm_common_interrupt+"), (100, "zap")),
    ]

    found = answered(
        [(8_000, "zap")],
        asked=(-10_470, 1, 0),
        asleep=False,
        begins=[*GOES_TO_SLEEP, (9_000, "zap"), *answer, (6_000, "zap")],
    )

    assert UNKNOWN_WAY in found.notes


def test_without_requests_the_way_before_the_interrupt_is_unknown() -> None:
    found = answered([], asked=None)

    assert UNKNOWN_WAY in found.notes


def test_of_more_than_a_quantum_before_the_known_way_nothing_is_told() -> None:
    found = answered([(500_000, "do_syscall_64", 1)], asked=None)

    assert UNKNOWN_WAY in found.notes
    assert found.dominant is not None
    assert found.dominant.cause is Cause.UNKNOWN
    assert found.segments[0] == found.dominant
    assert found.dominant.duration_ns == pytest.approx(500_000, abs=1_000)


@pytest.mark.parametrize("calls", [False, True])
def test_an_interrupt_that_hands_the_event_to_another_cpu_is_part_of_its_way(
    calls: bool,
) -> None:
    """As receive packet steering does; any other interrupt of a CPU tells nothing."""
    handles: list[Step] = [
        *((10, "asm_common_interrupt", 1), (7_000, "my_handler", 1)),
        *((10, "native_send_ipi", 1), (5, "asm_common_interrupt+", 1)),
    ]
    called = "flush_smp_call_function_queue" if calls else "my_handler"
    entry = "asm_sysvec_call_function_single"
    answers: list[Step] = [
        *((30, entry), (20, called), (600, "__netif_receive_skb_core")),
        *(*ANSWERS[2:5], (5, f"{entry}+")),
    ]
    found = answered(
        handles, asked=(250, 1, 1), answers=answers, handed_ns=SENT_NS + 7_020
    )

    assert (UNKNOWN_WAY in found.notes) is not calls
    interrupts = [one for one in found.segments if one.cause is Cause.EVENT_INTERRUPT]
    assert ("common_interrupt" in {one.name for one in interrupts}) is calls
    if calls:
        assert found.dominant is not None
        assert found.dominant.cause is Cause.EVENT_INTERRUPT


def test_what_a_receiver_still_did_when_the_event_was_sent_delays_nothing() -> None:
    found = answered(
        [],
        asked=(250, 1, 0),
        asleep=False,
        begins=[(100, "user"), (10, "sock_read")],
        awake=[(20, "__schedule"), (20, "__switch_to"), (60, "do_idle"), (0, ASLEEP)],
    )

    assert UNKNOWN_WAY not in found.notes
    assert causes(found)[0] is Cause.SENDING
    assert sum(one.duration_ns for one in found.segments) == found.latency_ns


def test_the_table_of_entries_keeps_the_calls_that_an_interrupt_interrupts() -> None:
    """A CPU enters any part of it, by the number of the interrupt."""
    interrupted: list[Step] = [
        *((100, "my_xmit", 1), (2, "irq_entries_start+", 1)),
        *((10, "asm_common_interrupt", 1), (900, "my_handler", 1)),
        *((5, "asm_common_interrupt+", 1), (300, "my_xmit+", 1)),
    ]
    sends = [*SENDS[:3], *interrupted, *SENDS[4:]]

    found = answered([], asked=(1_200, 1, 0), sends=sends)

    own = [one for one in found.segments if one.cause is Cause.SENDING]
    assert {one.name for one in own} == {"the system call write"}
    assert of(found, Cause.OTHER_INTERRUPT).duration_ns >= 900


def timer_of(cpu: int) -> list[Step]:
    """Return an interrupt of a CPU's timer up to the callback of a driver."""
    entry = ("asm_sysvec_apic_timer_interrupt", "hrtimer_interrupt")
    return [(10, name, cpu) for name in (*entry, "__hrtimer_run_queues")]


def test_a_driver_that_a_timer_lets_poll_is_told_as_that_and_as_no_device() -> None:
    wakes = ANSWERS[2:5]
    ends: list[Step] = [(5, "asm_sysvec_apic_timer_interrupt+")]
    answers = [*timer_of(0), (600, "my_watchdog"), *wakes, *ends]

    found = answered(
        [(7_000, "do_syscall_64", 1)], asked=None, answers=answers, by_timer_of=0
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.DEFERRED
    assert found.dominant.name == "my_watchdog"
    assert Cause.DEVICE not in causes(found)
    assert "polled by a timer" in sentence(found)
    assert "gro_flush_timeout" in found.dominant.evidence[0]


def test_a_timer_of_the_senders_cpu_that_transmits_released_a_queue() -> None:
    releases: list[Step] = [
        *((0, ASLEEP), (6_000, "do_idle"), (1_000, "do_idle", 1)),
        *timer_of(1),
        *((300, "my_watchdog", 1), (100, "my_xmit", 1), (10, "my_watchdog+", 1)),
        (5, "asm_sysvec_apic_timer_interrupt+", 1),
    ]

    found = answered(
        releases, asked=(SENT_NS + 7_380, 1, 0), by_timer_of=1, asleep=False
    )

    assert found.dominant is not None
    assert found.dominant.cause is Cause.QUEUED
    assert found.dominant.name == "my_watchdog"
    assert "in a queue of its sender" in sentence(found)


@pytest.mark.parametrize("by_sender", [False, True])
def test_a_queue_that_a_timer_released_is_told_before_a_device_that_waits(
    by_sender: bool,
) -> None:
    """Unless the sender itself had handed its frame to the driver."""
    between: list[Step] = [
        *((0, ASLEEP), (6_000, "do_idle"), (1_000, "do_idle", 1)),
        *timer_of(1),
        *((300, "my_watchdog", 1), (100, "dev_hard_start_xmit", 1)),
        *((10, "my_watchdog+", 1), (5, "asm_sysvec_apic_timer_interrupt+", 1)),
        (3_000, "do_idle", 1),
    ]
    sends = list(SENDS)
    sends[3] = (400, "dev_hard_start_xmit" if by_sender else "my_xmit", 1)

    found = answered(
        between,
        asked=(SENT_NS + 10_400, 0, BY_TIMER),
        by_timer_of=1,
        asleep=False,
        sends=sends,
    )

    told = [one for one in causes(found) if one in (Cause.QUEUED, Cause.DEVICE)]
    assert told == [Cause.QUEUED, Cause.DEVICE][by_sender:]
    if not by_sender:
        assert of(found, Cause.QUEUED).name == "my_watchdog"
        assert 7_000 <= of(found, Cause.QUEUED).duration_ns <= 7_500
        assert 2_900 <= of(found, Cause.DEVICE).duration_ns <= 3_300


def test_a_thread_that_an_earlier_event_woke_waits_for_its_cpu_and_no_event() -> None:
    """Its CPU was busy in its idle task since before this event was sent."""
    wakes: list[Step] = [
        *(
            (10, "try_to_wake_up", 1),
            (10, "enqueue_task_rt", 1),
            (10, "resched_curr", 1),
        )
    ]
    before: list[Step] = [*GOES_TO_SLEEP, (300, "zap")]
    begins = [*before, *wakes, (7_000, "zap")]
    woken_ns = sum(step[0] for step in before)

    found = answered(
        [(8_000, "zap")],
        asked=None,
        asleep=False,
        begins=begins,
        woken=(woken_ns, 1),
    )

    assert UNKNOWN_WAY not in found.notes
    assert found.dominant is not None
    assert found.dominant.cause is Cause.IDLE_EXIT
    assert found.dominant.name == "zap"
    assert found.segments[0] == found.dominant


def test_a_long_interrupt_of_the_event_is_named_after_who_took_the_packet() -> None:
    taken: list[Step] = [
        *((30, "asm_common_interrupt"), (10, "handle_softirqs"), (10, "__napi_poll")),
        *((600, "my_poll [driver]"), (200, "__netif_receive_skb_core")),
        *((30_000, "my_tap [tap]"), (10, "ktime_get"), (30_000, "my_tap [tap]+")),
    ]

    found = answered([], asked=(250, 1, 0), answers=[*taken, *ANSWERS[2:]])

    assert found.dominant is not None
    assert found.dominant.cause is Cause.EVENT_INTERRUPT
    assert found.dominant.name == "my_tap [tap]"
    assert "entered by common_interrupt" in found.dominant.evidence


def test_a_modules_function_that_the_kernel_calls_is_no_delay_helper() -> None:
    """One that another module calls is, if it only read a clock."""

    def helpers(caller: str) -> frozenset[Frame]:
        called = Frame("my_tap [tap]", Frame(caller, None, 0), 1)
        clock = Frame("ktime_get", called, 2)
        return delay_helpers([Run(called, 0, 10, 10), Run(clock, 10, 20, 10)])

    assert not helpers("__netif_receive_skb_core")
    assert helpers("my_poll [driver]")


def test_what_only_a_softirq_calls_is_one_where_the_path_begins_within() -> None:
    action = Frame("net_rx_action", None, 1, entered=False)
    poll = Frame("my_poll [driver]", action, 2)

    (context,) = contexts_of([Run(poll, 0, 10, 10)])

    assert (context.role, context.frame) == (Role.SOFTIRQ, action)
