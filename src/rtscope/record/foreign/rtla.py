"""
Read what rtla prints: `timerlat hist` and `top`, `osnoise hist` and `top`, `hwnoise`.

Source: timerlat_hist.c, timerlat_top.c, osnoise_hist.c and osnoise_top.c of Linux 7.3,
and outputs of 6.1, 6.12, 7.2. timerlat has up to three latencies of each activation: to
the interrupt, to the thread, and to the return to user space. They are runs of their
own here: a sum of them means nothing. osnoise counts each noise in its histogram, and
each period in its summary, of which it does not tell the quietest. Options leave out
parts: --no-header, --no-index (the rows then have no latency), --no-summary.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from rtscope.host.units import NS_PER_S
from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign.model import ForeignRun, ForeignThread, Unit
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
    "column": "one of the latencies of rtla; its header, which says which, is left out",
    "hardware": "all noise that no interrupt explains in a period of a busy loop",
}

CONTEXTS = {
    **{"IRQ": "irq", "Thr": "thread", "Usr": "user", "CPU": "noise"},
    "": "column",
}

FEWEST_ROWS = 3
"""From so many rows on, their common divisor is taken for the width of a bucket."""

MAX_COLUMNS = 3 * 4096

VERIFIED = frozenset(
    (tool, view)
    for tool in ("rtla timerlat", "rtla osnoise")
    for view in ("histogram", "summary")
)
"""Of which there are outputs among the tests."""

OSNOISE_THRESHOLD_NS = 5000
"""The highest that the kernel took for noise if no threshold was named; now 1 us."""

_COLUMN = re.compile(r"(IRQ|Thr|Usr|CPU)-(\d{1,5})")
_COLUMNS = re.compile(r"(?:Index)?(?:\s+(?:IRQ|Thr|Usr|CPU)-\d{1,5})*\s*$")
_ALL = re.compile(r"(?:ALL:)?((?:\s+(?:IRQ|Thr|Usr|CPU))+)\s*$")
_UNLABELLED = re.compile(r"\s*[\d.]{1,20}(?:\s+(?:[\d.]{1,20}|-))*\s*$")
_COMMAND = re.compile(r"(?:^|[\s/])(rtla\s+(?:timerlat|osnoise|hwnoise)\b.{0,1000})")
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
        re.search(r"^\d?# RTLA (?:timerlat|osnoise) histogram", head, re.M)
        or re.search(r"^over:(?:\s+\d+)+\s*$", head, re.M)
        or re.search(r"^\s*Timer Latency\s*$", head, re.M)
        or _NOISE_TITLE.search(head)
    )


_ASSUMED = Unit(step_ns=1000, told="us (assumed)", assumed=True)


@dataclass(slots=True)
class _Output:
    columns: Sequence[tuple[str, int | None]] = field(default_factory=list)
    """Kind and CPU of each."""
    begun: bool = False
    """Whether the line was there that names the columns."""
    indexed: bool = True
    """Whether each row begins with its latency: not with --no-index."""
    width: int = 0
    """Columns of the first row, or of the first line below the rows."""
    unlabelled: list[Sequence[float | None]] = field(default_factory=list)
    """Rows and what is below them, if --no-index took away what they are."""
    rows: dict[int, Sequence[int]] = field(default_factory=dict)
    feet: dict[str, Sequence[float | None]] = field(default_factory=dict)
    top: dict[int, tuple[int, list[Sequence[int] | None]]] = field(default_factory=dict)
    noises: dict[int, dict[str, int]] = field(default_factory=dict)
    unit_ns: int = 1000
    unit: Unit = _ASSUMED
    duration_ns: int = 0
    tool: str = "rtla timerlat"
    command: str = ""
    finished: bool = False

    def take_unit(self, unit_ns: int) -> None:
        """Take the unit that the file names."""
        self.unit_ns = unit_ns
        self.unit = Unit(step_ns=unit_ns, told="")


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return a run for each latency in the file; RecordError if there is none."""
    output = _Output()
    for number, line in enumerate(source.lines(), 1):
        if output.begun:
            _refuse_another(source, line, number)
        _take(source, output, line, number)
    if unit_ns is not None:
        other = "" if output.unit.assumed or unit_ns == output.unit_ns else _OTHER_UNIT
        told = f"{unit_ns} ns (named)"
        output.unit = Unit(step_ns=unit_ns, told=told, contradicted=other)
        output.unit_ns = unit_ns
    if output.noises:
        return [_of_noises(output)]
    if output.unlabelled:
        _label(source, output)
    is_histogram = output.columns or output.begun or output.width
    runs = list(_of_histogram(source, output) if is_histogram else _of_top(output))
    if not runs:
        raise source.damaged("no CPU of rtla in it")
    return runs


_OTHER_UNIT = "its header names another one"


def _take(source: Source, output: _Output, line: str, number: int) -> None:
    if _take_title(output, line) or _take_summary(output, line):
        return
    if output.finished:
        return  # sums of all CPUs follow, which are not needed
    if (match := _ALL.match(line)) or line.startswith("ALL:"):
        output.finished = True
        kinds = match[1].split() if match else []
        if not output.columns and kinds and output.width % len(kinds) == 0:
            repeated = kinds * (output.width // len(kinds))
            output.columns = [(kind, None) for kind in repeated]
    elif line.strip() and _COLUMNS.match(line):
        found = _COLUMN.findall(line)[:MAX_COLUMNS]
        output.columns = [(kind, int(cpu)) for kind, cpu in found]
        output.begun, output.width = True, len(output.columns)
        output.indexed = line.lstrip().startswith("Index")
    elif match := _FOOT.match(line):
        words = match[2].split()
        output.width = output.width or len(words)
        output.feet[match[1]] = [_number(word) for word in words]
    elif _is_unlabelled(output, line):
        output.unlabelled.append([_number(word) for word in line.split()])
    elif match := _ROW.match(line):
        numbers = [int(word) for word in match[2].split()]
        output.width = output.width or len(numbers)
        if len(numbers) != output.width:
            raise source.damaged(
                f"line {number}: row {match[1]} has {len(numbers)} columns, not "
                f"{output.width}"
            )
        output.rows[int(match[1])] = numbers


def _refuse_another(source: Source, line: str, number: int) -> None:
    if line.strip() and _COLUMNS.match(line):
        raise source.damaged(
            f"line {number}: a second histogram begins: import the output of each run "
            "from a file of its own"
        )


def _is_unlabelled(output: _Output, line: str) -> bool:
    """Tell whether a line has a number for each column, and none before them."""
    if output.indexed or not _UNLABELLED.match(line):
        return False
    return len(line.split()) == len(output.columns)


def _label(source: Source, output: _Output) -> None:
    """
    Find out what the last lines are: over, count, minimum, average, maximum.

    Without the latencies of the rows there is no histogram, only these.
    """
    names = ("over", "count", "min", "avg", "max")
    rows, last = output.unlabelled[:-5], output.unlabelled[-5:]
    feet = dict(zip(names, last, strict=False))
    for at in range(len(output.columns)):
        counts = [row[at] or 0 for row in (*rows, *last[:1])]
        if len(last) < len(names) or sum(counts) != feet["count"][at]:
            raise source.damaged(
                "without an index (--no-index) and a whole summary no latency is in it"
            )
    output.feet = {**feet, "over": feet["count"]}


def _take_title(output: _Output, line: str) -> bool:
    """Take a line that says what the numbers are."""
    if re.match(r"\d?# RTLA ", line):
        output.tool = "rtla osnoise" if "RTLA osnoise" in line else "rtla timerlat"
    elif match := _COMMAND.search(line):
        output.command = match[1].strip()
    elif title := _NOISE_TITLE.match(line):
        output.tool = "rtla osnoise" if title[1].startswith("Op") else "rtla hwnoise"
    elif "Time unit is nanoseconds" in line:
        output.take_unit(1)
    elif "Time unit is microseconds" in line or "time is in us" in line:
        output.take_unit(1000)
        _take_duration(output, line)
    elif "Latency (ns)" in line or "Latency (us)" in line:
        output.take_unit(1 if "Latency (ns)" in line else 1000)
        _take_duration(output, line)
    elif _DURATION.search(line):
        _take_duration(output, line)
    else:
        return False
    return True


def _take_duration(output: _Output, line: str) -> None:
    if match := _DURATION.search(line):
        days, hours, minutes, seconds = map(int, match.groups())
        output.duration_ns = ((days * 24 + hours) * 60 + minutes) * 60 * NS_PER_S
        output.duration_ns += seconds * NS_PER_S


def _take_summary(output: _Output, line: str) -> bool:
    """Take a CPU's line of a screen: the last one counts, it has all samples."""
    if match := _TOP.match(line):
        parts = [re.findall(r"\d{1,18}|-", part) for part in match[3].split("|")]
        groups = [words[:4] for words in parts if len(words) >= 4]
        # Dashes stand for a latency of which this CPU has no sample.
        output.top[int(match[1])] = (
            int(match[2]),
            [None if "-" in one else tuple(map(int, one)) for one in groups],
        )
    elif match := _NOISE.match(line):
        numbers = {name: int(text) for name, text in match.groupdict().items()}
        output.noises[numbers["cpu"]] = numbers
    else:
        return False
    return True


def _number(word: str) -> float | None:
    return float(word) if re.fullmatch(r"\d{1,18}(?:\.\d{1,9})?", word) else None


def _of_histogram(source: Source, output: _Output) -> Iterator[ForeignRun]:
    if not output.columns and not output.width:  # CPUs without a sample are left out
        kind = "noise" if output.tool == "rtla osnoise" else "thread"
        yield _run(output, kind, (_silent(output, kind, None),))
        return
    output.columns = output.columns or [("", None)] * output.width
    for kind in dict.fromkeys(kind for kind, _ in output.columns):
        places = [at for at, (one, _) in enumerate(output.columns) if one == kind]
        threads = tuple(_thread(source, output, at) for at in places)
        run = _run(output, CONTEXTS[kind], threads)
        doubts = [make("import_cut_short", _NO_OVER)] if _is_cut(output) else []
        if any(_is_least(output, at) for at in places):
            doubts.append(make("import_maximum_least"))
        yield replace(run, caveats=(*run.caveats, *doubts))


_NO_OVER = "the line 'over:' is missing below the rows"


def _is_cut(output: _Output) -> bool:
    return bool(output.rows) and "over" not in output.feet


def _is_least(output: _Output, at: int) -> bool:
    """Tell whether a latency is beyond the rows, and no summary says how long."""
    return bool(_foot(output, "over", at)) and _foot(output, "max", at) is None


def _silent(output: _Output, kind: str, cpu: int | None) -> ForeignThread:
    """Return a CPU without a sample: osnoise found no noise above its threshold."""
    asked = re.search(r"(?:-T|--threshold)[ =]?(\d{1,9})\b", output.command)
    threshold_ns = int(asked[1]) * 1000 if asked else OSNOISE_THRESHOLD_NS
    return silent_cpu(cpu, output.unit_ns, threshold_ns if kind == "noise" else None)


def silent_cpu(
    cpu: int | None, step_ns: int, threshold_ns: int | None = OSNOISE_THRESHOLD_NS
) -> ForeignThread:
    """Return a CPU on which nothing was found above a threshold: no latency of 0."""
    return ForeignThread(
        samples=0,
        min_ns=None,
        max_ns=None,
        step_ns=step_ns,
        cpu=cpu,
        threshold_ns=threshold_ns,
    )


def _thread(source: Source, output: _Output, at: int) -> ForeignThread:
    kind, cpu = output.columns[at]
    kept = {low: row[at] for low, row in sorted(output.rows.items()) if row[at]}
    counted = _foot(output, "count", at)
    overflow = int(_foot(output, "over", at) or 0)
    samples = sum(kept.values()) + overflow if counted is None else int(counted)
    if not samples and not kept:
        return _silent(output, CONTEXTS[kind], cpu)
    lowest, average, highest = (_foot(output, n, at) for n in ("min", "avg", "max"))
    # Its end is not told: one of its options names it, which are not in the text.
    end = max(output.rows) + 1 if output.rows else 0
    if lowest is None and kept:
        lowest = min(kept)
    if highest is None and (kept or overflow):
        highest = end if overflow else max(kept)
    if samples and lowest is None:
        raise source.damaged(
            "all samples of a CPU are beyond the histogram, and without a summary no "
            "latency is in it"
        )

    def ns(value: float | None) -> int | None:
        return None if value is None else round(value * output.unit_ns)

    return ForeignThread(
        samples=samples,
        min_ns=ns(lowest) if samples else None,
        max_ns=ns(highest) if samples else None,
        mean_ns=ns(average) if samples else None,
        step_ns=_width(output) * output.unit_ns,
        end_ns=end * output.unit_ns,
        buckets={low * output.unit_ns: n for low, n in kept.items()},
        overflow=overflow,
        cpu=cpu,
    )


def _width(output: _Output) -> int:
    """
    Return how wide buckets are, as far as can be told; in units of the file.

    Zero rows are left out, so it is the greatest common divisor of those that are there
    or a divisor of that. From few rows it is taken only if a maximum shows it.
    """
    if not output.rows:
        return 1
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
                min_ns=group[1] * output.unit_ns,
                max_ns=group[3] * output.unit_ns,
                mean_ns=group[2] * output.unit_ns,
                step_ns=output.unit_ns,
                overflow=samples,
                cpu=cpu,
            )
            for cpu, (samples, groups) in sorted(output.top.items())
            if samples and (group := next(iter(groups[place : place + 1]), None))
        )
        if threads:
            yield _run(output, kind, threads)


def _of_noises(output: _Output) -> ForeignRun:
    kind = "hardware" if output.tool == "rtla hwnoise" else "period"
    if not any(one["max"] for one in output.noises.values()):
        silent = (_silent(output, "noise", cpu) for cpu in sorted(output.noises))
        return _run(output, kind, tuple(silent))
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
    run = _run(output, kind, threads)
    single = max(one["single"] for one in output.noises.values())
    return replace(
        run,
        metadata={"longest single noise": f"{single} us"},
        caveats=(*run.caveats, make("import_no_minimum")),
    )


def _run(output: _Output, kind: str, threads: tuple[ForeignThread, ...]) -> ForeignRun:
    other = kind not in ("thread", "user")
    doubts = [make("import_other_quantity", MEASURES[kind])] if other else []
    if output.unit.assumed:
        doubts.append(make("import_unit_assumed", "its header is left out"))
    view = "histogram" if output.columns or output.begun else "summary"
    return ForeignRun(
        tool=output.tool,
        format=NAME,
        verified=(output.tool, view) in VERIFIED,
        measures=MEASURES[kind],
        threads=threads,
        duration_ns=output.duration_ns,
        command=output.command,
        unit=output.unit,
        variant=kind,
        caveats=tuple(doubts),
    )
