"""
The longest critical sections and interrupts, from preemptirq events. Pure.

The kernel records where preemption and interrupts were disabled and enabled, but not
the purpose. As in rtsl's theory (de Oliveira et al., ECRTS 2020, section 5), the
functions show it: a function of the scheduler disables preemption to schedule;
interrupts were disabled by an interrupt if its entry is the next event.

Like rtsl, sections of the idle task are left out but for its call of the scheduler,
which begins where interrupts were last disabled before the switch: events do not show
how long the CPU slept in it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rtscope.explain.bound import Section, arrivals_of, compose
from rtscope.explain.instructions.calls import plain
from rtscope.record.events.events import Event, Flag
from rtscope.record.explanation import CpuBound, LongestSection

NEEDED = ("irq_disable", "irq_enable", "preempt_disable", "preempt_enable")
SWITCH = "sched_switch"

_SCHEDULING = frozenset(
    {
        *("schedule", "__schedule", "schedule_idle", "schedule_preempt_disabled"),
        *("schedule_rtlock", "schedule_tail", "finish_task_switch"),
        *("preempt_schedule", "preempt_schedule_common", "preempt_schedule_irq"),
        "preempt_schedule_notrace",
    }
)
_ENDS = ("_entry", "_exit")


def why_no_sections(known: Collection[str]) -> str:
    """Return why a trace of these events has no critical sections; empty if it has."""
    missing = [name for name in (*NEEDED, SWITCH) if name not in known]
    if not missing:
        return ""
    return (
        f"the trace has no {', '.join(missing)}, which --bound needs; use a kernel "
        "with CONFIG_TRACE_IRQFLAGS and CONFIG_TRACE_PREEMPT_TOGGLE, and enable the "
        "events preemptirq and sched_switch"
    )


@dataclass(slots=True)
class _Open:
    begin_ns: int
    functions: tuple[str, ...] = ()
    interrupted_ns: int = 0


@dataclass(slots=True)
class _Cpu:
    """What is known of a CPU up to an event."""

    started: bool = False
    """Interrupts were seen to be enabled: before that nothing is sure."""
    irqs_off: bool = False
    preempt_off: bool = False
    masked: tuple[int, tuple[str, ...]] = (0, ())
    """When and by whom interrupts were last disabled."""
    just_masked: bool = False
    """That was the last event."""
    entries: list[tuple[str, int]] = field(default_factory=list)
    """Interrupts that were entered and not left: the vector and since when."""
    switched_to: int | None = None
    open: dict[Section, _Open] = field(default_factory=dict)
    longest: dict[Section, LongestSection] = field(default_factory=dict)
    arrivals: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    flags_unknown: bool = False


def bounds_of_events(
    events: Iterable[Event],
    *,
    measuring: Mapping[int, int],
    not_recorded: Collection[str] = (),
) -> tuple[CpuBound, ...]:
    """
    Return the bound of each measured CPU; events by time, of all CPUs or of each apart.

    `measuring` gives the measuring thread of each CPU. `not_recorded` names losses of
    the trace: a bound with losses completes no verdict.
    """
    cpus = {cpu: _Cpu() for cpu in measuring}
    for event in events:
        if event.cpu in cpus:
            _follow(cpus[event.cpu], event, measuring[event.cpu])
    return tuple(
        compose(
            number,
            list(cpu.longest.values()),
            arrivals={name: arrivals_of(times) for name, times in cpu.arrivals.items()},
            not_recorded=[*not_recorded, *_losses(cpu)],
        )
        for number, cpu in sorted(cpus.items())
    )


def _losses(cpu: _Cpu) -> list[str]:
    losses = []
    if cpu.flags_unknown:
        losses.append("whether a switch was due, because the trace has no flags")
    if Section.PSD not in cpu.longest:
        losses.append("critical sections of the scheduler")
    return losses


def _follow(cpu: _Cpu, event: Event, measuring: int) -> None:
    if not cpu.started:
        cpu.started = event.name == "irq_enable"
        return
    just_masked, cpu.just_masked = cpu.just_masked, event.name == "irq_disable"
    if event.name.endswith(_ENDS) and _is_hard(event.name):
        _pass_interrupt(cpu, event, just_masked=just_masked)
    elif cpu.entries:
        _pass_inside(cpu, event)
    elif event.name in NEEDED:
        _pass_toggle(cpu, event, measuring)
    elif event.name == SWITCH:
        _pass_switch(cpu, event)


def _is_hard(name: str) -> bool:
    return not name.startswith(("softirq", "tasklet", "hrtimer_expire", "timer_expire"))


def _pass_interrupt(cpu: _Cpu, event: Event, *, just_masked: bool) -> None:
    vector = _vector(event)
    if event.name.endswith("_entry"):
        begin_ns = cpu.masked[0] if just_masked else event.at_ns
        poid = cpu.open.get(Section.POID)
        if poid is not None and poid.begin_ns >= begin_ns:
            del cpu.open[Section.POID]  # the interrupt's own
        cpu.entries.append((vector, begin_ns))
    elif cpu.entries:
        outermost, begin_ns = cpu.entries.pop()
        if not cpu.entries:
            _leave_interrupt(cpu, event, outermost, begin_ns)


def _leave_interrupt(cpu: _Cpu, event: Event, vector: str, begin_ns: int) -> None:
    took_ns = event.at_ns - begin_ns
    cpu.arrivals.setdefault(vector, []).append((begin_ns, took_ns))
    for section in cpu.open.values():
        section.interrupted_ns += took_ns
    _follow_flags(cpu, event, cpu.masked[1])


def _pass_inside(cpu: _Cpu, event: Event) -> None:
    """Keep the state in an interrupt; no section of a thread begins there."""
    if event.name == "irq_disable":
        cpu.irqs_off, cpu.masked = True, (event.at_ns, _functions(event))
    elif event.name == "irq_enable":
        cpu.irqs_off = False


def _pass_toggle(cpu: _Cpu, event: Event, measuring: int) -> None:
    functions = _functions(event)
    if event.name == "irq_disable":
        cpu.irqs_off, cpu.masked = True, (event.at_ns, functions)
    elif event.name == "irq_enable":
        cpu.irqs_off = False
        if cpu.switched_to == 0:  # the idle task enables no preemption
            _leave_scheduler(cpu, event, measuring)
    elif event.name == "preempt_disable":
        cpu.preempt_off = True
        if not _SCHEDULING.isdisjoint(functions):
            _enter_scheduler(cpu, event, functions)
    else:
        cpu.preempt_off = False
        if Section.PSD in cpu.open:
            _leave_scheduler(cpu, event, measuring)
    _follow_flags(cpu, event, functions)


def _pass_switch(cpu: _Cpu, event: Event) -> None:
    if Section.PSD not in cpu.open:  # from the idle task
        cpu.open.pop(Section.POID, None)
        _close(cpu, Section.PAIE, cpu.masked[0])
        cpu.open[Section.PSD] = _Open(*cpu.masked)
    cpu.open[Section.ST] = _Open(*cpu.masked)
    cpu.switched_to = event.numbers.get("next_pid", -1)


def _enter_scheduler(cpu: _Cpu, event: Event, functions: tuple[str, ...]) -> None:
    for section in (Section.POID, Section.PAIE, Section.BACK):
        _close(cpu, section, event.at_ns)
    cpu.open[Section.PSD] = _Open(event.at_ns, functions)
    cpu.switched_to = None


def _leave_scheduler(cpu: _Cpu, event: Event, measuring: int) -> None:
    _close(cpu, Section.PSD, event.at_ns)
    _close(cpu, Section.ST, event.at_ns)
    if cpu.switched_to == measuring:
        cpu.open[Section.BACK] = _Open(event.at_ns)
    cpu.switched_to = None


def _follow_flags(cpu: _Cpu, event: Event, functions: tuple[str, ...]) -> None:
    """Open and close what the state of a thread outside of the scheduler tells."""
    if Section.PSD in cpu.open or event.pid == 0:
        cpu.open.pop(Section.POID, None)
        return
    if cpu.irqs_off or cpu.preempt_off:
        cpu.open.setdefault(Section.POID, _Open(event.at_ns, functions))
        return
    _close(cpu, Section.POID, event.at_ns)
    if event.flags is None:
        cpu.flags_unknown = True
    elif not event.flags & Flag.NEED_RESCHED:
        cpu.open.pop(Section.PAIE, None)
    else:
        cpu.open.setdefault(Section.PAIE, _Open(event.at_ns, functions))


def _close(cpu: _Cpu, section: Section, at_ns: int) -> None:
    opened = cpu.open.pop(section, None)
    if opened is None:
        return
    net_ns = at_ns - opened.begin_ns - opened.interrupted_ns
    before = cpu.longest.get(section)
    if before is None or net_ns > before.duration_ns:
        callers = tuple(name for name in opened.functions if name)
        cpu.longest[section] = LongestSection(
            section,
            max(0, net_ns),
            name=callers[0] if callers else "",
            callers=callers,
        )


def _vector(event: Event) -> str:
    for name in ("name", "vector", "irq", "reason"):
        if name in event.fields:
            return f"{event.name.rsplit('_', 1)[0]} {event.fields[name]}"
    return event.name.rsplit("_", 1)[0]


def _functions(event: Event) -> tuple[str, str]:
    """Return the functions that a preemptirq event names: caller and parent."""
    caller, parent = (event.text(name) for name in ("caller", "parent"))
    return plain(caller.split("+")[0]), plain(parent.split("+")[0])
