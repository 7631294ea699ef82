"""
Judge what a program did by the budgets of its threads. Pure.

A budget is kept, broken, or was not seen; one that was not seen is never kept.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fnmatch import fnmatchcase

from rtscope.boards.runs.identity import BoardIdentity
from rtscope.host.errors import MeasurementError
from rtscope.present.words import enumeration
from rtscope.programs.naming import NamedStack
from rtscope.programs.outside.file import Kind
from rtscope.programs.outside.model import (
    Outside,
    OutsideCycle,
    OutsideThread,
    Place,
)
from rtscope.verbs.test.file import BudgetTable, ProgramTest
from rtscope.verbs.test.profile import ThreadProfile


class Outcome(StrEnum):
    """What became of a budget; the worst first."""

    BROKEN = "broken"
    NOT_SEEN = "not seen"
    KEPT = "kept"

    @property
    def exit_status(self) -> int:
        """As that of a check; not seen: no valid measurement."""
        if self is Outcome.NOT_SEEN:
            return MeasurementError.exit_status
        return int(self is Outcome.BROKEN)


ALLOCATIONS = "allocations"

Unit = str
NS, COUNT = "ns", "count"
VIRTUAL = "virtual "
"""Before the unit of a time."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a budget is about."""

    name: str
    """Its key in a test file."""
    unit: Unit
    heading: str
    what: str
    """In a sentence."""
    needs: tuple[Kind, ...]
    """Records without which it is not seen."""
    of: Callable[[OutsideThread], int | None]
    """None: it was not seen of this thread."""
    of_cycle: Callable[[OutsideCycle], int] | None = None
    """None: it is of no single cycle."""
    places: Callable[[OutsideCycle], Sequence[Place]] | None = None
    """Where in the program what is counted was; None: it is no number in all cycles."""


def _most(of: Callable[[OutsideCycle], int]) -> Callable[[OutsideThread], int | None]:
    return lambda thread: max(map(of, thread.cycles), default=None)


def _sum(of: Callable[[OutsideCycle], int]) -> Callable[[OutsideThread], int | None]:
    return lambda thread: sum(map(of, thread.cycles))


def _per_cycle(
    name: str, unit: Unit, heading: str, what: str, of: Callable[[OutsideCycle], int]
) -> Measure:
    return Measure(name, unit, heading, what, (), _most(of), of)


def _in_all(
    name: str,
    what: str,
    needs: tuple[Kind, ...],
    of: Callable[[OutsideCycle], int],
    places: Callable[[OutsideCycle], Sequence[Place]],
) -> Measure:
    return Measure(name, COUNT, name, what, needs, _sum(of), of, places)


def _inversions(cycle: OutsideCycle) -> int:
    return sum(one.is_inversion for one in cycle.waits)


def _waits(cycle: OutsideCycle) -> Sequence[Place]:
    return [one.at for one in cycle.waits]


def _inverted(cycle: OutsideCycle) -> Sequence[Place]:
    return [one.at for one in cycle.waits if one.is_inversion]


MEASURES: tuple[Measure, ...] = (
    _per_cycle(*("response", NS, "response", "response"), lambda one: one.response_ns),
    _per_cycle(
        *("latency", NS, "latency", "wake-up latency"), lambda one: one.latency_ns
    ),
    _per_cycle(
        *("execution", NS, "on CPU", "time on a CPU"), lambda one: one.on_cpu_ns
    ),
    _per_cycle(
        *("instructions", COUNT, "instructions", "instructions in a cycle"),
        lambda one: one.user_instructions,
    ),
    Measure(
        *("missed", COUNT, "missed", "missed periods"),
        (),
        lambda thread: thread.missed,
    ),
    _in_all(
        *("faults", "page faults", (Kind.FAULT,)),
        lambda one: one.faults,
        lambda one: one.faulted,
    ),
    _in_all(
        *("blocking", "waits within cycles", (Kind.CALL,)),
        lambda one: len(one.waits),
        _waits,
    ),
    _in_all(
        *("inversions", "priority inversions", (Kind.CALL,)), _inversions, _inverted
    ),
    _in_all(
        *(ALLOCATIONS, "allocations", ()),
        lambda one: len(one.allocations),
        lambda one: one.allocations,
    ),
)

_FIELD = {
    "response": "response_ns",
    "latency": "latency_ns",
    "execution": "execution_ns",
}


@dataclass(frozen=True, slots=True)
class SeenStart:
    """One start of a program, and what it did."""

    identity: BoardIdentity
    load: str
    start: int
    outside: Outside
    starts: int = 1
    """Of the boot."""
    doubts: tuple[str, ...] = ()
    """Why its load may not have run: a limit is then not shown to be kept."""
    notes: tuple[str, ...] = ()
    """What else is in doubt, such as a warning of the kernel; it changes no answer."""
    hidden: Mapping[int, str] = field(default_factory=dict)
    """Why allocations of a process are not seen."""
    stacks: Mapping[int, NamedStack] = field(default_factory=dict)
    """By the numbers of places."""
    code: Mapping[int, ThreadProfile] = field(default_factory=dict)
    """What threads executed, by their numbers on the board; empty: not recorded."""

    def value_of(self, measure: Measure, thread: OutsideThread) -> int | None:
        """Return what a thread did; None: it was not seen."""
        if any(kind not in self.outside.kinds for kind in measure.needs):
            return None
        if measure.name == ALLOCATIONS and thread.process in self.hidden:
            return None
        return measure.of(thread)

    @property
    def name(self) -> str:
        """Where it was."""
        words = f"{self.identity.board} {self.identity.kernel} {self.load}"
        seed = f" seed {self.identity.seed}"
        return f"{words}{seed}{f' start {self.start}' if self.starts > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Judged:
    """A budget of a thread in one start."""

    tested: SeenStart
    thread: OutsideThread | None
    """None: no thread has this name."""
    pattern: str
    measure: Measure
    limit: int
    value: int | None
    """None: not seen."""
    why: str
    """Why it was not seen; empty if it was."""

    @property
    def name(self) -> str:
        """That of the thread, or the pattern that none has."""
        return self.pattern if self.thread is None else self.thread.name

    @property
    def outcome(self) -> Outcome:
        """What became of it."""
        if self.value is None:
            return Outcome.NOT_SEEN
        return Outcome.BROKEN if self.value > self.limit else Outcome.KEPT

    @property
    def is_worst_cycle(self) -> bool:
        """Whether the value is that of a single cycle."""
        return self.measure.of_cycle is not None and self.measure.places is None

    @property
    def places(self) -> Mapping[Place, int]:
        """Where what is counted was, and how often, most often first."""
        if self.measure.places is None or self.thread is None or self.value is None:
            return {}
        counts = Counter(
            place for one in self.thread.cycles for place in self.measure.places(one)
        )
        return dict(counts.most_common())

    @property
    def cycle(self) -> OutsideCycle | None:
        """The cycle with the highest value; None if it is of no single one."""
        of = self.measure.of_cycle
        if of is None or self.thread is None or not self.value:
            return None
        return max(self.thread.cycles, key=of)


MOST_NAMES = 3
"""Of threads, in a sentence."""


def judge(test: ProgramTest, tested: Sequence[SeenStart]) -> tuple[Judged, ...]:
    """Return each budget of each thread in each start, in the order of the starts."""
    return tuple(one for start in tested for one in _of_start(test, start))


def outcome_of(judged: Sequence[Judged]) -> Outcome:
    """Return the worst outcome; without a budget it is kept."""
    order = list(Outcome)
    return min((one.outcome for one in judged), key=order.index, default=Outcome.KEPT)


def judged_threads(test: ProgramTest, outside: Outside) -> tuple[OutsideThread, ...]:
    """Return the threads that are judged: real-time ones, and those that are named."""
    return tuple(
        one
        for one in outside.threads
        if one.is_realtime or any(fnmatchcase(one.name, p) for p in test.threads)
    )


def period_of(test: ProgramTest, name: str) -> int | None:
    """Return the period that the test gives a thread; None: none."""
    return budget_of(test, name).period_ns


def budget_of(test: ProgramTest, name: str) -> BudgetTable:
    """Return the limits of a thread: those of its name in place of those of all."""
    values = _typed(test.budget)
    for pattern, table in test.threads.items():
        if fnmatchcase(name, pattern):
            values |= _typed(table)
    return BudgetTable(**values)  # type: ignore[arg-type]


def _typed(table: BudgetTable) -> dict[str, object]:
    every = ((one.name, getattr(table, one.name)) for one in fields(table))
    return {name: value for name, value in every if value is not None}


def _of_start(test: ProgramTest, start: SeenStart) -> Iterator[Judged]:
    threads = judged_threads(test, start.outside)
    for thread in threads:
        budget = budget_of(test, thread.name)
        for measure in MEASURES:
            limit = getattr(budget, _FIELD.get(measure.name, measure.name))
            if limit is not None:
                yield _judged(start, thread, measure, limit)
    for pattern, table in _unmet(test, threads).items():
        for measure in MEASURES:
            limit = getattr(table, _FIELD.get(measure.name, measure.name))
            if limit is not None:
                yield Judged(
                    *(start, None, pattern, measure, limit, None),
                    why=why_none(start.outside, pattern),
                )


def why_none(outside: Outside, pattern: str = "*") -> str:
    """Say why no thread of a name is judged; without one, no real-time thread."""
    if pattern != "*":
        return "no thread of this name had a whole cycle"
    names = list(dict.fromkeys(one.name for one in outside.threads))
    if not names:
        return "no thread had a whole cycle"
    more = [f"{len(names) - MOST_NAMES} more"] if names[MOST_NAMES:] else []
    who = enumeration([*names[:MOST_NAMES], *more])
    return f"no real-time thread: {who} {'are' if names[1:] else 'is'} ordinary"


def _unmet(
    test: ProgramTest, threads: Sequence[OutsideThread]
) -> Mapping[str, BudgetTable]:
    """Return the tables of limits that no thread has."""
    unmet = {
        pattern: table
        for pattern, table in test.threads.items()
        if not any(fnmatchcase(one.name, pattern) for one in threads)
    }
    return unmet if threads or unmet else {"*": test.budget}


def _judged(
    start: SeenStart, thread: OutsideThread, measure: Measure, limit: int
) -> Judged:
    value, why = start.value_of(measure, thread), ""
    if value is None:
        why = _why_unseen(start, measure, thread)
    elif start.outside.lost and value <= limit:
        value, why = None, f"{start.outside.lost:,} records were lost"
    elif start.doubts and value <= limit:
        value, why = None, start.doubts[0]
    return Judged(start, thread, thread.name, measure, limit, value, why)


def _why_unseen(start: SeenStart, measure: Measure, thread: OutsideThread) -> str:
    if measure.name == ALLOCATIONS:
        return start.hidden[thread.process]
    if measure.name == "missed":
        basis = "sleeps for intervals" if thread.basis else "has no period"
        return f"it {basis}: nothing is due; give a period"
    return "this kernel does not allow to see it"
