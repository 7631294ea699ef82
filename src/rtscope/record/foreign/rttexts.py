"""
Read what the siblings of cyclictest print: pairs, signaltest, cyclicdeadline, oslat.

Source: rt-tests 2.10, and outputs of 2.4, 2.6 and 2.10. A pair's lines are the same of
ptsematest, svsematest and sigwaittest; pmqtest adds its time-outs (TO).
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign.model import (
    MORE_RUNS,
    UNKNOWN,
    ForeignRun,
    ForeignThread,
    threads_left_out,
    with_last_bucket_open,
)
from rtscope.record.foreign.rttests import MEASURES, OSLAT_BUCKETS
from rtscope.record.foreign.source import Source

NAME = "rt-tests-text"

LINE = re.compile(
    r"#\d{1,4}(?:: ID| -> #)\d|T:\s*\d{1,4} \("
    r"|\s*(?:Core|Counter Freq|Minimum|Maximum):\s|\s*\d{1,9} \(us\):"
)
NEEDS = "a pair's lines, a line 'T: 0 (...) C: Min: Max:' or the table of oslat"

_SENDER = re.compile(
    r"#(\d{1,4}): ID\d{1,9}, P(\d{1,3}), CPU(\d{1,5}), I(\d{1,12}); "
    r"#(\d{1,4}): ID(\d{1,9}), P(\d{1,3}), CPU(\d{1,5}), (TO \d{1,18}, )?"
    r"Cycles (\d{1,18})"
)
_PAIR = re.compile(
    r"#(\d{1,4}) -> #(\d{1,4}), Min\s+(\d{1,18}), Cur\s+\d{1,18}, Avg\s+(\d{1,18}), "
    r"Max\s+(\d{1,18})"
)
_SIGNAL = re.compile(
    r"T:\s*(\d{1,4}) \(\s*(\d{1,9})\) P:\s*(\d{1,3}) C:\s*(\d{1,18}) "
    r"Min:\s*(\d{1,18}) Act:\s*\d{1,18} Avg:\s*(\d{1,18}) Max:\s*(\d{1,18})"
)
_DEADLINE = re.compile(
    r"T:\s*(\d{1,4}) \(\s*(\d{1,9})\) I:\s*(\d{1,12}) C:\s*(\d{1,18}) "
    r"Min:\s*(\d{1,18}) Act:\s*-?\d{1,18} Avg:\s*(\d{1,18}) Max:\s*(\d{1,18})"
)
_OSLAT = re.compile(r"\s*([A-Za-z][\w \-]{0,20}|\d{1,9} \(us\)):\s+(.{0,60000})$")

PAIRS = "ptsematest, svsematest or sigwaittest"


def recognises(head: str) -> bool:
    """Whether one of them printed this."""
    return bool(
        re.search(r"^\s*(?:Core|Counter Freq):\s", head, re.M)
        or _PAIR.search(head)
        or _SIGNAL.search(head)
        or _DEADLINE.search(head)
    )


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if nothing of it is understood."""
    step_ns = unit_ns or NS_PER_US
    senders: dict[int, re.Match[str]] = {}
    pairs: dict[int, re.Match[str]] = {}
    signals: dict[int, re.Match[str]] = {}
    deadlines: dict[int, re.Match[str]] = {}
    table: dict[str, list[str]] = {}
    again: set[str] = set()
    # The pattern, its matches by number, and what does not fall in a run.
    kinds = (
        *((_SENDER, senders, 5, (10,)), (_PAIR, pairs, 1, (5,))),
        *((_SIGNAL, signals, 1, (4, 7)), (_DEADLINE, deadlines, 1, (4, 7))),
    )
    for line in source.lines():
        for pattern, kept, number, rising in kinds:
            if match := pattern.search(line):
                if _falls(kept.get(int(match[number])), match, rising):
                    again.add(f"thread {int(match[number])}")
                kept[int(match[number])] = match
                break
        else:
            again.update(_take_row(table, line))
    if pairs:
        tool = "pmqtest" if any(one[9] for one in senders.values()) else PAIRS
        threads = tuple(_pairs(senders, pairs, step_ns))
        run = _run(tool, threads, [number - 1 for number in pairs], step=2)
    elif signals:
        run = _run("signaltest", tuple(_signals(signals, step_ns)), signals)
    elif deadlines:
        threads = tuple(_deadlines(deadlines, step_ns))
        run = _run("cyclicdeadline", threads, deadlines)
    elif "Core" in table:
        run = _oslat(source, table)
    else:
        raise source.damaged("no thread of rt-tests in it")
    doubts = [
        make("import_contradicts", f"{one}: {MORE_RUNS}") for one in sorted(again)
    ]
    return [replace(run, caveats=(*run.caveats, *doubts))]


def _take_row(table: dict[str, list[str]], line: str) -> Iterator[str]:
    """Take a row of oslat; yield what begins again."""
    if (match := _OSLAT.match(line)) and len(table) < 10_000:
        name = match[1].strip()
        if name == "Core" and name in table:
            yield "the table of oslat"
        table[name] = match[2].split()


def _falls(
    before: re.Match[str] | None, now: re.Match[str], rising: Collection[int]
) -> bool:
    """Tell whether a number is below that of the line before, as in no one run."""
    return before is not None and any(int(now[n]) < int(before[n]) for n in rising)


def _run(
    tool: str,
    threads: tuple[ForeignThread, ...],
    numbers: Collection[int],
    *,
    step: int = 1,
) -> ForeignRun:
    measures = MEASURES.get(tool, "from a thread to the one that it wakes")
    doubts = list(threads_left_out(numbers, step=step))
    if tool == "signaltest":
        doubts.append(make("import_other_quantity", measures))
    if any(thread.samples is None for thread in threads):
        doubts.append(make("import_no_count"))
    return ForeignRun(
        tool=tool,
        format=NAME,
        verified=True,
        measures=measures,
        threads=threads,
        policy="deadline" if tool == "cyclicdeadline" else UNKNOWN,
        caveats=tuple(doubts),
    )


def _pairs(
    senders: dict[int, re.Match[str]],
    pairs: dict[int, re.Match[str]],
    step_ns: int,
) -> Iterator[ForeignThread]:
    for number, pair in sorted(pairs.items()):
        sender = senders.get(number)
        samples = None if sender is None else int(sender[10])
        lowest, average, highest = (int(pair[n]) * step_ns for n in (3, 4, 5))
        yield ForeignThread(
            samples=samples,
            min_ns=None if samples == 0 else lowest,
            max_ns=None if samples == 0 else highest,
            mean_ns=None if samples == 0 else average,
            step_ns=step_ns,
            overflow=samples or 0,
            tid=0 if sender is None else int(sender[6]),
            priority=0 if sender is None else int(sender[7]),
            interval_ns=0 if sender is None else int(sender[4]) * NS_PER_US,
        )


def _signals(
    signals: dict[int, re.Match[str]], step_ns: int
) -> Iterator[ForeignThread]:
    for _, one in sorted(signals.items()):
        yield replace(_without_buckets(one, step_ns), priority=int(one[3]))


def _deadlines(
    deadlines: dict[int, re.Match[str]], step_ns: int
) -> Iterator[ForeignThread]:
    for _, one in sorted(deadlines.items()):
        interval_ns = int(one[3]) * NS_PER_US
        yield replace(_without_buckets(one, step_ns), interval_ns=interval_ns)


def _without_buckets(one: re.Match[str], step_ns: int) -> ForeignThread:
    """Return a thread of which a line tells number, extremes and average."""
    samples = int(one[4])
    return ForeignThread(
        samples=samples,
        min_ns=int(one[5]) * step_ns if samples else None,
        max_ns=int(one[7]) * step_ns if samples else None,
        mean_ns=int(one[6]) * step_ns if samples else None,
        step_ns=step_ns,
        overflow=samples,
        tid=int(one[2]),
    )


def _oslat(source: Source, table: dict[str, list[str]]) -> ForeignRun:
    rows = [(int(n.split()[0]), row) for n, row in table.items() if n.endswith("(us)")]
    threads = tuple(
        _oslat_thread(source, table, rows, place)
        for place in range(min(len(table["Core"]), 4096))
    )
    lengths = [_float(word) for word in table.get("Duration", [])[: len(threads)]]
    known = [seconds for seconds in lengths if seconds is not None]
    return ForeignRun(
        tool="oslat",
        format=NAME,
        verified=True,
        measures=MEASURES["oslat"],
        threads=threads,
        duration_ns=int(min(known, default=0.0) * NS_PER_S),
        caveats=(
            make("import_other_quantity", MEASURES["oslat"]),
            *([] if rows else [make("import_no_count")]),
        ),
    )


def _oslat_thread(
    source: Source,
    table: dict[str, list[str]],
    rows: list[tuple[int, list[str]]],
    place: int,
) -> ForeignThread:
    """A row is named after the upper edge of its bucket; the last one has no edge."""
    kept = {
        (upper - 1) * NS_PER_US: number
        for upper, row in rows
        if upper and (number := _count(source, row, place))
    }
    cpu = _count(source, table["Core"], place)
    if not rows:
        return _oslat_summary(source, table, place, cpu)
    max_ns = _count(source, table.get("Maximum", []), place) * NS_PER_US
    last = max((upper for upper, _ in rows), default=OSLAT_BUCKETS)
    buckets, overflow, end_ns = with_last_bucket_open(
        dict(sorted(kept.items())),
        step_ns=NS_PER_US,
        max_ns=max_ns,
        end_ns=last * NS_PER_US,
    )
    samples = sum(kept.values())
    return ForeignThread(
        samples=samples,
        # What it prints as minimum is the lower edge in 2.10, in 2.4 the upper one.
        min_ns=min(kept, default=None),
        max_ns=max_ns if samples else None,
        step_ns=NS_PER_US,
        end_ns=end_ns,
        buckets=buckets,
        overflow=overflow,
        cpu=cpu if cpu < 2**16 else None,
    )


def _oslat_summary(
    source: Source, table: dict[str, list[str]], place: int, cpu: int
) -> ForeignThread:
    """Return a thread of which the table of buckets is missing, and with it a count."""
    lowest, highest = (
        _count(source, table.get(name, []), place) * NS_PER_US
        for name in ("Minimum", "Maximum")
    )
    averages = table.get("Average", [])
    average = _float(averages[place]) if place < len(averages) else None
    return ForeignThread(
        samples=None,
        min_ns=lowest,
        max_ns=highest,
        mean_ns=None if average is None else round(average * NS_PER_US),
        step_ns=NS_PER_US,
        cpu=cpu if cpu < 2**16 else None,
    )


def _count(source: Source, words: list[str], place: int) -> int:
    word = words[place] if place < len(words) else ""
    if not re.fullmatch(r"\d{1,15}", word):
        raise source.damaged(f"{word[:40]!a} is no number of oslat")
    return int(word)


def _float(word: str) -> float | None:
    return float(word) if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", word) else None
