"""Watch a running process from outside: its threads, files, events and stacks."""

import base64
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

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
from rtscope.host.errors import ContractError, TargetError, UsageError
from rtscope.host.units import NS_PER_S
from rtscope.machine.reader import Content, Denied, Reader
from rtscope.machine.target import Target
from rtscope.machine.target.agentreader import AgentReader
from rtscope.machine.target.stream import answer_of, wait_any
from rtscope.machine.tasks.listing import make_listing, read_surroundings
from rtscope.machine.tasks.model import Listing
from rtscope.verbs.app.images import MAX_IMAGE_BYTES, Images, Probe, probes_in
from rtscope.verbs.app.locks import PROBE
from rtscope.verbs.app.memorymap import Mapping as Piece
from rtscope.verbs.app.memorymap import MemoryMap, parse_maps
from rtscope.verbs.app.model import EventStack, Files, Observation, Watch
from rtscope.verbs.app.naming import NamedStack, Namer
from rtscope.verbs.app.rules import ALLOCATIONS
from rtscope.verbs.app.unwind import BY_MACHINE, Stack, Unwinder, registers_in

TIMEOUT_S = 60.0

LEFT_OUT = "--light leaves it out"

STACKS = 32
"""To copy of each kind of event and thread: enough for the few places in a cycle."""

_FILES = ("status", "limits", "smaps", "environ")


def observe(
    machine: Target, pid: int, *, duration_ns: int, light: bool = False
) -> Observation:
    """
    Watch a process for some time; TargetError if it is not there or cannot be watched.

    `light` leaves out the probes, with which calls of the allocator are counted.

    Nothing is changed in the process, and nothing of the watching stays behind.
    """
    reader = privileged_reader(machine)
    before = read_snapshot(reader, list_threads(machine), pid)
    images = Images(_reading(machine, reader, pid))
    files = f"/proc/{pid}/map_files"
    probes = () if light else probes_in(before.maps, images, directory=files)
    lines = _watched(machine, pid, duration_ns, probes)
    after = read_snapshot(reader, list_threads(machine), pid)
    return observation_of(
        before, lines, after, images=images, probes=probes, light=light
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
) -> Observation:
    """
    Return all that was seen of a process between two snapshots of it.

    Raises TargetError for an error of the agent, ContractError for what is missing of
    its lines.
    """
    refuse_errors(lines)
    pid = before.pid
    images.learn(lines)
    for piece in before.maps:
        if piece.executable and piece.is_file:
            images.of(piece)
    probed = {(one.inode, one.offset // PAGE_BYTES) for one in probes}
    last = after if after.there else before
    maps = MemoryMap([*before.maps, *(after.maps if after.there else ())])
    return Observation(
        pid=pid,
        name=_name(before.listing, pid),
        listing=last.listing,
        files=last.files,
        watch=_watch_of(lines, maps, images, probed),
        lazy_images=images.lazy,
        unread_images=images.unread,
        no_probe=""
        if any(one.name.startswith(ALLOCATIONS) for one in probes)
        else _no_probe(before, light=light),
    )


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


def _reading(
    machine: Target, reader: AgentReader, pid: int
) -> Callable[[Piece], Content]:
    """Return a function that reads the file in a piece of memory."""

    def read_piece(piece: Piece) -> Content:
        # The link leads to the file itself, through namespaces, also a deleted one.
        link = f"/proc/{pid}/map_files/{piece.start:x}-{piece.end:x}"
        if machine.name == "local":
            for place in (Path(link), Path(piece.path)):
                try:
                    if place.stat().st_size <= MAX_IMAGE_BYTES:
                        return place.read_bytes()
                except OSError:
                    continue
        return reader.read_many([link])[link]

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
    guard = machine.start_agent(["load", "--", *argv])
    try:
        lines: list[Line] = []
        until = time.monotonic() + settle_s
        while not guard.ended and (left_s := until - time.monotonic()) > 0:
            wait_any([guard], timeout_s=left_s)
            lines += guard.take_lines()
        pid = None
        for line in lines:
            if isinstance(line, AgentError):
                raise TargetError(line.message)
            if isinstance(line, LoadHello):
                pid = line.pid
            if isinstance(line, LoadEnd):
                raise TargetError(
                    f"{argv[0]} ended before it could be watched, with status "
                    f"{line.status}"
                )
        if pid is None:
            raise TargetError(f"{argv[0]} did not begin: {guard.stderr_tail()}")
        yield pid
    finally:
        guard.kill()


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
    lines = answer_of(machine, args, timeout_s=TIMEOUT_S, works_s=works_s)
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
    maps: MemoryMap,
    images: Images,
    probed: Collection[tuple[int, int]],
) -> Watch:
    begin = next((one for one in lines if isinstance(one, WatchBegin)), None)
    end = next((one for one in lines if isinstance(one, WatchEnd)), None)
    threads = tuple(one for one in lines if isinstance(one, WatchedThread))
    if begin is None or end is None or end.threads != len(threads):
        raise ContractError("the agent's list of events is incomplete")
    samples = [one for one in lines if isinstance(one, WatchSample)]
    own = [one for one in samples if _is_own(one, maps, probed)]
    others = [one for one in samples if one not in own]
    return Watch(
        begin,
        threads,
        end,
        _stacks(begin, others, maps, images),
        own_faults=Counter(one.tid for one in own),
    )


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


def _stacks(
    begin: WatchBegin, samples: Sequence[WatchSample], maps: MemoryMap, images: Images
) -> Mapping[tuple[int, str], tuple[EventStack, ...]]:
    machine = BY_MACHINE.get(begin.arch)
    if machine is None:
        return {}
    unwinder = Unwinder(machine, maps, images.of)
    namer = Namer(images.debug_file)
    stacks_of: dict[tuple[int, str], dict[_Same, list[WatchSample]]] = {}
    unwound: dict[tuple[int, ...], Stack] = {}
    probed = {e.name for e in begin.events if e.name.startswith((*ALLOCATIONS, PROBE))}
    for sample in samples:
        registers = registers_in(base64.b64decode(sample.regs), machine)
        stack = unwinder.unwind(
            registers,
            base64.b64decode(sample.stack),
            at_entry=sample.event in probed,
        )
        places = tuple(frame.address for frame in stack.frames)
        unwound.setdefault(places, stack)
        key = int(sample.key, 16)
        own = _same_piece(maps, key, registers.get(machine.sp))
        of_event = stacks_of.setdefault((sample.tid, sample.event), {})
        of_event.setdefault((places, sample.call, key, own), []).append(sample)
    return {
        event: tuple(
            EventStack(
                _named_stack(namer, unwound[places], event[1]),
                times=len(same),
                address=int(same[0].address, 16),
                call=call,
                key=key,
                own_memory=own,
            )
            for (places, call, key, own), same in sorted(
                stacks.items(), key=lambda one: -len(one[1])
            )
        )
        for event, stacks in stacks_of.items()
    }


_Same = tuple[tuple[int, ...], str, int, bool]
"""Places, call, its key, and whether that is in the thread's own stack."""


def _same_piece(maps: MemoryMap, word: int, stack_pointer: int | None) -> bool:
    """Whether a word is in the memory that the stack is in."""
    piece = maps.at(word) if word and stack_pointer is not None else None
    return piece is not None and piece is maps.at(stack_pointer or 0)


def _named_stack(namer: Namer, stack: Stack, event: str) -> NamedStack:
    """Name a stack; a probed function has the name that it is called by."""
    named = namer.named(stack)
    function = event.partition(".")[0]
    if function not in ALLOCATIONS or not named.frames:
        return named
    first = replace(named.frames[0], function=function, file="", line=0)
    inner = [frame for frame in named.frames if not frame.inlined]
    rest = named.frames[named.frames.index(inner[0]) + 1 :] if inner else ()
    return replace(named, frames=(first, *rest))


def process_named(listing: Listing, name: str) -> list[int]:
    """Return the processes of a name, or the one of a PID or TID."""
    if name.isdigit():
        return [t.line.pid for t in listing.threads if t.line.tid == int(name)]
    return [t.line.pid for t in listing.threads if t.is_leader and t.name == name[:15]]


def find_process(machine: Target, name: str) -> int:
    """Return the one process of a name, PID or TID; UsageError if none or several."""
    processes = process_named(list_threads(machine), name)
    if not processes:
        raise UsageError(
            f"{name}: there is no such process; list them with rtscope tasks"
        )
    if len(processes) > 1:
        pids = ", ".join(str(pid) for pid in processes[:10])
        raise UsageError(f"{name}: {len(processes)} processes have this name: {pids}")
    return processes[0]
