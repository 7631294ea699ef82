"""Lines of the agent's `cycles`."""

from collections.abc import Sequence
from dataclasses import replace

from fakes import traces
from rtscope.contract import CycleRuns, CyclesBegin, CyclesEnd, Tracing
from rtscope.contract.values import SCHEMA

MS = 1_000_000
TID = 101


def begin() -> CyclesBegin:
    return CyclesBegin(schema=SCHEMA, pid=TID, from_ns=0)


def periodic(cycles: int, *, period_ns: int = MS) -> CycleRuns:
    """Return a grid of cycles, each 20 ns late, with 100 ns of work."""
    return CycleRuns(
        tuple(
            (TID, 0, at - MS, at, at + 10, at + 20, at + 120, 100, 0, 0)
            for at in range(period_ns, (cycles + 1) * period_ns, period_ns)
        )
    )


def end(
    lines: Sequence[CycleRuns] = (), *, losses: int = 0, tracing: Tracing | None = None
) -> CyclesEnd:
    recorded = tracing or replace(traces.tracing(), kept=())
    return CyclesEnd(
        to_ns=10**10,
        stopped="",
        runs=sum(len(line.runs) for line in lines),
        left_out=0,
        cut=0,
        losses=losses,
        not_watched=0,
        agent_cpu_ns=MS,
        tracing=recorded,
        wakeup_plain_ns=0,
        wakeup_recorded_ns=0,
    )
