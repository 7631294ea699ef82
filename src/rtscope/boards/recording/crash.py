"""Where a program on a board crashed, from the kernel's log."""

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import PurePosixPath
from struct import pack

from rtscope.boards.parts.program import Program
from rtscope.boards.recording.programuses import NO_DEBUG_FILES, content_of
from rtscope.host.units import NS_PER_S
from rtscope.programs.binaries.unwind import BY_MACHINE
from rtscope.programs.images import Images
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.stackwords import frame_words

ABOUT_NS = NS_PER_S // 50

_STAMP = re.compile(r"(?:<\d+>)?\[ *(\d+\.\d+)\]")
_IN = (
    r" in (?P<file>\S+?)"
    r"\[(?P<at>[0-9a-f]+),(?P<start>[0-9a-f]+)\+(?P<size>[0-9a-f]+)\]"
)
"""A file, the place in it, and where which piece of it is in memory."""

_FORMS = (
    # x86: "segfault at 0 ip 0000…", "trap divide error ip:401136"
    re.compile(rf"\bip:? ?(?P<ip>[0-9a-f]+) .*?{_IN}"),
    # RISC-V: "unhandled signal 11 code 0x1 at 0x0 in …", then the registers
    re.compile(rf"unhandled signal .*?{_IN}(?:\n.*)*?\bepc : (?P<ip>[0-9a-f]+)"),
)


def crash_place(
    program: Program, kernel_log: str, *, arch: str, from_ns: int, to_ns: int
) -> str:
    """
    Return function and line of the last crash in a time of a program's board.

    Empty: the kernel told of none, or not in which place of a file. Of a library of the
    system the kernel knows no caller. Both times are virtual, since the boot.
    """
    kernel_log = "".join(_lines_of(kernel_log, from_ns, to_ns))
    for form in _FORMS:
        for last in list(form.finditer(kernel_log))[-1:]:
            at, start, size, ip = (
                int(last[key], 16) for key in ("at", "start", "size", "ip")
            )
            piece = Piece(
                start=start,
                end=start + size,
                permissions="r-xp",
                offset=at - (ip - start),
                device="",
                inode=1,
                path=_path(program, last["file"]),
            )
            return _named(program, piece, ip, arch) or f"{last['file']}+{at:#x}"
    return ""


def _lines_of(kernel_log: str, from_ns: int, to_ns: int) -> Iterator[str]:
    """Yield the lines of a time, which is known to a hundredth of a second."""
    for line in kernel_log.splitlines(keepends=True):
        stamp = _STAMP.match(line)
        at_ns = float(stamp[1]) * NS_PER_S if stamp else from_ns
        if from_ns - ABOUT_NS <= at_ns <= to_ns + ABOUT_NS:
            yield line


def _path(program: Program, name: str) -> str:
    """Return where the board has the file of a name; the command's own first."""
    paths = (f"/{path}" for path in program.files)
    found = [one for one in paths if PurePosixPath(one).name == name]
    own = [one for one in found if one.endswith(program.command[0])]
    return (own or found or [name])[0]


def _named(program: Program, piece: Piece, ip: int, arch: str) -> str:
    machine = BY_MACHINE[arch]
    registers = [0] * len(machine.order)
    registers[machine.order.index(machine.pc)] = ip
    sample = b64encode(pack(f"<{len(registers)}Q", *registers)).decode(), "", False
    with Images(content_of(program), debug_files=NO_DEBUG_FILES, find=()) as images:
        images.read([piece])
        (stack,) = images.stacks([piece], [sample], arch=arch).named
    frame = next(iter(stack.frames), None)
    return frame_words(frame) if frame and frame.function else ""
