"""
The tables of lab/survey.md, from results of `rtscope sweep survey`.

    rtscope sweep --resume survey --json > survey.json
    PYTHONPATH=tools/docs python lab/surveytable.py survey.json

Kernels that were surveyed one after the other are results of their own, and columns of
the same tables.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from prose import row
from rtscope.host.errors import first_of
from rtscope.host.units import count, format_us
from rtscope.present.words import NOTHING
from rtscope.verbs.sweep.ranking import RankedLoad, Ranking, Standing
from rtscope.verbs.sweep.surveytext import cause_of, worst_of


def read_ranking(path: Path) -> Ranking:
    """Return the ranking in a file that `rtscope sweep --json` has written."""
    return TypeAdapter(Ranking).validate_python(json.loads(path.read_text()))


def joined(rankings: Sequence[Ranking]) -> Ranking:
    """Return rankings of different kernels as one, in the order of the first kernel."""
    kernels = tuple(kernel for one in rankings for kernel in one.kernels)
    if len(set(kernels)) < len(kernels):
        raise ValueError("two results have the same kernel")
    loads: dict[str, RankedLoad] = {}
    for load in (load for one in rankings for load in one.loads):
        had = loads.get(load.name, RankedLoad(load.name, {}, {}, {}))
        loads[load.name] = RankedLoad(
            load.name,
            {**had.standings, **load.standings},
            {**had.failures, **load.failures},
            {**had.in_part, **load.in_part},
        )
    releases = {k: r for one in rankings for k, r in one.releases.items()}
    return Ranking(kernels, tuple(loads.values()), releases=releases)


def totals(ranking: Ranking) -> Iterator[Sequence[str]]:
    """Yield how many loads ran on each kernel, and how far they go."""
    yield (
        *("kernel", "Linux", "ranked", "in part", "did not run"),
        *("usual worst, us", "above it"),
    )
    for kernel in ranking.kernels:
        ran = ranking.ranked(kernel)
        usual = [x.standings[kernel].worst_ns for x in ran if not x.is_stressor]
        yield (
            kernel,
            ranking.releases.get(kernel) or NOTHING,
            count(len(ran)),
            count(len(ranking.ran_in_part(kernel))),
            count(sum(kernel in load.unknown for load in ranking.loads)),
            format_us(max(usual)) if usual else NOTHING,
            count(len(ranking.worse_than_usual(kernel))),
        )


def missed_by_the_usual(ranking: Ranking, kernel: str) -> Iterator[Sequence[str]]:
    """Yield the few stressors that show what the usual loads miss on a kernel."""
    yield ("stressor", "worst, us", "cause", "of it, us", "others that show it")
    others = ranking.new_causes(kernel)
    for load in ranking.fewest(kernel):
        standing = load.standings[kernel]
        also = [x.label for x in others[cause_of(standing)] if x.name != load.name]
        yield (
            load.label,
            format_us(standing.worst_ns),
            cause_of(standing),
            _length(standing),
            first_of(4, also) or NOTHING,
        )


def all_loads(ranking: Ranking) -> Iterator[Sequence[str]]:
    """Yield each load that ran, the worst on the first kernel first."""
    yield ("load", *(word for k in ranking.kernels for word in _heading(k)))
    ran = [load for load in ranking.loads if load.standings]
    for load in ran:
        name = load.label if load.is_stressor else f"**{load.label}**"
        yield (name, *(word for k in ranking.kernels for word in _of(load, k)))


def _heading(kernel: str) -> Sequence[str]:
    return (f"{kernel}: worst, us", "cause", "of it, us")


def _of(load: RankedLoad, kernel: str) -> Sequence[str]:
    standing = load.standings.get(kernel)
    return (worst_of(load, kernel), cause_of(standing), _length(standing))


def _length(standing: Standing | None) -> str:
    cause = standing.cause if standing else None
    return format_us(cause.length_ns) if cause else NOTHING


def in_part(ranking: Ranking) -> Iterator[Sequence[str]]:
    """Yield the loads that worked, and are not shown to have worked throughout."""
    yield ("load", "kernel", "worst at least, us", "cause", "of it, us", "why no rank")
    for kernel in ranking.kernels:
        for load in ranking.ran_in_part(kernel):
            standing = load.in_part[kernel]
            yield (
                load.label,
                kernel,
                format_us(standing.worst_ns),
                cause_of(standing),
                _length(standing),
                load.failures[kernel],
            )


def not_run(ranking: Ranking) -> Iterator[Sequence[str]]:
    """Yield the loads that did not run, and why."""
    yield ("load", *(f"why not on {kernel}" for kernel in ranking.kernels))
    for load in sorted(ranking.failed, key=lambda x: x.name):
        yield (
            load.label,
            *(_why_not(load, kernel) for kernel in ranking.kernels),
        )


def _why_not(load: RankedLoad, kernel: str) -> str:
    if kernel in load.standings or kernel in load.in_part:
        return "it ran"
    return load.unknown.get(kernel, NOTHING)


def lines_of(rows: Iterator[Sequence[str]]) -> Iterator[str]:
    """Yield a table in Markdown; columns with a unit are of numbers."""
    heading = next(rows)
    yield row(heading)
    yield row(["---:" if ", us" in word else "---" for word in heading])
    yield from map(row, rows)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", nargs="+", type=Path, help="FILE")
    ranking = joined([read_ranking(file) for file in parser.parse_args().result])
    tables = [totals(ranking)]
    tables += [missed_by_the_usual(ranking, kernel) for kernel in ranking.kernels]
    tables += [all_loads(ranking), in_part(ranking), not_run(ranking)]
    print("\n\n".join("\n".join(lines_of(rows)) for rows in tables))


if __name__ == "__main__":
    main()
