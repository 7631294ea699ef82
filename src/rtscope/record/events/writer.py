"""
A kernel's trace as a file of trace-cmd, version 6: for trace-cmd and KernelShark.

Pure. The form is that of trace-cmd.dat.v6(5); the pages are the kernel's own, but for
one bit: it marks a page before which events are missing.
"""

import base64
import binascii
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rtscope.contract import TraceFile, TracePages, Tracing
from rtscope.host.errors import ContractError
from rtscope.record.events.datfile import MAGIC

TRACE = "worst.trace.dat"
"""The name of the file beside the record."""

MAX_BYTES = 512 * 1024 * 1024
"""The agent keeps at most half as much: more is no trace of ours."""

MISSED_EVENTS = 1 << 31
"""RB_MISSED_EVENTS of the kernel's ring buffer, in a page's commit field."""

_LITTLE_ENDIAN = b"\0"
_HEADER_PAGE = "events/header_page"
_HEADER_EVENT = "events/header_event"
_FORMAT = re.compile(r"events/([\w.-]+)/([\w.-]+)/format", re.ASCII)
_COMMIT = re.compile(r"field: local_t commit;\s*offset:(\d+);\s*size:([48]);")

_OPTION_CPUSTAT, _OPTION_TRACECLOCK = 2, 4


@dataclass(frozen=True, slots=True)
class Page:
    """A raw page of the kernel's ring."""

    seq: int
    content: bytes


@dataclass(slots=True)
class TraceParts:
    """What an agent has sent of a trace so far."""

    files: dict[str, bytes] = field(default_factory=dict)
    pages: dict[int, list[Page]] = field(default_factory=dict)
    """By CPU."""
    _left_bytes: int = MAX_BYTES

    def take_file(self, line: TraceFile) -> None:
        """Add a file; ContractError if it is garbled."""
        self.files[line.name] = self._decoded(line.base64)

    def take_pages(self, line: TracePages) -> None:
        """Add pages; ContractError if they are garbled or no whole pages."""
        size = self.page_bytes
        content = self._decoded(line.base64)
        if not content or len(content) % size:
            raise ContractError(
                f"the agent sent {len(content)} bytes as trace pages of {size} bytes"
            )
        self.pages.setdefault(line.cpu, []).extend(
            Page(line.seq + n, content[n * size : (n + 1) * size])
            for n in range(len(content) // size)
        )

    @property
    def page_bytes(self) -> int:
        """Size of a page, from the kernel's own description."""
        text = self._text(_HEADER_PAGE)
        match = re.search(r" data;\s*offset:(\d+);\s*size:(\d+);", text)
        if match is None:
            raise ContractError("the agent sent trace pages without their description")
        return int(match[1]) + int(match[2])

    def _decoded(self, text: str) -> bytes:
        content = _decode(text)
        self._left_bytes -= len(content)
        if self._left_bytes < 0:
            raise ContractError("the agent sent a trace that is too large")
        return content

    def _text(self, name: str) -> str:
        return self.files.get(name, b"").decode("utf-8", "replace")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ContractError("the agent garbled a part of the trace") from error


def trace_of(parts: TraceParts, tracing: Tracing | None) -> bytes | None:
    """
    Return the file for what an agent has sent; None if it has kept no page.

    Raises ContractError as `trace_dat`.
    """
    if tracing is None or not parts.pages:
        return None
    stats = {
        cpu.cpu: f"overrun: {cpu.overrun}\ndropped events: {cpu.dropped}\n"
        f"read events: {cpu.events}\n"
        for cpu in tracing.cpus
    }
    return trace_dat(parts, stats=stats, clock=f"[{tracing.clock}]")


def trace_dat(parts: TraceParts, *, stats: Mapping[int, str], clock: str) -> bytes:
    """
    Return the file. `stats`: what is known of each CPU's losses, as text.

    Raises ContractError when the description of the pages is not there.
    """
    page_bytes = parts.page_bytes
    cpus = max(parts.pages, default=0) + 1
    options = [(_OPTION_TRACECLOCK, clock.encode() + b"\0")]
    options += [
        (_OPTION_CPUSTAT, f"CPU: {cpu}\n{text}".encode() + b"\0")
        for cpu, text in sorted(stats.items())
    ]
    head = b"".join(
        [
            _start(parts, page_bytes),
            _formats(parts.files),
            _sized(parts.files.get("kallsyms", b""), "<I"),
            _sized(b"", "<I"),  # the texts of trace_printk, which is none of ours
            _sized(parts.files.get("saved_cmdlines", b""), "<Q"),
            struct.pack("<I", cpus),
            _options(options),
            b"flyrecord\0",
        ]
    )
    return head + _cpu_data(parts, cpus, page_bytes, at=len(head) + 16 * cpus)


def _sized(content: bytes, form: str) -> bytes:
    return struct.pack(form, len(content)) + content


def _commit(parts: TraceParts) -> tuple[int, int]:
    text = parts.files.get(_HEADER_PAGE, b"").decode("utf-8", "replace")
    match = _COMMIT.search(text)
    if match is None:
        raise ContractError("the agent sent no description of trace pages")
    return int(match[1]), int(match[2])


def _start(parts: TraceParts, page_bytes: int) -> bytes:
    # The long of the kernel decides how a page's head is read.
    _, long_bytes = _commit(parts)
    return b"".join(
        [
            MAGIC + b"6\0",
            _LITTLE_ENDIAN,
            bytes([long_bytes]),
            struct.pack("<I", page_bytes),
            b"header_page\0",
            _sized(parts.files[_HEADER_PAGE], "<Q"),
            b"header_event\0",
            _sized(parts.files.get(_HEADER_EVENT, b""), "<Q"),
        ]
    )


def _formats(files: Mapping[str, bytes]) -> bytes:
    systems: dict[str, list[bytes]] = {}
    for name, content in files.items():
        if match := _FORMAT.fullmatch(name):
            systems.setdefault(match[1], []).append(content)
    own = systems.pop("ftrace", [])
    return b"".join(
        [
            _many(own),
            struct.pack("<I", len(systems)),
            *(
                name.encode() + b"\0" + _many(formats)
                for name, formats in systems.items()
            ),
        ]
    )


def _many(formats: Sequence[bytes]) -> bytes:
    return struct.pack("<I", len(formats)) + b"".join(_sized(f, "<Q") for f in formats)


def _options(options: Iterable[tuple[int, bytes]]) -> bytes:
    written = b"".join(
        struct.pack("<HI", kind, len(text)) + text for kind, text in options
    )
    return b"options  \0" + written + struct.pack("<H", 0)


def _cpu_data(parts: TraceParts, cpus: int, page_bytes: int, *, at: int) -> bytes:
    """The table of places, padding to a page, and the pages of each CPU."""
    commit_at, _ = _commit(parts)
    start = -(-at // page_bytes) * page_bytes
    places, data, where = [], [], start
    for cpu in range(cpus):
        pages = sorted(parts.pages.get(cpu, []), key=lambda page: page.seq)
        content = b"".join(_marked(pages, commit_at))
        places.append(struct.pack("<QQ", where if content else 0, len(content)))
        data.append(content)
        where += len(content)
    return b"".join([*places, b"\0" * (start - at), *data])


def _marked(pages: Sequence[Page], commit_at: int) -> Iterable[bytes]:
    """Mark in a page whether earlier pages were not kept."""
    due = 0
    for page in pages:
        if page.seq == due:
            yield page.content
        else:
            (commit,) = struct.unpack_from("<I", page.content, commit_at)
            content = bytearray(page.content)
            struct.pack_into("<I", content, commit_at, commit | MISSED_EVENTS)
            yield bytes(content)
        due = page.seq + 1
