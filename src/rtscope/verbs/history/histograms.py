"""
Histograms of the index: all latencies of a run, in a kilobyte or two.

Two lists of 64-bit numbers, little-endian, one after the other: each latency (ns, the
highest of its bucket) as the difference from the one before, and its count. First all
lowest bytes of a list, then all second ones, and so on; then zlib.
"""

import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import accumulate
from operator import sub

from rtscope.host.errors import RecordError

WIDTH = 8
MOST_BYTES = 32 << 20
"""Of one histogram, unpacked: more than all buckets that there are."""

Counts = Sequence[tuple[int, int]]
"""Each latency (ns), ascending, with the number of its samples."""


def packed(latencies_ns: Sequence[int], numbers: Sequence[int]) -> bytes:
    """Return a histogram as it lies in the index: latencies, ascending, and counts."""
    steps = map(sub, latencies_ns, (0, *latencies_ns[:-1]))
    planes = (_planes(array("Q", one)) for one in (steps, numbers))
    return zlib.compress(b"".join(planes), 6)


def unpacked(blob: bytes) -> Counts:
    """Return a histogram of the index; RecordError for what is none."""
    try:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(blob, MOST_BYTES)
    except zlib.error as error:
        raise _damaged() from error
    if inflater.unconsumed_tail or not inflater.eof or len(plain) % (2 * WIDTH):
        raise _damaged()
    half = len(plain) // 2
    steps, numbers = _numbers(plain[:half]), _numbers(plain[half:])
    return list(zip(accumulate(steps), numbers, strict=True))


def later_than(counts: Counts, limit_ns: float) -> int:
    """Return how many samples may have been later: those of the limit's own bucket."""
    return sum(number for latency_ns, number in counts if latency_ns > limit_ns)


def _damaged() -> RecordError:
    return RecordError("the index has a damaged histogram: remove it, and index again")


def _planes(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    plain = numbers.tobytes()
    return b"".join(plain[place::WIDTH] for place in range(WIDTH))


def _numbers(planes: bytes) -> "array[int]":
    count = len(planes) // WIDTH
    plain = bytearray(len(planes))
    for place in range(WIDTH):
        plain[place::WIDTH] = planes[place * count : (place + 1) * count]
    numbers = array("Q", bytes(plain))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
