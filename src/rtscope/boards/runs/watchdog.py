"""
When a boot is given up.

Timeouts are in virtual time, so a slow or busy host does not cause them: a boot is
ended if its time stands still although QEMU could run, or if too much of it passes
before the measurement begins or ends.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtscope.boards.runs.diagnosis import HOST_LIMIT
from rtscope.host.units import NS_PER_S
from rtscope.measure.execute import BoardProgress

BOOT_NS = 30 * NS_PER_S
"""Virtual time until the measurement begins, warm-up apart: boots take 1 to 6 s."""

END_NS = 90 * NS_PER_S
"""Virtual time after the measurement: a load has 13 s to end, storage cleans up."""

STILL_S = 120.0
"""Host time without progress: a quantum takes microseconds of virtual time."""

LAST_S = 3600.0
LAST_PER_VIRTUAL_S = 1200.0
"""The last limit, in host time: a hundred times that of a board on a free CPU."""

LONGEST_PAUSE_S = 1.0
"""A longer pause between two polls means that this process was stopped."""

_LINE = re.compile(rb"([0-9]{20}) ([0-9]{20})\n")


@dataclass(frozen=True, slots=True)
class BootTimeout:
    """The limits of one boot."""

    duration_ns: int
    """Of the measurement."""
    warmup_ns: int = 0
    boot_ns: int = BOOT_NS
    still_s: float = STILL_S
    host_s: float | None = None
    """Host time after which it is ended, if the user has set one."""

    @property
    def last_s(self) -> float:
        """Host time after which every boot is ended."""
        if self.host_s is not None:
            return self.host_s
        virtual_ns = self.duration_ns + self.warmup_ns
        return LAST_S + LAST_PER_VIRTUAL_S * virtual_ns / NS_PER_S


@dataclass(frozen=True, slots=True)
class CpuUse:
    """What a program has of the CPUs of this machine."""

    cpu_s: float
    wants_more: bool
    """Whether one of its threads runs, waits for a CPU, or for a disk."""


def cpu_use(pid: int) -> CpuUse | None:
    """Return what a running process has (man 5 proc_pid_stat); None if it has ended."""
    try:
        whole = Path(f"/proc/{pid}/stat").read_text()
        threads = [one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return None
    # The name, in parentheses, may have any character.
    user, system = whole.rpartition(")")[2].split()[11:13]
    states = {thread.rpartition(")")[2].split()[0] for thread in threads}
    ticks_s = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return CpuUse(ticks_s, wants_more=bool(states & {"R", "D"}))


@dataclass(slots=True)
class Watchdog:
    """
    Watches the progress of a board; its state is the time of the last progress.

    Time in which QEMU waits for a CPU of this machine is none without progress.
    """

    timeout: BootTimeout
    use: Callable[[], CpuUse | None]
    _polled_s: float = 0.0
    _cpu_s: float = 0.0
    _still_s: float = 0.0
    _virtual_ns: int = -1

    def check(self, board: BoardProgress) -> str:
        """Return the reason to end the boot; empty while it makes progress."""
        virtual_ns = -1 if board.virtual_ns is None else board.virtual_ns
        passed_s = min(board.host_s - self._polled_s, LONGEST_PAUSE_S)
        if virtual_ns > self._virtual_ns:
            self._still_s = passed_s
        else:
            self._still_s += self._without_progress(passed_s)
        self._polled_s, self._virtual_ns = board.host_s, virtual_ns
        if self._still_s > self.timeout.still_s:
            return _still(board, self.timeout.still_s)
        if board.host_s > self.timeout.last_s:
            return (
                f"it has not ended within {self.timeout.last_s:.0f} s {HOST_LIMIT}; to "
                "wait longer: --host-limit, or host_limit in the table campaign of a "
                "file"
            )
        return _overdue(board, self.timeout)

    def _without_progress(self, passed_s: float) -> float:
        """Return how much of the time QEMU could have used."""
        use = self.use()
        if use is None:
            return passed_s
        ran_s, self._cpu_s = use.cpu_s - self._cpu_s, use.cpu_s
        return min(passed_s, ran_s) if use.wants_more else passed_s


def read_progress(content: bytes, *, host_s: float) -> BoardProgress:
    """Read the plugin's line (plugin/progress.h), once there is one."""
    match = _LINE.fullmatch(content)
    if match is None:
        return BoardProgress(host_s)
    return BoardProgress(host_s, int(match[1]), int(match[2]) or None)


def _still(board: BoardProgress, still_s: float) -> str:
    if board.virtual_ns is None:
        return f"QEMU did not begin to run it within {still_s:.0f} s"
    return (
        f"its time stands still at {board.virtual_ns / NS_PER_S:.3f} s: nothing has "
        f"run for {still_s:.0f} s of host time: no timer is set, or QEMU was stopped"
    )


def _overdue(board: BoardProgress, timeout: BootTimeout) -> str:
    begin_ns = timeout.boot_ns + timeout.warmup_ns
    if board.measured_ns is None:
        if (board.virtual_ns or 0) <= begin_ns:
            return ""
        return (
            f"it has run for {begin_ns / NS_PER_S:g} s of its own time and has not "
            "begun to measure"
        )
    if board.measured_ns <= timeout.duration_ns + END_NS:
        return ""
    return (
        f"it has not ended {END_NS / NS_PER_S:g} s of its own time after the "
        f"{timeout.duration_ns / NS_PER_S:g} s of the measurement"
    )
