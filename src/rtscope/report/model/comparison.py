"""
Two sets of runs side by side, and a comparison of two or more, one load at a time.

Side by side, as in StarFive's Table 5-1: which side has the higher maximum, and the
rates that the samples support. No verdict: `stats.compare` gives it; its unit is
the run, never the sample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rtscope import __version__
from rtscope.errors import RtscopeError, UsageError
from rtscope.record.model import RunRecord
from rtscope.report.escape import all_printable
from rtscope.report.model.charts import Chart, overlay_charts, ranges_chart
from rtscope.report.model.rows import (
    MeasuredMachine,
    MergedCaveat,
    Provenance,
    Row,
    in_order,
    kernel_of,
    machines_of,
    merged_caveats,
    merged_row,
    provenance_of,
)
from rtscope.report.tables import compared
from rtscope.report.words import (
    about_equal,
    capital,
    duration,
    enumeration,
    plural,
    times,
    us,
    virtual_word,
)
from rtscope.stats.compare import Comparison, Word, compare_loads
from rtscope.stats.episodes import excess
from rtscope.stats.runsets import RunSets, run_sets
from rtscope.stats.seeds import independent
from rtscope.units import format_number


@dataclass(frozen=True, slots=True)
class SideName:
    """One of the two, as it is called in every table and drawing."""

    label: str
    model: str
    """The preemption model: `PREEMPT_RT`, `not PREEMPT_RT`, or empty if unknown."""
    colour: int


@dataclass(frozen=True, slots=True)
class PairRow:
    """Both sides under one load."""

    load: str
    rows: tuple[Row, Row]
    ratios: Mapping[str, float | None]
    """By figure, the second side's over the first's; None if one has none."""
    sentence: str
    colours: tuple[int, int]
    """Of the two sides, in every drawing."""
    deadline_ns: int | None

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Both sides in the same drawings, made when a page or a file wants them."""
        return overlay_charts(*self.rows, self.colours, deadline_ns=self.deadline_ns)

    @property
    def ratio(self) -> float | None:
        """That of the maxima."""
        return self.ratios["max"]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The table, with its summary and its limits."""

    sides: tuple[SideName, SideName]
    rows: tuple[PairRow, ...]
    summary: str
    caution: str
    """The limits of this kind of sample."""
    virtual: str

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The drawings of all loads."""
        return tuple(chart for row in self.rows for chart in row.charts)


@dataclass(frozen=True, slots=True)
class ComparedSet:
    """One set of runs under one load."""

    label: str
    row: Row
    median_max_ns: float | None
    """Median of the maxima of its runs."""


@dataclass(frozen=True, slots=True)
class SetOutcome:
    """One set against the first, in a sentence."""

    word: str
    different: bool
    rest: str
    """The rest of its sentence, from the space or the colon on."""
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadComparison:
    """All sets under one load."""

    load: str
    sides: tuple[ComparedSet, ...]
    outcomes: tuple[SetOutcome, ...]


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
    caveats: tuple[MergedCaveat, ...]
    machines: tuple[tuple[str, MeasuredMachine], ...]
    """Label and machine."""
    provenance: tuple[Provenance, ...]
    deadline_ns: int | None
    made_by: str
    virtual: str
    """`virtual ` if a time in it is a virtual board's, to stand before units."""

    @property
    def not_deterministic(self) -> bool:
        """Whether equal inputs of a virtual board gave different results."""
        return any(c.id == "not_deterministic" for c in self.caveats)


def side_by_side(
    rows_of: Mapping[str, Sequence[Row]],
    *,
    deadline_ns: int | None = None,
    tested: bool = False,
) -> SideBySide | None:
    """
    Set two labelled sets of rows side by side, PREEMPT_RT first.

    None if there are not two, or they have no load in common. `tested`: whether the
    tests of their runs are in the same report.
    """
    if len(rows_of) != 2:
        return None
    names = [
        SideName(label, _model_of(rows), colour)
        for colour, (label, rows) in enumerate(rows_of.items())
    ]
    if names[1].model == "PREEMPT_RT" != names[0].model:
        names.reverse()
    sides = names[0], names[1]
    first, second = ({row.load: row for row in rows_of[s.label]} for s in sides)
    virtual = "".join({row.virtual for rows in rows_of.values() for row in rows})
    rows = tuple(
        _pair_row(sides, first[load], second[load], deadline_ns=deadline_ns)
        for load in first
        if load in second
    )
    if not rows:
        return None
    return SideBySide(
        sides=sides,
        rows=rows,
        caution=_caution(rows, virtual=virtual, tested=tested),
        summary=_pair_summary(sides, rows),
        virtual=virtual,
    )


def _model_of(rows: Sequence[Row]) -> str:
    """Name the preemption model if all these runs have one, or nothing."""
    facts = [r.facts_before.get("preempt_rt") for row in rows for r in row.records]
    values = {fact.value if fact else None for fact in facts}
    if values == {True}:
        return "PREEMPT_RT"
    return "not PREEMPT_RT" if values == {False} else ""


def _pair_row(
    sides: tuple[SideName, SideName],
    first: Row,
    second: Row,
    *,
    deadline_ns: int | None,
) -> PairRow:
    ratios = {figure.key: figure.ratio(first, second) for figure in compared()}
    return PairRow(
        load=first.load,
        rows=(first, second),
        ratios=ratios,
        sentence=_pair_sentence(first, second, ratios["max"]),
        colours=(sides[0].colour, sides[1].colour),
        deadline_ns=deadline_ns,
    )


def _pair_sentence(first: Row, second: Row, ratio: float | None) -> str:
    """Name the side with the higher maximum, and the rates that the samples support."""
    if ratio is None or first.summary is None or second.summary is None:
        return "Nothing was measured on one side."
    virtual = first.virtual or second.virtual
    both = f"{first.maximum} and {second.maximum}"
    results = [{r.result_digest for r in row.records} for row in (first, second)]
    if virtual and results[0] == results[1]:
        return f"Identical results; the maxima are {both}."
    bad, good = (second, first) if ratio > 1 else (first, second)
    found = excess(
        independent(bad.counted),
        threshold_ns=min(first.summary.max_ns, second.summary.max_ns),
        worse_ns=bad.observed_ns,
        better_ns=good.observed_ns,
    )
    if about_equal(ratio):
        again = "seeds" if virtual else "runs"
        return f"About equal maxima, {both}: two {again} of one kernel differ as much."
    said = (
        f"The maximum of {bad.variant} is {times(max(ratio, 1 / ratio))} that of "
        f"{good.variant}."
    )
    if found is None:
        return said
    counted = plural(found.episodes, "episode")
    of_time = " of virtual time" if virtual else ""
    said += (
        f" Latencies over {us(found.threshold_ns, virtual)}: {bad.variant} had "
        f"{'' if found.exact else 'at least '}{counted} in "
        f"{duration(found.worse_ns)}{of_time} (at least one per "
        f"{duration(found.at_least_every_ns)} at 95 % confidence); {good.variant} had "
        f"none in {duration(found.better_ns)} (fewer than one per "
        f"{duration(found.less_than_every_ns)} at 95 % confidence)."
    )
    return said


def _pair_summary(sides: tuple[SideName, SideName], rows: Sequence[PairRow]) -> str:
    """Name the worse side under each load, in one sentence."""
    worse: dict[str, list[str]] = {}
    for row in rows:
        if row.ratio is None:
            continue
        if about_equal(row.ratio):
            worse.setdefault("", []).append(row.load)
        else:
            side = sides[1 if row.ratio > 1 else 0]
            ratio = times(max(row.ratio, 1 / row.ratio))
            worse.setdefault(side.label, []).append(f"{row.load} ({ratio})")
    parts = [
        f"{label} has the higher maximum under {enumeration(loads)}"
        if label
        else f"about equal under {enumeration(loads)}"
        for label, loads in sorted(worse.items(), key=lambda item: item[0] == "")
    ]
    if not parts:
        return "Nothing was measured under any load on both sides."
    said = "; ".join(parts)
    # A kernel's name keeps its small letter.
    said = capital(said) if list(worse) == [""] else said
    return f"{said} (observed maxima, no statistical test)."


def _caution(rows: Sequence[PairRow], *, virtual: str, tested: bool) -> str:
    runs = {side.runs for row in rows for side in row.rows}
    if virtual:
        many = "one trajectory" if runs == {1} else "a few trajectories (seeds)"
        return (
            f"Virtual time: {many} of each kernel. The numbers are exact for these "
            "inputs, but not for other seeds; they are no microseconds of a board."
        )
    if tested:
        return (
            "These are the maxima of all runs of each side, not a test. The conclusion "
            "from the runs is below."
        )
    if runs == {1}:
        return (
            "One run of each: two runs of one kernel differ too. To compare kernels, "
            "repeat the runs and type rtscope compare."
        )
    return "To test whether the difference is more than chance, type rtscope compare."


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
        parts = [(r.run.target, kernel_of(r), r.run.variant or "unnamed") for r in runs]
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
        raise UsageError("the records have no load in common: nothing to compare")
    loads = _load_comparisons(by_load, deadline_ns)
    records = [record for runs in labelled.values() for record in runs]
    rows = [side.row for load in loads for side in load.sides]
    virtual = virtual_word(records)
    return ComparisonReport(
        title=f"Wake-up latency of {enumeration(list(labelled))} compared",
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


def _by_load(
    labelled: Mapping[str, Sequence[RunRecord]],
) -> dict[str, dict[str, list[RunRecord]]]:
    """Return the runs by load and label, of loads that two sets or more have."""
    found: dict[str, dict[str, list[RunRecord]]] = {}
    for label, runs in labelled.items():
        for record in runs:
            found.setdefault(record.run.load, {}).setdefault(label, []).append(record)
    return {load: found[load] for load in in_order(found) if len(found[load]) > 1}


def _load_comparisons(
    by_load: Mapping[str, Mapping[str, Sequence[RunRecord]]], deadline_ns: int | None
) -> tuple[LoadComparison, ...]:
    """Compare all loads together: their tests are one family."""
    comparable: list[RunSets] = []
    outcomes: dict[str, tuple[SetOutcome, ...]] = {}
    for load, sets in by_load.items():
        try:
            comparable.append(run_sets(sets, deadline_ns=deadline_ns))
        except RtscopeError as error:
            reason = capital(str(error))
            outcomes[load] = (SetOutcome("NOT COMPARED", False, f": {reason}.", ()),)
    for comparison in compare_loads(comparable):
        outcomes[comparison.load] = _outcomes(comparison)
    return tuple(
        LoadComparison(
            load=load,
            sides=tuple(_compared_set(label, runs) for label, runs in sets.items()),
            outcomes=outcomes[load],
        )
        for load, sets in by_load.items()
    )


def _compared_set(label: str, runs: Sequence[RunRecord]) -> ComparedSet:
    maxima = [r.max_ns for r in runs if r.max_ns is not None]
    return ComparedSet(
        label=label,
        row=merged_row(runs, variant=label),
        median_max_ns=median(maxima) if maxima else None,
    )


def _outcomes(tests: Comparison) -> tuple[SetOutcome, ...]:
    left_out = [name for group in tests.groups for name in group.left_out]
    remarks = []
    repeats = sum(group.repeats for group in tests.groups)
    if repeats:
        copies = "copy of a run" if repeats == 1 else "copies of runs"
        remarks.append(f"{repeats:,} {copies} left out.")
    if left_out:
        remarks.append(f"Left out because not valid: {enumeration(left_out)}.")
    outcomes = []
    for pair in tests.pairs:
        said = list(remarks)
        if pair.max_ratio is not None and pair.max_ratio_range is not None:
            low, high = pair.max_ratio_range
            ratio = f"{format_number(pair.max_ratio, 2)} times as high"
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
