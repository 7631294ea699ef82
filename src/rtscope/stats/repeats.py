"""
Exact repetitions: a virtual run measured again is the same trajectory, not another.

A virtual board's result follows from its inputs. So equal results count once, however
often they were measured, and equal inputs with different results mean that something
reached the board that should not: then none of those results may be used.
"""

from collections.abc import Sequence

from rtscope.caveats.catalogue import Caveat, gravest_first, make
from rtscope.record.model import RunRecord
from rtscope.stats.lint import all_caveats

INPUTS = (
    "board",
    "cpus",
    "mips",
    "turn_instructions",
    "seed",
    "kernel_digest",
    "initrd_digest",
    "qemu_digest",
    "plugin_digest",
)
"""What decides a virtual result; the initrd holds agent, load, options and script."""

Inputs = tuple[object, ...]


def is_virtual(record: RunRecord) -> bool:
    """Whether a record is of a virtual board."""
    return "virtual" in record.extra


def inputs_of(record: RunRecord) -> Inputs | None:
    """Return what decides a virtual result; None for a machine, which nothing does."""
    if not is_virtual(record):
        return None
    virtual = record.extra["virtual"]
    return (record.run.load, *(str(virtual.get(name)) for name in INPUTS))


def distinct(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Return the records, each virtual result once, in the same order."""
    seen: set[str] = set()
    kept = []
    for record in records:
        if is_virtual(record):
            if record.result_digest in seen:
                continue
            seen.add(record.result_digest)
        kept.append(record)
    return tuple(kept)


def contradictions(
    records: Sequence[RunRecord],
) -> tuple[tuple[RunRecord, ...], ...]:
    """Return the groups of records that have equal inputs and different results."""
    by_inputs: dict[Inputs, list[RunRecord]] = {}
    for record in records:
        inputs = inputs_of(record)
        if inputs is not None:
            by_inputs.setdefault(inputs, []).append(record)
    return tuple(
        tuple(same)
        for same in by_inputs.values()
        if len({r.result_digest for r in same}) > 1
    )


def caveats_among(records: Sequence[RunRecord]) -> tuple[tuple[Caveat, ...], ...]:
    """
    Return the caveats of each record, with what only shows beside the others.

    That is a contradiction (invalid), and that it repeats another result exactly.
    """
    contradicting = contradictions(records)
    return tuple(
        gravest_first(
            (
                *all_caveats(record),
                *_contradicted(record, contradicting),
                *_repeated(record, records),
            )
        )
        for record in records
    )


def _contradicted(
    record: RunRecord, contradicting: Sequence[Sequence[RunRecord]]
) -> tuple[Caveat, ...]:
    for same in contradicting:
        if any(record is other for other in same):
            results = len({r.result_digest for r in same})
            detail = f"{record.run.load}: {len(same)} runs, {results} different results"
            return (make("not_deterministic", detail),)
    return ()


def _repeated(record: RunRecord, records: Sequence[RunRecord]) -> tuple[Caveat, ...]:
    inputs = inputs_of(record)
    if inputs is None:
        return ()
    same = [
        r
        for r in records
        if r.result_digest == record.result_digest and inputs_of(r) == inputs
    ]
    if len(same) < 2:
        return ()
    detail = f"{record.run.load}: {len(same)} runs with the same digest"
    return (make("identical_repeats", detail),)
