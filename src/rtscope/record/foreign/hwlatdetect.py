"""
Read what hwlatdetect prints: gaps in a kernel loop with interrupts off.

Source: hwlatdetect.py of rt-tests 2.10, and outputs of 2.4, 2.6 and 2.10. Only gaps
above a threshold are listed, of each window the longest, and the loop watches half of
the time: what is not listed is unknown.
"""

import re
from collections import Counter
from dataclasses import replace

from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.foreign.model import (
    NO_END_NS,
    ForeignRun,
    ForeignThread,
    ForeignTimes,
    Longest,
)
from rtscope.record.foreign.source import Source

NAME = "hwlatdetect"

DEFAULT_THRESHOLD_US = 10
"""Of hwlatdetect, if its command names no other."""

LINE = re.compile(
    r"hwlatdetect:\s|ts:\s*\d|\s*(?:Samples (?:recorded|exceeding)|Max Latency)\b"
)
NEEDS = "the line 'hwlatdetect:  test duration', a gap or 'Samples recorded'"

MEASURES = (
    "the longest gap between two reads of a clock in a window of a kernel loop with "
    "interrupts off"
)

_GAP = re.compile(
    r"ts:\s*(\d{1,12})(?:\.(\d{1,9}))?.{0,80}?inner:\s*(\d{1,12}),\s*outer:\s*(\d{1,12})"
)
_LENGTH = re.compile(r"test duration (\d{1,9}) seconds")
_COMMAND = re.compile(r"(?:^|[\s/])(hwlatdetect\s+--.{1,1000})")
_SAID = re.compile(r"\s*([A-Z][\w ]{1,40}):\s*(.{1,200})$")


def recognises(head: str) -> bool:
    """Whether hwlatdetect printed this."""
    return bool(
        re.search(r"^hwlatdetect:\s+test duration", head, re.M)
        or (re.search(r"^Samples exceeding threshold:", head, re.M))
        or re.search(r"^ts:\s*[\d.]+,.*inner:\s*\d+,\s*outer:\s*\d+", head, re.M)
    )


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if it has no gap and no summary."""
    gaps: Counter[int] = Counter()
    metadata: dict[str, str] = {}
    seconds, command = 0, ""
    longest, first_ns = Longest(), 2**63
    for line in source.lines():
        if match := _GAP.search(line):
            gap, at_ns = max(int(match[3]), int(match[4])), _ns(match[1], match[2])
            gaps[gap] += 1
            first_ns = min(first_ns, at_ns)
            longest.add(gap, at_ns)
        elif match := _LENGTH.search(line):
            seconds = int(match[1])
        elif match := _COMMAND.search(line):
            command = match[1].strip()
        elif (match := _SAID.match(line)) and len(metadata) < 50:
            metadata[match[1].strip()] = match[2].strip()
    if not gaps and _RECORDED not in metadata:
        raise source.damaged(
            "no gap and no summary ('Samples recorded') of hwlatdetect in it"
        )
    times = ForeignTimes(
        worst=longest.listed(NS_PER_US, since=first_ns),
        step_ns=_window_ns(metadata),
        from_start=False,
    )
    thread = replace(_thread(gaps, metadata, command), times=times)
    share = _watched_share(metadata)
    about = (
        MEASURES if share == 1 else f"{MEASURES}; it watched {share:.0%} of the time"
    )
    return [
        ForeignRun(
            tool="hwlatdetect",
            format=NAME,
            verified=True,
            measures=MEASURES,
            threads=(thread,),
            duration_ns=seconds * NS_PER_S,
            watched_share=share,
            command=command,
            metadata=metadata,
            caveats=(
                make("import_other_quantity", about),
                *_doubts(gaps, metadata, thread),
            ),
        )
    ]


def _thread(
    gaps: Counter[int], metadata: dict[str, str], command: str
) -> ForeignThread:
    """Return the gaps that are listed, else what the summary says of them."""
    threshold = _number(metadata.get("Latency threshold", ""))
    if threshold is None and command:
        asked = re.search(r"--threshold[= ](\d{1,12})\b", command)
        threshold = int(asked[1]) if asked else DEFAULT_THRESHOLD_US
    threshold_ns = None if threshold is None else threshold * NS_PER_US
    recorded = _number(metadata.get(_RECORDED, "")) or 0
    longest = _number(metadata.get("Max Latency", ""))
    if not gaps and recorded and longest is not None:
        return ForeignThread(
            samples=recorded,
            min_ns=0,
            max_ns=longest * NS_PER_US,
            step_ns=NS_PER_US,
            overflow=recorded,
            threshold_ns=threshold_ns,
        )
    return ForeignThread(
        samples=sum(gaps.values()),
        min_ns=min(gaps) * NS_PER_US if gaps else None,
        max_ns=max(gaps) * NS_PER_US if gaps else None,
        step_ns=NS_PER_US,
        end_ns=NO_END_NS,
        buckets={us * NS_PER_US: n for us, n in sorted(gaps.items())},
        threshold_ns=threshold_ns,
    )


def _watched_share(metadata: dict[str, str]) -> float:
    """Return which part of the time it watched; 1 if the file does not say."""
    window, width = (
        _number(metadata.get(name, "")) for name in ("Sample window", "Sample width")
    )
    return min(width / window, 1.0) if window and width else 1.0


def _number(text: str) -> int | None:
    match = re.match(r"\d{1,12}", text)
    return int(match[0]) if match else None


def _ns(seconds: str, decimals: str | None) -> int:
    return int(seconds) * NS_PER_S + int((decimals or "0").ljust(9, "0"))


def _window_ns(metadata: dict[str, str]) -> int:
    """Return how far apart two windows begin; a second if it is not said."""
    said = re.match(r"(\d{1,9})\s*us", metadata.get("Sample window", ""))
    return max(int(said[1]) * NS_PER_US, 1) if said else NS_PER_S


def _doubts(
    gaps: Counter[int], metadata: dict[str, str], thread: ForeignThread
) -> list[Caveat]:
    if thread.samples and not gaps:
        return [make("import_no_minimum")]
    if not thread.samples and thread.threshold_ns is None:
        return [make("import_threshold_unknown")]
    if _RECORDED not in metadata:
        return [make("import_cut_short", "its summary (Samples recorded) is missing")]
    listed, said = (
        sum(gaps.values()),
        re.match(r"\d{1,12}", metadata.get(_RECORDED, "")),
    )
    if said and listed and int(said[0]) != listed:
        return [make("import_contradicts", f"{said[0]} recorded, {listed} listed")]
    longest = re.match(r"(\d{1,12})\s*us", metadata.get("Max Latency", ""))
    if longest and gaps and int(longest[1]) != max(gaps):
        return [make("import_contradicts", f"{longest[1]} us said, {max(gaps)} listed")]
    return []


_RECORDED = "Samples recorded"
