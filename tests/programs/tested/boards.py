"""Programs that read the clock and count themselves, on each board and kernel."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from programs.tested.asking import RESULTS, ROOT, Asked, ask, kept_facts
from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.qemu import Recording
from rtscope.boards.recording.symbols import find_kernel_layout
from rtscope.boards.runs.boot import Booted, boot
from rtscope.boards.runs.programscript import job_of_program
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.verbs.test.file import ProgramTest, with_values
from rtscope.verbs.test.plan import Boot, boots_of

OFFENDERS = ROOT / "tests" / "offenders"
CYCLES = 10_000
"""Of the fast loop of twoloops, one a ms; its slow one has half of them."""
PC, OTHER = "debian-6.12-rt", "debian-6.12"
KERNELS = (("pc", PC), ("pc", OTHER), ("jh7110", "jh7110-6.12-rt"), ("rpi3", PC))
TARGETS = {"pc": "x86_64", "jh7110": "riscv64", "rpi3": "aarch64"}
LIBRARIES = ("musl", "gnu")
TICK_NS = {"pc": 1, "jh7110": 100, "rpi3": 16}
"""Of the clock that the program reads."""
KERNEL_TICK_NS = 4_000_000
_FAR = 50
"""At most every so manieth cycle has an interrupt before it reads the clock."""


@cache
def built(source: str, board: str, library: str) -> Path:
    """Return a program for a board: static with musl, dynamic with glibc."""
    out = RESULTS / "built" / f"{source}-{board}-{library}"
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        target = f"{TARGETS[board]}-linux-{library}"
        zig = (sys.executable, "-m", "ziglang", "cc", "-target", target)
        static = ("-static",) if library == "musl" else ()
        file = OFFENDERS / f"{source}.c"
        options = ("-O1", *static, "-pthread", "-o", out, file)
        subprocess.run([*zig, *options], check=True)
    return out


def _asked(
    name: str,
    place: tuple[str, str, str],
    source: str,
    cycles: int,
    *,
    again: bool,
    seconds: int,
) -> Asked:
    board, kernel, library = place
    words = ["--board", board, "--kernel", kernel, "--settle", "0s", "--warmup", "0s"]
    words += ["--duration", f"{seconds}s"]
    if library == "gnu":
        words += ["--package", "libc6"]
    program = built(source, board, library)
    key = f"{name}/{board}-{kernel}-{library}"
    return ask(key, [*words, "--", str(program), str(cycles)], again=again)


def _places() -> Iterator[tuple[str, str, str]]:
    for board, kernel in KERNELS:
        for library in LIBRARIES:
            yield board, kernel, library


def clocks(_names: Sequence[str], again: bool) -> Iterator[tuple[str, bool]]:
    """Compare each cycle of a program with its own reading of the clock."""
    for place in _places():
        one = _asked("clocks", place, "twoloops", CYCLES, again=again, seconds=12)
        where = " ".join(place)
        if not one.ran:
            yield f"| {where} | did not run: {one.error[-200:]} |", False
            continue
        for says, right in _apart(place[0], one):
            yield f"| {where} {says} |", right


def _apart(board: str, one: Asked) -> Iterator[tuple[str, bool]]:
    own: dict[str, list[tuple[int, int]]] = {}
    for name, due, began in (line.split() for line in one.said().splitlines()):
        own.setdefault(name, []).append((int(due), int(began) - int(due)))
    for thread in one.kept[0]["threads"]:
        mine, name = own[thread["name"]], thread["name"]
        seen = zip(mine, thread["latency_ns"], thread["instructions"], strict=True)
        apart = [(due, late - outside, used) for (due, late), outside, used in seen]
        least = min(ns for _, ns, _ in apart)
        near = [one for one in apart if one[1] <= least + TICK_NS[board]]
        far = [one for one in apart if one[1] > least + TICK_NS[board]]
        on_tick = sum(due % KERNEL_TICK_NS == 0 for due, _, _ in far)
        # what comes between executes nothing of the program
        usual = {used for _, _, used in near}
        of_kernel = sum(used in usual for _, _, used in far)
        most = max(ns for _, ns, _ in near)
        yield (
            f"{name} | {len(apart):,} | {most} ns, "
            f"{most >> get_board(board).shift} instructions | {least} to {most} ns in "
            f"{len(near):,} | {len(far):,}: {of_kernel} for the kernel, {on_tick} on "
            f"its tick, up to {max((ns - most for _, ns, _ in far), default=0):,} ns",
            len(apart) >= CYCLES / 2 and of_kernel == len(far) <= len(apart) / _FAR,
        )


# --- offences -------------------------------------------------------------------------

OWN = ("sleeps", "preemptions", "faults", "missed", "held", "times")
SEEN = {
    "sleeps": "blocking",
    "faults": "faults",
    "missed": "missed",
    "held": "inversions",
}
OFFENCE_CYCLES = 53
"""None in the last three: periods that are skipped there are nobody's."""


def offences(_names: Sequence[str], again: bool) -> Iterator[tuple[str, bool]]:
    """Compare what is seen of each offence with the program's own counters."""
    for place in _places():
        one = _asked(
            "offences", place, "twenty", OFFENCE_CYCLES, again=again, seconds=4
        )
        where = " ".join(place)
        if not one.ran:
            yield f"| {where} | did not run: {one.error[-200:]} |", False
            continue
        rows = dict(_offences(one))
        wrong = [says for says, right in rows.values() if not right]
        yield f"| {where} | {len(rows)} offences, {len(wrong)} wrong |", not wrong
        for name, (says, right) in rows.items():
            yield f"| {where} | {name} | {says} |", right


def _offences(one: Asked) -> Iterator[tuple[str, tuple[str, bool]]]:
    seen = {row["thread"]: row for row in one.threads}
    for line in one.said().splitlines():
        name, *numbers = line.split()
        own = dict(zip(OWN, map(int, numbers), strict=True))
        row: Mapping[str, Any] | None = seen.get(name)
        if row is None:
            yield name, ("not seen", False)
            continue
        pairs = {what: (own[what], row[key]) for what, key in SEEN.items()}
        shown = ", ".join(f"{what} {a}/{b}" for what, (a, b) in pairs.items() if a or b)
        right = all(a == b for a, b in pairs.values())
        yield name, (f"{shown or own}: {row['worst']['says']}", right)


# --- watched and not ------------------------------------------------------------------


def watched(_names: Sequence[str], again: bool) -> Iterator[tuple[str, bool]]:
    """Boot with and without the view from outside, and with recorded paths."""
    for board, kernel in KERNELS:
        place = f"{board}-{kernel}"
        facts = kept_facts(
            f"watched/{place}", partial(_four, board, kernel), again=again
        )
        for what in ("files", "instructions"):
            values = {json.dumps(row[what]) for row in facts.values()}
            yield (
                f"{place}: {what}: {len(values)} value in {len(facts)} boots",
                (len(values) == 1),
            )


def _four(board: str, kernel: str) -> Mapping[str, Any]:
    """Boot as it is, watched, recorded, and both."""
    program = built("twoloops", board, "musl")
    given = {
        "program.command": [str(program), "1000"],
        "board.board": board,
        "board.kernel": kernel,
        "time.settle": "0s",
        "time.duration": "2s",
        "time.warmup": "0s",
    }
    test = with_values(ProgramTest(), given, {})
    (one,) = boots_of(test, log=print, progress=lambda _step: None)
    layout = find_kernel_layout(one.prepared, cache=cache_dir())
    paths = Recording(4, layout=layout)
    return {
        name: _booted(one, view=view, recording=recording)
        for name, view, recording in (
            ("alone", False, None),
            ("watched", True, None),
            ("recorded", False, paths),
            ("both", True, paths),
        )
    }


def _booted(one: Boot, *, view: bool, recording: Recording | None) -> Mapping[str, Any]:
    job = one.job
    done: Booted = boot(
        one.prepared,
        job_of_program(job, facts=()),
        seed=job.seed,
        timeout=BootTimeout(0, job.starts_ns + 60_000_000_000),
        stopped=lambda: False,
        view=one.view if view else None,
        recording=recording,
    )
    digest = hashlib.sha256()
    for name, content in sorted(done.files.items()):
        digest.update(name.encode() + b"\0" + content)
    return {
        "files": digest.hexdigest()[:16],
        "instructions": done.counts["instructions"],
    }
