"""
How often `rtscope compare` calls two equal sides of one event different.

    python lab/events_alike.py WORK [--board]

Each of PAIRS campaigns measures every event that this machine has, on two sides that
are the same, in the order that rtscope draws. Each event of each campaign is compared
by itself. Needs root. --board takes the events that a machine lacks, on the virtual
board `pc`: each side has other seeds. What was interrupted goes on in WORK.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from scipy.stats import binom

from events_on_boards import QUICK, runs_of
from rtscope.record.directory.records import open_records

PAIRS = 10
RUNS = 4
"""Of each side: the fewest that a comparison takes."""
EVENTS = (
    *("futex", "eventfd", "pipe", "signal", "mq", "sem", "cond"),
    *("pty", "udp", "raw", "xdp", "poll"),
)
ON_A_BOARD = (
    *("can:from=can0:to=can1", "serial:from=ttyS1:to=ttyS1", "uio"),
    *("hwlat:threshold=1", "timerlat"),
)
SLOW = {"hwlat:threshold=1": "100ms"}
"""Intervals of those that take longer than a millisecond."""
ALARMS, SURE = 0.05, 0.95
"""The rate that equal sides may have, and how sure it is that more are too many."""

CAMPAIGN = """\
[campaign]
warmup = "200ms"
"""
SIDE = """
[[run]]
variant = "{side}"
event = {events}
load = ["idle"]
duration = "1s"
cpus = "1"
repetitions = {runs}
"""


def measured(work: Path, pair: int) -> Path:
    """Return the directory of a campaign, which begins, goes on, or is done."""
    out, file = work / f"{pair}", work / "sides.toml"
    sides = (
        SIDE.format(side=side, events=json.dumps(EVENTS), runs=RUNS)
        for side in ("first", "second")
    )
    file.write_text(CAMPAIGN + "".join(sides))
    runs_of(out, 2 * RUNS * len(EVENTS), file)
    return out


def different(*sides: Path) -> bool:
    """Return whether two sides of an event are called different."""
    rtscope = Path(sys.executable).parent / "rtscope"
    argv: list[str | Path] = [rtscope, "compare", *sides, "--json"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    (load,) = json.loads(done.stdout)["loads"]
    assert [side["runs"] for side in load["sides"]] == [RUNS, RUNS]
    return any(one["different"] for one in load["outcomes"])


def alarmed(out: Path, event: str, alone: Path) -> bool:
    """Return whether the two sides of an event of a campaign are called different."""
    shutil.rmtree(alone, ignore_errors=True)
    for one in (one for one in open_records(out) if one.run.event == event):
        place = f"runs/{one.run.id}/record.json"
        (alone / place).parent.mkdir(parents=True)
        shutil.copy(out / place, alone / place)
    return different(alone)


def on_machine(work: Path, pair: int) -> list[str]:
    """Return the events of a pair of sides of this machine that alarm."""
    out = measured(work, pair)
    found = [one for one in EVENTS if alarmed(out, one, work / "alone")]
    shutil.rmtree(work / "alone", ignore_errors=True)
    return found


def of_board(work: Path, event: str, first: int) -> Path:
    """Return the runs of one event on the board, with RUNS seeds from `first` on."""
    out = work / f"{event.partition(':')[0]}-{first}"
    seeds = ",".join(map(str, range(first, first + RUNS)))
    about = ("--target", "virtual:pc", "--kernel", "debian-6.12-rt", *QUICK)
    events = ("--event", event, "--interval", SLOW.get(event, "1ms"))
    runs_of(out, RUNS, *about, *events, "--load", "os", "--seeds", seeds)
    return out


def on_board(work: Path, pair: int) -> list[str]:
    """Return the events of a pair of sides of the virtual board that alarm."""
    first = 1 + 2 * RUNS * (pair - 1)
    return [
        one
        for one in ON_A_BOARD
        if different(of_board(work, one, first), of_board(work, one, first + RUNS))
    ]


def main() -> int:
    """Print the alarms of each event; 1 if they are more than equal sides may have."""
    board = "--board" in sys.argv
    work = Path(sys.argv[1])
    work.mkdir(parents=True, exist_ok=True)
    events = ON_A_BOARD if board else EVENTS
    alarms: Counter[str] = Counter()
    for pair in range(1, PAIRS + 1):
        kept = work / f"{pair}.json"
        if not kept.exists():
            judged = (on_board if board else on_machine)(work, pair)
            kept.write_text(json.dumps(judged))
        found = json.loads(kept.read_text())
        alarms.update(found)
        print(f"{pair} of {PAIRS}: {' '.join(found) or 'none'}", flush=True)
    for event in events:
        print(f"{event:26} {alarms[event]:2} of {PAIRS}")
    count, most = PAIRS * len(events), binom.ppf(SURE, PAIRS * len(events), ALARMS)
    print(f"{'all':26} {alarms.total():2} of {count}, at most {most:.0f}")
    return int(alarms.total() > most)


if __name__ == "__main__":
    sys.exit(main())
