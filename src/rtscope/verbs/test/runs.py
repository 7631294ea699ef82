"""What each boot of a test gave: its threads; output, end and identity as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from rtscope.boards.recording.programseen import outside_starts
from rtscope.boards.runs.program import Output, ProgramStart
from rtscope.host.units import NS_PER_S
from rtscope.programs.ends import left_words
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


def seen_starts(test: ProgramTest, ran: Ran, reader: Reader) -> Iterator[SeenStart]:
    """
    Yield each start of a boot with what its threads did in the time that is judged.

    `reader` is that of the boot. Raises BoardError if nothing of it is judged.
    """
    doubts = tuple(_sentences(ran.run.caveats, Effect.LIMIT, Effect.INVALID))
    notes = tuple(_sentences(ran.run.caveats, Effect.NOTE))
    boot = ran.boot
    starts = outside_starts(
        ran.run,
        boot.job,
        boot.uses,
        reader,
        title=test.title,
        given_ns=partial(period_of, test),
        most=test.cycles,
    )
    for one in starts:
        yield SeenStart(
            identity=ran.run.identity,
            load=boot.load,
            start=one.start.number,
            starts=len(ran.run.starts),
            outside=one.outside,
            doubts=(*doubts, *_left(boot.job.program.command[0], one.start)),
            notes=notes,
            hidden=one.hidden,
            stacks=named_stacks(
                boot.job.program,
                reader.record,
                judged_threads(test, one.outside),
                one.start.maps,
            ),
        )


def _left(command: str, start: ProgramStart) -> Iterator[str]:
    """Yield that a program went on in the background, and was ended."""
    if start.left and not start.stopped:
        yield (
            f"the program {PurePosixPath(command).name} ended within "
            f"{start.lasted_ns / NS_PER_S:.2f} virtual s and {left_words(start.left)}"
        )


def _sentences(caveats: Sequence[Caveat], *effects: Effect) -> Iterator[str]:
    """Yield the caveats of these effects in words."""
    for one in caveats:
        kind = kind_of(one)
        if kind.effect in effects:
            yield f"{kind.message}{one.detail and f' ({one.detail})'}"
