"""
From the recorded path of a virtual board to an explanation. Pure.

The path has every block that was executed from well before the expiry until the mark:
nothing is sampled, and nothing guessed but the meaning of functions' names.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rtscope.exectrace.file import TraceSection
from rtscope.exectrace.symbols import SymbolTable
from rtscope.explain.instructions.calls import (
    FIRMWARE,
    THREAD,
    Context,
    Frame,
    Role,
    Run,
    callback_of,
    contexts_of,
    is_call_while_idle,
    main_frame,
    plain,
    role_of,
    runs_of,
    spent_in,
)
from rtscope.explain.instructions.milestones import (
    Milestones,
    Tasks,
    armed_overdue,
    find_milestones,
    idle_end,
    is_one_delivery,
    tasks_of,
)
from rtscope.explain.instructions.scheduling import (
    PERIOD,
    CompetingTasks,
    IrqFlags,
    IrqsOff,
    OtherCpus,
    competing_tasks,
    irq_flags_of,
    irqs_off_at,
    other_cpus,
    sleeps_in_fault,
)
from rtscope.explain.model import (
    COMPETING_TASKS,
    Cause,
    Confidence,
    Explanation,
    OtherCpuActivity,
    Part,
    Segment,
    joined,
)

NAMES_KEPT = 5
NEARLY_ALL = 0.9
"""Of a segment: executed in the call that it is named after, and what that called."""
CHAIN_SHOWN = 6
ASLEEP = "(asleep)"
# An idle CPU finds the calls of others by itself, without an interrupt.
_ENTRY = frozenset({Role.INTERRUPT, Role.TRAP, Role.IDLE})
_SOFTIRQ = frozenset({Role.SOFTIRQ})
_LED_TO = frozenset({Role.INTERRUPT, Role.TRAP, Role.DISPATCH, Role.SOFTIRQ})
OF_A_TASK = COMPETING_TASKS | {
    *(Cause.INTERRUPTS_OFF, Cause.PREEMPTION_OFF, Cause.LOCK, Cause.DELIVERY),
    Cause.LATE_TIMER,
}
"""Causes whose code belongs to a task: it is named."""
CONTENDED_INSTRUCTIONS = 100
"""More than any of the lock functions takes if the lock is free."""
DELIVERED_BETWEEN_QUANTA = (
    "interrupts were on: a virtual board checks its timers between the quanta of its "
    "CPUs, so up to two quanta of this are an artefact"
)


@dataclass(frozen=True, slots=True)
class _WakeupPath:
    """All that the cause of a segment is found from."""

    runs: Sequence[Run]
    contexts: Sequence[Context]
    milestones: Milestones
    competing: CompetingTasks
    tasks: Tasks
    expiry: int
    """By the count of instructions; or where the board woke, if it slept then."""
    slept_ns: int
    """How long the whole board slept after the true expiry."""
    awake_ns: int
    """What it executed while the thread slept; 0 if the board did not."""
    shift: int
    irqs_off: IrqsOff | None
    """Interrupts that were off at the expiry."""
    flags: IrqFlags
    section: TraceSection
    others: OtherCpus

    def ns(self, count: int) -> int:
        """Return virtual time since the expiry of an instruction count."""
        return self.slept_ns + ((count - self.expiry) << self.shift)


def explain_path(
    section: TraceSection, symbols: SymbolTable, *, arch: str, shift: int
) -> Explanation:
    """Explain one of the worst wake-ups; 2^`shift` ns pass with each instruction."""
    path = _wakeup_path(section, symbols, arch=arch, shift=shift)
    segments = [*_system_idle(path), *_unrecorded(path), *_segments(path)]
    return Explanation(
        section.cpu,
        section.sequence,
        section.latency_ns,
        joined(segments),
        tuple(_notes(path)),
        path.slept_ns - path.awake_ns,
    )


def _wakeup_path(
    section: TraceSection, symbols: SymbolTable, *, arch: str, shift: int
) -> _WakeupPath:
    runs = runs_of(section, symbols, arch=arch, cpu=section.cpu)
    expiry = section.last - (section.latency_ns >> shift)
    contexts = contexts_of(runs)
    tasks = tasks_of(section, runs)
    woke = idle_end(runs, contexts, expiry, tasks=tasks)
    slept_ns = awake_ns = 0
    if woke is not None:
        expiry = woke
        slept_ns = section.latency_ns - ((section.last - woke) << shift)
        left = max(i for i in tasks.departures if runs[i].begin < expiry)
        awake_ns = (expiry - runs[left].end) << shift if slept_ns else 0
    milestones = find_milestones(runs, contexts, expiry, tasks=tasks)
    others = other_cpus(section, symbols, arch=arch, shift=shift)
    elsewhere = others.calling(PERIOD)
    flags = irq_flags_of(section)
    return _WakeupPath(
        runs=runs,
        contexts=contexts,
        milestones=milestones,
        competing=competing_tasks(runs, milestones, symbols.names, elsewhere=elsewhere),
        tasks=tasks,
        expiry=expiry,
        slept_ns=slept_ns,
        awake_ns=awake_ns,
        shift=shift,
        irqs_off=irqs_off_at(flags, runs, expiry),
        flags=flags,
        section=section,
        others=others,
    )


def _notes(path: _WakeupPath) -> Iterator[str]:
    milestones, section = path.milestones, path.section
    if section.cut:
        yield "the begin of the path was not recorded: the ring was too short"
    if not path.runs:
        yield (
            "no memory was left for the path of this wake-up: record it with rtscope "
            "board trace --replay"
            if section.left_out
            else "no path was recorded for this wake-up"
        )
    elif milestones.woken is None:
        yield "this CPU did not execute the callback that wakes a sleeping thread"
    elif milestones.woken < milestones.first:
        yield (
            "the thread was woken a little before the expiry by the count of "
            "instructions, which runs ahead of virtual time"
        )
    if armed_overdue(path.runs[milestones.first : milestones.woken], path.tasks):
        yield "the thread itself was late: it armed its timer after the expiry"
    if not path.tasks.known and path.competing.goes_on:
        yield (
            "the task that ran is unknown: the kernel's symbols were missing when this "
            "was recorded; record it with rtscope board trace --replay"
        )
    if milestones.late_timer:
        yield (
            "the timer expired in a softirq: the thread was not real-time when it "
            "went to sleep"
        )


def _system_idle(path: _WakeupPath) -> Iterator[Segment]:
    if not path.slept_ns:
        return
    yield Segment(
        Part.A,
        0,
        path.slept_ns,
        Cause.TIMER_SLACK,
        ASLEEP,
        evidence=(
            f"system idle: the board executed {path.awake_ns} ns since the thread went "
            "to sleep; for the rest of this time all its CPUs slept",
        ),
        confidence=Confidence.INFERRED,
    )


def _unrecorded(path: _WakeupPath) -> Iterator[Segment]:
    """Return the time before the first recorded block of this CPU."""
    if not path.runs or path.runs[0].begin <= path.expiry:
        return
    end_ns = path.ns(path.runs[0].begin)
    if path.section.cut or path.section.first > path.expiry:
        yield Segment(Part.A, 0, end_ns, Cause.UNKNOWN, "not recorded")
        return
    # The path begins longer before the expiry than the others' quanta take.
    yield Segment(
        Part.A,
        0,
        end_ns,
        Cause.IDLE_EXIT,
        ASLEEP,
        own_ns=0,
        evidence=("this CPU slept during the quantum of another CPU",),
        confidence=Confidence.INFERRED,
    )


def _segments(path: _WakeupPath) -> Iterator[Segment]:
    """Cut the path where part or cause change."""
    at = range(path.milestones.first, len(path.runs))
    kinds = [(i, _kind(path, i)) for i in at]
    for (part, cause, context), group in groupby(kinds, key=lambda row: row[1]):
        runs = [_after(path.runs[i], path.expiry) for i, _ in group]
        yield _segment(path, part, cause, context, runs)


def _after(run: Run, expiry: int) -> Run:
    """Return what of a run was after the expiry."""
    if run.begin >= expiry:
        return run
    return replace(run, begin=expiry, own=min(run.own, run.end - expiry))


def _kind(path: _WakeupPath, i: int) -> tuple[Part, Cause, Context]:
    """Return part and cause of a run, and the interrupt it belongs to."""
    part, cause = _part_and_cause(path, i)
    context = path.contexts[i]
    # On the return the scheduler's last steps and the thread's own are one, and so
    # are a fault and the sleep in it.
    is_one = cause in (Cause.RETURN, Cause.PAGE_FAULT)
    return part, cause, THREAD if is_one else context


def _part_and_cause(path: _WakeupPath, i: int) -> tuple[Part, Cause]:
    run, context = path.runs[i], path.contexts[i]
    part = _part(path, i)
    if _is_contended(run):
        return part, Cause.LOCK
    if context.role is Role.INTERRUPT:
        return part, _interrupt_cause(path, i)
    if context.role is Role.SOFTIRQ and not _is_late(path, i):
        return part, Cause.SOFTIRQ
    if part is Part.A:
        return part, _delay_cause(path, i)
    if part is Part.E:
        return part, _late_cause(path, i)
    if context.role is Role.SCHEDULE:
        return part, Cause.SCHEDULER
    if part is Part.D or path.competing.goes_on:
        return part, path.competing.cause(i)
    if is_call_while_idle(run):
        return part, Cause.OTHER_INTERRUPT
    is_idle = Role.IDLE in run.frame.within
    return part, Cause.IDLE_EXIT if is_idle else Cause.PREEMPTION_OFF


def _part(path: _WakeupPath, i: int) -> Part:
    milestones, role = path.milestones, path.contexts[i].role
    # If nothing woke the thread here, all is before the interrupt but its own end.
    entered = milestones.switched if milestones.entered is None else milestones.entered
    if entered is None or i < entered:
        return Part.A
    if role is Role.INTERRUPT:
        return Part.B
    if (
        milestones.scheduled is None
        or milestones.switched is None
        or i < milestones.scheduled
    ):
        return Part.C
    return Part.D if i < milestones.switched else Part.E


def _interrupt_cause(path: _WakeupPath, i: int) -> Cause:
    milestones, chain = path.milestones, list(path.runs[i].frame.chain())
    if milestones.entered is None or i < milestones.entered:
        return Cause.EARLIER_INTERRUPT
    roles = [frame.role for frame in chain]
    if Role.TIMER not in roles:
        ours = path.contexts[i].frame is path.contexts[milestones.entered].frame
        if milestones.woken is not None:
            ours = ours and is_one_delivery(path.runs[i], path.runs[milestones.woken])
        return Cause.TIMER_INTERRUPT if ours else Cause.OTHER_INTERRUPT
    callback = callback_of(path.runs[i])
    if callback is None or role_of(callback) is Role.WAKE:
        return Cause.TIMER_INTERRUPT
    return Cause.TIMER_CALLBACK


def _delay_cause(path: _WakeupPath, i: int) -> Cause:
    run = path.runs[i]
    if _is_late(path, i):
        return Cause.LATE_TIMER
    cause = _waiting_cause(path, run)
    if cause in (Cause.IDLE_EXIT, Cause.DELIVERY) and path.competing.is_ordinary:
        return Cause.TIMER_SLACK
    if cause is Cause.DELIVERY and path.milestones.woken is None:
        # Whether and when the interrupt came is not known: something else ran.
        return Cause.OTHER_TASK if path.milestones.switched is not None else cause
    return cause


def _waiting_cause(path: _WakeupPath, run: Run) -> Cause:
    if is_call_while_idle(run):
        return Cause.EARLIER_INTERRUPT
    if Role.IDLE in run.frame.within:
        return Cause.IDLE_EXIT
    begin = max(run.begin, path.expiry)
    if 2 * path.flags.off_in(begin, run.end) >= max(1, run.end - begin):
        return Cause.INTERRUPTS_OFF
    return Cause.DELIVERY


def _late_cause(path: _WakeupPath, i: int) -> Cause:
    """Return the cause of what came after the first switch to the thread."""
    run = path.runs[i]
    if not path.tasks.known or path.tasks.is_measured(run):
        return Cause.PAGE_FAULT if Role.FAULT in run.frame.within else Cause.RETURN
    before = bisect_left(path.tasks.departures, i) - 1
    left = path.runs[path.tasks.departures[before]] if before >= 0 else None
    if left is not None and sleeps_in_fault(left):
        return Cause.PAGE_FAULT
    if path.contexts[i].role is Role.SCHEDULE:
        return Cause.SCHEDULER
    return path.competing.cause(i, left=left)


def _is_late(path: _WakeupPath, i: int) -> bool:
    """Tell whether the thread's timer had been left to a softirq by then."""
    expired = path.milestones.expired
    return expired is not None and i > expired and _part(path, i) is Part.A


def _is_contended(run: Run) -> bool:
    return run.frame.role is Role.LOCK and run.own > CONTENDED_INSTRUCTIONS


def _segment(
    path: _WakeupPath, part: Part, cause: Cause, context: Context, runs: list[Run]
) -> Segment:
    own = sum(run.own for run in runs)
    name, chain = name_of(cause, context, runs)
    spent = [(plain(name), n << path.shift) for name, n in spent_in(runs)]
    others_did: tuple[OtherCpuActivity, ...] = ()
    if cause is Cause.LOCK:
        others_did = tuple(path.others.between(runs[0].begin, runs[-1].end))
    return Segment(
        part,
        path.ns(runs[0].begin),
        path.ns(runs[-1].end),
        cause,
        name,
        own << path.shift,
        tuple(_evidence(path, (part, cause), chain, runs)),
        Confidence.INFERRED if cause is Cause.DELIVERY else Confidence.SEEN,
        tuple(spent[:NAMES_KEPT]),
        tuple(chain),
        others_did,
        _task(path, cause, runs),
    )


def _task(path: _WakeupPath, cause: Cause, runs: Sequence[Run]) -> str:
    """Name the task in whose time a segment was, if it was not the measured one."""
    if cause not in OF_A_TASK:
        return ""
    longest = max(runs, key=lambda run: run.own)
    task = path.tasks.at(longest)
    return "" if task is None or path.tasks.is_measured(longest) else task.name


def _evidence(
    path: _WakeupPath, kind: tuple[Part, Cause], chain: Sequence[str], runs: list[Run]
) -> Iterator[str]:
    part, cause = kind
    if len(chain) > 1:
        yield called(chain)
    if cause is Cause.INTERRUPTS_OFF:
        yield from _irqs_off_evidence(path)
    if cause is Cause.DELIVERY:
        yield DELIVERED_BETWEEN_QUANTA
    if part is Part.E and cause in COMPETING_TASKS:
        yield "the scheduler had already switched to the thread, and preempted it again"
    if any(run.frame.name == FIRMWARE for run in runs):
        yield "the firmware ran (a call of SBI)"


def _irqs_off_evidence(path: _WakeupPath) -> Iterator[str]:
    irqs_off = path.irqs_off
    if irqs_off is None:
        return
    ago = -path.ns(irqs_off.since)
    if irqs_off.off is None:
        yield f"interrupts off since more than {ago} ns before the expiry"
    else:
        where = called_in(irqs_off.off.frame)
        yield f"interrupts off since {ago} ns before the expiry ({where})"
    if irqs_off.on is not None and irqs_off.until is not None:
        where = called_in(irqs_off.on.frame)
        yield f"on again {path.ns(irqs_off.until)} ns after it ({where})"


def name_of(
    cause: Cause, context: Context, runs: Sequence[Run]
) -> tuple[str, Sequence[str]]:
    """Return the name of a segment, and the calls that nearly all of it happened in."""
    if cause in (Cause.EARLIER_INTERRUPT, Cause.OTHER_INTERRUPT):
        return _handler(runs, _ENTRY), ()
    if cause is Cause.TIMER_CALLBACK:
        return plain(callback_of(runs[0]) or ""), ()
    if cause is Cause.TIMER_INTERRUPT:
        return "hrtimer_interrupt", ()
    if cause is Cause.SCHEDULER and context.frame is not None:
        return plain(context.frame.name), ()
    if cause is Cause.PAGE_FAULT:
        runs = [run for run in runs if Role.FAULT in run.frame.within]
        if not runs:  # another ran while the thread slept in it
            return ASLEEP, ()
    frame = main_frame(runs, share=NEARLY_ALL)
    chain = [plain(f.name) for f in frame.chain()] if frame else []
    if cause is Cause.SOFTIRQ:
        return _of_softirq(chain, runs)
    if cause is Cause.LOCK:
        waiting = (name for name in chain if role_of(name) is not Role.LOCK)
        return next(waiting, chain[0] if chain else _most(runs)), chain
    return (chain[0] if chain else _most(runs)), chain


def called(chain: Sequence[str]) -> str:
    """Write who called whom, innermost first."""
    shown = " < ".join(chain[:CHAIN_SHOWN])
    return f"callers: {shown}{' < …' if len(chain) > CHAIN_SHOWN else ''}"


def called_in(frame: Frame) -> str:
    """Write the same for a call."""
    return called([plain(f.name) for f in frame.chain()])


def _most(runs: Sequence[Run]) -> str:
    return plain(spent_in(runs)[0][0])


def _of_softirq(chain: Sequence[str], runs: Sequence[Run]) -> tuple[str, Sequence[str]]:
    name = _handler(runs, _SOFTIRQ)
    if name in chain:
        return name, chain[chain.index(name) :]
    outside = [at for at, one in enumerate(chain) if role_of(one) in _LED_TO]
    return name, (name, *chain[outside[0] :]) if outside else (name,)


def _handler(runs: Sequence[Run], entry: frozenset[Role]) -> str:
    """Name an interrupt by its handler: where most went, behind the entry code."""
    spent: dict[str, int] = {}
    for run in runs:
        name = _handled_in(run, entry)
        if name is not None:
            spent[name] = spent.get(name, 0) + run.own
    if spent:
        return max(spent, key=lambda name: spent[name])
    led_to = [f for f in runs[0].frame.chain() if f.role in entry]
    return plain((led_to[0] if led_to else runs[0].frame).name).removeprefix("asm_")


def _handled_in(run: Run, entry: frozenset[Role]) -> str | None:
    """Return the function that the innermost entry led to."""
    found = None
    for frame in run.frame.chain():
        role = frame.role
        if role in entry:
            return found
        if role not in _LED_TO:
            found = plain(frame.name)
    return None
