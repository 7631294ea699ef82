"""
What the figures say in sentences, the worst first.

Nothing here goes beyond what was measured: a ratio of two maxima is said as such, and
that it is no test.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.caveats.catalogue import Effect, gravest_first, kind_of
from rtscope.contract import KernelThread
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.model.rows import Cell, Row
from rtscope.report.words import (
    count,
    duration,
    enumeration,
    plural,
    times,
    us,
    virtual_word,
)
from rtscope.stats.determinism import caveats_among, contradictions
from rtscope.stats.exposure import supported_interval_ns
from rtscope.stats.lint import HOG_SHARE
from rtscope.stats.summary import Summary
from rtscope.units import NS_PER_S, format_us


@dataclass(frozen=True, slots=True)
class Headline:
    """The first thing to read where no deadline was given."""

    maximum: str
    """The number, with its unit."""
    where: str
    support: str
    """What the exposure supports, and that it supports no more."""


def headline_of(cells: Sequence[Cell], rows: Sequence[Row]) -> Headline:
    """Say what the maximum is, where it happened, and what that supports."""
    worst = _worst(rows)
    if worst is None:
        return Headline(
            maximum="no measurement",
            where="No thread woke up in time to be measured.",
            support="",
        )
    row, summary = worst
    cell = cells[rows.index(row)]
    return Headline(
        maximum=f"{format_us(summary.max_ns)} {virtual_word(cell.records)}µs",
        where=f"was the latest wake-up: {_place(cell)}.",
        support=_support(cell, row, max_ns=summary.max_ns),
    )


def _support(cell: Cell, row: Row, *, max_ns: int) -> str:
    gravest = _gravest(cell)
    if gravest is Effect.INVALID:
        return "It supports nothing: the run is not valid, see the caveats."
    supported = duration(supported_interval_ns(0, row.observed_ns))
    virtual = virtual_word(cell.counted)
    doubt = " At most: see the caveats." if gravest is Effect.CAP else ""
    seeds = len({record.run.seed for record in cell.records})
    over = f" over {seeds} seeds" if seeds > 1 else ""
    return (
        f"{duration(row.observed_ns)}{' (virtual time)' if virtual else ''} of load "
        f"{row.name}{over} without a later one "
        f"supports that a wake-up later than {us(max_ns, virtual)} comes less than "
        f"once in {supported} "
        f"under this load (95 %), and no more than that.{doubt}"
    )


def _gravest(cell: Cell) -> Effect | None:
    among = caveats_among(cell.records)
    raised = gravest_first(c for raised in among for c in raised)
    return kind_of(raised[0]).effect if raised else None


def findings_of(
    cells: Sequence[Cell], rows: Sequence[Row], *, worse_where: str
) -> tuple[str, ...]:
    """Return the findings, the worst first; `worse_where` compares two variants."""
    return tuple(
        sentence
        for found in (
            _determinism(cells, rows),
            _invalid(cells, rows),
            _skipped(rows),
            (worse_where,) if worse_where else (),
            _worst_load(rows, virtual_word(r for c in cells for r in c.counted)),
            _hogs(cells),
            _unmeasured(rows),
            _throughput(rows),
        )
        for sentence in found
    )


def worst_run(cell: Cell) -> RunRecord:
    """Return the run of a cell that holds its maximum."""
    return max(
        cell.counted,
        key=lambda r: max((t.max_ns or 0 for t in r.result.threads), default=0),
    )


def kernel_thread_share(thread: KernelThread, record: RunRecord) -> float:
    """Return the share of one CPU that a thread used during the run."""
    return thread.cpu_time_ns / max(record.result.end_ns - record.result.start_ns, 1)


def _worst(rows: Sequence[Row]) -> tuple[Row, Summary] | None:
    measured = [(row, row.summary) for row in rows if row.summary is not None]
    return max(measured, key=lambda pair: pair[1].max_ns, default=None)


def _place(cell: Cell) -> str:
    record = worst_run(cell)
    thread = max(record.result.threads, key=lambda t: t.max_ns or 0)
    place = f"load {cell.load}"
    if cell.variant:
        place += f", {cell.variant}"
    if thread.cpu is not None:
        place += f", CPU {thread.cpu}"
    if thread.worst:
        into_run_ns = thread.worst[0].expiry_ns - record.result.start_ns
        place += f", {max(into_run_ns, 0) / NS_PER_S:,.1f} s into the run"
    if len(cell.counted) > 1:
        place += f" ({_which(cell, record)})"
    return place


def _which(cell: Cell, record: RunRecord) -> str:
    """Tell the run from the others of its cell."""
    if len({r.run.seed for r in cell.records}) > 1:
        return f"seed {record.run.seed}"
    return f"repetition {record.run.repetition}"


def _determinism(cells: Sequence[Cell], rows: Sequence[Row]) -> Iterator[str]:
    broken = [
        row.name
        for cell, row in zip(cells, rows, strict=True)
        if contradictions(cell.records)
    ]
    if broken:
        yield (
            f"DETERMINISM FAILURE: equal inputs gave different results under "
            f"{enumeration(broken)}; something reached the virtual board that should "
            "not."
        )


def _invalid(cells: Sequence[Cell], rows: Sequence[Row]) -> Iterator[str]:
    names = [
        row.name
        for cell, row in zip(cells, rows, strict=True)
        if _gravest(cell) is Effect.INVALID
    ]
    if names:
        yield f"The figures of {enumeration(names)} are not valid: see the caveats."


def _skipped(rows: Sequence[Row]) -> Iterator[str]:
    late = [row for row in rows if row.summary is not None and row.summary.skipped]
    if not late:
        return
    total = sum(row.summary.skipped for row in late if row.summary is not None)
    most = max(late, key=lambda row: row.summary.skipped if row.summary else 0)
    where = f", most under {most.name}" if len(late) > 1 else f", under {most.name}"
    yield (
        f"{plural(total, 'activation')} did not take place, because a thread was a "
        f"whole interval late{where}; averages and percentiles leave them out."
    )


def _worst_load(rows: Sequence[Row], virtual: str) -> Iterator[str]:
    for variant in dict.fromkeys(row.variant for row in rows):
        same = [row for row in rows if row.variant == variant]
        worst = _worst(same)
        idle = next(
            (r.summary for r in same if r.load == "idle" and r.summary is not None),
            None,
        )
        if worst is None or idle is None or len(same) < 2:
            continue
        on = f" on {variant}" if variant else ""
        row, summary = worst
        if row.load == "idle":
            yield f"No load has a higher maximum than the idle machine{on}."
        else:
            yield (
                f"The worst load{on} is {row.load}: its maximum is "
                f"{times(summary.max_ns / max(idle.max_ns, 1))} that of the idle "
                f"machine ({us(idle.max_ns, virtual)})."
            )


def _hogs(cells: Sequence[Cell]) -> Iterator[str]:
    shares: dict[str, list[tuple[float, int, str]]] = {}
    for cell in cells:
        for record in cell.counted:
            for thread in record.result.machine.kernel_threads:
                share = kernel_thread_share(thread, record)
                if thread.kind == "irq" and share > HOG_SHARE:
                    shares.setdefault(printable(thread.name), []).append(
                        (share, thread.cpu, cell.load)
                    )
    for name, found in sorted(shares.items(), key=lambda item: -max(item[1])[0]):
        share, cpu, load = max(found)
        more = len({load for *_, load in found}) - 1
        others = f", and over {HOG_SHARE:.0%} under {plural(more, 'other load')}"
        yield (
            f"Interrupt thread {name} used {share:.0%} of CPU {cpu} under {load}"
            f"{others if more else ''}: that CPU is not free for real-time work."
        )


def _unmeasured(rows: Sequence[Row]) -> Iterator[str]:
    silent = [row.name for row in rows if row.summary is None]
    if silent:
        yield f"Nothing was measured under {enumeration(silent)}."


def _throughput(rows: Sequence[Row]) -> Iterator[str]:
    variants = list(dict.fromkeys(row.variant for row in rows))
    if len(variants) == 2:
        yield from _throughput_change(rows, variants)
    if len(variants) > 1:
        return
    told = [
        f"{row.name} {count(row.total_throughput)}"
        for row in rows
        if row.total_throughput is not None
    ]
    if told:
        yield (
            "Throughput beside these latencies, in bogo operations per second: "
            f"{enumeration(told)}."
        )


def _throughput_change(rows: Sequence[Row], variants: Sequence[str]) -> Iterator[str]:
    rates = {(r.load, r.variant): r.total_throughput for r in rows}
    changes = []
    for load in dict.fromkeys(row.load for row in rows):
        before, after = (rates.get((load, variant)) for variant in variants)
        if before and after is not None:
            changes.append(f"{load} {after / before - 1:+.0%}")
    if changes:
        yield (
            f"Throughput of {variants[1]} against {variants[0]}: "
            f"{enumeration(changes)}."
        )
