"""Names of the addresses in a trace, from the kallsyms that its file carries. Pure."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

_TEXT = frozenset("tTwW")


@dataclass(frozen=True)
class KernelSymbols:
    """Functions of the kernel that was traced; parsed when first asked for."""

    content: bytes
    """`/proc/kallsyms` as it was read; its addresses may be hidden: all zero."""

    @cached_property
    def _table(self) -> tuple[list[int], list[str]]:
        found: dict[int, str] = {}
        for line in self.content.split(b"\n"):
            words = line.split()
            if len(words) >= 3 and chr(words[1][0]) in _TEXT:
                try:
                    address = int(words[0], 16)
                except ValueError:
                    continue
                found.setdefault(address, words[2].decode("ascii", "replace"))
        found.pop(0, None)
        addresses = sorted(found)
        return addresses, [found[address] for address in addresses]

    @cached_property
    def begin(self) -> int | None:
        """The address of `_stext`, which offsets in events count from."""
        addresses, names = self._table
        return addresses[names.index("_stext")] if "_stext" in names else None

    def name(self, address: int) -> str:
        """Return the function an address lies in; the address itself if unknown."""
        addresses, names = self._table
        at = bisect_right(addresses, address) - 1
        return names[at] if at >= 0 else f"{address:#x}"
