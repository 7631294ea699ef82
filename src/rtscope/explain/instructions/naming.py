"""
The call that a delay is named after: the first up its chain that says something.

Where most of it was executed, in which calls nearly all was, and which only spent time.
Delay helpers, locks, lists, copies, printing and dispatchers are in `primitives.toml`.
Pure.
"""

import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources

from rtscope.explain.instructions.calls import Frame, Role, Run, plain

_ANY = "*"
# What the kernel does between two callbacks of timers.
_OF_TIMERS = (
    *("_raw_spin", "timerqueue_", "rb_", "__remove_hrtimer"),
    *("enqueue_hrtimer", "__hrtimer_"),
)
_INTERRUPTS = frozenset({Role.INTERRUPT, Role.TRAP, Role.PREEMPT, Role.DISPATCH})

_BEGINS_HERE = frozenset(
    {
        *(Role.INTERRUPT, Role.TRAP, Role.SYSCALL, Role.DISPATCH),
        *(Role.SCHEDULE, Role.IDLE, Role.SOFTIRQ),
    }
)
"""Behind these is the code that was interrupted, or the kernel's own."""


@lru_cache(maxsize=1 << 16)
def is_primitive(name: str) -> bool:
    """Tell whether a function says nothing of the cause: whoever calls it does."""
    exact, begins = _primitives()
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


def _primitives() -> tuple[frozenset[str], tuple[str, ...]]:
    return _of_kind("")


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
    reading: set[Frame] = set()
    working: set[Frame] = set()
    for run in runs:
        frame, caller = run.frame, run.frame.caller
        if is_clock(plain(frame.name)):
            if caller is not None and not is_clock(plain(caller.name)):
                reading.add(caller)
            continue
        # An interrupt is no call of what it interrupts.
        while caller is not None and frame.role not in _INTERRUPTS:
            if caller in working:
                break
            working.add(caller)
            frame, caller = caller, caller.caller
    return frozenset(reading - working)


def title_frame(chain: Sequence[Frame], delays: frozenset[Frame]) -> int:
    """
    Return the index of the call, innermost first, that something is named after.

    It is the first that is no primitive; or who called that, if it is a delay helper by
    what it did: it is one of the `delays`.
    """
    stops = [frame.role in _BEGINS_HERE for frame in chain]
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


def callback_of(run: Run) -> str | None:
    """Return the timer's function in which a run is; None outside of all."""
    inner = None
    for frame in run.frame.chain():
        if frame.role is Role.INTERRUPT:
            return None  # what interrupts a callback is not of it
        if plain(frame.name) == "__hrtimer_run_queues":
            return inner if inner and not inner.startswith(_OF_TIMERS) else None
        inner = frame.name
    return None
