"""The stacks of events, by thread and kind: unwound and named by another process."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.contract import WatchBegin, WatchSample
from rtscope.host.process import Progress, Step
from rtscope.verbs.app.binaries.unwind import BY_MACHINE, Registers, registers_in
from rtscope.verbs.app.debuginfod import Debuginfod
from rtscope.verbs.app.images import Images, MadeFiles, Sample, Stacks
from rtscope.verbs.app.locks import PROBE
from rtscope.verbs.app.memorymap import MemoryMap
from rtscope.verbs.app.model import EventStack
from rtscope.verbs.app.naming import BareFile, NamedFrame, NamedStack
from rtscope.verbs.app.packages import packages_of
from rtscope.verbs.app.rules import ALLOCATIONS

_ARCHITECTURES = ("x86_64", "aarch64", "armv7l", "riscv64")


@dataclass(frozen=True, slots=True)
class Naming:
    """How functions are named."""

    progress: Progress = lambda _step: None
    debuginfod: Debuginfod | None = None
    """None: nothing is downloaded."""
    packages: Callable[[Sequence[str]], Mapping[str, str]] = packages_of
    """Gives the debug package of files; of another machine it knows none."""


@dataclass(frozen=True, slots=True)
class EventStacks:
    """The stacks of events, and what has no name."""

    stacks: Mapping[tuple[int, str], tuple[EventStack, ...]]
    """By thread and kind of event, the most frequent first."""
    not_named: Mapping[str, str]
    """Why, by the path of a file."""
    bare: Mapping[str, BareFile]
    """Files on them that lack debug information, by their paths."""


def event_stacks(
    begin: WatchBegin,
    samples: Sequence[WatchSample],
    maps: MemoryMap,
    images: Images,
    *,
    naming: Naming,
    made: MadeFiles | None,
) -> EventStacks:
    """Return the stacks of events; none on an architecture that cannot be unwound."""
    if begin.arch not in _ARCHITECTURES or not samples:
        return EventStacks({}, {}, {})
    probes = (*ALLOCATIONS, PROBE)
    probed = {one.name for one in begin.events if one.name.startswith(probes)}
    copied: list[Sample] = [
        (one.regs, one.stack, one.event in probed) for one in samples
    ]

    def named() -> Stacks:
        return images.stacks(maps.mappings, copied, arch=begin.arch, made=made)

    naming.progress(Step(f"naming {len(copied)} stacks", 0, len(copied), "stacks"))
    stacks = named()
    server = naming.debuginfod
    if server and stacks.bare and server.fetch(stacks.bare.values(), naming.progress):
        images.debug_files += (server.directory,)
        stacks = named()
    naming.progress(Step("naming stacks", len(copied), len(copied), "stacks"))
    packages = naming.packages(list(stacks.bare)) if stacks.bare else {}
    bare = {
        path: BareFile(build_id, packages.get(path, ""))
        for path, build_id in stacks.bare.items()
    }
    grouped = _by_event(samples, stacks.named, maps, BY_MACHINE[begin.arch])
    return EventStacks(grouped, stacks.not_named, bare)


_Same = tuple[tuple[tuple[int, bool], ...], str, int, bool]
"""Places, call, its key, and whether that is in the thread's own stack."""


def _by_event(
    samples: Sequence[WatchSample],
    named: Sequence[NamedStack],
    maps: MemoryMap,
    machine: Registers,
) -> Mapping[tuple[int, str], tuple[EventStack, ...]]:
    """Put those together that go through the same addresses, with the same call."""
    groups: dict[tuple[int, str], dict[_Same, EventStack]] = {}
    for sample, stack in zip(samples, named, strict=True):
        places = tuple((one.address, one.inlined) for one in stack.frames)
        key = int(sample.key, 16)
        registers = registers_in(base64.b64decode(sample.regs), machine)
        own = _same_piece(maps, key, registers.get(machine.sp))
        of_event = groups.setdefault((sample.tid, sample.event), {})
        same = (places, sample.call, key, own)
        first = of_event.get(same) or EventStack(
            _of_event(stack, sample.event),
            times=0,
            address=int(sample.address, 16),
            call=sample.call,
            key=key,
            own_memory=own,
        )
        of_event[same] = replace(first, times=first.times + 1)
    return {
        event: tuple(sorted(stacks.values(), key=lambda one: -one.times))
        for event, stacks in groups.items()
    }


def _same_piece(maps: MemoryMap, word: int, stack_pointer: int | None) -> bool:
    """Whether a word is in the memory that the stack is in."""
    piece = maps.at(word) if word and stack_pointer is not None else None
    return piece is not None and piece is maps.at(stack_pointer or 0)


def _of_event(named: NamedStack, event: str) -> NamedStack:
    """Give a probed function the name that it is called by, and a call its own."""
    function = event.partition(".")[0]
    if function in ALLOCATIONS and named.frames:
        first = replace(named.frames[0], function=function, file="", line=0)
        inner = [frame for frame in named.frames if not frame.inlined]
        rest = named.frames[named.frames.index(inner[0]) + 1 :] if inner else ()
        return replace(named, frames=(first, *rest))
    if event in ("blocking_call", "memory_call"):
        return replace(named, frames=with_call(named.frames))
    return named


_GATE = re.compile(
    r"(?:.*[./])?(?:Raw|Runtime|raw)?(?:Syscall|syscall)[0-9]?(?:NoError|\.abi0)?"
)
_GO_CALL = re.compile(r"(?:syscall|golang\.org/x/sys/unix)\.([A-Za-z]\w*)")


def with_call(frames: Sequence[NamedFrame]) -> tuple[NamedFrame, ...]:
    """Name the gates of Go, through which it makes every call, as the call itself."""
    gates = 0
    while gates < len(frames) and _GATE.fullmatch(frames[gates].function):
        gates += 1
    call = None
    if 0 < gates < len(frames):
        call = _GO_CALL.fullmatch(frames[gates].function)
    if call is None:
        return tuple(frames)
    name = call[1].lower()
    return (replace(frames[0], function=name), *frames[1:])


def made_files(status: str | None, paths: Sequence[str], pid: int) -> MadeFiles | None:
    """
    Return the files in which a process may name code that it makes.

    `status` is its /proc/PID/status, `paths` are of files in its memory.
    """
    if status is None:
        return None
    uid = re.search(r"^Uid:\s+\d+\s+(\d+)", status, re.MULTILINE)
    inside = re.search(r"^NSpid:.*?(\d+)$", status, re.MULTILINE)
    if uid is None:
        return None
    number = pid if inside is None else int(inside[1])
    root = Path(f"/proc/{pid}/root")
    names = [f"{root}/tmp/perf-{number}.map"]
    if number == pid:
        names.append(f"/tmp/perf-{pid}.map")
    dumps = [path for path in paths if re.search(r"/jit-\d+\.dump$", path)]
    return MadeFiles(int(uid[1]), names, dumps[:1])
