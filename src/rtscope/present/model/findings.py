"""
The findings as sentences, the worst first, and the headline without a deadline.

No sentence claims more than was measured: a ratio of two maxima is named as such, and
as no test.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.contract import KernelThread, ThreadResult
from rtscope.host.units import NS_PER_S, count, plural
from rtscope.present.model.rows import Row, comparing_row
from rtscope.present.words import capital, cut, duration, enumeration, times, us
from rtscope.record.caveats.catalogue import Effect
from rtscope.record.model import RunRecord
from rtscope.stats.exposure import supported_interval_ns
from rtscope.stats.runcaveats import HOG_SHARE


@dataclass(frozen=True, slots=True)
class Headline:
    """The first thing to read where no deadline was given."""

    maximum: str
    """The number, with its unit."""
    where: str
    support: str
    """The rate of longer latencies that the time measured rules out."""


def headline_of(rows: Sequence[Row]) -> Headline:
    """Name the maximum, its place, and the rate that the time measured rules out."""
    row = _worst(rows)
    if row is None or row.summary is None:
        quiet = next((row for row in rows if row.threshold_ns is not None), None)
        if quiet is not None:
            return Headline(
                maximum=f"no latency of {us(quiet.threshold_ns)} or more",
                where="was found: the tool looks for no shorter one.",
                support=_support(quiet),
            )
        return Headline(
            maximum="no measurement",
            where="because no thread woke up.",
            support="",
        )
    return Headline(
        maximum=row.maximum,
        where=f"was the longest {row.measured.word}: {_place(row)}.",
        support=_support(row),
    )


def _worst(rows: Sequence[Row]) -> Row | None:
    measured = [row for row in rows if row.summary is not None]
    return max(measured, key=_max_ns, default=None)


def _max_ns(row: Row) -> int:
    return row.summary.max_ns if row.summary else 0


def _place(row: Row) -> str:
    record = row.worst_run
    thread = max(record.result.threads, key=lambda t: t.max_ns or 0)
    place = f"load {row.load}"
    if row.variant:
        place += f", {row.variant}"
    if thread.cpu is not None:
        place += f", CPU {thread.cpu}"
    if thread.worst and _is_from_start(thread):
        into_run_ns = thread.worst[0].expiry_ns - record.result.start_ns
        place += f", {max(into_run_ns, 0) / NS_PER_S:,.1f} s into the run"
    if row.runs > 1:
        several = len({r.run.seed for r in row.records}) > 1
        run = f"seed {record.run.seed}" if several else ""
        place += f" ({run or f'repetition {record.run.repetition}'})"
    return place


def _is_from_start(thread: ThreadResult) -> bool:
    """Whether the times of a thread count from the start of the run."""
    return thread.foreign is None or thread.foreign.times_from_start


def _support(row: Row) -> str:
    if row.gravest is Effect.INVALID:
        return "No conclusion: the run is not valid, see the caveats."
    found_none = row.threshold_ns is not None
    if not row.counts and not found_none:
        return f"No rate of longer ones: {row.not_counted}."
    row = comparing_row(row) if row.left_out and not found_none else row
    observed_ns = row.seeds.observed_ns if row.seeds else row.observed_ns
    if observed_ns is None:
        return (
            f"Under load {row.name}, in a run of unknown length: no rate of longer "
            "ones. Name the length with rtscope import --duration."
        )
    supported = duration(supported_interval_ns(0, observed_ns))
    weaker = " Caveats may weaken this." if row.gravest is Effect.LIMIT else ""
    seeds = len({record.run.seed for record in row.records})
    over = f" over {seeds} seeds" if seeds > 1 else ""
    if row.seeds and row.seeds.trajectories < seeds:
        over += (
            f", of which {row.seeds.trajectories} are independent (others share the "
            "worst wake-ups and add no time)"
        )
    found = "Longest" if row.summary else "None"
    longer = "longer" if row.summary else "such"
    return (
        f"{found} in {duration(observed_ns)}"
        f"{' of virtual time' if row.virtual else ''} under load {row.name}{over}. "
        f"At 95 % confidence, {longer} ones occur less than once per {supported} "
        f"under this load.{weaker}"
    )


def findings_of(rows: Sequence[Row], *, worse_where: str) -> tuple[str, ...]:
    """Return the findings, the worst first; `worse_where` compares two variants."""
    return tuple(
        sentence
        for sentences in (
            _determinism(rows),
            _invalid(rows),
            _not_counted(rows),
            _skipped(rows),
            (worse_where,) if worse_where else (),
            _worst_load(rows),
            _hogs(rows),
            _unmeasured(rows),
            _throughput(rows),
        )
        for sentence in sentences
    )


def _determinism(rows: Sequence[Row]) -> Iterator[str]:
    broken = [row.name for row in rows if row.contradicted]
    if broken:
        yield (
            f"DETERMINISM FAILURE: equal inputs gave different results under "
            f"{enumeration(broken)}: an input outside the record reached the virtual "
            "board."
        )


def _invalid(rows: Sequence[Row]) -> Iterator[str]:
    names = [row.name for row in rows if row.gravest is Effect.INVALID]
    if names:
        yield f"The numbers of {enumeration(names)} are not valid: see the caveats."


def _not_counted(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.left_out and row.gravest is not Effect.INVALID and row.summary:
            yield f"{capital(row.not_counted)}: no comparison and no rate has them."


def _skipped(rows: Sequence[Row]) -> Iterator[str]:
    late = {
        r.name: r.summary.missed_periods
        for r in rows
        if r.summary and r.summary.missed_periods
    }
    if late:
        most = max(late, key=late.__getitem__)
        (whole,) = {row.measured.whole for row in rows if row.name == most}
        where = f"{', most' if len(late) > 1 else ''} under {most}"
        yield (
            f"{plural(sum(late.values()), 'missed period')}{where}: {whole}. "
            "Averages and percentiles leave missed periods out."
        )


def _worst_load(rows: Sequence[Row]) -> Iterator[str]:
    for variant in dict.fromkeys(row.variant for row in rows):
        same = [row for row in rows if row.variant == variant]
        worst = _worst(same)
        idle = next((row for row in same if row.load == "idle" and row.summary), None)
        if worst is None or idle is None or len(same) < 2:
            continue
        on = f" on {variant}" if variant else ""
        if worst.load == "idle":
            yield f"No load has a higher maximum than the idle machine{on}."
        else:
            yield (
                f"The worst load{on} is {worst.load}: its maximum is "
                f"{times(_max_ns(worst) / max(_max_ns(idle), 1))} that of the idle "
                f"machine ({idle.maximum})."
            )


def _hogs(rows: Sequence[Row]) -> Iterator[str]:
    shares: dict[str, list[tuple[float, int, str]]] = {}
    devices: dict[str, str] = {}
    for row in rows:
        for record in row.counted:
            machine = record.result.machine
            for thread in machine.kernel_threads if machine else ():
                share = kernel_thread_share(thread, record)
                if thread.kind == "irq" and share > HOG_SHARE:
                    of_thread = shares.setdefault(thread.name, [])
                    of_thread.append((share, thread.cpu, row.load))
                    devices.setdefault(thread.name, device_of(thread.name, record))
    for name, of_name in sorted(shares.items(), key=lambda item: -max(item[1])[0]):
        share, cpu, load = max(of_name)
        more = len({load for *_, load in of_name}) - 1
        others = f", and over {HOG_SHARE:.0%} under {plural(more, 'other load')}"
        yield (
            f"Interrupt thread {name}{devices[name]} used {share:.0%} of CPU {cpu} "
            f"under {load}"
            f"{others if more else ''}: that CPU is not free for real-time work."
        )


def device_of(thread: str, record: RunRecord) -> str:
    """Return the interrupt of a thread as the kernel lists it; empty if it does not."""
    number = re.match(r"irq/(\d+)-", thread)
    machine = record.result.machine
    names = [
        delta.name
        for delta in (machine.interrupts if machine else ())
        if number and delta.id == number[1] and delta.name
    ]
    return f" ({cut(names[0], 80)})" if names else ""


def kernel_thread_share(thread: KernelThread, record: RunRecord) -> float:
    """Return the share of one CPU that a thread used during the run."""
    return thread.cpu_time_ns / max(record.result.end_ns - record.result.start_ns, 1)


def _unmeasured(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.threshold_ns is not None:
            yield (
                f"No latency of {us(row.threshold_ns)} or more was found under "
                f"{row.name}: a result, for the tool looks for no shorter one."
            )
    silent = [r.name for r in rows if r.summary is None and r.threshold_ns is None]
    if silent:
        yield f"Nothing was measured under {enumeration(silent)}."


def _throughput(rows: Sequence[Row]) -> Iterator[str]:
    variants = list(dict.fromkeys(row.variant for row in rows))
    if len(variants) == 2:
        yield from _throughput_change(rows, variants)
    if len(variants) > 1:
        return
    rates = [
        f"{row.name} {count(row.bogo_ops_per_s)}"
        for row in rows
        if row.bogo_ops_per_s is not None
    ]
    if rates:
        yield (
            "Throughput during the measurement, in bogo operations per second: "
            f"{enumeration(rates)}."
        )


def _throughput_change(rows: Sequence[Row], variants: Sequence[str]) -> Iterator[str]:
    rates = {(r.load, r.variant): r.bogo_ops_per_s for r in rows}
    changes = []
    for load in dict.fromkeys(row.load for row in rows):
        before, after = (rates.get((load, variant)) for variant in variants)
        if before and after is not None:
            changes.append(f"{load} {after / before - 1:+.0%}")
    if changes:
        yield (
            f"Throughput of {variants[1]} relative to {variants[0]}: "
            f"{enumeration(changes)}."
        )
