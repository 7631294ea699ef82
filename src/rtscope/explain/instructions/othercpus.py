"""
What other CPUs executed while this one, or the measured thread, waited. Pure.

A CPU that waits for another executes a loop: in a lock's slow path, in a function that
awaits an answer (`waits.toml`), or in any that looks at memory and pauses. The culprit
is what the other CPU did meanwhile; a helper in that only spent the time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rtscope.explain.instructions.absences import spin_of
from rtscope.explain.instructions.calls import (
    Frame,
    Run,
    delay_helpers,
    jumped_to,
    main_frame,
    plain,
    runs_of,
    spent_in,
    title_frame,
)
from rtscope.explain.instructions.contexts import shown
from rtscope.explain.model import OtherCpuActivity, Segment
from rtscope.record.instructions.section import (
    RecordKind,
    TaskSwitch,
    TraceSection,
    blocks_of,
    cpus_of,
)
from rtscope.record.instructions.symbols import SymbolTable

MOSTLY = 0.5
"""Of what a CPU executed: the innermost call with more than this is what it did."""


@dataclass(frozen=True, slots=True)
class OtherCpus:
    """All CPUs of a section but the one of its wake-up."""

    cpus: tuple[int, ...]
    section: TraceSection
    symbols: SymbolTable
    arch: str
    switches: Sequence[TaskSwitch] = ()
    _runs: dict[int, list[Run]] = field(default_factory=dict)
    """By CPU; filled when it is first asked for: few paths wait for a lock."""
    _delays: dict[int, frozenset[Frame]] = field(default_factory=dict)

    def attached_to(
        self, segment: Segment, expiry_ns: int, *, readers: str = ""
    ) -> Segment:
        """Return a segment with what these CPUs did in it; `readers`: see `between`."""
        begin_ns, end_ns = segment.begin_ns + expiry_ns, segment.end_ns + expiry_ns
        did = self.between(begin_ns, end_ns, readers=readers)
        return replace(segment, other_cpus=tuple(did))

    def between(
        self, begin_ns: int, end_ns: int, *, readers: str = ""
    ) -> Iterator[OtherCpuActivity]:
        """
        Return the activity of each CPU that ran between two times.

        `readers` is what ends a section of those that a grace period waits for: such a
        section that was open at the begin is what the CPU did, however little.
        """
        for cpu in self.cpus:
            runs = self.runs_on(cpu)
            inside = [
                _inside(run, begin_ns, end_ns)
                for run in overlapping(runs, begin_ns, end_ns)
            ]
            total = sum(run.executed_ns for run in inside)
            if total:
                reader = _open_section(inside, readers) if readers else None
                yield self._activity(cpu, inside, total, reader)

    def _activity(
        self, cpu: int, inside: Sequence[Run], total: int, reader: Frame | None
    ) -> OtherCpuActivity:
        of_reader = [run for run in inside if reader and reader in run.frame.chain()]
        longest = max(of_reader or inside, key=lambda run: run.executed_ns)
        task = self._task_at(cpu, longest.begin_ns)
        delays = self._delays_of(cpu)
        frame = reader or main_frame(inside, share=MOSTLY)
        if frame is None:
            name, own = spent_in(inside)[0]
            return OtherCpuActivity(cpu, plain(name), own / total, total)
        chain = list(frame.chain())
        names = tuple(shown(one) for one in chain)
        first = title_frame(chain, delays)
        jump = "" if reader else jumped_to(chain, names[first], delays)
        own = sum(run.executed_ns for run in inside if frame in run.frame.chain())
        return OtherCpuActivity(
            cpu,
            names[first],
            own / total,
            total,
            callers=names[first:],
            helper=names[0] if first else "",
            task=task.name if task else "",
            policy=task.policy if task else "",
            waits=spin_of(longest.frame) is not None,
            jumped_to=jump,
        )

    def calling(self, function: str) -> Sequence[Run]:
        """Return the runs of all those that called a function; without one, nothing."""
        begin = _begin_of(self.symbols, function)
        if begin is None:
            return ()
        called = (self.section.kinds == RecordKind.BLOCK) & (
            self.section.values == begin
        )
        cpus = cpus_of(self.section.cpus[called])
        return [r for cpu in self.cpus if cpu in cpus for r in self.runs_on(cpu)]

    def _task_at(self, cpu: int, at_ns: int) -> TaskSwitch | None:
        mine = [one for one in self.switches if one.cpu == cpu and one.at_ns <= at_ns]
        return mine[-1] if mine else None

    def runs_on(self, cpu: int) -> list[Run]:
        """Return what a CPU executed, in order."""
        if cpu not in self._runs:
            self._runs[cpu] = runs_of(
                blocks_of(self.section, cpu), self.symbols, arch=self.arch
            )
        return self._runs[cpu]

    def _delays_of(self, cpu: int) -> frozenset[Frame]:
        if cpu not in self._delays:
            self._delays[cpu] = delay_helpers(self.runs_on(cpu))
        return self._delays[cpu]


@lru_cache(maxsize=16)
def _begin_of(symbols: SymbolTable, function: str) -> int | None:
    """Return where a function begins; looked for once in a table of 100,000 names."""
    if function not in symbols.names:
        return None
    return int(symbols.starts[symbols.names.index(function)])


def _open_section(runs: Sequence[Run], end: str) -> Frame | None:
    """Return the call that ends a section which none of these runs has begun."""
    depth, seen = 0, set[Frame]()
    for run in runs:
        frame, name = run.frame, plain(run.frame.name)
        if frame in seen or name not in (end, end.replace("unlock", "lock")):
            continue
        seen.add(frame)
        depth += -1 if name == end else 1
        if depth < 0:
            return frame.caller
    return None


def overlapping(runs: Sequence[Run], begin_ns: int, end_ns: int) -> Sequence[Run]:
    """
    Return the runs of one CPU that were partly between two times.

    Each ends where the next begins, so both are in order: a path may wait for a lock
    some 10,000 times, and looking at every run each time took minutes.
    """
    first = bisect_right(runs, begin_ns, key=lambda run: run.end_ns)
    return runs[
        first : bisect_left(runs, end_ns, lo=first, key=lambda run: run.begin_ns)
    ]


def _inside(run: Run, begin_ns: int, end_ns: int) -> Run:
    """Return what of a run was between two times: it executes first, then pauses."""
    if begin_ns <= run.begin_ns and run.end_ns <= end_ns:
        return run
    since, until = max(run.begin_ns, begin_ns), min(run.end_ns, end_ns)
    executed_ns = min(run.begin_ns + run.executed_ns, until) - since
    return replace(run, begin_ns=since, end_ns=until, executed_ns=max(0, executed_ns))
