"""
The gate of virtual boards: equal inputs, equal results, to the last bit.

Runs are held against each other (`among`), or against those of a stored record
(`against`). What differs is named: the result, and each input by its digest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rtscope.record.model import RunRecord

INPUTS = ("kernel", "initrd", "qemu", "plugin", "board", "campaign", "seed")
"""As in a record's `extra.virtual.inputs`."""

Key = tuple[object, ...]
"""What a run was asked to be; the seed is the last."""

Cells = dict[Key, list[RunRecord]]


@dataclass(frozen=True, slots=True)
class Compared:
    """The runs of one cell of the matrix, which should be identical."""

    name: str
    runs: tuple[str, ...]
    """What each run is called; those of the stored record come first."""
    results: tuple[str, ...]
    """The digest of the result of each run."""
    differing: tuple[str, ...]
    """Inputs that were not the same in all of them."""
    known: bool
    """Whether all of them recorded their inputs."""

    @property
    def same_result(self) -> bool:
        """Whether there are results to compare, and all are equal."""
        return len(self.results) > 1 and len(set(self.results)) == 1

    @property
    def identical(self) -> bool:
        """Whether inputs and results were equal."""
        return self.same_result and self.known and not self.differing


def among(records: Sequence[RunRecord]) -> tuple[Compared, ...]:
    """Hold the repetitions of each run against each other."""
    return tuple(_compared(runs) for runs in _cells(records).values())


def against(
    records: Sequence[RunRecord], stored: Sequence[RunRecord]
) -> tuple[Compared, ...]:
    """
    Hold each run against its like in a stored record, and its repetitions.

    Where nothing but the seed tells them apart, and there is one on each side, they are
    each other's like: then the seed is the input that differs.
    """
    ours, theirs = _cells(records), _cells(stored)
    return tuple(
        _compared(runs, theirs.get(key) or _but_for_the_seed(key, ours, theirs))
        for key, runs in ours.items()
    )


def _but_for_the_seed(key: Key, ours: Cells, theirs: Cells) -> Sequence[RunRecord]:
    like = [runs for other, runs in theirs.items() if other[:-1] == key[:-1]]
    mine = [other for other in ours if other[:-1] == key[:-1]]
    return like[0] if len(like) == len(mine) == 1 else ()


def _cells(records: Iterable[RunRecord]) -> Cells:
    cells: Cells = {}
    for record in records:
        run = record.run
        key = (
            *(run.load, run.kernel, run.policy, run.priority, run.interval_ns),
            *(run.duration_ns, run.cpus, run.deadline_runtime_ns, run.seed),
        )
        cells.setdefault(key, []).append(record)
    return cells


def _compared(
    records: Sequence[RunRecord], stored: Sequence[RunRecord] = ()
) -> Compared:
    first = records[0].run
    seed = None if first.seed is None else f"seed {first.seed}"
    inputs = [_inputs(record) for record in chain(stored, records)]
    return Compared(
        name=", ".join(part for part in (first.load, first.kernel, seed) if part),
        runs=(
            *(f"stored {record.run.id}" for record in stored),
            *(record.run.id for record in records),
        ),
        results=tuple(record.result_digest for record in chain(stored, records)),
        differing=tuple(
            name for name in INPUTS if len({str(row.get(name)) for row in inputs}) > 1
        ),
        known=all(inputs),
    )


def _inputs(record: RunRecord) -> Mapping[str, object]:
    virtual = record.extra.get("virtual")
    inputs = virtual.get("inputs") if isinstance(virtual, Mapping) else None
    return inputs if isinstance(inputs, Mapping) else {}
