"""A timer interrupt that the kernel put off, as the one before took long."""

from collections.abc import Sequence

import pytest

from fakes.events import IDLE, IRQ, asleep, event, explained, of, ran, woken
from fakes.paths import ASLEEP, Step, section, symbols
from fakes.wakeuppaths import NAMES, PREEMPT, THREAD
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Explanation, Part
from rtscope.explain.words import caveats_of, evidence, sentence
from rtscope.record.events.events import Event

# --- from instructions ----------------------------------------------------------------

TABLE = symbols(*NAMES, "tick_program_event", "perf_swevent_hrtimer")
ENTRY: list[Step] = [
    (10, "handle_exception"),
    (10, "do_irq"),
    (20, "hrtimer_interrupt"),
]
SET: list[Step] = [(100, "tick_program_event"), (20, "hrtimer_interrupt+")]
END: list[Step] = [(5, "do_irq+"), (5, "handle_exception+")]
WAKES: list[Step] = [
    *ENTRY,
    *((10, "__hrtimer_run_queues"), (30, "hrtimer_wakeup")),
    *((5, "__hrtimer_run_queues+"), (20, "hrtimer_interrupt+"), *SET),
    (5, "do_irq+"),
]


def looked(callback: str = "perf_swevent_hrtimer") -> list[Step]:
    """Look for due timers, find some, and set the next."""
    return [
        *((10, "__hrtimer_run_queues"), (30_000, callback)),
        *((5, "__hrtimer_run_queues+"), (20, "hrtimer_interrupt+"), *SET),
    ]


def by_instructions(before: Sequence[Step], slept_ns: int) -> Explanation:
    after: list[Step] = [(slept_ns, ASLEEP), *WAKES, *PREEMPT, *THREAD]
    path: list[Step] = [*before, *END, (50, "do_idle+"), *after]
    late = sum(one[0] for one in after) + 20
    found = section(path, TABLE, late=late, block_ns=20_000)
    return explain_path(found, TABLE, arch="riscv64")


def test_an_interrupt_that_gave_up_puts_the_next_one_off() -> None:
    long: list[Step] = [(100, "do_idle"), *ENTRY, *looked(), *looked(), *looked(), *SET]

    told = by_instructions(long, slept_ns=90_400)

    first = told.segments[0]
    assert (first.part, first.cause) == (Part.A, Cause.PUT_OFF)
    assert first.name == "perf_swevent_hrtimer"
    assert told.dominant is first
    assert (told.broken, caveats_of(told)) == ((), ())
    assert "was put off, as the one before took long" in sentence(told)
    seen = evidence(first)
    assert any("found more due timers each time it looked" in one for one in seen)
    assert any("remedy: fewer timers due at once" in one for one in seen)


def test_an_interrupt_that_began_before_the_path_shows_by_its_end_that_it_gave_up() -> (
    None
):
    cut: list[Step] = [*looked()[1:], *looked(), *SET]

    told = by_instructions(cut, slept_ns=300_000)

    assert 299_900 < of(told, Cause.PUT_OFF) < 300_200
    assert not any(" took " in one for one in evidence(told.segments[0]))


@pytest.mark.parametrize("looks", [1, 2, 3, 4])
def test_an_interrupt_that_set_the_next_puts_nothing_off(looks: int) -> None:
    long: list[Step] = [
        (100, "do_idle"),
        *ENTRY,
        *(step for _ in range(looks) for step in looked()),
    ]

    told = by_instructions(long, slept_ns=30_000 * looks + 400)

    assert of(told, Cause.PUT_OFF) == 0


def test_an_interrupt_that_comes_before_its_time_was_not_put_off() -> None:
    long: list[Step] = [(100, "do_idle"), *ENTRY, *looked(), *looked(), *looked(), *SET]

    told = by_instructions(long, slept_ns=50_000)

    assert of(told, Cause.PUT_OFF) == 0


def test_what_comes_later_still_was_put_off_no_longer_than_the_interrupt_took() -> None:
    long: list[Step] = [(100, "do_idle"), *ENTRY, *looked(), *looked(), *looked(), *SET]
    late: list[Step] = [(91_000, ASLEEP), (70_000, "zap"), *WAKES, *PREEMPT, *THREAD]
    path: list[Step] = [*long, *END, (50, "do_idle+"), *late]
    found = section(path, TABLE, late=sum(one[0] for one in late), block_ns=20_000)

    told = explain_path(found, TABLE, arch="riscv64")

    assert 89_000 < of(told, Cause.PUT_OFF) < 91_500


# --- from events ----------------------------------------------------------------------


def looks(begin_ns: int, nows: Sequence[int], each_ns: int) -> list[Event]:
    """One timer interrupt of another timer, with a callback for each look."""
    events = [
        event(begin_ns, "local_timer_entry", pid=0, flags=IRQ, vector=236),
    ]
    for at, now in enumerate(nows):
        since = begin_ns + 1_000 + at * each_ns
        events += [
            event(
                since,
                "hrtimer_expire_entry",
                pid=0,
                flags=IRQ,
                function="perf_swevent_hrtimer",
                now=now,
            ),
            event(since + each_ns - 500, "hrtimer_expire_exit", pid=0, flags=IRQ),
        ]
    end_ns = begin_ns + 1_000 + len(nows) * each_ns
    return [*events, event(end_ns, "local_timer_exit", pid=0, flags=IRQ, vector=236)]


def by_events(nows: Sequence[int], came_ns: int) -> Explanation:
    """It took 90 us until 10 us after the expiry."""
    each_ns = 90_000 // len(nows)
    return explained(
        [
            *asleep(IDLE),
            *looks(-81_000, nows, each_ns),
            *woken(came_ns, pid=0, comm="swapper/0"),
            ran(came_ns + 6_000, after=IDLE),
        ],
        late_ns=came_ns + 8_000,
    )


def test_events_show_that_the_kernel_let_the_next_interrupt_wait() -> None:
    told = by_events([1_000, 31_000, 61_000], 100_000)

    assert 88_000 < of(told, Cause.PUT_OFF) < 92_000
    assert told.dominant is not None
    assert told.dominant.cause is Cause.PUT_OFF
    assert "was put off, as the one before took long" in sentence(told)


@pytest.mark.parametrize(
    ("nows", "came_ns"),
    [
        ([1_000, 31_000], 100_000),
        ([1_000, 1_000, 1_000], 100_000),
        ([1_000, 1_700_000_000_000_001_000, 31_000], 100_000),
        ([1_000, 31_000, 61_000], 50_000),
        ([1_000, 31_000, 61_000], 400_000),
    ],
    ids=["two looks", "one look", "two clocks", "before its time", "much later"],
)
def test_events_that_do_not_show_it_put_nothing_off(
    nows: Sequence[int], came_ns: int
) -> None:
    assert of(by_events(nows, came_ns), Cause.PUT_OFF) == 0


def test_three_interrupts_are_not_three_looks_of_one() -> None:
    told = explained(
        [
            *asleep(IDLE),
            *looks(-81_000, [1_000], 29_000),
            *looks(-51_000, [31_000], 29_000),
            *looks(-21_000, [61_000], 30_000),
            *woken(100_000, pid=0, comm="swapper/0"),
            ran(106_000, after=IDLE),
        ],
        late_ns=108_000,
    )

    assert of(told, Cause.PUT_OFF) == 0
