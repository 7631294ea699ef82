"""
Read what `rtla timerlat hist`, `rtla timerlat top` and `rtla osnoise hist` print.

Source: timerlat_hist.c, timerlat_top.c and osnoise_hist.c of Linux 7.3. timerlat has
up to three latencies of each activation: to the interrupt, to the thread, and to the
return to user space. They are runs of their own here: a sum of them means nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd

from rtscope.caveats.catalogue import make
from rtscope.formats.model import ForeignRun, ForeignThread
from rtscope.formats.source import Source
from rtscope.units import NS_PER_S

NAME = "rtla"

MEASURES = {
    "irq": "from the expiry of a timer to its interrupt handler",
    "thread": "from the expiry of a timer to the kernel's or user's thread",
    "user": "from the expiry of a timer to the return to user space",
    "noise": "the noise of the operating system in a period of a busy loop",
}

CONTEXTS = {"IRQ": "irq", "Thr": "thread", "Usr": "user", "CPU": "noise"}

FEWEST_ROWS = 3
"""From so many rows on, their common divisor is taken for the width of a bucket."""

MAX_COLUMNS = 3 * 4096

_COLUMN = re.compile(r"(IRQ|Thr|Usr|CPU)-(\d{1,5})")
_DURATION = re.compile(r"(\d{1,5}) (\d{2}):(\d{2}):(\d{2})\b")
_ROW = re.compile(r"(\d{1,9})((?:\s+\d{1,18})+)\s*$")
_FOOT = re.compile(r"(over|count|min|avg|max):((?:\s+(?:[\d.]{1,20}|-))+)\s*$")
_TOP = re.compile(r"\s*(\d{1,5}) #(\d{1,18})\s*\|(.*)$")


def recognises(head: str) -> bool:
    """Whether rtla printed this."""
    return bool(
        re.search(r"^# RTLA (?:timerlat|osnoise) histogram", head, re.M)
        or re.search(r"^\s*Timer Latency\s*$", head, re.M)
    )


@dataclass(slots=True)
class _Found:
    columns: list[tuple[str, int]] = field(default_factory=list)
    rows: dict[int, Sequence[int]] = field(default_factory=dict)
    feet: dict[str, Sequence[float | None]] = field(default_factory=dict)
    top: dict[int, tuple[int, list[Sequence[int]]]] = field(default_factory=dict)
    unit_ns: int = 1000
    duration_ns: int = 0
    noise: bool = False
    finished: bool = False


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return a run for each latency in the file; RecordError if there is none."""
    found = _Found()
    for line in source.lines():
        _take(source, found, line)
    if unit_ns is not None:
        found.unit_ns = unit_ns
    runs = list(_of_histogram(found) if found.columns else _of_top(found))
    if not runs:
        raise source.damaged("no CPU of rtla in it")
    return runs


def _take(source: Source, found: _Found, line: str) -> None:
    if line.startswith("# RTLA"):
        found.noise = "osnoise" in line
    elif "Time unit is nanoseconds" in line or "Latency (ns)" in line:
        found.unit_ns = 1
    if match := _TOP.match(line):
        groups = [re.findall(r"\d{1,18}", part) for part in match[3].split("|")]
        own = [tuple(map(int, words[:4])) for words in groups if len(words) >= 4]
        found.top[int(match[1])] = int(match[2]), list(own)
    elif line.startswith("Index"):
        found.columns = [(c, int(n)) for c, n in _COLUMN.findall(line)][:MAX_COLUMNS]
    elif line.startswith("ALL:"):
        found.finished = True  # sums of all CPUs follow, which are not needed
    elif match := _DURATION.search(line):
        days, hours, minutes, seconds = map(int, match.groups())
        found.duration_ns = ((days * 24 + hours) * 60 + minutes) * 60 * NS_PER_S
        found.duration_ns += seconds * NS_PER_S
    elif not found.finished and (match := _FOOT.match(line)):
        words = match[2].split()
        found.feet[match[1]] = [_number(word) for word in words]
    elif not found.finished and (match := _ROW.match(line)):
        numbers = [int(word) for word in match[2].split()]
        if len(numbers) != len(found.columns):
            raise source.damaged(f"row {match[1]} has {len(numbers)} columns")
        found.rows[int(match[1])] = numbers


def _number(word: str) -> float | None:
    return float(word) if re.fullmatch(r"\d{1,18}(?:\.\d{1,9})?", word) else None


def _of_histogram(found: _Found) -> Iterator[ForeignRun]:
    for kind in dict.fromkeys(kind for kind, _ in found.columns):
        places = [at for at, (one, _) in enumerate(found.columns) if one == kind]
        threads = tuple(_thread(found, at) for at in places)
        yield _run(found, CONTEXTS[kind], threads)


def _thread(found: _Found, at: int) -> ForeignThread:
    kept = {low: row[at] for low, row in sorted(found.rows.items()) if row[at]}
    width = gcd(*found.rows) if len(found.rows) >= FEWEST_ROWS else 1
    step_ns = max(width, 1) * found.unit_ns
    counted = _foot(found, "count", at)
    overflow = int(_foot(found, "over", at) or 0)
    samples = sum(kept.values()) + overflow if counted is None else int(counted)
    lowest, average, highest = (_foot(found, n, at) for n in ("min", "avg", "max"))

    def ns(value: float | None) -> int | None:
        return None if value is None else round(value * found.unit_ns)

    return ForeignThread(
        samples=samples,
        min_ns=ns(lowest) if samples else None,
        max_ns=ns(highest) if samples else None,
        mean_ns=ns(average) if samples else None,
        step_ns=step_ns,
        end_ns=max(found.rows, default=0) * found.unit_ns + step_ns,
        buckets={low * found.unit_ns: n for low, n in kept.items()},
        overflow=overflow,
        cpu=found.columns[at][1],
    )


def _foot(found: _Found, name: str, at: int) -> float | None:
    numbers = found.feet.get(name, ())
    return numbers[at] if at < len(numbers) else None


def _of_top(found: _Found) -> Iterator[ForeignRun]:
    """Only the last state of the screen counts: it has all samples."""
    for place, kind in enumerate(("irq", "thread", "user")):
        threads = tuple(
            ForeignThread(
                samples=samples,
                min_ns=groups[place][1] * found.unit_ns,
                max_ns=groups[place][3] * found.unit_ns,
                mean_ns=groups[place][2] * found.unit_ns,
                step_ns=found.unit_ns,
                overflow=samples,
                cpu=cpu,
            )
            for cpu, (samples, groups) in sorted(found.top.items())
            if len(groups) > place and samples
        )
        if threads:
            yield _run(found, kind, threads)


def _run(found: _Found, kind: str, threads: tuple[ForeignThread, ...]) -> ForeignRun:
    other = kind in ("irq", "noise")
    return ForeignRun(
        tool="rtla osnoise" if found.noise else "rtla timerlat",
        format=NAME,
        verified=False,
        measures=MEASURES[kind],
        threads=threads,
        duration_ns=found.duration_ns,
        variant=kind,
        caveats=(make("import_other_quantity", MEASURES[kind]),) if other else (),
    )
