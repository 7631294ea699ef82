"""What a demonstration is, and what came of it: what each thread did, span by span."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rtscope.contract import (
    AgentError,
    DemoBegin,
    DemoEnd,
    DemoEvent,
    DemoEvents,
    DemoThread,
    DemoThreadEnd,
    Line,
    sha256_of_json,
)
from rtscope.host.errors import ContractError, TargetError
from rtscope.host.units import NS_PER_MS


class Scenario(StrEnum):
    """The demonstrations: tables of `scenarios.toml`, and the states of a thread."""

    PREEMPT = "preempt"
    RR = "rr"
    DEADLINE = "deadline"
    CLASSES = "classes"
    THROTTLE = "throttle"
    INVERSION = "inversion"
    PAGEFAULT = "pagefault"
    MALLOC = "malloc"
    PERIODIC = "periodic"
    STATES = "states"
    """Of `states.toml`: its threads have no script."""


@dataclass(frozen=True, slots=True)
class Case:
    """Threads that begin together, with what is set before."""

    name: str
    title: str
    threads: tuple[str, ...]
    """The scripts of the agent's threads."""
    lock_memory: bool = True
    inherit: bool = False
    """Mutexes have priority inheritance."""
    settings: tuple[str, ...] = ()
    """Of the machine, held meanwhile: KNOB=VALUE, or KNOB:cpu=VALUE for its CPU."""
    optional: bool = False
    """It is left out where its settings are refused."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A demonstration: what it shows, by which cases."""

    scenario: Scenario
    title: str
    about: str
    cases: tuple[Case, ...]


@cache
def demos() -> Mapping[Scenario, Demo]:
    """Return all demonstrations, in the order of `scenarios.toml`."""
    file = resources.files("rtscope.verbs.demo").joinpath("scenarios.toml")
    tables = tomllib.loads(file.read_text("utf-8"))
    return {
        Scenario(name): Demo(
            scenario=Scenario(name),
            title=table["title"],
            about=table["about"],
            cases=tuple(_case(row) for row in table["cases"]),
        )
        for name, table in tables.items()
    }


def _case(row: Mapping[str, Any]) -> Case:
    lists = {key: tuple(row.get(key, ())) for key in ("threads", "settings")}
    return Case(**{**row, **lists})


class State(StrEnum):
    """What a thread was doing."""

    ASLEEP = "asleep"
    READY = "ready"
    """It could run, and had no CPU."""
    RUNNING = "running"
    BLOCKED = "blocked"
    """It waited for a mutex, or for its CPU after that was free."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time in one state, in ns since the start."""

    from_ns: int
    to_ns: int
    state: State

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.to_ns - self.from_ns


@dataclass(frozen=True, slots=True)
class Lane:
    """What one thread of a case did."""

    script: str
    got: DemoThread
    """As read back from the kernel, before it began."""
    events: tuple[DemoEvent, ...]
    end: DemoThreadEnd
    spans: tuple[Span, ...]

    @property
    def name(self) -> str:
        """Its name in the script."""
        return self.got.name

    @property
    def runs(self) -> tuple[Span, ...]:
        """The times that it ran."""
        return tuple(one for one in self.spans if one.state is State.RUNNING)

    def times(self, word: str) -> tuple[tuple[int, int], ...]:
        """Return time and number of each event of a kind."""
        return tuple((at, value) for kind, _, at, value in self.events if kind == word)

    @property
    def woke_ns(self) -> int:
        """When it began: its first wake-up."""
        return self.times("woke")[0][0]

    @property
    def done_ns(self) -> int:
        """When it had taken its last step."""
        return self.times("done")[0][0]

    def ran_within(self, from_ns: int, to_ns: int) -> int:
        """Return for how many ns it ran between two times."""
        overlaps = (min(r.to_ns, to_ns) - max(r.from_ns, from_ns) for r in self.runs)
        return sum(one for one in overlaps if one > 0)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What the threads of a case did."""

    case: Case
    begin: DemoBegin
    lanes: tuple[Lane, ...]
    end: DemoEnd

    def lane(self, name: str) -> Lane:
        """Return the thread of this name."""
        return next(one for one in self.lanes if one.name == name)

    @property
    def end_ns(self) -> int:
        """When the last thread was done."""
        return max((one.done_ns for one in self.lanes), default=0)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the threads of all cases did, and what is known of the machine."""

    results: tuple[CaseResult, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    """Texts of `FACTS` before the first case; what could not be read is not there."""
    facts_after: Mapping[str, str] = field(default_factory=dict)
    not_tried: Mapping[str, str] = field(default_factory=dict)
    """Cases that were left out, by name: why."""

    def case(self, name: str) -> CaseResult:
        """Return what the threads of a case did."""
        return self.cases[name]

    @property
    def cases(self) -> Mapping[str, CaseResult]:
        """The same by the names of the cases."""
        return {one.case.name: one for one in self.results}


RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
RT_PERIOD = "/proc/sys/kernel/sched_rt_period_us"
FAIR_SERVER = "/sys/kernel/debug/sched/fair_server/cpu*/*"
GROUP_RUNTIME, GROUP_PERIOD = "cpu.rt_runtime_us", "cpu.rt_period_us"
"""Of the control group of the threads, where RT_GROUP_SCHED gives it a limit."""

FACTS = (RT_RUNTIME, RT_PERIOD, FAIR_SERVER)
"""What is read of a machine before and after a demonstration that changes settings."""


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must hold, and what was seen."""

    says: str
    held: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A demonstration after its end."""

    demo: Demo
    target: str
    results: tuple[CaseResult, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    """What else was seen: sentences."""
    settings: Mapping[str, str]
    """Of the machine as it was found, by path, where a demonstration changes some."""
    settings_after: Mapping[str, str]
    not_tried: Mapping[str, str]
    """Cases that were left out, by name: why."""
    digest: str
    """Of all that its threads did: equal digests, equal timelines."""

    @property
    def held(self) -> bool:
        """Whether all that must happen did."""
        return all(check.held for check in self.checks)


# --- from the lines of the agent to what each thread did, span by span ----------------

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
