"""The pass of `rtscope explain --bound`, and what it recorded beside a record."""

import os
from collections.abc import Callable, Sequence

from rtscope.board.cache import cache_dir
from rtscope.errors import UsageError
from rtscope.explain.bound import Bound
from rtscope.explain.sections import bounds_of
from rtscope.record import write_atomically
from rtscope.virtual.recorded import Recorded, section_stream_of, symbols_of
from rtscope.virtual.replay import record_again
from rtscope.virtual.stream import pack, read_stream

Say = Callable[[str], None]


def record_sections(chosen: Sequence[Recorded], *, say: Say) -> None:
    """
    Boot each run again that has no sections yet; say which cannot be.

    Raises UsageError for the only one.
    """
    for one in chosen:
        if section_stream_of(one).is_file():
            continue
        try:
            _record(one, say=say)
        except UsageError as error:
            if len(chosen) == 1:
                raise
            say(str(error))


def bounds_of_run(one: Recorded, *, say: Say) -> Sequence[Bound]:
    """Return what a run's sections could combine to; nothing if it has none."""
    path = section_stream_of(one)
    if "virtual" not in one.record.extra or not path.is_file():
        return ()
    symbols = symbols_of(one, cache=cache_dir(os.environ), say=say)
    return bounds_of(read_stream(path, sha256=None), symbols)


def _record(one: Recorded, *, say: Say) -> None:
    name, cache = one.record.run.id, cache_dir(os.environ)
    if "virtual" not in one.record.extra:
        raise UsageError(
            f"{name}: measured on {one.record.run.target}: only the run of a virtual "
            "board can be booted again for its longest sections"
        )
    symbols = symbols_of(one, cache=cache, say=say)
    say(f"{name}: booting again, for the longest sections")
    done = record_again(one.record, windows=(), cache=cache, symbols=symbols)
    path = section_stream_of(one)
    write_atomically(path, pack(done.raw, name=path.name)[0])
