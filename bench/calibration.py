"""
How often what rtscope says of numbers is wrong: the calibration of its statistics.

    calibration.py                 all sections that are simulated, with fixed seeds
    calibration.py SECTION...      some of them: see SECTIONS
    calibration.py machine --pairs 60 --out DIR
                                   real campaigns of this machine, each comparing a
                                   variant with itself, planned, run and compared by
                                   the commands that a user types

Prints tables in Markdown, for docs/measured/calibration.md.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from rtscope.measure.campaign.model import RECORDED_WORST, Campaign, RunTable
from rtscope.measure.plan import make_plan
from rtscope.stats.compare import Word, compare_loads
from rtscope.stats.episodes import Misses
from rtscope.stats.evidence import Claim, Evidence, Verdict
from rtscope.stats.exposure import MIN_WAKEUPS, Watched, dispersion_of
from rtscope.stats.runsets import Drawn, Group, RunFigures, RunSets

PAIRS = 6_000
PAIRS_APART = 500
RUNS = 5
"""Of each variant under each load, in the section `alarms`."""
LOADS = ("idle", "cpu", "os", "memory", "storage")
Values = npt.NDArray[np.float64]
Series = Callable[[np.random.Generator, int], Values]
"""Draws the level of so many runs in the order of their time, about 1."""


def log_normal(rng: np.random.Generator, runs: int) -> Values:
    """Runs that differ by 20 %."""
    levels: Values = rng.lognormal(0, 0.2, size=runs)
    return levels


def pareto(rng: np.random.Generator, runs: int) -> Values:
    """Maxima without a variance: a tail of index 1.5."""
    levels: Values = 1 + rng.pareto(1.5, size=runs)
    return levels


def mixture(rng: np.random.Generator, runs: int) -> Values:
    """One run in five meets something rare that is ten times as late."""
    levels: Values = rng.lognormal(0, 0.1, size=runs)
    levels[rng.random(runs) < 0.2] *= 10
    return levels


def autoregressive(rng: np.random.Generator, runs: int) -> Values:
    """Each run is nearly like the one before: AR(1) with 0.9."""
    level, levels = rng.normal(0, 0.2), []
    for _ in range(runs):
        level = 0.9 * level + rng.normal(0, 0.2 * math.sqrt(1 - 0.81))
        levels.append(level)
    found: Values = np.exp(np.array(levels))
    return found


def drift(rng: np.random.Generator, runs: int) -> Values:
    """Each run is 2 % later than the one before."""
    levels: Values = rng.lognormal(0, 0.05, size=runs)
    levels *= 1.02 ** np.arange(runs)
    return levels


SERIES: dict[str, Series] = {
    "log-normal, 20 %": log_normal,
    "Pareto 1.5": pareto,
    "mixture": mixture,
    "AR(1) 0.9": autoregressive,
    "drift of 2 % per run": drift,
}


def planned(repetitions: int, order_seed: int) -> list[tuple[str, str, Drawn]]:
    """Return load, variant and place of the runs of a campaign, in order of time."""
    tables = tuple(
        RunTable(loads=LOADS, repetitions=repetitions, variant=name) for name in "ab"
    )
    runs = make_plan(Campaign(runs=tables, order_seed=order_seed)).runs
    return [
        (
            run.load,
            str(run.variant),
            Drawn(
                block=run.block,
                slot=(run.block, run.variant, run.repetition),
                variant=str(run.variant),
            ),
        )
        for run in runs
    ]


def campaign(
    rng: np.random.Generator, series: Series, repetitions: int, *, ratio: float = 1.0
) -> list[RunSets]:
    """Simulate a planned campaign of variants a and b under all loads."""
    order = planned(repetitions, int(rng.integers(2**32)))
    # Averages and maxima of a run have levels of their own.
    means, maxima = (series(rng, len(order)) for _ in range(2))
    groups: dict[tuple[str, str], list[RunFigures]] = {}
    for at, (load, variant, drawn) in enumerate(order):
        factor = ratio if variant == "b" else 1.0
        groups.setdefault((load, variant), []).append(
            RunFigures(
                id=str(at),
                started=f"{at:06}",
                mean_ns=5_000 * means[at] * factor,
                max_ns=round(80_000 * maxima[at] * factor),
                misses=None,
                digest=str(at),
                drawn=drawn,
            )
        )
    return [
        RunSets(
            load=load,
            deadline_ns=None,
            groups=tuple(
                Group(name, tuple(groups[load, name]), (), 0, virtual=False)
                for name in "ab"
            ),
            broken=False,
        )
        for load in LOADS
    ]


def separate(
    rng: np.random.Generator, series: Series, repetitions: int
) -> list[RunSets]:
    """Simulate all runs of a before all of b, as without a plan."""
    sets = campaign(rng, series, repetitions)
    by_time = iter(
        sorted(
            (run for one in sets for group in one.groups for run in group.runs),
            key=lambda run: int(run.id),
        )
    )
    return [
        replace(
            one,
            groups=tuple(
                replace(
                    group,
                    runs=tuple(replace(next(by_time), drawn=None) for _ in group.runs),
                )
                for group in one.groups
            ),
        )
        for one in sets
    ]


def outcome(sets: Sequence[RunSets]) -> Word:
    """Return the outcome of a comparison: that a difference is shown, if it is once."""
    words = {pair.word for c in compare_loads(sets) for pair in c.pairs}
    order = (Word.DIFFERENT, Word.ORDER_NOT_RANDOMISED, Word.NO_EVIDENCE)
    return next(word for word in order if word in words)


def interval(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Clopper and Pearson 1934)."""
    low = float(beta.ppf(0.025, count, of - count + 1)) if count else 0.0
    high = float(beta.ppf(0.975, count + 1, of - count)) if count < of else 1.0
    return low, high


def share(count: int, of: int) -> str:
    """Write a share with its 95 % interval."""
    low, high = interval(count, of)
    return f"{count / of:.1%} ({low:.1%} to {high:.1%})"


def alarms() -> Iterator[str]:
    """How often equal variants are called different, all five loads together."""
    yield "| runs of one variant | runs | planned: different | AAA...BBB: different |"
    yield "|---|---|---|---|"
    for name, series in SERIES.items():
        rng = np.random.default_rng(RUNS)
        planned_words, separate_words = (
            Counter(outcome(make(rng, series, RUNS)) for _ in range(pairs))
            for make, pairs in ((campaign, PAIRS), (separate, PAIRS_APART))
        )
        yield (
            f"| {name} | {RUNS} v {RUNS} "
            f"| {share(planned_words[Word.DIFFERENT], PAIRS)} "
            f"| {share(separate_words[Word.DIFFERENT], PAIRS_APART)}; differs, "
            "order not randomised: "
            f"{share(separate_words[Word.ORDER_NOT_RANDOMISED], PAIRS_APART)} |"
        )


def power() -> Iterator[str]:
    """How often a real difference is shown, five loads together."""
    yield "| runs differ by | runs | 1.1 times | 1.3 times |"
    yield "|---|---|---|---|"
    for spread in (0.05, 0.1, 0.2):
        for repetitions, pairs in ((5, 400), (10, 60), (20, 60)):
            rng = np.random.default_rng(repetitions)

            def series(rng: np.random.Generator, n: int, sd: float = spread) -> Values:
                return rng.lognormal(0, sd, size=n)

            found = [
                sum(
                    outcome(campaign(rng, series, repetitions, ratio=ratio))
                    is Word.DIFFERENT
                    for _ in range(pairs)
                )
                for ratio in (1.1, 1.3)
            ]
            yield (
                f"| {spread:.0%} | {repetitions} v {repetitions} | "
                + " | ".join(share(count, pairs) for count in found)
                + " |"
            )


def stated() -> Iterator[str]:
    """How often the ratio of maxima that is stated to be found with 80 % is found."""
    yield "| runs differ by | runs | loads | stated ratio, median | found |"
    yield "|---|---|---|---|---|"
    for spread in (0.05, 0.1, 0.2):
        for repetitions, loads, pairs in (
            *((4, 1, 400), (5, 1, 400), (6, 1, 400), (8, 1, 200), (10, 1, 40)),
            (5, 5, 200),
        ):
            rng = np.random.default_rng(repetitions)

            def series(rng: np.random.Generator, n: int, sd: float = spread) -> Values:
                return rng.lognormal(0, sd, size=n)

            drawn = [campaign(rng, series, repetitions)[:loads] for _ in range(pairs)]
            ratio = float(np.median([_stated_ratio(sets) for sets in drawn]))
            found = sum(_is_found(sets, ratio) for sets in drawn)
            yield (
                f"| {spread:.0%} | {repetitions} v {repetitions} | {loads} | "
                f"{ratio:.3f} | {share(found, pairs)} |"
            )


def _stated_ratio(sets: Sequence[RunSets]) -> float:
    (pair,) = compare_loads(sets)[0].pairs
    (maximum,) = (one for one in pair.figures if one.figure == "max")
    return maximum.detectable_ratio or math.inf


def _is_found(sets: Sequence[RunSets], ratio: float) -> bool:
    """Whether the maximum of the candidate's first load, so much higher, is worse."""
    first, second = sets[0].groups
    runs = tuple(replace(r, max_ns=round(r.max_ns * ratio)) for r in second.runs)
    changed = replace(sets[0], groups=(first, replace(second, runs=runs)))
    return "max" in compare_loads([changed, *sets[1:]])[0].pairs[0].worse


CAMPAIGN = """
[campaign]
warmup = "0s"

[[run]]
variant = "a"
load = ["idle"]
duration = "2s"
repetitions = {repetitions}

[[run]]
variant = "b"
load = ["idle"]
duration = "2s"
repetitions = {repetitions}
"""


def machine(pairs: int, repetitions: int, out: Path) -> Iterator[str]:
    """Compare a variant with itself in real campaigns of this machine."""
    rtscope = [sys.executable, "-m", "rtscope"]
    file = out / "campaign.toml"
    file.write_text(CAMPAIGN.format(repetitions=repetitions))
    words: Counter[str] = Counter()
    for number in range(pairs):
        where = out / f"pair-{number:03}"
        run = [*rtscope, "run", str(file), "--out", str(where)]
        subprocess.run(run, check=False, capture_output=True)
        done = subprocess.run(
            [*rtscope, "compare", str(where), "--json"],
            check=True,
            capture_output=True,
            text=True,
        )
        found = json.loads(done.stdout)
        words[found["loads"][0]["outcomes"][0]["word"]] += 1
        print(f"{number + 1} of {pairs}: {dict(words)}", file=sys.stderr)
    yield "| real campaigns | runs | different |"
    yield "|---|---|---|"
    counted = words.total()
    yield (
        f"| {counted} | {repetitions} v {repetitions} of 2 s "
        f"| {share(words[Word.DIFFERENT.value], counted)} |"
    )
    yield ""
    yield f"All outcomes: {dict(words)}"


HOUR_NS = 3_600 * 10**9
LIMIT_TRIALS = 2_000
LIMIT_CPUS = 2
LISTED = 64
"""
Late wake-ups of each CPU whose time a record of a machine keeps, by default. An episode
is one of them, on one CPU.
"""
LISTED_IF_RECORDED = RECORDED_WORST
Spread = Callable[[np.random.Generator, int, float], tuple[list[Values], float, float]]
"""
Draws when the episodes of so many runs begin (0 to 1), given how many are expected.

Returns them with the count that the rates of these runs make one expect, and the count
of occasions expected in the long run: a burst is one.
"""


def independent(
    rng: np.random.Generator, runs: int, expected: float
) -> tuple[list[Values], float, float]:
    """Episodes of one rate, independent of each other."""
    starts = [rng.random(rng.poisson(expected / runs)) for _ in range(runs)]
    return starts, expected, expected


def bursts_of(size: int, apart: float) -> Spread:
    """Bursts of so many episodes, this part of a run apart."""

    def drawn(
        rng: np.random.Generator, runs: int, expected: float
    ) -> tuple[list[Values], float, float]:
        occasions, steps = expected / size, apart * np.arange(size)
        firsts = [rng.random(rng.poisson(occasions / runs)) for _ in range(runs)]
        starts = [np.minimum((one[:, None] + steps).ravel(), 1.0) for one in firsts]
        return starts, expected, occasions

    return drawn


def varying(variation: float) -> Spread:
    """Rates that differ from run to run: Γ with this coefficient of variation."""

    def drawn(
        rng: np.random.Generator, runs: int, expected: float
    ) -> tuple[list[Values], float, float]:
        shape = 1 / variation**2
        rates = rng.gamma(shape, 1 / shape, size=runs) * expected / runs
        starts = [rng.random(rng.poisson(rate)) for rate in rates]
        return starts, float(rates.sum()), expected

    return drawn


SPREADS: dict[str, Spread] = {
    "independent": independent,
    "bursts of 5, 50 ms apart": bursts_of(5, 0.05 / 3_600),
    "bursts of 20, 50 ms apart": bursts_of(20, 0.05 / 3_600),
    "run-to-run CV 1": varying(1.0),
}


def busiest(rng: np.random.Generator, starts: Sequence[Values]) -> int:
    """Deal the episodes to the CPUs; return the most of one CPU in one run."""
    return max(
        int(rng.multinomial(len(one), [1 / LIMIT_CPUS] * LIMIT_CPUS).max())
        for one in starts
    )


def evidence(starts: Sequence[Values], *, all_counted: bool) -> Evidence:
    """Return what runs of one hour with these episodes give."""
    runs = [tuple(int(x * HOUR_NS) for x in sorted(one)) for one in starts]
    misses = tuple(Misses(len(s), 0, 0, len(s), all_counted, starts_ns=s) for s in runs)
    time_ns = HOUR_NS * len(runs)
    return Evidence(
        load="",
        event="",
        deadline_ns=1,
        claim=None,
        min_boots=1,
        boots=1,
        bound_ns=None,
        interval_ns=1,
        watched=Watched(time_ns, time_ns, MIN_WAKEUPS),
        worst_ns=1,
        threshold_ns=None,
        misses=misses,
        not_counted="",
        counted=misses,
        lengths_ns=(HOUR_NS,) * len(runs),
        dispersion=dispersion_of([(HOUR_NS, s) for s in runs]),
        invalid=(),
        limits=(),
    )


def limits() -> Iterator[str]:
    """
    Simulate the limits of rates and the verdicts on claims.

    The limits printed are of the rate in these runs; without an episode the upper one
    is of occasions, since nothing shows how large a burst would be. It is refused where
    a CPU has more late wake-ups than its list. A claim is about all runs: of a claim
    that says just the true rate, HELD is false, and NO too.
    """
    yield (
        "| episodes | runs | expected | at least | at most | refused "
        "| refused with 16 | false HELD | false NO "
        "| widened | ten times the rate claimed: not HELD |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, spread in SPREADS.items():
        for runs in (1, 10):
            for expected in (5.0, 50.0):
                yield _limits_row(name, spread, runs, expected)


def _limits_row(name: str, spread: Spread, runs: int, expected: float) -> str:
    rng = np.random.default_rng([*name.encode(), runs, int(expected)])
    count: Counter[str] = Counter()
    dealt = np.random.default_rng([*name.encode(), runs, int(expected), LIMIT_CPUS])
    for _ in range(LIMIT_TRIALS):
        starts, in_these, occasions = spread(rng, runs, expected)
        most = busiest(dealt, starts)
        found = evidence(starts, all_counted=most <= LISTED)
        low, high = found.rate_per_hour
        count["low"] += low * runs <= in_these
        count["refused"] += high is None
        count["high"] += high is not None and high * runs >= (
            in_these if found.episodes else min(in_these, occasions)
        )
        count["with 16"] += most > LISTED_IF_RECORDED
        held, no, ample = (
            replace(found, claim=Claim(1, round(HOUR_NS * runs / claimed))).verdict
            for claimed in (occasions, expected, 10 * expected)
        )
        count["held"] += held is Verdict.HELD_IN_TEST
        count["no"] += no is Verdict.NO
        count["widened"] += found.dispersion.significant
        count["ample"] += ample is not Verdict.HELD_IN_TEST
    printed = LIMIT_TRIALS - count["refused"]
    cells = ("refused", "with 16", "held", "no", "widened", "ample")
    shares = " | ".join(
        [
            f"{count['low'] / LIMIT_TRIALS:.3f}",
            f"{count['high'] / printed:.3f}",
            *(f"{count[cell] / LIMIT_TRIALS:.3f}" for cell in cells),
        ]
    )
    return f"| {name} | {runs} | {expected:g} | {shares} |"


SECTIONS: dict[str, Callable[[], Iterator[str]]] = {
    "alarms": alarms,
    "power": power,
    "stated": stated,
    "limits": limits,
}


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", default=list(SECTIONS))
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    for name in asked.sections:
        print(f"\n## {name}\n", flush=True)
        if name == "machine":
            out = asked.out or Path(tempfile.mkdtemp(prefix="rtscope-calibration-"))
            out.mkdir(parents=True, exist_ok=True)
            lines = machine(asked.pairs, asked.repetitions, out)
        else:
            lines = SECTIONS[name]()
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
