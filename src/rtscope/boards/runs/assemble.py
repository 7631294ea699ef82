"""
Read the files that a board has sent, for the same record as on a real machine.

Equal inputs must give equal results on every host: that is the contract. So `inputs_of`
has everything that decides a result, and nothing else: no paths, no times, not the
number of the run, not whether the board recorded paths.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import Board
from rtscope.boards.parts.buildcontext import FILES_KIND
from rtscope.boards.parts.prepared import Prepared, initrd_digest
from rtscope.boards.parts.qemu import Boot, Qemu, command_line, quantum_by_plugin
from rtscope.boards.recording.symbols import module_addresses
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.diagnosis import messages_of, oom_kills
from rtscope.boards.runs.inspect import files_of
from rtscope.boards.runs.prepare import RunRequest, job_for
from rtscope.boards.runs.script import MODULE_SYMBOLS, TUNED
from rtscope.contract import LoadEnd, LoadTick, sha256_of_json
from rtscope.host.errors import BoardError, TargetError
from rtscope.machine.gather import gather
from rtscope.machine.kernelidentity import ignored_parameters
from rtscope.machine.settings.change import result_of
from rtscope.measure.assemble import LoadSeen, Measured
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.loads import get_load
from rtscope.measure.observe import Observation
from rtscope.measure.plan import measure_args
from rtscope.measure.settings import CampaignTuning, refuse_missing
from rtscope.record.caveats.catalogue import Caveat, caveats_from_outside, make
from rtscope.record.model import InputDigests, Run, VirtualRun
from rtscope.record.wakeparts import WakeupParts, wakeup_parts

_NO_QEMU = Qemu((), version="", digest="")
_COUNTED = ("schema", "quantum", "marks", "last_mark", "last_mark_in_programs")
"""Of the plugin's summary: QEMU ends some time after the last mark, never the same."""
OPTIONS = "options"
"""In the record of a tuned run: the options of the agent, to boot it again."""


def measured_on_board(
    request: RunRequest,
    prepared: Prepared,
    booted: Booted,
    *,
    trace: Mapping[str, Any],
    attachments: Mapping[str, bytes | None],
    audited: tuple[Caveat, ...] = (),
    reused: str = "",
    worker: str = "",
) -> Measured:
    """
    Return what a run measured; BoardError, MeasurementError if it did not.

    `reused` is when a stored result was computed; empty: measured now.
    """
    seen = _observed(booted)
    if seen.hello is None or seen.result is None:
        log = booted.text("script.log").strip()[-500:] or "no message"
        why = oom_kills(booted.text("kernel.log"), prepared.board) or log
        raise BoardError(f"{request.run.id}: the board measured nothing: {why}")
    before, after = (
        gather(files_of(prepared, booted, name))
        for name in ("facts-before.jsonl", "facts-after.jsonl")
    )
    virtual = replace(
        _virtual(request, prepared, booted, trace), reused=bool(reused), worker=worker
    )
    tuning = _tuning(request, prepared, booted)
    return Measured(
        run=request.run,
        campaign=request.campaign,
        command=request.command,
        started=reused or request.started,
        host_seconds=booted.host_seconds,
        facts_before=before,
        facts_after=after,
        seen=seen,
        load=_load_seen(request, prepared, booted),
        cpus=(),
        attachments=attachments,
        caveats=(
            *audited,
            *_caveats(request, virtual, reused),
            *_ignored(request.campaign.append, booted.text("kernel.log")),
            *caveats_from_outside(
                messages_of(booted.text("kernel.log")), seen.kernel_log
            ),
        ),
        tuned=tuning.changed if tuning else (),
        tuning={**tuning.document(), OPTIONS: list(request.settings)}
        if tuning
        else None,
        kernel_digest=prepared.kernel.digest,
        virtual=virtual,
        parts=_parts(request, booted, [t.tid for t in seen.result.threads]),
    )


def _parts(
    request: RunRequest, booted: Booted, tids: Sequence[int]
) -> WakeupParts | None:
    """Return the parts of all wake-ups, if the run is to have them."""
    return wakeup_parts(booted.counts, tids) if request.campaign.parts else None


def _observed(booted: Booted) -> Observation:
    seen = Observation()
    for name in ("measure.jsonl", "load.jsonl"):
        for line in booted.lines(name):
            match line:
                case LoadTick() as tick:
                    seen.load_ticks.append(tick)
                case LoadEnd() as end:
                    seen.load_end = end
                    # Only the end of the script stops a load.
                    seen.load_ended_early = not end.stop_requested
                case other:
                    seen.take(other)
    return seen


def _tuning(
    request: RunRequest, prepared: Prepared, booted: Booted
) -> CampaignTuning | None:
    """Return what became of the settings; BoardError if a named one was refused."""
    if request.tuning is None:
        return None
    name, plan = prepared.board.name, request.tuning
    try:
        result = result_of(name, plan.changes, list(booted.lines(TUNED)))
        refused = {one.change.check: one.reason for one in result.refused}
        refuse_missing(name, request.campaign.tuned, refused)
    except TargetError as error:
        raise BoardError(f"{request.run.id}: {error}") from error
    return CampaignTuning(plan, result)


def _load_seen(request: RunRequest, prepared: Prepared, booted: Booted) -> LoadSeen:
    uses = get_load(request.run.load).uses_stress_ng
    return LoadSeen(
        request.load,
        version=_package_version(prepared, "stress-ng") if uses else None,
        metrics=booted.text("load.yaml"),
        log=booted.text("load.log"),
    )


def _package_version(prepared: Prepared, name: str) -> str | None:
    """Return the version of a package in the user space of the board."""
    for part in prepared.parts:
        if part.name.startswith(FILES_KIND):  # its inputs are guest files by name
            continue
        for package in part.manifest["inputs"].get("packages", ()):
            if package["name"] == name:
                return f"{name} {package['version']}"
    return None


def _virtual(
    request: RunRequest, prepared: Prepared, booted: Booted, trace: Mapping[str, Any]
) -> VirtualRun:
    board = prepared.board
    inputs = inputs_of(request, prepared, booted)
    return VirtualRun(
        board=board.name,
        cpus=board.cpus,
        mips=board.mips,
        board_revision=board.revision,
        quantum_instructions=board.quantum_instructions,
        seed=request.seed,
        settle_ns=request.campaign.settling_ns,
        input_digests=inputs,
        inputs_digest=inputs.digest,
        kernel=prepared.kernel.name,
        kernel_digest=prepared.kernel.digest,
        kernel_bytes=prepared.kernel.image.stat().st_size,
        initrd_digest=booted.initrd_digest,
        qemu_version=prepared.qemu.version,
        qemu_digest=prepared.qemu.digest,
        part_digests={part.name: part.digest for part in prepared.parts},
        plugin_digest=booted.plugin_digest,
        disk_filesystem=booted.text("disk").strip(),
        module_addresses=module_addresses(booted.files.get("modules", b"")),
        module_symbols=booted.text(MODULE_SYMBOLS),
        plugin_counters={k: v for k, v in booted.counts.items() if k in _COUNTED},
        not_modelled=board.leaves_out,
        trace=trace,
    )


def _caveats(request: RunRequest, virtual: VirtualRun, reused: str) -> Iterator[Caveat]:
    if reused:
        yield make("result_reused", f"computed at {reused}")
    yield make(
        "virtual_board",
        f"{virtual.board}: {virtual.cpus} CPUs, a quantum of "
        f"{virtual.quantum_instructions} instructions, {virtual.mips:g} million "
        f"instructions per virtual second and CPU, seed {virtual.seed}",
    )
    if request.run.load == "storage" and virtual.disk_filesystem != "ext4":
        yield make("load_reduced", "files in tmpfs: this kernel has no disk in memory")


def _ignored(append: Sequence[str], kernel_log: str) -> Iterator[Caveat]:
    """Yield what became of boot parameters that the kernel did not take."""
    ignored = ignored_parameters(kernel_log, append)
    if ignored:
        detail = ", ".join(f"{word}: {why}" for word, why in ignored.items())
        yield make("parameters_ignored", detail)


def inputs_of(request: RunRequest, prepared: Prepared, booted: Booted) -> InputDigests:
    """Return the digests of all inputs of a boot."""
    return _inputs(
        request, prepared, initrd=booted.initrd_digest, plugin=booted.plugin_digest
    )


def inputs_before(request: RunRequest, prepared: Prepared) -> InputDigests:
    """Return the digests of all inputs of a boot to come."""
    return _inputs(
        request,
        prepared,
        initrd=initrd_digest(prepared, job_for(request, prepared)),
        plugin=prepared.plugin_digest,
    )


def _inputs(
    request: RunRequest, prepared: Prepared, *, initrd: str, plugin: str
) -> InputDigests:
    return InputDigests(
        kernel=prepared.kernel.digest,
        initrd=initrd,
        qemu=prepared.qemu.digest,
        plugin=plugin,
        board=board_digest(prepared.board),
        campaign=campaign_digest(request.run, request.campaign),
        seed=request.seed,
    )


def board_digest(board: Board) -> str:
    """Return the digest of a board's machine, without kernel and initrd."""
    boot = Boot(
        kernel=Path("kernel"),
        initrd=Path("initrd"),
        console=Path("console"),
        results=Path("results"),
        seed=0,
        quantum=quantum_by_plugin(Path("plugin"), board),
    )
    words = command_line(_NO_QEMU, board, boot)
    return sha256_of_json((*words, f"revision={board.revision}"))


def campaign_digest(run: Run, campaign: Campaign) -> str:
    """Return the digest of the load, the measurement and the times around it."""
    return sha256_of_json(
        {
            "load": run.load,
            "command": campaign.command if run.load == "custom" else (),
            "measure": measure_args(run, campaign),
            "settle_ns": campaign.settling_ns,
            "warmup_ns": campaign.warmup_ns,
        }
    )
