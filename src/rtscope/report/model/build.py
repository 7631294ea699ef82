"""
The model of a report: everything that a renderer prints is decided here and below.

Pure: records in, frozen values out. Text that came from a machine has been through
`escape.printable` when it is in the model. Times are ns; renderers only write them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope import __version__
from rtscope.errors import UsageError
from rtscope.record.explanation import Explained, bounds_by_digest
from rtscope.record.model import RunRecord
from rtscope.report.model.caveats import MergedCaveat, merged_caveats
from rtscope.report.model.definitions import Definition, definitions
from rtscope.report.model.explained import ExplainedBeside, explained_beside
from rtscope.report.model.findings import Headline, findings_of, headline_of
from rtscope.report.model.machines import Machine, machines_of
from rtscope.report.model.provenance import Provenance, provenance_of
from rtscope.report.model.rows import Cell, Row, cells_of, row_of, variant_kind
from rtscope.report.model.sections import Section, section_of
from rtscope.report.model.seedvariation import SeedRow, seed_rows
from rtscope.report.model.series import Chart, Group, Mark, cpu_colours
from rtscope.report.model.sidebyside import SideBySide, side_by_side
from rtscope.report.model.verdicts import Verdict, verdict_of
from rtscope.report.words import command_line, percentile_ns, virtual_word
from rtscope.stats.verdict import Claim


@dataclass(frozen=True, slots=True)
class Model:
    """A report, in the order in which it is read."""

    title: str
    subtitle: str
    headline: Headline
    verdict: Verdict | None
    findings: tuple[str, ...]
    caveats: tuple[MergedCaveat, ...]
    variant_kind: str
    """What tells rows of one load apart: `kernel`, `machine`…; empty if nothing."""
    rows: tuple[Row, ...]
    pair: SideBySide | None
    """The two variants side by side, if there are two."""
    comparison: Chart | None
    seeds: tuple[SeedRow, ...]
    """How the maxima vary over the seeds of a virtual board."""
    sections: tuple[Section, ...]
    explained: tuple[ExplainedBeside, ...]
    """The runs whose explanation lies beside the record."""
    machines: tuple[Machine, ...]
    commands: tuple[str, ...]
    definitions: tuple[Definition, ...]
    provenance: tuple[Provenance, ...]
    deadline_ns: int | None
    made_by: str
    virtual: str
    """`virtual ` if a time in it is a virtual board's, to stand before units."""

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, for those who want them as files."""
        first = () if self.comparison is None else (self.comparison,)
        both = () if self.pair is None else self.pair.charts
        return (*first, *both, *(chart for s in self.sections for chart in s.charts))


def build_model(
    records: Sequence[RunRecord],
    *,
    deadline_ns: int | None = None,
    claim: Claim | None = None,
    min_boots: int = 1,
    explained: Mapping[str, Explained] | None = None,
) -> Model:
    """
    Decide what a report of these records says; a deadline adds a verdict.

    `explained` is what lies beside the records, by the digests of their results.

    Raises UsageError without records.
    """
    if not records:
        raise UsageError("no run in this record: nothing to report")
    cells = cells_of(records)
    rows = tuple(row_of(cell) for cell in cells)
    colours = cpu_colours([t for r in records for t in r.result.threads])
    machines = machines_of(records)
    headline = headline_of(cells, rows)
    pair = _pair(cells, deadline_ns)
    beside = explained_beside(records, explained or {})
    # With a verdict on top the maximum is the first finding; without, it is on top.
    found = () if deadline_ns is None else (f"{headline.maximum} {headline.where}",)
    return Model(
        title=f"Wake-up latency of {machines[0].name}"
        if len({m.name for m in machines}) == 1
        else f"Wake-up latency of {len({m.name for m in machines})} machines",
        subtitle=_subtitle(records, machines),
        headline=headline,
        verdict=None
        if deadline_ns is None
        else verdict_of(
            records,
            deadline_ns=deadline_ns,
            claim=claim,
            min_boots=min_boots,
            bounds_ns=bounds_by_digest(explained or {}, records),
        ),
        findings=(
            *found,
            *findings_of(cells, rows, worse_where=pair.summary if pair else ""),
            *(sentence for one in beside for sentence in one.sentences),
        ),
        explained=beside,
        caveats=merged_caveats(records),
        variant_kind=variant_kind(records),
        rows=rows,
        pair=pair,
        comparison=_comparison(rows, deadline_ns, virtual_word(records)),
        seeds=seed_rows(cells, rows),
        sections=tuple(
            section_of(cell, row, colours=colours, deadline_ns=deadline_ns)
            for cell, row in zip(cells, rows, strict=True)
        ),
        machines=machines,
        commands=tuple(dict.fromkeys(command_line(r.command) for r in records)),
        definitions=definitions(),
        provenance=tuple(provenance_of(r) for r in records),
        deadline_ns=deadline_ns,
        made_by=f"rtscope {__version__}",
        virtual=virtual_word(records),
    )


def _subtitle(records: Sequence[RunRecord], machines: Sequence[Machine]) -> str:
    first, last = (f(r.started for r in records)[:10] for f in (min, max))
    date = first if first == last else f"{first} to {last}"
    kernels = dict.fromkeys(f"Linux {m.kernel} ({m.preemption})" for m in machines)
    return " · ".join([*kernels, date])


def _pair(cells: Sequence[Cell], deadline_ns: int | None) -> SideBySide | None:
    variants: dict[str, list[RunRecord]] = {}
    for cell in cells:
        variants.setdefault(cell.variant, []).extend(cell.records)
    return side_by_side(variants, deadline_ns=deadline_ns)


def _comparison(
    rows: Sequence[Row], deadline_ns: int | None, virtual: str
) -> Chart | None:
    variants = list(dict.fromkeys(row.variant for row in rows))
    groups: dict[str, list[Mark]] = {}
    for row in rows:
        if row.summary is not None:
            groups.setdefault(row.load, []).append(
                Mark(
                    label=row.variant,
                    colour=variants.index(row.variant),
                    min_ns=row.summary.min_ns,
                    avg_ns=row.summary.mean_ns,
                    p999_ns=percentile_ns(row.summary, 99.9),
                    max_ns=row.summary.max_ns,
                )
            )
    if sum(map(len, groups.values())) < 2:
        return None
    return Chart(
        name="comparison",
        title="Loads compared",
        description="Minimum, average, 99.9th percentile and maximum of each load, "
        "on a logarithmic axis; the figures are those of the table.",
        content=tuple(Group(load, tuple(marks)) for load, marks in groups.items()),
        deadline_ns=deadline_ns,
        virtual=virtual,
    )
