"""The clocks of a virtual board whose CPUs execute at the same time."""

import pytest
from bare import Board, build
from test_plugin import NS_PER_INSTRUCTION, board, qemu

from rtscope.record.instructions.section import SectionKind

__all__ = ["board", "qemu"]

CPUS = 4
TICK_NS = 100
"""Of the machine's clock."""


def latencies_ns(
    board: Board, source: str, *, quantum: int, **defined: int
) -> list[int]:
    """Return what a guest has marked, the largest first."""
    guest = build(source, **defined)
    cpus = defined.get("CPUS", 2)
    trace = board.record(guest, cpus=cpus, quantum=quantum, worst=64)
    return [s.latency_ns for s in trace.sections if s.kind is SectionKind.WORST]


@pytest.mark.parametrize("quantum", [50, 2500, 10_000])
def test_no_cpu_reads_a_clock_that_goes_backwards(board: Board, quantum: int) -> None:
    found = latencies_ns(board, "clocks.S", quantum=quantum, CPUS=CPUS, ROUNDS=50_000)

    assert found == [0] * CPUS


def test_all_cpus_execute_at_the_same_time(board: Board) -> None:
    alone = build("clocks.S", CPUS=1, ROUNDS=50_000)
    together = build("clocks.S", CPUS=CPUS, ROUNDS=50_000)

    (one,) = board.record(alone, cpus=1, quantum=2500).sections
    last = board.record(together, cpus=CPUS, quantum=2500).sections

    for each in last:
        assert each.last_ns == pytest.approx(one.last_ns, rel=0.01)


@pytest.mark.parametrize("quantum", [500, 2500])
def test_a_cpu_that_is_woken_begins_when_the_interrupt_was_sent(
    board: Board, quantum: int
) -> None:
    found = latencies_ns(board, "wakes.S", quantum=quantum, ROUNDS=20, SPINS=700)

    # From one reading to the other are some ten instructions.
    assert len(found) == 20
    assert all(0 <= ns <= 20 * NS_PER_INSTRUCTION + TICK_NS for ns in found)


def test_sleeping_cpus_take_no_part(board: Board) -> None:
    guest = build("wakes.S", ROUNDS=3, SPINS=200_000)

    counted = board.count(guest, cpus=2, quantum=2500)

    # CPU 0 has the board for itself while CPU 1 sleeps: no quantum ends its turn.
    assert counted["instructions"] > 1_000_000
    assert counted["quanta_ended"] < 20
    assert counted["per_cpu"][1] < 1000
