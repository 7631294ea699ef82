"""A comparison of two sets of runs or more, one load at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rtscope.host.errors import RtscopeError, UsageError, first_of
from rtscope.host.escape import all_printable
from rtscope.host.units import format_number
from rtscope.host.version import __version__
from rtscope.present.document import Note
from rtscope.present.model.charts import Chart, ranges_chart
from rtscope.present.model.rows import (
    MeasuredMachine,
    Provenance,
    Row,
    in_order,
    machines_of,
    measured_by,
    merged_caveats,
    merged_row,
    provenance_of,
)
from rtscope.present.model.side_by_side import SideBySide, side_by_side
from rtscope.present.words import capital, enumeration, virtual_word
from rtscope.record.model import RunRecord
from rtscope.stats.compare import Comparison, Pair, Word, compare_loads
from rtscope.stats.comparison.effect import Effect
from rtscope.stats.conditions import load_names, unknown_loads
from rtscope.stats.meters import METERS
from rtscope.stats.runsets import RunSets, run_sets


@dataclass(frozen=True, slots=True)
class ComparedSet:
    """One set of runs under one load."""

    label: str
    row: Row
    median_max_ns: float | None
    """Median of the maxima of its runs that count."""


@dataclass(frozen=True, slots=True)
class SetOutcome:
    """One set against the first, in a sentence."""

    word: str
    different: bool
    rest: str
    """The rest of its sentence, from the space or the colon on."""
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeterOutcome:
    """Power, heat, clock or memory of the runs of two sets."""

    key: str
    heading: str
    medians: tuple[float, float]
    """Of the runs of the first set, and of the other."""
    label: str
    """The other set."""
    word: str
    sentence: str


@dataclass(frozen=True, slots=True)
class LoadComparison:
    """All sets under one load."""

    load: str
    sides: tuple[ComparedSet, ...]
    outcomes: tuple[SetOutcome, ...]
    meters: tuple[MeterOutcome, ...] = ()
    """Of the meters that every run of two sets has."""


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """A comparison, in the order in which it is read."""

    title: str
    subtitle: str
    summary: str
    loads: tuple[LoadComparison, ...]
    pair: SideBySide | None
    """Both sets side by side, if there are two."""
    chart: Chart | None
    caveats: tuple[Note, ...]
    machines: tuple[tuple[str, MeasuredMachine], ...]
    """Label and machine."""
    provenance: tuple[Provenance, ...]
    deadline_ns: int | None
    made_by: str
    virtual: str
    """`virtual ` if a time in it is a virtual board's, to stand before units."""

    @property
    def named_rows(self) -> Sequence[tuple[str, Row]]:
        """The rows of all sides, by load and side."""
        return [
            (f"{load.load}, {side.label}", side.row)
            for load in self.loads
            for side in load.sides
        ]

    @property
    def not_deterministic(self) -> bool:
        """Whether equal inputs of a virtual board gave different results."""
        return any(c.id == "not_deterministic" for c in self.caveats)


def split_by_variant(
    sets: Mapping[str, Sequence[RunRecord]],
) -> Mapping[str, Sequence[RunRecord]]:
    """
    Make a set of each variant, kernel or target where one holds runs of several.

    Runs of two kernels, or of two variants of a campaign, are no repetitions of each
    other. Variants stand in the order of the campaign file: the first is the baseline.
    """
    split: dict[str, list[RunRecord]] = {}
    for label, runs in sets.items():
        parts = [
            (r.run.target, r.kernel_name, r.run.variant or "unnamed") for r in runs
        ]
        targets, kernels, variants = (
            len(set(column)) for column in zip(*parts, strict=True)
        )
        in_file_order = sorted(
            zip(runs, parts, strict=True), key=lambda item: _variant_place(item[0])
        )
        for record, (target, kernel, variant) in in_file_order:
            several = (
                (label, len(sets) > 1 and max(targets, kernels, variants) > 1),
                (target, targets > 1),
                (kernel, kernels > 1 or targets > 1),
                (variant, variants > 1),
            )
            name = " ".join(part for part, varies in several if varies)
            split.setdefault(name or label, []).append(record)
    return split


def _variant_place(record: RunRecord) -> int:
    """Return where the campaign file has the variant of a run; 0 without one."""
    tables = record.campaign.get("run")
    names = [
        table.get("variant")
        for table in (tables if isinstance(tables, list) else ())
        if isinstance(table, Mapping)
    ]
    known = record.run.variant is not None and record.run.variant in names
    return names.index(record.run.variant) if known else 0


def build_comparison(
    sets: Mapping[str, Sequence[RunRecord]], *, deadline_ns: int | None = None
) -> ComparisonReport:
    """
    Compare sets of runs by label; the first is the baseline.

    Raises UsageError for fewer than two sets, and if they have no load in common.
    """
    if len(sets) < 2:
        raise UsageError("nothing to compare: name two records or more")
    labelled = all_printable({label: tuple(runs) for label, runs in sets.items()})
    by_load = _by_load(labelled)
    if not by_load:
        raise UsageError(_nothing_common(labelled))
    loads = _load_comparisons(by_load, deadline_ns)
    records = [record for runs in labelled.values() for record in runs]
    rows = [side.row for load in loads for side in load.sides]
    virtual, whose = virtual_word(records), enumeration(list(labelled))
    return ComparisonReport(
        title=f"{measured_by(records).heading} of {whose} compared",
        subtitle=f"Baseline: {next(iter(labelled))}",
        summary=_summary(loads),
        loads=loads,
        pair=side_by_side(
            {
                label: [row for row in rows if row.variant == label]
                for label in labelled
            },
            deadline_ns=deadline_ns,
            tested=True,
        ),
        chart=ranges_chart(
            rows,
            list(labelled),
            title="Side by side",
            of="set under each load, on a logarithmic axis; numbers: see the tables",
            deadline_ns=deadline_ns,
            virtual=virtual,
        ),
        caveats=merged_caveats(records),
        machines=tuple(
            (label, machine)
            for label, runs in labelled.items()
            for machine in machines_of(runs)
        ),
        provenance=tuple(provenance_of(r) for r in records),
        deadline_ns=deadline_ns,
        made_by=f"rtscope {__version__}",
        virtual=virtual,
    )


def _nothing_common(labelled: Mapping[str, Sequence[RunRecord]]) -> str:
    said = "the records have no load in common: measure one load in all of them"
    unknown = unknown_loads(one for runs in labelled.values() for one in runs)
    if not unknown:
        return said
    return (
        f"{said}; unknown load of {first_of(3, unknown)}: two unknown loads are not "
        "the same; name them with rtscope import --load"
    )


def _by_load(
    labelled: Mapping[str, Sequence[RunRecord]],
) -> dict[str, dict[str, list[RunRecord]]]:
    """Return the runs by load and label, of loads that two sets or more have."""
    records = [record for runs in labelled.values() for record in runs]
    names = dict(zip(map(id, records), load_names(records), strict=True))
    loads: dict[str, dict[str, list[RunRecord]]] = {}
    for label, runs in labelled.items():
        for record in runs:
            load = names[id(record)]
            loads.setdefault(load, {}).setdefault(label, []).append(record)
    return {load: loads[load] for load in in_order(loads) if len(loads[load]) > 1}


def _load_comparisons(
    by_load: Mapping[str, Mapping[str, Sequence[RunRecord]]], deadline_ns: int | None
) -> tuple[LoadComparison, ...]:
    """Compare all loads together: their tests are one family."""
    comparable: list[RunSets] = []
    outcomes: dict[str, tuple[SetOutcome, ...]] = {}
    meters: dict[str, tuple[MeterOutcome, ...]] = {}
    for load, sets in by_load.items():
        try:
            comparable.append(run_sets(sets, deadline_ns=deadline_ns))
        except RtscopeError as error:
            reason = capital(str(error))
            outcomes[load] = (SetOutcome("NOT COMPARED", False, f": {reason}.", ()),)
    for comparison in compare_loads(comparable):
        outcomes[comparison.load] = _outcomes(comparison)
        meters[comparison.load] = tuple(
            one for pair in comparison.pairs for one in _meters(pair)
        )
    return tuple(
        LoadComparison(
            load=load,
            sides=tuple(
                _compared_set(label, runs, load) for label, runs in sets.items()
            ),
            outcomes=outcomes[load],
            meters=meters.get(load, ()),
        )
        for load, sets in by_load.items()
    )


def _compared_set(label: str, runs: Sequence[RunRecord], load: str) -> ComparedSet:
    row = merged_row(runs, variant=label, load=load, comparing=True)
    maxima = [r.max_ns for r in row.counted if r.max_ns is not None]
    return ComparedSet(
        label=label,
        row=row,
        median_max_ns=median(maxima) if maxima and row.counts else None,
    )


def _outcomes(tests: Comparison) -> tuple[SetOutcome, ...]:
    remarks = []
    repeats = sum(group.repeats for group in tests.groups)
    if repeats:
        copies = "copy of a run" if repeats == 1 else "copies of runs"
        remarks.append(f"{repeats:,} {copies} left out.")
    outcomes = []
    for pair in tests.pairs:
        said = list(remarks)
        if pair.max_ratios is not None:
            typical, low, high = pair.max_ratios
            ratio = f"{format_number(typical, 2)} times as high"
            single = f"{format_number(low, 2)} to {format_number(high, 2)}"
            said.append(
                f"Maximum {ratio}."
                if low == high
                else f"Median maximum {ratio} (single runs {single})."
            )
        outcomes.append(
            SetOutcome(
                word=pair.word.value,
                different=pair.word is Word.DIFFERENT,
                rest=_rest(pair.word.value, pair.sentence),
                remarks=tuple(said),
            )
        )
    return tuple(outcomes)


def _meters(pair: Pair) -> Iterator[MeterOutcome]:
    """Yield each meter that all runs have, with what may be said of its difference."""
    effects = {effect.figure: effect for effect in pair.meters}
    for key, meter in METERS.items():
        values = [
            [run.meters[key] for run in group.runs if key in run.meters]
            for group in pair.groups
        ]
        if tuple(map(len, values)) != pair.sizes or 0 in pair.sizes:
            continue
        first, second = (median(one) for one in values)
        word = _meter_word(pair, effects.get(key))
        yield MeterOutcome(
            key,
            meter.heading,
            (first, second),
            pair.candidate,
            word.value,
            f"{capital(meter.heading)}: {meter.show(second)} of {pair.candidate}, "
            f"{meter.show(first)} of {pair.baseline}: {word.value.lower()}"
            f"{_meter_p(effects.get(key))}.",
        )


def _meter_word(pair: Pair, effect: Effect | None) -> Word:
    if effect is None:
        return Word.TOO_FEW_RUNS
    if not effect.found:
        return Word.NO_EVIDENCE
    return Word.DIFFERENT if pair.randomised else Word.ORDER_NOT_RANDOMISED


def _meter_p(effect: Effect | None) -> str:
    if effect is None:
        return ""
    many = f" after correction for {effect.tests} meters" if effect.tests > 1 else ""
    return f" (p = {format_number(effect.adjusted_p, 2)}{many})"


def _rest(word: str, sentence: str) -> str:
    if sentence.lower().startswith(word.lower()):
        return f"{sentence[len(word) :]}."
    return f": {sentence}."


def _summary(compared: Sequence[LoadComparison]) -> str:
    words = [(c.load, o.word) for c in compared for o in c.outcomes]
    parts = []
    for word in dict.fromkeys(word for _, word in words):
        loads = list(dict.fromkeys(load for load, said in words if said == word))
        parts.append(f"{word.lower()} under {enumeration(loads)}")
    return f"{capital('; '.join(parts))}."
