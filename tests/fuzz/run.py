"""
Read mutated input and count what happens: `python -m fuzz.run --cases 1000000`.

Each reader gets its share of the cases, drawn with a fixed seed. A case that raises
anything but an error of rtscope is a defect: its input is written to a file.
"""

import argparse
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path

from fuzz.mutate import mutated
from fuzz.readers import READERS, FuzzedReader

SLOW_S = 2.0
"""Of CPU time; more is a defect too: input must not cost unbounded time."""


def fuzz(reader: FuzzedReader, cases: int, *, seed: int) -> tuple[Counter[str], bytes]:
    """Read so many cases; return the outcomes, and the first input that broke it."""
    draw = random.Random(f"{reader.name} {seed}")
    seeds = reader.seeds()
    found: Counter[str] = Counter()
    broke = b""
    for _ in range(cases):
        data = mutated(draw.choice(seeds), draw, most=1 << 20)
        begun = time.process_time()
        try:
            reader.read(data)
            outcome = "read"
        except reader.errors:
            outcome = "refused"
        except Exception as error:  # whatever it is, it is a defect
            outcome = f"DEFECT {type(error).__name__}: {str(error)[:80]}"
        if time.process_time() - begun > SLOW_S:
            outcome = "DEFECT slow"
        found[outcome] += 1
        if outcome.startswith("DEFECT") and not broke:
            broke = data
    return found, broke


def peak_mib() -> float:
    """Return the most memory that this process had until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Print a table; 1 if there was a defect."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--only")
    asked = parser.parse_args()
    chosen = [r for r in READERS if asked.only in (None, r.name)]
    whole = sum(reader.share for reader in chosen)
    defects = 0
    print("| input | cases | read | refused | defects | s | MiB |")
    print("|---|---|---|---|---|---|---|")
    for reader in chosen:
        begun = time.monotonic()
        cases = round(asked.cases * reader.share / whole)
        found, broke = fuzz(reader, cases, seed=asked.seed)
        bad = {name: n for name, n in found.items() if name.startswith("DEFECT")}
        defects += sum(bad.values())
        taken_s = time.monotonic() - begun
        print(
            f"| {reader.name} | {cases:,} | {found['read']:,} | {found['refused']:,} "
            f"| {sum(bad.values()):,} | {taken_s:.0f} | {peak_mib():,.0f} |",
            flush=True,
        )
        for name, count in bad.items():
            print(f"  {count} times {name}", file=sys.stderr)
        if broke:
            file = Path(f"fuzz-{reader.name.replace(' ', '-')}.bin")
            file.write_bytes(broke)
            print(f"  the first: {file}", file=sys.stderr)
    return int(defects > 0)


if __name__ == "__main__":
    raise SystemExit(main())
