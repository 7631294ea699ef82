"""
The boots in which the designs are planted: up to four, one after the other.

A design has a slot of 200 ms, and the worst wake-up of its slot is judged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from culprits.scenes import BOTH
from culprits.strangers.truth import Design

INTERVAL_NS = 200_000
SLOT_MS = 200
SLOTS = 4
BEGIN_MS = 45
"""Of the first slot, since the first wake-up was due: a design waits 300 ms from where
it starts, and the measurement begins some 230 ms after that."""
QUIET_MS = 1000
"""Before all designs: what the kernel had put off for at most a second is over."""


@dataclass(frozen=True, slots=True)
class Boot:
    """Designs of one campaign, on both kernels."""

    designs: tuple[Design, ...]

    @property
    def name(self) -> str:
        """The name of the first design."""
        return self.designs[0].name

    @property
    def names(self) -> set[str]:
        """The names of all designs."""
        return {one.name for one in self.designs}

    def window_ns(self, design: Design) -> tuple[int, int]:
        """Return begin and end of a design's slot, since the first wake-up was due."""
        if design.alone:
            return 0, design.seconds * 1_000_000_000
        begin_ms = BEGIN_MS + SLOT_MS * self.designs.index(design)
        end_ms = 1000 * design.seconds if design.long else begin_ms + SLOT_MS
        return begin_ms * 1_000_000, end_ms * 1_000_000

    def campaign(self, files: Sequence[Path], out: Path) -> tuple[str, ...]:
        """Return what follows `rtscope run`."""
        one = self.designs[0]
        priority = ("--priority", "50") if one.policy == "fifo" else ()
        return (
            *("--target", "virtual:pc", "--kernel", ",".join(BOTH)),
            *("--load", "custom", "--cpus", str(one.cpu)),
            *(("--event", one.event) if one.event else ()),
            *("--warmup", f"{QUIET_MS + 200}ms"),
            *("--duration", f"{one.seconds}s", "--settle", "0s"),
            *("--interval", "200us", "--policy", one.policy, *priority),
            *("--worst", "8" if one.event else "64", "--host-limit", "10m"),
            *("--guest-files", ",".join(map(str, files))),
            *("--command", f"sh -c '{self._script()}'", "--out", str(out)),
        )

    def _script(self) -> str:
        """
        All that is started keeps to the first CPU unless it says else.

        The kernel's own culprits of the second CPU are kept away: vmstat_update is put
        off, and what a tracer writes is not kept.
        """
        ready = "".join(f"{one.ready} " for one in self.designs if one.ready)
        begin = (
            "taskset -p 1 $$ >/dev/null; echo 100 >/proc/sys/vm/stat_interval; "
            f"echo 0 >/sys/kernel/tracing/tracing_on; {ready}"
            f"usleep {QUIET_MS * 1000}"
        )
        slots = " ".join(
            f"(usleep {slot * SLOT_MS * 1000}; {design.script}{_end(design.script)}) &"
            for slot, design in enumerate(self.designs)
        )
        return f"{begin}; {slots} exec sleep 100"


def _end(script: str) -> str:
    return "" if script.endswith("&") else ";"


def boots_of(designs: Sequence[Design]) -> Iterator[Boot]:
    """Yield the boots of designs: a long one is the last of its boot."""
    waiting = [one for one in designs if not one.alone]
    yield from (Boot((one,)) for one in designs if one.alone)
    while waiting:
        chosen: list[Design] = []
        for one in waiting:
            if len(chosen) < SLOTS and _fits(one, chosen):
                chosen.append(one)
        waiting = [one for one in waiting if one not in chosen]
        yield Boot(tuple(chosen))


def _fits(one: Design, chosen: Sequence[Design]) -> bool:
    """A module is inserted once, and nothing follows a long design."""
    used = {module for other in chosen for module in other.modules}
    if any(other.long for other in chosen) or used & set(one.modules):
        return False
    if one.long and len(chosen) < SLOTS - 1:
        return False
    return all((o.cpu, o.policy, o.seconds) == _way(one) for o in chosen)


def _way(one: Design) -> tuple[int, str, int]:
    return one.cpu, one.policy, one.seconds
