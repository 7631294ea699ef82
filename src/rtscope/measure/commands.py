"""The commands of a run: the agent's arguments, and its load. Pure."""

from dataclasses import replace

from rtscope.host.units import NS_PER_S
from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign.model import Campaign, untraced_ns
from rtscope.measure.loads import LoadCommand, LoadPlace, get_load, make_command
from rtscope.record.model import Run

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
        replace(campaign, explain=False),
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
        *("--interval-ns", str(run.interval_ns)),
        *("--duration-ns", str(run.duration_ns)),
        *("--worst", str(campaign.worst_kept)),
        *(("--trace",) if campaign.traced else ()),
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
