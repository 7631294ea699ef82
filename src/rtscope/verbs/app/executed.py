"""The programs that a watched process executed: when, and the memory of each."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from rtscope.contract import FileLine, Line, WatchedThread, WatchExecuted, WatchSample
from rtscope.host.escape import printable
from rtscope.machine.target.agentreader import content_of
from rtscope.present.words import duration
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.memorymap import MemoryMap, parse_maps

MAX_SHOWN = 3
LEFT_AT_ONCE = "it executed another one before that could be looked at"
ENDED_AT_ONCE = "it ended before that could be looked at, or executed another one"


@dataclass(frozen=True, slots=True)
class Execution:
    """A thread of a watched process executed a program."""

    tid: int
    thread: str
    file: str
    """Empty: it executed another one, or ended, before that could be looked at."""
    name: str
    """Of the process from then on; of a script, its own."""
    after_ns: int
    """From the begin of the watching."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The memory of a process: of each program that it was, in their order."""

    pid: int
    maps: Sequence[MemoryMap]
    lines: Sequence[WatchExecuted]
    """That began each but the first."""

    def number_at(self, t_ns: int) -> int:
        """Return which program a process was at a time."""
        return bisect_right([one.t_ns for one in self.lines], t_ns)

    def at(self, t_ns: int) -> MemoryMap:
        """Return its memory at a time."""
        return self.maps[self.number_at(t_ns)]

    @property
    def pieces(self) -> list[Piece]:
        """All pieces of all of them."""
        return [piece for one in self.maps for piece in one.mappings]

    def of_thread(self, sample: WatchSample) -> WatchSample:
        """Give a sample the number that its thread has then: the executing one takes
        that of the first thread."""
        taken = (one for one in self.lines if one.tid == sample.tid)
        if any(one.t_ns <= sample.t_ns for one in taken):
            return replace(sample, tid=self.pid)
        return sample

    def renamed(self, thread: WatchedThread) -> WatchedThread:
        """Give the first thread the name that its last program gave it."""
        names = [
            one.name
            for one in self.lines
            if one.tid == thread.tid == self.pid
            and thread.from_ns <= one.t_ns < thread.to_ns
        ]
        return replace(thread, name=names[-1]) if names else thread

    def executions(
        self, threads: Sequence[WatchedThread], from_ns: int
    ) -> list[Execution]:
        """Return who executed what; `threads` have the names that they began with."""
        return [
            Execution(
                one.tid,
                self._name_before(number, threads),
                program_in(self.maps[number + 1]),
                one.name,
                max(0, one.t_ns - from_ns),
            )
            for number, one in enumerate(self.lines)
        ]

    def _name_before(self, number: int, threads: Sequence[WatchedThread]) -> str:
        line = self.lines[number]
        if number and line.tid == self.pid:
            return self.lines[number - 1].name
        alike = (x for x in threads if x.tid == line.tid and x.from_ns <= line.t_ns)
        return next((one.name for one in alike), "")


def programs_of(
    pid: int, before: Sequence[Piece], lines: Sequence[Line], after: Sequence[Piece]
) -> Programs:
    """
    Return the programs of a process, from the agent's lines and two looks beside them.

    The agent sends the memory at the begin, and before each line of an execution.
    """
    sent: list[Piece] = []
    first: list[Piece] | None = None
    name = ""
    executed: list[tuple[WatchExecuted, list[Piece]]] = []
    for line in lines:
        if isinstance(line, FileLine) and line.path == f"/proc/{pid}/maps":
            sent = parse_maps(_text(line))
            first = sent if first is None else first
        if isinstance(line, FileLine) and line.path == f"/proc/{pid}/comm":
            name = _text(line).removesuffix("\n")
        if isinstance(line, WatchExecuted):
            executed.append((line, sent if _is_of(line, sent, name) else []))
    executed.sort(key=lambda one: one[0].t_ns)
    seen = [
        [] if then[0].t_ns < one[0].looked_ns else one[1]
        for one, then in pairwise(executed)
    ] + [pieces for _, pieces in executed[-1:]]
    maps = [[*before, *(first or ())], *seen]
    if not executed or _is_later(executed[-1][0], maps[-1], after):
        maps[-1] = [*maps[-1], *after]
    return Programs(pid, [MemoryMap(one) for one in maps], [one for one, _ in executed])


def _text(line: FileLine) -> str:
    content = content_of(line)
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else ""


def _is_of(line: WatchExecuted, seen: Sequence[Piece], name: str) -> bool:
    """Tell whether memory that was seen is of what was executed, not of what another
    thread executed unseen since: that has another name, and another file."""
    return line.name in (name, _name_of(seen))


def _is_later(
    line: WatchExecuted, seen: Sequence[Piece], after: Sequence[Piece]
) -> bool:
    """Tell whether memory is of the same program as what was seen before: the kernel
    puts a program's code of its own elsewhere each time."""
    if seen:
        return _vdso(seen) == _vdso(after)
    return line.name == _name_of(after)


def _name_of(pieces: Sequence[Piece]) -> str:
    return PurePosixPath(program_in(MemoryMap(pieces))).name[:15]


def _vdso(pieces: Sequence[Piece]) -> int:
    return next((one.start for one in pieces if one.path == "[vdso]"), 0)


def code_in(pieces: Iterable[Piece]) -> list[tuple[int, int]]:
    """Return where the code of which files is."""
    return [(x.start, x.inode) for x in pieces if x.executable and x.is_file]


def program_in(maps: MemoryMap) -> str:
    """Return the file that a process runs: the first one with code in its memory."""
    found = (one.path for one in maps.mappings if one.executable and one.is_file)
    return next(found, "")


def execution_words(some: Sequence[Execution], pid: int, *, most: int) -> Iterator[str]:
    """Yield what was executed: a sentence each, of as many as may be."""
    for number, one in enumerate(some[:most], 1):
        who = f"thread {one.tid} {one.thread}".rstrip()
        why = LEFT_AT_ONCE if number < len(some) else ENDED_AT_ONCE
        known = one.file or f"a program named {one.name} ({why})"
        script = PurePosixPath(one.file).name[:15] != one.name
        script = script and bool(one.file) and not one.name.isdigit()
        what = f"{known} as {one.name}" if script else known
        taken = "" if one.tid == pid else f", and is thread {pid} from then on"
        said = f"{who} executed {what} after {duration(one.after_ns)}{taken}"
        yield printable(said, limit=400)
    if len(some) > most:
        yield f"and {len(some) - most:,} more: see -v"


def execution_rows(some: Sequence[Execution]) -> list[dict[str, Any]]:
    """Return them for a JSON document."""
    return [asdict(one) for one in some]
