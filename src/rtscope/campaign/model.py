"""The resolved campaign: every default filled in, every value in range."""

from dataclasses import dataclass

from rtscope.units import NS_PER_S, NS_PER_US

VIRTUAL = "virtual:"
"""How the target of a virtual board begins."""

DEFAULT_SEED = 1
"""Of a virtual board."""

REALTIME_POLICIES = ("fifo", "rr")
"""The policies that have a priority."""

POLICIES = (*REALTIME_POLICIES, "other", "batch", "idle", "deadline")

DEFAULT_PRIORITY = 99
"""As cyclictest's users have it: nothing but the kernel's own threads is in the way."""


BOARD_SETTLE_NS = 10 * NS_PER_S
"""
Virtual time by which what a kernel puts off until after its boot is over.

The longest such wait that the distribution's kernels have on these boards is that for
missing drivers (deferred_probe_timeout, 10 s). Idle time costs the host little.
"""


def untraced_ns(duration_ns: int) -> int:
    """
    Return how long a traced run is measured without tracing, before and after.

    A quarter of its duration, from 1 s to 10 s: enough for p99.9 at the usual interval.
    """
    return min(max(duration_ns // 4, NS_PER_S), 10 * NS_PER_S)


@dataclass(frozen=True, slots=True)
class RunTable:
    """One [[run]]: the product of everything listed, repeated."""

    loads: tuple[str, ...] = ("idle", "cpu", "os", "memory", "storage")
    durations_ns: tuple[int, ...] = (20 * NS_PER_S,)
    policy_names: tuple[str, ...] = ("fifo",)
    priorities: tuple[int, ...] = ()
    """For fifo and rr; empty means DEFAULT_PRIORITY."""
    intervals_ns: tuple[int, ...] = (200 * NS_PER_US,)
    repetitions: int = 1
    cpus: tuple[int, ...] | None = None
    """The CPUs to measure; None means all that the agent may use."""

    @property
    def policies(self) -> tuple[tuple[str, int], ...]:
        """(policy, priority) pairs; the priority is 0 for policies without one."""
        return tuple(
            (name, priority)
            for name in self.policy_names
            for priority in (
                self.priorities or (DEFAULT_PRIORITY,)
                if name in REALTIME_POLICIES
                else (0,)
            )
        )


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything that decides what is measured, and how the machine is set for it."""

    name: str = "campaign"
    target: str = "local"
    """`local`, `ssh:HOST` or `virtual:BOARD`."""
    kernels: tuple[str, ...] = ()
    """Names, or with a slash paths; empty: the one that runs, of a board its first."""
    runs: tuple[RunTable, ...] = (RunTable(),)
    order: str = "interleaved"
    """`interleaved` (A B A B: a drift hits both alike) or `blocked` (A A B B)."""
    settle_ns: int | None = None
    """How long the machine is left alone first; None: see `settling_ns`."""
    warmup_ns: int = NS_PER_S
    """How long a load runs before its samples count."""
    deadline_ns: int | None = None
    claim: tuple[int, int] | None = None
    """(misses, ns): fewer than so many misses in that time is to be shown."""
    min_boots: int = 1
    """How often the machine must have been booted for a claim to hold."""
    seed: int | None = None
    """Of a virtual board; None means DEFAULT_SEED."""
    seeds: tuple[int, ...] = ()
    """Everything is run once with each; instead of `seed`."""
    require_identical: bool = False
    """Runs with equal inputs must have equal results: the gate of virtual boards."""
    worst: int = 16
    """How many of the worst wake-ups each CPU keeps."""
    record: bool = True
    """Virtual boards: record the paths to the worst wake-ups."""
    explain: bool = False
    """Machines: record the kernel's events around the worst wake-ups."""
    deadline_runtime_ns: int | None = None
    """SCHED_DEADLINE: the run time reserved per interval; None means half of it."""
    command: tuple[str, ...] = ()
    """The custom load."""
    files: tuple[str, ...] = ()
    """Paths of files that a virtual board gets below /files, for the custom load."""
    governor: str | None = None
    """The CPU frequency governor to set for the campaign; None leaves it alone."""
    hold_cpu_awake: bool = False
    rt_throttling: str = "keep"
    """`keep` or `off` (for the campaign)."""
    tuned: tuple[str, ...] = ()
    """Checks of the audit whose remedies are applied for the campaign, or `safe`."""
    storage_dir: str | None = None
    qemu: str | None = None
    """The path of one's own QEMU, for a virtual board."""
    locked: str | None = None
    """The path of a lock file: the packages that a board must be made of."""

    @property
    def board(self) -> str | None:
        """The name of the virtual board; None on a real machine."""
        if not self.target.startswith(VIRTUAL):
            return None
        return self.target.removeprefix(VIRTUAL)

    @property
    def traced(self) -> bool:
        """Whether the kernel is to record; a virtual board is watched from outside."""
        return self.explain and self.board is None

    @property
    def run_seeds(self) -> tuple[int | None, ...]:
        """The seeds to run everything with; None on a real machine, which has none."""
        if self.board is None:
            return (None,)
        return self.seeds or (DEFAULT_SEED if self.seed is None else self.seed,)

    @property
    def settling_ns(self) -> int:
        """How long the machine is left alone: once, a virtual board after each boot."""
        if self.settle_ns is not None:
            return self.settle_ns
        return 0 if self.board is None else BOARD_SETTLE_NS

    @property
    def loads(self) -> tuple[str, ...]:
        """Return every load that runs, each once, in the order of the file."""
        return tuple(dict.fromkeys(load for run in self.runs for load in run.loads))
