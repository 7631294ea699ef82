"""What `rtscope explain --bound` adds: a board's pass of its own, or a whole trace."""

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rtscope.board.cache import cache_dir
from rtscope.errors import UsageError
from rtscope.exectrace.file import pack, read_stream
from rtscope.explain.bound import Bound
from rtscope.explain.events.sections import bounds_of_events, why_no_sections
from rtscope.explain.events.threadstates import TracedWakeup
from rtscope.explain.instructions.sections import bounds_of
from rtscope.files import write_atomically
from rtscope.ftrace.events import Event, Trace
from rtscope.virtual.recordings import Recorded, symbols_of
from rtscope.virtual.replay import replay_run

AT_ONCE = 100_000
"""Events that are decoded together: a whole trace may not fit into memory."""

Say = Callable[[str], None]


def record_sections(chosen: Sequence[Recorded], *, say: Say) -> None:
    """
    Boot each run again that has no sections yet; say which cannot be.

    Raises UsageError for the only one.
    """
    for one in chosen:
        if one.sections_path.is_file():
            continue
        try:
            _record(one, say=say)
        except UsageError as error:
            if len(chosen) == 1:
                raise
            say(str(error))


def bounds_of_run(one: Recorded, *, say: Say) -> Sequence[Bound]:
    """Return what a run's sections could combine to; nothing if it has none."""
    path = one.sections_path
    if one.record.virtual is None or not path.is_file():
        return ()
    symbols = symbols_of(one, cache=cache_dir(os.environ), log=say)
    return bounds_of(read_stream(path, sha256=None), symbols)


def bounds_of_trace(trace: Trace, wakeup: TracedWakeup) -> Sequence[Bound]:
    """
    Return what the sections of a whole trace could combine to on a wake-up's CPU.

    Raises UsageError, with the reason, for a trace that does not tell them.
    """
    why = why_no_sections(trace.names)
    if why:
        raise UsageError(f"{trace.name}: {why}")
    cpu = wakeup.cpu
    if cpu is None:
        raise UsageError(f"{trace.name}: it is not known on which CPU the thread ran")
    lost = [f"events of CPU {cpu}: {x.reason}" for x in trace.losses if x.cpu == cpu]
    return bounds_of_events(
        _events_of(trace, cpu), measuring={cpu: wakeup.pid}, lost=dict.fromkeys(lost)
    )


def _events_of(trace: Trace, cpu: int) -> Iterator[Event]:
    for rows in trace.rows:
        for first in range(0, len(rows.at_ns) if rows.cpu == cpu else 0, AT_ONCE):
            last = min(first + AT_ONCE, len(rows.at_ns))
            yield from trace.events(rows, np.arange(first, last, dtype=np.int64))


def _record(one: Recorded, *, say: Say) -> None:
    name, cache = one.record.run.id, cache_dir(os.environ)
    if one.record.virtual is None:
        raise UsageError(
            f"{name}: measured on {one.record.run.target}: only the run of a virtual "
            "board can be booted again for its longest sections"
        )
    symbols = symbols_of(one, cache=cache, log=say)
    say(f"{name}: booting again, for the longest sections")
    done = replay_run(one.record, windows=(), cache=cache, log=say, symbols=symbols)
    path = one.sections_path
    write_atomically(path, pack(done.raw, name=path.name)[0])
