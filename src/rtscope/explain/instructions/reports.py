"""
Reports of the kernel: WARN(), BUG(), an oops, no memory left, a stack dump. Pure.

They keep the CPU for as long as it takes to print registers and calls. Their own
functions are the same each time: who raised the report says why.
"""

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from rtscope.explain.instructions.calls import BEGINS_HERE, Frame, Run, plain
from rtscope.explain.instructions.causes import Kind
from rtscope.explain.instructions.contexts import shown
from rtscope.explain.model import Cause
from rtscope.host.units import format_share
from rtscope.record.instructions.symbols import USER

_NAMED_AFTER = frozenset(
    {Cause.INTERRUPTS_OFF, Cause.PREEMPTION_OFF, Cause.NOT_PREEMPTED}
)
"""Causes whose name is the report, if nearly all of their time was in it."""
_REPORTS = {
    "oops": "a kernel oops in {}",
    "memory": "an out-of-memory report",
    "stall": "a report of a stalled CPU",
    "warning": "a kernel warning in {}",
    "stack": "a stack dump in {}",
}
"""The name of each kind; a report within another has that of the first here."""
_WAY, _PRINT = "way", "print"
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Report:
    """A report that a call is in."""

    outermost: Frame
    """The last of its own functions, as the entry of its exception."""
    raised_in: tuple[Frame, ...]
    """The function that raised it, and its callers; empty if they are not known."""
    kind: str

    @property
    def name(self) -> str:
        """Say what it is, and who raised it."""
        what = _REPORTS[self.kind]
        if not self.raised_in:
            return what.removesuffix(" in {}")
        return what.format(shown(self.raised_in[0]))

    @property
    def calls(self) -> Sequence[str]:
        """Return its name in the place of who raised it, and who called that."""
        named = 1 if _REPORTS[self.kind].endswith("{}") else 0
        return [self.name, *map(shown, self.raised_in[named:])]


def report_in(inside: Sequence[Frame]) -> Report | None:
    """Return the report that calls, innermost first, are in; not in an interrupt."""
    kinds = [_kind(plain(frame.name)) for frame in inside]
    first = next((i for i, one in enumerate(kinds) if one in _REPORTS), None)
    if first is None or any(one.role in BEGINS_HERE for one in inside[:first]):
        return None
    behind = range(first, len(inside))
    end = next((i for i in behind if not kinds[i]), len(inside))
    raised_in = inside[end:] if end < len(inside) and inside[end].name != USER else ()
    kind = next(one for one in _REPORTS if one in kinds[first:end])
    return Report(inside[end - 1], tuple(raised_in), kind)


def report_of(
    kind: Kind, runs: Sequence[Run], inside: Sequence[Frame], *, share: float
) -> Report | None:
    """Return the report, or one of several that a call raised, with such a share."""
    if kind.cause not in _NAMED_AFTER or kind.held is not None:
        return None
    found = report_in(inside)
    names = {run.frame.name for run in runs}
    if found is not None or not any(_kind(plain(n)) in _REPORTS for n in names):
        return found
    spent: Counter[Frame] = Counter()
    reports: dict[Frame, Report] = {}
    for run in runs:
        one = report_in(list(run.frame.chain()))
        if one is not None and one.raised_in:
            reports.setdefault(one.raised_in[0], one)
            spent[one.raised_in[0]] += run.executed_ns
    least = share * sum(run.executed_ns for run in runs)
    return next((reports[frame] for frame, ns in spent.items() if ns >= least), None)


def told_of_report(report: Report, runs: Sequence[Run]) -> str:
    """Tell how much of the time of a report, in all runs of its CPU, it printed."""
    whole = printed = 0
    for run in runs:
        found = _in_report(run, report)
        whole += 0 if found is None else run.executed_ns
        printed += run.executed_ns if found else 0
    return f"printing it took {format_share(printed, whole)}"


def _in_report(run: Run, report: Report) -> bool | None:
    """Tell whether a run of a report printed; None if it is no run of that report."""
    outer = report.raised_in[0] if report.raised_in else report.outermost.caller
    is_report = is_printing = False
    for frame in run.frame.chain():
        if frame is outer:
            break
        if not is_report and frame.role in BEGINS_HERE:
            return None  # an interrupt
        is_report |= _kind(plain(frame.name)) in _REPORTS
        is_printing |= _is_of(_PRINT, plain(frame.name))
    else:
        if outer is not None:
            return None
    return is_printing if is_report else None


@lru_cache(maxsize=1 << 16)
def _kind(name: str) -> str:
    """Return what a function is in a report; empty if it is in none."""
    return next((one for one in (*_REPORTS, _WAY) if _is_of(one, name)), "")


@lru_cache(maxsize=1 << 16)
def _is_of(kind: str, name: str) -> bool:
    exact, begins = _names(kind)
    return name in exact or name.startswith(begins)


@cache
def _names(kind: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a kind, and how others of it begin."""
    file = resources.files("rtscope.explain.instructions").joinpath("reports.toml")
    names = tomllib.loads(file.read_text("utf-8"))[kind].split()
    begins = tuple(name.removesuffix(_ANY) for name in names if name.endswith(_ANY))
    return frozenset(names), begins
