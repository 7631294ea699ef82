"""
The kernel's own description of its types: BTF, as /sys/kernel/btf/vmlinux has it.

Format: Documentation/bpf/btf.rst of Linux. Only structures are read, and of them only
where a member lies.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.host.errors import BoardError

MAGIC = 0xEB9F
MAX_DEPTH = 16
"""Of structures without a name within each other."""

_STRUCT, _UNION, _ARRAY = 4, 5, 3
_MODIFIERS = (8, 9, 10, 11, 18)
"""typedef, volatile, const, restrict, a type's tag."""
_MORE_BYTES = {1: 4, 3: 12, 14: 4, 17: 4}
_EACH_BYTES = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
"""Bytes behind a type of a kind, and behind it for each of its members."""


@dataclass(frozen=True, slots=True)
class _Type:
    name: str
    kind: int
    size_or_type: int
    members: tuple[tuple[str, int, int], ...]
    """Name, type and offset in bits."""


class Btf:
    """The structures of a kernel; BoardError if the description is damaged."""

    def __init__(self, content: bytes) -> None:
        try:
            self._types = _types(content)
        except (struct.error, IndexError, ValueError) as error:
            raise BoardError(f"the kernel's BTF is damaged: {error}") from error
        self._by_name = {
            one.name: one
            for one in reversed(self._types)
            if one.kind in (_STRUCT, _UNION) and one.name
        }

    def size_of(self, name: str) -> int:
        """Return the bytes of a structure or typedef; BoardError if there is none."""
        return self._resolved(self._structure(name)).size_or_type

    def offset_of(self, structure: str, *path: str) -> int:
        """
        Return where a member lies, in bytes; `path` goes through structures.

        Raises BoardError for a structure or member that the kernel has not.
        """
        at, inner = 0, self._structure(structure)
        for member in path:
            found = self._find(inner, member, MAX_DEPTH)
            if found is None:
                raise BoardError(
                    f"the kernel's BTF has no {'.'.join((structure, *path))}"
                )
            bits, inner = found
            at += bits // 8
        return at

    def _structure(self, name: str) -> _Type:
        if name in self._by_name:
            return self._by_name[name]
        for one in self._types:
            if one.name == name and one.kind in _MODIFIERS:
                return self._resolved(one)
        raise BoardError(f"the kernel's BTF has no structure {name}")

    def _resolved(self, one: _Type) -> _Type:
        for _ in range(MAX_DEPTH):
            if one.kind not in _MODIFIERS:
                break
            one = self._types[one.size_or_type]
        return one

    def _find(self, one: _Type, member: str, depth: int) -> tuple[int, _Type] | None:
        one = self._resolved(one)
        if one.kind not in (_STRUCT, _UNION) or not depth:
            return None
        for name, type_, bits in one.members:
            inner = self._types[type_]
            if name == member:
                return bits, inner
            if not name and (found := self._find(inner, member, depth - 1)):
                return bits + found[0], found[1]
        return None


def _types(content: bytes) -> Sequence[_Type]:
    magic, version, _, header, types, type_bytes, strings, string_bytes = (
        struct.unpack_from("<HBBIIIII", content)
    )
    if magic != MAGIC or version != 1:
        raise ValueError("no BTF of version 1")
    names = content[header + strings :][:string_bytes]
    body = content[header + types :][:type_bytes]
    return [_Type("", 0, 0, ()), *_each(body, names)]


def _each(body: bytes, names: bytes) -> Iterator[_Type]:
    at = 0
    while at < len(body):
        name, info, size_or_type = struct.unpack_from("<III", body, at)
        at += 12
        kind, count, bitfields = info >> 24 & 31, info & 0xFFFF, info >> 31
        members: tuple[tuple[str, int, int], ...] = ()
        if kind in (_STRUCT, _UNION):
            rows = struct.iter_unpack("<III", body[at : at + 12 * count])
            members = tuple(
                (_text(names, n), t, bits & 0xFFFFFF if bitfields else bits)
                for n, t, bits in rows
            )
            if len(members) != count:
                raise ValueError("a structure is cut")
        yield _Type(_text(names, name), kind, size_or_type, members)
        at += _MORE_BYTES.get(kind, 0) + _EACH_BYTES.get(kind, 0) * count


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode("ascii", "replace")
