"""
The formats of events, as the kernel that wrote a trace tells them. Pure.

Nothing about the layout of an event or a page is assumed: identities, offsets and
sizes differ between kernels, architectures and configurations.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rtscope.errors import RecordError

MAX_SUBBUFFER = 1 << 20
"""Bytes; the kernel allows sub-buffers of up to 2^8 pages of 4 KiB."""
_FIELD = re.compile(
    r"field:(?P<type>[^;]{0,200}?)\s?\b(?P<name>\w{1,80})(?P<array>\[[^\]]{0,80}\])?;\s*"
    r"offset:(?P<offset>\d{1,9});\s*size:(?P<size>\d{1,9});\s*signed:(?P<signed>[01]);"
)
_NAME = re.compile(r"^name:\s*(\S+)", re.MULTILINE)
_LETTER = re.compile(r'\{ (0x[0-9a-f]{1,8}|[1-9][0-9]{0,8}), "([A-Za-z])" \}')
_ID = re.compile(r"^ID:\s*(\d{1,5})\s*$", re.MULTILINE)


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

    @property
    def size(self) -> int:
        """Of the whole page."""
        return self.data_offset + self.data_size


def parse_format(text: str) -> Format | None:
    """Read a `format` file of tracefs; None if it has no name or no number."""
    name, number = _NAME.search(text), _ID.search(text)
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
