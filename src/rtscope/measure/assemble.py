"""
From what was seen of a run to its record: the same for a machine and for a board.

Pure: whoever ran it hands over what it said; every doubt that only a running host could
see is raised here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rtscope import __version__
from rtscope.campaign import Campaign, to_dict
from rtscope.caveats import kernellog
from rtscope.caveats.catalogue import Caveat, gravest_first, make
from rtscope.caveats.fromfacts import caveats_from
from rtscope.contract import result_digest
from rtscope.errors import ContractError, TargetError
from rtscope.loads import LoadCommand, get_load, throughput_of
from rtscope.machine.facts import FactValue
from rtscope.measure.agentargs import knobs
from rtscope.measure.loadcheck import caveats_from_load
from rtscope.measure.observe import Observation
from rtscope.record.model import LoadRecord, Run, RunRecord

LOG_TAIL = 4000

Facts = Mapping[str, FactValue]


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """What is known of the load besides what the agent told of it."""

    command: LoadCommand
    version: str | None
    """Of stress-ng; None if the load is something else, or nothing."""
    metrics: str
    """The YAML that stress-ng wrote, if it did."""
    log: str


@dataclass(frozen=True, slots=True)
class Measured:
    """One run, when it is over."""

    run: Run
    campaign: Campaign
    command: tuple[str, ...]
    """What to type to repeat the campaign."""
    started: str
    host_seconds: float
    facts_before: Facts
    facts_after: Facts
    seen: Observation
    load: LoadSeen
    cpus: tuple[int, ...]
    """The CPUs to doubt if no thread was bound to one."""
    audited: tuple[Caveat, ...] = ()
    """What the audit before the run raised."""
    tuned: tuple[str, ...] = ()
    """Settings that were changed for the campaign, as KNOB=VALUE."""
    kernel_digest: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def assemble(measured: Measured) -> RunRecord:
    """Return the record; TargetError if the agent did not introduce itself or end."""
    seen, load = measured.seen, measured.load
    if seen.hello is None or seen.result is None:
        raise TargetError("the agent did not introduce itself")
    record = RunRecord(
        schema=1,
        rtscope=__version__,
        run=measured.run,
        command=measured.command,
        campaign=to_dict(measured.campaign),
        started=measured.started,
        host_seconds=measured.host_seconds,
        facts_before=measured.facts_before,
        facts_after=measured.facts_after,
        hello=seen.hello,
        ticks=tuple(seen.ticks),
        result=seen.result,
        load=LoadRecord(
            name=measured.run.load,
            argv=load.command.argv,
            version=load.version,
            ticks=tuple(seen.load_ticks),
            end=seen.load_end,
            throughput=_throughput(load.metrics),
            log_tail=load.log[-LOG_TAIL:],
        ),
        kernel_log=tuple(seen.kernel_log),
        caveats=(),
        result_digest=result_digest(seen.result.threads),
        kernel_digest=measured.kernel_digest,
        extra=measured.extra,
    )
    return replace(record, caveats=gravest_first(_caveats(record, measured)))


def _caveats(record: RunRecord, measured: Measured) -> Iterator[Caveat]:
    cpus = tuple(t.cpu for t in record.result.threads if t.cpu is not None)
    yield from caveats_from(
        record.facts_before, record.facts_after, cpus=cpus or measured.cpus
    )
    yield from kernellog.caveats_from_log(record.kernel_log, load=record.run.load)
    command = measured.load.command
    yield from (make(name, detail) for name, detail in command.caveats)
    yield from measured.audited
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


def _throughput(metrics: str) -> Mapping[str, float]:
    try:
        return throughput_of(metrics) if metrics else {}
    except ContractError:
        return {}
