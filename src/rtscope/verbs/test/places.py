"""
Where in a program something was: the stacks of places, unwound and named.

Names come from the files of the board alone, so that they are the same on every
computer. The files are read by another process, with limits.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from statistics import median_low

from rtscope.boards.parts.program import ROOT, Program
from rtscope.boards.recording.programstacks import stacks_of_places
from rtscope.boards.recording.programuses import (
    NO_DEBUG_FILES,
    PAGE_BYTES,
    content_of,
)
from rtscope.present.words import enumeration
from rtscope.programs.binaries.elf import LOAD, Damaged, ElfFile
from rtscope.programs.images import Images
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.naming import NamedFrame, NamedStack, Origin
from rtscope.programs.outside.file import ProgramRecord
from rtscope.programs.outside.model import OutsideCycle, OutsideThread, Place
from rtscope.programs.stackwords import frame_words

MOST_NAMED = 1_000
"""Places of a thread, of each kind: those where most was, and of its worst cycle."""
MOST_CALLED = 20
"""Places of calls of its worst cycle: those that took longest."""
MANY_CALLERS = 3
"""From so many functions a place tells little without the one that called it."""
MOST_SHOWN = 3
"""Places in a sentence."""
_LINES = 2
"""Of one function, in a sentence."""
_FIXED = 2
"""ET_EXEC: a program that is at the addresses of its file."""

Maps = Mapping[int, Sequence[Piece]]


def named_stacks(
    program: Program,
    record: ProgramRecord,
    threads: Sequence[OutsideThread],
    maps: Maps,
) -> dict[int, NamedStack]:
    """
    Return the stacks of the places of threads, by their numbers.

    `maps` has what is where in the memory of each process. A process without is not
    named, but for a program that is always at the same addresses.
    """
    found: dict[int, NamedStack] = {}
    for process in dict.fromkeys(one.process for one in threads):
        pieces = pieces_of(program, maps, process)
        own = [one for one in threads if one.process == process]
        wanted = dict(part for one in own for part in _wanted(one))
        if not (pieces and any(0 < one <= len(record.stacks) for one in wanted)):
            continue
        with Images(content_of(program), debug_files=NO_DEBUG_FILES, find=()) as images:
            images.read(pieces)
            named = stacks_of_places(record, wanted, pieces, images)
        found |= {
            number: _without_entry(stack) if wanted[number] else stack
            for number, stack in named.stacks.items()
        }
    return found


def pieces_of(program: Program, maps: Maps, process: int) -> Sequence[Piece]:
    """Return what is where in the memory of a process; nothing if nobody knows."""
    return maps.get(process) or _pieces_of(program)


def _wanted(thread: OutsideThread) -> Iterator[tuple[int, bool]]:
    """Yield numbers of places, and whether each is where a function begins."""
    worst = (thread.worst,)
    for cycles, most in ((thread.cycles, MOST_NAMED), (worst, None)):
        for is_entry, places in (
            (True, (one for cycle in cycles for one in cycle.allocations)),
            (False, (one for cycle in cycles for one in cycle.faulted)),
            (False, (wait.at for cycle in cycles for wait in cycle.waits)),
        ):
            counts = Counter(one.number for one in places)
            yield from ((number, is_entry) for number, _ in counts.most_common(most))
    called = sorted(thread.worst.called, key=lambda one: -thread.worst.called[one])
    yield from ((one.number, False) for one in called[:MOST_CALLED])


def _without_entry(stack: NamedStack) -> NamedStack:
    """Return the callers: the function itself is known."""
    return NamedStack(stack.frames[1:], stack.ends_early)


def _pieces_of(program: Program) -> Sequence[Piece]:
    """Return the memory of a program at fixed addresses; nothing of another."""
    path = f"/{ROOT}{program.command[0]}"
    try:
        elf = ElfFile(program.image(path) or b"")
        segments = elf.segments if elf.type == _FIXED else ()
    except Damaged:
        return ()
    return [
        Piece(
            one.vaddr - one.vaddr % PAGE_BYTES,
            one.vaddr + one.file_bytes,
            "r-xp",
            one.offset - one.offset % PAGE_BYTES,
            *("", 1, path),
        )
        for one in segments
        if one.type == LOAD and not one.writable
    ]


def done_more(
    thread: OutsideThread, cycle: OutsideCycle, *, waits: bool = True
) -> dict[Place, int]:
    """
    Return what a cycle did more often than the middle one, and how much more often.

    With `waits` also where it waited twice as long, and for a tenth of its response:
    with how often it waited there.
    """
    done = _done_in(cycle, waits=waits)
    every = [_done_in(one, waits=waits) for one in thread.cycles] if done else []
    usual = {place: median_low(one[place] for one in every) for place in done}
    more = {
        place: times - usual[place]
        for place, times in done.items()
        if times > usual[place]
    }
    if waits:
        for place, ns in _waited_in(cycle).items():
            usual_ns = median_low(_waited_in(one)[place] for one in thread.cycles)
            if ns > 2 * usual_ns and 10 * ns >= cycle.response_ns:
                more.setdefault(place, done[place])
    return more


def _waited_in(cycle: OutsideCycle) -> Counter[Place]:
    """Return for how many ns a cycle waited at each place."""
    waited: Counter[Place] = Counter()
    for one in cycle.waits:
        waited[one.at] += one.lasted_ns
    return waited


def _done_in(cycle: OutsideCycle, *, waits: bool) -> Counter[Place]:
    places = Counter([*cycle.allocations, *cycle.faulted])
    return places + Counter(one.at for one in cycle.waits if waits)


# --- in words -------------------------------------------------------------------------


def frame_of(stack: NamedStack | None) -> NamedFrame | None:
    """
    Return the frame that says where it was: the program's own, with its line.

    None: nothing is known. In a static program the functions of its C library are its
    own too, but have no line; nor has what stands for it where none is its own.
    """
    if stack is None:
        return None
    own = [one for one in stack.frames if one.origin is Origin.PROGRAM]
    with_line = [one for one in own if one.line]
    others = [one for one in stack.frames if one.function] or list(stack.frames)
    without_line = [replace(one, file="", line=0) for one in others[:1]]
    return next(iter([*with_line, *own, *without_line]), None)


def _own(stack: NamedStack | None) -> list[NamedFrame]:
    """Return the frames of the program's own whose function and line are known."""
    frames = () if stack is None else stack.frames
    own = [one for one in frames if one.origin is Origin.PROGRAM]
    return [one for one in own if one.function and one.line]


def _serving(stacks: Iterable[NamedStack]) -> frozenset[str]:
    """Return the functions to which many others of the program lead."""
    callers: dict[str, set[str]] = {}
    for stack in stacks:
        names = [one.function for one in _own(stack)[:2]]
        if len(set(names)) > 1:
            callers.setdefault(names[0], set()).add(names[1])
    return frozenset(one for one, of in callers.items() if len(of) >= MANY_CALLERS)


def usual_of(thread: OutsideThread, stacks: Mapping[int, NamedStack]) -> dict[str, int]:
    """
    Return what a thread did in its middle cycle, and how often, by functions.

    The names have no lines, so that they are the same after a change elsewhere.
    """
    every: list[Counter[str]] = []
    for cycle in thread.cycles:
        done: Counter[str] = Counter()
        for place, times in _done_in(cycle, waits=True).items():
            done[_functions(place, stacks)] += times
        every.append(done)
    names = sorted({name for one in every for name in one})
    usual = {name: median_low(one[name] for one in every) for name in names}
    return {name: times for name, times in usual.items() if times}


def _functions(place: Place, stacks: Mapping[int, NamedStack]) -> str:
    """Return what was where, as `malloc write_log step`; `malloc` if nobody knows."""
    own = _own(stacks.get(place.number))[:2]
    return " ".join([place.what, *(one.function for one in own)])


def usually_more_words(
    thread: OutsideThread, before: Mapping[str, int], stacks: Mapping[int, NamedStack]
) -> str:
    """
    Return the end of a sentence with what most cycles do more often than before.

    Nothing of which some was at an unknown place before: it may have been this one.
    """
    more = {
        name: (before.get(name, 0), times)
        for name, times in usual_of(thread, stacks).items()
        if times > before.get(name, 0) and not before.get(name.partition(" ")[0])
    }
    done = (_done_in(one, waits=True) for one in thread.cycles)
    lines: dict[str, dict[str, None]] = {name: {} for name in more}
    serving = _serving(stacks.values()) if more else frozenset()
    for place in dict.fromkeys(place for one in done for place in one):
        if (name := _functions(place, stacks)) in lines and " " in name:
            lines[name][_place_words(place, stacks, serving)] = None
    said = [
        f"{' and '.join(list(of)[:_LINES])} ({more[name][0]:,} then, "
        f"{more[name][1]:,} now)"
        for name, of in lines.items()
        if of
    ]
    left = len(said) - MOST_SHOWN
    said = [*said[:MOST_SHOWN], *([f"{left:,} elsewhere"] if left > 0 else ())]
    return f"; more than before in most cycles: {enumeration(said)}" if said else ""


def where(stack: NamedStack | None) -> str:
    """Return the place in words: `write_log() log.c:41`; empty if it is not known."""
    frame = frame_of(stack)
    if frame is None:
        return ""
    name, _, source = frame_words(frame).partition(" ")
    if not frame.function or "(" in frame.function:
        return frame_words(frame)
    return f"{name}() {source}".rstrip()


def _place_words(
    place: Place, stacks: Mapping[int, NamedStack], serving: Set[str]
) -> str:
    stack = stacks.get(place.number)
    at, own = where(stack), _own(stack)[:2]
    if len(own) > 1 and own[0].function in serving:
        at = f"{at} for {where(NamedStack(tuple(own[1:]), None))}"
    return f"{place.what}{at and f' in {at}'}"


def places_words(
    places: Mapping[Place, int], stacks: Mapping[int, NamedStack]
) -> list[str]:
    """
    Return places in words, with how often each was: most often first.

    A function of the program that many call, as its own allocator, is named with who
    called it.
    """
    counts: Counter[str] = Counter()
    serving = _serving(stacks.values()) if places else frozenset()
    for place, times in places.items():
        counts[_place_words(place, stacks, serving)] += times
    rows = counts.most_common()
    said = [
        f"{words} ({'once' if times == 1 else f'{times:,} times'})"
        for words, times in rows[:MOST_SHOWN]
    ]
    left = sum(times for _, times in rows[MOST_SHOWN:])
    return [*said, f"{left:,} elsewhere"] if left else said


def more_words(more: Mapping[Place, int], stacks: Mapping[int, NamedStack]) -> str:
    """Return the end of a sentence with what `done_more` found; empty for nothing."""
    said = enumeration(places_words(more, stacks))
    return said and f"; more than in most cycles: {said}"
