"""
A second pass of a recorded run: the same inputs, so the same run, recording more.

The parts are found by their digests in the record, never built anew; only the plugin
may be another. A pass whose result is not that of the record is refused: its paths
would be those of another run.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope.board.catalogue import get_board
from rtscope.board.prepare import Prepared, assemble, plugin_of_ours
from rtscope.campaign import from_dict
from rtscope.contract import AgentResult, parse_line, result_digest
from rtscope.errors import BoardError, MeasurementError, UsageError
from rtscope.exectrace.format import Section, SectionKind, Trace, parse_trace
from rtscope.exectrace.symbols import SymbolTable
from rtscope.record.model import RunRecord
from rtscope.virtual.boot import Booted, ToRecord, boot
from rtscope.virtual.kernellayout import PLACES, section_places
from rtscope.virtual.prepare import asked_of, job_for
from rtscope.virtual.selectplugin import find_plugin, with_able_plugin
from rtscope.virtual.symbols import kernel_places, parts_by_digest
from rtscope.virtual.timeout import Patience

MAX_WINDOW_INSTRUCTIONS = 20_000_000
"""Of all windows together: 40 ms of virtual time, at most some 300 MB of records."""

MAX_WINDOWS = 64

Window = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Again:
    """What a second pass recorded."""

    raw: bytes
    trace: Trace
    untold: tuple[str, ...]
    """What windows do not tell, because it is not known where this kernel keeps it."""


def prepared_again(record: RunRecord, *, cache: Path) -> Prepared:
    """
    Return what booted then, with this rtscope's plugin if the one of then is gone.

    Raises BoardError if another part of it is, or QEMU was the user's own.
    """
    virtual = virtual_of(record)
    if not any(name.startswith("qemu-") for name in virtual["parts"]):
        raise BoardError(
            f"{record.run.id}: cannot be booted again: it was measured with a QEMU of "
            "one's own, which is not kept; measure without --qemu what is to be"
        )
    board = get_board(str(virtual["board"]))
    measured = find_plugin(str(virtual["plugin_digest"]), cache=cache)
    rest = {n: d for n, d in virtual["parts"].items() if n.split("-")[0] != "plugin"}
    return assemble(
        board,
        str(virtual["kernel"]),
        parts=parts_by_digest(cache, rest),
        plugin=measured or plugin_of_ours(),
    )


def virtual_of(record: RunRecord) -> dict[str, Any]:
    """Return what a record says of its virtual board; UsageError if it has none."""
    virtual = record.extra.get("virtual")
    if not isinstance(virtual, dict):
        raise UsageError(
            f"{record.run.id}: measured on {record.run.target}: only a virtual board "
            "records what it executed"
        )
    return virtual


def windows_around(sections: Sequence[Section], count: int) -> tuple[Window, ...]:
    """
    Return windows from well before the expiry of the `count` worst wake-ups to their
    marks, merged where they overlap; those of the worst that fit the limit.
    """
    worst = [s for s in sections if s.kind is SectionKind.WORST]
    chosen: list[Window] = []
    for section in worst[:count]:
        more = _merge([*chosen, (section.first, section.last)])
        if _width(more) > MAX_WINDOW_INSTRUCTIONS:
            break
        chosen = more
    return tuple(chosen)


def record_again(
    record: RunRecord,
    *,
    windows: Sequence[Window],
    cache: Path,
    say: Callable[[str], None],
    symbols: SymbolTable | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Again:
    """
    Boot once more with the inputs of a record, and record these windows too.

    Windows are instruction counts, first and last. With `symbols` the longest sections
    and all interrupts are recorded as well. `say` is told which plugin boots, unless
    this rtscope's measured. Raises UsageError for windows and sections that cannot be,
    BoardError if the inputs are gone, MeasurementError if they gave another result.
    """
    _check(windows)
    prepared = prepared_again(record, cache=cache)
    campaign = from_dict(record.campaign, source=record.run.id)
    asked = asked_of(record.run, campaign, prepared.board, record.command)
    places = kernel_places(prepared, cache=cache)
    sections = {} if symbols is None else _sections(record, prepared, symbols, places)
    to_record = ToRecord(
        campaign.worst, windows=tuple(windows), places=places, sections=sections
    )
    prepared = with_able_plugin(
        prepared,
        to_record,
        then=str(virtual_of(record)["plugin_digest"]),
        say=lambda text: say(f"{record.run.id}: {text}"),
    )
    booted = boot(
        prepared,
        job_for(asked, prepared),
        seed=asked.seed,
        patience=Patience(
            record.run.duration_ns, campaign.settling_ns + campaign.warmup_ns
        ),
        stopped=stopped,
        record=to_record,
    )
    _refuse_another(record, booted)
    if booted.stream is None:
        raise BoardError(f"{record.run.id}: the plugin wrote no stream")
    untold = tuple(name for name in PLACES if name not in places)
    return Again(booted.stream, parse_trace(booted.stream), untold if windows else ())


def _sections(
    record: RunRecord,
    prepared: Prepared,
    symbols: SymbolTable,
    places: Mapping[str, str],
) -> dict[str, int]:
    release = record.facts_before.get("kernel_release")
    sections = section_places(
        prepared.board.arch,
        release=str(release.value) if release else "",
        symbols=symbols,
    )
    if sections and any(name not in places for name in PLACES):
        raise UsageError(
            f"{record.run.id}: no sections of this kernel: it is not known where it "
            "keeps its task and its preemption count"
        )
    return sections


def _refuse_another(record: RunRecord, booted: Booted) -> None:
    lines = [
        parse_line(line) for line in booted.files.get("measure.jsonl", b"").splitlines()
    ]
    results = [line for line in lines if isinstance(line, AgentResult)]
    if results and result_digest(results[-1].threads) == record.result_digest:
        return
    why = "its digest is another"
    virtual = virtual_of(record)
    version = f"use the version that wrote the record ({record.rtscope})"
    if booted.initrd_digest != virtual["initrd_digest"]:
        why = f"this rtscope gives the board another job; {version}"
    elif booted.plugin_digest != virtual["plugin_digest"]:
        why = (
            "the plugin of this rtscope is another than the one that measured, and may "
            f"take the CPUs' turns in another way; {version}"
        )
    raise MeasurementError(
        f"{record.run.id}: the second pass was not the same run: {why}"
    )


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
    if _width(windows) > MAX_WINDOW_INSTRUCTIONS:
        raise UsageError(
            f"windows of {_width(windows):,} instructions are too much to keep: "
            f"{MAX_WINDOW_INSTRUCTIONS:,} are the most"
        )


def _width(windows: Sequence[Window]) -> int:
    return sum(last - first for first, last in windows)


def _merge(windows: Sequence[Window]) -> list[Window]:
    merged: list[Window] = []
    for first, last in sorted(windows):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
