"""What cells of a sweep cost besides latency."""

from dataclasses import replace

import pytest

from fakes.boardcosts import run
from rtscope.verbs.sweep.result import NO_COSTS, costs_of


def test_wake_ups_of_an_idle_machine_leave_out_those_of_the_measurement() -> None:
    seeds = [run("idle", seed=n, interrupts=2_000 + n) for n in (100, 300, 900)]

    assert costs_of(seeds).wakeups_per_s == 300
    assert costs_of([run("os")]).wakeups_per_s is None


def test_fewer_interrupts_than_wake_ups_tell_nothing() -> None:
    late = run("idle", interrupts=1_999)

    assert costs_of([late]).wakeups_per_s is None


def test_an_operation_has_the_instructions_of_the_cpus_that_were_not_idle() -> None:
    busy = run("os", operations=10_000)
    half = run("switch", operations=10_000, idle_s=1.0)

    # Two CPUs of 500 million instructions a second, and one of them.
    assert costs_of([busy, half]).instructions == pytest.approx(
        {"os": 100_000, "switch": 50_000}
    )


def test_a_load_without_operations_has_no_instructions() -> None:
    assert costs_of([run("idle", idle_s=1.0)]).instructions == {}


def test_memory_is_that_before_the_load_and_images_are_of_one_kernel() -> None:
    runs = [run("idle", memory_kb=kb) for kb in (800_000, 820_000)]
    loaded = run("os", memory_kb=100_000)
    other = run("idle", memory_kb=None, kernel_bytes=6 << 20)

    assert costs_of([*runs, loaded]).memory_available_kb == 810_000
    assert costs_of(runs).kernel_bytes == 5 << 20
    assert costs_of([*runs, other]).kernel_bytes is None
    assert costs_of([]) == NO_COSTS


def test_runs_that_differ_in_more_than_the_seed_have_no_median() -> None:
    one = run("idle", interrupts=2_020)
    other = run("idle", interrupts=3_000)
    other = replace(other, run=replace(other.run, kernel="another"))

    assert costs_of([one]).wakeups_per_s == 20
    assert costs_of([one, other]).wakeups_per_s is None
    assert costs_of([one, other]).memory_available_kb is None
