"""Numbers and texts, one after the other, from a piece of memory: never beyond it."""

import struct

from rtscope.programs.binaries.elf import Damaged, text_at

_FORMS = {
    (1, False): "B",
    (1, True): "b",
    (2, False): "H",
    (2, True): "h",
    (4, False): "I",
    (4, True): "i",
    (8, False): "Q",
    (8, True): "q",
}
_MAX_LEB_BITS = 140


class Cursor:
    """A place in a piece of memory; each call moves it. Raises Damaged at the end."""

    __slots__ = ("_data", "_order", "_word_bytes", "at", "end")

    def __init__(
        self,
        data: memoryview,
        *,
        at: int = 0,
        end: int | None = None,
        word_bytes: int = 8,
        order: str = "<",
    ) -> None:
        self._data, self.at = data, at
        self.end = len(data) if end is None else min(end, len(data))
        self._word_bytes, self._order = word_bytes, order
        if at < 0:
            raise Damaged("something is before its begin")

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.at >= self.end

    def number(self, size: int, *, signed: bool = False) -> int:
        """Return a number of 1, 2, 4 or 8 bytes."""
        begin = self.at
        self.at = begin + size
        if self.at > self.end:
            raise Damaged("it ends in a number")
        form = self._order + _FORMS[size, signed]
        value: int = struct.unpack_from(form, self._data, begin)[0]
        return value

    def address(self) -> int:
        """Return an address."""
        return self.number(self._word_bytes)

    def unsigned(self) -> int:
        """Return a number in LEB128."""
        return self._leb()[0]

    def signed(self) -> int:
        """Return a signed number in LEB128."""
        value, bits, last = self._leb()
        return value - (1 << bits) if last & 0x40 else value

    def _leb(self) -> tuple[int, int, int]:
        value = bits = 0
        while bits < _MAX_LEB_BITS:
            if self.at >= self.end:
                raise Damaged("it ends in a number")
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << bits
            bits += 7
            if byte < 0x80:
                return value, bits, byte
        raise Damaged("a number does not end")

    def text(self) -> str:
        """Return a text up to its zero byte."""
        text = text_at(self._data[: self.end], self.at)
        while self._data[self.at]:
            self.at += 1
        self.at += 1
        return text

    def skip(self, size: int) -> None:
        """Go on behind so many bytes."""
        self.at += size
        if size < 0 or self.at > self.end:
            raise Damaged("it ends within what it says that it has")

    def take(self, size: int) -> memoryview:
        """Return so many bytes."""
        begin = self.at
        self.skip(size)
        return self._data[begin : self.at]

    def rest(self) -> memoryview:
        """Return all that is left."""
        return self._data[self.at : self.end]

    def unit_end(self) -> tuple[int, bool]:
        """Read the size of a unit; return where it ends, and whether it has 64 bits."""
        size = self.number(4)
        wide = size == 0xFFFFFFFF
        if wide:
            size = self.number(8)
        if self.at + size > len(self._data):
            raise Damaged("a unit is larger than what it is in")
        return self.at + size, wide
