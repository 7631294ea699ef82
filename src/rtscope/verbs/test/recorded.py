"""The worst cycle, recorded and explained, with the functions that it executed."""

from dataclasses import dataclass

from rtscope.explain.outsidecycle import (
    Log,
    ProgramBoot,
    RecordedCycle,
    recorded_cycles,
)
from rtscope.host.escape import all_printable
from rtscope.host.process import Progress
from rtscope.programs.outside.file import ProgramRecord
from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.verbs.test.functions import (
    FunctionUse,
    Naming,
    functions_of,
    naming_of,
)
from rtscope.verbs.test.places import pieces_of
from rtscope.verbs.test.running import Ran


@dataclass(frozen=True, slots=True)
class Recorded:
    """What all CPUs executed in the worst cycle, and what took its time."""

    path: RecordedCycle
    functions: tuple[FunctionUse, ...] = ()
    """Which functions were executed in it, most instructions first."""


def recorded_cycle(
    ran: Ran,
    record: ProgramRecord,
    thread: OutsideThread,
    cycle: OutsideCycle,
    *,
    log: Log,
    progress: Progress,
) -> Recorded | None:
    """Boot again, record the cycle, explain it; None, with the reason in the log."""
    boot = ran.boot
    found = recorded_cycles(
        ProgramBoot(boot.prepared, boot.job, boot.view, ran.run),
        *(record, [(thread, cycle)]),
        log=log,
        progress=progress,
    )
    path = found.get(thread.tid)
    if path is None:
        return None
    functions = functions_of(
        *(path.section, cycle),
        cpu=path.cpu,
        shift=record.shift,
        symbols=path.symbols,
        named=_naming(ran, record, thread),
    )
    return Recorded(path, all_printable(functions))


def _naming(ran: Ran, record: ProgramRecord, thread: OutsideThread) -> Naming:
    program = ran.boot.job.program
    maps = next((s.maps for s in ran.run.starts if thread.process in s.maps), {})
    pieces = pieces_of(program, maps, thread.process)
    return naming_of(program, pieces, arch=record.arch)
