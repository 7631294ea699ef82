"""Power, heat, clock and memory: of ticks, in comparisons, and how often they alarm."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.measurements import machine, record, thread
from rtscope.contract import CounterDelta, KernelThread, Tick
from rtscope.contract.lines import dump_line, parse_line
from rtscope.present.model.build import build_model
from rtscope.present.model.comparison import build_comparison
from rtscope.record.model import RunRecord
from rtscope.stats.compare import compare_loads
from rtscope.stats.meters import METERS, meters_of
from rtscope.stats.runsets import run_sets

SECOND_NS = 1_000_000_000
RAPL, CORE = "package-0/intel-rapl:0", "core/intel-rapl:0:0"


def tick(second: int, **meters: object) -> Tick:
    return Tick(t_ns=second * SECOND_NS, cpus=(), freq_khz={}, temp_mc={}, **meters)  # type: ignore[arg-type]


def of(*ticks: Tick) -> dict[str, float]:
    return dict(meters_of(record([thread([5_000] * 10)], ticks=ticks)))


def test_power_is_what_counters_of_energy_grew_by() -> None:
    ticks = [tick(n, energy_uj={RAPL: n * 9_000_000, CORE: n}) for n in range(1, 4)]

    assert of(*ticks)["power_w"] == pytest.approx(9.0)


def test_a_counter_that_begins_anew_leaves_its_second_out() -> None:
    counted = (9_000_000, 18_000_000, 1_000_000, 10_000_000)
    ticks = [tick(n, energy_uj={RAPL: uj}) for n, uj in enumerate(counted, 1)]

    assert of(*ticks)["power_w"] == pytest.approx(9.0)


def test_power_of_hwmon_counts_where_there_is_no_energy() -> None:
    ticks = [tick(1, power_uw={"ina/power1/0": 4_000_000, "gpu/power1/1": 2_000_000})]

    assert of(*ticks) == {"power_w": 6.0}


def test_the_hottest_sensor_and_the_most_memory_count() -> None:
    first = tick(1, device_mc={"amdgpu/edge/0": 61_500}, memory_used_kb=1_000_000)
    second = replace(tick(2, memory_used_kb=900_000), temp_mc={"cpu/0": 60_000})

    found = of(first, second)

    assert found == {"hottest_c": 61.5, "memory_mb": 1024.0}


def test_what_was_not_measured_is_no_number() -> None:
    assert of() == {}
    assert of(tick(1)) == {}
    assert of(tick(1, energy_uj={RAPL: 5})) == {}


def test_ticks_without_meters_are_written_as_ever() -> None:
    said = dump_line(tick(1))

    assert b"energy" not in said
    assert b"memory" not in said
    full = tick(1, energy_uj={RAPL: 5}, device_mc={"x": -3000}, memory_used_kb=1)
    assert parse_line(dump_line(full)) == full


def a_run(drawn: random.Random, number: int, *, watts: float = 10.0) -> RunRecord:
    """Return a run whose meters vary from run to run, and drift as a machine warms."""
    power = watts * drawn.lognormvariate(0, 0.05)
    hot = 45_000 + round(number * 300 + drawn.gauss(0, 1_500))
    ticks = tuple(
        replace(
            tick(
                n,
                energy_uj={RAPL: round(n * power * 1e6)},
                memory_used_kb=round(500_000 * drawn.lognormvariate(0, 0.02)),
            ),
            temp_mc={"cpu/0": hot + drawn.randrange(500)},
            freq_khz={0: round(2_000_000 * drawn.lognormvariate(0, 0.01))},
        )
        for n in range(1, 4)
    )
    latencies = [drawn.randrange(3_000, 9_000) for _ in range(20)]
    return record([thread(latencies)], repetition=number, ticks=ticks)


def randomised(runs: Sequence[RunRecord], drawn: random.Random) -> list[RunRecord]:
    """Give runs the labels and places that a random order of variants would."""
    made = []
    for block in range(len(runs) // 2):
        names = ["a", "b"]
        drawn.shuffle(names)
        for one, name in zip(runs[2 * block : 2 * block + 2], names, strict=True):
            run = replace(one.run, variant=name, block=block + 1)
            campaign = {"campaign": {"order_seed": 7}}
            made.append(replace(one, run=run, campaign=campaign))
    return made


@pytest.fixture(scope="module")
def alarms() -> dict[str, int]:
    """200 comparisons of a machine with itself: how often each meter alarms."""
    counts = dict.fromkeys(METERS, 0)
    for seed in range(200):
        drawn = random.Random(seed)
        runs = randomised([a_run(drawn, n + 1) for n in range(16)], drawn)
        groups = {
            name: [one for one in runs if one.run.variant == name] for name in "ab"
        }
        [found] = compare_loads([run_sets(groups)])
        for effect in found.pairs[0].meters:
            counts[effect.figure] += effect.found
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("key", METERS)
def test_equal_machines_alarm_in_at_most_5_percent(
    key: str, alarms: dict[str, int]
) -> None:
    assert alarms[key] <= 10


def sets_of(watts: float) -> dict[str, list[RunRecord]]:
    drawn = random.Random(3)
    runs = randomised([a_run(drawn, n + 1) for n in range(16)], drawn)
    more = random.Random(4)
    return {
        "a": [one for one in runs if one.run.variant == "a"],
        "b": [
            replace(
                one,
                ticks=a_run(more, one.run.repetition, watts=watts).ticks,
            )
            for one in runs
            if one.run.variant == "b"
        ],
    }


def test_twice_the_power_is_found_and_said() -> None:
    compared = build_comparison(sets_of(20.0))
    [load] = compared.loads
    words = {one.key: one.word for one in load.meters}

    assert words["power_w"] == "DIFFERENT"
    assert words["memory_mb"] == "NO EVIDENCE"
    [said] = [one.sentence for one in load.meters if one.key == "power_w"]
    assert said.startswith("Power: ")
    assert "of b, " in said


def test_a_run_without_a_meter_takes_it_out_of_the_comparison() -> None:
    sets = sets_of(20.0)
    sets["b"][0] = replace(sets["b"][0], ticks=())

    [load] = build_comparison(sets).loads

    assert load.meters == ()


def test_an_interrupt_thread_is_named_with_its_device() -> None:
    one = record([thread([5_000] * 1000)])
    busy = KernelThread(
        tid=9, name="irq/39-dwc_otg", kind="irq", cpu=1, cpu_time_ns=310_000_000
    )
    interrupt = CounterDelta(
        "39", "GICv2 41 Level dwc_otg, dwc_otg_hcd:usb1", {1: 8_000}
    )
    counted = replace(machine(), kernel_threads=(busy,), interrupts=(interrupt,))
    one = replace(one, result=replace(one.result, machine=counted))

    found = " ".join(build_model([one]).findings)

    assert "irq/39-dwc_otg (GICv2 41 Level dwc_otg, dwc_otg_hcd:usb1) used 31%" in found
