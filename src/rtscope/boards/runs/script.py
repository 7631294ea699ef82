"""
Write the script for a board's shell that does one run. Pure.

The order is that of a real machine: settling, facts, load on, warm-up, measurement,
load off, facts. All output goes to files below /out, which come back whole.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from rtscope.boards.events import EventNeeds, needs_of
from rtscope.boards.parts.initrd import Job
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.loads import LoadCommand, get_load
from rtscope.measure.plan import load_args, measure_args
from rtscope.record.model import Run

DISK = "/disk"
SCRATCH = f"{DISK}/rtscope-scratch"
METRICS = "/out/load.yaml"
PHASE_STEP_NS = 37_013

MEMORY_GROUPS = "echo +memory >/sys/fs/cgroup/cgroup.subtree_control"
"""A kernel without memory cgroups refuses; the guard of the load then reports it."""

LOOPBACK_LOADS = ("network",)
LOOPBACK = "ip link set lo up"
"""Without it stress-ng's sockets find no network, and give up after ten seconds."""

MOUNT_DEBUGFS = "mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null"
"""For the knobs of the scheduler; a kernel without debugfs has none of them."""
TUNED = "tuned.jsonl"

MODULE_SYMBOLS = "module-symbols"
MODULES_BEFORE = "cut -d' ' -f1 /proc/modules >/tmp/modules-before"
SYMBOLS_OF_NEW_MODULES = (
    "cut -d' ' -f1 /proc/modules | grep -vxFf /tmp/modules-before | "
    "sed 's/.*/[&]/' >/tmp/modules-new; "
    "for made in bpf __builtin__ftrace __builtin__kprobes; "
    'do echo "[$made]" >>/tmp/modules-new; done; '
    f"grep -Ff /tmp/modules-new /proc/kallsyms >/out/{MODULE_SYMBOLS}"
)

FACT_BATCH = 100
"""Paths per call: the length of a command line is limited."""


def phase_ns(run: Run, seed: int) -> int:
    """
    Return by how much a seed shifts the grid of releases against the kernel's timers.

    A prime number of ns for each seed: a single phase would sample one trajectory of
    the system again and again.
    """
    return seed * PHASE_STEP_NS % run.interval_ns


def job_of(
    run: Run,
    campaign: Campaign,
    load: LoadCommand,
    *,
    facts: Sequence[str],
    seed: int,
    own_modules: bool = False,
    event_modules: Mapping[str, bytes] = MappingProxyType({}),
    settings: Sequence[str] = (),
) -> Job:
    """
    Return the job of a run; the paths `facts` are read before and after.

    With `own_modules` the load may insert modules, whose symbols are then kept.
    `event_modules` are those that the kernel has for events, by their names.
    `settings` are options of the agent: it makes them before the board settles.
    """
    needs = needs_of(run.event, get_load(run.load).event)
    inserted = modules_for(needs, event_modules)
    phase = ("--phase-ns", str(phase_ns(run, seed)))
    before, after = (
        [
            f"{agent_line('read', '--', *batch)} >>/out/{name}"
            for batch in batches(facts)
        ]
        for name in ("facts-before.jsonl", "facts-after.jsonl")
    )
    settle_ns = campaign.settling_ns
    lines = [MOUNT_DEBUGFS, tuning_line(settings)] if settings else []
    if settle_ns:
        lines.append(f"sleep {settle_ns / 1e9:g}")
    lines += before
    if own_modules or inserted:
        lines.append(MODULES_BEFORE)
    lines += lines_before(needs, inserted)
    if load.argv:
        if load.memory_limit_bytes:
            lines.append(MEMORY_GROUPS)
        if run.load in LOOPBACK_LOADS:
            lines.append(LOOPBACK)
        guard = agent_line(
            *load_args(
                load,
                duration_ns=run.duration_ns,
                log="/out/load.log",
                scratch_dir=SCRATCH,
            )
        )
        # In the background; told to end, it lets the load write its metrics.
        lines += [f"{guard} </dev/null >/out/load.jsonl &", "load=$!"]
    if campaign.warmup_ns:
        lines.append(f"sleep {campaign.warmup_ns / 1e9:g}")
    lines += [
        f"{agent_line(*measure_args(run, campaign), *phase)} >/out/measure.jsonl",
        "status=$?",
    ]
    if own_modules or inserted:
        lines.append(SYMBOLS_OF_NEW_MODULES)  # while the load still has them inserted
    if load.argv:
        lines += ["kill $load 2>/dev/null", "wait $load"]
    # Where modules lie is needed to name what the plugin saw of them.
    after.append("cat /proc/modules >/out/modules 2>/dev/null")
    script = "\n".join([*lines, *after, "exit $status"]) + "\n"
    return Job(script, disk=True, files=inserted)


def modules_for(
    needs: EventNeeds, event_modules: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Return the modules to insert, by file and in order, of those that there are."""
    files = (f"{name}.ko" for name in needs.modules)
    return {name: event_modules[name] for name in files if name in event_modules}


def lines_before(needs: EventNeeds, modules: Collection[str]) -> list[str]:
    """Return the lines that bring the devices of an event, or of a load, into use."""
    return [*(f"insmod /job/{name}" for name in modules), *needs.before]


def tuning_line(settings: Sequence[str]) -> str:
    """Return the line that makes settings; the agent writes what became of each."""
    return f"{agent_line('apply', *settings)} >/out/{TUNED}"


def agent_line(*args: str) -> str:
    """Return the board's agent with these arguments, as a line of its shell."""
    return shlex.join(["rtscope-agent", *args])


def batches(paths: Sequence[str]) -> list[Sequence[str]]:
    """Return the paths in batches, one per call of the board's agent."""
    return [paths[i : i + FACT_BATCH] for i in range(0, len(paths), FACT_BATCH)]
