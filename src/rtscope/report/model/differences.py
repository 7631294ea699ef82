"""What keeps a published table and a measurement of ours apart, each in a sentence."""

import shlex
from collections.abc import Iterator, Sequence

from rtscope.published import Published
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.model.machines import machines_of
from rtscope.report.model.rows import kernel_of
from rtscope.report.words import command_line, duration, enumeration

_OURS_FROM = "--no-rand-seed"
"""Options from here on are about where and how long a load runs."""


def differences(records: Sequence[RunRecord], table: Published) -> tuple[str, ...]:
    """Return the differences of machine, kernel, load and way of measuring."""
    return tuple(
        sentence
        for told in (
            _virtual(records),
            _machine(records, table),
            _kernels(records, table),
            _timing(records, table),
            _cpus(records, table),
            _policy(records, table),
            _loads(records, table),
            _instrument(records, table),
        )
        for sentence in told
    )


def _virtual(records: Sequence[RunRecord]) -> Iterator[str]:
    boards = {printable(v.board): v for r in records if (v := r.virtual)}
    for name, v in boards.items():
        yield (
            f"Ours is the virtual board {name}: instructions counted at "
            f"{v.mips:g} million a virtual second, no caches, buses or firmware. "
            "Its virtual µs are no µs of the published machine: set the ratios beside "
            "each other, not the figures."
        )


def _machine(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    names = enumeration(list(dict.fromkeys(m.name for m in machines_of(records))))
    yield f"Machine: {table.machine} there, {names} here."


def _kernels(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    theirs = enumeration([f"{k.release} ({k.model})" for k in table.kernels.values()])
    ours = enumeration(list(dict.fromkeys(kernel_of(r) for r in records)))
    yield f"Kernels: {theirs} there, {ours} here."


def _timing(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    intervals = list(dict.fromkeys(r.run.interval_ns for r in records))
    if intervals != [table.interval_ns]:
        here = enumeration([duration(ns) for ns in intervals])
        yield f"Interval: {duration(table.interval_ns)} there, {here} here."
    lengths = list(dict.fromkeys(r.run.duration_ns for r in records))
    if lengths != [table.duration_ns]:
        here = enumeration([duration(ns) for ns in lengths])
        longer = "there" if table.duration_ns > max(lengths) else "where it is longer"
        yield (
            f"Duration of a run: {duration(table.duration_ns)} there, {here} here; a "
            f"longer run has a larger maximum, so the one {longer} is at a "
            "disadvantage."
        )


def _cpus(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    here = list(dict.fromkeys(len(r.result.threads) for r in records))
    if table.cpus is None:
        yield "The number of CPUs was not published."
    elif here != [table.cpus]:
        ours = enumeration([str(n) for n in here])
        yield f"CPUs measured: {table.cpus} there, {ours} here."


def _policy(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    here = list(dict.fromkeys((r.run.policy, r.run.priority) for r in records))
    if here != [(table.policy, table.priority)]:
        ours = enumeration([f"{printable(p)} {n}" for p, n in here])
        yield f"Policy: {table.policy} {table.priority} there, {ours} here."


def _loads(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    added: dict[str, list[str]] = {}
    other = []
    for load, command in table.loads.items():
        ours = next((r.load.argv for r in records if r.run.load == load), ())
        theirs = shlex.split(command)
        mine = _told(ours)
        if not theirs or not mine or mine == theirs:
            continue
        if mine[: len(theirs)] == theirs:
            added.setdefault(command_line(mine[len(theirs) :]), []).append(load)
        else:
            other.append(f"{load}: {command} there, {command_line(mine)} here")
    said = [
        f"ours add {options} under {enumeration(loads)}"
        for options, loads in added.items()
    ]
    if said or other:
        yield f"Loads: {'; '.join([*said, *other])}."


def _told(argv: Sequence[str]) -> list[str]:
    """Return a load's command up to the options that every load of ours has."""
    end = argv.index(_OURS_FROM) if _OURS_FROM in argv else len(argv)
    return list(argv[:end])


def _instrument(records: Sequence[RunRecord], table: Published) -> Iterator[str]:
    held = {r.result.dma_latency_held for r in records}
    idle = "" if held == {True} else " and holds CPUs awake, which ours does not"
    skipped = sum(t.skipped for r in records for t in r.result.threads)
    counted = f" ({skipped:,})" if skipped else ""
    yield (
        f"Instrument: {table.tool} there{idle}; skipped activations are counted here"
        f"{counted} and not there. Its histogram ends at "
        f"{duration(table.histogram_end_ns)}, ours holds every latency."
    )
