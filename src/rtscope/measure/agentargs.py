"""What the agent is told to measure, from a run and its campaign. Pure."""

from dataclasses import replace

from rtscope.campaign import Campaign, untraced_ns
from rtscope.cpulist import format_cpulist
from rtscope.record.model import Run


def knobs(campaign: Campaign) -> tuple[str, ...]:
    """Return the settings of the machine to change, as NAME=VALUE."""
    governor = (f"governor={campaign.governor}",) if campaign.governor else ()
    throttling = ("rt_runtime_us=-1",) if campaign.rt_throttling == "off" else ()
    return (*governor, *throttling)


def untraced_args(run: Run, campaign: Campaign) -> tuple[str, ...]:
    """Return the same without tracing, for less time; empty if nothing is traced."""
    if not campaign.traced:
        return ()
    return measure_args(
        replace(run, duration_ns=untraced_ns(run.duration_ns)),
        replace(campaign, explain=False),
    )


def measure_args(run: Run, campaign: Campaign) -> tuple[str, ...]:
    """Return the subcommand and options for one run."""
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
        *("--worst", str(campaign.worst)),
        *(("--trace",) if campaign.traced else ()),
        *(("--cpus", format_cpulist(run.cpus)) if run.cpus else ()),
        *(("--hold-cpu-awake",) if campaign.hold_cpu_awake else ()),
        *(part for knob in knobs(campaign) for part in ("--set", knob)),
    )
