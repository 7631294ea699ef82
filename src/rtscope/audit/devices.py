"""
Read on this machine what is no regular file: requests for short idle states, SMIs.

Opening the first registers a request that bounds nothing (kernel/power/qos.c); the
second is a register that the processor counts in. Neither is changed.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

DMA_LATENCY = "/dev/cpu_dma_latency"
DMA_LATENCY_BYTES = 4

NOBODY_ASKS_US = 2_000_000_000
"""PM_QOS_CPU_LATENCY_DEFAULT_VALUE (include/linux/pm_qos.h)."""

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


def is_asked(latency_us: int | None) -> bool:
    """Whether some program asks for short wake-up times; not if that is unknown."""
    return latency_us is not None and latency_us < NOBODY_ASKS_US


def who_holds(path: str = DMA_LATENCY, proc: Path = Path("/proc")) -> Mapping[str, str]:
    """Return who has a device open, as far as this user may see: descriptor to name."""
    found: dict[str, str] = {}
    for process in proc.iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            for descriptor in (process / "fd").iterdir():
                if str(descriptor.readlink()) == path:
                    name = (process / "comm").read_text("utf-8", "replace").strip()
                    found[str(descriptor)] = name
        except OSError:  # it ended, or is another user's
            continue
    return found


def smi_counts(folder: Path = Path("/dev/cpu")) -> tuple[Mapping[str, int], str]:
    """Return how many SMIs each CPU has seen since its reset, or none and why not."""
    try:
        cpus = sorted(int(p.name) for p in folder.iterdir() if p.name.isdecimal())
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
