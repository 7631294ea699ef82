"""
A timer that expired on another CPU than its thread's, and when that was asked to wake.

With nohz_full= the kernel gives the timers of a CPU to one that is not in its list,
unless kernel.timer_migration is 0 (`get_nohz_timer_target` in `kernel/sched/core.c`).
Then the thread is as late as that other CPU, and its own has yet to be interrupted.
Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtscope.explain.instructions.absences import Absence, Wait
from rtscope.explain.instructions.calls import Frame, Role, Run, plain
from rtscope.explain.instructions.othercpus import OtherCpus
from rtscope.explain.model import TIMER_ELSEWHERE_REMEDY

_ASKS = frozenset(
    {
        *("native_smp_send_reschedule", "smp_send_reschedule"),
        *("arch_smp_send_reschedule", "__smp_call_single_queue"),
    }
)
"""What interrupts another CPU, on x86-64, arm64 and riscv64, to make it schedule."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call on another CPU that woke a thread whose timer had expired."""

    cpu: int
    begin_ns: int
    done_ns: int
    """When it asked for an interrupt; its end if it did not."""
    asks: bool


def expired_elsewhere(
    absence: Absence, runs: Sequence[Run], expiry_ns: int, others: OtherCpus
) -> Absence:
    """
    Return a sleep with the end that another CPU put to it; itself if that is not so.

    `runs` are those of the thread's CPU: a timer that expired there needs no other.
    A path that begins behind the expiry does not show whether it did.
    """
    since_ns = max(expiry_ns, absence.begin_ns)
    if absence.wait is not Wait.TIMER or others.section.first_ns > expiry_ns:
        return absence
    if any(
        run.frame.role is Role.WAKE
        and absence.begin_ns <= run.begin_ns < absence.end_ns
        for run in runs
    ):
        return absence
    calls = [
        call
        for cpu in others.cpus
        for call in _calls(cpu, others.runs_on(cpu))
        if since_ns <= call.begin_ns < absence.end_ns
    ]
    asked = [call for call in calls if call.asks]
    found = max(asked or calls, key=lambda call: call.begin_ns, default=None)
    if found is None:
        return absence
    return replace(
        absence,
        runnable_ns=min(found.done_ns, absence.end_ns),
        wait=Wait.TIMER_ELSEWHERE,
        ended_by=f"CPU {found.cpu}",
        told=tuple(_told(found, expiry_ns)),
        is_sure=len(asked) == 1,
    )


def _calls(cpu: int, runs: Sequence[Run]) -> Iterator[_Call]:
    inside: dict[Frame, list[Run]] = {}
    for run in runs:
        if Role.WAKE not in run.frame.within:
            continue
        call = next(one for one in run.frame.chain() if one.role is Role.WAKE)
        inside.setdefault(call, []).append(run)
    for of_call in inside.values():
        asks = next((r for r in of_call if plain(r.frame.name) in _ASKS), None)
        done_ns = of_call[-1].end_ns if asks is None else asks.begin_ns
        yield _Call(cpu, of_call[0].begin_ns, done_ns, asks is not None)


def _told(call: _Call, expiry_ns: int) -> Iterator[str]:
    yield (
        f"CPU {call.cpu} executed the callback that wakes the thread, "
        f"{call.begin_ns - expiry_ns} ns after the expiry"
    )
    if call.asks:
        yield (
            f"it interrupted this CPU {call.done_ns - expiry_ns} ns after the expiry, "
            "for the thread to run"
        )
    yield TIMER_ELSEWHERE_REMEDY
