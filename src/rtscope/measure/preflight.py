"""
Refuse a campaign that this machine cannot measure, before anything else is done.

Its agent tries each kind of run for some milliseconds, with the rights, settings and
CPUs of that run: what it would refuse after minutes of settling, it refuses now.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rtscope.contract import AgentError, Line
from rtscope.host.errors import TargetError, UsageError
from rtscope.host.units import NS_PER_MS, NS_PER_S
from rtscope.machine.target import Target
from rtscope.machine.target.answer import run_agent
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.commands import measure_args
from rtscope.measure.machine import load_programs
from rtscope.measure.plan import Plan
from rtscope.record.model import Run

TRIAL_NS = 10 * NS_PER_MS
LONGEST_INTERVAL_NS = NS_PER_S // 2
"""A run with a longer interval is not tried: that would take seconds."""

TRIAL_TIMEOUT_S = 30.0

LEAST_FREE_BYTES = 64 << 20
"""What a campaign of five loads with traces and its page may take."""


def refuse_impossible(target: Target, campaign: Campaign, plan: Plan) -> None:
    """Raise TargetError with what the machine lacks for this plan."""
    load_programs(plan, target)
    for run in _kinds(plan):
        _try(target, run, campaign)


def refuse_full_disk(directory: Path) -> None:
    """Raise UsageError if the place of the results cannot take them."""
    place = next(
        one for one in (directory, *directory.absolute().parents) if one.is_dir()
    )
    free = shutil.disk_usage(place).free
    if free < LEAST_FREE_BYTES:
        raise UsageError(
            f"{place}: {free >> 20} MiB are free, and results may take "
            f"{LEAST_FREE_BYTES >> 20}; free some space, or name another directory "
            "with --out"
        )


def _kinds(plan: Plan) -> Iterator[Run]:
    """Yield the first run of each kind that an agent could refuse."""
    seen = set()
    for run in plan.runs:
        kind = run.policy, run.priority, run.cpus, run.deadline_runtime_ns
        if kind not in seen and run.interval_ns <= LONGEST_INTERVAL_NS:
            seen.add(kind)
            yield run


def _try(target: Target, run: Run, campaign: Campaign) -> None:
    for line in trial(target, run, replace(campaign, explain=False)):
        if isinstance(line, AgentError):
            advice = f"; {line.remedy}" if line.remedy else ""
            raise TargetError(f"{target.name}: {line.message}{advice}")


def trial(target: Target, run: Run, campaign: Campaign) -> list[Line]:
    """Let the agent measure this kind of run for milliseconds; return what it said."""
    short = replace(run, duration_ns=max(TRIAL_NS, 2 * run.interval_ns))
    args = measure_args(short, campaign)
    lines, _ = run_agent(target, args, timeout_s=TRIAL_TIMEOUT_S)
    return lines
