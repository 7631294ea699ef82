"""From the lines of the agent to what each thread did, span by span."""

from collections.abc import Iterable, Iterator, Sequence

from rtscope.contract import (
    AgentError,
    DemoBegin,
    DemoEnd,
    DemoEvent,
    DemoEvents,
    Line,
    sha256_of_json,
)
from rtscope.host.errors import ContractError, TargetError
from rtscope.host.units import NS_PER_MS
from rtscope.verbs.demo.model import Case, CaseResult, Lane, Span, State

DURATION_NS = 15_000_000_000
"""After which the watchdog ends a case: each takes a few seconds."""

PAUSE_NS = 50_000
"""Between two events of a thread: after more it had lost the CPU (DEMO_PAUSE_NS)."""


def demo_args(case: Case, cpu: int | None) -> list[str]:
    """Return the arguments with which the agent runs a case."""
    return [
        "demo",
        *("--duration-ns", str(DURATION_NS)),
        *(() if cpu is None else ("--cpus", str(cpu))),
        *(("--lock-memory",) if case.lock_memory else ()),
        *(("--inherit",) if case.inherit else ()),
        "--",
        *case.threads,
    ]


def settings_of(case: Case, cpu: int) -> Iterator[tuple[str, int, str]]:
    """Yield the settings of a case as knob, index and value."""
    for setting in case.settings:
        place, _, value = setting.partition("=")
        knob, _, index = place.partition(":")
        yield knob, cpu if index else 0, value


def case_result_of(case: Case, lines: Sequence[Line]) -> CaseResult:
    """
    Return what the threads of a case did.

    Raises TargetError with the agent's reason if it could not begin or was ended, or if
    a thread was interrupted too often to note all; ContractError if a line or an event
    is missing.
    """
    for line in lines:
        if isinstance(line, AgentError):
            remedy = f" ({line.remedy})" if line.remedy else ""
            raise TargetError(f"{line.message}{remedy}")
    begin = next((one for one in lines if isinstance(one, DemoBegin)), None)
    end = next((one for one in lines if isinstance(one, DemoEnd)), None)
    if begin is None or end is None:
        raise ContractError("the agent's list of events is incomplete")
    if end.stopped:
        raise TargetError(f"the demonstration was ended before its time: {end.stopped}")
    ends = {one.name: one for one in end.threads}
    lanes = []
    for script, got in zip(case.threads, begin.threads, strict=True):
        events = tuple(_events_of(got.name, lines))
        words = {event[0] for event in events}
        if (
            got.name not in ends
            or len(events) != ends[got.name].events
            or not words >= {"woke", "done"}
        ):
            raise ContractError(f"events of the thread {got.name} are missing")
        if lost := ends[got.name].events_lost:
            raise TargetError(
                f"case {case.name}, thread {got.name}: {lost} of its "
                f"{lost + len(events)} events found no room: CPU {begin.cpu} was "
                "taken from it too often; try another one with --cpu"
            )
        lanes.append(Lane(script, got, events, ends[got.name], tuple(spans_of(events))))
    return CaseResult(case, begin, tuple(lanes), end)


def _events_of(name: str, lines: Iterable[Line]) -> Iterator[DemoEvent]:
    for line in lines:
        if isinstance(line, DemoEvents) and line.thread == name:
            yield from line.events


def spans_of(events: Iterable[DemoEvent]) -> Iterator[Span]:
    """Yield the states of a thread, without gaps, from its events."""
    cursor = 0
    for word, _, at_ns, value in events:
        match word:
            case "woke":
                due_ns = max(cursor, value or at_ns)
                yield from _span(cursor, due_ns, State.ASLEEP)
                yield from _span(due_ns, at_ns, State.READY)
                cursor = max(cursor, at_ns)
            case "ran":
                yield from _span(cursor, at_ns, State.READY)
                yield from _span(at_ns, value, State.RUNNING)
                cursor = max(cursor, value)
            case "got":
                yield from _span(cursor, at_ns, State.BLOCKED)
                cursor = max(cursor, at_ns)
            case "took":
                yield from _span(cursor, at_ns + value, State.RUNNING)
                cursor = max(cursor, at_ns + value)
            case "want" | "left" | "done":
                # A short way from the event before; else it lost the CPU on it.
                short = at_ns - cursor <= PAUSE_NS
                yield from _span(cursor, at_ns, State.RUNNING if short else State.READY)
                cursor = max(cursor, at_ns)


def _span(from_ns: int, to_ns: int, state: State) -> Iterator[Span]:
    if to_ns > from_ns:
        yield Span(from_ns, to_ns, state)


def digest_of(results: Iterable[CaseResult]) -> str:
    """
    Return the SHA-256 of all that the threads of some cases did, and when.

    Times are those since the start, and thread ids are left out: on a virtual board
    two results have the same digest.
    """
    return sha256_of_json(
        [
            {
                "case": one.case.name,
                "threads": [
                    {
                        "script": lane.script,
                        "policy": lane.got.policy,
                        "priority": lane.got.priority,
                        "events": [list(event) for event in lane.events],
                        "cpu_time_ns": lane.end.cpu_time_ns,
                        "minor_faults": lane.end.minor_faults,
                    }
                    for lane in one.lanes
                ],
            }
            for one in results
        ]
    )


# --- words for what was seen --------------------------------------------------------


def ms(ns: float) -> str:
    """Return a time in ms."""
    return f"{ns / NS_PER_MS:,.1f} ms"


def percent(share: float) -> str:
    """Return a share of a CPU."""
    return f"{100 * share:.1f} %"


def capitalized(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]
