"""
Records read for the index: a few here, many by a process on each CPU.

Such a process is `python -m ...reading`: it takes lists of records from its standard
input, and returns what the index keeps of them. It ends when its input does, also if
the process that has started it is killed.
"""

import gc
import os
import pickle
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, cast

from rtscope.host.errors import MeasurementError, TargetError
from rtscope.host.process import Started, start
from rtscope.verbs.history.entries import Entry, read_entry

MOST_PROCESSES = 16

_PROGRAM = ("-P", "-m", "rtscope.verbs.history.reading")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A record to read."""

    path: Path
    mark: str
    """Its fingerprint."""
    part_of: str
    """The sweep or search that it is of."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A record that cannot be read."""

    path: Path
    mark: str
    why: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A folder or a file that nobody could look into."""

    why: str


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of a directory."""

    directory: Path
    tags: frozenset[str]


Found = Wanted | Skipped | Tags
Answer = Entry | Damaged
Item = Answer | Skipped | Tags


def _read(one: Wanted) -> Answer:
    try:
        return read_entry(one.path, mark=one.mark, part_of=one.part_of)
    except MeasurementError as error:
        return Damaged(one.path, one.mark, str(error))


class _Reader:
    """A process that reads; without one its records are read here."""

    def __init__(self) -> None:
        self._asked: Sequence[Wanted] = ()
        self._process: Started | None = None
        if processes() > 1:
            with suppress(TargetError):  # this user may start no more of them
                self._process = start([sys.executable, *_PROGRAM])

    def ask(self, wanted: Sequence[Wanted]) -> None:
        """Have records read."""
        self._asked = wanted
        if self._process is not None:
            with suppress(BrokenPipeError), _open(self._process.stdin, "wb") as pipe:
                pickle.dump(wanted, pipe)

    def answers(self) -> Iterator[Answer]:
        """Return what was read; the rest of a process that has ended is read here."""
        if self._process is not None:
            ended = suppress(EOFError, pickle.UnpicklingError)
            with ended, _open(self._process.stdout, "rb") as pipe:
                return iter(cast(list[Answer], pickle.load(pipe)))
            self.end()
        return map(_read, self._asked)

    def end(self) -> None:
        """End the process, which has nothing to put back."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _open(pipe: IO[bytes] | None, mode: str) -> IO[bytes]:
    """Return a pipe with a buffer, and leave the pipe open."""
    assert pipe is not None
    return cast(IO[bytes], os.fdopen(pipe.fileno(), mode, closefd=False))


def read_all(batches: Iterable[Sequence[Found]]) -> Generator[list[Item], None, None]:
    """
    Yield batches in their order, with what was read in place of what is wanted.

    The first is read here: of few records, a process costs more than it saves.
    """
    left = iter(batches)
    for batch in islice(left, 1):
        yield [_read(one) if isinstance(one, Wanted) else one for one in batch]
    with ExitStack() as held:
        turns: deque[tuple[_Reader, Sequence[Found]]] = deque()
        for batch in left:
            before: list[Item] = []
            if len(turns) < processes():
                reader = _Reader()
                held.callback(reader.end)
            else:
                reader, asked = turns.popleft()
                before = _merged(asked, reader.answers())
            reader.ask([one for one in batch if isinstance(one, Wanted)])
            turns.append((reader, batch))
            if before:
                yield before
        for reader, batch in turns:
            yield _merged(batch, reader.answers())


def processes() -> int:
    """Return how many read at once: one is this process itself."""
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES)


def _merged(batch: Sequence[Found], answers: Iterator[Answer]) -> list[Item]:
    return [next(answers) if isinstance(one, Wanted) else one for one in batch]


def main() -> None:
    """Read what standard input asks for, until it ends."""
    gc.freeze()
    gc.disable()  # what a record is made of has no cycles, and much of it
    with suppress(EOFError, BrokenPipeError):
        while True:
            answers = [_read(one) for one in pickle.load(sys.stdin.buffer)]
            pickle.dump(answers, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            gc.collect()


if __name__ == "__main__":
    # What it returns are classes of this module; those of `__main__` are others.
    from rtscope.verbs.history import reading

    reading.main()
