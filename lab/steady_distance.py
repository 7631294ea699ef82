"""
How often the test for a steady distance finds a planted one, and one that is none.

    .venv/bin/python lab/steady_distance.py [--trials 400]

Prints the tables of lab/steady-distance.md. An hour is simulated, seeded.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rtscope.stats.latetimes import steady_distance

S = 10**9
HOUR = 3_600 * S
COUNTS = (8, 12, 24, 48)
Rng = np.random.Generator
Runs = Sequence[Sequence[int]]


def whole(*runs: Iterable[float]) -> Runs:
    """Return times in ns, sorted."""
    return [sorted(int(at) for at in run) for run in runs]


CHANCE: dict[str, tuple[Callable[[Rng, int], Runs], int]] = {
    "anywhere in an hour": (lambda r, n: whole(r.random(n) * HOUR), 1),
    "in bursts of four": (
        lambda r, n: whole(
            [
                c + r.exponential(2 * S)
                for c in r.random(n // 4 + 1) * HOUR
                for _ in range(4)
            ]
        ),
        1,
    ),
    "ever rarer": (lambda r, n: whole(r.beta(1, 3, size=n) * HOUR), 1),
    "in three runs": (
        lambda r, n: whole(*(r.random(n // 3) * HOUR for _ in range(3))),
        1,
    ),
    "whole seconds": (
        lambda r, n: whole(np.unique(r.integers(0, HOUR // S, size=n)) * float(S)),
        S,
    ),
}

PLANTED = (
    ("jitter 1 %", 0.01, 0.0, 0.0),
    ("jitter 10 %", 0.1, 0.0, 0.0),
    ("jitter 5 %, a fifth missing", 0.05, 0.2, 0.0),
    ("jitter 5 %, a third missing", 0.05, 0.33, 0.0),
    ("jitter 5 %, a third more by chance", 0.05, 0.0, 0.33),
    ("jitter 5 %, a fifth missing, a third more", 0.05, 0.2, 0.33),
)


def planted(rng: Rng, count: int, how: tuple[float, float, float]) -> Runs:
    """Return events each minute, late or early by the jitter."""
    jitter, missing, extra = how
    kept = [
        (i + jitter * rng.standard_normal() + 0.5) * 60 * S
        for i in range(count)
        if rng.random() >= missing
    ]
    return whole([*kept, *(rng.random(int(extra * count)) * count * 60 * S)])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    heads = " | ".join(str(count) for count in COUNTS)
    print(f"| chance | {heads} |\n|---|{'---:|' * len(COUNTS)}")
    for name, (draw, step_ns) in CHANCE.items():
        shares = []
        for count in COUNTS:
            rng = np.random.default_rng(count)
            tested = [
                steady_distance(draw(rng, count), step_ns=step_ns)
                for _ in range(trials)
            ]
            shares.append(sum(bool(one and one.found) for one in tested) / trials)
        print(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    print(f"\n| planted: 60 s | {heads} |\n|---|{'---:|' * len(COUNTS)}")
    for name, *how in PLANTED:
        shares = []
        for count in COUNTS:
            rng = np.random.default_rng(count)
            right = 0
            for _ in range(trials // 4):
                one = steady_distance(planted(rng, count, (how[0], how[1], how[2])))
                if one is not None and one.found is not None:
                    right += abs(one.found.period_ns / S - 60) < 3
            shares.append(right / (trials // 4))
        print(f"| {name} | {' | '.join(f'{share:.0%}' for share in shares)} |")


if __name__ == "__main__":
    main()
