r"""
Read what cyclictest prints: histograms (-h, -H, --histfile), every value (-v), summary.

Source: print_stat and print_hist of rt-tests 2.10, and outputs of 2.4 and 2.10. Up to
2.6 rows of zeros are printed, and `# Total`. A latency is cut to its unit, and whatever
is not shorter than the number of rows is in no row. The unit, microseconds or with -N
nanoseconds, is nowhere in the text, and neither is the length of the run.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from rtscope.host.units import NS_PER_US
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.foreign.model import (
    MAX_BUCKETS,
    MORE_RUNS,
    NO_END_NS,
    UNKNOWN,
    ForeignRun,
    ForeignThread,
    ForeignTimes,
    Longest,
    threads_left_out,
)
from rtscope.record.foreign.rttests import Options, length_asked_ns
from rtscope.record.foreign.source import Source
from rtscope.record.foreign.unit import unit_of_text

NAME = "cyclictest-text"

LINE = re.compile(
    r"\d{1,9}(?:[ \t,;]+\d{1,18})+[ \t,;]*$|\s*\d{1,4}:\s*\d+:\s*-?\d+(?:\s+\d+)?\s*$"
    r"|(?:Max|Online) CPUs = \d|Thread \d+ Interval|T:\s*\d{1,4}\s*\("
    r"|#\s*(?:Histogram|Total|Min|Avg|Max|Thread)\b"
)
NEEDS = (
    "the line '# Histogram', '# Min Latencies:', a line 'T: 0 (...) P: I: C: Min: Max:'"
    " or two rows of -v"
)

MEASURES = "from the expiry of a timer to the thread in user space"

MAX_THREADS = 4096
MAX_ROWS = 20_000_000
MAX_OVERFLOWS = 1024
"""Cycle numbers of overflows that are kept of a thread."""

_ROW = re.compile(r"(\d{1,9})(?:[ \t,;]+\d{1,18})+[ \t,;]*$")
_VALUE = re.compile(
    r"\s*(\d{1,4})[:,;]\s*(\d{1,18})[:,;]\s*(-?\d{1,19})(?:[\s,;:]+\d+)?[\s,;]*$"
)
"""With --smi a fourth number is the count of SMIs."""
_SUMMARY = re.compile(
    r"T:\s*(?P<thread>\d{1,4})\s*\(\s*(?P<tid>\d{1,9})\)\s*P:\s*(?P<priority>\d{1,3})"
    r"\s*I:\s*(?P<interval>\d{1,12})\s*(?:O:\s*-?\d{1,12}\s*)?C:\s*(?P<samples>\d{1,18})"
    r"\s*Min:\s*(?P<min>\d{1,20})\s*Act:\s*-?\d{1,20}(?:\s*Avg:\s*(?P<avg>-?\d{1,20}))?"
    r"\s*Max:\s*(?P<max>\d{1,20})"
)
"""Until 2006 it printed no average, and its distance (O) instead."""
_BROKEN = re.compile(r"T:\s*(\d{1,4})\s*\(")
_PARTS = ("P", "I", "C", "Min", "Act", "Max")
_LEFT_OUT = re.compile(r"\s*[\[(<]?\s*(?:\.{2,}|\u2026|snip|cut|skipped|omitted)", re.I)
_COMMAND = re.compile(r"(?:^|[\s/'\"(])cyclictest(?=\s+-)(?P<options>.{1,1000})")
_FOOT = re.compile(
    r"#\s*(Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows):"
    r"\s*(.*)$"
)
_OVERFLOWS = "Histogram Overflows"
_CYCLES = re.compile(r"#\s*Thread\s+(\d{1,4}):([\s\d]*)(?:#\s*\d+ others)?\s*$")
_SPIKE = re.compile(r"T:\s*(\d{1,4})\s+Spike:\s*(\d{1,12}):\s*TS:\s*(\d{1,18})\s*$")
_SPIKES = re.compile(r"spikes = (\d{1,12})\s*$")
_INTERVAL = re.compile(r"Thread (\d{1,4}) Interval: (\d{1,12})\s*$")
_POLICY = re.compile(r"policy:\s*(\w{1,16}):")
_COMMENT = re.compile(r"#\s*([^:]{1,80}):\s*(.{0,400})")
_PLAIN = re.compile(
    r"#\s*Histogram\s*$|#\s*Histogram Overflow at cycle number:"
    r"|#\s*/dev/cpu_dma_latency|(?:Max|Online) CPUs = \d+|\s*$|#-+$"
    r"|# cyclictest current status:|WARN"
)


def recognises(head: str) -> bool:
    """Whether this is what cyclictest prints."""
    return bool(
        re.search(r"^#\s*(?:Histogram|Min Latencies:)", head, re.M)
        or re.search(
            r"^T:\s*\d+\s*\(\s*\d+\)\s*P:\s*\d+\s*I:\s*\d+\s*(?:O:\s*-?\d+\s*)?C:",
            head,
            re.M,
        )
        or re.match(
            r"(?:\s*\d{1,4}:\s*\d+:\s*-?\d+(?:[ \t:]+\d+)?\s*\n){2}",
            _after_banner(head),
        )
        or re.match(
            r"(?:\s*\d{1,4}[,;] {2,}\d+[,;] {2,}-?\d+(?:[ \t,;]+\d+)?[ \t,;]*\n){2}",
            _after_banner(head),
        )
    )


def _after_banner(head: str) -> str:
    kept = [line for line in head.splitlines(keepends=True) if not _PLAIN.match(line)]
    return "".join(line for line in kept if not _INTERVAL.match(line))[:400]


@dataclass(slots=True)
class _Output:
    """The lines read so far; numbers are in the file's own unit."""

    columns: list[Counter[int]] = field(default_factory=list)
    values: dict[int, Counter[int]] = field(default_factory=dict)
    width: int = 0
    """Columns of a row."""
    rows: int = 0
    filled: int = 0
    """Buckets that are not empty."""
    zeros: str = "?"
    """What follows the index in a row of zeros, of which there may be a million."""
    next_row: int = 0
    """One above the index of the last row."""
    feet: dict[str, list[int]] = field(default_factory=dict)
    summaries: dict[int, dict[str, int]] = field(default_factory=dict)
    intervals: dict[int, int] = field(default_factory=dict)
    policy: str = UNKNOWN
    metadata: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    not_understood: int = 0
    broken: list[str] = field(default_factory=list)
    """Lines of threads that lack a part, and which."""
    left_out: int = 0
    """Lines that stand for others, as `...`."""
    commands: list[str] = field(default_factory=list)
    negative: int = 0
    cycles: dict[int, int] = field(default_factory=dict)
    """The number of the last value of each thread."""
    longest: dict[int, Longest] = field(default_factory=dict)
    """Of each thread, from every value or from spikes."""
    overflow_cycles: dict[int, tuple[int, ...]] = field(default_factory=dict)
    spikes: int = 0
    """Spikes that are listed."""
    all_spikes: int | None = None
    """Spikes that were counted; None: not said."""
    first_spike: int = 0


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if nothing of it is understood."""
    output = _Output()
    number = 0
    for number, line in enumerate(source.lines(), 1):
        if line and not any(take(output, line) for take in _TAKERS):
            _other(output, line, number)
        if output.filled > MAX_BUCKETS:
            raise source.damaged(
                f"line {number}: over {MAX_BUCKETS:,} buckets that are not empty: "
                "import fewer threads, or a shorter histogram"
            )
        if output.rows > MAX_ROWS or len(output.wrong) > MAX_THREADS:
            raise source.damaged(f"line {number}: too much for a histogram")
    unit = unit_of_text(output.commands, unit_ns)
    threads = tuple(_threads(output, unit.step_ns))
    if not threads:
        raise source.damaged("; ".join(["no thread of cyclictest", *output.broken[:1]]))
    if output.not_understood:
        output.metadata["lines not understood"] = str(output.not_understood)
    output.metadata["unit"] = unit.told
    command = output.commands[0] if len(set(output.commands)) == 1 else ""
    run = ForeignRun(
        tool="cyclictest",
        format=NAME,
        verified=True,
        measures=MEASURES,
        threads=threads,
        policy=output.policy,
        command=command,
        duration_ns=length_asked_ns(Options(command)),
        metadata=output.metadata,
        unit=unit,
        caveats=tuple(_doubts(output, threads)),
    )
    return [run]


def _row(output: _Output, line: str) -> bool:
    index, rest = line[: -len(output.zeros)], line[-len(output.zeros) :]
    if rest == output.zeros and re.fullmatch(r"\d{1,9}", index):
        output.rows += 1
        _next(output, int(index))
        return True
    if not line[:1].isdigit() or not _ROW.match(line):
        return False
    if re.match(r"\d{1,4}[,;] {2,}", line):  # a value of -v: rows are not padded so
        return False
    first, *words = re.split(r"[ \t,;]+", line.rstrip(" \t,;"))
    counts = [int(word) for word in words]
    output.rows += 1
    if not output.width:
        output.width = len(counts)
        output.columns = [Counter() for _ in counts[:MAX_THREADS]]
    if len(counts) != output.width:
        output.wrong.append(
            f"row {first} has {len(counts)} columns, not {output.width}"
        )
    elif _next(output, int(first)):
        if not any(counts):
            output.zeros = line[len(first) :]
        for column, count in zip(output.columns, counts, strict=False):
            if count:
                column[int(first)] += count
                output.filled += 1
    return True


def _next(output: _Output, index: int) -> bool:
    """Take note of a row's index; False if it is not above the last one."""
    if index < output.next_row:
        output.wrong.append(f"row {index} comes after row {output.next_row - 1}")
        return False
    output.next_row = index + 1
    return True


def _value(output: _Output, line: str) -> bool:
    match = _VALUE.match(line)
    if match is None:
        return False
    thread, cycle, value = map(int, match.groups())
    if thread >= MAX_THREADS:
        return False
    if value < 0:
        output.negative += 1
        return True
    before = output.cycles.get(thread)
    if before is not None and cycle != before + 1:
        output.wrong.append(f"thread {thread}: value {cycle} comes after {before}")
    output.cycles[thread] = cycle
    kept = output.values.setdefault(thread, Counter())
    output.filled += value not in kept
    kept[value] += 1
    output.longest.setdefault(thread, Longest()).add(value, cycle)
    return True


def _spike(output: _Output, line: str) -> bool:
    """Take a wake-up that exceeded the trigger of --spike: its time is monotonic."""
    if match := _SPIKES.match(line):
        output.all_spikes = int(match[1])
        return True
    match = _SPIKE.match(line)
    if match is None:
        return False
    thread, value, at = map(int, match.groups())
    if thread < MAX_THREADS and value:
        output.first_spike = min(output.first_spike, at) if output.spikes else at
        output.spikes += 1
        output.longest.setdefault(thread, Longest()).add(value, at)
    return True


def _summary(output: _Output, line: str) -> bool:
    match = _SUMMARY.search(line)
    if match is None:
        return False
    numbers = {name: int(text) for name, text in match.groupdict().items() if text}
    if numbers["thread"] < MAX_THREADS:
        before = output.summaries.get(numbers["thread"])
        if before is not None and of_other_runs(before, numbers):
            output.wrong.append(f"thread {numbers['thread']}: {MORE_RUNS}")
        output.summaries[numbers["thread"]] = numbers
    return True


def of_other_runs(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    """
    Tell whether two lines of a thread are of two runs, not of one that goes on.

    Of one run the thread is the same, its count does not fall, and neither does its
    maximum.
    """
    same = before.get("tid") in (0, now.get("tid"))  # 0: it has not begun
    return not same or any(now[name] < before[name] for name in ("samples", "max"))


def _foot(output: _Output, line: str) -> bool:
    match = _FOOT.match(line)
    if match is None:
        return False
    words = takewhile(lambda word: re.fullmatch(r"\d{1,19}", word), match[2].split())
    output.feet[match[1]] = [int(word) for word in islice(words, MAX_THREADS + 1)]
    return True


def _comment(output: _Output, line: str) -> bool:
    if match := _INTERVAL.match(line):
        output.intervals[int(match[1])] = int(match[2])
        return True
    if match := _POLICY.search(line):
        output.policy = match[1].lower()
        return True
    if match := _CYCLES.match(line):
        if int(match[1]) < MAX_THREADS:
            cycles = match[2].split()[:MAX_OVERFLOWS]
            output.overflow_cycles[int(match[1])] = tuple(map(int, cycles))
        return True
    if _PLAIN.match(line):
        return True
    match = _COMMENT.match(line)
    if match is None:
        return False
    if len(output.metadata) < 100:
        output.metadata.setdefault(match[1].strip(), match[2].strip())
    return True


def _other(output: _Output, line: str, number: int) -> None:
    """Take note of a line that is none of the tool's, or not a whole one."""
    if match := _BROKEN.match(line):
        has = set(re.findall(r"(?<![A-Za-z])([A-Z][a-z]*):", line))
        lacks = ", ".join(part for part in _PARTS if part not in has)
        output.broken.append(f"line {number}: T: {match[1]} has no {lacks or 'number'}")
    elif _LEFT_OUT.match(line):
        output.left_out += 1
    elif match := _COMMAND.search(line):
        output.commands.append(f"cyclictest{match['options']}".rstrip()[:4000])
    else:
        output.not_understood += 1


_TAKERS: Sequence[Callable[[_Output, str], bool]] = (
    *(_row, _value, _spike, _summary, _foot, _comment),
)


def _threads(output: _Output, step_ns: int) -> Iterator[ForeignThread]:
    columns = _columns(output)
    for place in _places(output, columns):
        summary = output.summaries.get(place, {})
        kept: Counter[int] = Counter()
        end = 0
        if place < len(columns):
            kept, end = columns[place], _rows_of_all(output)
        elif place in output.values:
            kept, end = output.values[place], NO_END_NS // step_ns
        overflow = _at(output.feet.get(_OVERFLOWS), place) or 0
        samples: int | None = sum(kept.values()) + overflow
        if not samples:  # no histogram: a summary's count, if there is one
            samples = summary.get("samples", samples if end else None)
            end, overflow = end if samples == 0 else 0, samples or 0
        numbers = [_extreme(output, place, name) for name in ("Min", "Avg", "Max")]
        lowest, average, highest = (None, None, None) if samples == 0 else numbers
        if lowest is None and kept:
            lowest = min(kept)
        if highest is None and kept:
            highest = max(kept)
        if average is not None and average < 0:
            average = None
        interval = _first(summary.get("interval"), output.intervals.get(place)) or 0
        yield ForeignThread(
            samples=samples,
            min_ns=None if lowest is None else lowest * step_ns,
            max_ns=None if highest is None else highest * step_ns,
            mean_ns=None if average is None else average * step_ns,
            step_ns=step_ns,
            end_ns=end * step_ns,
            buckets={value * step_ns: n for value, n in sorted(kept.items())},
            overflow=overflow,
            tid=summary.get("tid", 0),
            priority=summary.get("priority", 0),
            interval_ns=interval * NS_PER_US,
            times=_times(output, place, step_ns),
        )


def _extreme(output: _Output, place: int, name: str) -> int | None:
    """Return minimum, average or maximum of a thread, as the file says it."""
    summary = output.summaries.get(place, {})
    said = _at(output.feet.get(f"{name} Latencies"), place)
    return _first(said, summary.get(name.lower()))


def _times(output: _Output, place: int, step_ns: int) -> ForeignTimes | None:
    """Return when the longest latencies of a thread were, if the file says it."""
    if place in output.values:
        worst = output.longest[place].listed(step_ns)
        return ForeignTimes(worst=worst, in_periods=True)
    if place in output.longest and not _unlisted_spikes(output):
        since = output.first_spike
        worst = output.longest[place].listed(step_ns, since=since)
        return ForeignTimes(
            worst=tuple((at * NS_PER_US, ns) for at, ns in worst),
            step_ns=NS_PER_US,
            from_start=False,
        )
    if cycles := output.overflow_cycles.get(place):
        return ForeignTimes(beyond=cycles, in_periods=True)
    return None


def _unlisted_spikes(output: _Output) -> int:
    """Return how many spikes have no line: the list of --spike-nodes was full."""
    return max((output.all_spikes or 0) - output.spikes, 0)


def _rows_of_all(output: _Output) -> int:
    """
    Return how many rows the histogram had, whether or not each was printed.

    Rows of zeros are left out since 2.7: with overflows the histogram has ended at the
    last row at least, without any its end is above all values.
    """
    return output.next_row


def _columns(output: _Output) -> Sequence[Counter[int]]:
    """Return the columns of threads: -H prints one more, with their sum."""
    last = output.columns[-1:]
    if len(output.columns) == _feet(output) + 1 > 1 and last == [_sum(output)]:
        return output.columns[:-1]
    return output.columns


def _sum(output: _Output) -> Counter[int]:
    together: Counter[int] = Counter()
    for column in output.columns[:-1]:
        together.update(column)
    return together


def _feet(output: _Output) -> int:
    """Return of how many threads there are extremes; -H adds one for all of them."""
    lows, means, highs = (
        output.feet.get(f"{name} Latencies", []) for name in ("Min", "Avg", "Max")
    )
    known = max(len(lows), len(means))
    of_all = len(highs) == known + 1 > 1 and highs[-1] == max(highs[:-1])
    return known if of_all else max(known, len(highs))


def _places(output: _Output, columns: Sequence[Counter[int]]) -> Sequence[int]:
    """Return the numbers of the threads of which there is anything in the file."""
    known = max(len(columns), _feet(output)) or len(output.feet.get(_OVERFLOWS, ()))
    return sorted({*range(known), *output.summaries, *output.values})


def _at(numbers: Sequence[int] | None, place: int) -> int | None:
    return numbers[place] if numbers and place < len(numbers) else None


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


def _doubts(output: _Output, threads: Sequence[ForeignThread]) -> Iterator[Caveat]:
    wrong = [*output.wrong[:3], *_sums(output)]
    if output.negative:
        wrong.append(f"{output.negative} negative latencies: the clock was set back")
    for said in wrong:
        yield make("import_contradicts", said)
    if unlisted := _unlisted_spikes(output):
        yield make("import_times_cut", f"{unlisted} of {output.all_spikes} spikes")
    if output.columns and "Max Latencies" not in output.feet:
        yield make(
            "import_cut_short", "the histogram has no lines of extremes below it"
        )
    yield from (make("import_cut_short", said) for said in output.broken[:3])
    if not output.columns:
        yield from threads_left_out({*output.summaries, *output.values})
    if output.left_out:
        yield make("import_left_out", f"lines that stand for others: {output.left_out}")
    if len({t.interval_ns for t in threads}) > 1:
        yield make("import_threads_apart", "different intervals")


def _sums(output: _Output) -> Iterator[str]:
    """Yield what of the columns and the lines below them does not add up."""
    if not output.columns:
        return
    columns = _columns(output)
    count = _feet(output) or len(columns)
    own = [sum(column.values()) for column in output.columns]
    if len(columns) == count + 1:
        yield "the column of the sums is not the sum of the others"
    totals = output.feet.get("Total", own)
    if totals != own:
        yield f"totals of {totals[:8]}, but {own[:8]} in the columns"
    for name, numbers in output.feet.items():
        if not count <= len(numbers) <= count + 1:
            yield f"{name} of {len(numbers)} threads, not {count}"
    if len(columns) not in (count, count + 1):
        yield f"{len(columns)} columns, but {count} threads below them"
    if any(place >= count for place in output.summaries):
        yield f"{len(output.summaries)} threads, but {count} columns"
