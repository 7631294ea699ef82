"""
What came of a load that is a stream of events: from the lines of the agent. Pure.

The agent is the load, and measures it as it measures any event: its last line has what
it sent, and what came.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.contract import AgentError, AgentResult, Line, Tick, parse_line
from rtscope.host.errors import ContractError
from rtscope.host.units import NS_PER_S
from rtscope.measure.loads.command import Load
from rtscope.record.caveats.catalogue import Caveat, make

_NEAR = 0.95
"""Of the stated rate."""


MAX_REASON = 400
"""Characters of what the agent said."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of events that has ended."""

    rate_per_s: float
    """How many came in a second, as near to the measurement as is known."""
    unsent: int
    """Periods in which the sending thread did not run, from begin to end."""
    lost: int
    """Sent or due, and never received, from begin to end."""


def stream_of(log: str, span_ns: tuple[int, int]) -> Stream | None:
    """
    Return what came of the stream around a measurement (start, end).

    The agent tells once a second how much came. None if it did not tell what came of
    all.
    """
    ticks: list[Tick] = []
    for line in _lines_of(log):
        if isinstance(line, Tick):
            ticks.append(line)
        if isinstance(line, AgentResult) and line.threads:
            return _stream(line, ticks, span_ns)
    return None


def _lines_of(log: str) -> Iterator[Line | str]:
    """Yield the lines of the agent; what is none comes from elsewhere, as it is."""
    for text in log.splitlines():
        try:
            yield parse_line(text.encode())
        except ContractError:
            yield text


def _stream(
    result: AgentResult, ticks: Sequence[Tick], span_ns: tuple[int, int]
) -> Stream | None:
    thread = result.threads[0]
    if thread.event is None or thread.samples is None:
        return None
    told = [(result.start_ns + t.t_ns, t.cpus[0].samples) for t in ticks if t.cpus]
    ends = (thread.end_ns, thread.samples)
    points = [(thread.start_ns, 0), *(one for one in told if one[0] < ends[0]), ends]
    from_ns, before = max((p for p in points if p[0] <= span_ns[0]), default=points[0])
    to_ns, after = min((p for p in points if p[0] >= span_ns[1]), default=ends)
    if to_ns <= from_ns:
        return None
    return Stream(
        rate_per_s=(after - before) * NS_PER_S / (to_ns - from_ns),
        unsent=thread.event.unsent,
        lost=thread.event.lost + thread.event.full,
    )


def errors_of(log: str) -> str:
    """Return why the agent could not send, in its words; empty if it could."""
    said = (
        line.message if isinstance(line, AgentError) else line
        for line in _lines_of(log)
        if isinstance(line, AgentError | str)
    )
    return "\n".join(said)


def stream_caveats(load: Load, stream: Stream | None, log: str) -> Iterator[Caveat]:
    """Yield what was missing of a load that is to come at a stated rate."""
    if not load.event:
        return
    if stream is None:
        why = (
            errors_of(log).replace("\n", "; ")[:MAX_REASON]
            or f"no count of its {load.kind}"
        )
        yield make("load_unproved", f"{load.name}: {why}")
    elif stream.rate_per_s < _NEAR * load.rate_per_s:
        yield make(
            "load_below_rate",
            f"{stream.rate_per_s:,.0f} of {load.rate_per_s:,} {load.kind} a second; "
            f"from its begin {stream.lost:,} never came, {stream.unsent:,} were never "
            "sent",
        )
