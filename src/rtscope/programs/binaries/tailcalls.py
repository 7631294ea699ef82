"""
The functions that a stack lacks, since they ended with a jump to the next one. Pure.

A function whose last deed is a call has no frame while that is made (`-O2`): its caller
calls one function, and another one runs. If the code of the called one has a single way
to jump there, that is where the program was. Of x86-64 alone.
"""

from collections.abc import Iterator, Sequence

from rtscope.programs.binaries.callsites import called_before, sole_way
from rtscope.programs.binaries.image import Symbol
from rtscope.programs.binaries.unwind import Frame


class TailCalls:
    """Finds them; remembers what it has found."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int], tuple[int, ...]] = {}

    def with_left_out(self, frames: Sequence[Frame]) -> tuple[Frame, ...]:
        """Return the frames with those of functions that jumped to the next one."""
        made: list[Frame] = []
        for number, frame in enumerate(frames):
            if frame.called and number:
                made += self._between(frames[number - 1], frame)
            made.append(frame)
        return tuple(made)

    def _between(self, below: Frame, caller: Frame) -> Iterator[Frame]:
        """Yield what the caller called that then jumped to the one below."""
        image = caller.image
        if image is None or caller.vaddr is None or image.elf.machine != "EM_X86_64":
            return
        if below.image is None or below.place is None:
            return
        runs = below.image.symbol_at(below.place)
        target = next(called_before(image, caller.vaddr), None)
        called = None if target is None else image.symbol_at(target)
        if runs is None or called is None or called.vaddr != target:
            return
        if _is_of(called, runs, same_file=below.image is image):
            return
        key = id(image), called.vaddr, id(below.image), runs.vaddr
        if key not in self._known:
            way = sole_way(image, called, (below.image, runs))
            self._known[key] = way[::-1]
        moved = caller.address - caller.vaddr
        for at in self._known[key]:
            yield Frame(
                at + moved, called=False, image=image, vaddr=at, mapping=caller.mapping
            )


def _is_of(called: Symbol, runs: Symbol, *, same_file: bool) -> bool:
    """Whether the function that runs is the called one, or a part of it."""
    if not same_file:
        return False
    return called.vaddr == runs.vaddr or runs.name.startswith(f"{called.name}.")
