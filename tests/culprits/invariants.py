"""
Count how many explained wake-ups of recorded runs keep all invariants, by kind.

    PYTHONPATH=src:tests python -m culprits.invariants [--measure DIRECTORY] RESULT...

`--measure` records five loads on three boards, the 64 worst wake-ups of each load,
kernel and seed; it does not measure again what is there. All recorded wake-ups are
explained, and counted in a table in Markdown.
"""

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rtscope.boards.parts.cache import cache_dir
from rtscope.explain.directory import Recorded, every_run, stream_of, symbols_of
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Explanation, text_of
from rtscope.host.errors import RtscopeError
from rtscope.record.instructions.file import with_windows

BOARDS = {
    "pc": "debian-6.12-rt,debian-6.12",
    "rpi3": "debian-6.12-rt",
    "jh7110": "jh7110-6.12-rt",
}
"""The kernels of each board."""

HOW = (
    *("--load", "idle,cpu,os,memory,storage", "--worst", "64", "--interval", "200us"),
    # What a kernel puts off until after its boot is there too.
    *("--duration", "1s", "--warmup", "200ms", "--settle", "0s"),
)
SEEDS = 8
SHOWN = 20


@dataclass(slots=True)
class Counted:
    """Explanations of one board, kernel and load."""

    known: int = 0
    kept: int = 0
    certain: int = 0
    """With a broken invariant, and a dominant cause all the same."""


@dataclass(slots=True)
class Counts:
    """All explanations, and what is wrong with some."""

    by_kind: dict[tuple[str, str, str], Counted] = field(default_factory=dict)
    broken: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)

    def add(self, kind: tuple[str, str, str], explanation: Explanation) -> None:
        """Count an explanation."""
        one = self.by_kind.setdefault(kind, Counted())
        one.known += 1
        one.kept += not explanation.broken
        one.certain += bool(explanation.broken and explanation.dominant)
        names = sorted({found.invariant.name.lower() for found in explanation.broken})
        self.broken.update(names)
        if names:
            said = "; ".join(text_of(found) for found in explanation.broken[:1])
            place = f"CPU {explanation.cpu}, wake-up {explanation.sequence}"
            self.failed.append(
                f"{', '.join(kind)}, {place}: {', '.join(names)}: {said}"
            )


def measure(into: Path, seeds: Iterable[int]) -> Iterator[Path]:
    """Yield the results of all boards and seeds; measure those that are missing."""
    for seed in seeds:
        for board, kernels in BOARDS.items():
            out = into / f"{board}-{seed}"
            if not out.is_dir():
                # Renamed once it is whole: one that was stopped goes on.
                part = out.with_suffix(".part")
                words = ("--target", f"virtual:{board}", "--kernel", kernels, *HOW)
                new = (*words, "--seed", str(seed), "--out", str(part))
                argv = ("--resume", str(part)) if part.is_dir() else new
                subprocess.run(
                    [sys.executable, "-m", "rtscope", "run", *argv, "-q"], check=True
                )
                part.rename(out)
            yield out


def explanations_of(one: Recorded) -> Iterator[Explanation]:
    """Yield the explanation of each recorded wake-up of a run."""
    try:
        stream = stream_of(one)
    except RtscopeError as error:
        _log(f"{one.directory}: {error}")
        return
    symbols = symbols_of(one, cache=cache_dir(), log=_log)
    for section in with_windows(stream):
        yield explain_path(section, symbols, arch=stream.arch)


def counts_of(paths: Iterable[Path]) -> Counts:
    """Explain and count all wake-ups of some results."""
    counts = Counts()
    for path in paths:
        for one in every_run(path):
            virtual, load = one.record.virtual, one.record.run.load
            if virtual is not None:
                for explanation in explanations_of(one):
                    counts.add((virtual.board, virtual.kernel, load), explanation)
    return counts


def table_of(counts: Counts) -> str:
    """Write a row for each board, kernel and load, then all together."""
    lines = [
        "| board | kernel | load | wake-ups | pass | fail, with a cause all the same |",
        "|---|---|---|---:|---:|---:|",
    ]
    for kind, one in counts.by_kind.items():
        numbers = f"{one.known:,} | {one.kept:,} | {one.certain:,}"
        lines.append(f"| {' | '.join(kind)} | {numbers} |")
    known = sum(one.known for one in counts.by_kind.values())
    kept = sum(one.kept for one in counts.by_kind.values())
    share = 100 * kept / max(1, known)
    lines += ["", f"{kept:,} of {known:,} pass all invariants ({share:.2f} %)."]
    lines += [f"* broken: {name} in {n:,}" for name, n in counts.broken.most_common()]
    return "\n".join(lines)


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main(words: Sequence[str]) -> None:
    """Measure, if it is asked for, and print the table and some that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=Path, metavar="DIRECTORY")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="NUMBER")
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULT")
    asked = parser.parse_args(words)
    results: list[Path] = asked.results
    if asked.measure:
        results = [*results, *measure(asked.measure, range(1, asked.seeds + 1))]
    counts = counts_of(results)
    print(table_of(counts))
    print("\n".join(counts.failed[:SHOWN]))


if __name__ == "__main__":
    main(sys.argv[1:])
