"""Control group and capabilities below the threads of a list."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rtscope.host.escape import printable
from rtscope.machine.capabilities import capability_words
from rtscope.machine.tasks.model import Thread
from rtscope.present.document import Span


def with_details(
    lines: Iterable[Sequence[Span]], threads: Sequence[Thread], width: int
) -> Iterator[Sequence[Span]]:
    """Yield the table, and below a thread what it does not share with the one above."""
    rows, above = iter(lines), ""
    yield next(rows)
    for thread, row in zip(threads, rows, strict=True):
        yield row
        said = _details(thread)
        if said != above:
            indent = " " * 6
            wrapped = wrap(said, width, initial_indent=indent, subsequent_indent=indent)
            for line in wrapped:
                yield [(line, "muted")]
        above = said


def _details(thread: Thread) -> str:
    group, bits = thread.line.cgroup, thread.capability_bits
    return "; ".join(
        (
            f"group {'unknown' if group is None else printable(group)}",
            f"capabilities {'unknown' if bits is None else capability_words(bits)}",
        )
    )
