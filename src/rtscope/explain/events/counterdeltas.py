"""What counters around a wake-up grew by, in words: all there is without a trace."""

from collections.abc import Iterator

from rtscope.contract import Around, CounterDelta
from rtscope.units import NS_PER_MS

_MOST = 4


def around_words(around: Around) -> Iterator[str]:
    """Tell what the machine did in the time of the two looks, most first."""
    before = (around.expiry_ns - around.from_ns) / NS_PER_MS
    after = (around.to_ns - around.wake_ns) / NS_PER_MS
    yield (
        f"no events were recorded, only what counters grew by from {before:.0f} ms "
        f"before the expiry to {after:.0f} ms after the wake-up: no cause can be told "
        "from that"
    )
    if around.cut:
        yield "the first of the two looks came after the expiry: some of it is missing"
    for time in around.cpu_times:
        if time.cpu == around.cpu and time.steal_ns:
            yield f"a hypervisor took {time.steal_ns / NS_PER_MS:.0f} ms of this CPU"
    for what, deltas in (
        ("interrupts", around.interrupts),
        ("softirqs", around.softirqs),
    ):
        named = _most(deltas, around.cpu)
        if named:
            yield f"{what} on this CPU: {named}"
    for run in around.runs:
        if run.cpu == around.cpu:
            yield (
                f"{run.tasks} times a task was put on this CPU, and tasks waited "
                f"{run.waited_ns / NS_PER_MS:.1f} ms for it, all together"
            )
    if not around.runs and around.switches >= 0:
        yield f"{around.switches} changes of tasks on all CPUs"


def _most(deltas: tuple[CounterDelta, ...], cpu: int | None) -> str:
    """Name the most frequent: `local timer interrupts 107, eth0 12`."""
    counts = [
        (sum(n for at, n in one.per_cpu.items() if cpu is None or at == cpu), one)
        for one in deltas
    ]
    counts = [(n, one) for n, one in counts if n]
    counts.sort(key=lambda row: (-row[0], row[1].id))
    return ", ".join(f"{one.name or one.id} {n:,}" for n, one in counts[:_MOST])
