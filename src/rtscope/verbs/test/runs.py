"""What each boot of a test gave: its threads; output, end and identity as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rtscope.boards.parts.program import ROOT
from rtscope.boards.runs.program import Output, ProgramStart, printed
from rtscope.host.errors import BoardError, ContractError
from rtscope.host.units import NS_PER_MS, exact_duration
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.file import parse_program_record
from rtscope.programs.outside.model import Outside
from rtscope.programs.outside.wakeups import Reader
from rtscope.record.caveats.catalogue import Caveat, Effect, kind_of
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.judge import SeenStart, judged_threads, period_of
from rtscope.verbs.test.places import named_stacks
from rtscope.verbs.test.running import Ran


def run_row(ran: Ran) -> Mapping[str, Any]:
    """Return a boot for a JSON document."""
    return {
        "load": ran.boot.load,
        "virtual": ran.run.identity.row(),
        "inputs_digest": ran.run.inputs_digest,
        "caveats": [{"id": one.id, "detail": one.detail} for one in ran.run.caveats],
        "starts": [_start_row(one) for one in ran.run.starts],
    }


def _start_row(start: ProgramStart) -> Mapping[str, Any]:
    return {
        "number": start.number,
        "stopped": start.stopped,
        "status": start.status,
        "signal": start.signal,
        "lasted_ns": start.lasted_ns,
        "stdout": _output_row(start.stdout),
        "stderr": _output_row(start.stderr),
    }


def _output_row(output: Output) -> Mapping[str, Any]:
    return {
        "text": output.text,
        "bytes": output.size,
        "cut_bytes": output.cut_bytes,
        "refused": output.refused,
    }


def reader_of(ran: Ran) -> Reader:
    """Read the plugin's record of a boot; BoardError if it is damaged."""
    try:
        return Reader(parse_program_record(ran.run.record or b""))
    except ContractError as error:
        raise BoardError(f"{ran.boot.kernel}: {error}") from error


def seen_starts(test: ProgramTest, ran: Ran, reader: Reader) -> Iterator[SeenStart]:
    """
    Yield each start of a boot with what its threads did in the time that is judged.

    `reader` is that of the boot. Raises BoardError if nothing of it is judged.
    """
    record = reader.record
    doubts = tuple(_doubts(ran.run.caveats))
    for start in ran.run.starts:
        outside = outside_of(
            record,
            process=start.pid,
            warmup_ns=test.warmup_ns,
            duration_ns=test.longest_ns,
            given_ns=partial(period_of, test),
            most=test.cycles,
            reader=reader,
            functions=[one.name for one in ran.boot.view.uses],
        )
        _refuse_short(test, ran, start, outside)
        yield SeenStart(
            identity=ran.run.identity,
            load=ran.boot.load,
            start=start.number,
            starts=len(ran.run.starts),
            outside=outside,
            doubts=doubts,
            hidden=_hidden(ran, start, outside),
            stacks=named_stacks(
                ran.boot.job.program,
                record,
                judged_threads(test, outside),
                start.maps,
            ),
        )


def _hidden(ran: Ran, start: ProgramStart, outside: Outside) -> Mapping[int, str]:
    """Return why allocations of processes are not seen."""
    program, found = ran.boot.job.program, {}
    for process in {one.process for one in outside.threads}:
        paths = [one.path for one in start.maps.get(process, ()) if one.executable]
        why = ran.boot.uses.why_unseen(paths or [f"/{ROOT}{program.command[0]}"])
        if why:
            found[process] = why
    return found


def _refuse_short(
    test: ProgramTest, ran: Ran, start: ProgramStart, outside: Outside
) -> None:
    """Raise BoardError for a program that has ended before anything is judged."""
    lived_ns = outside.lived_ns
    if start.stopped or lived_ns is None or lived_ns > test.warmup_ns:
        return
    raise BoardError(
        f"{ran.boot.board}: {test.title} ended {lived_ns / NS_PER_MS:.3f} virtual ms "
        f"after its start, with status 0, before its warm-up of "
        f"{exact_duration(test.warmup_ns)} was over: let it run longer"
        f"{printed(start.stderr, start.stdout)}"
    )


def _doubts(caveats: Sequence[Caveat]) -> Iterator[str]:
    """Yield the caveats for which a limit is not shown to be kept."""
    for one in caveats:
        kind = kind_of(one)
        if kind.effect is not Effect.NOTE:
            yield f"{kind.message}{one.detail and f' ({one.detail})'}"
