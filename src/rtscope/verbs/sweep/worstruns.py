"""
The run of each cell with its worst wake-up under each load, and what is known of that.

Its cause is read from the explanation of the run, if there is one. An explanation that
is withdrawn, or that is of another wake-up, gives none. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rtscope.record.directory.records import RECORD
from rtscope.record.explanation import Explained
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.design import Cell
from rtscope.verbs.sweep.effects import Effect, RunsOfCells
from rtscope.verbs.sweep.keys import Key

MOST_EXPLAINED = 20
"""Changes that are explained unasked: each takes a second or more."""


class Known(StrEnum):
    """How much is known of the cause of a worst wake-up."""

    CAUSE = "explained"
    NO_CAUSE = "no dominant cause"
    WITHDRAWN = "withdrawn"
    OTHER = "another wake-up is explained"
    NOT_EXPLAINED = "not explained"
    NOT_RECORDED = "no path recorded"


@dataclass(frozen=True, slots=True)
class WorstRun:
    """The run with the worst wake-up of a cell under one load, of all its seeds."""

    key: Key
    worst_ns: int
    seed: int | None
    run: str
    directory: str
    """Of the run, from that of the sweep."""
    result_digest: str
    known: Known
    cause: str = ""
    cause_ns: int = 0
    """How long the cause took, of the worst latency."""
    record: str = ""
    """File with the record, or a page of it, from the directory of the sweep."""
    explanation: str = ""
    """Page, or else file, with the explanation, from there; empty: none."""


def worst_runs_of(cell: Cell, runs: Mapping[Key, RunsOfCells]) -> tuple[WorstRun, ...]:
    """Return the worst run of a cell for each key, in the order of the keys."""
    return tuple(
        _worst_run(key, [run.record for run in of_cells[cell.number].values()], cell)
        for key, of_cells in sorted(runs.items())
        if any(run.figures for run in of_cells.get(cell.number, {}).values())
    )


def _worst_run(key: Key, records: Sequence[RunRecord], cell: Cell) -> WorstRun:
    worst = max(records, key=lambda one: (one.max_ns or 0, -(one.run.seed or 0)))
    directory = f"{cell.path}/runs/{worst.run.id}"
    return WorstRun(
        key=key,
        worst_ns=worst.max_ns or 0,
        seed=worst.run.seed,
        run=worst.run.id,
        directory=directory,
        result_digest=worst.result_digest,
        known=Known.NOT_EXPLAINED if _has_path(worst) else Known.NOT_RECORDED,
        record=f"{directory}/{RECORD}",
    )


def _has_path(record: RunRecord) -> bool:
    """Whether the run says that the paths to its worst wake-ups were recorded."""
    note = record.virtual.trace if record.virtual else None
    return note is not None and "reason" not in note


def explained_by(run: WorstRun, explained: Explained) -> WorstRun:
    """Return the run with what an explanation of its result says of its cause."""
    worst = explained.worst
    if worst is None or worst.latency_ns != run.worst_ns:
        return replace(run, known=Known.OTHER)
    if worst.is_withdrawn:
        return replace(run, known=Known.WITHDRAWN)
    cause = worst.dominant
    if cause is None:
        return replace(run, known=Known.NO_CAUSE)
    return replace(run, known=Known.CAUSE, cause=cause.title, cause_ns=worst.blamed_ns)


def most_changed(effects: Sequence[Effect]) -> tuple[tuple[str, Key], ...]:
    """
    Return cells, each with a load, that have the largest effects; at most 20.

    The effects are the largest first.
    """
    return tuple(dict.fromkeys((one.cell, one.key) for one in effects))[:MOST_EXPLAINED]


def to_explain(
    effects: Sequence[Effect], worst_runs: Mapping[tuple[str, Key], WorstRun], base: str
) -> Iterator[WorstRun]:
    """
    Yield the worst runs of the most changed cells; those of the base come first.

    `worst_runs` are by the name of the cell and the key.
    """
    chosen = most_changed(effects)
    keys = dict.fromkeys(key for _, key in chosen)
    for place in (*((base, key) for key in keys), *chosen):
        if place in worst_runs:
            yield worst_runs[place]
