"""
Did the load run throughout? Pure: from what the guard reported to caveats.

A load that quietly died turns every latency below it into that of an idle machine; so
its CPU time has to grow from second to second while the samples are taken.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rtscope.caveats.catalogue import Caveat, make
from rtscope.contract import LoadEnd, LoadTick
from rtscope.loads import Load, Need

STALL_NS = 3_000_000_000
"""CPU time is counted in ticks of 10 ms; three seconds without one is no work."""

TICK_NS = 1_000_000_000

INTERRUPTED = (130, 143)
"""Exit status of a shell or program that SIGINT or SIGTERM ended: as we asked."""


def caveats_from_load(
    load: Load,
    ticks: Sequence[LoadTick],
    *,
    end: LoadEnd | None,
    ended_early: bool,
    window_ns: tuple[int, int],
) -> tuple[Caveat, ...]:
    """Return the doubts about a load that was to run over the window (start, end)."""
    return tuple(
        _caveats(load, ticks, end=end, ended_early=ended_early, window_ns=window_ns)
    )


def _caveats(
    load: Load,
    ticks: Sequence[LoadTick],
    *,
    end: LoadEnd | None,
    ended_early: bool,
    window_ns: tuple[int, int],
) -> Iterator[Caveat]:
    if ended_early:
        yield make("load_died", _how(end))
    elif end is None:
        yield make("load_unproved", "its guard did not report its end")
    elif end.status not in (0, None, *INTERRUPTED):
        yield make("load_failed", _how(end))
    if not ended_early:
        yield from _progress(load, ticks, window_ns)
    if Need.MEMORY_LIMIT in load.needs and end is not None and not end.oom_kills:
        yield make("no_oom_kill")


def _how(end: LoadEnd | None) -> str:
    if end is None:
        return ""
    if end.signal is not None:
        return f"ended by signal {end.signal}"
    return f"exit status {end.status}"


def _progress(
    load: Load, ticks: Sequence[LoadTick], window_ns: tuple[int, int]
) -> Iterator[Caveat]:
    start_ns, end_ns = window_ns
    inside = [t for t in ticks if start_ns - TICK_NS <= t.t_ns <= end_ns + TICK_NS]
    if len(inside) < 2:
        yield make("load_unproved", f"only {len(inside)} reports during the run")
        return
    longest_ns = 0
    since_ns = inside[0].t_ns
    for before, after in pairwise(inside):
        if after.cpu_ns > before.cpu_ns:
            longest_ns = max(longest_ns, before.t_ns - since_ns)
            since_ns = after.t_ns
    longest_ns = max(longest_ns, inside[-1].t_ns - since_ns)
    if longest_ns >= min(STALL_NS, inside[-1].t_ns - inside[0].t_ns):
        # A command of the user's may have its work done elsewhere, over the network.
        doubt = "load_stalled" if load.expects_progress else "load_unproved"
        yield make(doubt, f"no CPU time for {longest_ns / 1e9:.0f} s")
