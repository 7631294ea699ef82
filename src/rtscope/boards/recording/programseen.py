"""
A program on a board, seen from outside: what the plugin is to record, and its record.

Every verb that runs a program of the user's on a board goes this way: `outside_view`
before the boot, `record_of` and `outside_starts` after it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.program import ROOT
from rtscope.boards.parts.qemu import ProgramView
from rtscope.boards.recording.programplaces import program_view
from rtscope.boards.recording.programuses import ProgramUses
from rtscope.boards.runs.program import ProgramRun, ProgramStart, printed
from rtscope.boards.runs.programscript import ProgramJob
from rtscope.host.errors import BoardError, ContractError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_MS, exact_duration
from rtscope.programs.ends import left_words
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.file import parse_program_record
from rtscope.programs.outside.model import Outside
from rtscope.programs.outside.wakeups import Reader

STACKS = 200
"""Of a thread: one for each place at which it allocates, calls the kernel, faults."""


@dataclass(frozen=True, slots=True)
class OutsideStart:
    """One start of a program, and what it did in the time that is judged."""

    start: ProgramStart
    outside: Outside
    hidden: Mapping[int, str]
    """Why allocations of a process are not seen."""
    functions: tuple[str, ...] = ()
    """The names of those that allocate, by their numbers in the record."""


def outside_view(
    prepared: Prepared,
    uses: ProgramUses,
    span_ns: tuple[int, int],
    *,
    cache: Path,
    log: Callable[[str], None],
    progress: Progress = lambda _step: None,
) -> ProgramView:
    """
    Return what the plugin is to record of a program with these functions.

    Stacks are kept of `span_ns`, from the begin of each start. Raises BoardError if the
    kernel lacks symbols or BTF.
    """
    view = program_view(prepared, cache=cache, log=log, progress=progress)
    if not view.time[0]:
        raise BoardError(
            f"{prepared.kernel.name}: its symbols lack its clock (tk_core), so no "
            "timer of a program is seen; build it with CONFIG_KALLSYMS_ALL"
        )
    return replace(view, uses=uses.uses, stacks=STACKS, stacked_ns=span_ns)


def record_of(run: ProgramRun) -> Reader:
    """Read the plugin's record of a boot; BoardError if it is damaged."""
    try:
        return Reader(parse_program_record(run.record or b""))
    except ContractError as error:
        raise BoardError(f"{run.identity.kernel}: {error}") from error


def outside_starts(
    run: ProgramRun,
    job: ProgramJob,
    uses: ProgramUses,
    reader: Reader,
    *,
    title: str,
    given_ns: Callable[[str], int | None] = lambda _name: None,
    most: int | None = None,
) -> Iterator[OutsideStart]:
    """
    Yield each start of a boot with what its threads did in the time that is judged.

    `reader` is that of the boot, `title` names the program in messages; `given_ns` and
    `most` are those of `outside_of`. Raises BoardError if a start ended before its
    warm-up was over.
    """
    functions = tuple(one.name for one in uses.uses)
    for start in run.starts:
        outside = outside_of(
            reader.record,
            process=start.pid,
            warmup_ns=job.warmup_ns,
            duration_ns=job.duration_ns,
            given_ns=given_ns,
            most=most,
            reader=reader,
            functions=functions,
        )
        _refuse_short(run, job, start, outside, title)
        hidden = _hidden(job, uses, start, outside)
        yield OutsideStart(start, outside, hidden, functions)


def _hidden(
    job: ProgramJob, uses: ProgramUses, start: ProgramStart, outside: Outside
) -> Mapping[int, str]:
    """Return why allocations of processes are not seen."""
    found = {}
    for process in {one.process for one in outside.threads}:
        paths = [one.path for one in start.maps.get(process, ()) if one.executable]
        why = uses.why_unseen(paths or [f"/{ROOT}{job.program.command[0]}"])
        if why:
            found[process] = why
    return found


def _refuse_short(
    run: ProgramRun, job: ProgramJob, start: ProgramStart, outside: Outside, title: str
) -> None:
    """Raise BoardError for a program that has ended before anything is judged."""
    lived_ns = outside.lived_ns
    if start.stopped or lived_ns is None or lived_ns > job.warmup_ns:
        return
    left = left_words(start.left)
    raise BoardError(
        f"{run.identity.board}: {title} ended {lived_ns / NS_PER_MS:.3f} virtual ms "
        f"after its start, with status 0, before its warm-up of "
        f"{exact_duration(job.warmup_ns)} was over"
        f"{f', and {left}' if left else ': let it run longer'}"
        f"{printed(start.stderr, start.stdout)}"
    )
