"""
A published table beside a measurement of ours: load by load, kernel kind by kind.

The two are never compared by a test: one run of an unknown sample stands on one side.
What is said is who is worse where on each side, and what keeps the two apart.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtscope import __version__
from rtscope.errors import UsageError
from rtscope.published import Figures, Kind, Published
from rtscope.record.model import RunRecord
from rtscope.report.model.caveats import MergedCaveat, merged_caveats
from rtscope.report.model.differences import differences
from rtscope.report.model.machines import machines_of
from rtscope.report.model.rows import Row, kernel_of, merged_row
from rtscope.report.model.sidebyside import ABOUT_EQUAL
from rtscope.report.words import (
    count,
    duration,
    enumeration,
    micro,
    plural,
    times,
    us,
    virtual_word,
)
from rtscope.stats.exposure import supported_interval_ns


@dataclass(frozen=True, slots=True)
class Ours:
    """Our side of one load: a row of each kernel kind that was measured."""

    rows: Mapping[Kind, Row]
    ratio: float | None
    """Mainline maximum over that of PREEMPT_RT."""


@dataclass(frozen=True, slots=True)
class Theirs:
    """The published side of one load."""

    figures: Mapping[Kind, Figures]
    ratio: float | None


@dataclass(frozen=True, slots=True)
class BesideRow:
    """One load on both sides."""

    load: str
    published: Theirs
    ours: Ours
    sentence: str


@dataclass(frozen=True, slots=True)
class Beside:
    """A published table and ours, in the order in which they are read."""

    title: str
    table: Published
    machine: str
    kernels: Mapping[Kind, str]
    """Ours, by name."""
    summary: str
    rows: tuple[BesideRow, ...]
    not_measured: tuple[str, ...]
    """Loads of the table that we have not."""
    not_published: tuple[str, ...]
    """Loads of ours that the table has not."""
    support: tuple[str, ...]
    """What each sample supports."""
    differences: tuple[str, ...]
    notes: tuple[str, ...]
    """What does not add up in the table."""
    caveats: tuple[MergedCaveat, ...]
    virtual: str
    made_by: str


def set_beside(records: Sequence[RunRecord], table: Published) -> Beside:
    """
    Set a published table beside records of ours.

    Raises UsageError if none of them has a load and a kernel kind of the table, or if
    two kernels of one kind are among them.
    """
    by_kind = _by_kind(records)
    loads = [load for load in table.loads if _ours(records, load, table)]
    if not loads or not set(by_kind) & set(table.kernels):
        raise UsageError(_nothing(records, by_kind, table))
    rows = tuple(_row(load, by_kind, table) for load in loads)
    matched = {r.run.load for load in loads for r in _ours(records, load, table)}
    virtual = virtual_word(records)
    machine = enumeration(list(dict.fromkeys(m.name for m in machines_of(records))))
    return Beside(
        title=f"{table.machine} as published, and {machine} as measured",
        table=table,
        machine=machine,
        kernels={kind: kernel_of(runs[0]) for kind, runs in by_kind.items()},
        summary=_summary(rows),
        rows=rows,
        not_measured=tuple(load for load in table.loads if load not in loads),
        not_published=tuple(
            dict.fromkeys(r.run.load for r in records if r.run.load not in matched)
        ),
        support=tuple(_support(table, rows, virtual)),
        differences=differences(records, table),
        notes=tuple(micro(note.says) for note in table.notes),
        caveats=merged_caveats(records),
        virtual=virtual,
        made_by=f"rtscope {__version__}",
    )


def _by_kind(records: Sequence[RunRecord]) -> dict[Kind, list[RunRecord]]:
    found: dict[Kind, list[RunRecord]] = {}
    for record in records:
        fact = record.facts_before.get("preempt_rt")
        if fact is not None and fact.value is not None:
            kind = Kind.RT if fact.value else Kind.MAINLINE
            found.setdefault(kind, []).append(record)
    for kind, runs in found.items():
        names = list(dict.fromkeys((r.run.target, kernel_of(r)) for r in runs))
        if len(names) > 1:
            raise UsageError(
                f"{len(names)} machines or kernels for the one {_model(kind)} column "
                f"({', '.join(f'{kernel} on {target}' for target, kernel in names)}): "
                "name records of one"
            )
    return dict(sorted(found.items(), key=lambda item: list(Kind).index(item[0])))


def _model(kind: Kind) -> str:
    return "PREEMPT_RT" if kind is Kind.RT else "mainline"


def _ours(records: Sequence[RunRecord], load: str, table: Published) -> list[RunRecord]:
    """Return the runs under a published load: of its name, or of its very command."""
    command = tuple(shlex.split(table.loads[load]))
    return [
        r for r in records if r.run.load == load or (command and r.load.argv == command)
    ]


def _nothing(
    records: Sequence[RunRecord],
    by_kind: Mapping[Kind, Sequence[RunRecord]],
    table: Published,
) -> str:
    if not by_kind:
        return (
            "the records do not tell whether their kernel is PREEMPT_RT, so no column "
            f"of {table.name} is theirs; rtscope report shows why under preempt_rt"
        )
    if not set(by_kind) & set(table.kernels):
        have = enumeration([_model(kind) for kind in by_kind])
        wants = enumeration([_model(kind) for kind in table.kernels])
        return f"{table.name} has {wants} only, the records {have} only"
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
    load: str, by_kind: Mapping[Kind, Sequence[RunRecord]], table: Published
) -> BesideRow:
    rows = {
        kind: merged_row(same, variant=_model(kind))
        for kind, runs in by_kind.items()
        if (same := _ours(runs, load, table))
    }
    figures = {kind: f for (name, kind), f in table.rows.items() if name == load}
    published = Theirs(figures, _ratio({kind: f.max_ns for kind, f in figures.items()}))
    ours = Ours(
        rows,
        _ratio({kind: r.summary.max_ns for kind, r in rows.items() if r.summary}),
    )
    return BesideRow(load, published, ours, _sentence(published.ratio, ours.ratio))


def _ratio(maxima: Mapping[Kind, int]) -> float | None:
    if len(maxima) < 2:
        return None
    return maxima[Kind.MAINLINE] / max(maxima[Kind.RT], 1)


def _sentence(published: float | None, ours: float | None) -> str:
    """Say who is worse on each side; never that one side confirms the other."""
    there, here = (
        "only one kernel" if ratio is None else _worse(ratio)
        for ratio in (published, ours)
    )
    return f"Published: {there}. Ours: {here}."


def _worse(ratio: float) -> str:
    if 1 / ABOUT_EQUAL <= ratio <= ABOUT_EQUAL:
        return "about equal maxima"
    worse = Kind.MAINLINE if ratio > 1 else Kind.RT
    return f"{_model(worse)} worse, {times(max(ratio, 1 / ratio))}"


def _side(ratio: float) -> int:
    return 0 if 1 / ABOUT_EQUAL <= ratio <= ABOUT_EQUAL else 1 if ratio > 1 else -1


def _summary(rows: Sequence[BesideRow]) -> str:
    both = [
        (row.load, _side(row.published.ratio), _side(row.ours.ratio))
        for row in rows
        if row.published.ratio is not None and row.ours.ratio is not None
    ]
    if not both:
        return (
            "Only one kernel kind is on one of the sides: there is no ratio to set "
            "beside the other."
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
        parts.append(f"the sides do not point the same way under {enumeration(other)}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _support(
    table: Published, rows: Sequence[BesideRow], virtual: str
) -> Iterator[str]:
    cpus = table.cpus
    on = f" on each of {plural(cpus, 'CPU')}" if cpus else " on each CPU"
    yield (
        f"Published: one run of {duration(table.duration_ns)} per load and kernel, "
        f"{count(table.samples_per_cpu)} wake-ups{on} if none was skipped (skipped "
        "ones were not counted). A wake-up later than a published maximum is "
        "supported to come less than once in "
        f"{duration(supported_interval_ns(0, table.duration_ns))} under that load "
        "(95 %). Of two runs of one kernel one has the larger maximum: the ratio of "
        "two single runs alone shows no difference of kernels."
    )
    for kind in Kind:
        mine = [row.ours.rows[kind] for row in rows if kind in row.ours.rows]
        if mine:
            yield _ours_supports(kind, mine, virtual)


def _ours_supports(kind: Kind, rows: Sequence[Row], virtual: str) -> str:
    runs = enumeration(sorted({str(r.runs) for r in rows}))
    spans = sorted({r.observed_ns for r in rows})
    samples = [r.summary.samples for r in rows if r.summary]
    skipped = sum(r.summary.skipped for r in rows if r.summary)
    unit = "trajectory" if virtual and runs == "1" else "run" if runs == "1" else "runs"
    worst = max((r.summary.max_ns for r in rows if r.summary), default=None)
    return (
        f"Ours, {_model(kind)}: {runs} {unit} of {duration(spans[0])}"
        f"{' of virtual time' if virtual else ''} per load, at least "
        f"{count(min(samples, default=0))} samples, {count(skipped)} skipped in all "
        f"loads, worst {us(worst, virtual)}. A later one than a load's maximum is "
        "supported to come less than once in "
        f"{duration(supported_interval_ns(0, spans[0]))} under that load (95 %)."
    )
