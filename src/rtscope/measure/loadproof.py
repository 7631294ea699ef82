"""
What each process of a load did while samples were taken: the proof that it ran. Pure.

The guard of the load reports its processes in windows of a second or more. A process
that dies, is stopped or idles is named with its time. What counts as idle differs from
load to load, and is a row of `loads.toml`.

A process with children is not expected to work itself: stress-ng's parents wait for
theirs. Where processes are replaced by others of their name all the time, they are
taken together: each lives too briefly to be watched by itself. Then the CPU time of
the load as a whole must tell whether they worked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypedDict

from rtscope.contract import LoadTick, LoadWindow, ProcessInWindow
from rtscope.host.units import NS_PER_S
from rtscope.measure.loads import Load
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.model import WorkerLapse, WorkerRecord

MIN_JUDGED_NS = NS_PER_S // 2
"""A shorter window has too few ticks of CPU time to tell a share of it."""

MAX_NAMED = 3
"""In a caveat; the record and the report have all."""

DEAD = frozenset({"gone", "Z", "X"})
STOPPED = frozenset({"T", "t"})
DISK = "D"

Identity = tuple[int, int]
"""The pid and the start of a process."""
What = Literal["died", "stopped", "idle"]

CAVEATS: Mapping[What, str] = {
    "died": "worker_died",
    "stopped": "worker_stopped",
    "idle": "worker_idle",
}


@dataclass(frozen=True)
class LoadProof:
    """The windows of one run, seen from its measurement (start, end)."""

    load: Load
    argv: tuple[str, ...]
    windows: Sequence[LoadWindow]
    """As they came, from the start of the load to its end."""
    span_ns: tuple[int, int]
    ticks: Sequence[LoadTick] = ()
    """CPU time of the whole load: all that is known of processes that live briefly."""

    @cached_property
    def workers(self) -> tuple[WorkerRecord, ...]:
        """Every process seen during the measurement; empty if nothing was watched."""
        short = self._short_lived
        seen = [one for one in self._processes if one.name not in short or one.waits]
        together = [self._together(name) for name in sorted(short)]
        records = (*(self._record(one) for one in seen), *together)
        return tuple(w for w in records if w is not None)

    def caveats(self, *, ended_early: bool) -> Iterator[Caveat]:
        """Yield what was missing; of a load that ended early only what is left."""
        if not self.windows:
            return
        for what, name in CAVEATS.items():
            if what == "died" and ended_early:
                continue  # all of them did, and another caveat says it
            named = [
                f"{_who(worker)} {lapse.in_words}"
                for worker in self.workers
                for lapse in worker.lapses
                if lapse.what == what
            ]
            if named:
                more = len(named) - MAX_NAMED
                rest = (f"and {more} more",) if more > 0 else ()
                yield make(name, "; ".join((*named[:MAX_NAMED], *rest)))
        yield from self._unwatched()

    def _unwatched(self) -> Iterator[Caveat]:
        if most := max((w.not_watched for w in self._within), default=0):
            yield make("load_unproved", f"{most} of its processes were not watched")
        expected = _worker_count(self.load, self.argv)
        working = sum(w.processes for w in self.workers if not w.waits)
        if expected is not None and working < expected:
            yield make("load_unproved", f"{working} of {expected} workers were seen")

    @cached_property
    def _within(self) -> tuple[LoadWindow, ...]:
        start_ns, end_ns = self.span_ns
        return tuple(
            w for w in self.windows if w.to_ns > start_ns and w.from_ns < end_ns
        )

    @cached_property
    def _processes(self) -> tuple["_Process", ...]:
        """Those that were there in the measurement, or should have been."""
        inside = {id(w) for w in self._within}
        parents = {p.parent for w in self.windows for p in w.processes}
        by_process: dict[Identity, list[tuple[LoadWindow, ProcessInWindow]]] = {}
        there: set[Identity] = set()
        for window in self.windows:
            if window.from_ns >= self.span_ns[1]:
                break
            for process in window.processes:
                key = (process.pid, process.started_ns)
                by_process.setdefault(key, []).append((window, process))
                if id(window) in inside:
                    there.add(key)
        # One of a fixed set that died before the measurement was missing in all of it.
        kept = (
            by_process
            if self._fixed
            else {k: v for k, v in by_process.items() if k in there}
        )
        return tuple(
            _Process(tuple(_moments(seen)), waits=pid in parents)
            for (pid, _), seen in kept.items()
        )

    @property
    def _fixed(self) -> bool:
        return not self.load.alive.short_lived

    @cached_property
    def _short_lived(self) -> frozenset[str]:
        """Names whose processes end and are replaced during the measurement."""
        if self._fixed or not self.windows:
            return frozenset()
        first = self.windows[0]
        born = {p.name for p in self._processes if p.moments[0].window is not first}
        died = {p.name for p in self._processes if p.moments[-1].is_dead}
        return frozenset(born & died)

    def _together(self, name: str) -> WorkerRecord | None:
        alike = [p for p in self._processes if p.name == name and not p.waits]
        if not alike:
            return None
        moments = [m for p in alike for m in p.moments if self._inside(m)]
        return WorkerRecord(
            name=name,
            pid=None,
            processes=len(alike),
            waits=False,
            least_share=None,
            most_share=None,
            **_totals(moments),
            lapses=tuple(self._idle_times()),
        )

    def _idle_times(self) -> Iterator[WorkerLapse]:
        """Yield when all processes of the load together hardly ran."""
        start_ns, end_ns = self.span_ns
        since: LoadTick | None = None
        inside = [t for t in self.ticks if start_ns <= t.t_ns <= end_ns]
        for before, after in pairwise(inside):
            needed = self.load.alive.cpu_percent / 100 * (after.t_ns - before.t_ns)
            if after.cpu_ns - before.cpu_ns < needed:
                since = since or before
            elif since is not None:
                yield _idle(since, before, start_ns)
                since = None
        if since is not None:
            yield replace(_idle(since, inside[-1], start_ns), until_ns=None)

    def _record(self, one: "_Process") -> WorkerRecord:
        moments = [m for m in one.moments if self._inside(m)]
        shares = [m.share for m in one.moments if self._is_judged(one, m)]
        return WorkerRecord(
            name=one.name,
            pid=one.pid,
            processes=1,
            waits=one.waits,
            least_share=min(shares, default=None),
            most_share=max(shares, default=None),
            **_totals(moments),
            lapses=tuple(self._lapses(one)),
        )

    def _inside(self, moment: "_Moment") -> bool:
        return moment.window.to_ns > self.span_ns[0]

    def _is_judged(self, one: "_Process", moment: "_Moment") -> bool:
        """Whether the CPU time in a window tells how it worked in the measurement."""
        window = moment.window
        (start_ns, end_ns), length_ns = self.span_ns, window.to_ns - window.from_ns
        overlap_ns = min(end_ns, window.to_ns) - max(start_ns, window.from_ns)
        return (
            moment is not one.moments[0]  # it may have begun in mid-window
            and moment.process.cpu_ns is not None
            and not moment.is_dead
            and length_ns >= MIN_JUDGED_NS
            and 2 * overlap_ns >= length_ns
        )

    def _lapses(self, one: "_Process") -> Iterator[WorkerLapse]:
        start_ns, _ = self.span_ns
        open_: tuple[What, LoadWindow] | None = None
        for moment in one.moments:
            what = self._lapse_in(one, moment, open_[0] if open_ else None)
            if open_ and what != open_[0]:
                yield _lapse(*open_, until=moment.window, start_ns=start_ns)
                open_ = None
            if what and not open_:
                open_ = what, moment.window
        if open_:
            yield _lapse(*open_, until=None, start_ns=start_ns)

    def _lapse_in(
        self, one: "_Process", moment: "_Moment", before: What | None
    ) -> What | None:
        if moment.is_dead:
            return "died"
        inside = self._inside(moment)
        if inside and moment.process.state in STOPPED:
            return "stopped"
        if one.waits:
            return None
        if not self._is_judged(one, moment):
            # too short to judge: it ends no lapse
            return before if inside and before == "idle" else None
        return None if self._is_alive(moment) else before or "idle"

    def _is_alive(self, moment: "_Moment") -> bool:
        signs, process = self.load.alive, moment.process
        seconds = (moment.window.to_ns - moment.window.from_ns) / NS_PER_S
        preemptions = process.involuntary_switches or 0
        switches = (process.voluntary_switches or 0) + preemptions
        return (
            moment.share >= signs.cpu_percent / 100 * self._share_alone
            or (signs.preempted and preemptions > 0)
            or (signs.disk_wait and process.state == DISK)
            or (
                signs.switches_per_s is not None
                and switches >= signs.switches_per_s * seconds
            )
        )

    @cached_property
    def _share_alone(self) -> float:
        """The share of a CPU that a worker would have if nothing else ran."""
        workers = _worker_count(self.load, self.argv)
        working = sum(not p.waits for p in self._processes)
        # A worker of stress-ng for each CPU; some are pairs that take turns.
        return min(1.0, workers / working) if workers and working else 1.0


@dataclass(frozen=True)
class _Moment:
    """A process in one window."""

    window: LoadWindow
    process: ProcessInWindow
    is_dead: bool

    @property
    def share(self) -> float:
        """Its CPU time, as a share of one CPU."""
        length_ns = self.window.to_ns - self.window.from_ns
        return (self.process.cpu_ns or 0) / length_ns if length_ns > 0 else 0.0


def _moments(
    seen: Sequence[tuple[LoadWindow, ProcessInWindow]],
) -> Iterator[_Moment]:
    """
    Tell for each window whether the process was dead at its end.

    A process whose first thread has ended looks like a zombie, and works on; one that
    has died may have worked before, in the window in which it did.
    """
    works = [bool(process.cpu_ns) for _, process in seen]
    for i, (window, process) in enumerate(seen):
        before = i > 0 and seen[i - 1][1].state in DEAD
        headless = works[i] and (before or works[i + 1 : i + 2] == [True])
        yield _Moment(window, process, process.state in DEAD and not headless)


@dataclass(frozen=True)
class _Process:
    """A process in all windows in which it was seen."""

    moments: tuple[_Moment, ...]
    waits: bool

    @property
    def name(self) -> str:
        return self.moments[-1].process.name

    @property
    def pid(self) -> int:
        return self.moments[0].process.pid


class _Totals(TypedDict):
    """What a record says of a process over all windows together."""

    cpu_ns: int
    voluntary_switches: int
    involuntary_switches: int


def _totals(moments: Sequence[_Moment]) -> _Totals:
    return {
        "cpu_ns": sum(m.process.cpu_ns or 0 for m in moments),
        "voluntary_switches": sum(m.process.voluntary_switches or 0 for m in moments),
        "involuntary_switches": sum(
            m.process.involuntary_switches or 0 for m in moments
        ),
    }


def _idle(since: LoadTick, until: LoadTick, start_ns: int) -> WorkerLapse:
    from_ns, to_ns = since.t_ns - start_ns, until.t_ns - start_ns
    return WorkerLapse("idle", after_ns=from_ns, by_ns=to_ns, until_ns=to_ns)


def _who(worker: WorkerRecord) -> str:
    if worker.pid is None:
        return f"{worker.name} ({worker.processes} short-lived)"
    return f"{worker.name} (pid {worker.pid})"


def _lapse(
    what: What, window: LoadWindow, *, until: LoadWindow | None, start_ns: int
) -> WorkerLapse:
    # A stopped process is seen well again at a look, an idle one from the last look on.
    end_ns = None
    if until is not None:
        end_ns = (until.from_ns if what == "idle" else until.to_ns) - start_ns
    return WorkerLapse(
        what=what,
        after_ns=window.from_ns - start_ns,
        by_ns=window.to_ns - start_ns,
        until_ns=end_ns,
    )


def _worker_count(load: Load, argv: Sequence[str]) -> int | None:
    """Return the number of workers in stress-ng's command; None without one."""
    if not load.argv or load.argv[0] not in argv:
        return None
    after = argv.index(load.argv[0]) + 1
    return int(argv[after]) if after < len(argv) and argv[after].isdecimal() else None
