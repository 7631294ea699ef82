"""The stacks of the places in the record of a program, unwound and named."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import pack

from rtscope.programs.binaries.unwind import BY_MACHINE
from rtscope.programs.images import Images, Sample, Stacks
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.naming import NamedStack
from rtscope.programs.outside.file import ProgramRecord, Stack

NOTHING = Stacks((), {}, {})


@dataclass(frozen=True, slots=True)
class PlaceStacks:
    """The stacks of places, and what could not be named."""

    stacks: Mapping[int, NamedStack]
    """By the numbers of the places."""
    about: Stacks


def stacks_of_places(
    record: ProgramRecord,
    wanted: Mapping[int, bool],
    pieces: Sequence[Piece],
    images: Images,
) -> PlaceStacks:
    """
    Return the stacks of places of a process with these pieces of memory.

    `wanted` has their numbers, and whether each is where a function begins; `images`
    has read the files in the pieces.
    """
    known = [one for one in wanted if 0 < one <= len(record.stacks)]
    if not known:
        return PlaceStacks({}, NOTHING)
    samples = [sample_of(record.stacks[one - 1], at_entry=wanted[one]) for one in known]
    about = images.stacks(pieces, samples, arch=record.arch)
    return PlaceStacks(dict(zip(known, about.named, strict=True)), about)


def sample_of(stack: Stack, *, at_entry: bool) -> Sample:
    """Return a stack as `Images` takes it."""
    words = pack(f"<{len(stack.words)}Q", *stack.words)
    return b64encode(words).decode(), b64encode(stack.content).decode(), at_entry


def stack_pointer(stack: Stack, arch: str) -> int | None:
    """Return the stack pointer of a thread there; None: its registers are not kept."""
    machine = BY_MACHINE.get(arch)
    if machine is None:
        return None
    at = machine.order.index(machine.sp)
    return stack.words[at] if at < len(stack.words) else None
