"""
Two sides, kernels or variants, under each load: as in StarFive's Table 5-1.

Which side has the higher maximum, and the rates that the samples support. No verdict:
`stats.compare` gives it; its unit is the run, never the sample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.host.units import plural
from rtscope.present.model.charts import Chart, overlay_charts
from rtscope.present.model.rows import Row, comparing_row
from rtscope.present.words import about_equal, capital, duration, enumeration, times, us
from rtscope.stats.determinism import independent
from rtscope.stats.episodes import excess
from rtscope.stats.figures import compared


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
        return overlay_charts(self.rows, self.colours, deadline_ns=self.deadline_ns)

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


def by_variant(rows: Sequence[Row]) -> Mapping[str, Sequence[Row]]:
    """Return the rows to compare, of runs that count where some do."""
    rows_of: dict[str, list[Row]] = {}
    for row in rows:
        rows_of.setdefault(row.variant, []).append(
            comparing_row(row) if row.left_out else row
        )
    return rows_of


def side_by_side(
    rows_of: Mapping[str, Sequence[Row]],
    *,
    deadline_ns: int | None = None,
    tested: bool = False,
) -> SideBySide | None:
    """
    Set two labelled sets of rows side by side, PREEMPT_RT first.

    None if there are not two, if different events woke them, or if they have no load
    in common. `tested`: whether the tests of their runs are in the same report.
    """
    events = {row.records[0].run.event for rows in rows_of.values() for row in rows}
    if len(rows_of) != 2 or len(events) > 1:
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
    both_count = first.counts and second.counts
    ratios = {
        figure.key: figure.ratio(first, second) if both_count else None
        for figure in compared()
    }
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
    whys = [row.not_counted for row in (first, second) if row.left_out]
    if not (first.counts and second.counts):
        return f"Not compared: {'; '.join(whys)}."
    said = _pair_says(first, second, ratio)
    return f"{said} {capital('; '.join(whys))}." if whys else said


def _pair_says(first: Row, second: Row, ratio: float | None) -> str:
    if ratio is None or first.summary is None or second.summary is None:
        return "Nothing was measured on one side."
    virtual = first.virtual or second.virtual
    both = f"{first.maximum} and {second.maximum}"
    results = [{r.result_digest for r in row.records} for row in (first, second)]
    if virtual and results[0] == results[1]:
        return f"Identical results; the maxima are {both}."
    bad, good = (second, first) if ratio > 1 else (first, second)
    late = excess(
        independent(bad.counted),
        threshold_ns=min(first.summary.max_ns, second.summary.max_ns),
        worse_ns=bad.observed_ns,
        better_ns=good.observed_ns,
    )
    counted = plural(late.episodes, "episode") if late else ""
    if about_equal(ratio):
        again = "seeds" if virtual else "runs"
        return f"About equal maxima, {both}: two {again} of one kernel differ as much."
    said = (
        f"The maximum of {bad.variant} is {times(max(ratio, 1 / ratio))} that of "
        f"{good.variant}."
    )
    if late is None:
        return said
    of_time = " of virtual time" if virtual else ""
    said += (
        f" Latencies over {us(late.threshold_ns, virtual)}: {bad.variant} had "
        f"{'' if late.exact else 'at least '}{counted} in "
        f"{duration(late.worse_ns)}{of_time} (at least one per "
        f"{duration(late.at_least_every_ns)} at 95 % confidence); {good.variant} had "
        f"none in {duration(late.better_ns)} (fewer than one per "
        f"{duration(late.less_than_every_ns)} at 95 % confidence)."
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
        return "No load has runs that count on both sides."
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
