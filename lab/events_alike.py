"""
How often `rtscope compare` calls two equal sides of one event different.

    python lab/events_alike.py WORK

Each of PAIRS campaigns measures every event that this machine has, on two sides that
are the same, in the order that rtscope draws. Each event of each campaign is compared
by itself. Needs root. What was interrupted goes on in WORK.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from scipy.stats import binom

from rtscope.record.directory.records import open_records

PAIRS = 10
RUNS = 4
"""Of each side: the fewest that a comparison takes."""
EVENTS = (
    *("futex", "eventfd", "pipe", "signal", "mq", "sem", "cond"),
    *("pty", "udp", "raw", "xdp"),
)
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


def rtscope(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command of rtscope."""
    argv = (Path(sys.executable).parent / "rtscope", *words)
    return subprocess.run(argv, check=True, capture_output=True, text=True)


def measured(work: Path, pair: int) -> Path:
    """Return the directory of a campaign, which begins, goes on, or is done."""
    out, file = work / f"{pair}", work / "sides.toml"
    if not (out / "campaign.json").exists():
        sides = (
            SIDE.format(side=side, events=json.dumps(EVENTS), runs=RUNS)
            for side in ("first", "second")
        )
        file.write_text(CAMPAIGN + "".join(sides))
        rtscope("run", file, "--out", out)
    elif len(open_records(out)) < 2 * RUNS * len(EVENTS):
        rtscope("run", "--resume", out)
    return out


def alarmed(out: Path, event: str, alone: Path) -> bool:
    """Return whether the two sides of an event are called different."""
    shutil.rmtree(alone, ignore_errors=True)
    for one in (one for one in open_records(out) if one.run.event == event):
        place = f"runs/{one.run.id}/record.json"
        (alone / place).parent.mkdir(parents=True)
        shutil.copy(out / place, alone / place)
    (load,) = json.loads(rtscope("compare", alone, "--json").stdout)["loads"]
    assert [side["runs"] for side in load["sides"]] == [RUNS, RUNS]
    return any(one["different"] for one in load["outcomes"])


def main() -> int:
    """Print the alarms of each event; 1 if they are more than equal sides may have."""
    work = Path(sys.argv[1])
    work.mkdir(parents=True, exist_ok=True)
    alarms: Counter[str] = Counter()
    for pair in range(1, PAIRS + 1):
        out, kept = measured(work, pair), work / f"{pair}.json"
        if not kept.exists():
            judged = [one for one in EVENTS if alarmed(out, one, work / "alone")]
            kept.write_text(json.dumps(judged))
        found = json.loads(kept.read_text())
        alarms.update(found)
        print(f"{pair} of {PAIRS}: {' '.join(found) or 'none'}", flush=True)
    shutil.rmtree(work / "alone", ignore_errors=True)
    for event in EVENTS:
        print(f"{event:8} {alarms[event]:2} of {PAIRS}")
    count, most = PAIRS * len(EVENTS), binom.ppf(SURE, PAIRS * len(EVENTS), ALARMS)
    print(f"all      {alarms.total():2} of {count}, at most {most:.0f}")
    return int(alarms.total() > most)


if __name__ == "__main__":
    sys.exit(main())
