"""From the files that a board has sent to a record, as on a real machine."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtscope import __version__, facts, klog
from rtscope.board.prepare import Prepared
from rtscope.campaign import Campaign, to_dict
from rtscope.caveats import Caveat, gravest_first, make
from rtscope.contract import (
    FileLine,
    LoadEnd,
    LoadTick,
    parse_line,
    result_digest,
)
from rtscope.errors import BoardError, ContractError
from rtscope.loadproof import caveats_from_load
from rtscope.loads import LoadCommand, get_load, throughput_of
from rtscope.observe import Observation
from rtscope.reading import Content, Missing
from rtscope.record import LoadRecord, Run, RunRecord
from rtscope.target.agentreader import content_of
from rtscope.virtual.boot import Booted
from rtscope.virtual.reason import oom_kills

LOG_TAIL = 4000


@dataclass(frozen=True, slots=True)
class FilesRead:
    """A Reader over what the board's agent has read, and files known by other ways."""

    files: Mapping[str, Content]

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """Return what was read; what was not is missing."""
        found: dict[str, Content] = {}
        for path in paths:
            matches = {
                name: content
                for name, content in self.files.items()
                if fnmatch.fnmatchcase(name, path)
            }
            found |= matches or {path: Missing()}
        return found


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run was asked to be."""

    run: Run
    campaign: Campaign
    command: tuple[str, ...]
    load: LoadCommand
    seed: int
    started: str


def record_of(asked: Asked, prepared: Prepared, booted: Booted) -> RunRecord:
    """Build the record; BoardError or MeasurementError if the board did not measure."""
    seen = _observed(booted)
    if seen.hello is None or seen.result is None:
        kernel_log = booted.files.get("kernel.log", b"").decode("utf-8", "replace")
        log = booted.files.get("script.log", b"").decode("utf-8", "replace").strip()
        why = oom_kills(kernel_log, prepared.board) or log[-500:] or "nothing was said"
        raise BoardError(f"{asked.run.id}: the board measured nothing: {why}")
    before, after = (
        facts.gather(_reader(prepared, booted, name))
        for name in ("facts-before.jsonl", "facts-after.jsonl")
    )
    record = RunRecord(
        schema=1,
        rtscope=__version__,
        run=asked.run,
        command=asked.command,
        campaign=to_dict(asked.campaign),
        started=asked.started,
        host_seconds=booted.host_seconds,
        facts_before=before,
        facts_after=after,
        hello=seen.hello,
        ticks=tuple(seen.ticks),
        result=seen.result,
        load=_load_record(asked, seen, booted),
        kernel_log=tuple(seen.kernel_log),
        caveats=(),
        result_digest=result_digest(seen.result.threads),
        kernel_digest=prepared.kernel.digest,
        extra={"virtual": _virtual(asked, prepared, booted)},
    )
    return replace(record, caveats=gravest_first(_caveats(record, asked)))


def _observed(booted: Booted) -> Observation:
    seen = Observation()
    for name in ("measure.jsonl", "load.jsonl"):
        for line in booted.files.get(name, b"").splitlines():
            match parse_line(line):
                case LoadTick() as tick:
                    seen.load_ticks.append(tick)
                case LoadEnd() as end:
                    seen.load_end = end
                case other:
                    seen.take(other)
    return seen


def _reader(prepared: Prepared, booted: Booted, name: str) -> FilesRead:
    files: dict[str, Content] = {}
    for text in booted.files.get(name, b"").splitlines():
        line = parse_line(text)
        if isinstance(line, FileLine):
            files[line.path] = content_of(line)
    kernel = prepared.kernel
    if kernel.config is not None and kernel.release is not None:
        files[f"/boot/config-{kernel.release}"] = kernel.config.read_bytes()
    return FilesRead(files)


def _load_record(asked: Asked, seen: Observation, booted: Booted) -> LoadRecord:
    metrics = booted.files.get("load.yaml", b"").decode("utf-8", "replace")
    try:
        throughput = throughput_of(metrics) if metrics else {}
    except ContractError:
        throughput = {}
    log = booted.files.get("load.log", b"").decode("utf-8", "replace")
    return LoadRecord(
        name=asked.run.load,
        argv=asked.load.argv,
        version=None,
        ticks=tuple(seen.load_ticks),
        end=seen.load_end,
        throughput=throughput,
        log_tail=log[-LOG_TAIL:],
    )


def _virtual(asked: Asked, prepared: Prepared, booted: Booted) -> dict[str, Any]:
    """Everything that the result depends on, and what it cost."""
    board = prepared.board
    return {
        "board": board.name,
        "cpus": board.cpus,
        "mips": board.mips,
        "turn_instructions": board.turn_instructions,
        "seed": asked.seed,
        "kernel": prepared.kernel.name,
        "kernel_digest": prepared.kernel.digest,
        "initrd_digest": booted.initrd_digest,
        "qemu": prepared.qemu.version,
        "qemu_digest": prepared.qemu.digest,
        "parts": {part.name: part.digest for part in prepared.parts},
        "plugin_digest": booted.plugin_digest,
        "disk": booted.files.get("disk", b"").decode("ascii", "replace").strip(),
        "counts": dict(booted.counts),
        "leaves_out": list(board.leaves_out),
    }


def _caveats(record: RunRecord, asked: Asked) -> Iterator[Caveat]:
    virtual = record.extra["virtual"]
    yield make(
        "virtual_board",
        f"{virtual['board']}: {virtual['cpus']} CPUs in turns of "
        f"{virtual['turn_instructions']} instructions, {virtual['mips']:g} million "
        f"instructions per virtual second together, seed {virtual['seed']}",
    )
    cpus = tuple(t.cpu for t in record.result.threads if t.cpu is not None)
    for caveat in facts.caveats_from(
        record.facts_before, record.facts_after, cpus=cpus
    ):
        if caveat.id != "guest":  # said better by virtual_board
            yield caveat
    yield from klog.caveats_from_log(record.kernel_log, load=record.run.load)
    yield from (make(name, detail) for name, detail in asked.load.caveats)
    if record.run.load == "storage" and virtual["disk"] != "ext4":
        yield make("load_reduced", "files in tmpfs: this kernel has no disk in memory")
    if asked.load.argv:
        result, end = record.result, record.load.end
        yield from caveats_from_load(
            get_load(record.run.load),
            record.load.ticks,
            end=end,
            # Only the script's end tells a load to stop: else it ended by itself.
            ended_early=end is not None and not end.asked,
            window_ns=(result.start_ns, result.end_ns),
        )
