"""
Headers, sections and notes of an ELF file that may be damaged, or hostile.

Whatever a file says of itself is compared with its size before it is used. What cannot
be raises Damaged; nothing is unpacked beyond a limit.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Literal

import zstandard

MAX_UNPACKED_BYTES = 128 << 20
"""Of all compressed sections of a file together."""

MAX_SECTIONS = 1 << 16
_SEGMENT_BYTES = {8: 56, 4: 32}
"""By the bytes of a word: the only sizes that the kernel loads."""
MAX_SEGMENTS = 1 << 12
MAX_NAME_BYTES = 1 << 16

_NOBITS, _NOTE = 8, 7
_ALLOC, _COMPRESSED = 0x2, 0x800
_ZLIB, _ZSTD = 1, 2
LOAD = 1
INTERPRETER = 3
_PF_W = 2
_PT_NOTE = 4

MACHINES: Mapping[int, str] = {
    **{2: "EM_SPARC", 3: "EM_386", 4: "EM_68K", 8: "EM_MIPS", 15: "EM_PARISC"},
    **{20: "EM_PPC", 21: "EM_PPC64", 22: "EM_S390", 40: "EM_ARM", 42: "EM_SH"},
    **{43: "EM_SPARCV9", 50: "EM_IA_64", 62: "EM_X86_64", 183: "EM_AARCH64"},
    **{189: "EM_MICROBLAZE", 243: "EM_RISCV", 258: "EM_LOONGARCH"},
}
"""Names of elf.h."""


class Damaged(Exception):
    """A file, or a part of it, that cannot be as it says; the text says why."""


@dataclass(frozen=True, slots=True)
class Section:
    """A row of the table of sections."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry_bytes: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A row of the table of segments."""

    type: int
    offset: int
    vaddr: int
    file_bytes: int
    writable: bool = False


class ElfFile:
    """An ELF file of 32 or 64 bits, in either byte order."""

    def __init__(self, data: bytes | memoryview) -> None:
        """Read its headers; Damaged if it is no ELF file."""
        self.data = memoryview(data)
        head = bytes(self.data[:64])
        if len(head) < 52 or head[:4] != b"\x7fELF":
            raise Damaged("not an ELF file")
        if head[4] not in (1, 2) or head[5] not in (1, 2):
            raise Damaged("neither 32 nor 64 bits, or of no byte order")
        self.word_bytes = 8 if head[4] == 2 else 4
        self.order = "<" if head[5] == 1 else ">"
        self._unpacked = 0
        self._contents: dict[Section, memoryview] = {}
        form = "HHIQQQIHHHHHH" if self.word_bytes == 8 else "HHIIIIIHHHHHH"
        try:
            fields = struct.unpack_from(self.order + form, head, 16)
        except struct.error as error:
            raise Damaged("its header is cut short") from error
        self.type, self._machine = fields[0], fields[1]
        self._segments_at, self._sections_at = fields[4], fields[5]
        self._segment_bytes, self._segment_count = fields[8], fields[9]
        self._section_bytes, self._section_count, self._names = fields[10:13]

    @property
    def byte_order(self) -> Literal["little", "big"]:
        """As int.from_bytes takes it."""
        return "little" if self.order == "<" else "big"

    @property
    def machine(self) -> str:
        """The processor, as elf.h names it; its number if it is another."""
        return MACHINES.get(self._machine, str(self._machine))

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The table of segments; Damaged if the file does not hold it."""
        form = "IIQQQQ" if self.word_bytes == 8 else "IIIIII"
        if self._segment_count > MAX_SEGMENTS:
            raise Damaged(f"it has {self._segment_count:,} segments")
        wanted = _SEGMENT_BYTES[self.word_bytes]
        if self._segment_count and self._segment_bytes != wanted:
            raise Damaged(f"its segments have {self._segment_bytes:,} bytes each")
        segments = []
        for number in range(self._segment_count):
            at = self._segments_at + number * self._segment_bytes
            row = self.unpack(form, at)
            if self.word_bytes == 8:
                kind, flags, offset, vaddr, _, size = row
            else:
                kind, offset, vaddr, _, size, _ = row
                flags = self.unpack("I", at + struct.calcsize(form))[0]
            writable = bool(flags & _PF_W)
            segments.append(Segment(kind, offset, vaddr, size, writable))
        return tuple(segments)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The table of sections, none if it has no table; Damaged if it is cut."""
        if not self._sections_at:
            return ()
        count = self._section_count or self._header(0)[5]
        names = self._names if self._names != 0xFFFF else self._header(0)[6]
        if count > MAX_SECTIONS:
            raise Damaged(f"it has {count:,} sections")
        headers = [self._header(number) for number in range(count)]
        texts = headers[names] if names < count else None
        return tuple(
            Section(
                self._section_name(texts, row[0]),
                type=row[1],
                flags=row[2],
                address=row[3],
                offset=row[4],
                size=row[5],
                link=row[6],
                entry_bytes=row[9],
            )
            for row in headers
        )

    def _header(self, number: int) -> tuple[int, ...]:
        form = "IIQQQQIIQQ" if self.word_bytes == 8 else "IIIIIIIIII"
        return self.unpack(form, self._sections_at + number * self._section_bytes)

    def _section_name(self, texts: tuple[int, ...] | None, at: int) -> str:
        if texts is None or at >= texts[5]:
            return ""
        end = min(texts[4] + texts[5], len(self.data))
        return text_at(self.data[:end], texts[4] + at, most=256)

    def check_sections(self) -> None:
        """Raise Damaged if a section is not in the file, or names one that is not."""
        count = len(self.sections)
        for one in self.sections:
            if one.type != _NOBITS and one.offset + one.size > len(self.data):
                raise Damaged(f"it ends before the end of {one.name}")
            if one.link >= max(count, 1) and one.type != 0:
                raise Damaged(f"{one.name} names section {one.link:,} of {count:,}")

    def unpack(self, form: str, at: int) -> tuple[int, ...]:
        """Return numbers at an offset; Damaged beyond the end of the file."""
        try:
            return struct.unpack_from(self.order + form, self.data, at)
        except (struct.error, OverflowError) as error:
            raise Damaged(f"it ends before what should be at {at:#x}") from error

    @cached_property
    def _by_name(self) -> Mapping[str, Section]:
        return {one.name: one for one in reversed(self.sections)}

    def section(self, name: str) -> Section | None:
        """Return a section that the file holds; None without it."""
        one = self._by_name.get(name)
        return one if one is not None and one.type != _NOBITS else None

    def content(self, section: Section) -> memoryview:
        """Return it unpacked; Damaged if it is cut or unpacks to more than allowed."""
        if section.type == _NOBITS:
            return memoryview(b"")
        end = section.offset + section.size
        if end > len(self.data):
            raise Damaged(f"it ends before the end of {section.name}")
        if section not in self._contents:
            packed = self.data[section.offset : end]
            self._contents[section] = self._content(section, packed)
        return self._contents[section]

    def _content(self, section: Section, packed: memoryview) -> memoryview:
        if section.flags & _COMPRESSED and not section.flags & _ALLOC:
            return memoryview(self._unpack(section.name, packed))
        if section.name.startswith(".zdebug") and bytes(packed[:4]) == b"ZLIB":
            size = int.from_bytes(packed[4:12], "big")
            return memoryview(self._inflated(section.name, packed[12:], _ZLIB, size))
        return packed

    def part(self, name: str) -> memoryview:
        """Return a section unpacked; empty without it."""
        one = self.section(name)
        if one is None and name.startswith(".debug_"):
            one = self.section(f".z{name[1:]}")  # as compilers wrote it before 2015
        return memoryview(b"") if one is None else self.content(one)

    def _unpack(self, name: str, packed: memoryview) -> bytes:
        form = "IIQQ" if self.word_bytes == 8 else "III"
        bytes_ = struct.calcsize("<" + form)
        if len(packed) < bytes_:
            raise Damaged(f"{name} is cut short")
        row = struct.unpack_from(self.order + form, packed)
        size = row[2] if self.word_bytes == 8 else row[1]
        return self._inflated(name, packed[bytes_:], row[0], size)

    def _inflated(self, name: str, packed: memoryview, how: int, size: int) -> bytes:
        self._unpacked += size
        if self._unpacked > MAX_UNPACKED_BYTES:
            raise Damaged(
                f"{name} unpacks to {size >> 20:,} MiB: more than "
                f"{MAX_UNPACKED_BYTES >> 20} of a file are not read"
            )
        try:
            if how == _ZLIB:
                content = zlib.decompressobj().decompress(packed, size)
            elif how == _ZSTD:
                with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
                    BytesIO(packed)
                ) as stream:
                    content = stream.read(size)
            else:
                raise Damaged(f"{name} is packed in an unknown way ({how})")
        except (zlib.error, zstandard.ZstdError) as error:
            raise Damaged(f"{name} cannot be unpacked: {error}") from error
        if len(content) != size:
            raise Damaged(f"{name} unpacks to less than it says")
        return content

    @cached_property
    def build_id(self) -> str | None:
        """The number of its build, in hexadecimal; None without one."""
        for place in self._notes():
            for kind, owner, content in self._notes_in(place):
                if kind == 3 and owner == b"GNU\0" and 2 <= len(content) <= 64:
                    return content.hex()
        return None

    def _notes(self) -> Iterator[memoryview]:
        # a debug file has the segments of its program, but not what is in them
        for one in self.sections:
            if one.type == _NOTE:
                yield self.data[one.offset : one.offset + one.size]
        for part in self.segments:
            if part.type == _PT_NOTE:
                yield self.data[part.offset : part.offset + part.file_bytes]

    def _notes_in(self, notes: memoryview) -> Iterator[tuple[int, bytes, bytes]]:
        at = 0
        while at + 12 <= len(notes):
            owner, size, kind = struct.unpack_from(self.order + "III", notes, at)
            begin = at + 12 + (owner + 3 & ~3)
            yield (
                kind,
                bytes(notes[at + 12 : at + 12 + min(owner, 16)]),
                bytes(notes[begin : begin + min(size, 65)]),
            )
            at = begin + (size + 3 & ~3)


def text_at(data: memoryview, at: int, *, most: int = MAX_NAME_BYTES) -> str:
    """Return the text from there to its zero byte; Damaged if it has none in reach."""
    for size in (128, most):
        raw = bytes(data[at : at + size])
        end = raw.find(b"\0")
        if end >= 0:
            return raw[:end].decode("utf-8", "replace")
    raise Damaged(f"a name is cut short or longer than {most:,} bytes")
