"""
The callers of a place in a program, from its registers and a copy of its stack.

Nothing is guessed: where the tables do not tell who the caller is, the stack ends, and
says why.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from rtscope.programs.binaries.callsites import (
    called_before,
    calls_by_pointer,
    jumps_on,
)
from rtscope.programs.binaries.expression import Unreadable, evaluate
from rtscope.programs.binaries.frametable import FrameRow, Saved
from rtscope.programs.binaries.image import Image, Symbol
from rtscope.programs.memorymap import Mapping, MemoryMap

# --- registers of a sample ----------------------------------------------------------

# In a sample they stand in the order of the kernel's `perf_regs.h`, as far as
# `agent/watch/perfregs.h` asks for them.

UNUSED = -1
"""Of a sampled register that no unwinding needs."""


@dataclass(frozen=True, slots=True)
class Registers:
    """An architecture: which of its registers is which in a sample and in DWARF."""

    word_bytes: int
    order: tuple[int, ...]
    """DWARF numbers in the order of a sample."""
    pc: int
    """DWARF number for the program counter; one of no register where it has none."""
    sp: int
    link: int | None
    """Holds the return address when a function begins; None: the stack does."""
    first_argument: int
    address_mask: int = (1 << 64) - 1
    """What of a return address is one: the rest may sign it."""
    frame: int | None = None
    """Points to the caller's of its kind, which the return address follows."""


PC = 1000
"""Stands for the program counter where DWARF has no number for it."""

BY_MACHINE: MappingProxyType[str, Registers] = MappingProxyType(
    {
        # AX BX CX DX SI DI BP SP IP FLAGS CS SS R8-R15; System V ABI, figure 3.36
        "x86_64": Registers(
            word_bytes=8,
            order=(
                *(0, 3, 2, 1, 4, 5, 6, 7, 16, UNUSED, UNUSED, UNUSED),
                *range(8, 16),
            ),
            pc=16,
            sp=7,
            link=None,
            first_argument=5,
            frame=6,
        ),
        # of a program of 32 bits, in a sample of the same form
        "i386": Registers(
            word_bytes=4,
            order=(*(0, 3, 1, 2, 6, 7, 5, 4, 8), *[UNUSED] * 11),
            pc=8,
            sp=4,
            link=None,
            first_argument=UNUSED,
            frame=5,
        ),
        # X0-X30, SP, PC; user space has 52 bits of addresses, and a tag on top
        "aarch64": Registers(
            word_bytes=8,
            order=(*range(32), PC),
            pc=PC,
            sp=31,
            link=30,
            first_argument=0,
            address_mask=(1 << 48) - 1,
            frame=29,
        ),
        "armv7l": Registers(
            word_bytes=4,
            order=(*range(15), 15),
            pc=15,
            sp=13,
            link=14,
            first_argument=0,
            address_mask=(1 << 32) - 2,
        ),
        # PC, X1-X31
        "riscv64": Registers(
            word_bytes=8,
            order=(PC, *range(1, 32)),
            pc=PC,
            sp=2,
            link=1,
            first_argument=10,
        ),
    }
)


def registers_in(data: bytes, machine: Registers) -> dict[int, int]:
    """Return the registers of a sample by their DWARF numbers; none if it has none."""
    count = len(data) // 8
    if count != len(machine.order):
        return {}
    values = struct.unpack(f"<{count}Q", data)
    return {
        number: value
        for number, value in zip(machine.order, values, strict=True)
        if number != UNUSED
    }


# --- callers ------------------------------------------------------------------------

MAX_FRAMES = 512

_STARTING = ("__clone", "clone", "clone3", "__clone3")
"""What starts a thread, without a table from there on: it has not moved the stack."""

_START_BYTES = 256
"""More than such a function has until it calls the kernel."""
_WORDS_OF_A_FRAME = 16
"""Of a function without a table, among which its return address is looked for: what an
earlier call has left further away may look like it."""

_OWN_STACK = frozenset(
    f"runtime.{name}" for name in ("mcall", "systemstack", "mstart", "morestack")
)
"""Of Go: what they call has the stack of the scheduler, which begins with them."""

_OUTERMOST = ("_start", "_start_c", "libc_start_main_stage2", *_STARTING)
"""Where a process or a thread begins: assembler, whose table some libraries lack."""

_OF_PYTHON = "py::"
"""How `python3 -X perf` names what it makes for each function."""

_WITH_FRAME_POINTER = ("Builtins_",)
"""Parts of V8 in its own file, which has no table for them."""

ImageOf = Callable[[Mapping], Image | None]
"""Gives the file that a piece of memory shows; None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in a program: the innermost, or where a function was called."""

    address: int
    called: bool
    """It is where a call returns to: the call is before it."""
    image: Image | None
    vaddr: int | None
    """The address in the file's own terms."""
    mapping: Mapping | None

    @property
    def place(self) -> int | None:
        """The file's address of the instruction that was executed."""
        if self.vaddr is None:
            return None
        return self.vaddr - 1 if self.called else self.vaddr


@dataclass(frozen=True, slots=True)
class Stack:
    """The frames from the innermost on; why it ends early, None if it is complete."""

    frames: tuple[Frame, ...]
    ends_early: str | None

    @property
    def complete(self) -> bool:
        """Whether it goes to where the thread began."""
        return self.ends_early is None


def _symbol_of(frame: Frame) -> str:
    if frame.image is None or frame.place is None:
        return ""
    symbol = frame.image.symbol_at(frame.place)
    return symbol.name if symbol else ""


class _End(Exception):
    """There are no more frames; the text says why, None that there is no caller."""

    def __init__(self, why: str | None) -> None:
        super().__init__(why)
        self.why = why


_UNKNOWN = "which is unknown"


class Unwinder:
    """Unwinds stacks of one process."""

    def __init__(
        self,
        machine: Registers,
        maps: MemoryMap,
        image_of: ImageOf,
        *,
        made: Callable[[int], str] = lambda _: "",
    ) -> None:
        """
        Of a process with these maps, on an architecture with these registers.

        `made` names the code at an address that the program made, and named, which is
        for profilers: such code keeps frame pointers.
        """
        self._machine = machine
        self._maps = maps
        self._image_of = image_of
        self._made = made

    def unwind(
        self, registers: dict[int, int], copied: bytes, *, at_entry: bool = False
    ) -> Stack:
        """
        Return the callers; `copied` is the memory from the stack pointer on.

        At entry: the place is the first instruction of a function.
        """
        if self._machine.pc not in registers:
            return Stack((), "the sample has no registers")
        memory = _Memory(registers[self._machine.sp], copied, self._machine.word_bytes)
        frames: list[Frame] = []
        called = False
        try:
            while len(frames) < MAX_FRAMES:
                frame = self.frame(registers[self._machine.pc], called=called)
                frames.append(frame)
                first = at_entry and len(frames) == 1
                registers, called = self._caller(frame, registers, memory, first)
        except _End as end:
            return Stack(tuple(frames), end.why)
        except Unreadable as error:
            return Stack(tuple(frames), str(error))
        return Stack(tuple(frames), f"it has more than {MAX_FRAMES} frames")

    def frame(self, address: int, *, called: bool) -> Frame:
        """Return the place in a file that an address is."""
        mapping = self._maps.at(address - 1 if called else address)
        if mapping is None:
            return Frame(address, called, None, None, None)
        known = mapping.is_file or mapping.is_vdso
        image = self._image_of(mapping) if known else None
        offset = address - mapping.start + mapping.offset
        vaddr = None if image is None else image.vaddr_of(offset)
        return Frame(address, called, image, vaddr, mapping)

    def _caller(
        self,
        frame: Frame,
        registers: dict[int, int],
        memory: "_Memory",
        at_entry: bool,
    ) -> tuple[dict[int, int], bool]:
        name = _symbol_of(frame)
        if frame.called and name.removesuffix(".abi0") in _OWN_STACK:
            raise _End(None)
        row = None
        if frame.image is not None and frame.place is not None:
            row = frame.image.row_at(frame.place)
        if row is not None:
            return self._by_row(row, registers, memory), not row.is_signal
        if at_entry:
            return self._at_entry(registers, memory), True
        if not frame.called and (name in _STARTING or not name):
            caller = self._by_start(frame, registers, memory)
        else:
            caller = self._by_call(frame, registers, memory)
        if caller is not None:
            return caller, True
        if frame.image is None:
            name = self._made(frame.address - frame.called)
        if name.startswith(_OF_PYTHON) and self._machine.link is None:
            return self._by_trampoline(registers, memory), True
        if (name and frame.image is None) or name.startswith(_WITH_FRAME_POINTER):
            return self._by_frame_pointer(frame, registers, memory), True
        raise _End(self._why_unknown(frame))

    def _by_start(
        self, frame: Frame, registers: dict[int, int], memory: "_Memory"
    ) -> dict[int, int] | None:
        """
        Return the caller of a function that starts a thread; None if this is none.

        It has not moved the stack, so the return address is the innermost word: the
        instruction before that called what begins just before the place. A new thread
        has no caller.
        """
        try:
            caller = self._at_entry(registers, memory)
        except (Unreadable, _End):
            return None
        pc = caller[self._machine.pc]
        called = self._called_by(self.frame(pc, called=True))
        near = any(0 <= frame.address - one < _START_BYTES for one in called)
        return caller if near else None

    def _by_call(
        self, frame: Frame, registers: dict[int, int], memory: "_Memory"
    ) -> dict[int, int] | None:
        """
        Return the caller of a function that has a name and no table; None if unknown.

        It is the nearest place to return to before which this function is called. What
        it has saved of other registers is not known.
        """
        machine = self._machine
        if frame.image is None or frame.vaddr is None or frame.place is None:
            return None
        symbol = frame.image.symbol_at(frame.place)
        if symbol is None:
            return None
        begin = frame.address - (frame.vaddr - symbol.vaddr)
        for number in range(_WORDS_OF_A_FRAME):
            at = registers[machine.sp] + number * machine.word_bytes
            try:
                pc = memory.word(at)
            except Unreadable:
                return None
            site = self.frame(pc, called=True)
            if begin in self._called_by(site) or self._leads_to(site, frame, symbol):
                kept = registers if number == 0 else {}
                caller = {**kept, machine.pc: pc, machine.sp: at + machine.word_bytes}
                return self._checked(registers, caller)
        return None

    def _called_by(self, frame: Frame) -> tuple[int, ...]:
        """Return what the call before a place calls, and where that only jumps to."""
        if self._machine.link is not None or frame.image is None or frame.vaddr is None:
            return ()
        moved = frame.address - frame.vaddr
        return tuple(one + moved for one in called_before(frame.image, frame.vaddr))

    def _leads_to(self, site: Frame, frame: Frame, symbol: Symbol) -> bool:
        """Whether the call before a place is, by a pointer or jump, of a function."""
        if site.image is None or site.vaddr is None or frame.image is None:
            return False
        wanted = frame.image, symbol
        if calls_by_pointer(site.image, site.vaddr, wanted):
            return True
        return self._machine.link is None and jumps_on(site.image, site.vaddr, wanted)

    def _why_unknown(self, frame: Frame) -> str | None:
        if frame.mapping is None:
            return f"nothing is at {frame.address:#x}, where a call should return to"
        if frame.image is None:
            name = frame.mapping.path or "memory without a file"
            return f"{name} could not be read"
        name = _symbol_of(frame)
        if name in _OUTERMOST:
            return None
        what = name or f"{frame.address:#x}"
        return f"{frame.image.name} has no unwind table for {what}"

    def _at_entry(self, registers: dict[int, int], memory: "_Memory") -> dict[int, int]:
        """Return the caller's registers by the calling convention."""
        machine, caller = self._machine, dict(registers)
        if machine.link is None:
            caller[machine.pc] = memory.word(registers[machine.sp])
            caller[machine.sp] += machine.word_bytes
        else:
            caller[machine.pc] = registers[machine.link]
        return self._checked(registers, caller)

    def _by_frame_pointer(
        self, frame: Frame, registers: dict[int, int], memory: "_Memory"
    ) -> dict[int, int]:
        """Return the caller's registers; end where the chain leads to no code."""
        machine = self._machine
        pointer = registers.get(-1 if machine.frame is None else machine.frame, 0)
        if machine.frame is None or pointer < registers[machine.sp]:
            raise _End(self._why_unknown(frame))
        word = machine.word_bytes
        caller = dict(registers)
        caller[machine.frame] = memory.word(pointer)
        caller[machine.pc] = memory.word(pointer + word)
        caller[machine.sp] = pointer + 2 * word
        caller = self._checked(registers, caller)
        if self._maps.at(caller[machine.pc] - 1) is None:
            raise _End(self._why_unknown(frame))
        return caller

    def _by_trampoline(
        self, registers: dict[int, int], memory: "_Memory"
    ) -> dict[int, int]:
        """Return what called a function of Python: two words, or a frame pointer."""
        machine, caller = self._machine, dict(registers)
        word, sp = machine.word_bytes, registers[machine.sp]
        if machine.frame is not None and registers.get(machine.frame) == sp:
            caller[machine.frame] = memory.word(sp)
        caller[machine.pc] = memory.word(sp + word)
        caller[machine.sp] = sp + 2 * word
        return self._checked(registers, caller)

    def _by_row(
        self, row: FrameRow, registers: dict[int, int], memory: "_Memory"
    ) -> dict[int, int]:
        machine = self._machine
        if row.cfa_expression is not None:
            cfa = evaluate(row.cfa_expression, registers=registers, read=memory.word)
        elif row.cfa_register in registers:
            cfa = (registers[row.cfa_register] + row.cfa_offset) & ((1 << 64) - 1)
        else:
            raise _End(f"the frame needs register {row.cfa_register}, {_UNKNOWN}")
        caller = dict(registers)
        caller[machine.sp] = cfa
        for number, saved in row.saved.items():
            if saved.kind == "undefined":
                caller.pop(number, None)
            elif saved.kind != "same":
                caller[number] = self._saved(saved, cfa, registers, memory)
        if row.return_column not in caller:
            raise _End(None)
        caller[machine.pc] = caller[row.return_column]
        return self._checked(registers, caller)

    def _saved(
        self, saved: Saved, cfa: int, registers: dict[int, int], memory: "_Memory"
    ) -> int:
        """Return a register of the caller."""
        if saved.kind == "at":
            return memory.word(cfa + saved.value)
        if saved.kind == "is":
            return cfa + saved.value
        if saved.expression is not None:
            value = evaluate(
                saved.expression, registers=registers, read=memory.word, first=cfa
            )
            return memory.word(value) if saved.kind == "at_expression" else value
        if saved.value not in registers:
            raise _End(f"the frame needs register {saved.value}, {_UNKNOWN}")
        return registers[saved.value]

    def _checked(
        self, before: dict[int, int], caller: dict[int, int]
    ) -> dict[int, int]:
        """Return the caller's registers; end where there is none, or no progress."""
        machine = self._machine
        caller[machine.pc] &= machine.address_mask
        if caller[machine.pc] == 0:
            raise _End(None)
        same = before[machine.sp] == caller[machine.sp]
        if same and before[machine.pc] == caller[machine.pc]:
            raise _End("the unwind table goes in a circle")
        return caller


PAGE_BYTES = 4096
"""No copy goes on behind a page that the program has not touched yet."""


class _Memory:
    """The copied part of a stack."""

    def __init__(self, start: int, copied: bytes, word_bytes: int) -> None:
        self._start, self._copied = start, copied
        self._format = "<Q" if word_bytes == 8 else "<I"
        self._word_bytes = word_bytes

    def word(self, address: int) -> int:
        """Return the word at an address; Unreadable if it was not copied."""
        at = address - self._start
        if 0 <= at <= len(self._copied) - self._word_bytes:
            return int(struct.unpack_from(self._format, self._copied, at)[0])
        if at >= 0:
            kib = len(self._copied) // 1024
            why = f"it is deeper than the {kib} KiB that were copied"
            if (self._start + len(self._copied)) % PAGE_BYTES == 0:
                why += ": the next page of the stack is not in memory"
            raise Unreadable(why)
        raise Unreadable("a frame is below the stack pointer")
