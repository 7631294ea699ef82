"""
Records of a board under loads: heavy-tailed latencies, ticks, counters, all plausible.

The numbers come from a fixed seed; buckets, sums and worst wake-ups agree with each
other as the agent's do.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fakes.measurements import SECOND_NS, machine, record, thread
from rtscope.contract import (
    HIST_SUB_BITS,
    CounterDelta,
    KernelMessage,
    KernelThread,
    LoadEnd,
    LoadTick,
    ThreadResult,
    Tick,
    TickCpu,
    Wakeup,
)
from rtscope.record.caveats.catalogue import Caveat
from rtscope.record.model import LoadRecord, RunRecord

LOADS = ("idle", "cpu", "os", "memory", "storage")

_ARGV = {
    "cpu": ("stress-ng", "--matrix", "8"),
    "os": ("stress-ng", "--set", "8"),
    "memory": ("stress-ng", "--vm", "8"),
    "storage": ("stress-ng", "--dir", "8"),
}
_TAIL_US = {"idle": 1.5, "cpu": 2.5, "os": 6, "memory": 15, "storage": 4}


def campaign(
    *,
    loads: Sequence[str] = LOADS,
    cpus: int = 8,
    seconds: int = 600,
    interval_ns: int = 4_000_000,
    kernel: str | None = None,
    scale: float = 1.0,
    repetition: int = 1,
    seed: int = 1,
) -> list[RunRecord]:
    """Return one run for each load; `scale` stretches the tails."""
    rng = np.random.default_rng(seed)
    return [
        _run(
            rng,
            load,
            cpus=cpus,
            seconds=seconds,
            interval_ns=interval_ns,
            kernel=kernel,
            scale=scale * _TAIL_US.get(load, 20),
            number=number,
            repetition=repetition,
        )
        for number, load in enumerate(loads, 1)
    ]


def _run(
    rng: np.random.Generator,
    load: str,
    *,
    cpus: int,
    seconds: int,
    interval_ns: int,
    kernel: str | None,
    scale: float,
    number: int,
    repetition: int,
) -> RunRecord:
    per_second = SECOND_NS // interval_ns
    latencies = [
        _latencies(rng, seconds * per_second, scale * 1_000) for _ in range(cpus)
    ]
    threads = [
        _thread(values, cpu, interval_ns=interval_ns)
        for cpu, values in enumerate(latencies)
    ]
    maxima = [values.reshape(seconds, per_second).max(axis=1) for values in latencies]
    made = record(
        threads,
        load,
        kernel=kernel,
        repetition=repetition,
        facts={"cpus_online": f"0-{cpus - 1}"},
        ticks=_ticks(maxima, per_second),
        caveats=[Caveat("governor", "schedutil")],
    )
    return dataclasses.replace(
        made,
        run=dataclasses.replace(made.run, id=f"{number:03}-{load}-r{repetition}"),
        load=_load(load, seconds),
        command=("rtscope", "run", "--duration", f"{seconds}s", "--out", "results"),
        kernel_log=(KernelMessage(time_us=12, level=4, text="usb 1-1: reset device"),),
        result=dataclasses.replace(
            made.result,
            machine=dataclasses.replace(
                machine(range(cpus)),
                interrupts=(
                    CounterDelta(
                        "LOC", "Local timer", dict.fromkeys(range(cpus), 9000)
                    ),
                    CounterDelta("39", "dwc_otg", {0: 4_800_000, 1: 20}),
                ),
                softirqs=(CounterDelta("TIMER", "", dict.fromkeys(range(cpus), 700)),),
                kernel_threads=(
                    KernelThread(
                        39, "irq/39-dwc_otg", "irq", 0, int(0.31 * seconds * SECOND_NS)
                    ),
                    KernelThread(
                        12, "kworker/2:1H", "kernel", 2, int(0.02 * seconds * SECOND_NS)
                    ),
                ),
            ),
        ),
    )


def _latencies(
    rng: np.random.Generator, n: int, scale_ns: float
) -> npt.NDArray[np.int64]:
    bulk = rng.lognormal(np.log(7_000), 0.22, n)
    hit = rng.random(n) < 2e-3
    tail = np.minimum(rng.pareto(2.2, n), 80) * scale_ns
    return np.asarray(bulk + hit * tail, dtype=np.int64)


def _thread(
    values: npt.NDArray[np.int64], cpu: int, *, interval_ns: int
) -> ThreadResult:
    """As `fakes.measurements.thread`, for a million samples none of which skips."""
    values = np.minimum(values, interval_ns - 1, out=values)
    assert len(values) * interval_ns**2 < 2**63  # of the sum of squares
    shift = np.maximum(
        np.frexp(values.astype(float))[1].astype(np.int64) - 1 - HIST_SUB_BITS, 0
    )
    lows, counts = np.unique((values >> shift) << shift, return_counts=True)
    empty = thread([], cpu=cpu, interval_ns=interval_ns)
    worst = np.argsort(-values, kind="stable")[:64]
    return dataclasses.replace(
        empty,
        end_ns=empty.start_ns + len(values) * interval_ns,
        samples=len(values),
        min_ns=int(values.min()),
        max_ns=int(values.max()),
        sum_ns=int(values.sum()),
        sum_sq_ns2=int((values * values).sum()),
        histogram=tuple(zip(lows.tolist(), counts.tolist(), strict=True)),
        worst=tuple(
            Wakeup(cpu, int(i) + 1, due, due + int(values[i]))
            for i in worst
            for due in (empty.start_ns + (int(i) + 1) * interval_ns,)
        ),
    )


def _ticks(
    maxima: Sequence[npt.NDArray[np.int64]], per_second: int
) -> tuple[Tick, ...]:
    return tuple(
        Tick(
            t_ns=(second + 1) * SECOND_NS,
            cpus=tuple(
                TickCpu(cpu, (second + 1) * per_second, 0, int(values[second]))
                for cpu, values in enumerate(maxima)
            ),
            freq_khz={
                cpu: 1_500_000 if (second // 40 + cpu) % 5 else 1_200_000
                for cpu in range(len(maxima))
            },
            temp_mc={"cpu-thermal": 48_000 + 9 * min(second, 400)},
        )
        for second in range(len(maxima[0]))
    )


def _load(name: str, seconds: int) -> LoadRecord:
    argv = _ARGV.get(name, ())
    ticks = tuple(
        LoadTick(t_ns=s * SECOND_NS, processes=9, cpu_ns=s * 8 * SECOND_NS)
        for s in range(1, seconds + 1)
    )
    return LoadRecord(
        name=name,
        argv=argv,
        version="stress-ng 0.18.02" if argv else None,
        ticks=ticks if argv else (),
        end=LoadEnd(
            status=0,
            signal=None,
            stop_requested=True,
            killed=0,
            oom_kills=0,
            cpu_ns=seconds * 8 * SECOND_NS,
        )
        if argv
        else None,
        throughput={argv[1].removeprefix("--"): 1234.5} if argv else {},
    )
