"""
A published table compared with records: load by load, kernel kind by kind.

The two are never compared by a test: one run of an unknown sample stands on one side.
It names the worse kernel of each side, and the differences between the sides.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rtscope.host.errors import UsageError
from rtscope.host.escape import all_printable
from rtscope.host.units import count, plural
from rtscope.host.version import __version__
from rtscope.present.document import Note
from rtscope.present.model.rows import (
    Row,
    machines_of,
    merged_caveats,
    merged_row,
)
from rtscope.present.words import (
    about_equal,
    capital,
    command_line,
    duration,
    enumeration,
    micro,
    times,
    us,
    virtual_word,
)
from rtscope.record.model import RunRecord
from rtscope.record.published import Figures, KernelKind, Published
from rtscope.stats.exposure import supported_interval_ns

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MeasuredSide:
    """Our side of one load: a row of each kernel kind that was measured."""

    rows: Mapping[KernelKind, Row]
    ratio: float | None
    """Mainline maximum over that of PREEMPT_RT."""


@dataclass(frozen=True, slots=True)
class PublishedSide:
    """The published side of one load."""

    figures: Mapping[KernelKind, Figures]
    ratio: float | None


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One load on both sides."""

    load: str
    published: PublishedSide
    measured: MeasuredSide
    sentence: str


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """A published table compared with records, in the order in which it is read."""

    title: str
    table: Published
    machine: str
    kernels: Mapping[KernelKind, str]
    """Ours, by name."""
    summary: str
    rows: tuple[PublishedRow, ...]
    not_measured: tuple[str, ...]
    """Loads of the table that no record has."""
    not_published: tuple[str, ...]
    """Loads of the records that the table has not."""
    support: tuple[str, ...]
    """The conclusions that each sample supports."""
    differences: tuple[str, ...]
    notes: tuple[str, ...]
    """Inconsistencies in the table."""
    caveats: tuple[Note, ...]
    virtual: str
    made_by: str


def compare_with_published(
    records: Sequence[RunRecord], table: Published
) -> PublishedComparison:
    """
    Compare a published table with records.

    Raises UsageError if none of them has a load and a kernel kind of the table, or if
    two kernels of one kind are among them.
    """
    records = all_printable(tuple(records))
    by_kind = _by_kind(records)
    loads = [load for load in table.loads if _ours(records, load, table)]
    if not loads or not set(by_kind) & set(table.kernels):
        raise UsageError(_nothing(records, by_kind, table))
    rows = tuple(_row(load, by_kind, table) for load in loads)
    matched = {r.run.load for load in loads for r in _ours(records, load, table)}
    virtual = virtual_word(records)
    machine = enumeration(list(dict.fromkeys(m.name for m in machines_of(records))))
    return PublishedComparison(
        title=f"{table.machine} (published) compared with {machine} (measured)",
        table=table,
        machine=machine,
        kernels={kind: runs[0].kernel_name for kind, runs in by_kind.items()},
        summary=_summary(rows),
        rows=rows,
        not_measured=tuple(load for load in table.loads if load not in loads),
        not_published=tuple(
            dict.fromkeys(r.run.load for r in records if r.run.load not in matched)
        ),
        support=tuple(_support(table, rows, virtual)),
        differences=tuple(_differences(records, table)),
        notes=tuple(micro(note.says) for note in table.notes),
        caveats=merged_caveats(records),
        virtual=virtual,
        made_by=f"rtscope {__version__}",
    )


def _by_kind(records: Sequence[RunRecord]) -> dict[KernelKind, list[RunRecord]]:
    by_kind: dict[KernelKind, list[RunRecord]] = {}
    for record in records:
        fact = record.facts_before.get("preempt_rt")
        if fact is not None and fact.value is not None:
            kind = KernelKind.RT if fact.value else KernelKind.MAINLINE
            by_kind.setdefault(kind, []).append(record)
    for kind, runs in by_kind.items():
        names = list(dict.fromkeys((r.run.target, r.kernel_name) for r in runs))
        if len(names) > 1:
            raise UsageError(
                f"the {_model(kind)} column has records of {len(names)} machines or "
                "kernels "
                f"({', '.join(f'{kernel} on {target}' for target, kernel in names)}): "
                "name records of one"
            )
    return dict(
        sorted(by_kind.items(), key=lambda item: list(KernelKind).index(item[0]))
    )


def _model(kind: KernelKind) -> str:
    return "PREEMPT_RT" if kind is KernelKind.RT else "mainline"


def _ours(records: Sequence[RunRecord], load: str, table: Published) -> list[RunRecord]:
    """Return the runs under a published load: of its name, or of its very command."""
    command = tuple(shlex.split(table.loads[load]))
    return [
        r for r in records if r.run.load == load or (command and r.load.argv == command)
    ]


def _nothing(
    records: Sequence[RunRecord],
    by_kind: Mapping[KernelKind, Sequence[RunRecord]],
    table: Published,
) -> str:
    if not by_kind:
        return (
            "the records do not show whether their kernel is PREEMPT_RT, so they match "
            f"no column of {table.name}; rtscope report gives the reason at the fact "
            "preempt_rt"
        )
    if not set(by_kind) & set(table.kernels):
        have = enumeration([_model(kind) for kind in by_kind])
        wants = enumeration([_model(kind) for kind in table.kernels])
        return f"{table.name} has only {wants}, the records only {have}"
    ours = enumeration(list(dict.fromkeys(r.run.load for r in records)))
    theirs = ", ".join(
        f"{load} ({command})" if command else load
        for load, command in table.loads.items()
    )
    return (
        f"{table.name} and the records have no load in common: it has {theirs}, they "
        f"have {ours}; measure with --load of that name, or --load custom --command "
        "with that command"
    )


def _row(
    load: str, by_kind: Mapping[KernelKind, Sequence[RunRecord]], table: Published
) -> PublishedRow:
    rows = {
        kind: merged_row(same, variant=_model(kind), comparing=True)
        for kind, runs in by_kind.items()
        if (same := _ours(runs, load, table))
    }
    figures = {kind: f for (name, kind), f in table.rows.items() if name == load}
    published = PublishedSide(
        figures, _ratio({kind: f.max_ns for kind, f in figures.items()})
    )
    measured = MeasuredSide(
        rows,
        _ratio(
            {k: r.summary.max_ns for k, r in rows.items() if r.summary and r.counts}
        ),
    )
    whys = [row.not_counted for row in rows.values() if row.left_out]
    said = _sentence(published.ratio, measured.ratio)
    if whys:
        said = f"{said} {capital('; '.join(whys))}."
    return PublishedRow(load, published, measured, said)


def _ratio(maxima: Mapping[KernelKind, int]) -> float | None:
    if len(maxima) < 2:
        return None
    return maxima[KernelKind.MAINLINE] / max(maxima[KernelKind.RT], 1)


def _sentence(published: float | None, ours: float | None) -> str:
    """Name the worse kernel of each side; never claim that one confirms the other."""
    there, here = (
        "only one kernel" if ratio is None else _worse(ratio)
        for ratio in (published, ours)
    )
    return f"Published: {there}. Measured: {here}."


def _worse(ratio: float) -> str:
    if about_equal(ratio):
        return "about equal maxima"
    worse = KernelKind.MAINLINE if ratio > 1 else KernelKind.RT
    return f"{_model(worse)} worse, {times(max(ratio, 1 / ratio))}"


def _side(ratio: float) -> int:
    return 0 if about_equal(ratio) else 1 if ratio > 1 else -1


def _summary(rows: Sequence[PublishedRow]) -> str:
    both = [
        (row.load, _side(row.published.ratio), _side(row.measured.ratio))
        for row in rows
        if row.published.ratio is not None and row.measured.ratio is not None
    ]
    if not both:
        return (
            "One side has only one kind of kernel: there are no two ratios to compare."
        )
    same = [load for load, there, here in both if there == here]
    other = [load for load, there, here in both if there != here]
    parts = []
    if same:
        parts.append(
            f"the same kernel has the higher maximum on both sides under "
            f"{enumeration(same)}"
        )
    if other:
        parts.append(f"the two sides disagree under {enumeration(other)}")
    return f"{capital('; '.join(parts))}."


def _support(
    table: Published, rows: Sequence[PublishedRow], virtual: str
) -> Iterator[str]:
    cpus = table.cpus
    on = f" on each of {plural(cpus, 'CPU')}" if cpus else " on each CPU"
    yield (
        f"Published: one run of {duration(table.duration_ns)} per load and kernel, "
        f"{count(table.samples_per_cpu)} wake-ups{on} without missed periods "
        "(the tool did not count them). At 95 % confidence, latencies above a "
        "published maximum occur less than once per "
        f"{duration(supported_interval_ns(0, table.duration_ns))} under that load. "
        "Two runs of one kernel differ too: the ratio of two single runs alone shows "
        "no difference between kernels."
    )
    for kind in KernelKind:
        mine = [
            row.measured.rows[kind]
            for row in rows
            if kind in row.measured.rows and row.measured.rows[kind].counts
        ]
        if mine:
            yield _ours_supports(kind, mine, virtual)


def _ours_supports(kind: KernelKind, rows: Sequence[Row], virtual: str) -> str:
    runs = enumeration(sorted({str(r.runs) for r in rows}))
    spans = [r.observed_ns for r in rows]
    shortest_ns = None if None in spans else min(ns for ns in spans if ns is not None)
    counts = [r.summary.samples or 0 for r in rows if r.summary]
    skipped = sum(r.summary.missed_periods or 0 for r in rows if r.summary)
    unit = "trajectory" if virtual and runs == "1" else "run" if runs == "1" else "runs"
    worst = max((r.summary.max_ns for r in rows if r.summary), default=None)
    said = (
        f"Measured, {_model(kind)}: {runs} {unit} of {duration(shortest_ns)}"
        f"{' of virtual time' if virtual else ''} per load, at least "
        f"{count(min(counts, default=0))} samples, "
        f"{plural(skipped, 'missed period')} in all loads, maximum "
        f"{us(worst, virtual)}."
    )
    if shortest_ns is None:
        return f"{said} No rate of longer latencies: the length of a run is unknown."
    return (
        f"{said} At 95 % confidence, latencies above a load's maximum occur less than "
        f"once per {duration(supported_interval_ns(0, shortest_ns))} under that load."
    )


# --- differences between the two ------------------------------------------------------

_OURS_FROM = "--no-rand-seed"
"""Options from here on are about where and how long a load runs."""


def _differences(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    """Yield the differences of machine, kernel, load and way of measuring."""
    yield from _virtual(records)
    yield from _difference(
        "Machine", table.machine, [m.name for m in machines_of(records)]
    )
    theirs = enumeration([f"{k.release} ({k.model})" for k in table.kernels.values()])
    yield from _difference("Kernels", theirs, [one.kernel_name for one in records])
    runs = [r.run for r in records]
    intervals = [run.interval_ns for run in runs]
    yield from _difference("Interval", table.interval_ns, intervals, _known)
    lengths = [run.duration_ns for run in runs]
    longer = "published" if table.duration_ns > max(lengths) else "longer"
    for said in _difference("Duration of a run", table.duration_ns, lengths, _known):
        yield (
            f"{said} A longer run tends to a higher maximum: the {longer} run is at a "
            "disadvantage."
        )
    if table.cpus is None:
        yield "The number of CPUs was not published."
    else:
        cpus = [len(r.result.threads) for r in records]
        yield from _difference("Number of CPUs", table.cpus, cpus)
    policies = [f"{run.policy} {run.priority or ''}".strip() for run in runs]
    yield from _difference("Policy", f"{table.policy} {table.priority}", policies)
    yield from _loads(records, table)
    yield from _instrument(records, table)


def _known(ns: int) -> str:
    return duration(ns) if ns else "unknown"


def _difference(
    what: str, theirs: T, ours: Iterable[T], write: Callable[[T], str] = str
) -> Iterator[str]:
    """Yield a published value and ours, each once; nothing if all are equal."""
    here = list(dict.fromkeys(ours))
    if here != [theirs]:
        measured = enumeration([write(one) for one in here])
        yield f"{what}: published {write(theirs)}, measured {measured}."


def _virtual(records: Sequence[RunRecord]) -> Iterator[str]:
    boards = {v.board: v for r in records if (v := r.virtual)}
    for name, v in boards.items():
        yield (
            f"Measured on the virtual board {name}: it counts {v.mips:g} million "
            "instructions per virtual second and models no caches, buses or firmware. "
            "Its virtual µs are not µs of the published machine: compare the ratios, "
            "not the latencies."
        )


def _loads(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    added: dict[str, list[str]] = {}
    other = []
    for load, command in table.loads.items():
        ours = next((r.load.argv for r in records if r.run.load == load), ())
        theirs = shlex.split(command)
        mine = _own_options(ours)
        if not theirs or not mine or mine == theirs:
            continue
        if mine[: len(theirs)] == theirs:
            added.setdefault(command_line(mine[len(theirs) :]), []).append(load)
        else:
            other.append(f"{load}: published {command}, measured {command_line(mine)}")
    said = [
        f"rtscope adds {options} under {enumeration(loads)}"
        for options, loads in added.items()
    ]
    if said or other:
        yield f"Loads: {'; '.join([*said, *other])}."


def _own_options(argv: Sequence[str]) -> list[str]:
    """Return a load's command up to the options that rtscope gives every load."""
    end = argv.index(_OURS_FROM) if _OURS_FROM in argv else len(argv)
    return list(argv[:end])


def _instrument(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    tools = {r.imported.tool for r in records if r.imported}
    if tools:
        ours = "" if all(r.imported for r in records) else " and rtscope"
        yield (
            f"Instrument: published {table.tool}, measured "
            f"{enumeration(sorted(tools))}{ours}. The published histogram ends at "
            f"{duration(table.histogram_end_ns)}."
        )
        return
    held = {r.result.dma_latency_held for r in records}
    idle = "" if held == {True} else ", which disables idle states; rtscope did not"
    skipped = sum(t.missed_periods or 0 for r in records for t in r.result.threads)
    counted = f" ({skipped:,})" if skipped else ""
    yield (
        f"Instrument: {table.tool}{idle}. rtscope counts missed periods{counted}; the "
        "published tool does not. The published histogram ends at "
        f"{duration(table.histogram_end_ns)}; rtscope's has every latency."
    )
