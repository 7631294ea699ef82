"""
Read what `latency` of Xenomai prints, with -h its histogram of all samples.

Source: testsuite/latency/latency.c of Xenomai 3. It counts overruns, takes the absolute
value of early wake-ups, and adds what is longer than the histogram to its last cell.
"""

import re
from collections.abc import Mapping

from rtscope.host.units import NS_PER_US
from rtscope.record.foreign.model import (
    ForeignRun,
    ForeignThread,
    with_last_bucket_open,
)
from rtscope.record.foreign.source import Source

NAME = "xenomai-latency"

LINE = re.compile(r"RT[THDS]\||HS[DSH]\||== (?:Sampling|Test|All)\b")
NEEDS = "lines 'RTH|' and 'RTS|', or '== Sampling period:'"

_FINAL = re.compile(
    r"RTS\|\s*(-?[\d.]{1,20})\|\s*(-?[\d.]{1,20})\|\s*(-?[\d.]{1,20})\|\s*(\d{1,18})\|"
)
_ROW = re.compile(r"HSD\|\s*avg\|\s*(\d{1,9})\s*-\s*(\d{1,9})\s*\|\s*(\d{1,18})")
_COUNT = re.compile(r"HSS\|\s*avg\|\s*(\d{1,18})\|")
_PERIOD = re.compile(r"== Sampling period:\s*(\d{1,9}) us")
_MODE = re.compile(r"== Test mode:\s*(.{1,80})$")


def recognises(head: str) -> bool:
    """Whether `latency` of Xenomai printed this."""
    return bool(
        re.search(r"^RT[HDS]\|", head, re.M)
        and (
            re.search(r"^== (?:Sampling period|Test mode):", head, re.M)
            or "RTS|" in head
        )
    )


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if its last line is missing."""
    cells: dict[int, int] = {}
    width = interval = counted = 0
    mode, final = "", None
    for line in source.lines():
        if match := _ROW.match(line):
            cells[int(match[1])] = int(match[3])
            width = max(int(match[2]) - int(match[1]), 1)
        elif match := _FINAL.match(line):
            final = match
        elif match := _PERIOD.search(line):
            interval = int(match[1])
        elif match := _MODE.search(line):
            mode = match[1].strip()
        elif match := _COUNT.match(line):
            counted = int(match[1])
    if final is None:
        raise source.damaged("its last line (RTS) is missing: it was cut short")
    lowest, average, highest = (_ns(source, final[n]) for n in (1, 2, 3))
    thread = _thread(cells, max(width, 1), counted, max_ns=highest)
    return [
        ForeignRun(
            tool="xenomai latency",
            format=NAME,
            verified=False,
            measures=f"from the expiry of a timer to the {mode or 'task'}",
            threads=(
                ForeignThread(
                    samples=thread[3],
                    min_ns=lowest if thread[3] else None,
                    max_ns=highest if thread[3] else None,
                    mean_ns=average if thread[3] else None,
                    step_ns=NS_PER_US * max(width, 1),
                    end_ns=thread[2],
                    buckets=thread[0],
                    overflow=thread[1],
                    interval_ns=interval * NS_PER_US,
                    missed_periods=int(final[4]),
                ),
            ),
            metadata={"mode": mode} if mode else {},
        )
    ]


def _thread(
    cells: Mapping[int, int], width: int, counted: int, *, max_ns: int
) -> tuple[dict[int, int], int, int, int]:
    """Return buckets, overflow, end and samples."""
    step_ns = width * NS_PER_US
    if not cells:
        return {}, counted, 0, counted
    kept = {low * NS_PER_US: n for low, n in sorted(cells.items()) if n}
    end_ns = max(cells) * NS_PER_US + step_ns
    buckets, overflow, end_ns = with_last_bucket_open(
        kept, step_ns=step_ns, max_ns=max_ns, end_ns=end_ns
    )
    return buckets, overflow, end_ns, sum(kept.values())


def _ns(source: Source, word: str) -> int:
    if not re.fullmatch(r"-?\d{1,12}(?:\.\d{1,6})?", word):
        raise source.damaged(f"{word[:40]!a} is no time")
    return abs(round(float(word) * NS_PER_US))
