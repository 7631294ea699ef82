"""The stacks of events, by thread and kind: unwound and named by another process."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.contract import WatchBegin, WatchedThread, WatchSample
from rtscope.host.process import Progress, Step
from rtscope.programs.binaries.unwind import BY_MACHINE, Registers, registers_in
from rtscope.programs.images import Images, MadeFiles, Sample, Stacks
from rtscope.programs.memorymap import MemoryMap
from rtscope.programs.naming import BareFile, NamedFrame, NamedStack
from rtscope.programs.packages import packages_of
from rtscope.programs.probes import PROBE, is_allocation, plain_name
from rtscope.programs.stackwords import stack_words
from rtscope.verbs.app.debuginfod import Debuginfod
from rtscope.verbs.app.executed import Programs
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
    programs: Programs,
    threads: Sequence[WatchedThread],
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
    copied: dict[int, list[tuple[int, Sample]]] = {}
    numbers = [_program_of(one, programs, machine) for one in samples]
    for number, one in enumerate(samples):
        sample = (one.regs, one.stack, one.event in probed)
        copied.setdefault(numbers[number], []).append((number, sample))

    def named() -> Stacks:
        parts = []
        for program, some in copied.items():
            pieces = programs.maps[program].mappings
            last = program == len(programs.lines)
            known = images.stacks(
                pieces,
                [sample for _, sample in some],
                arch=begin.arch,
                made=made if last else None,
            )
            parts.append(([number for number, _ in some], known))
        return _together(parts)

    count = len(samples)
    naming.progress(Step(f"naming {count} stacks", 0, count, "stacks"))
    stacks = named()
    server = naming.debuginfod
    if server and stacks.bare and server.fetch(stacks.bare.values(), naming.progress):
        images.debug_files += (server.directory,)
        stacks = named()
    naming.progress(Step("naming stacks", count, count, "stacks"))
    packages = naming.packages(list(stacks.bare)) if stacks.bare else {}
    bare = {
        path: BareFile(build_id, packages.get(path, ""))
        for path, build_id in stacks.bare.items()
    }
    return EventStacks(
        _by_event(samples, numbers, stacks.named, programs, threads, machine),
        stacks.not_named,
        bare,
    )


def _program_of(sample: WatchSample, programs: Programs, machine: Registers) -> int:
    """Return which program a stack is of: the old one's where the kernel still was in
    the call that began the new one."""
    number = programs.number_at(sample.t_ns)
    if number:
        at = registers_in(base64.b64decode(sample.regs), machine).get(machine.pc, 0)
        here, before = programs.maps[number], programs.maps[number - 1]
        return number - 1 if here.at(at) is None and before.at(at) else number
    return number


def _together(parts: Sequence[tuple[Sequence[int], Stacks]]) -> Stacks:
    """Put the stacks of several programs together, in the order of their numbers."""
    if len(parts) == 1:
        return parts[0][1]
    named = {
        number: one
        for numbers, part in parts
        for number, one in zip(numbers, part.named, strict=True)
    }
    return Stacks(
        [named[number] for number in sorted(named)],
        {path: why for _, part in parts for path, why in part.not_named.items()},
        {path: one for _, part in parts for path, one in part.bare.items()},
    )


_Places = tuple[int, tuple[tuple[int, bool], ...]]
"""Of a program, by its number."""

_Same = tuple[_Places, str, int, bool, int | None]
"""Places, call, its key, whether that is in the thread's own stack, and since when the
thread was watched."""


def _by_event(
    samples: Sequence[WatchSample],
    numbers: Sequence[int],
    named: Sequence[NamedStack],
    programs: Programs,
    threads: Sequence[WatchedThread],
    machine: Registers,
) -> Mapping[tuple[int, str], tuple[EventStack, ...]]:
    """Put those together that go through the same places, for the same call."""
    groups: dict[tuple[int, str], dict[_Same, list[WatchSample]]] = {}
    first: dict[_Places, NamedStack] = {}
    for sample, number, stack in zip(samples, numbers, named, strict=True):
        frames = tuple((one.address, one.inlined) for one in stack.frames)
        places = (number, frames)
        first.setdefault(places, stack)
        registers = registers_in(base64.b64decode(sample.regs), machine)
        key = int(sample.key, 16)
        maps = programs.maps[number]
        own = same_piece(maps, key, registers.get(machine.sp))
        since = _since(threads, sample) if programs.lines else None
        same = groups.setdefault((sample.tid, sample.event), {})
        same.setdefault((places, sample.call, key, own, since), []).append(sample)
    return {
        event: tuple(
            EventStack(
                of_event(first[places], event[1], call),
                times=len(same),
                address=int(same[0].address, 16),
                call=call,
                key=key,
                own_memory=own,
                since_ns=since,
            )
            for (places, call, key, own, since), same in sorted(
                stacks.items(), key=lambda one: -len(one[1])
            )
        )
        for event, stacks in groups.items()
    }


def _since(threads: Sequence[WatchedThread], sample: WatchSample) -> int | None:
    """Return since when its thread was watched as the one that it was then."""
    alike = [one.from_ns for one in threads if one.tid == sample.tid]
    return max(
        (one for one in alike if one <= sample.t_ns), default=min(alike, default=None)
    )


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
