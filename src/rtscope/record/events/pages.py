"""
Pages of the kernel's ring buffer, many at a time. Pure.

In a page an event is found only from the one before it. So one step is made in
hundreds of pages together, each a lane: the n-th event of every page, then the next.
Layout: struct buffer_data_page and struct ring_buffer_event of the kernel
(include/linux/ring_buffer.h, kernel/trace/ring_buffer.c).
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rtscope.record.events.datfile import PageLayout

LANE_BYTES = 512 * 4096
"""Pages that are decoded together: their numbers stay in the CPU's cache."""
COMMIT_MASK = (1 << 27) - 1
"""The kernel keeps flags above; libtraceevent's kbuffer uses the same mask."""
MISSED, MISSED_STORED = 1 << 31, 1 << 30
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_DELTA_BITS = 27
_LARGEST_NS = 1 << 62
"""No clock of the kernel gets there: the page is damaged, or no page."""


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The events of some pages, in order, and what is wrong with the pages."""

    at_ns: NDArray[np.int64]
    places: NDArray[np.int64]
    """Byte of the payload, from the begin of the first page."""
    sizes: NDArray[np.int32]
    """Bytes of the payload."""
    pages: NDArray[np.int64]
    """Number of the page of each event."""
    missed: NDArray[np.bool_]
    """Per page: events were lost before it."""
    missed_count: NDArray[np.int64]
    """Per page: the number; -1 if the kernel did not report it."""
    damaged: NDArray[np.bool_]
    """Per page: from some place on it makes no sense."""


def decode_pages(
    content: bytes | memoryview, layout: PageLayout, *, big_endian: bool = False
) -> Decoded:
    """Decode whole pages; bytes after the last whole page are not looked at."""
    size = layout.size
    count = len(content) // size
    order = ">" if big_endian else "<"
    together = max(1, LANE_BYTES // size)
    parts = [
        _decode_lanes(
            np.frombuffer(
                content, f"{order}u4", count=lanes * size // 4, offset=first * size
            )
            .reshape(lanes, size // 4)
            .astype(np.uint32, copy=False),
            layout,
            first=first,
            big_endian=big_endian,
        )
        for first in range(0, max(1, count), together)
        for lanes in [min(together, count - first)]
    ]
    return Decoded(
        *(
            np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(Decoded)
        )
    )


def _decode_lanes(
    words: NDArray[np.uint32], layout: PageLayout, *, first: int, big_endian: bool
) -> Decoded:
    lanes = len(words)
    begins = _wide(words, 0, big_endian=big_endian)
    # Of a commit of 8 bytes, the low 32 bits are all that is used.
    low = layout.commit_offset // 4 + (big_endian and layout.commit_size == 8)
    commits = words[:, low].astype(np.int64)
    used = commits & COMMIT_MASK
    data = layout.data_offset // 4
    damaged = (used > layout.data_size) | (begins < 0) | (begins > _LARGEST_NS)
    ends = np.where(damaged, data, data + used // 4)
    steps = _walk(words, begins, data, ends, damaged, big_endian=big_endian)
    valid = steps.sizes > 0
    page, _ = np.nonzero(valid)
    missed = (commits & MISSED) != 0
    return Decoded(
        at_ns=steps.at_ns[valid],
        places=(first + page) * layout.size + steps.at_word[valid].astype(np.int64) * 4,
        sizes=steps.sizes[valid],
        pages=first + page,
        missed=missed,
        missed_count=_missed_counts(
            words, commits, layout, damaged=damaged, big_endian=big_endian
        )
        if missed.any()
        else np.full(lanes, -1, np.int64),
        damaged=damaged,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """What was found at each step of each lane; size 0 where there was no event."""

    at_ns: NDArray[np.int64]
    at_word: NDArray[np.int32]
    sizes: NDArray[np.int32]


def _walk(
    words: NDArray[np.uint32],
    begins: NDArray[np.int64],
    data: int,
    ends: NDArray[np.int64],
    damaged: NDArray[np.bool_],
    *,
    big_endian: bool,
) -> _Steps:
    """Go through all lanes together; `damaged` is set where one makes no sense."""
    lanes, width = words.shape
    # The shortest event has two words.
    most = int(max(0, (ends - data).max(initial=0))) // 2 + 1
    steps = _Steps(
        np.empty((lanes, most), np.int64),
        np.empty((lanes, most), np.int32),
        np.zeros((lanes, most), np.int32),
    )
    flat = words.reshape(-1)
    lane = np.flatnonzero(ends > data)
    at = np.full(len(lane), data, np.int64)
    end, now = ends[lane], begins[lane]
    step = 0
    while len(lane):
        base = lane * width + at
        header = flat[base]
        kind, delta = _split(header, big_endian=big_endian)
        # A last header without a second word reads the next page's: it is refused.
        second = flat[np.minimum(base + 1, len(flat) - 1)].astype(np.int64)
        now = _moved(now, kind, delta, second)
        length = _length(kind, delta, second)
        over = at + length > end
        # Padding without a delta is the rest of the page.
        damaged[lane[over & ~((kind == _PADDING) & (delta == 0))]] = True
        event = (kind < _PADDING) & ~over
        long = kind == 0
        steps.at_ns[lane, step] = now
        steps.at_word[lane, step] = at + 1 + long
        steps.sizes[lane, step] = np.where(event, (length - 1 - long) * 4, 0)
        at = at + length
        goes_on = ~over & (at < end)
        if not goes_on.all():
            lane, at, end, now = lane[goes_on], at[goes_on], end[goes_on], now[goes_on]
        step += 1
    return steps


def _split(
    header: NDArray[np.uint32], *, big_endian: bool
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return kind and time delta; bit fields begin at the machine's first bit."""
    if big_endian:
        kind = header >> np.uint32(_DELTA_BITS)
        return kind, (header & np.uint32(COMMIT_MASK)).astype(np.int64)
    return header & np.uint32(31), (header >> np.uint32(5)).astype(np.int64)


def _moved(
    now: NDArray[np.int64],
    kind: NDArray[np.uint32],
    delta: NDArray[np.int64],
    second: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the time at each event; the clock of a lane goes on by its delta."""
    moved = now + delta
    special = kind >= _TIME_EXTEND
    if special.any():
        wide = (second << _DELTA_BITS) + delta
        extend, stamp = kind == _TIME_EXTEND, kind == _TIME_STAMP
        moved = np.where(extend, now + wide, moved)
        # An absolute stamp has 59 bits; the bits above are those of the time so far.
        above = now & ~np.int64((1 << 59) - 1)
        moved = np.where(stamp, above | wide, moved)
    return moved


def _length(
    kind: NDArray[np.uint32], delta: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the words of each event, its header included."""
    length = kind.astype(np.int64) + 1
    other = (kind == 0) | (kind >= _PADDING)
    if other.any():
        stored = 1 + (second + 3) // 4
        length = np.where(kind == 0, np.maximum(stored, 3), length)
        padding = np.where(delta == 0, np.int64(1) << 40, np.maximum(stored, 2))
        length = np.where(kind == _PADDING, padding, length)
        length = np.where(kind > _PADDING, 2, length)
    return length


def _missed_counts(
    words: NDArray[np.uint32],
    commits: NDArray[np.int64],
    layout: PageLayout,
    *,
    damaged: NDArray[np.bool_],
    big_endian: bool,
) -> NDArray[np.int64]:
    """Return how many events were lost before each page: stored after its data."""
    counts = np.full(len(words), -1, np.int64)
    used = commits & COMMIT_MASK
    room = layout.data_size - used >= layout.commit_size
    stored = (commits & MISSED_STORED != 0) & room & ~damaged
    for lane in np.flatnonzero(stored):
        word = (layout.data_offset + int(used[lane])) // 4
        if layout.commit_size == 8:
            pair = words[lane : lane + 1, word : word + 2]
            counts[lane] = _wide(pair, 0, big_endian=big_endian)[0]
        else:
            counts[lane] = int(words[lane, word])
    counts[counts < 0] = -1
    return counts


def _wide(words: NDArray[np.uint32], at: int, *, big_endian: bool) -> NDArray[np.int64]:
    """Return a number of 64 bits from each lane."""
    high, low = (at, at + 1) if big_endian else (at + 1, at)
    pair = words[:, high].astype(np.uint64) << np.uint64(32)
    return (pair | words[:, low].astype(np.uint64)).view(np.int64)
