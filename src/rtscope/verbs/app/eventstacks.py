"""The stacks of events, by thread and kind: unwound and named by another process."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.contract import WatchBegin, WatchSample
from rtscope.host.process import Progress, Step
from rtscope.programs.binaries.unwind import BY_MACHINE, Registers, registers_in
from rtscope.programs.images import Images, MadeFiles, Sample, Stacks
from rtscope.programs.memorymap import MemoryMap
from rtscope.programs.naming import BareFile, NamedFrame, NamedStack
from rtscope.programs.packages import packages_of
from rtscope.programs.probes import PROBE, is_allocation, plain_name
from rtscope.programs.stackwords import stack_words
from rtscope.verbs.app.debuginfod import Debuginfod
from rtscope.verbs.app.model import EventStack


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
    machine = BY_MACHINE.get(begin.arch)
    if machine is None or not samples:
        return EventStacks({}, {}, {})
    probed = {
        e.name
        for e in begin.events
        if is_allocation(e.name) or e.name.startswith(PROBE)
    }
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
    return EventStacks(
        _by_event(samples, stacks.named, maps, machine), stacks.not_named, bare
    )


_Same = tuple[tuple[tuple[int, bool], ...], str, int, bool]
"""Places, call, its key, and whether that is in the thread's own stack."""


def _by_event(
    samples: Sequence[WatchSample],
    named: Sequence[NamedStack],
    maps: MemoryMap,
    machine: Registers,
) -> Mapping[tuple[int, str], tuple[EventStack, ...]]:
    """Put those together that go through the same places, for the same call."""
    groups: dict[tuple[int, str], dict[_Same, list[WatchSample]]] = {}
    first: dict[tuple[tuple[int, bool], ...], NamedStack] = {}
    for sample, stack in zip(samples, named, strict=True):
        places = tuple((one.address, one.inlined) for one in stack.frames)
        first.setdefault(places, stack)
        registers = registers_in(base64.b64decode(sample.regs), machine)
        key = int(sample.key, 16)
        own = same_piece(maps, key, registers.get(machine.sp))
        same = groups.setdefault((sample.tid, sample.event), {})
        same.setdefault((places, sample.call, key, own), []).append(sample)
    return {
        event: tuple(
            EventStack(
                of_event(first[places], event[1], call),
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
        for event, stacks in groups.items()
    }


def told_apart(stacks: Sequence[EventStack]) -> tuple[EventStack, ...]:
    """Put those together that read the same, in the order of the first of each."""
    same: dict[str, EventStack] = {}
    for one in stacks:
        words = stack_words(one.stack)
        known = same.get(words)
        same[words] = replace(known, times=known.times + one.times) if known else one
    return tuple(same.values())


def same_piece(maps: MemoryMap, word: int, stack_pointer: int | None) -> bool:
    """Whether a word is in the memory that the stack is in."""
    piece = maps.at(word) if word and stack_pointer is not None else None
    return piece is not None and piece is maps.at(stack_pointer or 0)


def of_event(named: NamedStack, event: str, call: str) -> NamedStack:
    """Give a probed function the name that it is called by, and a call its own."""
    if is_allocation(event) and named.frames:
        first = replace(named.frames[0], function=plain_name(event), file="", line=0)
        inner = [frame for frame in named.frames if not frame.inlined]
        rest = named.frames[named.frames.index(inner[0]) + 1 :] if inner else ()
        return replace(named, frames=(first, *rest))
    return replace(named, frames=with_call(named.frames, call)) if call else named


_GATE = re.compile(r"(?:.*[./])?(?:Raw|raw)?[Ss]yscall[0-9]?(?:NoError|\.abi0)?")
"""A function through which a language makes each of its calls."""


def with_call(frames: Sequence[NamedFrame], call: str) -> tuple[NamedFrame, ...]:
    """Name a gate through which a call was made as that call."""
    if not frames or not _GATE.fullmatch(frames[0].function):
        return tuple(frames)
    return (replace(frames[0], function=call), *frames[1:])


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
