"""
Threads with fixed priorities on some CPUs, simulated: what a hidden worst case costs.

A thread is released by its period and its phase, executes a body of runs and locks, and
preempts who has a lower priority on its CPU. Locks are plain, without inheritance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rtscope.verbs.test.search.trials import Instant

Part = tuple[str, int | str]
"""`("run", ns)`, `("lock", name)` or `("unlock", name)`."""


@dataclass(frozen=True)
class Simulated:
    """A thread of a simulated program."""

    name: str
    priority: int
    period_ns: int
    body: tuple[Part, ...]
    phase_ns: int = 0
    cpu: int = 0


@dataclass(frozen=True)
class Worst:
    """The worst cycle of the judged thread."""

    response_ns: int
    involved: frozenset[str]
    instants: tuple[Instant, ...]
    waits_ns: tuple[tuple[int, int], ...] = ()


@dataclass
class _Job:
    thread: Simulated
    release_ns: int
    part: int = 0
    left_ns: int = 0
    waits_for: str = ""
    asked: bool = False


@dataclass
class _Machine:
    now_ns: int = 0
    ready: list[_Job] = field(default_factory=list)
    holder: dict[str, str] = field(default_factory=dict)
    running: dict[int, _Job] = field(default_factory=dict)
    events: list[tuple[str, str, int]] = field(default_factory=list)
    done: list[tuple[_Job, int]] = field(default_factory=list)
    blockers: dict[tuple[str, int], set[str]] = field(default_factory=dict)

    def note(self, job: _Job, kind: str) -> None:
        self.events.append((job.thread.name, kind, self.now_ns))


def simulate(
    threads: Sequence[Simulated],
    phases_ns: Mapping[str, int],
    *,
    judged: str,
    until_ns: int,
) -> Worst:
    """Execute the threads with these phases and return the judged one's worst cycle."""
    machine = _Machine()
    releases = sorted(
        (at, -thread.priority, number)
        for number, thread in enumerate(threads)
        for at in range(
            thread.phase_ns + phases_ns.get(thread.name, 0), until_ns, thread.period_ns
        )
    )
    for at_ns, _, number in releases:
        _go_on(machine, at_ns)
        job = _Job(threads[number], at_ns)
        machine.note(job, "release")
        machine.ready.append(job)
    _go_on(machine, until_ns)
    return _worst(machine, judged)


def _worst(machine: _Machine, judged: str) -> Worst:
    cycles = [(end - job.release_ns, job) for job, end in machine.done]
    response, job = max(
        ((r, j) for r, j in cycles if j.thread.name == judged),
        key=lambda one: (one[0], -one[1].release_ns),
    )
    direct = machine.blockers.get((judged, job.release_ns), set())
    instants = tuple(
        Instant(name, kind, at - job.release_ns) for name, kind, at in machine.events
    )
    return Worst(
        response,
        frozenset(direct - {judged}),
        instants,
        _waits(instants, judged, response),
    )


def _waits(
    instants: Sequence[Instant], judged: str, response_ns: int
) -> tuple[tuple[int, int], ...]:
    """Return when the judged thread waited for a lock in its worst cycle."""
    waits, asked_ns = [], None
    for one in instants:
        if one.party != judged or not 0 <= one.at_ns <= response_ns:
            continue
        if one.kind == "asks":
            asked_ns = one.at_ns
        elif one.kind == "locked" and asked_ns is not None:
            waits.append((asked_ns, one.at_ns))
    return tuple((begin, end) for begin, end in waits if end > begin)


def _go_on(machine: _Machine, until_ns: int) -> None:
    while True:
        chosen = _schedule(machine)
        if not chosen:
            machine.now_ns = max(machine.now_ns, until_ns)
            return
        left = min(job.left_ns for job in chosen)
        step = min(left, until_ns - machine.now_ns)
        machine.now_ns += step
        for job in chosen:
            job.left_ns -= step
            if job.left_ns == 0:
                job.part += 1
        if machine.now_ns >= until_ns:
            _schedule(machine)
            return


def _schedule(machine: _Machine) -> list[_Job]:
    """Take and leave locks until every CPU's first job has time to execute."""
    while True:
        chosen: dict[int, _Job] = {}
        for job in sorted(
            machine.ready, key=lambda j: (-j.thread.priority, j.release_ns)
        ):
            if job.waits_for and machine.holder.get(job.waits_for):
                continue
            chosen.setdefault(job.thread.cpu, job)
        for cpu, job in chosen.items():
            if machine.running.get(cpu) is not job:
                machine.note(job, "running")
                machine.running[cpu] = job
        if not any([_advance(machine, job) for job in chosen.values()]):
            _note_blockers(machine, chosen)
            return list(chosen.values())


def _advance(machine: _Machine, job: _Job) -> bool:
    """Do what takes no time; return whether the choice of jobs may be another."""
    if job.part == len(job.thread.body):
        machine.ready.remove(job)
        machine.note(job, "stopped")
        machine.done.append((job, machine.now_ns))
        machine.running.pop(job.thread.cpu, None)
        return True
    kind, value = job.thread.body[job.part]
    if kind == "run":
        if job.left_ns == 0:
            job.left_ns = int(value)
        return False
    if kind == "unlock":
        machine.holder.pop(str(value), None)
        machine.note(job, "unlocked")
        job.part += 1
        return True
    if not job.asked:
        machine.note(job, "asks")
        job.asked = True
    if machine.holder.get(str(value)):
        job.waits_for = str(value)
        return True
    machine.holder[str(value)] = f"{job.thread.name}"
    machine.note(job, "locked")
    job.waits_for, job.asked = "", False
    job.part += 1
    return True


def _note_blockers(machine: _Machine, chosen: Mapping[int, _Job]) -> None:
    for job in machine.ready:
        by = machine.blockers.setdefault((job.thread.name, job.release_ns), set())
        if job.waits_for in machine.holder:
            by.add(machine.holder[job.waits_for])
        elif chosen.get(job.thread.cpu) is not job:
            by.add(chosen[job.thread.cpu].thread.name)
