"""Where a program crashed, by what the kernels of the boards log."""

import pytest

from rtscope.boards.parts.program import Program
from rtscope.boards.recording.crash import crash_place
from rtscope.host.units import NS_PER_S

PROGRAM = Program(("/bin/loop",), {}, ())
X86 = (
    "<6>[    3.098093] loop[168]: segfault at 0 ip 00005555555552e1 sp 00007fffffffdbf8"
    " error 6 in loop[12e1,555555555000+1000] likely on CPU 0 (core 0, socket 0)\n"
    "<6>[    3.098129] Code: b8 d0 07 00 00\n"
)
DIVIDED = (
    "<6>[    3.200000] traps: loop[168] trap divide error ip:401136 sp:7fffffffdbf8 "
    "error:0 in loop[1136,401000+1000]\n"
)
RISCV = (
    "<6>[    3.100000] worker[71]: unhandled signal 11 code 0x1 at 0x0000000000000000 "
    "in loop[2d0,10000+70000]\n"
    "<4>[    3.100100] CPU: 2 UID: 0 PID: 70 Comm: loop Not tainted 6.12.117 #1\n"
    "<4>[    3.100200] epc : 00000000000102d0 ra : 0000000000010300 sp : 00000000\n"
)


def place(log: str, *, arch: str = "x86_64", from_s: float = 3, to_s: float = 4) -> str:
    return crash_place(
        PROGRAM,
        log,
        arch=arch,
        from_ns=int(from_s * NS_PER_S),
        to_ns=int(to_s * NS_PER_S),
    )


@pytest.mark.parametrize(
    ("log", "arch", "expected"),
    [
        (X86, "x86_64", "loop+0x12e1"),
        (DIVIDED, "x86_64", "loop+0x1136"),
        (X86 + DIVIDED, "x86_64", "loop+0x1136"),
        (RISCV, "riscv64", "loop+0x2d0"),
    ],
)
def test_the_place_is_that_in_the_file(log: str, arch: str, expected: str) -> None:
    assert place(log, arch=arch) == expected


@pytest.mark.parametrize(
    "log",
    [
        "",
        "<6>[    3.1] loop[168]: segfault at 0 ip 0000000000000000 error 14\n",
        "<6>[    3.1] loop[1]: segfault at 0 ip 12e1 sp 1 error 6 in loop[1000+1000]\n",
    ],
)
def test_without_a_place_in_a_file_nothing_is_said(log: str) -> None:
    assert place(log) == ""


def test_a_crash_of_another_start_is_not_told() -> None:
    assert place(X86, from_s=3.2) == ""
    assert place(X86, from_s=2, to_s=3) == ""
    assert place(X86, from_s=3.1, to_s=3.2) == "loop+0x12e1"
