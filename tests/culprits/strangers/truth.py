"""
The designs of somebody who has not read how rtscope explains, and their truth.

`truth.toml` was written, and committed, before the first explanation was read.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from culprits.scenes import BOTH

INTERVAL_NS = 200_000
DONE_NS = 450_000_000
HERE = Path(__file__).parent
PLAIN, RT = BOTH


@dataclass(frozen=True, slots=True)
class Design:
    """What makes a wake-up late, and what has to be said of it."""

    name: str
    happens: str
    causes: tuple[str, ...]
    """The kinds that are right."""
    must: tuple[str, ...]
    """Regular expressions, of which the sentence has to match each."""
    script: str
    late: tuple[str, ...]
    """The kernels on which it is expected late."""
    maybe: tuple[str, ...] = ()
    """The kernels on which it may be late or not."""
    late_us: float = 150.0
    """From here on a wake-up is late."""
    cpu: int = 1
    seconds: int = 1
    policy: str = "fifo"
    status: tuple[int, ...] = (0,)
    """Of `rtscope run`: 3 where the design makes the measurement invalid."""
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    overrides: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Other kinds on a kernel."""

    @property
    def until_ns(self) -> int:
        """After that there are the kernel's own culprits, as in the first matrix."""
        return DONE_NS if self.seconds == 1 else self.seconds * 1_000_000_000

    def expected(self, kernel: str) -> str:
        """Return late, maybe or quiet."""
        if kernel in self.late:
            return "late"
        return "maybe" if kernel in self.maybe else "quiet"

    def causes_on(self, kernel: str) -> tuple[str, ...]:
        """Return the kinds that are right on a kernel."""
        return self.overrides.get(kernel, self.causes)

    def campaign(self, files: list[Path], out: Path) -> tuple[str, ...]:
        """Return what follows `rtscope run`, for both kernels."""
        priority = ("--priority", "50") if self.policy == "fifo" else ()
        return (
            *("--target", "virtual:pc", "--kernel", ",".join(BOTH)),
            *("--load", "custom", "--cpus", str(self.cpu), "--warmup", "200ms"),
            *(
                "--duration",
                f"{self.seconds}s",
                "--settle",
                "0s",
                "--interval",
                "200us",
            ),
            *("--policy", self.policy, *priority, "--worst", "64"),
            *("--guest-files", ",".join(map(str, files)), "--host-limit", "10m"),
            *("--command", f"sh -c '{self._whole()}'", "--out", str(out)),
        )

    def _whole(self) -> str:
        """
        The shell and what it starts keep to the first CPU unless they say else.

        The kernel's own culprit of the second CPU (vmstat_update) is put off.
        """
        begin = "taskset -p 1 $$ >/dev/null; echo 100 >/proc/sys/vm/stat_interval"
        end = "" if self.script.endswith("&") else ";"
        return f"{begin}; {self.script}{end} exec sleep 100"


def read_designs(path: Path = HERE / "truth.toml") -> tuple[Design, ...]:
    """Return all designs, in the order of the file."""
    rows = tomllib.loads(path.read_text())["design"]
    return tuple(_design(row) for row in rows)


def _design(row: dict[str, Any]) -> Design:
    kernels = {"plain": PLAIN, "rt": RT}
    words = dict(row)
    for key in ("late", "maybe"):
        words[key] = tuple(kernels[short] for short in row.get(key, ()))
    for key in ("causes", "must", "modules", "programs"):
        words[key] = tuple(row.get(key, ()))
    words["status"] = tuple(row.get("status", (0,)))
    words["overrides"] = {
        kernels[short]: tuple(causes)
        for short, causes in row.get("overrides", {}).items()
    }
    words["script"] = " ".join(row["script"].split())
    return Design(**words)
