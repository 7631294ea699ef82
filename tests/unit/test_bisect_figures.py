"""The figures that a search can go by."""

import pytest

from fakes.boardcosts import run
from rtscope.host.errors import UsageError
from rtscope.verbs.bisect.criterion import (
    FIGURES,
    check_figure_of_machines,
    check_load,
    format_value,
    heading,
    parse_margin,
    threshold_of,
    unit_of_values,
    value_of,
)
from rtscope.verbs.bisect.step import difference
from rtscope.verbs.sweep.result import costs_of


def test_what_a_kernel_costs_is_what_a_sweep_shows() -> None:
    idle = run("idle", interrupts=2_250)
    busy = run("switch", idle_s=1.0, operations=10_000)
    costs = costs_of([idle, busy])

    assert value_of(idle, "image") == costs.kernel_bytes == 5 << 20
    assert value_of(idle, "memory") == costs.memory_available_kb == 900_000
    assert value_of(idle, "wake-ups/s") == costs.wakeups_per_s == 250
    assert value_of(busy, "instructions") == costs.instructions["switch"] == 50_000
    assert value_of(busy, "operations/s") == 10_000


def test_a_run_without_a_figure_has_none() -> None:
    bare = run("switch", memory_kb=None, kernel_bytes=None)

    assert value_of(bare, "memory") is None
    assert value_of(bare, "image") is None
    assert value_of(bare, "instructions") is None
    assert value_of(bare, "operations/s") is None


@pytest.mark.parametrize(
    ("name", "load", "refused"),
    [
        ("memory", "os", "is of a machine without a load"),
        ("wake-ups/s", "os", "is of a machine without a load"),
        ("instructions", "idle", "the load idle does nothing"),
        ("operations/s", "idle", "the load idle does nothing"),
    ],
)
def test_a_load_whose_runs_do_not_have_the_figure_is_refused(
    name: str, load: str, refused: str
) -> None:
    with pytest.raises(UsageError, match=f"--figure {name}: {refused}"):
        check_load(name, load)
    check_load(name, "idle" if load == "os" else "os")


@pytest.mark.parametrize("name", ["image", "instructions"])
def test_what_a_machine_does_not_record_is_refused_for_it(name: str) -> None:
    with pytest.raises(UsageError, match="only records of virtual boards have it"):
        check_figure_of_machines(name)
    assert check_figure_of_machines("memory") == "memory"


@pytest.mark.parametrize("name", [n for n in FIGURES if not FIGURES[n].is_time])
def test_only_a_latency_takes_a_time_as_margin(name: str) -> None:
    with pytest.raises(UsageError, match="needs a share"):
        parse_margin("20us", name)
    assert parse_margin("20%", name).share == 0.2


def test_less_memory_and_a_larger_image_are_worse() -> None:
    less, more = [100.0, 101, 102, 103, 104], [200.0, 201, 202, 203, 204]

    assert difference(more, less, "memory").is_worse
    assert difference(less, more, "image").is_worse
    assert difference(less, more, "wake-ups/s").is_worse


def test_images_that_do_not_vary_differ_by_a_byte() -> None:
    margin = parse_margin(None, "image")
    one, other = dict.fromkeys((1, 2, 3), 5_000.0), dict.fromkeys((1, 2, 3), 5_001.0)

    assert threshold_of(one, other, margin).differs
    assert not threshold_of(one, one, margin).differs


def test_each_figure_is_written_with_its_unit() -> None:
    assert format_value(5_242_880, "image") == "5,242,880 bytes"
    assert format_value(901_234.0, "memory") == "901,234 kB"
    assert format_value(20_500, "max") == "20.5 µs"
    assert (unit_of_values("max"), unit_of_values("memory")) == ("ns", "kB")
    assert heading("max", "os", virtual=True) == "max under os, virtual time, µs"
    assert heading("image", "idle", virtual=True) == "image under idle, bytes"
    assert heading("wake-ups/s", "idle") == "wake-ups/s under idle"
