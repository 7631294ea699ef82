"""
The resolved campaign: every default filled in, every value in range.

This module defines every key: the alias of a field is its table and key in a campaign
file, its type reads and writes the value, and the first paragraph below it is the help
of the key and of its option. File, options and record are read by this one model, so a
wrong value gets the same message everywhere.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from rtscope.host.units import NS_PER_S, NS_PER_US, exact_duration
from rtscope.machine.target.address import parse_address
from rtscope.measure.campaign import values
from rtscope.measure.campaign.values import REALTIME_POLICIES, Flag, Many
from rtscope.measure.events import LIST, event_names
from rtscope.measure.loads import load_names
from rtscope.record.model import TIMER

DEFAULT_SEED = 1
"""The seed of a virtual board."""

DEFAULT_PRIORITY = 99
"""As usual with cyclictest: only the kernel's own threads can be in the way."""

MOST_WORST, RECORDED_WORST = 64, 16

BOARD_SETTLE_NS = 10 * NS_PER_S
"""
Virtual time in which a kernel finishes the work it puts off during boot.

The longest wait of distribution kernels on these boards is for missing drivers
(deferred_probe_timeout, 10 s). Idle time costs the host little.
"""


def untraced_ns(duration_ns: int) -> int:
    """
    Return the time measured without tracing before and after a traced run.

    A quarter of its duration, from 1 s to 10 s: enough for p99.9 at the usual interval.
    """
    return min(max(duration_ns // 4, NS_PER_S), 10 * NS_PER_S)


@dataclass(frozen=True, slots=True)
class RunTable:
    """One [[run]]: the product of all lists, repeated."""

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    loads: Annotated[
        Many[values.Load],
        Field(
            alias="load",
            description=f"Loads, one run under each: {', '.join(load_names())}",
        ),
    ] = ("idle", "cpu", "os", "memory", "storage")
    events: Annotated[
        Many[values.Event],
        Field(
            alias="event",
            description="Events that wake the measuring threads, one run with each; "
            f"NAME or NAME:OPTION=VALUE, {LIST} to print them: "
            f"{', '.join(event_names())} (default: {TIMER})",
            examples=["udp,futex:cpu=same"],
        ),
    ] = ()
    """Empty: the thread's own timer."""
    durations_ns: Annotated[Many[values.Duration], Field(alias="duration")] = (
        20 * NS_PER_S,
    )
    """Duration of each run."""
    policy_names: Annotated[Many[values.Policy], Field(alias="policy")] = ("fifo",)
    """
    Scheduling policy of the measuring threads: fifo, rr, other, batch, idle or
    deadline.
    """
    priorities: Annotated[
        Many[values.Priority],
        Field(
            alias="priority",
            description="Priority of the measuring threads, policies fifo and rr only "
            f"(default: {DEFAULT_PRIORITY})",
            examples=["80"],
        ),
    ] = ()
    """Empty: DEFAULT_PRIORITY."""
    intervals_ns: Annotated[Many[values.Interval], Field(alias="interval")] = (
        200 * NS_PER_US,
    )
    """Interval between two wake-ups of a measuring thread."""
    repetitions: Annotated[values.Times, Field(alias="repetitions", examples=["4"])] = 1
    """
    Repetitions of each run: 4 or more to compare, 2 or more for require-identical.
    """
    variant: Annotated[values.Text | None, Field(alias="variant", examples=["rr"])] = (
        None
    )
    """Name of these runs, to compare them with runs of another name (default: none)."""
    kernel_release: Annotated[
        values.Text | None, Field(alias="kernel_release", examples=["*-rt-*"])
    ] = None
    """
    Kernel release that a machine must have booted for these runs, with * for any text;
    rtscope stops before them until it has (default: any).
    """
    cpus: Annotated[values.CpuList | None, Field(alias="cpus")] = None
    """
    CPUs to measure; with explain, leave one CPU unmeasured for the trace reader
    (default: all usable CPUs).
    """

    @property
    def event_texts(self) -> tuple[str, ...]:
        """What wakes the threads, one run with each."""
        return self.events or (TIMER,)

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
    """Everything that decides the measurement and the settings of the machine."""

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: Annotated[values.Text, Field(alias="campaign.name")] = "campaign"
    """Name of the campaign in reports."""
    order: Annotated[
        values.Order | None,
        Field(
            alias="campaign.order",
            description="Order of the repetitions: interleaved (A B A B), blocked "
            "(A A B B), or random (variants in an order drawn at random, balanced in "
            "blocks) (default: random with variants, else interleaved)",
        ),
    ] = None
    """None: see `ordering`."""
    order_seed: Annotated[
        values.Seed | None,
        Field(
            alias="campaign.order_seed",
            description="Random seed of the random order (default: drawn and recorded)",
            examples=["7"],
        ),
    ] = None
    """None: `with_order_drawn` draws one."""
    settle_ns: Annotated[
        values.Settle | None,
        Field(
            alias="campaign.settle",
            description="Idle time before the first run; on a virtual board, virtual "
            "time after each boot (default: 0s, virtual board: "
            f"{exact_duration(BOARD_SETTLE_NS)})",
        ),
    ] = None
    """None: see `settling_ns`."""
    warmup_ns: Annotated[values.Warmup, Field(alias="campaign.warmup")] = NS_PER_S
    """Warm-up time of a load before the measurement."""
    deadline_ns: Annotated[values.Deadline | None, Field(alias="campaign.deadline")] = (
        None
    )
    """Longest allowed latency, for a verdict of the report (default: no verdict)."""
    claim: Annotated[values.Claim | None, Field(alias="campaign.claim")] = None
    """
    Claim to test: fewer than MISSES missed deadlines in TIME; needs a deadline
    (default: none).

    As (misses, ns).
    """
    min_boots: Annotated[
        values.Times, Field(alias="campaign.min_boots", examples=["3"])
    ] = 1
    """Minimum number of boots behind a claim."""
    seed: Annotated[
        values.Seed | None,
        Field(
            alias="campaign.seed",
            description=f"Random seed of a virtual board (default: {DEFAULT_SEED})",
            examples=["7"],
        ),
    ] = None
    """None: DEFAULT_SEED."""
    seeds: Annotated[
        values.Seeds, Field(alias="campaign.seeds", examples=["8", "1,5,9"])
    ] = ()
    """
    Random seeds of a virtual board, the whole campaign with each: N for 1 to N, or a
    list; instead of seed.
    """
    require_identical: Annotated[Flag, Field(alias="campaign.require_identical")] = (
        False
    )
    """
    Exit status 1 unless all repetitions (2 or more) on a virtual board give identical
    results.
    """
    host_limit_ns: Annotated[
        values.HostLimit | None, Field(alias="campaign.host_limit")
    ] = None
    """
    Host time after which a virtual board is ended: some loads take hours to emulate
    (default: 1 h, and 20 min for each virtual second of warm-up and measurement).
    """
    worst: Annotated[
        values.Worst | None,
        Field(
            alias="campaign.worst",
            description="Number of worst wake-ups to keep for each CPU, 1 to 64 "
            f"(default: {MOST_WORST}, with a recording or a trace {RECORDED_WORST})",
            examples=["32"],
        ),
    ] = None
    """None: see `worst_kept`."""
    record: Annotated[Flag, Field(alias="campaign.record")] = True
    """Recording of the paths to the worst wake-ups of a virtual board."""
    explain: Annotated[Flag, Field(alias="campaign.explain")] = False
    """
    Trace of the kernel around the worst wake-ups of a machine, with the cost of
    tracing.
    """
    parts: Annotated[Flag, Field(alias="campaign.parts")] = False
    """
    Duration of each part of all wake-ups of a virtual board: interrupt, preemption off,
    scheduler, return.
    """
    keep_samples: Annotated[Flag, Field(alias="campaign.keep_samples")] = False
    """
    Each wake-up with its time, compressed beside the record, for a picture over time;
    at most 4,194,303 intervals of each CPU.
    """
    deadline_runtime_ns: Annotated[
        values.DeadlineRuntime | None, Field(alias="campaign.deadline_runtime")
    ] = None
    """
    Run time reserved per interval under policy deadline (default: half of the
    interval).
    """
    command: Annotated[
        values.Command, Field(alias="campaign.command", examples=["'iperf3 -c host'"])
    ] = ()
    """Command of the custom load."""
    guest_files: Annotated[
        Many[values.FilePath],
        Field(alias="campaign.guest_files", examples=["./my-load"]),
    ] = ()
    """Files to copy to /files in the guest of a virtual board, for the custom load."""
    target: Annotated[values.Target, Field(alias="target.address")] = "local"
    """Machine to measure: local, ssh:HOST, lab:PLACE or virtual:BOARD."""
    governor: Annotated[values.Governor | None, Field(alias="target.governor")] = None
    """
    CPU frequency governor during the campaign, restored afterwards (default:
    unchanged).
    """
    hold_cpu_awake: Annotated[Flag, Field(alias="target.hold_cpu_awake")] = False
    """
    No CPU idle states during the measurement; only if your application forbids them
    too.
    """
    rt_throttling: Annotated[values.Throttling, Field(alias="target.rt_throttling")] = (
        "keep"
    )
    """Real-time throttling during the campaign, restored afterwards: keep or off."""
    tuned: Annotated[Many[values.Remedy], Field(alias="target.tuned")] = ()
    """
    Audit checks whose remedies apply during the campaign, restored afterwards: safe,
    their IDs, or interrupt_threads:DEVICE=PRIORITY (default: none).
    """
    storage_dir: Annotated[
        values.FilePath | None, Field(alias="target.storage_dir", examples=["/var/tmp"])
    ] = None
    """
    Directory on a real disk for the storage load (default: the results' directory, over
    SSH /var/tmp).
    """
    qemu: Annotated[
        values.FilePath | None,
        Field(alias="target.qemu", examples=["./qemu-system-x86_64"]),
    ] = None
    """Path of your own QEMU for a virtual board (default: the QEMU of the board)."""
    lockfile: Annotated[
        values.FilePath | None,
        Field(alias="target.lockfile", examples=["packages.lock"]),
    ] = None
    """Lock file with the exact packages of a virtual board (default: none)."""
    kernels: Annotated[Many[values.Kernel], Field(alias="kernel.names")] = ()
    """
    Kernels of a virtual board, by name or path of an image (default: the first kernel
    of the board).
    """
    append: Annotated[
        values.Words,
        Field(alias="kernel.append", examples=["'nohz_full=1 rcu_nocbs=1'"]),
    ] = ()
    """
    Additional kernel parameters of a virtual board (default: none).
    """
    config: Annotated[
        values.Symbols,
        Field(
            alias="kernel.config", examples=["'CONFIG_HZ_1000=y CONFIG_DEBUG_LIST=n'"]
        ),
    ] = ()
    """
    Kernel symbols that replace those of the recipe, for a kernel that rtscope builds
    (default: none).
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
        """Whether to trace the kernel; a virtual board is recorded from outside."""
        return self.explain and self.board is None

    @property
    def run_seeds(self) -> tuple[int | None, ...]:
        """The seeds, the whole campaign with each; (None,) on a real machine."""
        if self.board is None:
            return (None,)
        return self.seeds or (DEFAULT_SEED if self.seed is None else self.seed,)

    @property
    def ordering(self) -> values.Order:
        """The order of the repetitions; variants on a machine get a random one."""
        if self.order is not None:
            return self.order
        varies = len({table.variant for table in self.runs}) > 1
        return "random" if varies and self.board is None else "interleaved"

    @property
    def settling_ns(self) -> int:
        """Idle time before the first run; on a virtual board after each boot."""
        if self.settle_ns is not None:
            return self.settle_ns
        return 0 if self.board is None else BOARD_SETTLE_NS

    @property
    def worst_kept(self) -> int:
        """
        Number of worst wake-ups to keep for each CPU.

        With fewer than were late a rate has no upper limit; but each that is recorded
        or traced costs memory and time.
        """
        if self.worst is not None:
            return self.worst
        is_recorded = self.board is not None or self.explain
        return RECORDED_WORST if is_recorded else MOST_WORST

    @property
    def loads(self) -> tuple[str, ...]:
        """Return every load that runs, each once, in the order of the file."""
        return tuple(dict.fromkeys(load for run in self.runs for load in run.loads))
