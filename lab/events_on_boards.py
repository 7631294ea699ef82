"""
Every event of the virtual board `pc`, under five loads, on two kernels.

    python lab/events_on_boards.py WORK [--event NAME ...] [--table FILE]

Runs, explains and checks; a campaign is one event on one kernel, and lies in WORK. What
was interrupted goes on there, and what is done is not run again. --again EVENT runs a
campaign anew, in a directory of its own, with the cache that XDG_CACHE_HOME names, and
compares digests. Exit status 1: something does not add up, or is not equal.
"""

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtscope.record.directory.records import open_records
from rtscope.record.explanation import Wakeup, read_explained
from rtscope.record.model import POLL, RunRecord
from rtscope.stats.summary import summarize
from rtscope.stats.wakeparts import KINDS, parts_seen

EVENTS: Mapping[str, str] = {
    **{name: name for name in ("futex", "eventfd", "pipe", "signal", "mq", "sem")},
    **{name: name for name in ("cond", "pty", "poll", "uio", "timer")},
    **{name: f"{name}:from=eth0:to=eth1" for name in ("raw", "udp", "xdp")},
    "can": "can:from=can0:to=can1",
    "serial": "serial:from=ttyS1:to=ttyS1",
}
KERNELS = ("debian-6.12-rt", "debian-6.12")
LOADS = ("idle", "os", "timers", "memory", "network")
QUICK = ("--duration", "1s", "--settle", "200ms", "--warmup", "200ms", "--cpus", "1")


def rtscope(*words: str | Path) -> None:
    """Run a command of rtscope beside other work."""
    argv = (Path(sys.executable).parent / "rtscope", *words)
    subprocess.run(("nice", "-n", "5", *argv), check=True, stdout=subprocess.DEVNULL)


def runs_of(out: Path, count: int, *words: str | Path) -> Sequence[RunRecord]:
    """Return the runs of a campaign, which begins with `words`, goes on, or is done."""
    if not (out / "campaign.json").exists():
        rtscope("run", *words, "--out", out)
    elif len(open_records(out)) < count:
        rtscope("run", "--resume", out)
    return open_records(out)


def measured(out: Path, event: str, kernel: str) -> Sequence[RunRecord]:
    """Return the runs of an event on a kernel, one under each load."""
    about = ("--target", "virtual:pc", "--kernel", kernel, "--event", EVENTS[event])
    loads = ("--load", ",".join(LOADS), "--parts", "--jobs", "1")
    return runs_of(out, len(LOADS), *about, *loads, *QUICK)


@dataclass(frozen=True, slots=True)
class Cell:
    """An event under a load, on a kernel."""

    record: RunRecord
    worst: tuple[Wakeup, ...]

    def wrong(self) -> Iterator[str]:
        """Yield what does not add up, and what was not understood."""
        seen = parts_seen([self.record])
        if self.record.run.event != POLL and (seen is None or not seen.checked):
            yield "no parts of all"
        elif seen is not None and seen.checked and seen.withdrawn:
            yield f"parts of all: {seen.withdrawn}"
        for one in self.worst:
            took = sum(s.end_ns - s.begin_ns for s in one.segments)
            if took + one.left_out_ns + one.residual_ns != one.latency_ns:
                yield f"wake-up {one.sequence}: segments take {took} ns"
            if sum(one.parts.values()) + one.residual_ns != one.latency_ns:
                yield f"wake-up {one.sequence}: parts take {one.parts} ns"
            if one.dominant is None:
                yield f"wake-up {one.sequence}: withdrawn, {one.notes}"
            elif one.broken_invariants or one.residual_ns:
                yield f"wake-up {one.sequence}: in part, {one.notes}"
            elif any("who woke" in note for note in one.notes):
                yield f"wake-up {one.sequence}: no sender, {one.notes}"

    def row(self, event: str) -> Iterator[str]:
        """Yield its fields, times in ns."""
        run = self.record.run
        total = summarize(self.record.result.threads)
        yield from (event, self.record.virtual.kernel if self.record.virtual else "")
        yield from (run.load, str(total.samples), str(total.missed_periods))
        yield from (f"{total.mean_ns or 0:.0f}", f"{total.max_ns}")
        seen = parts_seen([self.record])
        parts = seen.parts if seen else ()
        means = [f"{part.summary.mean_ns or 0:.0f}" for part in parts]
        yield from means or [""] * len(KINDS)
        yield str(seen.unknown) if seen else ""
        causes = Counter(one.dominant.cause for one in self.worst if one.dominant)
        yield "; ".join(f"{cause} {n}" for cause, n in causes.most_common(2))
        yield self.record.result_digest[:16]


HEAD = (
    *("event", "kernel", "load", "samples", "missed", "mean_ns", "max_ns"),
    *("before_ns", "interrupt_ns", "preemption_ns", "scheduler_ns", "return_ns"),
    "in no part",
    *("dominant causes of the 16 worst", "digest"),
)


def cells_of(out: Path, records: Sequence[RunRecord]) -> Iterator[Cell]:
    """Yield each run with its explanation, made where it is lacking."""
    files = [out / "runs" / one.run.id / "explain.json" for one in records]
    if not all(file.exists() for file in files):
        rtscope("explain", out)
    for record, file in zip(records, files, strict=True):
        yield Cell(record, read_explained(file).wakeups)


def main() -> int:
    """Measure what is lacking, print what is wrong, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--event", nargs="*", default=list(EVENTS), choices=EVENTS)
    parser.add_argument("--again", nargs="*", default=[], choices=EVENTS)
    parser.add_argument("--table", type=Path, help="file of comma-separated values")
    words = parser.parse_args()
    rows: list[tuple[str, ...]] = [HEAD]
    status = 0
    for event in words.again or words.event:
        for kernel in KERNELS:
            out = words.work / f"{event}-{kernel}"
            records = measured(out, event, kernel)
            if words.again:
                others = measured(out.with_name(f"{out.name}-again"), event, kernel)
                pairs = list(zip(records, others, strict=True))
                equal = sum(a.result_digest == b.result_digest for a, b in pairs)
                print(f"{event}, {kernel}: {equal} of {len(pairs)} equal", flush=True)
                status |= equal < len(pairs)
                continue
            for cell in cells_of(out, records):
                fields = tuple(cell.row(event))
                rows.append(fields)
                print(*fields, sep=", ", flush=True)
                for told in cell.wrong():
                    status = 1
                    print(f"    {told}", flush=True)
    if words.table:
        words.table.write_text("".join(f"{','.join(row)}\n" for row in rows))
    return status


if __name__ == "__main__":
    sys.exit(main())
