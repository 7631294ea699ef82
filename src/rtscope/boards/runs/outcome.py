"""
The results of a boot as bytes: to store them, or to send them from another machine.

One line of JSON with names and sizes, then the contents in that order, all compressed.
A reader trusts neither names nor sizes.
"""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import IO, Annotated, Any, Literal, cast

import zstandard
from pydantic import ConfigDict, Field, StrictInt, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from rtscope.boards.runs.boot import MAX_FILES, MAX_RESULTS_BYTES, Booted
from rtscope.host.errors import BoardError
from rtscope.host.files import first_mistake

MAX_BYTES = MAX_RESULTS_BYTES + (768 << 20)
"""Unpacked: the files of a board, and the longest recording of a second pass."""
MAX_HEAD_BYTES = 4 << 20
_LEVEL = 3

_Size = Annotated[StrictInt, Field(ge=0, le=MAX_BYTES)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class _Head:
    """The first line."""

    schema: Literal[1]
    files: Annotated[dict[str, _Size], Field(max_length=MAX_FILES)]
    counts: dict[str, Any]
    initrd_digest: _Sha256
    plugin_digest: _Sha256
    host_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    stream: _Size | None


def pack_booted(booted: Booted) -> bytes:
    """Return the results of a boot as bytes, which `read_booted` reads."""
    head = _Head(
        schema=1,
        files={name: len(content) for name, content in booted.files.items()},
        counts=dict(booted.counts),
        initrd_digest=booted.initrd_digest,
        plugin_digest=booted.plugin_digest,
        host_seconds=booted.host_seconds,
        stream=None if booted.stream is None else len(booted.stream),
    )
    line = json.dumps(asdict(head), separators=(",", ":")).encode()
    parts = (line, b"\n", *booted.files.values(), booted.stream or b"")
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(parts))


def read_booted(content: bytes, *, source: str) -> Booted:
    """Return the results of a boot; BoardError that begins with `source` if damaged."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(content) as packed:
            reader = io.BufferedReader(cast("io.RawIOBase", packed))
            head = TypeAdapter(_Head).validate_json(reader.readline(MAX_HEAD_BYTES))
            if "" in head.files:
                raise ValueError("a file without a name")
            sizes = {**head.files, "": head.stream or 0}
            if sum(sizes.values()) > MAX_BYTES:
                raise BoardError(f"{source}: more than {MAX_BYTES:,} bytes")
            contents = dict(_contents(reader, sizes))
            if reader.read(1):
                raise ValueError("more than it names")
    except ValidationError as error:
        raise BoardError(f"{source}: damaged: {first_mistake(error)}") from error
    except (ValueError, zstandard.ZstdError) as error:
        raise BoardError(f"{source}: damaged: {error}") from error
    stream = contents.pop("")
    return Booted(
        files=contents,
        counts=head.counts,
        initrd_digest=head.initrd_digest,
        plugin_digest=head.plugin_digest,
        host_seconds=head.host_seconds,
        stream=None if head.stream is None else stream,
    )


def _contents(
    reader: IO[bytes], sizes: Mapping[str, int]
) -> Iterator[tuple[str, bytes]]:
    for name, size in sizes.items():
        content = reader.read(size)
        if len(content) != size:
            raise ValueError("cut short")
        yield name, content
