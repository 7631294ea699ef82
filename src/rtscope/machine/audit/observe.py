"""
Look at a machine twice, and try on this one what no file tells.

The window is the only wait of an audit. What is tried (a real-time policy in a child,
the cost of the clock) is tried on the machine that rtscope runs on; on another one its
agent tries. Opening /dev/cpu_dma_latency registers a request that bounds nothing
(kernel/power/qos.c), and SMIs are counted in a register: neither is changed.
"""

import array
import contextlib
import errno
import fcntl
import itertools
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.contract import AgentError, AgentResult, Line
from rtscope.host.units import NS_PER_S, is_whole
from rtscope.machine.audit.context import (
    DMA_LATENCY,
    WATCHED,
    Observed,
    Trial,
    is_requested,
)
from rtscope.machine.reader import Content, Reader, text_of

KMSG = "/dev/kmsg"
MAX_LOG_BYTES = 4 * 1024 * 1024
TRIAL_PRIORITY = 80
"""Of the real-time policy that the audit tries in a child process."""
CLOCK_READINGS = 2001


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
    return observe_here(counted)


def observe_here(observed: Observed, *, trial: bool = True) -> Observed:
    """Add what only this machine can tell: log, a trial if asked, clock, devices."""
    log, why = read_kernel_log()
    latency_us, why_no_latency = read_dma_latency()
    coalescing, why_no_coalescing = read_coalescing()
    return replace(
        observed,
        dma_latency_us=latency_us,
        why_no_dma_latency=why_no_latency,
        dma_holders=who_holds() if is_requested(latency_us) else {},
        coalescing=coalescing,
        why_no_coalescing=why_no_coalescing,
        kernel_log=log,
        why_no_log=why,
        trial=try_realtime() if trial else None,
        clock_cost_ns=_clock_cost_ns(),
        clock_resolution_ns=round(time.clock_getres(time.CLOCK_MONOTONIC) * NS_PER_S),
    )


def observe_settings(target: str) -> Observed:
    """Return what no file tells of settings: of this machine only, by asking it."""
    if target != "local":
        return Observed()
    coalescing, why_not = read_coalescing()
    return Observed(coalescing=coalescing, why_no_coalescing=why_not)


def try_realtime() -> Trial:
    """Ask for SCHED_FIFO in a child that does nothing else, and ends."""
    request = f"sched_setscheduler(SCHED_FIFO, {TRIAL_PRIORITY}) in a child"
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
        return Trial(request, None)
    if status < 0:
        return Trial(request, errno.EIO, f"the child was ended by signal {-status}")
    return Trial(request, status, os.strerror(status))


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
    micros = int(fields[2]) if len(fields) > 2 and is_whole(fields[2]) else 0
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


DMA_LATENCY_BYTES = 4

MSR_SMI_COUNT = 0x34
"""arch/x86/include/asm/msr-index.h; of Intel's processors since Nehalem."""
MSR_BYTES = 8


def latency_of(content: bytes) -> int | None:
    """Return what a reading of /dev/cpu_dma_latency says, in us; None if it is none."""
    if len(content) != DMA_LATENCY_BYTES:
        return None
    return int.from_bytes(content, sys.byteorder, signed=True)


def read_dma_latency(path: str = DMA_LATENCY) -> tuple[int | None, str]:
    """Return the wake-up time that programs now ask for, in us, or None and why not."""
    try:
        latency_us = latency_of(_read_at(path, DMA_LATENCY_BYTES, 0))
    except OSError as error:
        return None, f"{path} cannot be read: {error.strerror}"
    return latency_us, "" if latency_us is not None else f"{path} gave no number"


def who_holds(path: str = DMA_LATENCY, proc: Path = Path("/proc")) -> Mapping[str, str]:
    """Return who has a device open, as far as this user may see: descriptor to name."""
    names: dict[str, str] = {}
    for process in proc.iterdir():
        if not is_whole(process.name) or int(process.name) == os.getpid():
            continue
        try:
            for descriptor in (process / "fd").iterdir():
                if str(descriptor.readlink()) == path:
                    name = (process / "comm").read_text("utf-8", "replace").strip()
                    names[str(descriptor)] = name
        except OSError:  # it ended, or is another user's
            continue
    return names


def smi_counts(folder: Path = Path("/dev/cpu")) -> tuple[Mapping[str, int], str]:
    """Return how many SMIs each CPU has seen since its reset, or none and why not."""
    try:
        cpus = sorted(int(p.name) for p in folder.iterdir() if is_whole(p.name))
    except FileNotFoundError:
        cpus = []
    except OSError as error:
        return {}, f"{folder} cannot be read: {error.strerror}"
    if not cpus:
        return {}, f"{folder} has no registers: modprobe msr, as root"
    counts: dict[str, int] = {}
    for cpu in cpus:
        path = str(folder / str(cpu) / "msr")
        try:
            content = _read_at(path, MSR_BYTES, MSR_SMI_COUNT)
        except OSError as error:
            return {}, f"{path} cannot be read: {error.strerror}; only root may"
        counts[path] = int.from_bytes(content, "little")
    return counts, ""


def _read_at(path: str, size: int, offset: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        # The first device is no file with places in it, the second is nothing else.
        return (
            os.pread(descriptor, size, offset) if offset else os.read(descriptor, size)
        )
    finally:
        os.close(descriptor)


TRIAL_NS = 20_000_000
"""Some wake-ups of the agent, which reads back the policy that it got."""

AGENT_REQUEST = f"SCHED_FIFO {TRIAL_PRIORITY}, by the agent"

TRIAL_ARGS = (
    *("measure", "--priority", str(TRIAL_PRIORITY)),
    *("--duration-ns", str(TRIAL_NS)),
)

_REFUSED = ("capability", "rlimit", "cgroup")
"""Causes of the contract for which sched_setscheduler(2) says EPERM."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How a trial by the agent went."""

    trial: Trial | None
    """None if the agent said nothing."""
    clock_cost_ns: int | None
    """Median of a reading of the clock; None if nothing was measured."""


def read_trial(lines: Iterable[Line]) -> TrialResult:
    """Return what an agent said that was started with TRIAL_ARGS."""
    for line in lines:
        if isinstance(line, AgentError):
            error = errno.EPERM if line.cause in _REFUSED else errno.EIO
            return TrialResult(Trial(AGENT_REQUEST, error, line.message), None)
        if isinstance(line, AgentResult):
            clocks = [thread.clock_before for thread in line.threads]
            costs = [cost.p50_ns for cost in clocks if cost is not None]
            return TrialResult(Trial(AGENT_REQUEST, None), max(costs, default=None))
    return TrialResult(None, None)


# --- interrupt delays of network drivers --------------------------------------------

# The question is ETHTOOL_GCOALESCE of ioctl(2) SIOCETHTOOL, which every user may ask
# (net/ethtool/ioctl.c); `ethtool -c` shows the same. Only interfaces that are up are
# asked: the question would wake a device that sleeps.

SIOCETHTOOL = 0x8946
ETHTOOL_GCOALESCE = 0x0000000E

_WORDS = 23
"""Of struct ethtool_coalesce (include/uapi/linux/ethtool.h), 32 bits each."""
_PLACES = {
    "rx-usecs": 1,
    "rx-frames": 2,
    "tx-usecs": 5,
    "tx-frames": 6,
    "adaptive-rx": 10,
    "adaptive-tx": 11,
}
"""The words by the names of ethtool(8)."""

Coalescing = Mapping[str, int]
"""Of one interface, by the names of ethtool(8); empty: its driver does not tell."""


def ask_driver(interface: str) -> Coalescing:
    """Ask one driver; raises OSError, but for a driver that does not know the words."""
    words = array.array("I", [ETHTOOL_GCOALESCE, *[0] * (_WORDS - 1)])
    address, _ = words.buffer_info()
    # struct ifreq: a name of 16 bytes, and here a pointer, in a union of 24 bytes.
    request = struct.pack("16sP16x", interface.encode(), address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            fcntl.ioctl(sock, SIOCETHTOOL, request)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                return {}
            raise
    return {name: words[place] for name, place in _PLACES.items()}


def read_coalescing(
    folder: Path = Path("/sys/class/net"),
    *,
    ask: Callable[[str], Coalescing] = ask_driver,
) -> tuple[Mapping[str, Coalescing] | None, str]:
    """Return what each interface of hardware that is up says; or None and why not."""
    by_interface: dict[str, Coalescing] = {}
    try:
        for interface in sorted(folder.iterdir()):
            if not (interface / "device").exists():
                continue
            if (interface / "operstate").read_text("utf-8").strip() == "up":
                by_interface[interface.name] = ask(interface.name)
    except OSError as error:
        return None, f"the network interfaces cannot be asked: {error.strerror}"
    return by_interface, ""
