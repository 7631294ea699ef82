"""
Do what the plan says, on a target: the only module that changes a machine.

Per run, in this order: audit, facts, load on, measurement, load off, facts, record
saved. What --tuned asks for is set before the first run and put back after the last.
Records are yielded as they are done, so an interrupted campaign keeps what it has.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rtscope.campaign import Campaign, untraced_ns
from rtscope.caveats.catalogue import Caveat
from rtscope.contract import Line
from rtscope.cpulist import format_cpulist
from rtscope.errors import MeasurementError, TargetError
from rtscope.ftrace.writer import NAME as TRACE
from rtscope.ftrace.writer import trace_of
from rtscope.loads import LoadCommand, Need, get_load, make_command
from rtscope.machine import facts
from rtscope.machine.reader import read, text_of
from rtscope.measure import audit, resources
from rtscope.measure.agentargs import measure_args, untraced_args
from rtscope.measure.assemble import Facts, LoadSeen, Measured, assemble
from rtscope.measure.observe import Observation, Request, observe
from rtscope.measure.plan import Plan
from rtscope.record.attachments import lay_beside, with_lost
from rtscope.record.model import Run, RunRecord
from rtscope.record.resultdir import ResultDir
from rtscope.record.untraced import UNTRACED, untraced_as_dict
from rtscope.target import Target
from rtscope.target.packages import how_to_install
from rtscope.tuning.campaign import Tuned, tuned


@dataclass(frozen=True, slots=True)
class Settling:
    """The machine is left alone before the first run."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class TunedNow:
    """Settings of the machine were changed for the campaign, or could not be."""

    tuned: Tuned


@dataclass(frozen=True, slots=True)
class RunBegins:
    """A run is about to start."""

    number: int
    of: int
    run: Run


@dataclass(frozen=True, slots=True)
class Heard:
    """A line of the agents, during a run."""

    line: Line


@dataclass(frozen=True, slots=True)
class RunEnds:
    """A run is over and its record saved."""

    record: RunRecord


Event = Settling | TunedNow | RunBegins | Heard | RunEnds


@dataclass(frozen=True, slots=True)
class _Work:
    """What all runs of a campaign share."""

    target: Target
    campaign: Campaign
    command: tuple[str, ...]
    """What to type to repeat the campaign."""
    cpus: tuple[int, ...]
    versions: Mapping[str, str]
    say: Callable[[Event], None]
    tuned: Tuned = field(default_factory=Tuned)


def execute(
    plan: Plan,
    campaign: Campaign,
    target: Target,
    store: ResultDir,
    *,
    command: tuple[str, ...],
    say: Callable[[Event], None],
) -> Iterator[RunRecord]:
    """
    Measure every run of the plan, save and yield its record.

    Raises MeasurementError or TargetError with the first cause; records saved before
    it stay. KeyboardInterrupt is raised again after the agents have been ended and
    what was measured has been saved as interrupted.
    """
    work = _Work(
        target=target,
        campaign=campaign,
        command=command,
        cpus=resources.usable_cpus(target),
        versions=_load_programs(plan, target),
        say=say,
    )
    with tuned(target, campaign, cpus=_all_measured(plan, work.cpus)) as settings:
        if campaign.tuned:
            say(TunedNow(settings))
        yield from _runs(replace(work, tuned=settings), plan, store)


def _runs(work: _Work, plan: Plan, store: ResultDir) -> Iterator[RunRecord]:
    if plan.settle_ns:
        work.say(Settling(plan.settle_ns))
        time.sleep(plan.settle_ns / 1e9)
    for number, run in enumerate(plan.runs, 1):
        work.say(RunBegins(number, len(plan.runs), run))
        audited = audit.audit_before(
            work.target.reader,
            of=work.target.name,
            cpus=_some(run.cpus, work.cpus),
            here=work.target.name == "local",
        )
        record, seen = _measure(work, run, audited.caveats)
        interrupted = seen.interrupted
        beside = {
            TRACE: trace_of(seen.trace, record.result),
            audit.FILE: audited.document,
        }
        record = with_lost(record, lay_beside(store, run.id, beside))
        store.save(record, interrupted=interrupted)
        work.say(RunEnds(record))
        yield record
        if interrupted:
            raise KeyboardInterrupt


def _some(
    cpus: tuple[int, ...] | None, usable: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the CPUs that are measured, if others are left for the rest."""
    return None if cpus is None or set(usable) <= set(cpus) else cpus


def _all_measured(plan: Plan, usable: tuple[int, ...]) -> tuple[int, ...] | None:
    every: set[int] = set()
    for run in plan.runs:
        every |= set(usable if run.cpus is None else run.cpus)
    return _some(tuple(sorted(every)), usable)


def _load_programs(plan: Plan, target: Target) -> Mapping[str, str]:
    """Return the versions of what the loads need; TargetError names what is missing."""
    loads = [get_load(name) for name in dict.fromkeys(run.load for run in plan.runs)]
    needy = [load.name for load in loads if load.uses_stress_ng]
    if not needy:
        return {}
    version = target.program_version("stress-ng")
    if version is None:
        raise TargetError(
            f"{target.name}: stress-ng is not installed there, and the loads "
            f"{', '.join(needy)} need it; install it: "
            f"{how_to_install(target.reader, 'stress-ng')}; or measure without: "
            "--load idle"
        )
    return {"stress-ng": version}


def _measure(
    work: _Work, run: Run, audited: tuple[Caveat, ...]
) -> tuple[RunRecord, Observation]:
    began = time.monotonic()
    before = facts.gather(work.target.reader)
    loading = _prepare_load(work, run, before)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        seen = observe(
            work.target,
            _request(work, run, loading),
            hear=lambda line: work.say(Heard(line)),
        )
    except MeasurementError as error:
        last = _last_words_of_load(work.target, loading)
        raise type(error)(f"{work.target.name}, {run.id}: {error}{last}") from error
    after = facts.gather(work.target.reader)
    work.tuned.check()
    measured = Measured(
        run=run,
        campaign=work.campaign,
        command=work.command,
        started=started,
        host_seconds=round(time.monotonic() - began, 3),
        facts_before=before,
        facts_after=after,
        seen=seen,
        load=_load_seen(work, loading),
        cpus=work.cpus,
        audited=audited,
        tuned=work.tuned.changed,
        extra=_extra(work, seen),
    )
    return assemble(measured), seen


def _extra(work: _Work, seen: Observation) -> Mapping[str, object]:
    tuned = {"tuned": work.tuned.document()} if work.campaign.tuned else {}
    untraced = {UNTRACED: untraced_as_dict(seen.untraced)} if seen.untraced else {}
    return {**tuned, **untraced}


@dataclass(frozen=True, slots=True)
class _Loading:
    """How the load of one run is started."""

    command: LoadCommand
    args: tuple[str, ...]
    """For the agent; empty for idle."""
    log_path: str
    yaml_path: str


def _prepare_load(work: _Work, run: Run, before: Facts) -> _Loading:
    load, target = get_load(run.load), work.target
    token = secrets.token_hex(4)
    log_path = target.work_path(f"load-{token}.log")
    yaml_path = target.work_path(f"load-{token}.yaml")
    storage, scratch = None, target.work_path(f"rtscope-scratch-{token}")
    if Need.STORAGE in load.needs:
        directory = work.campaign.storage_dir or target.default_storage_dir
        storage = resources.storage_room(target, directory)
        scratch = f"{directory.rstrip('/')}/rtscope-scratch-{token}"
    cpus = run.cpus or work.cpus
    some = cpus != work.cpus
    command = make_command(
        load,
        workers=len(cpus),
        cpus=format_cpulist(cpus) if some else None,
        scratch_dir=scratch,
        yaml_path=yaml_path,
        duration_s=int((_loaded_ns(work, run) + work.campaign.warmup_ns) / 1e9) + 1,
        memory=resources.memory_room(before),
        storage=storage,
        custom=work.campaign.command,
    )
    if not command.argv:
        return _Loading(command, (), log_path, yaml_path)
    limit, user = command.memory_limit_bytes, target.load_user()
    args = (
        *("load", "--log", log_path, "--scratch", scratch),
        *(("--memory-limit", str(limit)) if limit else ()),
        *(("--user", f"{user[0]}:{user[1]}") if limit and user else ()),
        *("--", *command.argv),
    )
    return _Loading(command, args, log_path, yaml_path)


def _loaded_ns(work: _Work, run: Run) -> int:
    """Return how long the load is measured: with tracing, before that and after."""
    around_ns = 2 * untraced_ns(run.duration_ns) if work.campaign.traced else 0
    return run.duration_ns + around_ns


def _request(work: _Work, run: Run, loading: _Loading) -> Request:
    campaign = work.campaign
    return Request(
        measure_args=measure_args(run, campaign),
        measure_privileged=True,
        load_args=loading.args,
        load_privileged=loading.command.memory_limit_bytes is not None,
        warmup_ns=campaign.warmup_ns,
        untraced_args=untraced_args(run, campaign),
    )


def _load_seen(work: _Work, loading: _Loading) -> LoadSeen:
    if not loading.args:
        return LoadSeen(loading.command, None, metrics="", log="")
    return LoadSeen(
        loading.command,
        version=work.versions.get("stress-ng"),
        metrics=text_of(read(work.target.reader, loading.yaml_path)) or "",
        log=_load_log(work.target, loading),
    )


def _last_words_of_load(target: Target, loading: _Loading) -> str:
    try:
        words = _load_log(target, loading).splitlines()
    except MeasurementError:  # the connection is lost too: the first cause counts
        return ""
    return f"; the load's last words: {words[-1][:300]}" if words else ""


def _load_log(target: Target, loading: _Loading) -> str:
    if not loading.args:
        return ""
    return text_of(read(target.reader, loading.log_path)) or ""
