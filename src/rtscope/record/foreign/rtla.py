"""
Read what rtla prints: `timerlat hist` and `top`, `osnoise hist` and `top`, `hwnoise`.

Source: timerlat_hist.c, timerlat_top.c, osnoise_hist.c and osnoise_top.c of Linux 7.3,
and outputs of 6.1, 6.12, 7.2. timerlat has up to three latencies of each activation: to
the interrupt, to the thread, and to the return to user space. They are runs of their
own here: a sum of them means nothing. osnoise counts each noise in its histogram, and
each period in its summary, of which it does not tell the quietest.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from rtscope.host.units import NS_PER_S
from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign.model import ForeignRun, ForeignThread
from rtscope.record.foreign.source import Source

NAME = "rtla"

LINE = re.compile(
    r"# RTLA|# Time unit|Index\b|(?:over|count|min|avg|max):\s|\s*\d{1,5} #\d+\s"
    r"|\d{1,9}(?:\s+\d{1,18})+\s*$|\s*Timer Latency\s*$|ALL:"
)
NEEDS = "its title, as '# RTLA timerlat histogram' or 'Timer Latency'"

MEASURES = {
    "irq": "from the expiry of a timer to its interrupt handler",
    "thread": "from the expiry of a timer to the kernel's or user's thread",
    "user": "from the expiry of a timer to the return to user space",
    "noise": "one noise of the operating system in a busy loop",
    "period": "all noise of the operating system in a period of a busy loop",
    "hardware": "all noise that no interrupt explains in a period of a busy loop",
}

CONTEXTS = {"IRQ": "irq", "Thr": "thread", "Usr": "user", "CPU": "noise"}

FEWEST_ROWS = 3
"""From so many rows on, their common divisor is taken for the width of a bucket."""

MAX_COLUMNS = 3 * 4096

VERIFIED = frozenset(
    (tool, view)
    for tool in ("rtla timerlat", "rtla osnoise")
    for view in ("histogram", "summary")
)
"""Of which there are outputs among the tests."""

_COLUMN = re.compile(r"(IRQ|Thr|Usr|CPU)-(\d{1,5})")
_DURATION = re.compile(r"(\d{1,5}) (\d{2}):(\d{2}):(\d{2})\b")
_ROW = re.compile(r"(\d{1,9})((?:\s+\d{1,18})+)\s*$")
_FOOT = re.compile(r"(over|count|min|avg|max):((?:\s+(?:[\d.]{1,20}|-))+)\s*$")
_TOP = re.compile(r"\s*(\d{1,5}) #(\d{1,18})\s*\|(.*)$")
_NOISE = re.compile(
    r"\s*(?P<cpu>\d{1,5}) #(?P<periods>\d{1,18})\s+\d{1,18}\s+(?P<sum>\d{1,18})"
    r"\s+\d{1,3}\.\d{1,9}\s+(?P<max>\d{1,18})\s+(?P<single>\d{1,18})(?:\s+\d{1,18}){1,5}"
    r"\s*$"
)
_NOISE_TITLE = re.compile(
    r"^\s*(Operating System Noise|Hardware-related Noise)\s*$", re.M
)


def recognises(head: str) -> bool:
    """Whether rtla printed this."""
    return bool(
        re.search(r"^# RTLA (?:timerlat|osnoise) histogram", head, re.M)
        or re.search(r"^\s*Timer Latency\s*$", head, re.M)
        or _NOISE_TITLE.search(head)
    )


@dataclass(slots=True)
class _Output:
    columns: list[tuple[str, int]] = field(default_factory=list)
    rows: dict[int, Sequence[int]] = field(default_factory=dict)
    feet: dict[str, Sequence[float | None]] = field(default_factory=dict)
    top: dict[int, tuple[int, list[Sequence[int]]]] = field(default_factory=dict)
    noises: dict[int, dict[str, int]] = field(default_factory=dict)
    unit_ns: int = 1000
    duration_ns: int = 0
    tool: str = "rtla timerlat"
    finished: bool = False


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return a run for each latency in the file; RecordError if there is none."""
    output = _Output()
    for line in source.lines():
        _take(source, output, line)
    if unit_ns is not None:
        output.unit_ns = unit_ns
    if output.noises:
        return [_of_noises(output)]
    runs = list(_of_histogram(output) if output.columns else _of_top(output))
    if not runs:
        raise source.damaged("no CPU of rtla in it")
    return runs


def _take(source: Source, output: _Output, line: str) -> None:
    if _take_title(output, line) or _take_summary(output, line):
        return
    if line.startswith("Index"):
        output.columns = [(c, int(n)) for c, n in _COLUMN.findall(line)][:MAX_COLUMNS]
    elif line.startswith("ALL:"):
        output.finished = True  # sums of all CPUs follow, which are not needed
    elif not output.finished and (match := _FOOT.match(line)):
        words = match[2].split()
        output.feet[match[1]] = [_number(word) for word in words]
    elif not output.finished and (match := _ROW.match(line)):
        numbers = [int(word) for word in match[2].split()]
        if len(numbers) != len(output.columns):
            raise source.damaged(f"row {match[1]} has {len(numbers)} columns")
        output.rows[int(match[1])] = numbers


def _take_title(output: _Output, line: str) -> bool:
    """Take a line that says what the numbers are."""
    if line.startswith("# RTLA osnoise"):
        output.tool = "rtla osnoise"
    elif title := _NOISE_TITLE.match(line):
        output.tool = "rtla osnoise" if title[1].startswith("Op") else "rtla hwnoise"
    elif "Time unit is nanoseconds" in line:
        output.unit_ns = 1
    elif match := _DURATION.search(line):
        if "Latency (ns)" in line:
            output.unit_ns = 1
        days, hours, minutes, seconds = map(int, match.groups())
        output.duration_ns = ((days * 24 + hours) * 60 + minutes) * 60 * NS_PER_S
        output.duration_ns += seconds * NS_PER_S
    else:
        return False
    return True


def _take_summary(output: _Output, line: str) -> bool:
    """Take a CPU's line of a screen: the last one counts, it has all samples."""
    if match := _TOP.match(line):
        groups = [re.findall(r"\d{1,18}", part) for part in match[3].split("|")]
        own = [tuple(map(int, words[:4])) for words in groups if len(words) >= 4]
        output.top[int(match[1])] = int(match[2]), list(own)
    elif match := _NOISE.match(line):
        numbers = {name: int(text) for name, text in match.groupdict().items()}
        output.noises[numbers["cpu"]] = numbers
    else:
        return False
    return True


def _number(word: str) -> float | None:
    return float(word) if re.fullmatch(r"\d{1,18}(?:\.\d{1,9})?", word) else None


def _of_histogram(output: _Output) -> Iterator[ForeignRun]:
    for kind in dict.fromkeys(kind for kind, _ in output.columns):
        places = [at for at, (one, _) in enumerate(output.columns) if one == kind]
        threads = tuple(_thread(output, at) for at in places)
        yield _run(output, CONTEXTS[kind], threads)


def _thread(output: _Output, at: int) -> ForeignThread:
    kept = {low: row[at] for low, row in sorted(output.rows.items()) if row[at]}
    step_ns = _width(output) * output.unit_ns
    counted = _foot(output, "count", at)
    overflow = int(_foot(output, "over", at) or 0)
    samples = sum(kept.values()) + overflow if counted is None else int(counted)
    lowest, average, highest = (_foot(output, n, at) for n in ("min", "avg", "max"))

    def ns(value: float | None) -> int | None:
        return None if value is None else round(value * output.unit_ns)

    return ForeignThread(
        samples=samples,
        min_ns=ns(lowest) if samples else None,
        max_ns=ns(highest) if samples else None,
        mean_ns=ns(average) if samples else None,
        step_ns=step_ns,
        # Its end is not told: one of its options names it, which are not in the text.
        end_ns=(max(output.rows, default=0) + 1) * output.unit_ns,
        buckets={low * output.unit_ns: n for low, n in kept.items()},
        overflow=overflow,
        cpu=output.columns[at][1],
    )


def _width(output: _Output) -> int:
    """
    Return how wide buckets are, as far as can be told; in units of the file.

    Zero rows are left out, so it is the greatest common divisor of those that are there
    or a divisor of that. From few rows it is taken only if a maximum shows it.
    """
    width = gcd(*output.rows)
    if len(output.rows) >= FEWEST_ROWS or width <= 1:
        return max(width, 1)
    highest = max(output.rows)
    beyond = any(_foot(output, "over", at) for at in range(len(output.columns)))
    maxima = (_foot(output, "max", at) or 0 for at in range(len(output.columns)))
    return width if not beyond and max(maxima, default=0) > highest else 1


def _foot(output: _Output, name: str, at: int) -> float | None:
    numbers = output.feet.get(name, ())
    return numbers[at] if at < len(numbers) else None


def _of_top(output: _Output) -> Iterator[ForeignRun]:
    """Only the last state of the screen counts: it has all samples."""
    for place, kind in enumerate(("irq", "thread", "user")):
        threads = tuple(
            ForeignThread(
                samples=samples,
                min_ns=groups[place][1] * output.unit_ns,
                max_ns=groups[place][3] * output.unit_ns,
                mean_ns=groups[place][2] * output.unit_ns,
                step_ns=output.unit_ns,
                overflow=samples,
                cpu=cpu,
            )
            for cpu, (samples, groups) in sorted(output.top.items())
            if len(groups) > place and samples
        )
        if threads:
            yield _run(output, kind, threads)


def _of_noises(output: _Output) -> ForeignRun:
    threads = tuple(
        ForeignThread(
            samples=one["periods"],
            min_ns=0 if one["periods"] else None,
            max_ns=one["max"] * output.unit_ns if one["periods"] else None,
            mean_ns=one["sum"] * output.unit_ns // max(one["periods"], 1),
            step_ns=output.unit_ns,
            overflow=one["periods"],
            cpu=cpu,
        )
        for cpu, one in sorted(output.noises.items())
    )
    kind = "hardware" if output.tool == "rtla hwnoise" else "period"
    run = _run(output, kind, threads)
    single = max(one["single"] for one in output.noises.values())
    return replace(
        run,
        metadata={"longest single noise": f"{single} us"},
        caveats=(*run.caveats, make("import_no_minimum")),
    )


def _run(output: _Output, kind: str, threads: tuple[ForeignThread, ...]) -> ForeignRun:
    other = kind not in ("thread", "user")
    view = "histogram" if output.columns else "summary"
    return ForeignRun(
        tool=output.tool,
        format=NAME,
        verified=(output.tool, view) in VERIFIED,
        measures=MEASURES[kind],
        threads=threads,
        duration_ns=output.duration_ns,
        variant=kind,
        caveats=(make("import_other_quantity", MEASURES[kind]),) if other else (),
    )
