"""
Two kernels (or machines, or settings) side by side, as in StarFive's Table 5-1.

One row per load; which side is worse, by how much, and what the samples support. No
verdict: that is `stats.compare`'s, whose unit is the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.model.rows import STANDARD_LOADS, Row, anchor_of, merged_row
from rtscope.report.model.series import (
    Chart,
    Layer,
    Overlay,
    bin_edges,
    binned,
    thinned,
)
from rtscope.report.words import (
    capital,
    duration,
    enumeration,
    plural,
    times,
    us,
    virtual_word,
)
from rtscope.stats.determinism import distinct
from rtscope.stats.distribution import ccdf, distribution_of
from rtscope.stats.excess import excess, max_of
from rtscope.units import format_number

ABOUT_EQUAL = 1.1
"""Two runs of one kernel differ by more than a tenth: less is no difference."""


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
    ratio: float | None
    """The second side's maximum over the first's; None if one has none."""
    sentence: str
    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The table, and what may be said about it."""

    sides: tuple[SideName, SideName]
    rows: tuple[PairRow, ...]
    summary: str
    caution: str
    """What kind of sample this is."""
    virtual: str

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The drawings of all loads."""
        return tuple(chart for row in self.rows for chart in row.charts)


def side_by_side(
    sets: Mapping[str, Sequence[RunRecord]], *, deadline_ns: int | None = None
) -> SideBySide | None:
    """
    Set two labelled sets of runs side by side, PREEMPT_RT first.

    None if there are not two, or they have no load in common.
    """
    if len(sets) != 2:
        return None
    names = [
        SideName(printable(label), model_of(runs), colour)
        for colour, (label, runs) in enumerate(sets.items())
    ]
    runs_of = list(sets.values())
    if names[1].model == "PREEMPT_RT" != names[0].model:
        names, runs_of = names[::-1], runs_of[::-1]
    sides = names[0], names[1]
    loads = [{r.run.load for r in runs} for runs in runs_of]
    common = _in_order(loads[0] & loads[1], runs_of[0])
    rows = tuple(
        _row(
            load,
            sides,
            tuple(r for r in runs_of[0] if r.run.load == load),
            tuple(r for r in runs_of[1] if r.run.load == load),
            deadline_ns=deadline_ns,
        )
        for load in common
    )
    if not rows:
        return None
    return SideBySide(
        sides=sides,
        rows=rows,
        summary=_summary(sides, rows),
        caution=_caution(rows, virtual=_virtual(runs_of)),
        virtual=_virtual(runs_of),
    )


def model_of(records: Sequence[RunRecord]) -> str:
    """Name the preemption model that all these records tell, or nothing."""
    values = {
        fact.value if (fact := r.facts_before.get("preempt_rt")) else None
        for r in records
    }
    if values == {True}:
        return "PREEMPT_RT"
    return "not PREEMPT_RT" if values == {False} else ""


def _virtual(runs_of: Sequence[Sequence[RunRecord]]) -> str:
    return virtual_word(record for runs in runs_of for record in runs)


def _in_order(loads: set[str], records: Sequence[RunRecord]) -> list[str]:
    standard = [load for load in STANDARD_LOADS if load in loads]
    others = dict.fromkeys(r.run.load for r in records if r.run.load in loads)
    return standard + [load for load in others if load not in standard]


def _row(
    load: str,
    sides: tuple[SideName, SideName],
    first: tuple[RunRecord, ...],
    second: tuple[RunRecord, ...],
    *,
    deadline_ns: int | None,
) -> PairRow:
    maxima = max_of(first), max_of(second)
    ratio = None
    if maxima[0] is not None and maxima[1] is not None:
        # At least 1 ns: a clock in coarse steps can give a maximum of 0.
        ratio = max(maxima[1], 1) / max(maxima[0], 1)
    rows = (
        merged_row(first, variant=sides[0].label),
        merged_row(second, variant=sides[1].label),
    )
    return PairRow(
        load=printable(load),
        rows=rows,
        ratio=ratio,
        sentence=_sentence(sides, (first, second), ratio),
        charts=_charts(load, sides, (first, second), deadline_ns=deadline_ns),
    )


def _sentence(
    sides: tuple[SideName, SideName],
    runs: tuple[tuple[RunRecord, ...], tuple[RunRecord, ...]],
    ratio: float | None,
) -> str:
    """Say who is worse and what the samples support about it."""
    if ratio is None:
        return "Nothing was measured on one side."
    virtual = _virtual(runs)
    both = f"{us(max_of(runs[0]), virtual)} and {us(max_of(runs[1]), virtual)}"
    results = [{r.result_digest for r in side} for side in runs]
    if virtual and results[0] == results[1]:
        return f"The same results to the last count; both maxima are {both}."
    if 1 / ABOUT_EQUAL <= ratio <= ABOUT_EQUAL:
        again = "seeds" if virtual else "runs"
        return f"About equal maxima, {both}: two {again} of one kernel differ as much."
    bad, good = (1, 0) if ratio > 1 else (0, 1)
    said = (
        f"{sides[bad].label} is worse: its maximum is "
        f"{times(max(ratio, 1 / ratio))} that of {sides[good].label}."
    )
    found = excess(runs[bad], runs[good])
    if found is None:
        return said
    counted = plural(found.episodes, "episode")
    of_time = " of virtual time" if virtual else ""
    said += (
        f" Later than {us(found.threshold_ns, virtual)}: {sides[bad].label} in "
        f"{'' if found.exact else 'at least '}{counted} in "
        f"{duration(found.worse_ns)}{of_time}, which supports at least one in "
        f"{duration(found.at_least_every_ns)}; {sides[good].label} never in "
        f"{duration(found.better_ns)}, which supports less than one in "
        f"{duration(found.less_than_every_ns)} (each 95 %)."
    )
    if virtual:  # what follows exactly from its inputs has no chance in it
        return said
    return (
        f"{said} Were episodes independent, two equal kernels would differ so with "
        f"p {_probability(found.chance)}."
    )


def _probability(chance: float) -> str:
    if chance < 1e-6:
        return "< 0.000001"
    return f"= {format_number(chance, 2)}"


def _summary(sides: tuple[SideName, SideName], rows: Sequence[PairRow]) -> str:
    """Say who is worse where, in one sentence."""
    worse: dict[str, list[str]] = {}
    for row in rows:
        if row.ratio is None:
            continue
        if 1 / ABOUT_EQUAL <= row.ratio <= ABOUT_EQUAL:
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
    return f"{said} (maxima as seen, not a test)."


def _caution(rows: Sequence[PairRow], *, virtual: str) -> str:
    runs = {side.runs for row in rows for side in row.rows}
    if virtual:
        many = "one trajectory" if runs == {1} else "a few trajectories (seeds)"
        return (
            f"Virtual time: {many} of each kernel. The figures are exact for these "
            "inputs and hold for no other seed; they are no microseconds of a board."
        )
    if runs == {1}:
        return (
            "One run of each: of two runs of one kernel, one has the larger maximum. "
            "Kernels are told apart by repeated runs: rtscope compare."
        )
    return "Whether the difference is more than chance: rtscope compare."


def _charts(
    load: str,
    sides: tuple[SideName, SideName],
    runs: tuple[tuple[RunRecord, ...], tuple[RunRecord, ...]],
    *,
    deadline_ns: int | None,
) -> tuple[Chart, ...]:
    threads = [[t for r in distinct(rs) for t in r.result.threads] for rs in runs]
    maxima = [max_of(rs) for rs in runs]
    lows = [t.min_ns for ts in threads for t in ts if t.min_ns is not None]
    if maxima[0] is None or maxima[1] is None or not lows:
        return ()
    edges, logarithmic = bin_edges(min(lows), max(maxima[0], maxima[1]))
    layers = []
    for side, side_threads, max_ns in zip(sides, threads, maxima, strict=True):
        counts = np.sum([binned(t, edges) for t in side_threads], axis=0)
        tail = thinned(*(p.tolist() for p in ccdf(distribution_of(side_threads))))
        layers.append(
            Layer(
                label=side.label,
                colour=side.colour,
                counts=tuple(float(count) for count in counts),
                tail=tail,
                samples=sum(t.samples for t in side_threads),
                max_ns=max_ns or 0,
            )
        )
    virtual = _virtual(runs)
    name = anchor_of("both", load)
    ends = enumeration([f"{x.label} at {us(x.max_ns, virtual)}" for x in layers])
    return tuple(
        Chart(
            name=f"{name}-{kind}",
            title=f"{printable(load)}: {words}",
            description=f"{what} of {sides[0].label} and {sides[1].label} under "
            f"{printable(load)}, both axes logarithmic where the span asks for it; "
            f"the curves end at the maxima: {ends}.",
            content=Overlay(
                edges_ns=tuple(edges.tolist()),
                layers=tuple(layers),
                logarithmic=logarithmic,
                tails=kind == "tails",
            ),
            samples=min(layer.samples for layer in layers),
            deadline_ns=deadline_ns,
            virtual=virtual,
        )
        for kind, words, what in (
            ("counts", "both distributions", "Histograms"),
            ("tails", "how rare is how late", "Shares of wake-ups at least so late"),
        )
    )
