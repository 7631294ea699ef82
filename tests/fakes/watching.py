"""Lines of a watched process, as the agent would write them."""

from dataclasses import replace
from typing import Any

from rtscope.contract import (
    EventCount,
    EventTimes,
    WatchBegin,
    WatchedCall,
    WatchedEvent,
    WatchedThread,
    WatchedWord,
    WatchEnd,
    WatchExecuted,
    WatchSample,
)
from rtscope.programs.naming import NamedFrame, NamedStack
from rtscope.verbs.app.model import EventStack


def event(name: str, *, cause: str = "", user_only: bool = False) -> WatchedEvent:
    """Return a kind of event that is seen, or refused for a cause."""
    return WatchedEvent(
        name,
        seen=not cause,
        user_only=user_only,
        cause=cause,
        reason="Operation not permitted" if cause else "",
        remedy="run as root or with sudo" if cause else "",
    )


def begin(*events: WatchedEvent, arch: str = "x86_64") -> WatchBegin:
    """Return the first line for process 17."""
    return WatchBegin(
        schema=2, pid=17, arch=arch, from_ns=10**15, stack_bytes=16384, events=events
    )


def sample(
    name: str, tid: int, *, address: int = 0, regs: str = "", stack: str = ""
) -> WatchSample:
    """Return a sample, by default without a stack."""
    return WatchSample(
        event=name,
        tid=tid,
        t_ns=10**15 + 1,
        address=f"{address:x}",
        abi=2,
        regs=regs,
        stack=stack,
        call="",
        key="0",
    )


def executed(after_ns: int, *, tid: int = 17, name: str = "new") -> WatchExecuted:
    """Return that a thread executed a program, and that this was looked at at once."""
    t_ns = 10**15 + after_ns
    return WatchExecuted(tid, name, t_ns=t_ns, looked_ns=t_ns + 100)


def thread(tid: int, name: str = "worker", **counts: int) -> WatchedThread:
    """Return a thread that was watched for ten seconds."""
    return WatchedThread(
        tid=tid,
        name=name,
        from_ns=10**15,
        to_ns=10**15 + 10 * 10**9,
        ended=False,
        samples_lost=0,
        wakers=(),
        other_wakers=0,
        inversions=(),
        records_lost=0,
        kernel_waits=EventTimes(0, 0, 0, 0, ""),
        events={kind: EventCount(count, 0) for kind, count in counts.items()},
        calls=(),
        other_calls=0,
        slept_elsewhere_ns=0,
        words=(),
        other_words=0,
    )


def end(
    *, stopped: str = "", vanished: int = 0, not_watched: int = 0, threads: int = 1
) -> WatchEnd:
    """Return the last line."""
    return WatchEnd(
        to_ns=10**15 + 10 * 10**9,
        stopped=stopped,
        threads=threads,
        vanished=vanished,
        not_watched=not_watched,
        stacks=0,
        agent_cpu_ns=10**7,
        costs={},
        records_lost=0,
    )


NEVER = EventTimes(0, 0, 0, 0, "")


def times(count: int, worst_ns: int = 1000, worst_in: str = "") -> EventTimes:
    """Return so many of equal length."""
    return EventTimes(count, count * worst_ns, worst_ns, 10**15, worst_in)


def call(name: str, count: int = 1, worst_ns: int = 1000, **given: Any) -> WatchedCall:
    """Return a system call that was made so many times, and never slept."""
    made = WatchedCall(
        name=name,
        number=1,
        memory=False,
        idle=False,
        key="0",
        harmless=0,
        undecided=0,
        times=times(count, worst_ns, name) if count else NEVER,
        slept=NEVER,
        held=NEVER,
    )
    return replace(made, **given)


def word(value: int, count: int = 1, **given: Any) -> WatchedWord:
    """Return waits for a word by FUTEX_WAIT."""
    made = WatchedWord(
        word="7f00",
        value=value,
        command=0,
        values_differ=False,
        wakes=0,
        looks=0,
        free=0,
        times=times(count),
    )
    return replace(made, **given)


def stack(*functions: str, image: str = "libc", **given: Any) -> EventStack:
    """Return a stack of these functions, innermost first."""
    frames = [NamedFrame(name, "", 0, image, 1, inlined=False) for name in functions]
    return replace(EventStack(NamedStack(tuple(frames), None), 1, 0), **given)
