"""
How often `rtscope history check` alarms on equal nights, and how soon on changed ones.

    python lab/history_nights.py            # prints the tables of lab/history.md

A night of a series is drawn as measured runs vary: the body by 3 % from night to
night, the number of spikes more than Poisson does, the length of a spike as a power
law. All series of a night are one check; beside it stands the rule "the maximum is more
than 10 % above that of the night before", and the same against the highest of 20.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median

import numpy as np
import numpy.typing as npt

from rtscope.verbs.history.judge import Nights, effects_of_nights
from rtscope.verbs.history.series import Measure

SERIES, NIGHTS, BASE = 40, 200, 20
BEFORE = BASE + 4
"""Nights before the first one that is checked: 20 and the newest."""

BODY_SPREAD = 0.03
SPIKES, SPIKE_SHAPE = 24.0, 4.0
"""Mean number in a night, and how it varies from night to night (gamma)."""
SPIKE_NS, SPIKE_POWER = 40_000.0, 3.0
USUAL_NS = 50_000.0
"""About the 99.999th percentile of 1.2 million wake-ups."""

MOST_LATE = 24
"""Nights after a change that are looked at."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one series."""

    name: str
    body: float = 1.0
    often: float = 1.0
    long: float = 1.0


CHANGES = (
    Change("body + 5 %", body=1.05),
    Change("body + 10 %", body=1.10),
    Change("spikes three times as often", often=3.0),
    Change("spikes twice as long", long=2.0),
    Change("spikes four times as long", long=4.0),
)


def drawn(rng: np.random.Generator, nights: int, change: Change | None) -> Values:
    """Return a series: a night a row, the logarithms of average, tail and maximum."""
    one = change or Change("")
    body = np.log(10_000 * one.body) + rng.normal(0, BODY_SPREAD, nights)
    mean = SPIKES * one.often * rng.gamma(SPIKE_SHAPE, 1 / SPIKE_SHAPE, nights)
    rows = []
    for average, count in zip(body, rng.poisson(mean), strict=True):
        spikes = SPIKE_NS * one.long * (1 + rng.pareto(SPIKE_POWER, max(count, 1)))
        late = int((spikes > USUAL_NS).sum())
        rows.append((average, math.log1p(late), math.log(spikes.max())))
    return np.array(rows)


def called_worse(lab: Sequence[Values], night: int, new: int) -> set[int]:
    """Return the series that a check after this night calls worse."""
    first = night + 1 - new - BASE
    names = ("mean", "tail", "max")
    series = [
        Nights(
            BASE,
            new,
            tuple(
                Measure(name, name, tuple(one[first : night + 1, at]))
                for at, name in enumerate(names)
            ),
        )
        for one in lab
    ]
    effects = effects_of_nights(series, seed=night)
    return {at // len(names) for at, one in enumerate(effects) if one.is_worse}


def ten_percent(lab: Sequence[Values], night: int, nights: int) -> set[int]:
    """Return the series whose maximum is more than 10 % above all of so many nights."""
    limit = math.log(1.1)
    return {
        at
        for at, one in enumerate(lab)
        if one[night, 2] > one[night - nights : night, 2].max() + limit
    }


Rule = Callable[[Sequence[Values], int], set[int]]

RULES: dict[str, Rule] = {
    "`--latest 1`": partial(called_worse, new=1),
    "`--latest 2`": partial(called_worse, new=2),
    "`--latest 4`": partial(called_worse, new=4),
    "+ 10 % of the night before": partial(ten_percent, nights=1),
    "+ 10 % of the highest of 20": partial(ten_percent, nights=20),
}


def equal_nights(rng: np.random.Generator, labs: int, nights: int) -> Iterator[str]:
    """Yield the table of labs in which nothing changes."""
    yield "| rule | nights with an alarm | of one lab | series called worse |"
    yield "|---|--:|--:|--:|"
    shares: dict[str, list[float]] = {name: [] for name in RULES}
    series: dict[str, list[float]] = {name: [] for name in RULES}
    for _ in range(labs):
        lab = [drawn(rng, nights + BEFORE, None) for _ in range(SERIES)]
        for name, rule in RULES.items():
            found = [len(rule(lab, BEFORE + night)) for night in range(nights)]
            shares[name].append(sum(map(bool, found)) / nights)
            series[name].append(sum(found) / nights / SERIES)
            print(f"{name}: {shares[name][-1]:.1%}", file=sys.stderr, flush=True)
    for name, some in shares.items():
        ends = f"{100 * min(some):.1f} to {100 * max(some):.1f} %"
        mean, worse = 100 * fmean(some), 100 * fmean(series[name])
        yield f"| {name} | {mean:.1f} % | {ends} | {worse:.2f} % |"


def changed(rng: np.random.Generator, labs: int) -> Iterator[str]:
    """Yield the table of labs in which one series changes."""
    yield f"| change of one series of {SERIES} | " + " | ".join(RULES) + " |"
    yield "|---|" + "--:|" * len(RULES)
    for change in CHANGES:
        nights: dict[str, list[float]] = {name: [] for name in RULES}
        for _ in range(labs):
            lab = [drawn(rng, BEFORE + MOST_LATE, None) for _ in range(SERIES)]
            lab[0][BEFORE:] = drawn(rng, MOST_LATE, change)
            for name, rule in RULES.items():
                nights[name].append(_found_after(lab, rule))
        cells = [_cell(some) for some in nights.values()]
        print(change.name, *cells, file=sys.stderr, flush=True)
        yield f"| {change.name} | " + " | ".join(cells) + " |"


def _found_after(lab: Sequence[Values], rule: Rule) -> float:
    found = (n for n in range(MOST_LATE) if 0 in rule(lab, BEFORE + n))
    return 1 + next(found, math.inf)


def _cell(nights: Sequence[float]) -> str:
    found = sum(map(math.isfinite, nights)) / len(nights)
    middle = median(nights)
    words = f"{middle:.0f}" if math.isfinite(middle) else "-"
    return f"{words} ({100 * found:.0f} %)"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--labs", type=int, default=3)
    parser.add_argument("--nights", type=int, default=NIGHTS)
    parser.add_argument("--changed-labs", type=int, default=10)
    parser.add_argument("--rules", default="", help="regular expression")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    for name in [one for one in RULES if not re.search(asked.rules, one)]:
        del RULES[name]
    if asked.labs:
        for line in equal_nights(rng, asked.labs, asked.nights):
            print(line)
        print()
    if asked.changed_labs:
        for line in changed(rng, asked.changed_labs):
            print(line)


if __name__ == "__main__":
    main()
