"""
The statistics of 200 random families, written down: `families.txt`.

A share of labellings or of signs is exact, and is held to its last bit (float.hex). A
statistic adds up in an order that a processor may choose: nine digits of it are held.
`python -m net.families --rewrite` writes the file anew.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fakes.measurements import on_board, record, thread
from rtscope.record.model import RunRecord
from rtscope.stats.compare import compare_loads
from rtscope.stats.comparison.design import (
    Dealt,
    FigureOfRuns,
    Paired,
    Slot,
    detectable_ratio,
    detectable_ratio_of_pairs,
    needed_pairs,
    needed_runs,
)
from rtscope.stats.comparison.effect import (
    CONFIDENCE,
    effects_of_runs,
    false_discovered,
    share,
)
from rtscope.stats.determinism import among, over_seeds
from rtscope.stats.evidence import Claim
from rtscope.stats.exposure import (
    effective_runs,
    limits_over_runs,
    rate_limits_per_hour,
    supported_interval_ns,
)
from rtscope.stats.runsets import run_sets
from rtscope.stats.verdict import judge

HELD = Path(__file__).with_name("families.txt")
FAMILIES, SEED = 200, 37
ALPHA = 0.05
OF_RECORDS = 5
"""Every so many-th family is also one of records."""

Lines = Iterator[str]


def lines(families: int = FAMILIES) -> Lines:
    """Yield the results of all families, or of the first ones."""
    for number in range(families):
        draw = random.Random(f"{SEED} {number}")
        yield f"family {number}"
        yield from _joint(draw)
        yield from _pairs(draw)
        yield from _limits(draw)
        if number % OF_RECORDS == 0:
            yield from _of_records(draw)


def differing(families: int = FAMILIES) -> list[str]:
    """Return the lines that are not as they are held, of all or of the first ones."""
    was, is_now = HELD.read_text("utf-8").splitlines(), list(lines(families))
    if families < FAMILIES:
        was = was[: was.index(f"family {families}")]
    if len(was) != len(is_now):
        return [f"{len(was)} lines -> {len(is_now)}"]
    return [
        f"{old} -> {new}" for old, new in zip(was, is_now, strict=True) if old != new
    ]


def rewrite() -> None:
    """Hold the lines of today's statistics."""
    HELD.write_text("".join(f"{line}\n" for line in lines()))


def _joint(draw: random.Random) -> Lines:
    """One joint test: blocks of any sizes, ties, values that do not vary."""
    # Rarely so many that labellings are drawn.
    largest = draw.choice((1, 1, 2, 2, 3, 5, 7)) if draw.random() < 0.95 else 10
    blocks = draw.randint(1, 1 if largest > 3 else 5)
    slots = tuple(
        Slot(block, candidate)
        for block in range(blocks)
        for candidate in (False, True)
        for _ in range(max(largest - draw.randint(0, 1), 1) + (blocks == 1))
    )
    scale = draw.choice((1.0, 1.0, 0.2))
    figures = []
    for _ in range(draw.randint(1, 4)):
        shift = draw.choice((0.0, 0.0, 1.0, 3.0))
        values = [draw.gauss(5 + shift * one.candidate, scale) for one in slots]
        digits = draw.choice((None, 1, 0))
        if digits is not None:
            values = [round(value, digits) for value in values]
        figures.append(FigureOfRuns(tuple(range(len(slots))), tuple(values)))
    design = Dealt(slots)
    tests = effects_of_runs(design, figures, alpha=ALPHA, seed=draw.randint(0, 9))
    critical = tests[0].critical
    assert critical is not None
    yield f"  {design.labellings} labellings exact {design.is_exact}"
    yield f"  smallest p {design.smallest_p.hex()} critical {critical:.9g}"
    for test in tests:
        yield f"  p {test.p.hex()} {test.adjusted_p.hex()} t {test.statistic:.9g}"
        answer = f"ratio {test.ratio:.9g} spread {test.spread:.9g}"
        finds = f"finds {_short(test.detectable_ratio)} needs {test.needed_runs(1.5)}"
        yield f"    {answer} {finds} worse {test.is_worse} better {test.is_better}"
    runs = (sum(not one.candidate for one in slots), sum(o.candidate for o in slots))
    ratio = detectable_ratio(scale / 5, critical=critical, runs=runs)
    needed = needed_runs(scale / 5, ratio=1.1, alpha=ALPHA, least=min(runs))
    yield f"  finds {_short(ratio)} needs {needed}"


def _pairs(draw: random.Random) -> Lines:
    """Sign-flip tests of one family, and what it discovers."""
    p_values = []
    for _ in range(draw.randint(1, 6)):
        mean = draw.choice((0.0, 0.0, 0.5, 2.0))
        count = draw.choice((0, 1, 2, 5, 6, 7, 8, 12, 20, 21, 33))
        values = [draw.gauss(mean, 1) for _ in range(count)]
        if draw.random() < 0.3:
            values = [float(round(value)) for value in values]
        signs = Paired(tuple(values))
        p_values.append(float(share(signs.sums, signs.seen)))
        interval = signs.interval(CONFIDENCE)
        ends = "none" if interval is None else " ".join(map(_short, interval))
        finds = _short(detectable_ratio_of_pairs(abs(mean) + 0.1, pairs=count))
        yield f"  signs {p_values[-1].hex()} of {count}, {ends}, finds {finds}"
    found = "".join("ny"[p <= ALPHA] for p in false_discovered(p_values))
    yield f"  discoveries {found} needed pairs {needed_pairs(len(p_values))}"


def _limits(draw: random.Random) -> Lines:
    """Limits of a rate, of so many events in so many runs."""
    events, spread = draw.choice((0, 0, 1, 2, 17, 400)), draw.choice((1.0, 2.5))
    lengths = [draw.randint(1, 10) * 10**9 for _ in range(draw.randint(1, 9))]
    runs = effective_runs(lengths)
    over = limits_over_runs(events, runs=runs, dispersion=spread)
    rate = rate_limits_per_hour(events, sum(lengths), dispersion=spread)
    interval = supported_interval_ns(events, sum(lengths), dispersion=spread)
    yield f"  {events} events {' '.join(map(_short, (runs, *over, *rate)))}"
    yield f"  supports {interval / 1e9:.6g} s"


def _of_records(draw: random.Random) -> Lines:
    """Compare and judge runs of a machine, or of a board over its seeds."""
    virtual, count = draw.random() < 0.5, draw.randint(2, 6)
    shift = draw.choice((1.0, 1.0, 1.3, 3.0))
    loads = ("idle", "memory")[: draw.randint(1, 2)]
    deadline_ns = draw.choice((30_000, 60_000))
    sets, every = [], []
    for load in loads:
        groups = {
            label: [
                _run(draw, load, label, number, factor, virtual=virtual)
                for number in range(1, count + 1)
            ]
            for label, factor in (("a", 1.0), ("b", shift), ("c", 1.0))
        }
        sets.append(run_sets(groups, deadline_ns=deadline_ns))
        every += [run for runs in groups.values() for run in runs]
    for comparison in compare_loads(sets):
        for pair in comparison.pairs:
            yield f"  {comparison.load} {pair.candidate} {pair.word} {pair.tests}"
            for one in pair.figures:
                p = f"{one.p.hex()} {one.adjusted_p.hex()}"
                yield f"    {one.figure} p {p} finds {_short(one.detectable_ratio)}"
    claim = Claim(1, 3600 * 10**9) if draw.random() < 0.5 else None
    judged = judge(every, deadline_ns=deadline_ns, claim=claim)
    yield f"  verdict {judged.verdict} {judged.exit_status}"
    for finding in judged.findings:
        yield f"    {finding.load} {finding.verdict}"
    seeds = over_seeds([run for run in every if run.run.load == "idle"])
    alike = [cell.name for cell in among(every) if cell.same_result]
    yield f"  seeds {seeds and (seeds.trajectories, seeds.median_ns)} alike {alike}"


def _run(
    draw: random.Random,
    load: str,
    kernel: str,
    number: int,
    factor: float,
    *,
    virtual: bool,
) -> RunRecord:
    latencies = [round(factor * draw.lognormvariate(9, 0.4)) for _ in range(60)]
    made = record(
        [thread(latencies)],
        load,
        kernel=kernel,
        repetition=number,
        boot_id=f"00000000-0000-4000-8000-{number:012}",
    )
    made = replace(made, run=replace(made.run, kernel=kernel))
    if not virtual:
        return made
    made = on_board(made, seed=number)
    return replace(made, run=replace(made.run, seed=number))


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.9g}"


def main() -> int:
    """Compare the families with the file, or write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--rewrite", action="store_true")
    if parser.parse_args().rewrite:
        rewrite()
        return 0
    found = differing()
    print("".join(f"{line}\n" for line in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
