"""
A matrix of planted culprits: each on its kernels and boards, and the title it got.

    PYTHONPATH=src:tests python -m culprits.matrix [--table FILE]

A title is right if cause and name of the explanation are those of the plan: for a
culprit on another CPU, what that CPU executed. One that must not be late on a kernel is
right if nothing was late in its turn. The names are here and in the modules, and
nowhere in the code.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from culprits.build import build_modules
from culprits.plans import BOOTS, RIVAL, Boot, Culprit
from rtscope.record.directory.records import open_records

INTERVAL_NS = 100_000
LATE_NS = 250_000
SAME_NS = 1_000_000
"""A culprit may make several wake-ups late; what is late after that is another's."""


@dataclass(frozen=True, slots=True)
class Row:
    """One culprit on one kernel of one board, and what was found."""

    culprit: Culprit
    kernel: str
    board: str
    latency_ns: int
    """0: nothing was late."""
    found: str
    right: bool

    @property
    def to_be_late(self) -> bool:
        """Whether the culprit makes the thread late on this kernel."""
        return self.kernel in self.culprit.on


@dataclass(frozen=True, slots=True)
class Told:
    """What an explanation tells of a wake-up."""

    at_ns: int
    latency_ns: int
    cause: str = ""
    name: str = ""
    task: str = ""
    blamed: Mapping[str, str] = field(default_factory=dict)
    """Functions of other CPUs, and how they are told."""


def rows_of(boot: Boot, documents: str) -> Iterator[Row]:
    """Yield a row for each culprit and kernel, from `rtscope explain --json`."""
    for document in json.loads(documents):
        late = [one for one in map(_told, document["wakeups"]) if _is_late(one)]
        first_ns = _first_turn(late, boot.culprits[0])
        for turn, culprit in enumerate(boot.culprits):
            begin_ns = first_ns + turn * boot.turn_ns
            is_last = culprit is boot.culprits[-1]  # nothing follows it
            turn_ns = 10 * boot.turn_ns if is_last else boot.turn_ns
            inside = [one for one in late if 0 <= one.at_ns - begin_ns < turn_ns]
            until_ns = min((one.at_ns for one in inside), default=0) + SAME_NS
            its_own = [one for one in inside if one.at_ns <= until_ns]
            worst = max(its_own, key=lambda one: one.latency_ns, default=None)
            yield _row(culprit, document["kernel"], boot.board, worst)


def _is_late(one: Told) -> bool:
    return one.latency_ns > LATE_NS and one.at_ns > 20_000_000


def _first_turn(late: Sequence[Told], first: Culprit) -> int:
    """
    The first culprit of each boot is late on every kernel; its turn begins there.

    Before it the kernel may be late by itself, if the module takes long to begin.
    """
    its_own = [one.at_ns for one in late if first.name in (one.name, *one.blamed)]
    at_ns = its_own or [one.at_ns for one in late]
    return min(at_ns, default=0) - INTERVAL_NS * 10


def _row(culprit: Culprit, kernel: str, board: str, worst: Told | None) -> Row:
    expected = kernel in culprit.on
    if worst is None:
        return Row(culprit, kernel, board, 0, "nothing was late", not expected)
    name = worst.task if culprit.causes == RIVAL else worst.name
    found = f"{worst.cause}: `{name}`"
    right = expected and worst.cause in culprit.causes
    if culprit.elsewhere:
        found = f"{worst.cause} in `{worst.name}`: {', '.join(worst.blamed.values())}"
        right = right and list(worst.blamed)[:1] == [culprit.name]
    else:
        right = right and name == culprit.name
    return Row(culprit, kernel, board, worst.latency_ns, found, right)


def _told(wakeup: Mapping[str, Any]) -> Told:
    at_ns = wakeup["sequence"] * INTERVAL_NS
    if wakeup["dominant_segment"] is None:
        return Told(at_ns, wakeup["latency_ns"], "withdrawn")
    one = wakeup["segments"][wakeup["dominant_segment"]]
    others = {}
    for line in one["evidence"]:
        head, found, tail = line.partition("% of it in ")
        if found and "itself waiting" not in tail:
            others[_function(tail)] = f"`{tail}` ({head.split(' executed')[0]})"
    return Told(
        at_ns,
        wakeup["latency_ns"],
        one["cause"],
        _function(one["name"]),
        one["task"],
        others,
    )


def _function(text: str) -> str:
    """Return a function without its module and callers."""
    return text.split(" ")[0]


def measured(boot: Boot, work: Path) -> list[Row]:
    """Measure a boot and explain it; `work` keeps the result."""
    files: list[Path] = []
    for kernel in boot.kernels:
        made = build_modules(kernel, work, board=boot.board)
        files += [made["dally"], made[boot.module]]
    out = work / boot.name
    _rtscope("run", *boot.campaign(files, out))
    assert open_records(out)
    return list(rows_of(boot, _rtscope("explain", str(out), "--json")))


def _rtscope(*words: str) -> str:
    argv = (sys.executable, "-m", "rtscope", *words)
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def table_of(rows: Sequence[Row]) -> str:
    """Write a row for each culprit as Markdown; a wrong title stands in its cell."""
    places = dict.fromkeys((row.board, row.kernel) for row in rows)
    head = ["culprit", "planted as", "title", *(" ".join(place) for place in places)]
    lines = [f"| {' | '.join(head)} |", "|---|---|---|" + "---:|" * len(places)]
    for culprit in dict.fromkeys(row.culprit for row in rows):
        by_place = {(r.board, r.kernel): r for r in rows if r.culprit == culprit}
        right = [r.found for r in by_place.values() if r.right and r.latency_ns]
        title = _without_callers(right[0]) if right else ""
        cells = (_cell_of(by_place.get(place)) for place in places)
        words = [f"`{culprit.name}`", culprit.what, title, *cells]
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines) + "\n"


def _without_callers(title: str) -> str:
    """Cut a chain of callers after the function that comes first."""
    function, cut, _callers = title.partition(" < ")
    return f"{function}`" if cut else title


def _cell_of(row: Row | None) -> str:
    """Return how late a culprit made the thread, or the title if that is wrong."""
    if row is None:
        return "not planted"
    if not row.right:
        return f"**no**: {row.found}"
    return f"{row.latency_ns / 1000:,.0f}" if row.latency_ns else "quiet"


def head_of(rows: Sequence[Row]) -> str:
    """Count the titles; a turn in which nothing is to be late has none."""
    titles = [row.right for row in rows if row.to_be_late]
    quiet = [row.right for row in rows if not row.to_be_late]
    return (
        f"{sum(titles)} of {len(titles)} titles are right; {sum(quiet)} of "
        f"{len(quiet)} turns without a culprit on that kernel were quiet.\n"
    )


def main() -> None:
    """Measure all boots, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="file to write the table to")
    parser.add_argument(
        "--explained", nargs="*", default=[], metavar="BOARD-MODULE=RESULT"
    )
    words = parser.parse_args()
    known = dict(one.split("=", 1) for one in words.explained)
    began = time.monotonic()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        for boot in BOOTS:
            if boot.name in known:
                told = _rtscope("explain", known[boot.name], "--json")
                rows += rows_of(boot, told)
            else:
                rows += measured(boot, Path(name))
    head = head_of(rows)
    print(table_of(rows), head, f"{time.monotonic() - began:.0f} s")
    if words.table:
        page = words.table.read_text()
        begin = page.index("<!-- table -->") + len("<!-- table -->\n")
        words.table.write_text(f"{page[:begin]}\n{head}\n{table_of(rows)}")


if __name__ == "__main__":
    main()
