"""
Look at a machine twice, and try on this one what no file tells.

The window is the only wait of an audit. What is tried (a real-time policy in a child,
the cost of the clock) is tried on the machine that rtscope runs on and nowhere else.
"""

import contextlib
import errno
import itertools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from rtscope.audit.devices import is_asked, read_dma_latency, smi_counts, who_holds
from rtscope.audit.interrupts import INTERRUPTS
from rtscope.audit.power import CURRENT
from rtscope.audit.scene import Observed, Trial
from rtscope.audit.surroundings import STAT
from rtscope.machine.reader import Content, Reader, text_of

WATCHED = (INTERRUPTS, STAT, CURRENT)
KMSG = "/dev/kmsg"
MAX_LOG_BYTES = 4 * 1024 * 1024
TRIAL_PRIORITY = 80
"""What rtscope measures with if nothing else is said."""
CLOCK_READINGS = 2001

NS_PER_S = 1_000_000_000


def watch(
    reader: Reader, window_ns: int, *, sleep: Callable[[float], None] = time.sleep
) -> Observed:
    """Read the counters twice, `window_ns` apart; raises TargetError."""
    if window_ns <= 0:
        return Observed()
    began = time.monotonic_ns()
    before = _texts(reader.read_many(WATCHED))
    sleep(window_ns / NS_PER_S)
    after = _texts(reader.read_many(WATCHED))
    took = max(time.monotonic_ns() - began, window_ns)
    return Observed(window_ns=took, before=before, after=after)


def watch_here(reader: Reader, window_ns: int) -> Observed:
    """Watch this machine and add what only it can tell: log, trial, clock, devices."""
    before, _ = smi_counts()
    observed = watch(reader, window_ns)
    after, why = smi_counts()
    counted = replace(observed, smi_before=before, smi_after=after, why_no_smi=why)
    return look_here(counted)


def look_here(observed: Observed, *, trial: bool = True) -> Observed:
    """Add what only this machine can tell: log, a trial if asked, clock, devices."""
    log, why = read_kernel_log()
    latency_us, why_no_latency = read_dma_latency()
    return replace(
        observed,
        dma_latency_us=latency_us,
        why_no_dma_latency=why_no_latency,
        dma_holders=who_holds() if is_asked(latency_us) else {},
        kernel_log=log,
        why_no_log=why,
        trial=try_realtime() if trial else None,
        clock_cost_ns=_clock_cost_ns(),
        clock_resolution_ns=round(time.clock_getres(time.CLOCK_MONOTONIC) * NS_PER_S),
    )


def try_realtime() -> Trial:
    """Ask for SCHED_FIFO in a child that does nothing else, and ends."""
    asked = f"sched_setscheduler(SCHED_FIFO, {TRIAL_PRIORITY}) in a child"
    child = os.fork()
    if child == 0:
        status = 0
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(TRIAL_PRIORITY))
        except OSError as error:
            status = error.errno or errno.EIO
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(ended)
    if status == 0:
        return Trial(asked, None)
    if status < 0:
        return Trial(asked, errno.EIO, f"the child was ended by signal {-status}")
    return Trial(asked, status, os.strerror(status))


def read_kernel_log(path: str = KMSG) -> tuple[str | None, str]:
    """Return the kernel log as dmesg prints it, or None and why not."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return None, f"the kernel log cannot be read: {error.strerror}"
    lines: list[str] = []
    size = 0
    with contextlib.closing(os.fdopen(descriptor, "rb", buffering=0)):
        while size < MAX_LOG_BYTES:
            try:
                record = os.read(descriptor, 8192)
            except BrokenPipeError:  # overwritten while we read; the next one is there
                continue
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    break
                return None, f"the kernel log cannot be read: {error.strerror}"
            if not record:
                break
            size += len(record)
            lines.append(_log_line(record.decode("utf-8", "replace")))
    return "\n".join(lines), ""


def _log_line(record: str) -> str:
    """Return a record of /dev/kmsg (ABI/testing/dev-kmsg) as dmesg prints it."""
    head, _, text = record.partition(";")
    fields = head.split(",")
    micros = int(fields[2]) if len(fields) > 2 and fields[2].isdecimal() else 0
    return f"[{micros // 10**6:5d}.{micros % 10**6:06d}] {text.partition(chr(10))[0]}"


def _clock_cost_ns() -> int:
    """Return the median time between two readings of the clock, one after another."""
    stamps = [
        time.clock_gettime_ns(time.CLOCK_MONOTONIC) for _ in range(CLOCK_READINGS)
    ]
    gaps = sorted(b - a for a, b in itertools.pairwise(stamps))
    return gaps[len(gaps) // 2]


def _texts(files: Mapping[str, Content]) -> Mapping[str, str]:
    return {p: t for p, c in files.items() if (t := text_of(c)) is not None}
