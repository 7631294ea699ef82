"""
The model of a report: all that a renderer prints is decided here and below.

Pure: records in, frozen values out. Text that came from a machine is made printable
before anything is decided. Times are ns; renderers only write them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.host.errors import MeasurementError, UsageError
from rtscope.host.escape import all_printable
from rtscope.host.version import __version__
from rtscope.present.document import Note
from rtscope.present.model.charts import Chart, cpu_colours, ranges_chart
from rtscope.present.model.explained_records import ExplainedRecord, explained_records
from rtscope.present.model.findings import Headline, findings_of, headline_of
from rtscope.present.model.rows import (
    MIXED,
    Measured,
    MeasuredMachine,
    Provenance,
    Row,
    machines_of,
    measured_by,
    merged_caveats,
    provenance_of,
    rows_of,
    subtitle_of,
    variant_kind,
)
from rtscope.present.model.sections import LoadSection, section_of
from rtscope.present.model.side_by_side import SideBySide, by_variant, side_by_side
from rtscope.present.model.steadiness import Steadiness, late_wakeups, steady_sentences
from rtscope.present.model.verdicts import Soft, VerdictInWords, soft_of, verdict_of
from rtscope.present.model.workers import LoadRow, load_rows
from rtscope.present.words import command_line
from rtscope.record.caveats.catalogue import Effect
from rtscope.record.explanation import Explained, bounds_by_digest
from rtscope.record.model import RunRecord
from rtscope.record.samples import ThreadSamples
from rtscope.stats.utility import Utility
from rtscope.stats.verdict import Claim


@dataclass(frozen=True, slots=True)
class Model:
    """A report, in the order in which it is read."""

    title: str
    subtitle: str
    headline: Headline
    verdict: VerdictInWords | None
    findings: tuple[str, ...]
    caveats: tuple[Note, ...]
    variant_kind: str
    """The property in which rows of one load differ: `kernel`…; empty if in none."""
    rows: tuple[Row, ...]
    pair: SideBySide | None
    """The two variants side by side, if there are two."""
    loads: tuple[LoadRow, ...]
    """Whether the workers of each load worked; empty if none was watched."""
    late: Mapping[str, Steadiness]
    """When the latest wake-ups of each row were, by its anchor."""
    seeds: tuple[Row, ...]
    """The rows that merge several seeds of a virtual board."""
    records: tuple[RunRecord, ...]
    """With each text in them printable."""
    explained: tuple[ExplainedRecord, ...]
    """The records with an attached explanation."""
    machines: tuple[MeasuredMachine, ...]
    commands: tuple[str, ...]
    provenance: tuple[Provenance, ...]
    deadline_ns: int | None
    made_by: str
    virtual: str
    """`virtual ` if a time in it is a virtual board's, to stand before units."""
    samples: Mapping[str, Sequence[ThreadSamples]]
    """Each wake-up of runs that kept them, by the digests of their results."""
    soft: Soft | None
    """What the wake-ups were worth; None without a soft deadline."""
    exit_status: int
    """That of the verdict; without one 0, or 3 if a run is not valid."""

    # A terminal shows none of these: they are made when a page or a file wants them.

    @property
    def measured(self) -> Measured:
        """What its runs measured, in words."""
        return measured_by(self.records)

    @property
    def comparison(self) -> Chart | None:
        """The rows in one chart; None with fewer than two that were measured."""
        if sum(row.summary is not None for row in self.rows) < 2:
            return None
        return ranges_chart(
            self.rows,
            list(dict.fromkeys(row.variant for row in self.rows)),
            title="Loads compared",
            of="load, on a logarithmic axis; the table has the numbers",
            deadline_ns=self.deadline_ns,
            virtual=self.virtual,
        )

    @property
    def named_rows(self) -> tuple[tuple[str, Row], ...]:
        """The rows by name."""
        return tuple((row.name, row) for row in self.rows)

    @property
    def sections(self) -> tuple[LoadSection, ...]:
        """All about each load."""
        colours = cpu_colours([t for r in self.records for t in r.result.threads])
        return tuple(
            section_of(
                *(row, colours),
                deadline_ns=self.deadline_ns,
                late=self.late.get(row.anchor),
                utility=None if self.soft is None else self.soft.utility,
                samples=self.samples,
            )
            for row in self.rows
        )

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, for those who want them as files."""
        comparison = self.comparison
        first = () if comparison is None else (comparison,)
        both = () if self.pair is None else self.pair.charts
        return (*first, *both, *(chart for s in self.sections for chart in s.charts))


def build_model(
    records: Sequence[RunRecord],
    *,
    deadline_ns: int | None = None,
    claim: Claim | None = None,
    min_boots: int = 1,
    explained: Mapping[str, Explained] | None = None,
    utility: Utility | None = None,
    samples: Mapping[str, Sequence[ThreadSamples]] | None = None,
) -> Model:
    """
    Build the report of these records; a deadline adds a verdict, a utility its value.

    `explained` has the attached explanations, by the digests of the results.

    Raises UsageError without records.
    """
    if not records:
        raise UsageError("the record has no run: nothing to report")
    records, explained = all_printable((tuple(records), explained or {}))
    rows = rows_of(records)
    kind, kinds = variant_kind(rows), {row.measured.heading for row in rows}
    machines = machines_of(records)
    subtitle = subtitle_of(records, machines)
    caveats = merged_caveats(records)
    pair = side_by_side(by_variant(rows), deadline_ns=deadline_ns)
    attached = explained_records(records, explained)
    headline, late = headline_of(rows), late_wakeups(rows)
    distances = steady_sentences(late.values())
    # With a verdict on top the maximum is the first finding; without, it is on top.
    first = () if deadline_ns is None else (f"{headline.maximum} {headline.where}",)
    soft = None if utility is None else soft_of(rows, utility)
    first = first if soft is None else (soft.sentence, *first)
    names = {machine.name for machine in machines}
    whose = machines[0].name if len(names) == 1 else f"{len(names)} machines"
    invalid = any(caveat.effect is Effect.INVALID for caveat in caveats)
    status = MeasurementError.exit_status if invalid else 0
    verdict = None
    if deadline_ns is not None:
        verdict = verdict_of(
            records,
            deadline_ns=deadline_ns,
            claim=claim,
            min_boots=min_boots,
            bounds_ns=bounds_by_digest(explained, records),
        )
        status = verdict.exit_status
    return Model(
        title=f"{kinds.pop() if len(kinds) == 1 else MIXED.heading} of {whose}",
        subtitle=subtitle,
        headline=headline,
        verdict=verdict,
        findings=(
            *first,
            *findings_of(rows, worse_where=pair.summary if pair else ""),
            *(sentence for one in attached for sentence in one.sentences),
            *distances,
        ),
        explained=attached,
        caveats=caveats,
        variant_kind=kind,
        rows=rows,
        pair=pair,
        loads=load_rows(rows),
        late=late,
        seeds=tuple(row for row in rows if row.seeds is not None),
        records=records,
        machines=machines,
        commands=tuple(dict.fromkeys(command_line(r.command) for r in records)),
        provenance=tuple(map(provenance_of, records)),
        deadline_ns=deadline_ns,
        made_by=f"rtscope {__version__}",
        virtual="virtual " if any(row.virtual for row in rows) else "",
        samples=samples or {},
        soft=soft,
        exit_status=status,
    )
