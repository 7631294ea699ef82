"""
Read the JSON of rt-tests: cyclictest and its siblings, of all versions so far.

Source: rt_write_json of rt-tests 2.10, and outputs of 2.4 and 2.10. Two of its keys end
with a colon, the command line in it is not escaped, and an average of nothing is `nan`:
none of which is an error here. The number of rows of a histogram is not in it, but in
the command; what is beyond the last row is cycles less all counts.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rtscope.host.files.documents import json_object
from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.foreign.model import (
    NO_END_NS,
    UNKNOWN,
    ForeignRun,
    ForeignThread,
    Unit,
    threads_left_out,
    with_last_bucket_open,
)
from rtscope.record.foreign.source import Source

NAME = "rt-tests-json"

LINE = re.compile(r'\s*"[^"\\]{1,80}"\s*:|\s*[{}],?\s*$')
NEEDS = "'rt_test_version:', or 'file_version' and 'resolution_in_ns', near its begin"

MEASURES: Mapping[str, str] = {
    "cyclictest": "from the expiry of a timer to the thread in user space",
    "cyclicdeadline": "from the begin of a period of SCHED_DEADLINE to the thread",
    "signaltest": "from sending a signal around all threads to its arrival",
    "ptsematest": "from unlocking a mutex in one thread to the lock in another",
    "svsematest": "from a System V semaphore's release to the thread that waits for it",
    "sigwaittest": "from sending a signal to the thread that waits for it",
    "pmqtest": "from sending a message of a POSIX queue to its receipt",
    "oslat": "the gap between two reads of a counter in a busy loop",
}

MAX_THREADS = 4096

OSLAT_BUCKETS = 32
"""Buckets of oslat if its command names no other number."""


def recognises(head: str) -> bool:
    """Whether this is JSON of rt-tests."""
    return '"rt_test_version:"' in head[:4000] or (
        '"file_version"' in head[:400] and '"resolution_in_ns"' in head
    )


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if it is damaged."""
    document = json_object(_mended(source.document("{", "}")), name=str(source.path))
    command = _text(document.get("cmdline:", document.get("cmdline")))
    options = Options(command)
    threads = document.get("thread")
    if not isinstance(threads, dict) or not 0 < len(threads) <= MAX_THREADS:
        raise source.damaged("no threads in it")
    tool = _tool(command, threads)
    if tool not in MEASURES:
        raise source.damaged(f"{tool}: a tool of rt-tests that rtscope cannot import")
    unit = _unit(document, options, unit_ns)
    step_ns = unit.step_ns
    reader = _oslat if tool == "oslat" else _thread
    results = tuple(
        reader(source, one, options=options, place=place, step_ns=step_ns)
        for place, one in enumerate(threads.values())
    )
    about = document.get("sysinfo")
    system = about if isinstance(about, dict) else {}
    run = ForeignRun(
        tool=tool,
        format=NAME,
        verified=True,
        measures=MEASURES[tool],
        version=_text(document.get("rt_test_version:", "")),
        threads=results,
        started_at=_iso(document.get("start_time")),
        duration_ns=_length_ns(document, options, tool),
        policy=_policy(options, tool),
        command=command,
        arch=_text(system.get("machine")) or UNKNOWN,
        facts=facts_of(system),
        unit=unit,
        metadata={
            key: str(document[key])[:400]
            for key in ("return_code", "end_time")
            if key in document
        },
    )
    return [replace(run, caveats=tuple(_doubts(document, run)))]


def _unit(
    document: Mapping[str, Any], options: "Options", named_ns: int | None
) -> Unit:
    """Return the unit: its key, in old files without it the command."""
    said = document.get("resolution_in_ns")
    in_ns = said == 1 if said is not None else options.has("N", "--nsecs")
    own_ns = 1 if in_ns else NS_PER_US
    if named_ns is None or named_ns == own_ns:
        return Unit(step_ns=own_ns, told="")
    return Unit(
        step_ns=named_ns,
        told=f"{named_ns} ns (named)",
        contradicted="resolution_in_ns, or the command in it, says another one",
    )


class Options:
    """The words of a command line: values of its options by their names."""

    def __init__(self, command: str) -> None:
        try:
            self.words = shlex.split(command)
        except ValueError:
            self.words = command.split()

    def value(self, short: str, long: str) -> str | None:
        """Return the value of an option; None if it is not given."""
        for place, word in enumerate(self.words[1:], 1):
            following = self.words[place + 1 : place + 2]
            if word.startswith(f"{long}="):
                return word.partition("=")[2]
            if word in (f"-{short}", long):
                return following[0] if following else None
            if re.fullmatch(rf"-{short}\S+", word) and not word.startswith("--"):
                return word[2:].lstrip("=")
        return None

    def number(self, short: str, long: str) -> int | None:
        """Return the number of an option; None if it has none."""
        value = self.value(short, long)
        return int(value) if value and re.fullmatch(r"\d{1,12}", value) else None

    def has(self, short: str, long: str) -> bool:
        """Whether a switch is given, alone or among other letters."""
        switches = rf"-[a-zA-Z]*{short}[a-zA-Z]*"
        return any(word == long or re.fullmatch(switches, word) for word in self.words)


def facts_of(system: Mapping[str, Any]) -> dict[str, str]:
    """Return what `uname` says, by the names of facts."""
    names = {
        "nodename": "hostname",
        "release": "kernel_release",
        "version": "kernel_version",
    }
    return {
        fact: _text(system[key])[:400] for key, fact in names.items() if system.get(key)
    }


def count(source: Source, value: object, what: str) -> int:
    """Return a count of the file; RecordError if it is none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    raise source.damaged(f"{what}: {str(value)[:40]!a} is no count")


def nanoseconds(source: Source, value: object, unit_ns: float, what: str) -> int:
    """Return a time of the file; RecordError if it is none."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if known and 0 <= value < 2**62 / unit_ns:  # type: ignore[operator]
        return round(value * unit_ns)  # type: ignore[operator]
    raise source.damaged(f"{what}: {str(value)[:40]!a} is no time")


def histogram(
    source: Source, counts: object, *, step_ns: int, shift: int = 0
) -> dict[int, int]:
    """Return counts by the smallest latency of each bucket, ascending; null: none."""
    if counts is None:
        return {}
    if not isinstance(counts, dict):
        raise source.damaged("histogram: not an object")
    buckets: dict[int, int] = {}
    for key, value in counts.items():
        if not re.fullmatch(r"\d{1,12}", key):
            raise source.damaged(f"histogram: {key[:40]!a} is no latency")
        low = int(key) - shift
        if low < 0:
            raise source.damaged(f"histogram: there is no bucket {key}")
        if number := count(source, value, f"histogram {key}"):
            buckets[low * step_ns] = buckets.get(low * step_ns, 0) + number
    return dict(sorted(buckets.items()))


def _mended(text: str) -> str:
    """Return the text with its two known defects mended."""
    text = re.sub(r'(":\s*)-?nan\b', r"\1null", text)
    return re.sub(
        r'^(\s*"cmdline:?":\s*")(.*)("\s*,\s*)$',
        lambda m: m[1] + re.sub(r'(?<!\\)"', r"\\\"", m[2]) + m[3],
        text,
        count=1,
        flags=re.M,
    )


def _tool(command: str, threads: Mapping[str, Any]) -> str:
    name = command.split(maxsplit=1)[0].rsplit("/", 1)[-1] if command.strip() else ""
    if name in MEASURES:
        return name
    first = next(iter(threads.values()))
    if isinstance(first, dict) and "cycles" in first and "node" in first:
        return "cyclictest"
    if isinstance(first, dict) and "freq" in first:
        return "oslat"
    return name[:64] or UNKNOWN


def _thread(
    source: Source, one: object, *, options: Options, place: int, step_ns: int
) -> ForeignThread:
    if not isinstance(one, dict):
        raise source.damaged(f"thread {place}: not an object")
    sender, receiver = one.get("sender"), one.get("receiver")
    interval_ns, priority = _interval_ns(options, place, one), 0
    if isinstance(sender, dict) and isinstance(receiver, dict):
        one = {**receiver, "cycles": sender.get("samples")}
        interval_ns = count(source, sender.get("interval", 0), "interval") * NS_PER_US
        priority = count(source, receiver.get("priority", 0), "priority")
    samples = count(source, one.get("cycles"), f"thread {place}: cycles")
    buckets: dict[int, int] = {}
    end_ns, overflow = 0, samples
    if "histogram" in one:
        buckets = histogram(source, one["histogram"], step_ns=step_ns)
        rows = options.number("h", "--histogram") or options.number("H", "--histofall")
        end_ns = rows * step_ns if rows else max(buckets, default=0) + step_ns
        overflow = max(samples - sum(buckets.values()), 0)
    cpu = one.get("cpu")
    # One thread per CPU that does not move is not said, but follows from -a and -S.
    pinned = isinstance(cpu, int) and 0 <= cpu < 2**16 and "node" in one
    return ForeignThread(
        samples=samples,
        min_ns=_time(source, one, "min", step_ns) if samples else None,
        max_ns=_time(source, one, "max", step_ns) if samples else None,
        mean_ns=_mean(source, one, step_ns) if samples else None,
        step_ns=step_ns,
        end_ns=min(end_ns, NO_END_NS),
        buckets=buckets,
        overflow=overflow,
        cpu=cpu if pinned else None,
        priority=priority or options.number("p", "--prio") or 0,
        interval_ns=interval_ns,
    )


def _oslat(
    source: Source, one: object, *, options: Options, place: int, step_ns: int
) -> ForeignThread:
    """A bucket's name is its upper edge, and the last one has all that is longer."""
    if not isinstance(one, dict):
        raise source.damaged(f"thread {place}: not an object")
    kept = histogram(source, one.get("histogram"), step_ns=step_ns, shift=1)
    rows = options.number("b", "--bucket-size") or OSLAT_BUCKETS
    samples = sum(kept.values())
    max_ns = _time(source, one, "max", step_ns) if samples else None
    buckets, overflow, end_ns = with_last_bucket_open(
        kept,
        step_ns=step_ns,
        max_ns=max_ns,
        end_ns=max((*kept, (rows - 1) * step_ns)) + step_ns,
    )
    cpu = one.get("cpu")
    return ForeignThread(
        samples=samples,
        min_ns=min(kept, default=None),
        max_ns=max_ns,
        step_ns=step_ns,
        end_ns=end_ns,
        buckets=buckets,
        overflow=overflow,
        cpu=cpu if isinstance(cpu, int) and 0 <= cpu < 2**16 else None,
        priority=options.number("f", "--rtprio") or 0,
    )


def _mean(source: Source, one: Mapping[str, Any], step_ns: int) -> int | None:
    return None if one.get("avg") is None else _time(source, one, "avg", step_ns)


def _time(source: Source, one: Mapping[str, Any], key: str, step_ns: int) -> int:
    return nanoseconds(source, one.get(key), step_ns, key)


def _interval_ns(options: Options, place: int, one: Mapping[str, Any]) -> int:
    """Return the interval that cyclictest gave a thread: -i, and -d for each more."""
    deadline = "cyclicdeadline" in "".join(options.words[:1])
    if deadline:
        return (options.number("i", "--interval") or 0) * NS_PER_US
    if "node" not in one:
        return 0
    first = options.number("i", "--interval")
    if first is None:
        if options.value("i", "--interval") is not None or not options.words:
            return 0
        first = 1000
    equal = "histogram" in one or options.has("S", "--smp")
    distance = options.number("d", "--distance")
    step = (0 if equal else 500) if distance is None else distance
    return (first + place * step) * NS_PER_US


def _policy(options: Options, tool: str) -> str:
    if tool == "cyclicdeadline":
        return "deadline"
    named = options.value("y", "--policy") if tool == "cyclictest" else None
    return named.lower() if named in ("fifo", "rr", "other", "FIFO", "RR") else UNKNOWN


_LENGTHS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def length_asked_ns(options: Options) -> int:
    """Return the length that a command of rt-tests asks for; 0: none."""
    match = re.fullmatch(r"(\d{1,9})([smhd]?)", options.value("D", "--duration") or "")
    return int(match[1]) * _LENGTHS[match[2]] * NS_PER_S if match else 0


def _length_ns(document: Mapping[str, Any], options: Options, tool: str) -> int:
    """Return how long it ran: as asked for, but not longer than by its own clock."""
    requested_ns = length_asked_ns(options)
    start, end = (_date(document.get(key)) for key in ("start_time", "end_time"))
    if start is None or end is None or end < start:
        return requested_ns
    by_clock_ns = int((end - start).total_seconds()) * NS_PER_S
    # Its clock has whole seconds: a run of 3 s may span 2 or 4.
    if requested_ns and by_clock_ns + NS_PER_S >= requested_ns:
        return requested_ns
    return by_clock_ns


def _date(value: object) -> datetime | None:
    try:
        date = parsedate_to_datetime(str(value)[:80])
        return date.replace(tzinfo=date.tzinfo or UTC).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _iso(value: object) -> str:
    date = _date(value)
    return "" if date is None else date.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: object) -> str:
    return str(value)[:4000] if isinstance(value, str | int | float) else ""


def _doubts(document: Mapping[str, Any], run: ForeignRun) -> Iterator[Caveat]:
    said = document.get("num_threads")
    if isinstance(said, int) and said < len(run.threads):
        yield make("import_contradicts", f"{said} threads, but {len(run.threads)}")
    known = said if isinstance(said, int) and said <= MAX_THREADS else 0
    numbers = [int(key) for key in document["thread"] if re.fullmatch(r"\d{1,5}", key)]
    if len(numbers) == len(run.threads):
        yield from threads_left_out(numbers, known=known)
    if len({t.interval_ns for t in run.threads}) > 1:
        yield make("import_threads_apart", "different intervals")
    short = [t for t in run.threads if sum(t.buckets.values()) > (t.samples or 0)]
    if short:
        yield make(
            "import_contradicts",
            f"{short[0].samples} cycles, but {sum(short[0].buckets.values())} counts",
        )
    if run.tool in ("oslat", "signaltest"):
        yield make("import_other_quantity", run.measures)
    yield from _truncated(run.threads)


def _truncated(threads: Sequence[ForeignThread]) -> Iterator[Caveat]:
    if any(t.min_ns == 1_000_000 * t.step_ns for t in threads):
        yield make("import_contradicts", "a minimum that means no sample, or over 1 s")
