"""
The designs of somebody who has not read how rtscope explains, and their truth.

`truth.toml` was written, and committed, before the first explanation was read. What was
added to it later is marked, so that both truths can be judged by.
"""

import datetime
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from culprits.scenes import BOTH

HERE = Path(__file__).parent
PLAIN, RT = BOTH


@dataclass(frozen=True, slots=True)
class DesignSet:
    """Designs that one author wrote, with what plants them."""

    name: str
    folder: Path
    modules: tuple[str, ...]
    programs: tuple[str, ...]
    brief: bool = False
    """Its table has a row for each design, not for each kernel."""

    @property
    def slot(self) -> str:
        """What stands in the page before its table."""
        return f"<!-- {self.name} -->\n"

    @property
    def first(self) -> Path:
        """The verdicts of its first run."""
        return self.folder / "first.json"

    @property
    def sources(self) -> dict[str, Path]:
        """The file of each program."""
        places = (HERE / "programs", self.folder / "programs")
        return {
            name: next(p for folder in places if (p := folder / f"{name}.c").exists())
            for name in self.programs
        }


SETS = (
    DesignSet(
        "first set",
        HERE,
        ("acq", "bench", "gate", "audit", "quiesce", "cold"),
        ("deadline", "pichain", "borrower", "hog", "storm", "bpfspin"),
    ),
    DesignSet("second set", HERE / "second", ("shop", "wrap"), ("floor", "hog"), True),
    DesignSet(
        "third set", HERE / "third", ("harbor", "dock", "pier", "quay"), ("yard",)
    ),
    DesignSet("fourth set", HERE / "fourth", ("mill",), ("miller",), True),
)
PATH = DesignSet("path", HERE / "path", ("harbour",), ("dock", "customs", "hog"), True)
"""What delays an event of a device on its way: it has a page of its own."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a truth did not list at first, and why it is right all the same."""

    on: datetime.date
    why: str
    """It names a function of the kernel."""
    path: str
    """Of a record, innermost first, as `rtscope explain` prints it."""
    causes: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    """As the words were at first, if more are allowed now."""


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
    """What plants it; it waits 300 ms first."""
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
    alone: bool = False
    """It needs a boot of its own."""
    long: bool = False
    """It takes more than a slot, so nothing follows it."""
    ready: str = ""
    """What comes before the measurement, so that it is not the worst of it."""
    event: str = ""
    """What wakes the thread, as `rtscope run` has it; "" for its own timer."""
    completed: Completion | None = None
    """What `causes` and `must` have that they had not at first."""

    def at_first(self) -> "Design":
        """Return it with the truth as it was first written."""
        later = self.completed
        if later is None:
            return self
        causes = tuple(one for one in self.causes if one not in later.causes)
        return replace(
            self, causes=causes, must=later.must or self.must, completed=None
        )

    def expected(self, kernel: str) -> str:
        """Return late, maybe or quiet."""
        if kernel in self.late:
            return "late"
        return "maybe" if kernel in self.maybe else "quiet"


def read_designs(of: DesignSet = SETS[0]) -> tuple[Design, ...]:
    """Return all designs of a set, in the order of its file."""
    rows = tomllib.loads((of.folder / "truth.toml").read_text())["design"]
    return tuple(_design(row) for row in rows)


def _design(row: dict[str, Any]) -> Design:
    kernels = {"plain": PLAIN, "rt": RT}
    words = dict(row)
    for key in ("late", "maybe"):
        words[key] = tuple(kernels[short] for short in row.get(key, ()))
    for key in ("causes", "must", "modules", "programs"):
        words[key] = tuple(row.get(key, ()))
    words["status"] = tuple(row.get("status", (0,)))
    # Its path takes in two CPUs and a device: the memory for paths holds a few of them.
    words["alone"] = row.get("alone", "event" in row)
    if later := row.get("completed"):
        lists = {key: tuple(later.get(key, ())) for key in ("causes", "must")}
        words["completed"] = Completion(**(later | lists))
    for key in ("script", "ready"):
        words[key] = " ".join(row.get(key, "").split())
    return Design(**words)
