"""
The resolved campaign: every default filled in, every value in range.

Here stands every key: the alias of a field is its table and key in a campaign file,
its type reads and writes the value, and what follows it is its help, of which the
reference manual has the first paragraph. File, options and record are read by this one
model, so a value is refused with the same words wherever it was written.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from rtscope.campaign import values
from rtscope.campaign.values import REALTIME_POLICIES, Flag, Many
from rtscope.target.address import parse_address
from rtscope.units import NS_PER_S, NS_PER_US

DEFAULT_SEED = 1
"""Of a virtual board."""

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

    __pydantic_config__ = ConfigDict(extra="forbid")

    loads: Annotated[Many[values.Load], Field(alias="load")] = (
        "idle",
        "cpu",
        "os",
        "memory",
        "storage",
    )
    """Loads, see rtscope run --help."""
    durations_ns: Annotated[Many[values.Duration], Field(alias="duration")] = (
        20 * NS_PER_S,
    )
    """How long each run measures."""
    policy_names: Annotated[Many[values.Policy], Field(alias="policy")] = ("fifo",)
    """Scheduling policy of the measuring threads."""
    priorities: Annotated[Many[values.Priority], Field(alias="priority")] = ()
    """
    Their priority; fifo and rr only.

    Empty means DEFAULT_PRIORITY.
    """
    intervals_ns: Annotated[Many[values.Interval], Field(alias="interval")] = (
        200 * NS_PER_US,
    )
    """Time between two wake-ups."""
    repetitions: Annotated[values.Times, Field(alias="repetitions")] = 1
    """How often each is run."""
    cpus: Annotated[values.CpuList | None, Field(alias="cpus")] = None
    """CPUs to measure; without it all that may be used."""

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

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: Annotated[values.Text, Field(alias="campaign.name")] = "campaign"
    """What to call it in reports."""
    order: Annotated[values.Order, Field(alias="campaign.order")] = "interleaved"
    """Interleaved runs A B A B, blocked A A B B."""
    settle_ns: Annotated[values.Settle | None, Field(alias="campaign.settle")] = None
    """
    How long the machine is left alone before the first run; a virtual board after each
    boot, in virtual time, 10s if nothing is said.

    None: see `settling_ns`.
    """
    warmup_ns: Annotated[values.Warmup, Field(alias="campaign.warmup")] = NS_PER_S
    """How long a load runs before its samples count."""
    deadline_ns: Annotated[values.Deadline | None, Field(alias="campaign.deadline")] = (
        None
    )
    """The latency that must not be exceeded; asks for a verdict."""
    claim: Annotated[values.Claim | None, Field(alias="campaign.claim")] = None
    """
    What is to be shown: fewer than so many misses in so much time.

    As (misses, ns).
    """
    min_boots: Annotated[values.Times, Field(alias="campaign.min_boots")] = 1
    """How many boots a claim needs."""
    seed: Annotated[values.Seed | None, Field(alias="campaign.seed")] = None
    """
    The seed of a virtual board.

    None means DEFAULT_SEED.
    """
    seeds: Annotated[values.Seeds, Field(alias="campaign.seeds")] = ()
    """
    Run everything with each of these seeds of a virtual board: 8 for 1 to 8, or a list.

    Instead of `seed`.
    """
    require_identical: Annotated[Flag, Field(alias="campaign.require_identical")] = (
        False
    )
    """
    Repetitions on a virtual board must have identical results, else the exit status is
    1.
    """
    worst: Annotated[values.Worst, Field(alias="campaign.worst")] = 16
    """Worst wake-ups to keep per CPU."""
    record: Annotated[Flag, Field(alias="campaign.record")] = True
    """On a virtual board: record the paths to the worst wake-ups."""
    explain: Annotated[Flag, Field(alias="campaign.explain")] = False
    """
    On a machine: record what its kernel did around the worst wake-ups, and measure what
    recording costs.
    """
    deadline_runtime_ns: Annotated[
        values.DeadlineRuntime | None, Field(alias="campaign.deadline_runtime")
    ] = None
    """Policy deadline: run time reserved per interval; without it half of that."""
    command: Annotated[values.Command, Field(alias="campaign.command")] = ()
    """The custom load, word by word."""
    guest_files: Annotated[
        Many[values.FilePath], Field(alias="campaign.guest_files")
    ] = ()
    """
    Files that a virtual board has below /files: what the custom load runs or inserts.
    """
    target: Annotated[values.Target, Field(alias="target.address")] = "local"
    """`local`, `ssh:HOST` or `virtual:BOARD`."""
    governor: Annotated[values.Governor | None, Field(alias="target.governor")] = None
    """CPU frequency governor for the campaign; put back afterwards."""
    hold_cpu_awake: Annotated[Flag, Field(alias="target.hold_cpu_awake")] = False
    """Forbid idle states; flatters the machine unless the application does it too."""
    rt_throttling: Annotated[values.Throttling, Field(alias="target.rt_throttling")] = (
        "keep"
    )
    """Off: no limit on real-time threads during the campaign; put back afterwards."""
    tuned: Annotated[Many[values.Remedy], Field(alias="target.tuned")] = ()
    """
    Checks of rtscope audit whose remedies hold for the campaign, or safe; put back
    afterwards.
    """
    storage_dir: Annotated[
        values.FilePath | None, Field(alias="target.storage_dir")
    ] = None
    """Where the storage load works: a directory on a real disk."""
    qemu: Annotated[values.FilePath | None, Field(alias="target.qemu")] = None
    """Your own QEMU for a virtual board: its path."""
    lockfile: Annotated[values.FilePath | None, Field(alias="target.lockfile")] = None
    """A lock file: make a virtual board of exactly these packages."""
    kernels: Annotated[Many[values.Kernel], Field(alias="kernel.names")] = ()
    """
    Kernels to measure, names or images' paths; without it the one that runs.

    Without them a virtual board has its first.
    """
    runs: Annotated[
        tuple[RunTable, ...],
        Field(alias="run", min_length=1, max_length=values.MAX_ITEMS),
    ] = (RunTable(),)

    @property
    def board(self) -> str | None:
        """The name of the virtual board; None on a real machine."""
        return parse_address(self.target).board

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
