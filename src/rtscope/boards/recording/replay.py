"""
Replay a recorded run: boot it again with the same inputs, and record more.

Parts are found by their digests in the record, never rebuilt; only the plugin may
differ. A replay with another result than the record is refused: its paths would belong
to another run.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.parts.buildcontext import PLUGIN
from rtscope.boards.parts.cache import all_parts, imported_parts
from rtscope.boards.parts.prepare import plugin_of_ours
from rtscope.boards.parts.prepared import Prepared, assemble
from rtscope.boards.parts.qemu import Recording, refusal, with_plugin
from rtscope.boards.recording.secondpass import RING, ROOM
from rtscope.boards.recording.symbols import (
    FIELDS,
    find_kernel_layout,
    parts_by_digest,
    section_options,
)
from rtscope.boards.runs.assemble import OPTIONS
from rtscope.boards.runs.boot import Booted, boot, in_steps
from rtscope.boards.runs.prepare import DIGITS, job_for, request_for
from rtscope.contract import AgentResult, result_digest
from rtscope.host.errors import BoardError, HostError, MeasurementError, UsageError
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_MS, format_duration
from rtscope.measure.campaign.file import from_dict
from rtscope.record.instructions.file import parse_trace, whole_from_ns
from rtscope.record.instructions.section import ExecTrace, SectionKind, TraceSection
from rtscope.record.instructions.symbols import SymbolTable
from rtscope.record.model import RunRecord

MAX_WINDOW_NS = 10 * NS_PER_MS
"""Of all windows together: at most some 300 MB of records, of four busy CPUs."""

MAX_WINDOWS = 64

Window = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """The recordings of a replay."""

    raw: bytes
    trace: ExecTrace
    not_recorded: tuple[str, ...]
    """Missing in windows: its place in this kernel is unknown."""


def prepare_replay(record: RunRecord, *, cache: Path) -> Prepared:
    """
    Return the board of a record, with today's plugin if the original is gone.

    Raises BoardError if another part is gone, or QEMU was the user's own.
    """
    virtual = record.require_virtual()
    if not any(name.startswith("qemu-") for name in virtual.part_digests):
        raise BoardError(
            f"{record.run.id}: cannot be replayed: it was measured with your own QEMU "
            "(--qemu), of which no copy is kept; measure again without --qemu"
        )
    campaign = from_dict(record.campaign, source=record.run.id)
    board = with_append(get_board(virtual.board), campaign.append)
    measured = find_plugin(virtual.plugin_digest, cache=cache)
    rest = {
        n: d for n, d in virtual.part_digests.items() if n.split("-")[0] != "plugin"
    }
    return assemble(
        board,
        virtual.kernel,
        parts=parts_by_digest(cache, rest),
        plugin=measured or plugin_of_ours(),
    )


def windows_around(sections: Sequence[TraceSection], count: int) -> tuple[Window, ...]:
    """
    Return windows from well before the expiry of the `count` worst wake-ups to their
    marks, merged where they overlap; those of the worst that fit the limit.
    """
    worst = [s for s in sections if s.kind is SectionKind.WORST]
    chosen: list[Window] = []
    for section in worst[:count]:
        more = _merge([*chosen, (whole_from_ns(section), section.last_ns)])
        if _width_ns(more) > MAX_WINDOW_NS:
            break
        chosen = more
    return tuple(chosen)


def replay_run(
    record: RunRecord,
    *,
    windows: Sequence[Window],
    cache: Path,
    log: Callable[[str], None],
    symbols: SymbolTable | None = None,
    stopped: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _step: None,
) -> Replay:
    """
    Boot again with the inputs of a record, and record these windows too.

    Windows are virtual times in ns, first and last. With `symbols` the longest sections
    and all interrupts are recorded as well. `log` gets the choice of the
    plugin, if today's is not the one that measured. Raises UsageError for impossible
    windows or sections, BoardError if inputs are gone, MeasurementError if the result
    differs.
    """
    _check(windows)
    prepared = prepare_replay(record, cache=cache)
    campaign = from_dict(record.campaign, source=record.run.id)
    request = request_for(
        record.run,
        campaign,
        prepared.board,
        record.command,
        settings=tuple((record.tuning or {}).get(OPTIONS, ())),
    )
    layout = find_kernel_layout(prepared, cache=cache)
    sections = {} if symbols is None else _sections(record, prepared, symbols, layout)
    recording = Recording(
        campaign.worst_kept,
        windows=tuple(windows),
        layout=layout,
        sections=sections,
        ring=RING,
        room=ROOM,
    )
    prepared = select_plugin(
        prepared,
        recording,
        measured_digest=record.require_virtual().plugin_digest,
        log=lambda text: log(f"{record.run.id}: {text}"),
    )
    booted = boot(
        prepared,
        job_for(request, prepared),
        seed=request.seed,
        timeout=replace(request.timeout, host_s=None),  # a replay takes longer
        stopped=stopped,
        recording=recording,
        on_progress=in_steps(f"{record.run.id} boots again", progress),
    )
    _refuse_another(record, booted)
    if booted.stream is None:
        raise BoardError(f"{record.run.id}: the plugin wrote no stream")
    unknown = tuple(name for name in FIELDS if windows and name not in layout)
    return Replay(booted.stream, parse_trace(booted.stream), unknown)


def _sections(
    record: RunRecord,
    prepared: Prepared,
    symbols: SymbolTable,
    layout: Mapping[str, str],
) -> dict[str, int]:
    sections = section_options(
        prepared.board.arch, release=record.release, symbols=symbols
    )
    if sections and any(name not in layout for name in FIELDS):
        raise UsageError(
            f"{record.run.id}: no sections of this kernel: it is not known where it "
            "keeps its task and its preemption count"
        )
    return sections


def _refuse_another(record: RunRecord, booted: Booted) -> None:
    lines = booted.lines("measure.jsonl")
    results = [line for line in lines if isinstance(line, AgentResult)]
    if results and result_digest(results[-1].threads) == record.result_digest:
        return
    why = "its digest is another"
    virtual = record.require_virtual()
    version = f"use the version that wrote the record ({record.rtscope})"
    if booted.initrd_digest != virtual.initrd_digest:
        why = f"this rtscope gives the board another job; {version}"
    elif booted.plugin_digest != virtual.plugin_digest:
        why = (
            "the plugin of this rtscope is another than the one that measured, and may "
            f"schedule the CPUs' quanta differently; {version}"
        )
    raise MeasurementError(f"{record.run.id}: the replay was not the same run: {why}")


def _check(windows: Sequence[Window]) -> None:
    for first, last in windows:
        if not 0 <= first <= last < 1 << 47:
            raise UsageError(
                f"--window {first}:{last}: write FIRST:LAST, the lower first"
            )
    if len(windows) > MAX_WINDOWS:
        raise UsageError(f"{len(windows)} windows are more than {MAX_WINDOWS}")
    ordered = all(a[1] < b[0] for a, b in itertools.pairwise(windows))
    if not ordered:
        raise UsageError("windows must be in ascending order and must not overlap")
    if _width_ns(windows) > MAX_WINDOW_NS:
        raise UsageError(
            f"windows of {format_duration(_width_ns(windows))} are too much to keep: "
            f"{format_duration(MAX_WINDOW_NS)} are the most"
        )


def _width_ns(windows: Sequence[Window]) -> int:
    return sum(last - first for first, last in windows)


def _merge(windows: Sequence[Window]) -> list[Window]:
    merged: list[Window] = []
    for first, last in sorted(windows):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def find_plugin(digest: str, *, cache: Path) -> Path | None:
    """Return the cached plugin with this SHA-256; None if it is gone."""
    for part in (*all_parts(cache), *imported_parts(cache)):
        if part.manifest["files"].get(PLUGIN, {}).get("sha256") == digest:
            return part.file(PLUGIN)
    return None


def select_plugin(
    prepared: Prepared,
    recording: Recording,
    *,
    measured_digest: str,
    log: Callable[[str], None],
) -> Prepared:
    """
    Return the board with a plugin that can make this recording; log the choice.

    Prefer the plugin that measured (by its SHA-256), if `prepared` has it and it can do
    this recording. Otherwise take today's, which may schedule the CPUs differently.
    Raises BoardError if that is not built.
    """
    todays = replace(prepared, plugin=plugin_of_ours())
    has_measured = prepared.plugin_digest == measured_digest
    if has_measured and todays.plugin_digest == measured_digest:
        return prepared
    measured_id, todays_id = measured_digest[:DIGITS], todays.plugin_digest[:DIGITS]
    if has_measured and _accepts(prepared, recording):
        log(f"with the plugin that measured ({measured_id}), not today's ({todays_id})")
        return prepared
    why = "cannot record this" if has_measured else "is no longer in the cache"
    log(
        f"with today's plugin ({todays_id}): the original one ({measured_id}) {why}; "
        "a replay with another result is rejected"
    )
    return todays


def _accepts(prepared: Prepared, recording: Recording) -> bool:
    """Tell whether a plugin accepts all options of the recording."""
    with temporary_folder("board", error=HostError) as folder:
        options = with_plugin(
            prepared.plugin,
            prepared.board,
            folder=folder,
            recording=recording,
            progress=False,
        )
        return not refusal(prepared.qemu.prefix, options)
