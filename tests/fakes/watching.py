"""Lines of a watched process, as the agent would write them."""

from rtscope.contract import (
    EventCount,
    EventTimes,
    WatchBegin,
    WatchedEvent,
    WatchedThread,
    WatchEnd,
    WatchSample,
)


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
    )


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
