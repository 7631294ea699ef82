"""
Read what `latency` of Xenomai and `latmus` of EVL print, with -h a histogram, too.

Source: testsuite/latency/latency.c of Xenomai 3, tidbits/latmus.c of libevl. They count
overruns, take the absolute value of early wake-ups, and add what is longer than the
histogram to its last cell. Without -h they print no count of samples.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign.model import (
    ForeignRun,
    ForeignThread,
    with_last_bucket_open,
)
from rtscope.record.foreign.source import Source

NAME = "xenomai-latency"

LINE = re.compile(r"RT[THDS]\||HS[DSH]\||== (?:Sampling|Test|All)\b")
NEEDS = "lines 'RTH|' and 'RTS|', or '== Sampling period:'"

_NUMBER = r"\s*(-?[\d.]{1,20})\|"
_FINAL = re.compile(rf"RTS\|{_NUMBER * 3}\s*(\d{{1,18}})\|(.*)$")
_SECOND = re.compile(
    rf"RTD\|{_NUMBER * 3}\s*(\d{{1,18}})\|\s*\d{{1,18}}\|{_NUMBER}"
    r"\s*(-?[\d.]{1,20})\s*$"
)
"""Of each second; the last two are the best and the worst so far."""
_ROW = re.compile(r"HSD\|\s*avg\|\s*(\d{1,9})\s*-\s*(\d{1,9})\s*\|\s*(\d{1,18})")
_COUNT = re.compile(r"HSS\|\s*avg\|\s*(\d{1,18})\|")
_PERIOD = re.compile(r"== Sampling period:\s*(\d{1,9}) us")
_MODE = re.compile(r"== Test mode:\s*(.{1,80})$")
_TITLE = re.compile(
    r"RTT\|\s*(?P<length>[\d:]{1,20})\s*\((?P<mode>[^,]{1,80}), (?P<period>\d{1,9}) us "
    r"period(?:, priority (?P<priority>\d{1,3}))?(?:, CPU(?P<cpu>\d{1,4}))?"
)
_LENGTH = re.compile(r"(\d{1,6}):(\d{2}):(\d{2})")

_LATMUS_MODES = ("user", "kernel", "irq")


@dataclass(slots=True)
class _Output:
    cells: dict[int, int] = field(default_factory=dict)
    width: int = 0
    period_us: int = 0
    counted: int | None = None
    mode: str = ""
    priority: int = 0
    cpu: int | None = None
    length_s: int = 0
    latmus: bool = True
    """Whether the lines are without those that `latency` prints before."""
    final: re.Match[str] | None = None
    second: re.Match[str] | None = None


def recognises(head: str) -> bool:
    """Whether `latency` of Xenomai or `latmus` printed this."""
    return bool(
        re.search(r"^RT[HDS]\|", head, re.M)
        and (
            re.search(r"^== (?:Sampling period|Test mode):", head, re.M)
            or re.search(r"^RT[TS]\|", head, re.M)
        )
    )


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if no line has numbers."""
    output = _Output()
    for line in source.lines():
        _take(output, line)
    if output.final is None and output.second is None:
        raise source.damaged(
            "no line of numbers: neither its last one (RTS) nor one of a second (RTD)"
        )
    thread = _thread(source, output)
    doubts = []
    if output.final is None:
        doubts.append(make("import_cut_short", "its last line (RTS) is missing"))
    if thread.samples is None:
        doubts.append(make("import_no_count", _estimate(output)))
    return [
        ForeignRun(
            tool="latmus" if output.latmus else "xenomai latency",
            format=NAME,
            verified=False,
            measures=f"from the expiry of a timer to the {output.mode or 'task'}",
            threads=(thread,),
            duration_ns=output.length_s * NS_PER_S,
            metadata={"mode": output.mode} if output.mode else {},
            caveats=tuple(doubts),
        )
    ]


def _take(output: _Output, line: str) -> None:
    if match := _ROW.match(line):
        output.cells[int(match[1])] = int(match[3])
        output.width = max(int(match[2]) - int(match[1]), 1)
    elif match := _FINAL.match(line):
        output.final = match
        _take_length(output, match[5])
    elif match := _SECOND.match(line):
        output.second = match
    elif match := _TITLE.match(line):
        output.period_us = int(match["period"])
        output.mode = output.mode or match["mode"].strip()
        output.latmus &= output.mode in _LATMUS_MODES
        output.priority = int(match["priority"] or 0)
        output.cpu = None if match["cpu"] is None else int(match["cpu"])
        _take_length(output, match["length"])
    elif match := _PERIOD.search(line):
        output.period_us, output.latmus = int(match[1]), False
    elif match := _MODE.search(line):
        output.mode, output.latmus = match[1].strip(), False
    elif match := _COUNT.match(line):
        output.counted = int(match[1])


def _take_length(output: _Output, text: str) -> None:
    if match := _LENGTH.search(text):
        hours, minutes, seconds = map(int, match.groups())
        output.length_s = max(output.length_s, (hours * 60 + minutes) * 60 + seconds)


def _estimate(output: _Output) -> str:
    """Return about how many samples there were, if that follows from other numbers."""
    if not (output.length_s and output.period_us):
        return ""
    about = output.length_s * NS_PER_S // (output.period_us * NS_PER_US)
    return (
        f"about {about:,}, estimated from {output.length_s} s at {output.period_us} us"
    )


def _thread(source: Source, output: _Output) -> ForeignThread:
    if output.final is not None:
        words = [output.final[n] for n in (1, 2, 3)]
        lowest, average, highest = (_ns(source, word) for word in words)
        mean_ns: int | None = average
        missed = int(output.final[4])
    else:
        assert output.second is not None, "one of them is there"
        lowest, highest = (_ns(source, output.second[n]) for n in (5, 6))
        mean_ns, missed = None, int(output.second[4])
    width = max(output.width, 1)
    buckets, overflow, end_ns, samples = _histogram(
        output.cells, width, output.counted, max_ns=highest
    )
    return ForeignThread(
        samples=samples,
        min_ns=None if samples == 0 else lowest,
        max_ns=None if samples == 0 else highest,
        mean_ns=None if samples == 0 else mean_ns,
        step_ns=NS_PER_US * width if buckets else 1,
        end_ns=end_ns,
        buckets=buckets,
        overflow=overflow,
        cpu=output.cpu,
        priority=output.priority,
        interval_ns=output.period_us * NS_PER_US,
        missed_periods=missed,
    )


def _histogram(
    cells: Mapping[int, int], width: int, counted: int | None, *, max_ns: int
) -> tuple[dict[int, int], int, int, int | None]:
    """Return buckets, overflow, end and samples; without a histogram no count."""
    step_ns = width * NS_PER_US
    if not cells:
        return {}, counted or 0, 0, counted
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
