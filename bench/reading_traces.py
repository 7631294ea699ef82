"""
How fast a trace is read and its worst wake-up explained: 5 million events.

The trace.dat file is made here, of pages such as the kernel writes: wake-ups of a
real-time thread on two CPUs, each with its interrupt. User CPU time is told, for this
machine may do other things too. Text is slower, as every line has to be taken apart; a
tenth of the events shows how much.
"""

import cProfile
import io
import pstats
import sys
import tempfile
import time
from pathlib import Path

from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.events.window import WakeupSelector, choose, window_around
from rtscope.record.events.dat import open_trace
from rtscope.record.events.events import Trace

ROOT = Path(__file__).parent.parent
EVENTS = 5_000_000
CPUS = 2
LEAST_PER_S = 2_000_000
PER_CYCLE = 3
CYCLE_NS = 100_000


def write_trace(path: Path, events: int) -> None:
    """Write a file with at least so many events; one wake-up is late."""
    sys.path.insert(0, str(ROOT / "tests"))
    from fakes.tracefiles import (
        Page,
        Record,
        dat_file,
        page_bytes,
        switch_payload,
        waking_payload,
    )

    load, thread = (b"load", 100, 120), (b"rtscope/0", 77, 0)
    cycle = (
        Record(90_000, waking_payload(b"rtscope/0", 77, 0, by=100)),
        Record(5_000, switch_payload(load, thread)),
        Record(5_000, switch_payload(thread, load, state=1)),
    )
    cycles = 4_000 // sum(len(record.payload) + 4 for record in cycle)
    slow = (cycle[0], Record(700_000, cycle[1].payload), cycle[2])
    pages_per_cpu = -(-events // (CPUS * cycles * PER_CYCLE))
    head = dat_file([[] for _ in range(CPUS)])
    records = [record for _ in range(cycles) for record in cycle]
    step = cycles * CYCLE_NS
    page = bytearray(page_bytes(Page(0, records)))
    late = bytearray(page_bytes(Page(0, [*slow, *records[PER_CYCLE:]])))
    table = head.index(b"flyrecord\0") + 10
    size = pages_per_cpu * len(page)
    content = bytearray(head)
    with path.open("wb") as file:
        for cpu in range(CPUS):
            at = table + 16 * cpu
            place = len(head) + cpu * size
            content[at : at + 16] = place.to_bytes(8, "little") + size.to_bytes(
                8, "little"
            )
        file.write(content)
        for _ in range(CPUS):
            now = 10**9
            for number in range(pages_per_cpu):
                chosen = late if number == pages_per_cpu // 2 else page
                chosen[:8] = now.to_bytes(8, "little")
                file.write(chosen)
                now += step if chosen is page else step + 695_000


def write_text(path: Path, events: int) -> None:
    """Write the same wake-ups as the kernel prints them; one of them is late."""
    task = "load-100     [000] d..2."
    wake = "sched_waking: comm=rtscope/0 pid=77 prio=0 target_cpu=000"
    to_thread = (
        "sched_switch: prev_comm=load prev_pid=100 prev_prio=120 prev_state=R ==> "
        "next_comm=rtscope/0 next_pid=77 next_prio=0"
    )
    to_load = (
        "sched_switch: prev_comm=rtscope/0 prev_pid=77 prev_prio=0 prev_state=S ==> "
        "next_comm=load next_pid=100 next_prio=120"
    )
    cycles = events // PER_CYCLE
    now = 10**6
    with path.open("w") as file:
        for number in range(cycles):
            late = 700 if number == cycles // 2 else 5
            for us, text in ((90, wake), (late, to_thread), (5, to_load)):
                now += us
                file.write(f"{task} {now // 10**6}.{now % 10**6:06}: {text}\n")


def explain(trace: Trace) -> int:
    """Find and explain the worst wake-up; return its latency in ns."""
    chosen = choose(trace, WakeupSelector())
    window, wakeup = window_around(trace, chosen.wakeup)
    return explain_events(window, wakeup, machine=MachineTraits()).latency_ns


def timed(path: Path) -> tuple[int, float, float, int]:
    """Return events, the seconds of user CPU to index and to explain, the latency."""
    began = time.process_time()
    trace = open_trace(path)
    indexed = time.process_time()
    latency_ns = explain(trace)
    ended = time.process_time()
    events = sum(len(rows.at_ns) for rows in trace.rows)
    return events, indexed - began, ended - indexed, latency_ns


def told(what: str, path: Path) -> float:
    """Measure and print; return events per second."""
    events, index_s, explain_s, latency_ns = timed(path)
    per_s = events / (index_s + explain_s)
    print(
        f"{what}: {events:,} events, {path.stat().st_size / 1e6:,.0f} MB: indexed in "
        f"{index_s:.2f} s, worst wake-up ({latency_ns} ns) found and explained in "
        f"{explain_s:.2f} s: {per_s / 1e6:.2f} million events/s"
    )
    return per_s


def profiled(path: Path) -> str:
    """Return where the time went."""
    profile = cProfile.Profile()
    profile.runcall(timed, path)
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(15)
    return text.getvalue()


def main() -> int:
    """Measure both forms; say where the time goes if trace.dat is too slow."""
    with tempfile.TemporaryDirectory() as scratch:
        dat, text = Path(scratch, "trace.dat"), Path(scratch, "trace.txt")
        write_trace(dat, EVENTS)
        per_s = told("trace.dat", dat)
        write_text(text, EVENTS // 10)
        told("text", text)
        if per_s < LEAST_PER_S:
            print(profiled(dat))
            print(f"trace.dat: fewer than {LEAST_PER_S:,} events/s")
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
