"""
From a campaign to the runs to do, in order, and the commands of each. Pure.

Interleaved order runs everything once before it repeats (A B A B): drift, such as of
temperature, then affects all alike, at the price of a change of kernel per repetition.

Random order deals the variants to the places of a block of three to five repetitions,
each as often as the others. A difference of variants can then be told from drift: the
test knows every order that could have been drawn (Fisher 1935).
"""

import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from pathlib import PurePath

from rtscope.host.units import NS_PER_S, exact_duration
from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign.model import Campaign, RunTable, untraced_ns
from rtscope.measure.campaign.values import MAX_SEED
from rtscope.measure.loads import LoadCommand, LoadPlace, get_load, make_command
from rtscope.record.model import TIMER, Run

MAX_CPUS_CHARACTERS = 30
"""A longer CPU list does not fit into a run's name."""

MAX_KERNEL_CHARACTERS = 60

MAX_BLOCK = 5
"""Repetitions of a block: 252 orders of two variants, and little drift within it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs of a campaign, in order."""

    runs: tuple[Run, ...]
    settle_ns: int
    """Before the first run, or on a virtual board before each: see `boots_each`."""
    warmup_ns: int
    traced: bool = False
    """Whether each run is also measured without tracing, before and after it."""
    boots_each: bool = False
    """Whether each run has a boot of its own, and settles after it."""

    def measuring_ns(self, run: Run) -> int:
        """Return the time measured for a run, with its untraced parts."""
        around_ns = 2 * untraced_ns(run.duration_ns) if self.traced else 0
        return run.duration_ns + around_ns

    @property
    def total_ns(self) -> int:
        """The time of all runs with settling and warm-up, but without their start."""
        if not self.runs:
            return 0
        measured_ns = sum(self.measuring_ns(run) for run in self.runs)
        times = len(self.runs) if self.boots_each else 1
        settle_ns = self.settle_ns * times
        return settle_ns + len(self.runs) * self.warmup_ns + measured_ns


def make_plan(campaign: Campaign) -> Plan:
    """Write out the product of every [[run]], in the campaign's order."""
    runs = tuple(_ordered(campaign))
    varies = _parts_that_vary(campaign, runs)
    width = max(3, len(str(len(runs))))
    return Plan(
        runs=tuple(
            replace(
                run, id="-".join([f"{n:0{width}}", *(part(run) for part in varies)])
            )
            for n, run in enumerate(runs, 1)
        ),
        settle_ns=campaign.settling_ns,
        warmup_ns=campaign.warmup_ns,
        traced=campaign.traced,
        boots_each=campaign.board is not None,
    )


def with_order_drawn(campaign: Campaign) -> Campaign:
    """Return the campaign with a random seed for its order, if it needs one."""
    if campaign.ordering != "random" or campaign.order_seed is not None:
        return campaign
    return replace(campaign, order_seed=secrets.randbelow(MAX_SEED + 1))


def remaining(plan: Plan, done_ids: Collection[str]) -> Plan:
    """Return the plan without the runs that are done, for --resume."""
    done = frozenset(done_ids)
    return replace(plan, runs=tuple(run for run in plan.runs if run.id not in done))


def kernels_by_label(kernels: Sequence[str]) -> dict[str, str]:
    """
    Return the kernels by their labels, in the order given.

    Images whose files have the same name, or that of another kernel, get the nearest
    directory that differs: `linux-rt/bzImage` and `linux/bzImage`; if none does, their
    whole paths.
    """
    plain = [PurePath(kernel).name for kernel in kernels]
    times = Counter(plain)
    clashing = [
        kernel
        for kernel, name in zip(kernels, plain, strict=True)
        if times[name] > 1 and "/" in kernel
    ]
    labels = [
        _distinct(kernel, [k for k in clashing if PurePath(k).name == name])
        if kernel in clashing
        else name
        for kernel, name in zip(kernels, plain, strict=True)
    ]
    return dict(zip(labels, kernels, strict=True))


def _distinct(kernel: str, alike: Sequence[str]) -> str:
    """Return the label of one of several paths that end in the same name."""
    *_, name = PurePath(kernel).parts
    folders = [list(reversed(PurePath(path).parts[:-1])) for path in alike]
    for level in zip_longest(*folders, fillvalue=""):
        mine = level[alike.index(kernel)]
        if len(set(level)) == len(level) and mine not in ("", "/"):
            return f"{mine}/{name}"
    return kernel


def _ordered(campaign: Campaign) -> Iterator[Run]:
    kernels = tuple(kernels_by_label(campaign.kernels)) or (None,)
    seeds = campaign.run_seeds
    if campaign.ordering == "blocked":
        for kernel, table in product(kernels, campaign.runs):
            for cell in _cells(campaign, table, kernel=kernel):
                for seed, repetition in product(seeds, range(table.repetitions)):
                    yield replace(cell, seed=seed, repetition=repetition + 1)
        return
    if campaign.ordering == "random":
        yield from _random_order(campaign, kernels)
        return
    most = max(t.repetitions for t in campaign.runs)
    for repetition, seed in product(range(most), seeds):
        for kernel, table in product(kernels, campaign.runs):
            if repetition < table.repetitions:
                for cell in _cells(campaign, table, kernel=kernel):
                    yield replace(cell, seed=seed, repetition=repetition + 1)


def _random_order(campaign: Campaign, kernels: Sequence[str | None]) -> Iterator[Run]:
    """Deal kernels and variants to the places of each block; loads stay together."""
    order = random.Random(campaign.order_seed or 0)
    variants = list(
        product(kernels, dict.fromkeys(table.variant for table in campaign.runs))
    )
    done = Counter[tuple[str | None, str | None]]()
    for block, repetitions in enumerate(
        _blocks(max(t.repetitions for t in campaign.runs)), 1
    ):
        places = variants * repetitions
        order.shuffle(places)
        for kernel, variant in places:
            repetition = done[kernel, variant]
            done[kernel, variant] += 1
            for seed, table in product(campaign.run_seeds, campaign.runs):
                if table.variant == variant and repetition < table.repetitions:
                    for cell in _cells(campaign, table, kernel=kernel):
                        yield replace(
                            cell, seed=seed, repetition=repetition + 1, block=block
                        )


def _blocks(repetitions: int) -> Iterator[int]:
    """Divide repetitions into blocks of at most MAX_BLOCK, as equal as possible."""
    blocks = -(-repetitions // MAX_BLOCK)
    for block in range(blocks):
        yield (repetitions + block) // blocks


def _cells(campaign: Campaign, table: RunTable, *, kernel: str | None) -> Iterator[Run]:
    for event, load, (policy, priority), interval_ns, duration_ns in product(
        *(table.event_texts, table.loads, table.policies),
        *(table.intervals_ns, table.durations_ns),
    ):
        reserved_ns = campaign.deadline_runtime_ns or interval_ns // 2
        yield Run(
            id="",
            target=campaign.target,
            kernel=kernel,
            load=load,
            repetition=1,
            policy=policy,
            priority=priority,
            interval_ns=interval_ns,
            duration_ns=duration_ns,
            cpus=table.cpus,
            variant=table.variant,
            kernel_release=table.kernel_release,
            deadline_runtime_ns=reserved_ns if policy == "deadline" else None,
            event=event,
        )


def _parts_that_vary(
    campaign: Campaign, runs: Sequence[Run]
) -> list[Callable[[Run], str]]:
    """Return the parts of a run's name: the load, and every value that varies."""
    parts: tuple[Callable[[Run], str], ...] = (
        _kernel_part,
        _variant_part,
        _event_part,
        lambda run: f"{run.policy}{run.priority or ''}",
        lambda run: exact_duration(run.interval_ns),
        lambda run: exact_duration(run.duration_ns),
        _cpus_part,
        lambda run: f"s{run.seed}",
    )
    vary = [part for part in parts if len({part(run) for run in runs}) > 1]
    if any(table.repetitions > 1 for table in campaign.runs):
        vary.append(lambda run: f"r{run.repetition}")
    return [_load_part, *vary]


def _load_part(run: Run) -> str:
    return run.load.replace(":", "-")


def _kernel_part(run: Run) -> str:
    # The end of a path distinguishes images; the name of a run is a directory.
    label = re.sub(r"[^a-z0-9._+-]+", "-", (run.kernel or "running").lower())
    return label[-MAX_KERNEL_CHARACTERS:].strip("-.")


def _variant_part(run: Run) -> str:
    label = re.sub(r"[^a-z0-9._+-]+", "-", (run.variant or "unnamed").lower())
    return label[:MAX_KERNEL_CHARACTERS].strip("-.") or "variant"


def _event_part(run: Run) -> str:
    return re.sub(r"[^a-z0-9]+", "-", run.event.lower()).strip("-")[:30].strip("-")


def _cpus_part(run: Run) -> str:
    if run.cpus is None:
        return "allcpus"
    cpus = format_cpulist(run.cpus).replace(",", "+")
    return f"cpu{cpus}" if len(cpus) <= MAX_CPUS_CHARACTERS else f"{len(run.cpus)}cpus"


# --- the commands of a run: the agent's arguments, and its load -----------------------

MAX_WINDOW_NS = 3_600 * NS_PER_S
"""The agent takes no longer ones."""


def knobs(campaign: Campaign) -> tuple[str, ...]:
    """Return the settings to change on the machine, as NAME=VALUE."""
    governor = (f"governor={campaign.governor}",) if campaign.governor else ()
    throttling = ("rt_runtime_us=-1",) if campaign.rt_throttling == "off" else ()
    return (*governor, *throttling)


def untraced_args(run: Run, campaign: Campaign) -> tuple[str, ...]:
    """Return `measure_args` without tracing and shorter; empty if nothing is traced."""
    if not campaign.traced:
        return ()
    return measure_args(
        replace(run, duration_ns=untraced_ns(run.duration_ns)),
        replace(campaign, explain=False, keep_samples=False),
    )


def measure_args(run: Run, campaign: Campaign) -> tuple[str, ...]:
    """Return the agent's subcommand and options for one run."""
    return (
        *("measure", "--policy", run.policy),
        *(("--priority", str(run.priority)) if run.priority else ()),
        *(
            ("--runtime-ns", str(run.deadline_runtime_ns))
            if run.deadline_runtime_ns
            else ()
        ),
        *(("--event", run.event) if run.event != TIMER else ()),
        *("--interval-ns", str(run.interval_ns)),
        *("--duration-ns", str(run.duration_ns)),
        *("--worst", str(campaign.worst_kept)),
        *(("--trace",) if campaign.traced else ()),
        *(("--keep-samples",) if campaign.keep_samples else ()),
        *(("--cpus", format_cpulist(run.cpus)) if run.cpus else ()),
        *(("--hold-cpu-awake",) if campaign.hold_cpu_awake else ()),
        *(part for knob in knobs(campaign) for part in ("--set", knob)),
    )


def load_command(run: Run, campaign: Campaign, place: LoadPlace) -> LoadCommand:
    """Return the load of a run, for as long as it measures; see `make_command`."""
    around_ns = 2 * untraced_ns(run.duration_ns) if campaign.traced else 0
    loaded_ns = run.duration_ns + around_ns + campaign.warmup_ns
    return make_command(
        get_load(run.load),
        place,
        duration_s=int(loaded_ns / 1e9) + 1,
        custom=campaign.command,
        seed=run.seed,
    )


MAX_WINDOWS = 600
"""Of a run, for the proof that its load ran: what a record holds is bounded."""


def load_args(
    command: LoadCommand,
    *,
    duration_ns: int,
    log: str,
    scratch_dir: str,
    user: tuple[int, int] | None = None,
) -> tuple[str, ...]:
    """
    Return the arguments to guard a load; it becomes `user` if started as root.

    Its processes are watched in windows: of a second, but for MAX_WINDOWS at most of
    them in `duration_ns`.
    """
    limit = command.memory_limit_bytes
    window_ns = max(NS_PER_S, -(-duration_ns // MAX_WINDOWS))
    return (
        *("load", "--log", log, "--scratch", scratch_dir),
        *("--window-ns", str(min(window_ns, MAX_WINDOW_NS))),
        *(("--memory-limit", str(limit)) if limit else ()),
        *(("--user", f"{user[0]}:{user[1]}") if limit and user else ()),
        *("--", *command.argv),
    )
