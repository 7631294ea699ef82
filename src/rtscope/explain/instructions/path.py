"""
The path to one wake-up: all that its explanation is made from, and where it ends. Pure.

The runs of its CPU, their contexts and tasks, the absences of the thread, the
milestones, and what is known of the other CPUs. `causes.py` has the cause of each run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rtscope.explain.instructions.absences import (
    Absence,
    Tasks,
    Wait,
    absences_of,
    ends_of_waits,
    spins,
    tasks_of,
)
from rtscope.explain.instructions.calls import (
    Frame,
    Run,
    delay_helpers,
    is_clock,
    may_merge,
    plain,
    runs_in,
    split_at,
)
from rtscope.explain.instructions.contexts import (
    Context,
    IrqFlags,
    contexts_of,
    irq_flags_of,
    preempt_counts_of,
)
from rtscope.explain.instructions.elsewhere import (
    ThreadsCpu,
    expired_elsewhere,
    reached_ns,
    telling,
    with_queue,
)
from rtscope.explain.instructions.holders import InPlace, Locks, over_quota
from rtscope.explain.instructions.milestones import (
    Milestones,
    PutOff,
    find_milestones,
    put_off,
    ticked_at,
)
from rtscope.explain.instructions.othercpus import OtherCpus, countdowns
from rtscope.explain.instructions.released import Release, of_awake, released
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import (
    PERIOD,
    SAYS_SO,
    CompetingTasks,
    competing_tasks,
    switch_to,
)
from rtscope.explain.instructions.stretches import stretches_of
from rtscope.explain.instructions.wakers import NOBODY, Awaited, Wakers
from rtscope.record.instructions.section import (
    TraceSection,
    blocks_of,
    executing_cpus,
    task_switches,
)
from rtscope.record.instructions.symbols import USER, SymbolTable

# --- where the program read the clock that its latency is from: there a path ends -----

_NOT_OF_THE_CALL = frozenset(
    {Role.INTERRUPT, Role.DISPATCH, Role.SOFTIRQ, Role.SCHEDULE, Role.PREEMPT}
)


def read_ns(runs: Sequence[Run]) -> int | None:
    """
    Return when the last system call before the mark read the clock, in virtual ns.

    None if the program read it by itself.
    """
    for run in reversed(runs):
        within = run.frame.within
        if Role.SLEEP in within or Role.SWITCH in within:
            return None
        if Role.READ_CLOCK in within and _reads(run):
            return run.end_ns
    return None


def _reads(run: Run) -> bool:
    if not is_clock(plain(run.frame.name)):
        return False
    for frame in run.frame.chain():
        if frame.role is Role.READ_CLOCK:
            return True
        if frame.role in _NOT_OF_THE_CALL:
            return False
    return False


def until_read(
    section: TraceSection, runs: list[Run]
) -> tuple[TraceSection, list[Run]]:
    """Return the path with its runs, cut off where the clock was read."""
    end_ns = read_ns(runs)
    if end_ns is None:
        return section, runs
    kept = [run for run in runs if run.end_ns <= end_ns]
    return replace(section, last_ns=end_ns), kept


# --- the path to one wake-up: all that its explanation is made from -------------------

_OF_RT = "rt_spin_lock"
"""Only PREEMPT_RT has spin locks that sleep."""


@dataclass(frozen=True, slots=True)
class WakeupPath:
    """All that the cause of a segment is found from."""

    runs: Sequence[Run]
    contexts: Sequence[Context]
    milestones: Milestones
    competing: CompetingTasks
    tasks: Tasks
    delays: frozenset[Frame]
    """The calls that only spent time."""
    countdowns: frozenset[Frame]
    """The calls with loops that pause, and wait for nobody."""
    absences: Sequence[Absence]
    """Of the measured thread, that ended after the expiry."""
    held: Absence | None
    """The absence at the expiry, if something held the thread back."""
    in_place: Sequence[InPlace]
    """Who ran in the place of the holders of the locks that the thread waited for."""
    expiry_ns: int
    flags: IrqFlags
    section: TraceSection
    own: ThreadsCpu
    """What this CPU did, before its runs were cut where waits ended."""
    others: OtherCpus
    awaited: Mapping[int, Awaited]
    """Who made the thread wait and who ended that, by the begins of its absences."""
    spins: Mapping[str, Wait]
    """The functions that loop until another CPU is done."""
    ticked: int | None
    """Until this run a timer waited for the tick, as high-resolution timers are off."""
    put_off: PutOff | None
    """When the kernel let the timer's interrupt wait."""
    switching: frozenset[Frame]
    """The calls in which the CPU switched to another task."""
    is_rt: bool
    """The kernel is PREEMPT_RT's."""
    unread_ns: int
    """From the reading of the clock, where the path ends, to the mark behind it."""
    own_from: int | None
    """Where the thread's own code begins, if the path goes on behind the wake-up."""

    is_timed: bool
    """A timer woke the thread."""

    @property
    def begins_with(self) -> str:
        """What its times are since, in a word."""
        return "the expiry" if self.is_timed else "the event"

    @property
    def readers(self) -> str:
        """What ends the sections that the thread awaited the end of; or empty."""
        return next((one.readers for one in self.absences if one.readers), "")


Cpus = tuple[ThreadsCpu, OtherCpus]
"""The CPU of a wake-up, and the others."""


def wakeup_path(
    section: TraceSection,
    symbols: SymbolTable,
    *,
    arch: str,
    to_the_end: bool = False,
    release: Release | None = None,
    cpus: Cpus | None = None,
) -> WakeupPath:
    """
    Return all that one wake-up is explained from; without `release` a timer's.

    `cpus` are those of `all_cpus`, if they are known.
    """
    marked_ns = section.last_ns
    own, others = cpus or all_cpus(section, symbols, arch=arch, to_the_end=to_the_end)
    section, switches, here = others.section, others.switches, own.switches
    runs, contexts = own.runs, own.contexts
    expiry_ns = section.last_ns - section.latency_ns
    tasks, loops = tasks_of(section.cpu, switches, runs), spins()
    found = absences_of(section, symbols, runs, tasks, switches)
    absences = _of_wakeup(found, expiry_ns, own, others, release)
    if exact := [one.runnable_ns for one in absences if one.is_end_exact]:
        runs = split_at(runs, exact)
        contexts, tasks = contexts_of(runs), tasks_of(section.cpu, switches, runs)
    over = over_quota(absences, runs, tasks, here)
    quotas = [one for one in over if one.runnable_ns > expiry_ns]
    held = _held_at(expiry_ns, absences, quotas)
    absences += [*quotas, *_moved([*absences, *quotas], runs, others)]
    locks = _locks(symbols, absences, runs, others)
    absences = [_with_holder(one, locks) for one in absences]
    awaited = _awaited(absences, section.latency_ns, runs, others)
    absences = [_of_interrupt(one, awaited) for one in absences]
    milestones = _milestones(own, runs, contexts, tasks, expiry_ns, held, release)
    competing = competing_tasks(
        runs,
        milestones,
        symbols.names,
        switches=here,
        elsewhere=others.calling(PERIOD),
        has_quota=bool(quotas),
        is_held=held is not None,
        queued=held.queued if held else None,
    )
    return WakeupPath(
        runs=runs,
        contexts=contexts,
        milestones=milestones,
        competing=competing,
        tasks=tasks,
        delays=own.delays,
        countdowns=countdowns(section, runs),
        absences=absences,
        held=held,
        in_place=[time for one in absences for time in locks.in_place_of_holder(one)],
        expiry_ns=expiry_ns,
        flags=own.flags,
        section=section,
        own=own,
        others=others,
        awaited=awaited,
        spins=loops,
        ticked=ticked_at(runs, contexts, milestones, own.flags),
        put_off=put_off(runs, milestones),
        switching=_switching(runs),
        is_rt=symbols.address_of(_OF_RT) is not None,
        unread_ns=marked_ns - section.last_ns,
        own_from=_own_from(runs, tasks, milestones) if to_the_end else None,
        is_timed=release is None,
    )


def _milestones(
    own: ThreadsCpu,
    runs: Sequence[Run],
    contexts: Sequence[Context],
    tasks: Tasks,
    expiry_ns: int,
    held: Absence | None,
    release: Release | None,
) -> Milestones:
    if release is not None and held is None:
        return of_awake(runs, expiry_ns, release.entered_ns)
    ran_ns = (reached_ns(held, own.cpu, runs, contexts), held.end_ns) if held else None
    arrivals_ns = tasks.arrivals_ns
    return find_milestones(
        runs, contexts, expiry_ns, arrivals_ns=arrivals_ns, held=ran_ns
    )


def _of_wakeup(
    found: Iterable[Absence],
    expiry_ns: int,
    own: ThreadsCpu,
    others: OtherCpus,
    release: Release | None,
) -> list[Absence]:
    """Return the absences that go on after the expiry, with the end of each wait."""
    if release is not None and release.entered_ns is not None:
        return []
    later = (one for one in found if one.end_ns > expiry_ns)
    absences = [_of_old_page(one, expiry_ns) for one in later]
    if release is not None:
        runs_on = runs_of_all(own.runs, others)
        return released(
            absences,
            release,
            own,
            runs_on,
            section=others.section,
            says_so=SAYS_SO in others.symbols.names,
        )
    return [_with_its_end(one, own, expiry_ns, others) for one in absences]


def _own_from(runs: Sequence[Run], tasks: Tasks, milestones: Milestones) -> int | None:
    """Return the first run of the thread's own code, once it has its CPU."""
    if milestones.switched is None:
        return None
    behind = range(milestones.switched, len(runs))
    own = (i for i in behind if runs[i].frame.name == USER and tasks.measured[i])
    return next(own, None)


def all_cpus(
    section: TraceSection, symbols: SymbolTable, *, arch: str, to_the_end: bool = False
) -> Cpus:
    """
    Return the CPU of the wake-up, until it read the clock, and the others.

    `to_the_end`: until the section ends, however often the thread reads it.
    """
    blocks, switches = blocks_of(section, section.cpu), task_switches(section)
    elsewhere = tuple(cpu for cpu in executing_cpus(section) if cpu != section.cpu)
    here = [one for one in switches if one.cpu == section.cpu]
    changed = [one.at_ns for one in here if one.changed]
    executed = telling(blocks, section.block_ns)
    stretches = stretches_of(blocks, symbols, may_merge, arch=arch)
    del blocks  # of a long path, each of these is many megabytes
    runs, is_merged = split_at(runs_in(stretches), changed), stretches.is_merged
    del stretches
    if not to_the_end:
        section, runs = until_read(section, runs)
    own = ThreadsCpu(
        cpu=section.cpu,
        executed=executed,
        is_merged=is_merged,
        runs=runs,
        delays=delay_helpers(runs),
        contexts=contexts_of(runs),
        flags=irq_flags_of(section),
        counts=preempt_counts_of(section),
        switches=here,
    )
    return own, OtherCpus(elsewhere, section, symbols, arch, switches)


def _switching(runs: Sequence[Run]) -> frozenset[Frame]:
    found: set[Frame] = set()
    for run in runs:
        if run.frame.role is Role.SWITCH:
            found.update(run.frame.chain())
    return frozenset(found)


def _of_old_page(absence: Absence, expiry_ns: int) -> Absence:
    """Return an absence as one for an old page, if it is for a page since before."""
    if absence.wait is not Wait.PAGE or absence.begin_ns > expiry_ns:
        return absence
    return replace(absence, wait=Wait.OLD_PAGE)


def _held_at(
    expiry_ns: int, absences: Sequence[Absence], quotas: Sequence[Absence]
) -> Absence | None:
    """Return what kept the thread from running when its timer expired."""
    first = (*absences[:1], *quotas[:1])
    at_expiry = (one for one in first if one.begin_ns <= expiry_ns)
    return next((one for one in at_expiry if one.cause is not None), None)


def _with_its_end(
    absence: Absence, own: ThreadsCpu, expiry_ns: int, others: OtherCpus
) -> Absence:
    """Return an absence with what other CPUs had to do with its end."""
    return with_queue(
        expired_elsewhere(absence, own, expiry_ns, others),
        switch_to(absence.end_ns, own.switches),
        own.cpu,
        runs_of_all(own.runs, others),
        says_so=SAYS_SO in others.symbols.names,
    )


def runs_of_all(
    runs: Sequence[Run], others: OtherCpus
) -> Callable[[int], Sequence[Run]]:
    """Return what finds the runs of any CPU; `runs` are of the wake-up's."""
    return lambda cpu: runs if cpu == others.section.cpu else others.runs_on(cpu)


def _locks(
    symbols: SymbolTable,
    absences: Sequence[Absence],
    runs: Sequence[Run],
    others: OtherCpus,
) -> Locks:
    """Return what is known of locks, if the thread waited for one."""
    runs_on = runs_of_all(runs, others)
    if all(one.holder is None for one in absences):
        return Locks((), (), runs_on)
    releases = ends_of_waits(Wait.LOCK, others.section, symbols, others.switches)
    return Locks(releases, others.switches, runs_on)


def _moved(
    absences: Sequence[Absence], runs: Sequence[Run], others: OtherCpus
) -> list[Absence]:
    """Return when the thread was in the queue of another CPU."""
    wakers = Wakers(others, runs_of_all(runs, others))
    return list(filter(None, map(wakers.moved, absences)))


_SHORT = 50
"""Of an absence that is shorter than one in so many parts of a latency, nobody asks."""


def _awaited(
    absences: Sequence[Absence],
    latency_ns: int,
    runs: Sequence[Run],
    others: OtherCpus,
) -> Mapping[int, Awaited]:
    """Return who made the thread wait and who ended that, of each long absence."""
    wakers = Wakers(others, runs_of_all(runs, others))
    long = (
        one for one in absences if _SHORT * (one.end_ns - one.begin_ns) > latency_ns
    )
    return {one.begin_ns: wakers.of(one) for one in long if one.cause is not None}


def _of_interrupt(absence: Absence, awaited: Mapping[int, Awaited]) -> Absence:
    """Return an absence as one for an interrupt, if one ended it."""
    end = awaited.get(absence.begin_ns, NOBODY).end
    if absence.wait is not Wait.THREAD or end is None or not end.is_interrupts:
        return absence
    return replace(absence, wait=Wait.INTERRUPT)


def _with_holder(absence: Absence, locks: Locks) -> Absence:
    """Return an absence with what the holder of its lock waited for itself."""
    sleep = locks.sleep_of_holder(absence)
    return absence if sleep is None else replace(absence, asleep=sleep)
