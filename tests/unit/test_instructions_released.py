"""Which timer had a frame transmitted that a queue of its sender kept."""

import pytest

from rtscope.explain.instructions.calls import Frame, Run
from rtscope.explain.instructions.requested import released_by, transmits

TIMER = (
    *("asm_sysvec_apic_timer_interrupt", "hrtimer_interrupt"),
    *("__hrtimer_run_queues", "open_sluice [harbour]"),
)
WAKES = (*TIMER, "netif_tx_wake_queue", "__netif_reschedule")
SENDS = ("run_ksoftirqd", "handle_softirqs", "net_tx_action", "dev_hard_start_xmit")
INSIDE = ("asm_sysvec_apic_timer_interrupt", "handle_softirqs", SENDS[-1])


def runs_of(*calls: tuple[str, ...]) -> list[Run]:
    """Return a run of 10 ns in each innermost call, outermost function first."""
    made = []
    for number, names in enumerate(calls):
        frame = None
        for depth, name in enumerate(names):
            frame = Frame(name, frame, depth)
        assert frame is not None
        made.append(Run(frame, 10 * number, 10 * number + 10, 10))
    return made


IDLE = ("do_idle",)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((TIMER, INSIDE), ("open_sluice [harbour]",)),
        ((IDLE, WAKES, IDLE, SENDS), ("open_sluice [harbour]",)),
        ((IDLE, TIMER, IDLE, SENDS), ()),  # this timer let no queue go on
        ((IDLE, SENDS), ()),
        ((IDLE, ("dock", "__netif_reschedule"), SENDS), ()),  # a thread did
    ],
)
def test_a_timer_released_what_is_transmitted(
    calls: tuple[tuple[str, ...], ...], expected: tuple[str, ...]
) -> None:
    runs = runs_of(*calls)
    at = len(runs) - 1

    assert transmits(runs[at])
    assert released_by(runs, 0, at) == expected


def test_a_timer_before_the_event_released_nothing() -> None:
    runs = runs_of(WAKES, IDLE, SENDS)

    assert released_by(runs, 1, 2) == ()
