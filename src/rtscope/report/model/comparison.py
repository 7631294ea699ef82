"""
The model of a comparison: two or more labelled sets of runs, one load at a time.

The unit is the run, never the sample: the sentences are those of `stats.compare`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rtscope import __version__
from rtscope.errors import RtscopeError, UsageError
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.model.caveats import MergedCaveat, merged_caveats
from rtscope.report.model.definitions import Definition, definitions
from rtscope.report.model.machines import Machine, machines_of
from rtscope.report.model.provenance import Provenance, provenance_of
from rtscope.report.model.rows import STANDARD_LOADS, Row, kernel_of, merged_row
from rtscope.report.model.series import Chart, Group, Mark
from rtscope.report.model.sidebyside import SideBySide, side_by_side
from rtscope.report.words import (
    capital,
    enumeration,
    percentile_ns,
    plural,
    virtual_word,
)
from rtscope.stats.compare import Comparison as Tests
from rtscope.stats.compare import compare
from rtscope.stats.outcome import Word
from rtscope.units import format_number


@dataclass(frozen=True, slots=True)
class Side:
    """One set of runs under one load."""

    label: str
    row: Row
    median_max_ns: float | None
    """Median of the maxima of its runs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One set against the first, in a sentence."""

    word: str
    different: bool
    rest: str
    """What follows the word in its sentence, from the space or the colon on."""
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadComparison:
    """All sets under one load."""

    load: str
    sides: tuple[Side, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison, in the order in which it is read."""

    title: str
    subtitle: str
    summary: str
    loads: tuple[LoadComparison, ...]
    pair: SideBySide | None
    """Both sets side by side, if there are two."""
    chart: Chart | None
    caveats: tuple[MergedCaveat, ...]
    machines: tuple[tuple[str, Machine], ...]
    """Label and machine."""
    definitions: tuple[Definition, ...]
    provenance: tuple[Provenance, ...]
    deadline_ns: int | None
    made_by: str
    virtual: str
    """`virtual ` if a time in it is a virtual board's, to stand before units."""

    @property
    def not_deterministic(self) -> bool:
        """Whether equal inputs of a virtual board gave different results."""
        return any(c.id == "not_deterministic" for c in self.caveats)


def split_by_kernel(
    sets: Mapping[str, Sequence[RunRecord]],
) -> Mapping[str, Sequence[RunRecord]]:
    """
    Make a set of each kernel (or target) where one holds runs of several.

    Runs of two kernels are no repetitions of each other.
    """
    split: dict[str, list[RunRecord]] = {}
    for label, runs in sets.items():
        kernels = {(r.run.target, kernel_of(r)) for r in runs}
        targets = {target for target, _ in kernels}
        for record in runs:
            name = kernel_of(record)
            if len(targets) > 1:
                name = f"{record.run.target} {name}"
            if len(kernels) < 2:
                name = label
            elif len(sets) > 1:
                name = f"{label} {name}"
            split.setdefault(name, []).append(record)
    return split


def build_comparison(
    sets: Mapping[str, Sequence[RunRecord]], *, deadline_ns: int | None = None
) -> Comparison:
    """
    Compare sets of runs by label; the first is the one that others are held against.

    Raises UsageError for fewer than two sets, and if they have no load in common.
    """
    if len(sets) < 2:
        raise UsageError("nothing to compare: name two records or more")
    labelled = {printable(label): tuple(runs) for label, runs in sets.items()}
    loads = _loads_of(labelled)
    if not loads:
        raise UsageError("the records have no load in common: nothing to compare")
    compared = tuple(_load(labelled, load, deadline_ns) for load in loads)
    records = [record for runs in labelled.values() for record in runs]
    first = next(iter(labelled))
    return Comparison(
        title=f"Wake-up latency of {enumeration(list(labelled))} compared",
        subtitle=f"Held against {first}",
        summary=_summary(compared),
        loads=compared,
        pair=side_by_side(labelled, deadline_ns=deadline_ns),
        chart=_chart(
            compared, list(labelled), deadline_ns, virtual=virtual_word(records)
        ),
        caveats=merged_caveats(records),
        machines=tuple(
            (label, machine)
            for label, runs in labelled.items()
            for machine in machines_of(runs)
        ),
        definitions=definitions(),
        provenance=tuple(provenance_of(r) for r in records),
        deadline_ns=deadline_ns,
        made_by=f"rtscope {__version__}",
        virtual=virtual_word(records),
    )


def _loads_of(labelled: Mapping[str, Sequence[RunRecord]]) -> list[str]:
    """Return the loads that two sets or more have, in the order of Table 5-1."""
    seen: dict[str, int] = {}
    for runs in labelled.values():
        for load in dict.fromkeys(r.run.load for r in runs):
            seen[load] = seen.get(load, 0) + 1
    common = [load for load, sets in seen.items() if sets > 1]
    standard = [load for load in STANDARD_LOADS if load in common]
    return standard + [load for load in common if load not in standard]


def _load(
    labelled: Mapping[str, Sequence[RunRecord]], load: str, deadline_ns: int | None
) -> LoadComparison:
    sets = {
        label: same
        for label, runs in labelled.items()
        if (same := tuple(r for r in runs if r.run.load == load))
    }
    try:
        outcomes = _outcomes(compare(sets, deadline_ns=deadline_ns))
    except RtscopeError as error:
        reason = capital(printable(str(error)))
        outcomes = (Outcome("NOT COMPARED", False, f": {reason}.", ()),)
    return LoadComparison(
        load=printable(load),
        sides=tuple(_side(label, runs) for label, runs in sets.items()),
        outcomes=outcomes,
    )


def _side(label: str, runs: tuple[RunRecord, ...]) -> Side:
    maxima = [
        max(highs)
        for r in runs
        if (highs := [t.max_ns for t in r.result.threads if t.max_ns is not None])
    ]
    return Side(
        label=label,
        row=merged_row(runs, variant=label),
        median_max_ns=median(maxima) if maxima else None,
    )


def _outcomes(tests: Tests) -> tuple[Outcome, ...]:
    left_out = [name for group in tests.groups for name in group.left_out]
    remarks = []
    repeats = sum(group.repeats for group in tests.groups)
    if repeats:
        remarks.append(f"{capital(plural(repeats, 'exact repetition'))} left out.")
    if left_out:
        remarks.append(f"Left out, not valid: {printable(enumeration(left_out))}.")
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
        if pair.tests and not pair.in_turns:
            said.append(
                "The runs were not taken in turns: what changed with time (heat, other "
                "work) looks the same as what changed between the sets."
            )
        outcomes.append(
            Outcome(
                word=pair.word.value,
                different=pair.word is Word.DIFFERENT,
                rest=_rest(pair.word.value, printable(pair.sentence)),
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


def _chart(
    compared: Sequence[LoadComparison],
    labels: Sequence[str],
    deadline_ns: int | None,
    *,
    virtual: str,
) -> Chart | None:
    groups = []
    for load in compared:
        marks = tuple(
            Mark(
                label=side.label,
                colour=labels.index(side.label),
                min_ns=side.row.summary.min_ns,
                avg_ns=side.row.summary.mean_ns,
                p999_ns=percentile_ns(side.row.summary, 99.9),
                max_ns=side.row.summary.max_ns,
            )
            for side in load.sides
            if side.row.summary is not None
        )
        if marks:
            groups.append(Group(load.load, marks))
    if not groups:
        return None
    return Chart(
        name="comparison",
        title="Side by side",
        description="Minimum, average, 99.9th percentile and maximum of each set under "
        "each load, on a logarithmic axis; the figures are those of the tables.",
        content=tuple(groups),
        deadline_ns=deadline_ns,
        virtual=virtual,
    )
