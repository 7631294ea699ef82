"""
What a machine lets rtscope do, and campaigns that it cannot measure, refused.

Its agent tries each kind of run for some milliseconds, with the rights, settings and
CPUs of that run: what it would refuse after minutes of settling, it refuses now.

Nothing is guessed from rights: the agent tries for milliseconds what a run would ask of
it, as `preflight` does, and its answers name the cause.
"""

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from rtscope.contract import AgentError, AgentResult, Line
from rtscope.host.errors import RtscopeError, TargetError, UsageError
from rtscope.host.units import NS_PER_MS, NS_PER_S, NS_PER_US
from rtscope.machine.facts import FactValue
from rtscope.machine.reader import read, text_of
from rtscope.machine.settings import change as settings
from rtscope.machine.settings.remedies import SettingChange
from rtscope.machine.target import Target
from rtscope.machine.target.stream import run_agent
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.machine import load_programs
from rtscope.measure.plan import Plan, make_plan, measure_args
from rtscope.record.caveats.catalogue import catalogue, caveats_from
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
        kind = run.policy, run.priority, run.cpus, run.deadline_runtime_ns, run.event
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


# --- what a machine lets rtscope do, each ability with what refuses it and its remedy -

THREADS = "real-time threads"
"""The ability without which nothing is measured under the default policy."""

SILENT = "the agent ended without a result"

DEADLINE_RUNTIME_NS = 100 * NS_PER_US

SECTIONS = "preemptirq"
"""The events that kernels of distributions lack, and by which sections are seen."""

RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
"""The setting that is asked for as it is: it exists wherever real-time threads do."""


class State(StrEnum):
    """How much of an ability there is."""

    WORKS = "works"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Ability:
    """One of them."""

    name: str
    state: State
    what: str
    """What works, or what refuses it."""
    remedy: str = ""
    """What to type, or to change, for more."""
    cause: str = ""
    """The contract's word: capability, rlimit, cgroup, memlock, lockdown, ..."""


def refused(
    name: str, error: RtscopeError, *, state: State = State.MISSING, of: str = ""
) -> Ability:
    """Make an ability of an error, whose advice follows its reason."""
    text = str(error).removeprefix(f"{of}: ")
    for between in ("; ", ": "):
        what, _, remedy = text.partition(between)
        if remedy:
            return Ability(name, state, what, remedy)
    return Ability(name, state, text)


def machine_abilities(
    target: Target, facts: Mapping[str, FactValue]
) -> Iterator[Ability]:
    """Yield what a machine can do; RtscopeError if its agent cannot be asked."""
    campaign = Campaign()
    plan = make_plan(campaign)
    run = plan.runs[0]
    yield _threads(target, run, campaign)
    yield _deadline(target, run, campaign)
    # As ordinary threads: what refuses real-time ones must not hide what else works.
    ordinary = replace(run, policy="other", priority=0)
    yield _tracing(target, ordinary, replace(campaign, explain=True))
    yield _idle_states(target, ordinary, replace(campaign, hold_cpu_awake=True))
    yield _settings(target)
    try:
        version = load_programs(plan, target)["stress-ng"]
        yield Ability("loads", State.WORKS, version.partition(" (")[0])
    except RtscopeError as error:
        yield refused("loads", error, state=State.LIMITED, of=target.name)
    yield _hardware(facts)


def _threads(target: Target, run: Run, campaign: Campaign) -> Ability:
    lines = trial(target, run, campaign)
    if error := _error(lines):
        return _denied(THREADS, error)
    if (result := _result(lines)) is None:
        return Ability(THREADS, State.MISSING, SILENT)
    who = "through sudo" if target.load_user() else "with your rights"
    cpus = f"{len(result.threads)} CPU" + "s" * (len(result.threads) != 1)
    return Ability(THREADS, State.WORKS, f"SCHED_FIFO {run.priority} on {cpus}, {who}")


def _deadline(target: Target, run: Run, campaign: Campaign) -> Ability:
    runtime_ns = DEADLINE_RUNTIME_NS
    trial_run = replace(
        run, policy="deadline", priority=0, deadline_runtime_ns=runtime_ns
    )
    if error := _error(trial(target, trial_run, campaign)):
        return _denied("SCHED_DEADLINE", error, state=State.LIMITED)
    return Ability("SCHED_DEADLINE", State.WORKS, "a thread for each CPU")


def _tracing(target: Target, run: Run, campaign: Campaign) -> Ability:
    lines = trial(target, run, campaign)
    name, error, result = "tracing", _error(lines), _result(lines)
    if error:
        return _denied(name, error)
    if result is None or (tracing := result.tracing) is None:
        return Ability(name, State.MISSING, SILENT)
    if not tracing.enabled:
        return Ability(
            name, State.MISSING, tracing.reason, tracing.remedy, tracing.cause
        )
    what = f"{len(tracing.events)} kinds of the kernel's events"
    there = {name.partition(":")[0] for name in tracing.events}
    if SECTIONS not in there:
        return Ability(
            name,
            State.LIMITED,
            f"{what}, but none of where interrupts or preemption are off",
            "use a kernel with CONFIG_PREEMPTIRQ_TRACEPOINTS to see those sections too",
        )
    return Ability(name, State.WORKS, what)


def _idle_states(target: Target, run: Run, campaign: Campaign) -> Ability:
    lines = trial(target, run, campaign)
    if error := _error(lines):
        return _denied("idle states", error, state=State.LIMITED)
    return Ability("idle states", State.WORKS, "--hold-cpu-awake can disable them")


def _settings(target: Target) -> Ability:
    """Ask for a setting as it is: rights and journal are needed, nothing changes."""
    name = "settings"
    value = (text_of(read(target.reader, RT_RUNTIME)) or "").strip()
    if not value:
        return Ability(name, State.LIMITED, f"{RT_RUNTIME} cannot be read")
    as_it_is = SettingChange("doctor", "rt_runtime_us", 0, RT_RUNTIME, value, value)
    try:
        with settings.hold(target, [as_it_is]) as held:
            for one in held.result.refused:
                return Ability(name, State.LIMITED, one.reason, cause=one.cause)
    except RtscopeError as error:
        return refused(name, error, state=State.LIMITED, of=target.name)
    return Ability(name, State.WORKS, "--tuned and --governor, restored after a run")


def _hardware(facts: Mapping[str, FactValue]) -> Ability:
    """What caps every verdict of this machine, whatever it measures."""
    for caveat in caveats_from(facts, facts, cpus=()):
        kind = catalogue()[caveat.id]
        if caveat.id in ("guest", "container"):
            what = f"{kind.message} ({caveat.detail})"
            return Ability("hardware", State.LIMITED, what, kind.remedy)
    return Ability("hardware", State.WORKS, "no virtual machine, no container")


def _denied(name: str, error: AgentError, *, state: State = State.MISSING) -> Ability:
    # "cannot do this: Operation not permitted: for that reason"
    what = error.message.rpartition(f"{os.strerror(errno.EPERM)}: ")[2]
    return Ability(name, state, what, error.remedy, error.cause)


def _error(lines: list[Line]) -> AgentError | None:
    return next((line for line in lines if isinstance(line, AgentError)), None)


def _result(lines: list[Line]) -> AgentResult | None:
    return next((line for line in lines if isinstance(line, AgentResult)), None)
