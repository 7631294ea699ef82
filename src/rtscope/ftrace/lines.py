"""
Lines of ftrace's text, of `trace`, `trace_pipe` and `trace-cmd report`. Pure.

Two forms, each with variants: time in seconds after the CPU in brackets, and the
latency format, where the CPU stands before the flags, and times may be relative.
"""

import re

from rtscope.ftrace.events import Flag

_FLAGS = rb"[.dDbX?][^\s\d:]{2}[^\s:]{1,6}"
LINE = re.compile(
    rb"^[ \t]*(?P<comm>\S.{0,40}?)-(?P<pid>\d{1,10})[ \t]+(?:\([ \d-]{1,9}\)[ \t]+)?"
    rb"(?:\[(?P<cpu>\d{1,5})\]|(?P<cpu2>\d{1,5})(?=[.dDbX?]))[ \t]*"
    rb"(?:(?P<flags>" + _FLAGS + rb")[ \t]+)?"
    rb"(?:(?P<s>\d{1,10})\.(?P<frac>\d{1,9})|(?P<us>\d{1,12})us[ +!#*@$]*)[ \t]*:[ \t]+"
    rb"(?:(?P<name>[A-Za-z_]\w*):|(?P<timerlat>#\d+[ \t]+context)|(?P<stack><stack)|)",
    re.MULTILINE,
)
LOST = re.compile(
    rb"^[ \t]*CPU:(?P<cpu>\d{1,5}) \[(?:LOST (?P<lost>\d{1,12}) EVENTS|"
    rb"(?:(?P<dropped>\d{1,12}) )?EVENTS DROPPED)\]",
    re.MULTILINE,
)
_RT_FLAGS = 7
"""With need-resched-lazy before, preempt-lazy-depth and migrate-disable after."""
_NEED_RESCHED = b"NnBb"
_HARDIRQ = b"HhZ"
_SOFTIRQ = b"Hs"
_NMI = b"Zz"


_UNITS = tuple(10 ** (9 - digits) for digits in range(10))


def stamp_of(
    seconds: bytes | None, fraction: bytes | None, us: bytes | None
) -> tuple[int, int]:
    """Return the time of a line in ns, and how fine it is."""
    if us is not None:
        return 1000 * int(us), 1000
    digits = fraction or b""
    unit = _UNITS[len(digits)]
    return int(seconds or 0) * 1_000_000_000 + int(digits or 0) * unit, unit


def name_of(name: bytes | None, timerlat: bytes | None, stack: bytes | None) -> str:
    """Return the name of the event of a line, as trace.dat would have it."""
    if name is None:
        if timerlat is not None:
            return "timerlat"
        return "kernel_stack" if stack is not None else "function"
    return "print" if name == b"tracing_mark_write" else name.decode()


def flags_of(text: bytes | None) -> tuple[Flag | None, int | None]:
    """Return flags and preemption depth of the column `d.h2.`; None without it."""
    if text is None or len(text) < 4:
        return None, None
    # PREEMPT_RT before Linux 6.13 has a column for need-resched-lazy of its own.
    at = 3 if len(text) >= _RT_FLAGS else 2
    flags = Flag(0)
    if text[0:1] in (b"d", b"D"):
        flags |= Flag.IRQS_OFF
    if text[1] in _NEED_RESCHED:
        flags |= Flag.NEED_RESCHED
    if text[at] in _HARDIRQ:
        flags |= Flag.HARDIRQ
    if text[at] in _SOFTIRQ:
        flags |= Flag.SOFTIRQ
    if text[at] in _NMI:
        flags |= Flag.NMI
    depth = text[at + 1 : at + 2]
    return flags, int(depth, 16) if depth and depth in b"0123456789abcdef" else 0
