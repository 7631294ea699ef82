"""
From executed blocks to calls: the functions of a CPU, each with its callers. Pure.

A path has no calls in it, only addresses of blocks. A block at the begin of a function
is a call; one in its middle is a return to it, if it is among the callers. A jump to
the begin of another function (a tail call) looks like a call whose caller never comes
back; the next return pops both.

The role of a function follows from its name, of Linux 6.1 to 7.x on x86-64, arm64 and
riscv64 (`roles.toml`). Functions without a role are named too; the parts of a wake-up
are found by those with one. A run belongs to the innermost of its callers that has one:
an interrupt that preempts calls the scheduler from inside, and from there on it is the
scheduler's time.
"""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache, lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from rtscope.record.instructions.section import CpuBlocks
from rtscope.record.instructions.symbols import KERNEL_HALF, USER, SymbolTable

# GCC's clones of a function: the name ends at the dot; its module follows.
_CLONE = re.compile(r"\.(?:isra|constprop|part|cold|llvm)\b[^\s\[]*")
# x86: jumps that guard against speculation, and the last steps of an interrupt's exit.
_STEPS_BETWEEN = (
    *("__x86_indirect_", "__x86_return_thunk", "its_return_thunk", "srso_"),
    *("retbleed_", "entry_untrain_ret", "early_xen_iret_patch"),
    *("native_irq_return_iret", "common_interrupt_return"),
)
FIRMWARE = "(firmware)"
_ENTERED_WITHIN = frozenset({FIRMWARE, "vectors"})
"""Functions of which a CPU enters any part by itself: arm64's table of vectors."""
NAMELESS = "(no symbol)"
# Where QEMU's virt machine for RISC-V has OpenSBI; the kernel begins at 2 MiB.
_RISCV_FIRMWARE = (np.uint64(0x8000_0000), np.uint64(0x8020_0000))
MAX_DEPTH = 256
# Where the kernel lets a new thread begin: no call, though at the begin of a function.
_FIRST_OF_A_THREAD = "ret_from_"


class Role(Enum):
    """What a function is, of the few that matter here."""

    # Millions of runs ask for the roles they are within: Enum's own is in Python.
    __hash__ = object.__hash__

    INTERRUPT = auto()
    """Entry of a hardware interrupt."""
    TRAP = auto()
    """Entry of an interrupt, a fault or a system call: its callees show which."""
    SOFTIRQ = auto()
    SCHEDULE = auto()
    PREEMPT = auto()
    """Calls the scheduler because another thread is to run."""
    SWITCH = auto()
    IDLE = auto()
    TIMER = auto()
    """Runs the timers that expire in hard interrupt context."""
    TICK = auto()
    """Runs the timers from the tick, where high-resolution timers are off."""
    SOFT_TIMER = auto()
    """Runs the others: those of threads that are not real-time, on PREEMPT_RT."""
    UNTHROTTLE = auto()
    """Gives the real-time threads of a CPU their time for the next period."""
    ENQUEUE = auto()
    """Puts a real-time thread among those that want to run."""
    ENQUEUE_FAIR = auto()
    """The same for a thread that is not real-time."""
    RESCHEDULE = auto()
    """Says that the running thread has to give way."""
    FAIR_SERVER = auto()
    """Chooses an ordinary thread before all real-time ones, since Linux 6.8."""
    PICK_REALTIME = auto()
    """Chooses among the real-time threads."""
    PICK_FAIR = auto()
    """The same among those that are not real-time."""
    WAKE = auto()
    """A sleeping thread's timer has expired."""
    SLEEP = auto()
    """Lets a thread sleep until a timer expires."""
    OVERDUE = auto()
    """Has a timer expire at once that was due when it was armed."""
    LOCK = auto()
    FAULT = auto()
    SYSCALL = auto()
    READ_CLOCK = auto()
    """The system call by which a program reads a clock."""
    DISPATCH = auto()
    """Leads from the entry of an interrupt to its handler, and back."""
    OTHER = auto()


@lru_cache(maxsize=1 << 16)
def plain(name: str) -> str:
    """Return a function's name without what the compiler added."""
    return _CLONE.sub("", name)


@lru_cache(maxsize=1 << 16)
def role_of(name: str) -> Role:
    """Return what a function is."""
    word = plain(name)
    known = _roles().get(word)
    if known is not None:
        return known
    if word.startswith("asm_sysvec_"):
        return Role.INTERRUPT
    if word.startswith(("sysvec_", "__sysvec_")):
        return Role.DISPATCH
    return Role.OTHER


@cache
def _roles() -> Mapping[str, Role]:
    """Return the functions of `roles.toml` with their roles."""
    here = resources.files("rtscope.explain.instructions")
    table = tomllib.loads(here.joinpath("roles.toml").read_text("utf-8"))
    return {name: Role[role] for role in table for name in table[role].split()}


@lru_cache(maxsize=1 << 16)
def is_between(name: str) -> bool:
    """Tell whether a name is of a step from one function to another, and of none."""
    return name.startswith(_STEPS_BETWEEN)


_NOTHING = frozenset[Role]()
_INNERMOST = frozenset(
    {Role.INTERRUPT, Role.SOFTIRQ, Role.SCHEDULE, Role.PREEMPT, Role.SWITCH}
)
_SCHEDULING = frozenset({Role.SCHEDULE, Role.PREEMPT, Role.SWITCH})


@dataclass(slots=True, eq=False)
class Frame:
    """A call that has not returned yet; not frozen, as millions are made."""

    name: str
    caller: "Frame | None"
    depth: int
    entered: bool = True
    """Its begin was recorded, so what led to it is known: a call, or a jump."""
    role: Role = field(init=False)
    within: frozenset[Role] = field(init=False)
    """The roles of this call and of all its callers."""

    def __post_init__(self) -> None:
        """Take the roles, once for all runs of the call."""
        self.role = role = role_of(self.name)
        above = _NOTHING if self.caller is None else self.caller.within
        self.within = above if role in above else above | {role}

    def chain(self) -> Iterator["Frame"]:
        """Yield this frame and its callers, innermost first."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.caller


@dataclass(slots=True, eq=False)
class Run:
    """
    What a CPU executed in one function, without a call or return between.

    Not frozen, as millions are made.
    """

    frame: Frame
    begin_ns: int
    """Virtual time of this CPU."""
    end_ns: int
    """Where the next run of this CPU begins: it may have slept before that."""
    executed_ns: int
    """What it executed of this time."""


def begun(runs: Sequence[Run], before_ns: int) -> int:
    """Return how many runs of a CPU began before a time."""
    return bisect_left(runs, before_ns, key=lambda run: run.begin_ns)


def runs_of(blocks: CpuBlocks, symbols: SymbolTable, *, arch: str) -> list[Run]:
    """Return what one CPU did in a section, in order."""
    at_ns, names, starts, own_ns = _stretches(blocks, symbols, arch=arch)
    frame = _callers_of_first(names, starts)
    frames: list[Frame] = []
    for name, is_start in zip(names, starts, strict=True):
        frame = _entered(frame, name, is_start=is_start)
        frames.append(frame)
    ends_ns = [*at_ns[1:], max([blocks.last_ns, *at_ns[-1:]])]
    return [*map(Run, frames, at_ns, ends_ns, own_ns)]


def _callers_of_first(names: Sequence[str], starts: Sequence[bool]) -> Frame | None:
    """
    Return the first function with its callers, as far as it returned to them.

    They were called before the path begins, and so are known from their ends only.
    Nothing of it holds behind the first switch to another thread.
    """
    known: list[str] = []
    open_calls: list[str] = []
    for name, is_start in zip(names, starts, strict=True):
        if open_calls and role_of(open_calls[-1]) is Role.SWITCH:
            break
        if open_calls and name in _ENTERED_WITHIN:
            is_start = open_calls[-1] != name
        if is_start:
            if len(open_calls) == MAX_DEPTH:
                open_calls.clear()
            open_calls.append(name)
            continue
        while open_calls and open_calls[-1] != name:
            open_calls.pop()
        if not open_calls:
            known.append(name)
            open_calls.append(name)
    stack: Frame | None = None
    for name in reversed(known[:MAX_DEPTH]):
        depth = 1 if stack is None else 1 + stack.depth
        stack = Frame(name, stack, depth, entered=False)
    return stack


def _entered(frame: Frame | None, name: str, *, is_start: bool) -> Frame:
    """Return the frame after a block of `name`, which a call or a return led to."""
    if frame is None or _has_switched(frame, name, is_start=is_start):
        # Behind the switch lies another thread's stack, of which nothing is known.
        return Frame(name, None, 1, entered=is_start)
    if is_start or name in _ENTERED_WITHIN:
        if name in _ENTERED_WITHIN and frame.name == name:
            return frame
        return Frame(name, frame if frame.depth < MAX_DEPTH else None, 1 + frame.depth)
    caller: Frame | None = frame
    while caller is not None:  # and not chain(): millions of blocks come here
        if caller.name == name:
            return caller
        caller = caller.caller
    return Frame(name, None, 1, entered=False)


def _has_switched(frame: Frame, name: str, *, is_start: bool) -> bool:
    """Tell a new thread's first block from what the switch itself calls."""
    if frame.role is not Role.SWITCH:
        return False
    return not is_start or name.startswith(_FIRST_OF_A_THREAD)


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The interrupt, softirq or scheduling that a run belongs to."""

    role: Role
    """INTERRUPT, SOFTIRQ, SCHEDULE, or OTHER for a thread's own code."""
    frame: Frame | None
    """The call that makes it so."""


THREAD = Context(Role.OTHER, None)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Calls whose meaning only the whole path shows."""

    traps: set[Frame]
    """Entries of traps that turned out to be interrupts."""
    idle: set[Frame]
    """Calls of preempt_schedule that came back at once: preemption was off."""


def contexts_of(runs: Sequence[Run]) -> list[Context]:
    """Return the context of each run."""
    marks = _Marks(_interrupting_traps(runs), _idle_preemptions(runs))
    known: dict[Frame, Context] = {}
    return [_context(run.frame, marks, known) for run in runs]


def _interrupting_traps(runs: Sequence[Run]) -> set[Frame]:
    """Return the entries of traps that turned out to be interrupts."""
    found: set[Frame] = set()
    for run in runs:
        # Nothing is an interrupt in most runs, which is known without their callers.
        if Role.INTERRUPT not in run.frame.within:
            continue
        for frame in run.frame.chain():
            caller = frame.caller
            if frame.role is Role.INTERRUPT and caller and caller.role is Role.TRAP:
                found.add(caller)
    return found


def _idle_preemptions(runs: Sequence[Run]) -> set[Frame]:
    found: set[Frame] = set()
    scheduling: set[Frame] = set()
    for run in runs:
        role = run.frame.role
        if role is Role.PREEMPT:
            found.add(run.frame)
        elif role in (Role.SCHEDULE, Role.SWITCH):
            scheduling.update(run.frame.chain())
    return found - scheduling


def _context(frame: Frame, marks: _Marks, known: dict[Frame, Context]) -> Context:
    if frame in known:
        return known[frame]
    role = frame.role
    if frame in marks.traps:
        found = Context(Role.INTERRUPT, frame)
    elif role is Role.INTERRUPT and frame.caller and frame.caller in marks.traps:
        found = _context(frame.caller, marks, known)
    elif role in _INNERMOST and frame not in marks.idle:
        found = Context(Role.SCHEDULE if role in _SCHEDULING else role, frame)
    elif frame.caller is None:
        found = THREAD
    else:
        found = _context(frame.caller, marks, known)
    if found.role is Role.SCHEDULE and frame.caller is not None:
        found = _outermost_call(found, frame, marks, known)
    known[frame] = found
    return found


def _outermost_call(
    found: Context, frame: Frame, marks: _Marks, known: dict[Frame, Context]
) -> Context:
    """Let __schedule belong to the preempt_schedule that called it."""
    above = _context(frame.caller, marks, known) if frame.caller else THREAD
    return above if above.role is Role.SCHEDULE else found


def _stretches(
    blocks: CpuBlocks, symbols: SymbolTable, *, arch: str
) -> tuple[list[int], list[str], list[bool], list[int]]:
    """Return begin, function, whether it was called, and own ns of what a CPU did."""
    if not len(blocks.rows):
        return [], [], [], []
    addresses, which = np.unique(blocks.addresses, return_inverse=True)
    known, are_starts = symbols.names_of(addresses), symbols.are_starts(addresses)
    names = _names(addresses, known, arch=arch)
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    is_step = np.array([is_between(name) for name in names])[which]
    starts = are_starts[which] & ~is_step
    # Steps that the path begins with lead to the first function, and are part of it.
    begin = int(np.argmin(is_step))
    starts[0], starts[1 : begin + 1] = starts[begin], False
    called_from = np.where(is_step, 0, np.arange(len(which)))
    called_from[: begin + 1] = begin
    called_from = np.maximum.accumulate(called_from)
    code = np.array([codes[name] for name in names])[which][called_from]
    first = np.flatnonzero(np.append(True, (code[1:] != code[:-1]) | starts[1:]))
    words = tuple(codes)
    return (
        blocks.at_ns[first].tolist(),
        [words[one] for one in code[first].tolist()],
        starts[first].tolist(),
        np.add.reduceat(blocks.executed_ns, first).tolist(),
    )


def _names(
    addresses: NDArray[np.uint64], known: Sequence[str | None], *, arch: str
) -> list[str]:
    low, high = _RISCV_FIRMWARE
    firmware = (addresses >= low) & (addresses < high) & (arch == "riscv64")
    return [
        name
        or (FIRMWARE if is_firmware else USER if address < KERNEL_HALF else NAMELESS)
        for name, is_firmware, address in zip(
            known,
            firmware.tolist(),
            addresses.tolist(),
            strict=True,
        )
    ]
