"""
Read mutated input and count what happens: `python -m fuzz.run --cases 1000000`.

Each reader gets its share of the cases, or `--each` of them, drawn with a fixed seed in
portions that processes of their own read. A case that raises anything but an error of
rtscope is a defect, and so is one that needs more than 2 s of CPU time or 512 MiB, does
not end within 300 s, or changes anything outside of its temporary folder: its input is
written to a file. An input that is read after a change is changed further.

With `--journal FILE` a run that was ended goes on.
"""

import argparse
import json
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from fuzz.confined import OutsideError, confined
from fuzz.readers import READERS, FuzzedReader

SLOW_S = 2.0
"""Of CPU time; more is a defect too: input must not cost unbounded time."""
HANG_S = 300
"""Of any time: beside other work, a case of 0.02 s of CPU took a minute."""
MEMORY_BYTES = 512 << 20
"""Beyond what the process has before its first case."""
PORTION = 2_000
"""Cases of a portion."""
GROWN = 50
"""Inputs that were read, which a portion keeps at most to change them further."""
LARGEST_GROWN_BYTES = 50_000


class HangError(BaseException):
    """A case did not end: no reader's error is of this kind."""


@dataclass(frozen=True, slots=True)
class Portion:
    """What came of some cases of one reader."""

    reader: str
    number: int
    cases: int
    outcomes: Mapping[str, int]
    cpu_s: float
    peak_mib: float


def fuzz(
    reader: FuzzedReader, cases: int, *, seed: int | str
) -> tuple[Counter[str], bytes]:
    """Read so many cases; return the outcomes, and the first input that broke it."""
    draw = random.Random(f"{reader.name} {seed}")
    seeds = reader.seeds()
    grown: list[bytes] = []
    found: Counter[str] = Counter()
    broke = b""
    with (
        tempfile.TemporaryDirectory(prefix="rtscope-fuzz-") as folder,
        _temporary(folder),
    ):
        for _ in range(cases):
            origin = grown if grown and draw.randrange(2) else seeds
            data = reader.mutate(draw.choice(origin), draw, most=1 << 20)
            outcome = _outcome(reader, data, Path(folder))
            found[outcome] += 1
            if outcome.startswith("DEFECT"):
                broke = broke or data
            elif outcome == "read" and len(data) < LARGEST_GROWN_BYTES:
                place = draw.randrange(GROWN)
                grown[place : place + 1] = [data]
    return found, broke


def _outcome(reader: FuzzedReader, data: bytes, folder: Path) -> str:
    """Read one case; return what came of it."""
    begun = time.process_time()
    signal.alarm(HANG_S)
    try:
        with confined(folder):
            reader.read(data)
        outcome = "read"
    except reader.errors:
        outcome = "refused"
    except (Exception, HangError, OutsideError) as error:
        outcome = f"DEFECT {type(error).__name__}: {str(error)[:80]}"
    finally:
        signal.alarm(0)
    if time.process_time() - begun > SLOW_S:
        outcome = "DEFECT slow"
    return outcome


@contextmanager
def _temporary(folder: str) -> Iterator[None]:
    """Have all temporary files made in a folder, and a case that hangs ended."""
    before, tempfile.tempdir = tempfile.tempdir, folder
    previous = signal.signal(signal.SIGALRM, _hangs)
    try:
        yield
    finally:
        tempfile.tempdir = before
        signal.signal(signal.SIGALRM, previous)


def _hangs(_number: int, _frame: object) -> None:
    raise HangError(f"no end within {HANG_S} s")


def peak_mib() -> float:
    """Return the most memory that this process had until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _limited() -> None:
    """Let this process have so much memory more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _read_portion(asked: tuple[str, int, int, int]) -> Portion:
    """Read one portion, in a process that is forked for it."""
    name, number, cases, seed = asked
    (reader,) = (one for one in READERS if one.name == name)
    reader.seeds()
    _limited()
    begun = time.process_time()
    found, broke = fuzz(reader, cases, seed=f"{seed} {number}")
    if broke:
        place = Path(f"fuzz-{name.replace(' ', '-')}-{number}.bin")
        place.write_bytes(broke)
        print(f"{name}: a defect: {place}", file=sys.stderr)
    taken_s = time.process_time() - begun
    return Portion(
        name, number, cases, dict(found), round(taken_s, 2), round(peak_mib(), 1)
    )


def _portions(
    readers: Sequence[FuzzedReader], asked: argparse.Namespace
) -> Iterator[tuple[str, int, int, int]]:
    """Yield reader, number, cases and seed of each portion; first ones of all first."""
    whole = sum(reader.share for reader in readers)
    cases = {
        one.name: asked.each or max(1, round(asked.cases * one.share / whole))
        for one in readers
    }
    for number in range(-(-max(cases.values()) // PORTION)):
        for name, count in cases.items():
            here = min(PORTION, count - number * PORTION)
            if here > 0:
                yield name, number, here, asked.seed


def _read_journal(path: Path | None) -> list[Portion]:
    if path is None or not path.exists():
        return []
    return [Portion(**json.loads(line)) for line in path.read_text().splitlines()]


def _table(done: Sequence[Portion]) -> Iterator[str]:
    yield "| input | cases | read | refused | defects | CPU s | MiB |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name in dict.fromkeys(one.reader for one in done):
        ours = [one for one in done if one.reader == name]
        found: Counter[str] = Counter()
        for one in ours:
            found.update(one.outcomes)
        bad = sum(n for what, n in found.items() if what.startswith("DEFECT"))
        yield (
            f"| {name} | {found.total():,} | {found['read']:,} | {found['refused']:,} "
            f"| {bad:,} | {sum(one.cpu_s for one in ours):,.0f} "
            f"| {max(one.peak_mib for one in ours):,.0f} |"
        )


def main() -> int:
    """Print a table; 1 if there was a defect."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--each", type=int, help="so many of each reader instead")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--only", help="readers, with commas between them")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else [one.name for one in READERS]
    chosen = [one for one in READERS if one.name in names]
    done = _read_journal(asked.journal)
    there = {(one.reader, one.number, one.cases) for one in done}
    left = [one for one in _portions(chosen, asked) if one[:3] not in there]
    forked = multiprocessing.get_context("fork")
    with forked.Pool(asked.jobs, maxtasksperchild=1) as pool:
        for portion in pool.imap(_read_portion, left):
            done.append(portion)
            if asked.journal is not None:
                with asked.journal.open("a") as file:
                    file.write(json.dumps(asdict(portion)) + "\n")
    print(*_table(done), sep="\n", flush=True)
    outcomes = Counter(what for one in done for what in one.outcomes)
    defects = [what for what in outcomes if what.startswith("DEFECT")]
    for what in defects:
        print(f"  {what}", file=sys.stderr)
    return int(bool(defects))


if __name__ == "__main__":
    raise SystemExit(main())
