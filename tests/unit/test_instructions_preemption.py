"""A preemption count is that of the thread, and of the time in which it goes on."""

import pytest

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import ENTRY, NAMES, SWITCH, THREAD, TIMER
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Confidence, Segment

TABLE = symbols(
    *NAMES,
    *("scan", "migrate_disable", "handle_softirqs", "my_softirq", "_raw_read_lock"),
    *("_raw_spin_unlock", "_raw_spin_unlock_irqrestore", "_raw_read_unlock"),
)
OFF, NOBODY = Cause.PREEMPTION_OFF, Cause.NOT_PREEMPTED


def dominant(
    before: list[Step], after: list[Step], *counts: tuple[int, int], late: int = 0
) -> Segment:
    """Explain a wake-up, due `late` ns after the steps before its interrupt."""
    steps = [*before, *TIMER, *after, *SWITCH, *THREAD]
    due = sum(step[0] for step in before) + late
    whole = sum(step[0] for step in steps)
    path = section(steps, TABLE, late=whole - due, counts=counts)
    found = explain_path(path, TABLE, arch="riscv64", preemptible=False).dominant
    assert found is not None
    return found


BEFORE: list[Step] = [(50, "zap"), (50, "scan")]


@pytest.mark.parametrize(
    ("inside", "after", "count", "cause"),
    [
        # A section that ends soon, and one that lasts.
        ("_raw_spin_unlock", [(10, "_raw_spin_unlock+"), (900, "scan+")], 1, NOBODY),
        ("_raw_spin_unlock", [(900, "_raw_spin_unlock+"), (10, "scan+")], 1, OFF),
        ("_raw_read_unlock", [(5, "_raw_read_unlock+"), (900, "scan+")], 1, NOBODY),
        ("migrate_disable", [(8, "migrate_disable+"), (900, "scan+")], 1, NOBODY),
        # Of two sections one goes on.
        ("_raw_spin_unlock", [(10, "_raw_spin_unlock+"), (900, "scan+")], 2, OFF),
        ("migrate_disable", [(8, "migrate_disable+"), (900, "scan+")], 2, OFF),
        # Softirqs are off, which a spin lock has nothing to do with.
        ("_raw_spin_unlock", [(10, "_raw_spin_unlock+"), (900, "scan+")], 0x201, OFF),
    ],
)
def test_a_section_that_the_interrupt_found_is_no_longer_than_it_is(
    inside: str, after: list[Step], count: int, cause: Cause
) -> None:
    found = dominant([*BEFORE, (20, inside)], after, (120, count))

    assert found.cause is cause
    assert any(f"count was {count:#x}" in told for told in found.evidence)
    inferred = Confidence.INFERRED if cause is NOBODY else Confidence.SEEN
    assert found.confidence is inferred


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        (
            [(20, "scan+"), (10, "_raw_spin_unlock"), (900, "scan+")],
            NOBODY,
        ),
        ([(900, "scan+"), (10, "_raw_spin_unlock"), (20, "scan+")], OFF),
        (
            [
                (20, "scan+"),
                (10, "_raw_spin_unlock"),
                (10, "scan+"),
                (10, "_raw_read_lock"),
                (900, "scan+"),
                (10, "_raw_read_unlock"),
            ],
            OFF,
        ),
        (
            [
                (20, "scan+"),
                (10, "_raw_spin_unlock"),
                (400, "scan+"),
                (10, "_raw_read_lock"),
                (90, "scan+"),
                (10, "_raw_read_unlock"),
                (400, "scan+"),
            ],
            NOBODY,
        ),
        ([(900, "scan+")], OFF),
    ],
)
def test_locks_that_are_taken_and_left_meanwhile_count(
    after: list[Step], cause: Cause
) -> None:
    assert dominant(BEFORE, after, (100, 1)).cause is cause


AGAIN: list[Step] = [*ENTRY, (30, "zap"), (5, "do_irq+")]
SOFTIRQ: list[Step] = [*ENTRY, (30, "handle_softirqs"), (40, "my_softirq")]


@pytest.mark.parametrize("count", [0, 1, 0x200, 0x8000_0000, 0x8000_0001])
def test_an_interrupt_behind_another_finds_the_count_that_the_first_found(
    count: int,
) -> None:
    """The second came before the thread executed anything: it has no record."""
    before = [*BEFORE, *AGAIN]

    found = dominant(before, [(900, "scan+")], (100, count))

    cause = OFF if count & 0xFFFF else NOBODY
    assert found.cause is cause
    assert any(f"count was {count & 0xFFFF:#x}" in told for told in found.evidence)


@pytest.mark.parametrize("count", [0, 1, 0x200])
def test_the_count_of_a_softirq_is_not_that_of_the_thread_below_it(count: int) -> None:
    before = [*BEFORE, *SOFTIRQ]
    at = sum(step[0] for step in before)
    after: list[Step] = [(10, "my_softirq+"), (5, "do_irq+"), (900, "scan+")]

    found = dominant(before, after, (100, count), (at, count + 0x100))

    assert found.name == "scan"
    assert found.cause is (OFF if count else NOBODY)
