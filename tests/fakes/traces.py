"""A kernel's trace as an agent sends it: descriptions, formats and raw pages."""

import base64
import struct
from collections.abc import Sequence

from rtscope.contract import (
    Around,
    CounterDelta,
    CpuRuns,
    CpuTime,
    KeptTrace,
    TracedCpu,
    TraceFile,
    TracePages,
    Tracing,
)

HEADER_PAGE = b"""\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
HEADER_EVENT = b"# compressed entry header\n"
SWITCH = b"name: sched_switch\nID: 300\nformat:\n"
PAGE_BYTES = 4096


def page(time_ns: int, *, commit: int = 0) -> bytes:
    """Return a page of the kernel's ring that begins at a time."""
    return struct.pack("<QQ", time_ns, commit).ljust(PAGE_BYTES, b"\0")


def trace_file(name: str, content: bytes) -> TraceFile:
    """Return the line with a file."""
    return TraceFile(name, base64.b64encode(content).decode())


def trace_pages(cpu: int, seq: int, pages: Sequence[bytes]) -> TracePages:
    """Return the line with consecutive pages."""
    return TracePages(cpu, seq, base64.b64encode(b"".join(pages)).decode())


FILES = (
    trace_file("events/header_page", HEADER_PAGE),
    trace_file("events/header_event", HEADER_EVENT),
    trace_file("saved_cmdlines", b"77 rtscope/0\n"),
    trace_file("events/sched/sched_switch/format", SWITCH),
)


AROUND = Around(
    cpu=0,
    seq=17,
    expiry_ns=10**9,
    wake_ns=10**9 + 7_000,
    from_ns=10**9 - 60_000_000,
    to_ns=10**9 + 41_000_000,
    truncated=False,
    interrupts=(CounterDelta("LOC", "Local timer interrupts", {0: 107}),),
    softirqs=(CounterDelta("TIMER", "", {0: 4}),),
    cpu_times=(CpuTime(0, 0, 0, 0, 60_000_000, 40_000_000, 0),),
    switches=700,
    schedstat=(CpuRuns(0, 350, 99_000_000, 5_000_000),),
)


def tracing(
    *, cause: str = "", missed: bool = False, overrun: int = 0, cut: bool = False
) -> Tracing:
    """Return what a result says of a trace with one kept wake-up."""
    kept = KeptTrace(0, 17, 10**9, 10**9 + 7_000, 10**9, 2 * 10**9, 2, cut, missed)
    return Tracing(
        enabled=not cause,
        counter_deltas=(AROUND,) if cause else (),
        cause=cause,
        reason="tracing is for root alone" if cause else "",
        remedy="run as root or with sudo" if cause else "",
        clock="mono",
        page_bytes=PAGE_BYTES,
        buffer_kb=4096,
        longest_read_gap_ns=50_000_000,
        candidates_lost=0,
        events=("sched:sched_switch",),
        missing_events=("preemptirq:irq_disable",),
        cpus=(TracedCpu(0, 200, 4, 1 if overrun else 0, 0, overrun, -1),),
        kept=(kept,),
    )
