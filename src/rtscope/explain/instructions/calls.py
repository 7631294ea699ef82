"""
From executed blocks to calls: the functions of a CPU, each with its callers. Pure.

A path has no calls in it, only addresses of blocks. A block at the begin of a function
is a call; one in its middle is a return to it, if it is among the callers. A jump to
the begin of another function (a tail call) looks like a call whose caller never comes
back; the next return pops both.

Roles are in `roles.toml`; those of `primitives.toml` say nothing: a delay is named
after the first call up its chain that does. The wake-up was due its latency before the
clock was read, not before the mark behind it, which a system call may delay.

The innermost calls show where time went. The outermost call below the entry of the
kernel, an interrupt or a thread shows why: the system call, the handler or the work.
"""

import re
import tomllib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import resources
from itertools import groupby

from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.stretches import (
    FIRMWARE,
    NAMELESS,
    Stretches,
    stretches_of,
)
from rtscope.record.instructions.section import CpuBlocks
from rtscope.record.instructions.symbols import USER, SymbolTable

# GCC's clones of a function: the name ends at the dot; its module follows. Code without
# a symbol is known by its page.
_CLONE = re.compile(
    r"\.(?:isra|constprop|part|cold|llvm)\b[^\s\[]*|(?<=\(no symbol\)) page \w+"
)
_ENTERED_WITHIN = frozenset({FIRMWARE, "vectors", "irq_entries_start"})
"""Functions of which a CPU enters any part by itself: tables of vectors."""
_FIRST_CALL_NS = 8
"""A function that calls a tracer does so first of all: by its first instructions."""
MAX_DEPTH = 256
# Where the kernel lets a new thread begin: no call, though at the begin of a function.
_FIRST_OF_A_THREAD = "ret_from_"
_ANY = "*"


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
    if word.startswith(_probes_begin()) or word.split(" ")[0] in _TRAMPOLINES:
        return Role.PROBE
    return Role.OTHER


def _role_table() -> dict[str, str]:
    here = resources.files("rtscope.explain.instructions")
    return tomllib.loads(here.joinpath("roles.toml").read_text("utf-8"))


@cache
def _roles() -> Mapping[str, Role]:
    """Return the functions of `roles.toml` with their roles."""
    table = _role_table()
    del table[_BEGINS], table[_CALLS]
    return {name: Role[role] for role in table for name in table[role].split()}


@cache
def _probes_begin() -> tuple[str, ...]:
    return tuple(_role_table()[_BEGINS].split())


@cache
def _calls_probes() -> frozenset[str]:
    return frozenset(_role_table()[_CALLS].split())


@lru_cache(maxsize=1 << 16)
def is_handler(name: str, caller: str) -> bool:
    """Tell whether code of a module is the handler of its caller's tracepoint."""
    return name.endswith("]") and plain(caller) in _calls_probes()


@lru_cache(maxsize=1 << 16)
def is_entered_within(name: str) -> bool:
    """Tell whether code may lead to any place of a name: a trampoline has no begin."""
    return name.startswith(NAMELESS) or name.split(" ")[0] in _TRAMPOLINES


_BEGINS = "PROBE_BEGINS"
_CALLS = "CALLS_PROBES"
_TRAMPOLINES = frozenset(
    {
        *("ftrace_caller", "ftrace_regs_caller", "ftrace_trampoline"),
        *("kprobe_insn_page", "kprobe_optinsn_page", "__kretprobe_trampoline"),
        *("arch_rethook_trampoline", "return_to_handler"),
    }
)
_NOTHING = frozenset[Role]()
_INTERRUPTS = frozenset({Role.INTERRUPT, Role.TRAP, Role.PREEMPT, Role.DISPATCH})

BEGINS_HERE = frozenset(
    {
        *(Role.INTERRUPT, Role.TRAP, Role.SYSCALL, Role.DISPATCH),
        *(Role.SCHEDULE, Role.IDLE, Role.SOFTIRQ),
    }
)
"""Behind these is the code that was interrupted, or the kernel's own."""


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


def split_at(runs: list[Run], times_ns: Sequence[int]) -> list[Run]:
    """
    Return the runs with each that was under way at one of these times as two.

    A CPU that pauses does so at the end of a run. A switch of tasks stays whole.
    """
    for at_ns in times_ns:
        at = begun(runs, at_ns) - 1
        if at >= 0:
            runs = [*runs[:at], *_parts(runs[at], at_ns), *runs[at + 1 :]]
    return runs


def _parts(run: Run, at_ns: int) -> Iterator[Run]:
    if not run.begin_ns < at_ns < run.end_ns or run.frame.role is Role.SWITCH:
        yield run
        return
    before_ns = min(run.executed_ns, at_ns - run.begin_ns)
    yield replace(run, end_ns=at_ns, executed_ns=before_ns)
    yield replace(run, begin_ns=at_ns, executed_ns=run.executed_ns - before_ns)


def runs_of(blocks: CpuBlocks, symbols: SymbolTable, *, arch: str) -> list[Run]:
    """Return what one CPU did in a section, in order."""
    return runs_in(stretches_of(blocks, symbols, may_merge, arch=arch))


def may_merge(name: str, caller: str) -> bool:
    """Tell whether a short call means nothing more than its caller does."""
    if is_clock(plain(name)) or is_attempt(plain(name)) or is_entered_within(name):
        return False
    # A probe's handler is the probe's; a probe is not of the function that it is in.
    others = (Role.OTHER, Role.PROBE)
    if is_handler(name, caller):
        return False
    return role_of(name) is Role.OTHER and role_of(caller) in others


def runs_in(stretches: Stretches) -> list[Run]:
    """Return the runs of the stretches of a CPU, each with its call."""
    names, starts, own_ns = stretches.names, stretches.starts, stretches.own_ns
    frame = _callers_of_first(names, starts)
    frames: list[Frame] = []
    for at, (name, is_start) in enumerate(zip(names, starts, strict=True)):
        before, frame = frame, _entered(frame, name, is_start=is_start)
        frames.append(frame)
        # A function that has just begun leads to code without a symbol: a tracer's.
        is_first = at > 0 and starts[at - 1] and own_ns[at - 1] <= _FIRST_CALL_NS
        if before is None or frame.caller is not before:
            continue
        if (is_first and name.startswith(NAMELESS)) or is_handler(name, before.name):
            frame.role = Role.PROBE
            frame.within |= {Role.PROBE}
    return [*map(Run, frames, stretches.at_ns, stretches.ends_ns, own_ns)]


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
        if open_calls and name not in open_calls and is_entered_within(name):
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
    if is_entered_within(name):
        return Frame(name, frame if frame.depth < MAX_DEPTH else None, 1 + frame.depth)
    return Frame(name, None, 1, entered=False)


def _has_switched(frame: Frame, name: str, *, is_start: bool) -> bool:
    """Tell a new thread's first block from what the switch itself calls."""
    if frame.role is not Role.SWITCH:
        return False
    return not is_start or name.startswith(_FIRST_OF_A_THREAD)


@lru_cache(maxsize=1 << 16)
def is_primitive(name: str) -> bool:
    """Tell whether a function says nothing of the cause: whoever calls it does."""
    exact, begins = _of_kind("")
    return name in exact or name.startswith(begins)


@lru_cache(maxsize=1 << 16)
def is_clock(name: str) -> bool:
    """Tell whether a function does nothing but read a clock."""
    exact, begins = _of_kind("clock")
    return name in exact or name.startswith(begins)


@lru_cache(maxsize=1 << 16)
def is_delay(name: str) -> bool:
    """Tell whether a function does nothing but let time go by."""
    exact, begins = _of_kind("delay")
    return name in exact or name.startswith(begins)


@lru_cache(maxsize=1 << 16)
def is_attempt(name: str) -> bool:
    """Tell whether a function takes a lock if it is free, and never waits for it."""
    exact, begins = _of_kind("attempt")
    return name in exact or name.startswith(begins)


def title_index(chain: Sequence[str], stops: Sequence[bool] = ()) -> int:
    """
    Return the first function of a chain, innermost first, that is no primitive.

    Not beyond one that `stops`, as the entry of an interrupt does; 0 if there is none.
    """
    for at, name in enumerate(chain):
        if at < len(stops) and stops[at]:
            return 0
        if not is_primitive(name):
            return at
    return 0


@cache
def _of_kind(wanted: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a kind, and how others of it begin; of all kinds for ""."""
    file = resources.files("rtscope.explain.instructions").joinpath("primitives.toml")
    kinds = tomllib.loads(file.read_text("utf-8"))
    names = [
        name
        for kind, listed in kinds.items()
        if wanted in ("", kind)
        for name in listed.split()
    ]
    begins = tuple(name.removesuffix(_ANY) for name in names if name.endswith(_ANY))
    return frozenset(names), begins


def main_frame(runs: Sequence[Run], *, share: float) -> Frame | None:
    """
    Return the innermost call in which at least this share was executed.

    More than a half, or it may be one of several; None if there is no such call.
    """
    own: Counter[Frame] = Counter()
    for run in runs:
        own[run.frame] += run.executed_ns
    spent: Counter[Frame] = Counter()
    for innermost, ns in own.items():
        for frame in innermost.chain():
            spent[frame] += ns
    least = share * sum(run.executed_ns for run in runs)
    inside = [frame for frame, ns in spent.items() if ns >= least]
    return max(inside, key=lambda frame: frame.depth, default=None)


def main_chain(runs: Sequence[Run], *, share: float) -> list[Frame]:
    """Return the call of `main_frame` and its callers, innermost first."""
    frame = main_frame(runs, share=share)
    return [] if frame is None else list(frame.chain())


def delay_helpers(runs: Sequence[Run]) -> frozenset[Frame]:
    """
    Return the calls that only spent time: they read clocks, and called nothing else.

    What they did shows them, whatever their names. `runs` are all of their CPU.
    """
    reading, working = set[Frame](), set[Frame]()
    for run in runs:
        frame, caller = run.frame, run.frame.caller
        if is_clock(plain(frame.name)):
            if caller is not None and not is_clock(plain(caller.name)):
                reading |= set() if _is_called_back(caller) else {caller}
            continue
        # An interrupt is no call of what it interrupts.
        while caller is not None and frame.role not in _INTERRUPTS:
            if caller in working:
                break
            working.add(caller)
            frame, caller = caller, caller.caller
    return frozenset(reading - working)


def _is_called_back(frame: Frame) -> bool:
    """Tell whether the kernel called a module's function: that is no helper."""
    by = frame.caller
    of_kernel = by is not None and by.role is not Role.OTHER and by.name[-1] != "]"
    return frame.entered and frame.name.endswith("]") and of_kernel


def title_frame(chain: Sequence[Frame], delays: frozenset[Frame]) -> int:
    """
    Return the index of the call, innermost first, that something is named after.

    It is the first that is no primitive; or who called that, if it is a delay helper by
    what it did: it is one of the `delays`.
    """
    stops = [frame.role in BEGINS_HERE for frame in chain]
    names = [plain(frame.name) for frame in chain]
    at = title_index(names, stops)
    above = at + 1
    if above >= len(chain) or stops[at] or stops[above] or is_primitive(names[above]):
        return at
    return above if chain[at] in delays else at


def jumped_to(chain: Sequence[Frame], name: str, delays: frozenset[Frame]) -> str:
    """
    Return the call of a name that another function may have led to by a jump; or empty.

    It was called before the path begins, and only spent time for whoever wanted it: a
    primitive or a delay helper. A function that jumped to it is not among its callers.
    """
    passed: list[Frame] = []
    for frame in chain:
        is_named = plain(frame.name) == name
        if is_named and frame not in delays:
            break
        passed.append(frame)
        if is_named:
            break
    else:
        return ""
    unknown = [plain(frame.name) for frame in passed if not frame.entered]
    return unknown[-1] if unknown else ""


def spent_in(runs: Sequence[Run]) -> list[tuple[str, int]]:
    """Return own ns by function, most first."""
    spent: Counter[str] = Counter()
    for run in runs:
        spent[run.frame.name] += run.executed_ns
    return spent.most_common()


# --- A chain of calls in a few names: the innermost ones, and the one that they serve -

CALLERS_SHOWN = 3


def shortened(calls: Sequence[str], *, shown: int = CALLERS_SHOWN) -> str:
    """
    Write who called whom, innermost first: `a < b < c < … < z`.

    A name that follows itself, as in a recursion, stands there once. `…` at the end
    hides nothing but the entry of the kernel or of a thread.
    """
    names = [name for name, _ in groupby(calls)]
    text = " < ".join(names[:shown])
    if len(names) <= shown:
        return text
    why = _why(names, shown)
    if why < shown:
        return f"{text} < …"
    return f"{text}{' < …' if why > shown else ''} < {names[why]}"


def _why(names: Sequence[str], shown: int) -> int:
    """Return the outermost call below an entry that is no mere step to another."""
    entries = (i for i, one in enumerate(names) if i and _is_entry(one))
    last = next(entries, len(names)) - 1
    while last >= shown and _is_of("entry", plain(names[last])):
        last -= 1
    inner = last
    while inner >= shown and _is_of("step", plain(names[inner])):
        inner -= 1
    return inner if inner >= shown else last


def _is_entry(name: str) -> bool:
    return name == USER or role_of(name) in BEGINS_HERE


@lru_cache(maxsize=1 << 16)
def _is_of(kind: str, name: str) -> bool:
    exact, begins = _names(kind)
    return name in exact or name.startswith(begins)


@cache
def _names(kind: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a kind of `chains.toml`, and how others of it begin."""
    file = resources.files("rtscope.explain.instructions").joinpath("chains.toml")
    names = tomllib.loads(file.read_text("utf-8"))[kind].split()
    begins = tuple(name.removesuffix(_ANY) for name in names if name.endswith(_ANY))
    return frozenset(names), begins
