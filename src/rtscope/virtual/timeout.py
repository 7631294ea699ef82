"""
How long a board is waited for: as long as it gets on, however slow this machine is.

Judged by the board's own time, which a busy host slows down but does not use up. A
board is given up if that time stands still, or if it has passed and the measurement has
not begun, or not ended. Pure; clocks come in as arguments.
"""

import re
from dataclasses import dataclass

NS_PER_S = 1_000_000_000

BOOT_NS = 30 * NS_PER_S
"""Virtual time until the measurement begins, warm-up apart: boots take 1 to 6 s."""

END_NS = 90 * NS_PER_S
"""From the end of the measurement: a load has 13 s to end, storage cleans up."""

STILL_S = 120.0
"""A turn takes microseconds of virtual time; a host so busy has stopped."""

LAST_S = 3600.0
LAST_PER_VIRTUAL_S = 1200.0
"""The last limit, in host time: a hundred times what a board takes on a free CPU."""

LONGEST_LOOK_S = 1.0
"""More between two looks is time in which this process itself was stopped."""

_LINE = re.compile(rb"([0-9]{20}) ([0-9]{20})\n")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a board is, as the plugin tells it; see plugin/progress.h."""

    virtual_ns: int
    measuring_since_ns: int | None
    """Virtual time when the measurement was seen to run; None before."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits of one boot."""

    duration_ns: int
    """Of the measurement."""
    warmup_ns: int = 0
    boot_ns: int = BOOT_NS
    still_s: float = STILL_S

    @property
    def last_s(self) -> float:
        """Host time after which any board is given up."""
        virtual_ns = self.duration_ns + self.warmup_ns
        return LAST_S + LAST_PER_VIRTUAL_S * virtual_ns / NS_PER_S


@dataclass(slots=True)
class Watch:
    """Looks at a board again and again; the only state is when it last got on."""

    patience: Patience
    _began_s: float
    _looked_s: float
    _still_s: float = 0.0
    _virtual_ns: int = -1

    def look(self, now_s: float, progress: Progress | None) -> str:
        """Return why the board is given up; empty while it is not."""
        virtual_ns = -1 if progress is None else progress.virtual_ns
        passed_s = min(now_s - self._looked_s, LONGEST_LOOK_S)
        self._still_s = 0.0 if virtual_ns > self._virtual_ns else self._still_s
        self._still_s += passed_s
        self._looked_s, self._virtual_ns = now_s, virtual_ns
        if self._still_s > self.patience.still_s:
            return _still(progress, self.patience.still_s)
        if now_s - self._began_s > self.patience.last_s:
            return f"it has not ended within {self.patience.last_s:.0f} s of host time"
        return _overdue(progress, self.patience) if progress else ""


def watch(patience: Patience, now_s: float) -> Watch:
    """Begin to watch a board that has just been started."""
    return Watch(patience, now_s, now_s)


def read_progress(content: bytes) -> Progress | None:
    """Read the plugin's line; None while there is none."""
    found = _LINE.fullmatch(content)
    if found is None:
        return None
    return Progress(int(found[1]), int(found[2]) or None)


def _still(progress: Progress | None, still_s: float) -> str:
    if progress is None:
        return f"QEMU did not begin to run it within {still_s:.0f} s"
    return (
        f"its time stands still at {progress.virtual_ns / NS_PER_S:.3f} s: nothing has "
        f"run for {still_s:.0f} s of host time, and no timer is set"
    )


def _overdue(progress: Progress, patience: Patience) -> str:
    if progress.measuring_since_ns is None:
        limit_ns = patience.boot_ns + patience.warmup_ns
        if progress.virtual_ns <= limit_ns:
            return ""
        return (
            f"it has run for {limit_ns / NS_PER_S:g} s of its own time and has not "
            "begun to measure"
        )
    measured_ns = progress.virtual_ns - progress.measuring_since_ns
    if measured_ns <= patience.duration_ns + END_NS:
        return ""
    return (
        f"it has not ended {END_NS / NS_PER_S:g} s of its own time after the "
        f"{patience.duration_ns / NS_PER_S:g} s of the measurement"
    )
