"""
The head of a trace.dat file of trace-cmd: formats, symbols, tasks, where pages lie.

Versions 6 and 7 are those of trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). A file may
come by mail: every length is checked against the file before anything is read. Nothing
about the layout of an event or a page is assumed: identities, offsets and sizes differ
between kernels, architectures and configurations.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rtscope.host.errors import RecordError

MAX_SUBBUFFER = 1 << 20
"""Bytes; the kernel allows sub-buffers of up to 2^8 pages of 4 KiB."""
_FIELD = re.compile(
    r"field:(?P<type>[^;]{0,200}?)\s?\b(?P<name>\w{1,80})(?P<array>\[[^\]]{0,80}\])?;\s*"
    r"offset:(?P<offset>\d{1,9});\s*size:(?P<size>\d{1,9});\s*signed:(?P<signed>[01]);"
)
_FORMAT_NAME = re.compile(r"^name:\s*(\S+)", re.MULTILINE)
_LETTER = re.compile(r'\{ (0x[0-9a-f]{1,8}|[1-9][0-9]{0,8}), "([A-Za-z])" \}')
_FORMAT_ID = re.compile(r"^ID:\s*(\d{1,5})\s*$", re.MULTILINE)
MAGIC = b"\x17\x08\x44tracing"
MAX_FORMATS = 20_000
MAX_CPUS = 8_192
MAX_OPTIONS = 100_000
CONVERT = "trace-cmd convert --file-version 6 -i FILE -o FILE6 makes one of it"
_OPTION_BUFFER, _OPTION_CLOCK, _OPTION_UNAME = 3, 4, 5
_OPTION_HEADER, _OPTION_FTRACE, _OPTION_EVENTS = 16, 17, 18
_OPTION_KALLSYMS, _OPTION_CMDLINES = 19, 21
_COMPRESSED = 1
_NS_CLOCKS = frozenset(
    {"", "local", "global", "mono", "mono_raw", "boot", "tai", "perf"}
)
Order = Literal["little", "big"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an event; offset and size in bytes."""

    name: str
    offset: int
    size: int
    signed: bool
    text: bool
    """A string: `char x[16]`, or where it lies if `located`."""
    located: bool
    """`__data_loc`: 16 bits of offset, above them 16 bits of length."""
    relative: bool
    """`__rel_loc`: the same, from the end of the field."""


@dataclass(frozen=True, slots=True)
class Format:
    """The layout of one kind of event."""

    id: int
    name: str
    fields: Mapping[str, Field]
    flags: Mapping[int, str]
    """Letters of the bits of a state, as its print format has them."""


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Where the parts of a page of the ring buffer lie, in bytes."""

    commit_offset: int
    commit_size: int
    data_offset: int
    data_size: int

    size: int = field(init=False)
    """Of the whole page."""

    def __post_init__(self) -> None:
        """Take the size, once for all pages."""
        object.__setattr__(self, "size", self.data_offset + self.data_size)


def parse_format(text: str) -> Format | None:
    """Read a `format` file of tracefs; None if it has no name or no number."""
    name, number = _FORMAT_NAME.search(text), _FORMAT_ID.search(text)
    if name is None or number is None:
        return None
    declared, _, printed = text.partition("print fmt:")
    fields = {match["name"]: _field(match) for match in _FIELD.finditer(declared)}
    flags = {int(m[1], 0): m[2] for m in _LETTER.finditer(printed)}
    return Format(int(number[1]), name[1], fields, flags)


def parse_header_page(text: str) -> PageLayout:
    """Read `header_page`; raise RecordError if it is not one."""
    fields = {match["name"]: match for match in _FIELD.finditer(text)}
    try:
        layout = PageLayout(
            commit_offset=int(fields["commit"]["offset"]),
            commit_size=int(fields["commit"]["size"]),
            data_offset=int(fields["data"]["offset"]),
            data_size=int(fields["data"]["size"]),
        )
    except KeyError as error:
        raise RecordError(f"its header_page has no {error.args[0]}") from None
    plausible = (
        layout.commit_offset == 8
        and layout.commit_size in (4, 8)
        and layout.data_offset == 8 + layout.commit_size
        and layout.data_size > 0
        and layout.size <= MAX_SUBBUFFER
        and layout.size % 4 == 0
    )
    if not plausible:
        raise RecordError("its header_page describes no page of a ring buffer")
    return layout


def _field(match: re.Match[str]) -> Field:
    kind, array = match["type"], match["array"]
    located = "__data_loc" in kind
    relative = "__rel_loc" in kind
    is_char = re.search(r"\bchar\b", kind) is not None
    return Field(
        name=match["name"],
        offset=int(match["offset"]),
        size=int(match["size"]),
        signed=match["signed"] == "1",
        text=is_char and (located or relative or array is not None),
        located=located,
        relative=relative,
    )


@dataclass(frozen=True, slots=True)
class Extent:
    """Where the pages of a CPU lie in the file."""

    cpu: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Head:
    """The contents of a file before its pages."""

    order: Order
    layout: PageLayout
    formats: Mapping[int, Format]
    """By the number that an event begins with."""
    kallsyms: bytes
    cmdlines: Mapping[int, str]
    extents: tuple[Extent, ...]
    clock: str
    text_at: int | None
    """Where text begins instead of pages (`trace-cmd record` with a latency tracer)."""
    kernel: str = ""
    """What `uname -a` told of it; empty if the file has not kept it."""


class Cursor:
    """Reads a file's numbers and strings in turn; RecordError past its end."""

    __slots__ = ("at", "data", "name", "order")

    def __init__(
        self, data: memoryview, *, name: str, order: Order = "little", at: int = 0
    ) -> None:
        """Begin at a byte of the file."""
        self.data, self.name, self.order, self.at = data, name, order, at

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > len(self.data) - self.at:
            raise RecordError(
                f"{self.name}: damaged or cut short: {size} bytes are announced at "
                f"byte {self.at}, and the file ends at {len(self.data)}"
            )
        content = bytes(self.data[self.at : self.at + size])
        self.at += size
        return content

    def number(self, size: int) -> int:
        """Return the next number of `size` bytes."""
        return int.from_bytes(self.take(size), self.order)

    def string(self, limit: int = 4096) -> str:
        """Return the bytes up to the next zero byte."""
        piece = bytes(self.data[self.at : self.at + limit])
        text, zero, _ = piece.partition(b"\0")
        if not zero:
            raise RecordError(f"{self.name}: damaged: no end of a name at {self.at}")
        self.at += len(text) + 1
        return text.decode("utf-8", "replace")

    def moved(self, at: int) -> "Cursor":
        """Return another cursor of the same file."""
        if not 0 <= at <= len(self.data):
            raise RecordError(f"{self.name}: damaged: it points to byte {at}")
        return Cursor(self.data, name=self.name, order=self.order, at=at)


def parse_head(data: memoryview, *, name: str) -> Head:
    """Read the head; raise RecordError for what is damaged, too new or compressed."""
    cursor = Cursor(data, name=name)
    cursor.take(len(MAGIC))
    version = cursor.string(16)
    if version not in ("6", "7"):
        raise RecordError(
            f"{name}: a trace.dat file of version {version!a}; rtscope reads 6 and 7"
        )
    cursor.order = "big" if cursor.number(1) else "little"
    cursor.take(5)  # the long of user space, and the page size of the machine
    try:
        head = _parse_6(cursor) if version == "6" else _parse_7(cursor)
    except RecordError as error:
        if name in str(error):
            raise
        raise RecordError(f"{name}: {error}") from None
    if head.clock not in _NS_CLOCKS:
        raise RecordError(
            f"{name}: recorded with the clock {head.clock!a}, whose times are no "
            "nanoseconds; record with trace-cmd record -C mono"
        )
    return head


def _parse_6(cursor: Cursor) -> Head:
    layout = _header_info(cursor)
    formats = {**_ftrace_formats(cursor), **_event_formats(cursor)}
    kallsyms = cursor.take(cursor.number(4))
    cursor.take(cursor.number(4))  # formats of trace_printk
    cmdlines = _cmdlines(cursor.take(cursor.number(8)))
    cpus = cursor.number(4)
    kind = cursor.take(10)
    clock, kernel, buffer = "", "", None
    if kind == b"options  \0":
        clock, kernel, buffer = _options_6(cursor)
        kind = cursor.take(10)
    extents: tuple[Extent, ...] = ()
    if kind == b"flyrecord\0":
        extents = _extents_6(cursor, cpus)
        if not any(extent.size for extent in extents) and buffer is not None:
            instance = cursor.moved(buffer)
            if instance.take(10) == b"flyrecord\0":
                extents = _extents_6(instance, cpus)
    elif kind != b"latency  \0":
        raise RecordError(f"damaged: no data begin at byte {cursor.at - 10}")
    text_at = cursor.at if kind == b"latency  \0" else None
    return Head(
        *(cursor.order, layout, formats, kallsyms, cmdlines, extents, clock, text_at),
        kernel,
    )


def _options_6(cursor: Cursor) -> tuple[str, str, int | None]:
    clock, kernel, buffer = "", "", None
    for _ in range(MAX_OPTIONS):
        option = cursor.number(2)
        if option == 0:
            return clock, kernel, buffer
        content = cursor.take(cursor.number(4))
        if option == _OPTION_CLOCK:
            clock = _chosen_clock(content)
        elif option == _OPTION_UNAME:
            kernel = _system(content)
        elif option == _OPTION_BUFFER and buffer is None:
            buffer = int.from_bytes(content[:8], cursor.order)
    raise RecordError("damaged: its options have no end")


def _extents_6(cursor: Cursor, cpus: int) -> tuple[Extent, ...]:
    if cpus > MAX_CPUS:
        raise RecordError(f"damaged: {cpus} CPUs")
    return tuple(
        _extent(cursor, cpu, cursor.number(8), cursor.number(8)) for cpu in range(cpus)
    )


def _parse_7(cursor: Cursor) -> Head:
    compression = cursor.string(64)
    cursor.string(64)
    if compression != "none":
        raise RecordError(
            f"its data are compressed ({compression}), which rtscope does not read; "
            + CONVERT
        )
    options = list(_options_7(cursor))
    buffers = [content for option, content in options if option == _OPTION_BUFFER]
    systems = (content for option, content in options if option == _OPTION_UNAME)
    kernel = _system(next(systems, b""))
    sections: dict[int, int] = {}
    for option, content in options:
        if option != _OPTION_BUFFER and len(content) >= 8:
            sections.setdefault(option, int.from_bytes(content[:8], cursor.order))
    for needed in (_OPTION_HEADER, _OPTION_EVENTS):
        if needed not in sections:
            raise RecordError(f"damaged: it has no section {needed}")
    layout = _header_info(_section(cursor, sections[_OPTION_HEADER]))
    formats = dict(_event_formats(_section(cursor, sections[_OPTION_EVENTS])))
    if _OPTION_FTRACE in sections:
        formats |= _ftrace_formats(_section(cursor, sections[_OPTION_FTRACE]))
    kallsyms = cmdlines = b""
    if _OPTION_KALLSYMS in sections:
        section = _section(cursor, sections[_OPTION_KALLSYMS])
        kallsyms = section.take(section.number(4))
    if _OPTION_CMDLINES in sections:
        section = _section(cursor, sections[_OPTION_CMDLINES])
        cmdlines = section.take(section.number(8))
    clock, extents = _buffers_7(cursor, buffers)
    return Head(
        cursor.order,
        layout,
        formats,
        kallsyms,
        _cmdlines(cmdlines),
        extents,
        clock,
        None,
        kernel,
    )


def _options_7(cursor: Cursor) -> Iterator[tuple[int, bytes]]:
    place, seen = cursor.number(8), set[int]()
    while place and place not in seen:
        seen.add(place)
        section = _section(cursor, place)
        place = 0
        for _ in range(MAX_OPTIONS):
            option, size = section.number(2), section.number(4)
            content = section.take(size)
            if option == 0:
                place = int.from_bytes(content[:8], cursor.order)
                break
            yield option, content


def _section(cursor: Cursor, place: int) -> Cursor:
    section = cursor.moved(place)
    section.number(2)
    if section.number(2) & _COMPRESSED:
        raise RecordError(f"a section of it is compressed; {CONVERT}")
    section.take(12)
    return section


def _buffers_7(cursor: Cursor, buffers: list[bytes]) -> tuple[str, tuple[Extent, ...]]:
    """Return the first buffer that has anything in it."""
    clock, extents = "", tuple[Extent, ...]()
    for content in buffers:
        inside = Cursor(memoryview(content), name=cursor.name, order=cursor.order)
        inside.number(8)
        inside.string()
        clock = _chosen_clock(inside.string().encode())
        inside.number(4)
        cpus = inside.number(4)
        if cpus > MAX_CPUS:
            raise RecordError(f"damaged: {cpus} CPUs")
        extents = tuple(
            _extent(cursor, inside.number(4), inside.number(8), inside.number(8))
            for _ in range(cpus)
        )
        if any(extent.size for extent in extents):
            break
    return clock, extents


def _extent(cursor: Cursor, cpu: int, offset: int, size: int) -> Extent:
    if size and offset > len(cursor.data):
        raise RecordError(
            f"damaged or cut short: the events of CPU {cpu} should begin at byte "
            f"{offset}, and the file ends at {len(cursor.data)}"
        )
    # Where nothing lies may be anywhere, also beyond what any file can hold.
    return Extent(cpu, offset if size else 0, size)


def _header_info(cursor: Cursor) -> PageLayout:
    if cursor.take(12) != b"header_page\0":
        raise RecordError("damaged: it has no header_page")
    layout = parse_header_page(_text(cursor.take(cursor.number(8))))
    if cursor.take(13) != b"header_event\0":
        raise RecordError("damaged: it has no header_event")
    cursor.take(cursor.number(8))
    return layout


def _ftrace_formats(cursor: Cursor) -> dict[int, Format]:
    return _formats(cursor, _count(cursor))


def _event_formats(cursor: Cursor) -> dict[int, Format]:
    formats: dict[int, Format] = {}
    for _ in range(_count(cursor)):
        cursor.string()
        formats |= _formats(cursor, _count(cursor))
    return formats


def _formats(cursor: Cursor, count: int) -> dict[int, Format]:
    texts = (_text(cursor.take(cursor.number(8))) for _ in range(count))
    parsed = (parse_format(text) for text in texts)
    return {one.id: one for one in parsed if one is not None}


def _count(cursor: Cursor) -> int:
    count = cursor.number(4)
    if count > MAX_FORMATS:
        raise RecordError(f"damaged: {count} event formats")
    return count


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _cmdlines(content: bytes) -> dict[int, str]:
    names: dict[int, str] = {}
    for line in _text(content).split("\n"):
        pid, _, comm = line.partition(" ")
        if re.fullmatch(r"[0-9]{1,10}", pid):
            names[int(pid)] = comm.strip("\0")
    return names


def _system(content: bytes) -> str:
    return content.partition(b"\0")[0].decode("utf-8", "replace")


def _chosen_clock(content: bytes) -> str:
    """Return `mono` of `local global [mono] boot`, or of `mono` alone."""
    text = _text(content).strip("\0 \n")
    chosen = re.search(r"\[([^\]]*)\]", text)
    return chosen[1] if chosen else text.split(" ")[0]
