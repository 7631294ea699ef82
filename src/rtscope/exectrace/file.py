"""
The recorded paths of a run, as they lie beside its record: packed, bounded, checked.

The record names the file with its digest and says how much of what it should hold is
in it. A record may come by mail: a name is no path, and nothing is unpacked without a
limit.
"""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from rtscope.errors import ContractError, RecordError, UsageError
from rtscope.exectrace.format import SectionKind, Trace, parse_trace
from rtscope.files import first_mistake, read_bounded

FILE = "worst.trace.gz"
AGAIN = "again.trace.gz"
"""What a second pass recorded; see `replay`."""

BOUND = "bound.trace.gz"
"""What a pass for the longest sections recorded, and all interrupts."""

MAX_PACKED_BYTES = 256 << 20
MAX_BYTES = 512 << 20
"""Of an unpacked stream: the plugin keeps to 64 MiB of paths, windows may add to it."""

_GZIP = 16 + zlib.MAX_WBITS
_FAST = 1

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class StreamNote:
    """What a record says of its stream."""

    file: Name
    sha256: Digest
    """Of the file as it lies there."""
    bytes: int
    unpacked_bytes: int
    paths: int
    """Worst wake-ups that it names."""
    cut: int
    """Paths that begin later than they should: the ring was too short."""
    left_out: int
    """Paths that it names only: there was no room for their records."""

    @property
    def complete(self) -> bool:
        """Whether every path is in it from its begin to its end."""
        return not self.cut and not self.left_out


_NOTE = TypeAdapter(StreamNote)


def pack(raw: bytes, *, name: str) -> tuple[bytes, StreamNote]:
    """
    Return the file and what to say of it; ContractError if the plugin's is damaged.

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
        cut=sum(s.cut for s in worst),
        left_out=sum(s.left_out for s in worst),
    )
    return content, note


def note_of(found: Mapping[str, Any] | None, *, name: str) -> StreamNote:
    """
    Return what a record says of its stream.

    Raises UsageError if none was recorded, RecordError if the record is damaged.
    """
    if found is None or "why" in found:
        why = found and found["why"]
        raise UsageError(
            f"{name}: no paths were recorded ({why or 'recorded without them'}); "
            "record them in a second pass with --again"
        )
    try:
        return _NOTE.validate_python(found)
    except ValidationError as error:
        mistake = first_mistake(error)
        raise RecordError(f"{name}: damaged record: trace: {mistake}") from error


def read_stream(path: Path, *, sha256: str | None) -> Trace:
    """
    Read a stream; RecordError if it is missing, damaged, or another than the record's.
    """
    content = read_bounded(
        path,
        limit=MAX_PACKED_BYTES,
        kind="stream",
        hint="; it lies beside the record: copy the whole directory of the run, or "
        "record it again with --again",
    )
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise RecordError(
            f"{path}: not the stream that the record names: its digest is another; "
            "record it again with --again"
        )
    unpacker = zlib.decompressobj(_GZIP)
    try:
        raw = unpacker.decompress(content, MAX_BYTES)
        if not unpacker.eof or unpacker.unused_data:
            raise RecordError(
                f"{path}: breaks off, or is larger than {MAX_BYTES} bytes"
            )
        return parse_trace(raw)
    except (zlib.error, ContractError) as error:
        raise RecordError(f"{path}: damaged: {error}") from error
