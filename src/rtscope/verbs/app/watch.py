"""Watch a running process from outside: its threads, files, events and stacks."""

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rtscope.boards.parts.cache import cache_dir
from rtscope.contract import (
    AgentError,
    Line,
    LoadEnd,
    LoadHello,
    WatchBegin,
    WatchedThread,
    WatchEnd,
    WatchSample,
)
from rtscope.host.errors import ContractError, SilentAgent, TargetError, UsageError
from rtscope.host.escape import printable
from rtscope.host.units import NS_PER_S, is_whole
from rtscope.machine.reader import Content, Denied, Missing, Reader
from rtscope.machine.target import Stream, Target
from rtscope.machine.target.agentreader import AgentReader
from rtscope.machine.target.stream import answer_of, wait_any
from rtscope.machine.tasks.listing import make_listing, read_surroundings
from rtscope.machine.tasks.model import Listing, Thread, ThreadKind
from rtscope.programs.ends import end_words, left_words
from rtscope.programs.images import Images, MadeFiles, Probe, probes_in
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.memorymap import MemoryMap, parse_maps
from rtscope.programs.probes import is_allocation
from rtscope.verbs.app.eventstacks import (
    EventStacks,
    Naming,
    event_stacks,
    made_files,
)
from rtscope.verbs.app.executed import Programs, code_in, program_in, programs_of
from rtscope.verbs.app.model import Files, Observation, Watch
from rtscope.verbs.app.runtimes import marks, runtimes_in

TIMEOUT_S = 60.0

LOOKS = 3
"""At its memory, which takes a while to read, before it is watched as it is."""

LEFT_OUT = "--light leaves it out"

STACKS = 32
"""To copy of each kind of event and thread: enough for the few places in a cycle."""

_FILES = ("status", "limits", "smaps", "environ")


def observe(
    machine: Target,
    pid: int,
    *,
    duration_ns: int,
    light: bool = False,
    naming: Naming | None = None,
) -> Observation:
    """
    Watch a process for some time; TargetError if it is not there or cannot be watched.

    `light` leaves out the probes, with which calls of the allocator are counted.

    Nothing is changed in the process, and nothing of the watching stays behind.
    """
    reader = privileged_reader(machine)
    before = read_snapshot(reader, list_threads(machine), pid)
    with ExitStack() as stack:
        read = _reading(machine, reader, pid, stack)
        images = stack.enter_context(
            Images(read, cache=cache_dir() / "names", marks=marks())
        )
        files = f"/proc/{pid}/map_files"
        for _ in range(LOOKS):
            probes = () if light else probes_in(before.maps, images, directory=files)
            now = _maps(reader.read_many([f"/proc/{pid}/maps"]), pid)[0]
            if code_in(now) == code_in(before.maps):
                break
            before = replace(before, maps=tuple(now))  # it executed another program
        lines = _watched(machine, pid, duration_ns, probes)
        after = read_snapshot(reader, list_threads(machine), pid)
        made = _made_files(after, pid) if machine.name == "local" else None
        return observation_of(
            before,
            lines,
            after,
            images=images,
            probes=probes,
            light=light,
            naming=naming,
            made=made,
        )


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """A process at one time, with all threads of its machine."""

    pid: int
    listing: Listing
    maps: tuple[Piece, ...]
    no_maps: str
    """Why its memory is unknown; empty if it is known."""
    files: Files

    @property
    def there(self) -> bool:
        """Whether the process was there."""
        return any(t.line.pid == self.pid for t in self.listing.threads)


def read_snapshot(reader: Reader, listing: Listing, pid: int) -> ProcessSnapshot:
    """Read the memory map and the files of a process."""
    contents = reader.read_many(snapshot_paths(str(pid)))
    maps, why = _maps(contents, pid)
    return ProcessSnapshot(pid, listing, tuple(maps), why, _files(contents, pid))


def snapshot_paths(pid: str) -> tuple[str, ...]:
    """Return the paths that `read_snapshot` reads."""
    return tuple(f"/proc/{pid}/{name}" for name in ("maps", *_FILES))


def observation_of(
    before: ProcessSnapshot,
    lines: Sequence[Line],
    after: ProcessSnapshot,
    *,
    images: Images,
    probes: Sequence[Probe],
    light: bool = False,
    naming: Naming | None = None,
    made: MadeFiles | None = None,
) -> Observation:
    """
    Return all that was seen of a process between two snapshots of it.

    Raises TargetError for an error of the agent, ContractError for what is missing of
    its lines.
    """
    refuse_errors(lines)
    pid = before.pid
    images.learn(lines)
    last = after if after.there else before
    now = after.maps if after.there else ()
    programs = programs_of(pid, before.maps, lines, now)
    images.read(programs.pieces)
    watch, stacks = _watch_of(
        lines, programs, images, probes, naming=naming or Naming(), made=made
    )
    executed = programs.executions(watch.threads, watch.begin.from_ns)
    watch = replace(watch, threads=tuple(map(programs.renamed, watch.threads)))
    return Observation(
        pid=pid,
        name=_name(before.listing, pid),
        listing=last.listing,
        files=last.files,
        watch=watch,
        lazy_images=images.lazy,
        unread_images=images.unread,
        no_probe=""
        if any(is_allocation(one.name) for one in probes)
        else _no_probe(before, light=light),
        not_named=stacks.not_named,
        bare_files=stacks.bare,
        executed=tuple(executed),
        runtimes=runtimes_in(images.marks, last.files.environ or ""),
        no_probe_since="" if light else _no_probe_since(programs, images, probes),
    )


def _no_probe_since(programs: Programs, images: Images, probes: Sequence[Probe]) -> str:
    """Return the first file executed meanwhile whose allocator had no probe."""
    probed = {one.inode for one in probes if is_allocation(one.name)}
    for maps in programs.maps[1:]:
        places = {
            piece.inode
            for piece in maps.mappings
            if piece.executable and piece.is_file
            for name, _ in images.functions(piece)
            if is_allocation(name)
        }
        if not places <= probed and (file := program_in(maps)):
            return file
    return ""


def _no_probe(before: ProcessSnapshot, *, light: bool) -> str:
    if light:
        return LEFT_OUT
    return before.no_maps or "no allocator was found in its memory"


def refuse_errors(lines: Iterable[Line]) -> None:
    """Raise TargetError if the agent reports an error."""
    for line in lines:
        if isinstance(line, AgentError):
            remedy = f" ({line.remedy})" if line.remedy else ""
            raise TargetError(f"{line.message}{remedy}")


MAX_OPEN = 256
"""Files of a process that are kept open, so that they are there when it has ended."""


def _reading(
    machine: Target, reader: AgentReader, pid: int, stack: ExitStack
) -> Callable[[Piece], Content | Path]:
    """Return a function that reads the file in a piece of memory, or says where."""
    kept = 0

    def read_piece(piece: Piece) -> Content | Path:
        nonlocal kept
        # The link leads to the file itself, through namespaces, also a deleted one.
        link = f"/proc/{pid}/map_files/{piece.start:x}-{piece.end:x}"
        if machine.name != "local":
            return reader.read_many([link])[link]
        left = False
        for place in (Path(link), Path(piece.path)):
            try:
                number = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except (OSError, ValueError) as error:
                left |= place == Path(link) and isinstance(error, FileNotFoundError)
                continue
            about = os.fstat(number)
            # of a program that it no longer is: its name may be another file's
            other = left and about.st_ino != piece.inode
            if kept < MAX_OPEN and stat.S_ISREG(about.st_mode) and not other:
                kept += 1
                stack.callback(os.close, number)
                return Path(f"/proc/{os.getpid()}/fd/{number}")
            os.close(number)
            return Denied("another file has its name now") if other else place
        return Missing() if left else reader.read_many([link])[link]

    return read_piece


def list_threads(machine: Target) -> Listing:
    """Return the threads of the machine."""
    lines = answer_of(machine, ["tasks"], timeout_s=TIMEOUT_S)
    return make_listing(lines, read_surroundings(machine.reader))


@contextmanager
def running_command(
    machine: Target, argv: Sequence[str], *, settle_s: float
) -> Iterator[int]:
    """
    Run a command as this user; give its PID, after some time to begin in.

    It ends with this program, whatever ends that. Raises TargetError if it cannot run.
    """
    guard = machine.start_agent(["load", "--errors", "--", *argv])
    try:
        words_of = partial(early_end, argv[0], settle_s=settle_s)
        pid = _listen(guard, words_of, for_s=TIMEOUT_S)
        if pid is None:
            silent = f"nothing was heard of it within {TIMEOUT_S:g} s"
            said = "its guard ended without a word" if guard.ended else silent
            said = guard.stderr_tail() or said
            raise TargetError(f"{argv[0]} did not begin: {said}")
        _listen(guard, words_of, for_s=settle_s)
        try:
            yield pid
        except TargetError:
            end = _end_of(guard)
            if end is None:
                raise
            raise TargetError(words_of(end)) from None
    finally:
        guard.kill()


def _listen(
    guard: Stream, words_of: Callable[[LoadEnd], str], *, for_s: float
) -> int | None:
    """Wait so long, or until the PID is told, and return it; TargetError at an end."""
    pid, until = None, time.monotonic() + for_s
    while pid is None and not guard.ended and (left_s := until - time.monotonic()) > 0:
        wait_any([guard], timeout_s=left_s)
        for line in guard.take_lines():
            refuse_errors([line])
            if isinstance(line, LoadHello):
                pid = line.pid
            if isinstance(line, LoadEnd):
                raise TargetError(words_of(line))
    return pid


def _end_of(guard: Stream) -> LoadEnd | None:
    """Return how a command ended that cannot be watched; None: it goes on."""
    until = time.monotonic() + END_SEEN_S
    while not guard.ended and (left_s := until - time.monotonic()) > 0:
        wait_any([guard], timeout_s=left_s)
    ends = (line for line in guard.take_lines() if isinstance(line, LoadEnd))
    return next(ends, None)


END_SEEN_S = 1.0
"""The guard sees within a quarter of that that its command has ended."""


EARLIER_S = 0.1
"""To settle for longer than this is no need of programs that end soon."""
PRINTED_LINES = 6
PRINTED_CHARACTERS = 500


def early_end(program: str, end: LoadEnd, *, settle_s: float) -> str:
    """Say how a command ended before it could be watched, and what to do."""
    how = end_words(end.status, end.signal)
    ended = f"{program} ended before it could be watched, {how}"
    if end.left:
        ended += f", and {left_words(end.left)}"
    lines = [printable(one) for one in end.errors.splitlines() if one.strip()]
    printed = " | ".join(lines[-PRINTED_LINES:])[-PRINTED_CHARACTERS:]
    if printed:
        return f"{ended}; it printed: {printed}"
    if end.left:
        return ended
    earlier = ", or watch it earlier: --settle 100ms" if settle_s > EARLIER_S else ""
    return f"{ended}; it printed no error: run it by itself to see why{earlier}"


def privileged_reader(machine: Target) -> AgentReader:
    """Return a reader of files, with root's rights if they can be had."""
    return AgentReader(lambda args: answer_of(machine, args, timeout_s=TIMEOUT_S))


def _maps(contents: Mapping[str, Content], pid: int) -> tuple[list[Piece], str]:
    """Return the pieces of its memory, or why they are unknown."""
    content = contents[f"/proc/{pid}/maps"]
    if isinstance(content, bytes):
        return parse_maps(content.decode("utf-8", "replace")), ""
    return [], content.reason if isinstance(content, Denied) else "the process ended"


def _files(contents: Mapping[str, Content], pid: int) -> Files:
    paths = {name: f"/proc/{pid}/{name}" for name in _FILES}
    texts = {
        name: content.decode("utf-8", "replace")
        for name, path in paths.items()
        if isinstance(content := contents[path], bytes)
    }
    denied = {
        name: content.reason
        for name, path in paths.items()
        if isinstance(content := contents[path], Denied)
    }
    return Files(**texts, denied=denied)


def _name(listing: Listing, pid: int) -> str:
    names = (t.name for t in listing.threads if t.line.tid == pid)
    return next(names, "")


def _watched(
    machine: Target, pid: int, duration_ns: int, probes: Sequence[Probe]
) -> list[Line]:
    args = watch_args(str(pid), duration_ns, probes)
    works_s = duration_ns / NS_PER_S
    try:
        lines = answer_of(machine, args, timeout_s=TIMEOUT_S, works_s=works_s)
    except SilentAgent as error:
        raise TargetError(
            f"{error}: do real-time threads of the program use all CPUs? "
            f"leave one to others: taskset -apc 1 {pid}"
        ) from None
    refuse_errors(lines)
    return lines


def watch_args(pid: str, duration_ns: int, probes: Sequence[Probe]) -> list[str]:
    """Return the agent's arguments for watching a process."""
    return [
        *("watch", "--pid", pid, "--duration-ns", str(duration_ns)),
        *("--stacks", str(STACKS)),
        *(word for one in probes for word in ("--probe", one.argument)),
    ]


PAGE_BYTES = 4096
UPROBES = "[uprobes]"
"""The kernel's name of that page: it stays until the process ends."""


def _watch_of(
    lines: Sequence[Line],
    programs: Programs,
    images: Images,
    probes: Sequence[Probe],
    *,
    naming: Naming,
    made: MadeFiles | None,
) -> tuple[Watch, EventStacks]:
    begin = next((one for one in lines if isinstance(one, WatchBegin)), None)
    end = next((one for one in lines if isinstance(one, WatchEnd)), None)
    threads = tuple(one for one in lines if isinstance(one, WatchedThread))
    if begin is None or end is None or end.threads != len(threads):
        raise ContractError("the agent's list of events is incomplete")
    probed = {(one.inode, one.offset // PAGE_BYTES) for one in probes}
    samples = [programs.of_thread(x) for x in lines if isinstance(x, WatchSample)]
    own_faults: Counter[int] = Counter()
    others = []
    for one in samples:
        if _is_own(one, programs.at(one.t_ns), probed):
            own_faults[one.tid] += 1
        else:
            others.append(one)
    stacks = event_stacks(
        begin, others, programs, threads, images, naming=naming, made=made
    )
    return Watch(begin, threads, end, stacks.stacks, own_faults=own_faults), stacks


def _is_own(
    sample: WatchSample, maps: MemoryMap, probed: Collection[tuple[int, int]]
) -> bool:
    """Whether the probes made it: the first use of a page of code that has one, or of
    the page that the kernel adds for the instructions that they replace."""
    address = int(sample.address, 16)
    piece = maps.at(address) if sample.event == "minor_fault" else None
    if piece is None or not piece.executable:
        return False
    if piece.path == UPROBES:
        return True
    page = (address - piece.start + piece.offset) // PAGE_BYTES
    return (piece.inode, page) in probed


def _made_files(snapshot: ProcessSnapshot, pid: int) -> MadeFiles | None:
    """Return where the process may name the code that it makes."""
    return made_files(snapshot.files.status, [one.path for one in snapshot.maps], pid)


def process_named(listing: Listing, name: str) -> list[int]:
    """Return the processes of a name, or the one of a PID or TID."""
    if is_whole(name):
        return [t.line.pid for t in listing.threads if t.line.tid == int(name)]
    return [
        t.line.pid
        for t in listing.threads
        if t.is_leader and t.name == name[:15] and not _has_ended(listing, t.line.pid)
    ]


def _has_ended(listing: Listing, pid: int) -> bool:
    """Whether nothing of a process is left but what its parent has not asked for."""
    return all(one.line.state in "ZX" for one in _threads_of(listing, pid))


def _threads_of(listing: Listing, pid: int) -> Sequence[Thread]:
    return [one for one in listing.threads if one.line.pid == pid]


def find_process(machine: Target, name: str) -> int:
    """Return the one process of a name, PID or TID; UsageError if none or several."""
    listing = list_threads(machine)
    processes = process_named(listing, name)
    if not processes:
        raise UsageError(
            f"{name}: there is no such process; list them with rtscope tasks"
        )
    if len(processes) > 1:
        pids = ", ".join(str(pid) for pid in processes[:10])
        raise UsageError(f"{name}: {len(processes)} processes have this name: {pids}")
    if _has_ended(listing, processes[0]):
        raise UsageError(
            f"{name}: the process has ended, and its parent has not asked how; "
            "name one that runs: rtscope tasks"
        )
    if _threads_of(listing, processes[0])[0].kind is not ThreadKind.USER:
        raise UsageError(
            f"{name}: a thread of the kernel is no program; see it with "
            f"rtscope tasks --pid {processes[0]}"
        )
    return processes[0]
