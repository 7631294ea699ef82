"""
Reports of the kernel about its own code: WARN(), BUG(), an oops. Pure.

They keep the CPU for as long as it takes to print registers and calls. Their own
functions are the same each time: who raised the report says why.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from rtscope.explain.instructions.calls import BEGINS_HERE, Frame, Run, plain
from rtscope.explain.instructions.contexts import shown
from rtscope.explain.model import Cause
from rtscope.host.units import format_share
from rtscope.record.instructions.symbols import USER

NAMED_AFTER = frozenset(
    {Cause.INTERRUPTS_OFF, Cause.PREEMPTION_OFF, Cause.NOT_PREEMPTED}
)
"""Causes whose name is the report, if nearly all of their time was in it."""
_WARNING, _OOPS, _WAY, _PRINT = "warning", "oops", "way", "print"
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Report:
    """A report that a call is in."""

    outermost: Frame
    """The last of its own functions, as the entry of its exception."""
    raised_in: tuple[Frame, ...]
    """The function that raised it, and its callers; empty if they are not known."""
    is_oops: bool

    @property
    def name(self) -> str:
        """Say what it is, and who raised it."""
        what = "a kernel oops" if self.is_oops else "a kernel warning"
        return f"{what} in {shown(self.raised_in[0])}" if self.raised_in else what

    @property
    def calls(self) -> Sequence[str]:
        """Return its name in the place of who raised it, and who called that."""
        return [self.name, *map(shown, self.raised_in[1:])]


def report_in(inside: Sequence[Frame]) -> Report | None:
    """Return the report that calls, innermost first, are in; not in an interrupt."""
    kinds = [_kind(plain(frame.name)) for frame in inside]
    first = next((i for i, one in enumerate(kinds) if one in (_WARNING, _OOPS)), None)
    if first is None or any(one.role in BEGINS_HERE for one in inside[:first]):
        return None
    behind = range(first, len(inside))
    end = next((i for i in behind if not kinds[i]), len(inside))
    raised_in = inside[end:] if end < len(inside) and inside[end].name != USER else ()
    return Report(inside[end - 1], tuple(raised_in), _OOPS in kinds[first:end])


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
        is_report |= _kind(plain(frame.name)) in (_WARNING, _OOPS)
        is_printing |= _is_of(_PRINT, plain(frame.name))
    else:
        if outer is not None:
            return None
    return is_printing if is_report else None


@lru_cache(maxsize=1 << 16)
def _kind(name: str) -> str:
    """Return what a function is in a report; empty if it is in none."""
    return next((k for k in (_WARNING, _OOPS, _WAY) if _is_of(k, name)), "")


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
