"""
Watch a program of the user's on a virtual board, from outside: one boot.

Nothing in the guest watches: the plugin records what `rtscope test` reads too, and what
/proc says is read when the time that is judged is over. Nothing of this computer but
the files of the program decides the result.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.program import Program
from rtscope.boards.recording.programseen import (
    OutsideStart,
    outside_starts,
    outside_view,
    record_of,
)
from rtscope.boards.recording.programuses import program_uses
from rtscope.boards.runs.identity import BoardIdentity
from rtscope.boards.runs.inspect import GuestFiles
from rtscope.boards.runs.program import ProgramRun, run_program
from rtscope.boards.runs.programscript import SETTLE_NS, ProgramJob
from rtscope.explain.outsidecycle import (
    ProgramBoot,
    RecordedCycle,
    recorded_cycles,
)
from rtscope.host.errors import BoardError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_MS
from rtscope.machine.reader import text_of
from rtscope.machine.tasks.listing import make_listing, read_surroundings
from rtscope.programs.outside.model import OutsideThread
from rtscope.verbs.app.outsidewatch import Facts, OutsideWatch, outside_watch
from rtscope.verbs.app.watch import read_snapshot

MOST_DRAWN = 8
"""Threads whose longest cycle is drawn: those with the longest."""
DESCRIPTORS = "/proc/{}/fdinfo/*"
_O_NONBLOCK = 0o4000
_OF_EVENTS = ("clockid:", "eventfd-count:", "sigmask:")
"""What the kernel says of descriptors of timers, events and signals alone."""


@dataclass(frozen=True, slots=True)
class BoardWatch:
    """What was seen of a program on a board."""

    watch: OutsideWatch
    reader: GuestFiles
    """Facts about the board, and the statistics that the program keeps."""
    identity: BoardIdentity
    drawn: Mapping[int, RecordedCycle] = field(default_factory=dict)
    """The longest cycles with what all CPUs executed, by TID."""


def watch_on_board(
    prepared: Prepared,
    program: Program,
    *,
    warmup_ns: int,
    duration_ns: int,
    seed: int,
    period_ns: int | None,
    draws: bool,
    cache: Path,
    log: Callable[[str], None],
    progress: Progress = lambda _step: None,
) -> BoardWatch:
    """
    Boot once, run the program and watch it from outside for `duration_ns`.

    With `draws` boot again, for what the CPUs executed in the longest cycles.

    Raises BoardError if the board does not boot, or if the program does not run there
    until that time is over.
    """
    job = ProgramJob(
        program,
        duration_ns=duration_ns,
        warmup_ns=warmup_ns,
        settle_ns=SETTLE_NS,
        seed=seed,
        describes=True,
    )
    uses = program_uses(program)
    judged_ns = (warmup_ns, warmup_ns + duration_ns)
    view = outside_view(
        prepared, uses, judged_ns, cache=cache, log=log, progress=progress
    )
    run = run_program(prepared, job, view=view, progress=progress)
    reader = record_of(run)
    title = PurePosixPath(program.command[0]).name
    (seen,) = outside_starts(
        run, job, uses, reader, title=title, given_ns=lambda _name: period_ns
    )
    _refuse_ended(run, job, seen, title)
    boot = ProgramBoot(prepared, job, view, run)
    wanted = [(one, one.worst) for one in _longest(seen) if draws]
    return BoardWatch(
        outside_watch(program, reader, seen, facts_of(run, seen)),
        GuestFiles({**run.reader.files, **seen.start.about.files}),
        run.identity,
        recorded_cycles(boot, reader.record, wanted, log=log, progress=progress),
    )


def _longest(seen: OutsideStart) -> Sequence[OutsideThread]:
    """Return the real-time threads whose longest cycles are drawn."""
    own = [
        one
        for one in seen.outside.threads
        if one.process == seen.start.pid and one.is_realtime
    ]
    return sorted(own, key=lambda one: -one.worst.response_ns)[:MOST_DRAWN]


def _refuse_ended(
    run: ProgramRun, job: ProgramJob, seen: OutsideStart, title: str
) -> None:
    """Raise BoardError for a program that ended before it was watched to the end."""
    if seen.start.threads:
        return
    lived_ns = seen.outside.lived_ns or seen.start.lasted_ns
    shorter_ms = max(1, (lived_ns - job.warmup_ns) * 9 // 10 // NS_PER_MS)
    raise BoardError(
        f"{run.identity.board}: {title} ended {lived_ns / NS_PER_MS:.0f} virtual ms "
        "after its start, with status 0, before it had been watched to the end, when "
        "its settings are read: let it run longer, or watch it for a shorter time: "
        f"--duration {shorter_ms}ms"
    )


def facts_of(run: ProgramRun, seen: OutsideStart) -> Facts:
    """Return what /proc said when the time of a start was over."""
    start = seen.start
    files = GuestFiles({**run.reader.files, **start.about.files})
    listing = make_listing(start.threads, read_surroundings(files))
    snapshot = read_snapshot(files, listing, start.pid)
    return Facts(snapshot, nonblocking_in(files, start.pid))


def nonblocking_in(files: GuestFiles, pid: int) -> Callable[[int], bool | None]:
    """
    Return what says whether a descriptor does not block; None: it is not known.

    It has O_NONBLOCK and is of no file, or is of a timer or of events.
    """
    known: dict[int, bool] = {}
    for path, content in files.read_many([DESCRIPTORS.format(pid)]).items():
        text = text_of(content)
        flags = re.search(r"^flags:\s*([0-7]+)", text or "", re.MULTILINE)
        name = path.rpartition("/")[2]
        if text is None or flags is None or not name.isdecimal():
            continue
        is_of_events = any(f"\n{key}" in text for key in _OF_EVENTS)
        is_read = re.search(r"^pos:\s*[1-9]", text, re.MULTILINE) is not None
        waits = not int(flags[1], 8) & _O_NONBLOCK or is_read
        known[int(name)] = is_of_events or not waits
    return known.get
