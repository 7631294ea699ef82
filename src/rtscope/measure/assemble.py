"""
Assemble the record of a run on a machine or on a virtual board. Pure.

A runner hands over its observations; caveats about the running host are raised here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from rtscope.contract import AgentResult, LoadEnd, LoadTick, result_digest
from rtscope.host.errors import ContractError, TargetError
from rtscope.host.units import NS_PER_S
from rtscope.host.version import __version__
from rtscope.machine.facts import FactValue
from rtscope.measure.campaign.file import to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.loadproof import LoadProof
from rtscope.measure.loads import (
    Load,
    LoadCommand,
    Need,
    Stream,
    errors_of,
    get_load,
    operations_of,
    stream_caveats,
    stream_of,
    throughput_of,
)
from rtscope.measure.observe import Observation
from rtscope.measure.plan import knobs
from rtscope.measure.seconds import thinned
from rtscope.record.caveats import catalogue
from rtscope.record.caveats.catalogue import Caveat, caveats_from, gravest_first, make
from rtscope.record.model import LoadRecord, Run, RunRecord, VirtualRun
from rtscope.record.wakeparts import WakeupParts

LOG_TAIL = 4000
LOST_WORDS = 400

STALL_NS = 3_000_000_000
"""CPU time is counted in ticks of 10 ms; three seconds without one is no work."""


INTERRUPTED = (130, 143)
"""Exit status of a shell or program ended by SIGINT or SIGTERM, as intended."""

Facts = Mapping[str, FactValue]
Figure = TypeVar("Figure", int, float)


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """The load, besides what the agent reported of it."""

    command: LoadCommand
    version: str | None
    """Version of stress-ng; None if the run needs no stress-ng."""
    metrics: str
    """The YAML that stress-ng wrote; may be empty."""
    log: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The observations of one run."""

    run: Run
    campaign: Campaign
    command: tuple[str, ...]
    """The command line that repeats the campaign."""
    started: str
    host_seconds: float
    facts_before: Facts
    facts_after: Facts
    seen: Observation
    load: LoadSeen
    cpus: tuple[int, ...]
    """The CPUs that caveats are about if no thread was pinned."""
    attachments: Mapping[str, bytes | None]
    """Attached files by name; None: this run has no such file."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats of the runner: of its audit, of a virtual board."""
    tuned: tuple[str, ...] = ()
    """Settings that were changed for the campaign, as KNOB=VALUE."""
    kernel_digest: str | None = None
    virtual: VirtualRun | None = None
    untraced: tuple[AgentResult, ...] = ()
    """Results of the same run without tracing."""
    tuning: Mapping[str, Any] | None = None
    parts: WakeupParts | None = None
    """Of all wake-ups, if they were asked for."""


def assemble(measured: Measured) -> RunRecord:
    """Return the record; TargetError without a first and a last line of the agent."""
    seen, load = measured.seen, measured.load
    kind = get_load(measured.run.load)
    if seen.hello is None or seen.result is None:
        raise TargetError("the agent sent no first line")
    span_ns = (seen.result.start_ns, seen.result.end_ns)
    stream = stream_of(load.log, span_ns) if kind.event else None
    load_ticks = tuple(seen.load_ticks)
    proof = LoadProof(
        kind,
        load.command.argv,
        seen.load_windows,
        span_ns,
        ticks=load_ticks,
    )
    record = RunRecord(
        schema=2,
        rtscope=__version__,
        run=measured.run,
        command=measured.command,
        campaign=to_dict(measured.campaign),
        started_at=measured.started,
        host_duration_s=measured.host_seconds,
        facts_before=measured.facts_before,
        facts_after=measured.facts_after,
        hello=seen.hello,
        ticks=tuple(seen.ticks),
        result=seen.result,
        load=LoadRecord(
            name=measured.run.load,
            argv=load.command.argv,
            version=load.version,
            ticks=load_ticks,
            end=seen.load_end,
            throughput=_throughput(kind, load, stream),
            log_tail=(errors_of(load.log) if kind.event else load.log)[-LOG_TAIL:],
            operations=_figures(operations_of, load.metrics),
            windows=thinned(seen.load_windows),
            workers=proof.workers,
        ),
        kernel_log=tuple(seen.kernel_log),
        caveats=(),
        result_digest=result_digest(seen.result.threads),
        kernel_digest=measured.kernel_digest,
        virtual=measured.virtual,
        untraced_runs=tuple(result.threads for result in measured.untraced),
        tuning=measured.tuning,
        parts=measured.parts,
    )
    missing = (
        *proof.caveats(ended_early=seen.load_ended_early),
        *stream_caveats(kind, stream, load.log),
    )
    caveats = (*measured.caveats, *_caveats(record, measured), *missing)
    return replace(record, caveats=gravest_first(caveats))


def _caveats(record: RunRecord, measured: Measured) -> Iterator[Caveat]:
    seen = measured.seen
    if seen.lost is not None:
        yield make("result_rebuilt", str(seen.lost)[:LOST_WORDS])
    elif differs := seen.growth.contradiction(record.result):
        yield make("growth_differs", differs)
    cpus = tuple(t.cpu for t in record.result.threads if t.cpu is not None)
    yield from caveats_from(
        record.facts_before,
        record.facts_after,
        cpus=cpus or measured.cpus,
        virtual=record.virtual is not None,
    )
    yield from catalogue.caveats_from_log(record.kernel_log, load=record.run.load)
    command = measured.load.command
    yield from (make(name, detail) for name, detail in command.caveats)
    if changed := (*knobs(measured.campaign), *measured.tuned):
        yield make("knobs_changed", ", ".join(changed))
    if command.argv:
        yield from caveats_from_load(
            get_load(record.run.load),
            record.load.ticks,
            end=record.load.end,
            ended_early=measured.seen.load_ended_early,
            window_ns=(record.result.start_ns, record.result.end_ns),
        )


def _throughput(
    kind: Load, load: LoadSeen, stream: Stream | None
) -> Mapping[str, float]:
    if stream is not None:
        return {kind.kind: stream.rate_per_s}
    return _figures(throughput_of, load.metrics)


def _figures(
    read: Callable[[str], Mapping[str, Figure]], metrics: str
) -> Mapping[str, Figure]:
    try:
        return read(metrics) if metrics else {}
    except ContractError:
        return {}


def caveats_from_load(
    load: Load,
    ticks: Sequence[LoadTick],
    *,
    end: LoadEnd | None,
    ended_early: bool,
    window_ns: tuple[int, int],
) -> Iterator[Caveat]:
    """
    Yield the caveats of a load that should run throughout the window (start, end).

    A load that quietly died would make every latency one of an idle machine; so its
    CPU time has to grow from second to second while samples are taken.
    """
    if ended_early:
        yield make("load_died", _how(end))
    elif end is None:
        yield make("load_unproved", "no report of its end")
    elif end.status not in (0, None, *INTERRUPTED):
        yield make("load_failed", _how(end))
    if not ended_early:
        yield from _progress(load, ticks, window_ns)
    if Need.MEMORY_LIMIT in load.needs and end is not None and not end.oom_kills:
        yield make("no_oom_kill")


def _how(end: LoadEnd | None) -> str:
    if end is None:
        return ""
    if end.signal is not None:
        return f"ended by signal {end.signal}"
    return f"exit status {end.status}"


def _progress(
    load: Load, ticks: Sequence[LoadTick], window_ns: tuple[int, int]
) -> Iterator[Caveat]:
    start_ns, end_ns = window_ns
    inside = [t for t in ticks if start_ns - NS_PER_S <= t.t_ns <= end_ns + NS_PER_S]
    if len(inside) < 2:
        yield make("load_unproved", f"only {len(inside)} reports during the run")
        return
    longest_ns = 0
    since_ns = inside[0].t_ns
    for before, after in pairwise(inside):
        if after.cpu_ns > before.cpu_ns:
            longest_ns = max(longest_ns, before.t_ns - since_ns)
            since_ns = after.t_ns
    longest_ns = max(longest_ns, inside[-1].t_ns - since_ns)
    if longest_ns >= min(STALL_NS, inside[-1].t_ns - inside[0].t_ns):
        # The user's command may do its work elsewhere, over the network.
        doubt = "load_stalled" if load.expects_progress else "load_unproved"
        yield make(doubt, f"no CPU time for {longest_ns / 1e9:.0f} s")
