"""
The recorded paths of a virtual board: what the plugin writes, and as it lies packed.

`format/plugin.md` describes the stream. A stamp is virtual time in ns, of the CPU that
it is about.

The record names the file with its digest and says how much of what it should hold is
in it. A record may come by mail: a name is no path, and nothing is unpacked without a
limit.
"""

import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from rtscope.host.errors import ContractError, RecordError, UsageError
from rtscope.host.files import first_mistake, read_bounded
from rtscope.record.instructions.section import (
    ExecTrace,
    SectionKind,
    TraceSection,
)

VERSION = 2
"""The version of a stream: 2 was the first, and 1 is never used."""

_BLOCK_INSTRUCTIONS = 512
"""QEMU 7.2 to 10: TCG_MAX_INSNS, include/tcg/tcg.h."""

_MAX_SHIFT = 10
"""An instruction takes 2^shift ns; QEMU takes no more than this."""
_MAGIC = b"RTSCOPE\n"
_HEADER = struct.Struct("<8sII16sIIQ")
_SECTION = struct.Struct("<IIQQQQQII")
_RECORD = np.dtype([("stamp", "<u8"), ("value", "<u8")])
_CUT = 1
_LEFT_OUT = 2
FILE = "worst.trace.gz"
REPLAY = "replay.trace.gz"
"""The recording of a replay; see `rtscope.boards.recording.replay`."""
BOUND = "bound.trace.gz"
"""What a pass for the longest sections recorded, and all interrupts."""
LEAD_NS, MOST_LEAD_NS = 40_000, 500_000
"""From the begin of a path to the expiry: half of the latency, within these bounds.

The plugin keeps to the same: `plugin/worst.c`."""
MAX_PACKED_BYTES = 256 << 20
MAX_BYTES = 512 << 20
"""Of an unpacked stream: the plugin keeps to 64 MiB of paths, windows may add to it."""
_PIECE_BYTES = 1 << 16
"""Unpacks to 64 MiB at most: gzip packs 1,032 to 1."""

Bytes = bytes | bytearray

_GZIP = 16 + zlib.MAX_WBITS
_FAST = 1
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def parse_trace(data: Bytes) -> ExecTrace:
    """Read what the plugin wrote; raise ContractError if it is damaged or too new."""
    header = _unpack(_HEADER, data, 0)
    magic, version, count, arch, cpus, shift, turn = header
    if magic != _MAGIC:
        raise ContractError("this is not a trace of rtscope's plugin")
    if version != VERSION:
        again = "measure again: rtscope run"
        newer = "read it with the newer rtscope that wrote it"
        raise ContractError(
            f"the trace has version {version}, not {VERSION}: "
            f"{newer if version > VERSION else again}"
        )
    if shift > _MAX_SHIFT:
        raise ContractError(f"the trace has the impossible shift {shift}")
    sections = []
    offset = _HEADER.size
    for _ in range(count):
        section, offset = _parse_section(data, offset)
        # At once: a file has up to 8 million records, of which two copies are many.
        section = replace(
            section, block_ns=_BLOCK_INSTRUCTIONS << shift, quantum_ns=turn << shift
        )
        sections.append(_sorted(section))
    if offset != len(data):
        raise ContractError(f"the trace has {len(data) - offset} bytes too many")
    name = arch.rstrip(b"\0").decode("ascii", "replace")
    return ExecTrace(name, cpus, 1 << shift, turn, tuple(sections))


def _sorted(section: TraceSection) -> TraceSection:
    """Order the records of all CPUs, which QEMU executes in turn, by their times."""
    order = np.argsort(section.at_ns, kind="stable")
    return replace(
        section,
        at_ns=section.at_ns[order],
        cpus=section.cpus[order],
        kinds=section.kinds[order],
        values=section.values[order],
    )


def with_windows(trace: ExecTrace) -> tuple[TraceSection, ...]:
    """
    Return the worst wake-ups, each with the records of a window that holds all of it.

    A window has the tasks and preemption counts too, and reaches back as far as it
    was asked to; where there is none, the path stays as the ring had it.
    """
    windows = [s for s in trace.sections if s.kind is SectionKind.WINDOW]
    worst = [s for s in trace.sections if s.kind is SectionKind.WORST]
    return tuple(_from_window(section, windows) for section in worst)


def whole_from_ns(section: TraceSection) -> int:
    """Return where the path to a wake-up begins, or has to begin if it was cut."""
    if not section.cut:
        return section.first_ns
    due_ns = section.last_ns - section.latency_ns
    lead_ns = min(max(LEAD_NS, section.latency_ns // 2), MOST_LEAD_NS)
    return min(section.first_ns, max(0, due_ns - lead_ns))


def _from_window(
    section: TraceSection, windows: Sequence[TraceSection]
) -> TraceSection:
    # Of a cut path the ring has only the end: a window must have what is before that.
    first_ns = whole_from_ns(section)
    for window in windows:
        if window.first_ns <= first_ns and section.last_ns <= window.last_ns:
            held = (window.at_ns >= first_ns) & (window.at_ns <= section.last_ns)
            return replace(
                section,
                first_ns=first_ns,
                cut=False,
                left_out=False,
                at_ns=window.at_ns[held],
                cpus=window.cpus[held],
                kinds=window.kinds[held],
                values=window.values[held],
            )
    return section


def _parse_section(data: Bytes, offset: int) -> tuple[TraceSection, int]:
    kind, cpu, latency_ns, sequence, first, last, records, flags, _ = _unpack(
        _SECTION, data, offset
    )
    if kind not in set(SectionKind):
        raise ContractError(f"the trace has a section of the unknown kind {kind}")
    begin = offset + _SECTION.size
    end = begin + records * _RECORD.itemsize
    if end > len(data):
        raise ContractError("the trace breaks off in the middle of a section")
    rows = np.frombuffer(data, _RECORD, count=records, offset=begin)
    stamp = rows["stamp"]
    section = TraceSection(
        kind=SectionKind(kind),
        cpu=cpu,
        latency_ns=latency_ns,
        sequence=sequence,
        first_ns=first,
        last_ns=last,
        cut=bool(flags & _CUT),
        left_out=bool(flags & _LEFT_OUT),
        at_ns=(stamp & np.uint64(2**48 - 1)).astype(np.int64),
        cpus=(stamp >> np.uint64(48)).astype(np.uint8),
        kinds=(stamp >> np.uint64(56)).astype(np.uint8),
        values=rows["value"],
    )
    return section, end


def _unpack(what: struct.Struct, data: Bytes, offset: int) -> tuple[Any, ...]:
    if offset + what.size > len(data):
        raise ContractError("the trace breaks off in the middle of a header")
    return what.unpack_from(data, offset)


@dataclass(frozen=True, slots=True)
class StreamNote:
    """The note in a record on its stream."""

    file: Name
    sha256: Digest
    """Of the file as it lies there."""
    bytes: int
    unpacked_bytes: int
    paths: int
    """Worst wake-ups that it names."""
    truncated: int
    """Paths that begin later than they should: the ring was too short."""
    omitted: int
    """Paths without records: their records exceeded the limit."""

    @property
    def complete(self) -> bool:
        """Whether every path is in it from its begin to its end."""
        return not self.truncated and not self.omitted


_NOTE = TypeAdapter(StreamNote)


def pack(raw: bytes, *, name: str) -> tuple[bytes, StreamNote]:
    """
    Return the file and the note for the record; ContractError if it is damaged.

    The same stream gives the same bytes.
    """
    trace = parse_trace(raw)
    packer = zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP)
    content = packer.compress(raw) + packer.flush()
    worst = [s for s in trace.sections if s.kind is SectionKind.WORST]
    note = StreamNote(
        file=name,
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        unpacked_bytes=len(raw),
        paths=len(worst),
        truncated=sum(s.cut for s in worst),
        omitted=sum(s.left_out for s in worst),
    )
    return content, note


def note_of(note: Mapping[str, Any] | None, *, name: str) -> StreamNote:
    """
    Return the note in a record on its stream.

    Raises UsageError if none was recorded, RecordError if the record is damaged.
    """
    if note is None or "reason" in note:
        why = note and note["reason"]
        raise UsageError(
            f"{name}: no paths were recorded ({why or 'recorded without them'}); "
            "record them with rtscope board trace --replay"
        )
    try:
        return _NOTE.validate_python(note)
    except ValidationError as error:
        mistake = first_mistake(error)
        raise RecordError(f"{name}: damaged record: trace: {mistake}") from error


def read_stream(path: Path, *, sha256: str | None) -> ExecTrace:
    """
    Read a stream; RecordError if it is missing, damaged, or another than the record's.
    """
    content = read_bounded(
        path,
        limit=MAX_PACKED_BYTES,
        kind="stream",
        hint="; it lies beside the record: copy the whole directory of the run, or "
        "record it again with --replay",
    )
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise RecordError(
            f"{path}: not the stream that the record names: its digest is another; "
            "record it again with --replay"
        )
    try:
        raw = _unpacked(content)
        del content
        return parse_trace(raw)
    except (zlib.error, ContractError) as error:
        raise RecordError(f"{path}: damaged: {error}") from error


def _unpacked(content: bytes) -> bytearray:
    """Unpack a stream piece by piece; ContractError as soon as it is none, or large."""
    unpacker, raw = zlib.decompressobj(_GZIP), bytearray()
    for start in range(0, len(content), _PIECE_BYTES):
        piece = content[start : start + _PIECE_BYTES]
        raw += unpacker.decompress(piece, MAX_BYTES + 1 - len(raw))
        if not raw.startswith(_MAGIC[: len(raw)]):
            raise ContractError("this is not a trace of rtscope's plugin")
        if len(raw) > MAX_BYTES:
            raise ContractError(f"it unpacks to more than {MAX_BYTES:,} bytes")
        if unpacker.unused_data or (unpacker.eof and start + len(piece) < len(content)):
            raise ContractError("something follows the end of the stream")
    if not unpacker.eof:
        raise ContractError("it breaks off")
    return raw
