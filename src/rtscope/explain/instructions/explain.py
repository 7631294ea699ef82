"""
From the recorded path of a virtual board to an explanation. Pure.

The path has every block that was executed from well before the expiry until the mark,
so that nothing is sampled, and nothing guessed but what names of functions mean.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rtscope.exectrace.format import Kind, Section
from rtscope.exectrace.symbols import SymbolTable
from rtscope.explain.instructions.calls import FIRMWARE, Run, runs_of, spent_in
from rtscope.explain.instructions.functions import Role, plain, role_of
from rtscope.explain.instructions.idle import armed_overdue, standstill_end
from rtscope.explain.instructions.irqsoff import Flags, Masked, masked_by
from rtscope.explain.instructions.milestones import (
    THREAD,
    Context,
    Way,
    contexts_of,
    find_way,
    is_one_delivery,
)
from rtscope.explain.instructions.naming import (
    ASLEEP,
    callback_of,
    called,
    called_in,
    is_any,
    is_call_while_idle,
    name_of,
)
from rtscope.explain.instructions.othercpus import OtherCpus, other_cpus
from rtscope.explain.instructions.scheduling import (
    PERIOD,
    Rivals,
    rivals_of,
    sleeps_in_fault,
)
from rtscope.explain.instructions.tasks import Tasks, tasks_of
from rtscope.explain.model import (
    RIVALS,
    Cause,
    Confidence,
    Explanation,
    Part,
    Stretch,
    joined,
)

NAMES_KEPT = 5
OF_A_TASK = RIVALS | {
    *(Cause.INTERRUPTS_OFF, Cause.PREEMPTION_OFF, Cause.LOCK, Cause.DELIVERY),
    Cause.LATE_TIMER,
}
"""Causes whose code is a task's own: it says who called."""
CONTENDED_INSTRUCTIONS = 100
"""More than any of the lock functions takes if the lock is free."""
DELIVERED_BETWEEN_TURNS = (
    "interrupts were on: a virtual board looks at its timers between the turns of its "
    "CPUs, so up to two turns of this are an artefact"
)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the judgement of a stretch needs."""

    runs: Sequence[Run]
    contexts: Sequence[Context]
    way: Way
    rivals: Rivals
    tasks: Tasks
    departures: Sequence[int]
    """The runs in which the measured thread left the CPU."""
    expiry: int
    """By the count of instructions; or where the board woke, if it slept then."""
    slept_ns: int
    """How long the whole board slept after the true expiry."""
    shift: int
    masked: Masked | None
    """Interrupts that were off at the expiry."""
    flags: Flags
    section: Section
    others: OtherCpus

    def ns(self, count: int) -> int:
        """Return virtual time since the expiry of an instruction count."""
        return self.slept_ns + ((count - self.expiry) << self.shift)


def explain_path(
    section: Section, symbols: SymbolTable, *, arch: str, shift: int
) -> Explanation:
    """Explain one of the worst wake-ups; 2^`shift` ns pass with each instruction."""
    runs = runs_of(section, symbols, arch=arch, cpu=section.cpu)
    expiry = section.last - (section.latency_ns >> shift)
    contexts = contexts_of(runs)
    tasks = tasks_of(section, runs)
    woke = standstill_end(runs, contexts, expiry, tasks=tasks)
    expiry = expiry if woke is None else woke
    way = find_way(runs, contexts, expiry, tasks=tasks)
    mine = (section.kinds == Kind.INTERRUPTS) & (section.cpus == section.cpu)
    flags = Flags(section.at[mine].tolist(), (section.values[mine] != 0).tolist())
    others = other_cpus(section, symbols, arch=arch, shift=shift)
    scene = _Scene(
        runs=runs,
        contexts=contexts,
        way=way,
        rivals=rivals_of(runs, way, symbols.names, elsewhere=others.calling(PERIOD)),
        tasks=tasks,
        departures=tasks.departures(runs),
        expiry=expiry,
        slept_ns=0
        if woke is None
        else section.latency_ns - ((section.last - woke) << shift),
        shift=shift,
        masked=masked_by(flags, runs, expiry),
        flags=flags,
        section=section,
        others=others,
    )
    stretches = [*_standstill(scene), *_unrecorded(scene), *_stretches(scene)]
    return Explanation(
        section.cpu,
        section.sequence,
        section.latency_ns,
        joined(stretches),
        tuple(_notes(section, scene)),
        scene.slept_ns - _awake_ns(scene),
    )


def _notes(section: Section, scene: _Scene) -> Iterator[str]:
    if section.cut:
        yield "the recorded path begins later than it should: the ring was too short"
    if not scene.runs:
        yield (
            "no room was left for the path of this wake-up: rtscope board trace "
            "--again records it"
            if section.left_out
            else "no path was recorded for this wake-up"
        )
    elif scene.way.woken is None:
        yield "the callback that wakes a sleeping thread was not seen on this CPU"
    elif scene.way.woken < scene.way.first:
        yield (
            "the thread was woken a little before the expiry, by the count of "
            "instructions, which runs ahead of the time"
        )
    if armed_overdue(scene.runs[scene.way.first : scene.way.woken], scene.tasks):
        yield "the thread armed its timer when that was due already: it was late itself"
    if not scene.tasks.known and scene.rivals.goes_on:
        yield (
            "which task ran is not known: the kernel's symbols were not, when this was "
            "recorded; rtscope board trace --again records it"
        )
    if scene.way.late_timer:
        yield (
            "the timer expired in a softirq: the thread was not real-time when it "
            "went to sleep"
        )


def _standstill(scene: _Scene) -> Iterator[Stretch]:
    if not scene.slept_ns:
        return
    yield Stretch(
        Part.A,
        0,
        scene.slept_ns,
        Cause.TIMER_SLACK,
        ASLEEP,
        evidence=(
            f"the board executed {_awake_ns(scene)} ns since the thread went to sleep: "
            "for the rest of this all its CPUs slept",
        ),
        confidence=Confidence.INFERRED,
    )


def _awake_ns(scene: _Scene) -> int:
    """Return what the board executed while the thread slept, until it woke for it."""
    if not scene.slept_ns:
        return 0
    left = max(i for i in scene.departures if scene.runs[i].begin < scene.expiry)
    return (scene.expiry - scene.runs[left].end) << scene.shift


def _unrecorded(scene: _Scene) -> Iterator[Stretch]:
    """Tell of the time before the first thing that the CPU is known to have done."""
    if not scene.runs or scene.runs[0].begin <= scene.expiry:
        return
    end_ns = scene.ns(scene.runs[0].begin)
    if scene.section.cut or scene.section.first > scene.expiry:
        yield Stretch(Part.A, 0, end_ns, Cause.UNKNOWN, "not recorded")
        return
    # The path begins longer before the expiry than the others' turns take.
    yield Stretch(
        Part.A,
        0,
        end_ns,
        Cause.IDLE_EXIT,
        ASLEEP,
        own_ns=0,
        evidence=("this CPU slept, and the turn was another CPU's",),
        confidence=Confidence.INFERRED,
    )


def _stretches(scene: _Scene) -> Iterator[Stretch]:
    """Cut the way where part or cause change."""
    at = range(scene.way.first, len(scene.runs))
    kinds = [(i, _kind(scene, i)) for i in at]
    for (part, cause, context), group in groupby(kinds, key=lambda row: row[1]):
        runs = [_after(scene.runs[i], scene.expiry) for i, _ in group]
        yield _stretch(scene, part, cause, context, runs)


def _after(run: Run, expiry: int) -> Run:
    """Return what of a run was after the expiry."""
    if run.begin >= expiry:
        return run
    return replace(run, begin=expiry, own=min(run.own, run.end - expiry))


def _kind(scene: _Scene, i: int) -> tuple[Part, Cause, Context]:
    """Return part and cause of a run, and the interrupt it belongs to."""
    part, cause = _part_and_cause(scene, i)
    context = scene.contexts[i]
    # On the way back the scheduler's last steps and the thread's own are one, and so
    # are a fault and the sleep in it.
    is_one = cause in (Cause.RETURN, Cause.PAGE_FAULT)
    return part, cause, THREAD if is_one else context


def _part_and_cause(scene: _Scene, i: int) -> tuple[Part, Cause]:
    run, context = scene.runs[i], scene.contexts[i]
    part = _part(scene, i)
    if _is_contended(run):
        return part, Cause.LOCK
    if context.role is Role.INTERRUPT:
        return part, _interrupt_cause(scene, i)
    if context.role is Role.SOFTIRQ and not _is_late(scene, i):
        return part, Cause.SOFTIRQ
    if part is Part.A:
        return part, _delay_cause(scene, i)
    if part is Part.E:
        return part, _late_cause(scene, i)
    if context.role is Role.SCHEDULE:
        return part, Cause.SCHEDULER
    if part is Part.D or scene.rivals.goes_on:
        return part, scene.rivals.cause(i)
    if is_call_while_idle(run):
        return part, Cause.OTHER_INTERRUPT
    is_idle = is_any(run, Role.IDLE)
    return part, Cause.IDLE_EXIT if is_idle else Cause.PREEMPTION_OFF


def _part(scene: _Scene, i: int) -> Part:
    way, role = scene.way, scene.contexts[i].role
    # If nothing woke the thread here, all is before the interrupt but its own end.
    entered = way.switched if way.entered is None else way.entered
    if entered is None or i < entered:
        return Part.A
    if role is Role.INTERRUPT:
        return Part.B
    if way.scheduled is None or way.switched is None or i < way.scheduled:
        return Part.C
    return Part.D if i < way.switched else Part.E


def _interrupt_cause(scene: _Scene, i: int) -> Cause:
    way, chain = scene.way, list(scene.runs[i].frame.chain())
    if way.entered is None or i < way.entered:
        return Cause.EARLIER_INTERRUPT
    roles = [role_of(frame.name) for frame in chain]
    if Role.TIMER not in roles:
        ours = scene.contexts[i].frame is scene.contexts[way.entered].frame
        if way.woken is not None:
            ours = ours and is_one_delivery(scene.runs[i], scene.runs[way.woken])
        return Cause.TIMER_INTERRUPT if ours else Cause.OTHER_INTERRUPT
    callback = callback_of(scene.runs[i])
    if callback is None or role_of(callback) is Role.WAKE:
        return Cause.TIMER_INTERRUPT
    return Cause.TIMER_CALLBACK


def _delay_cause(scene: _Scene, i: int) -> Cause:
    run = scene.runs[i]
    if _is_late(scene, i):
        return Cause.LATE_TIMER
    cause = _waiting_cause(scene, run)
    if cause in (Cause.IDLE_EXIT, Cause.DELIVERY) and scene.rivals.is_ordinary:
        return Cause.TIMER_SLACK
    if cause is Cause.DELIVERY and scene.way.woken is None:
        # Whether and when the interrupt came is not known: something else ran.
        return Cause.OTHER_TASK if scene.way.switched is not None else cause
    return cause


def _waiting_cause(scene: _Scene, run: Run) -> Cause:
    if is_call_while_idle(run):
        return Cause.EARLIER_INTERRUPT
    if is_any(run, Role.IDLE):
        return Cause.IDLE_EXIT
    begin = max(run.begin, scene.expiry)
    if 2 * scene.flags.off_in(begin, run.end) >= max(1, run.end - begin):
        return Cause.INTERRUPTS_OFF
    return Cause.DELIVERY


def _late_cause(scene: _Scene, i: int) -> Cause:
    """Return the cause of what came after the first switch to the thread."""
    run = scene.runs[i]
    if not scene.tasks.known or scene.tasks.is_measured(run):
        return Cause.PAGE_FAULT if is_any(run, Role.FAULT) else Cause.RETURN
    before = bisect_left(scene.departures, i) - 1
    left = scene.runs[scene.departures[before]] if before >= 0 else None
    if left is not None and sleeps_in_fault(left):
        return Cause.PAGE_FAULT
    if scene.contexts[i].role is Role.SCHEDULE:
        return Cause.SCHEDULER
    return scene.rivals.cause(i, left=left)


def _is_late(scene: _Scene, i: int) -> bool:
    """Tell whether the thread's timer had been left to a softirq by then."""
    expired = scene.way.expired
    return expired is not None and i > expired and _part(scene, i) is Part.A


def _is_contended(run: Run) -> bool:
    return role_of(run.frame.name) is Role.LOCK and run.own > CONTENDED_INSTRUCTIONS


def _stretch(
    scene: _Scene, part: Part, cause: Cause, context: Context, runs: list[Run]
) -> Stretch:
    own = sum(run.own for run in runs)
    spent = [(plain(name), n << scene.shift) for name, n in spent_in(runs)]
    name, chain = name_of(cause, context, runs)
    others = scene.others.between(runs[0].begin, runs[-1].end)
    meanwhile = tuple(others) if cause is Cause.LOCK else ()
    return Stretch(
        part,
        scene.ns(runs[0].begin),
        scene.ns(runs[-1].end),
        cause,
        name,
        own << scene.shift,
        tuple(_evidence(scene, (part, cause), chain, runs)),
        Confidence.INFERRED if cause is Cause.DELIVERY else Confidence.SEEN,
        tuple(spent[:NAMES_KEPT]),
        tuple(chain),
        meanwhile,
        _task(scene, cause, runs),
    )


def _task(scene: _Scene, cause: Cause, runs: Sequence[Run]) -> str:
    """Name the task in whose time a stretch was, if it was not the measured one."""
    if cause not in OF_A_TASK:
        return ""
    longest = max(runs, key=lambda run: run.own)
    task = scene.tasks.at(longest)
    return "" if task is None or scene.tasks.is_measured(longest) else task.name


def _evidence(
    scene: _Scene, kind: tuple[Part, Cause], chain: Sequence[str], runs: list[Run]
) -> Iterator[str]:
    part, cause = kind
    if len(chain) > 1:
        yield called(chain)
    if cause is Cause.INTERRUPTS_OFF:
        yield from _masked_evidence(scene)
    if cause is Cause.DELIVERY:
        yield DELIVERED_BETWEEN_TURNS
    if part is Part.E and cause in RIVALS:
        yield "the thread had been switched to already, and had to leave again"
    if any(run.frame.name == FIRMWARE for run in runs):
        yield "the firmware ran (a call of SBI)"


def _masked_evidence(scene: _Scene) -> Iterator[str]:
    masked = scene.masked
    if masked is None:
        return
    ago = -scene.ns(masked.since)
    if masked.off is None:
        yield f"interrupts off since more than {ago} ns before the expiry"
    else:
        where = called_in(masked.off.frame)
        yield f"interrupts off since {ago} ns before the expiry ({where})"
    if masked.on is not None and masked.until is not None:
        where = called_in(masked.on.frame)
        yield f"on again {scene.ns(masked.until)} ns after it ({where})"
