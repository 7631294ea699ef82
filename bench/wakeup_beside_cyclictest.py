"""
The cost of a wake-up that `rtscope app check` states, beside the one in cyclictest.

The two agents of a check watch it; their stacks are not named, which takes longer. One
cyclictest runs all the time and prints each latency. In turns it is watched and
not, for the same time; a turn is the difference of the medians of both, less moved by
what else the machine does than a mean. The interval of the median of all turns is that
of their order: nothing is assumed of how they are spread. Turns are kept in a file, so
that a run that was ended goes on. 1 if what the checks state in the middle lies outside
of the interval. Arguments: --turns, --file.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from bisect import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from scipy.stats import binom

from rtscope.contract import (
    CyclesBegin,
    CyclesEnd,
    WatchedThread,
    WatchEnd,
    parse_line,
)
from rtscope.machine.target import agent_file
from rtscope.verbs.app.watch import watch_args
from rtscope.verbs.app.watchedcycles import cycles_args

FILE = (
    Path(__file__).parent.parent / "build" / "bench" / "wakeup_beside_cyclictest.jsonl"
)
CYCLICTEST = ("cyclictest", "-v", "-N", "-m", "-p", "80", "-a", "1", "-i", "1000")
WATCH_S = 6
SETTLED_NS = 300_000_000
"""From the begin of a watch, and before its end: values come some ms after they are."""
RISK = 0.05
FEWEST = 500
"""Latencies of a turn, watched and not: fewer, and the turn is made again."""
TRIES = 3


@dataclass
class Latencies:
    """What cyclictest printed, and when that came."""

    at_ns: list[int] = field(default_factory=list)
    ns: list[int] = field(default_factory=list)

    def read(self, lines: IO[str]) -> None:
        """Take each line `thread: cycle: latency`, until there are no more."""
        for line in lines:
            words = line.split(":")
            if len(words) == 3 and words[2].strip().isdigit():
                self.at_ns.append(time.monotonic_ns())
                self.ns.append(int(words[2]))

    def between(self, from_ns: int, to_ns: int) -> list[int]:
        """Return those that came in a time."""
        return self.ns[bisect(self.at_ns, from_ns) : bisect(self.at_ns, to_ns)]


@contextmanager
def measuring() -> Iterator[tuple[int, Latencies]]:
    """Run cyclictest; give its PID and what it prints meanwhile."""
    with subprocess.Popen(CYCLICTEST, stdout=subprocess.PIPE, text=True) as process:
        latencies = Latencies()
        assert process.stdout is not None
        reader = threading.Thread(target=latencies.read, args=[process.stdout])
        reader.start()
        try:
            time.sleep(1)
            yield process.pid, latencies
        finally:
            process.terminate()
            reader.join()


def checked(agent: Path, pid: int) -> tuple[int, int, float]:
    """Watch it; return the time in which all watching was at work, and the cost."""
    ns = WATCH_S * 10**9
    recording = subprocess.Popen(
        [str(agent), *cycles_args(str(pid), ns)], stdout=subprocess.PIPE, text=True
    )
    with recording:
        assert recording.stdout is not None
        first = recording.stdout.readline()
        watching = subprocess.run(
            [str(agent), *watch_args(str(pid), ns, ())],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        rest = recording.stdout.read()
    whole = [first, *rest.splitlines(), *watching.stdout.splitlines()]
    lines = [parse_line(line.encode()) for line in whole]
    (begin,) = (one for one in lines if isinstance(one, CyclesBegin))
    (cycles,) = (one for one in lines if isinstance(one, CyclesEnd))
    (watch,) = (one for one in lines if isinstance(one, WatchEnd))
    times = [(t.from_ns, t.to_ns) for t in lines if isinstance(t, WatchedThread)]
    from_ns = max(begin.from_ns, *(since for since, _ in times))
    to_ns = min(cycles.to_ns, *(until for _, until in times))
    cost = watch.costs["wakeup"]
    stated_ns = cycles.wakeup_recorded_ns - cycles.wakeup_plain_ns
    return from_ns + SETTLED_NS, to_ns, stated_ns + cost.counted_ns - cost.plain_ns


@dataclass(frozen=True, slots=True)
class Turn:
    """The same thread watched and not, one after the other; ns."""

    watched_ns: float
    unwatched_ns: float
    stated_ns: float

    @property
    def more_ns(self) -> float:
        """By how much it woke later while it was watched, at the median."""
        return self.watched_ns - self.unwatched_ns


def turn(agent: Path, pid: int, latencies: Latencies) -> Turn | None:
    """Watch it once; None if other work left too few latencies."""
    begun_ns = time.monotonic_ns()
    time.sleep(WATCH_S / 2)
    ended_ns = time.monotonic_ns()
    from_ns, to_ns, stated_ns = checked(agent, pid)
    time.sleep(WATCH_S / 2 + 1)
    again_ns = time.monotonic_ns()
    watched = latencies.between(from_ns, to_ns)
    # on both sides of the watch: a drift of the machine is in neither
    before = latencies.between(begun_ns + SETTLED_NS, ended_ns)
    after = latencies.between(again_ns - WATCH_S * 500_000_000, again_ns)
    if min(map(len, (watched, before, after))) < FEWEST:
        return None
    unwatched_ns = (statistics.median(before) + statistics.median(after)) / 2
    return Turn(statistics.median(watched), unwatched_ns, stated_ns)


def interval(values: list[float]) -> tuple[float, float]:
    """Return the interval of the median of 95 %, by the order of the values."""
    ordered = sorted(values)
    beyond = max(0, int(binom.ppf(RISK / 2, len(ordered), 0.5)) - 1)
    return ordered[beyond], ordered[-1 - beyond]


def kept_in(file: Path) -> list[Turn]:
    """Return the turns of earlier runs."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [Turn(**json.loads(line)) for line in lines]


def measure(file: Path, turns: int) -> list[Turn]:
    """Add turns to a file until it has so many; SystemExit on a busy machine."""
    kept = kept_in(file)
    if len(kept) >= turns:
        return kept
    failed, agent = 0, agent_file("x86_64")
    with measuring() as (pid, latencies), file.open("a") as out:
        while len(kept) < turns:
            if (one := turn(agent, pid, latencies)) is None:
                failed += 1
                if failed > TRIES * turns:
                    raise SystemExit("too few latencies: watch on a quieter machine")
                continue
            kept.append(one)
            out.write(json.dumps(asdict(one)) + "\n")
            out.flush()
            more, stated = one.more_ns / 1000, one.stated_ns / 1000
            print(f"cyclictest {more:.1f} us, stated {stated:.1f} us", flush=True)
    return kept


def _us(values: list[float]) -> str:
    low, high = interval(values)
    middle = statistics.median(values)
    return f"{middle / 1000:.1f} us ({low / 1000:.1f} to {high / 1000:.1f})"


def main() -> int:
    """Print a line for each turn, and the intervals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--turns", type=int, default=20, help="default: 20")
    parser.add_argument("--file", type=Path, default=FILE, help=f"default: {FILE}")
    options = parser.parse_args()
    options.file.parent.mkdir(parents=True, exist_ok=True)
    turns = measure(options.file, options.turns)
    added = [one.more_ns for one in turns]
    stated = [one.stated_ns for one in turns]
    print(
        f"{len(turns)} turns of {WATCH_S} s, medians and their intervals of 95 %: "
        f"unwatched {_us([one.unwatched_ns for one in turns])}; "
        f"later when watched {_us(added)}; stated {_us(stated)}"
    )
    low, high = interval(added)
    return 0 if low <= statistics.median(stated) <= high else 1


if __name__ == "__main__":
    sys.exit(main())
