"""
Who limits real-time threads on this kernel, told by what it does and not by its name.

Two mechanisms keep a CPU from ordinary threads' starvation. RT throttling (until 6.11)
stops all real-time threads for the rest of each `sched_rt_period_us` in which they had
`sched_rt_runtime_us`; -1 ends it. The fair server (from 6.12) is a deadline server
for ordinary threads, which -1 does not touch.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

from rtscope.demo.model import RT_PERIOD, RT_RUNTIME, Check, Performance, Shown
from rtscope.demo.words import capitalized, percent
from rtscope.units import NS_PER_MS

NOTHING = 0.001
"""Of the CPU: what an ordinary thread may have although it never should run."""

FAIR_SERVER_SINCE = (6, 12)
FAIR_RUNTIME_NS, FAIR_PERIOD_NS = 50 * NS_PER_MS, 1000 * NS_PER_MS
"""The kernel's own, where debugfs does not show them (kernel/sched/deadline.c)."""


class Limiter(StrEnum):
    """What keeps real-time threads from a part of the CPU."""

    THROTTLING = "RT throttling"
    FAIR_SERVER = "the fair server"
    NOBODY = "nobody"
    UNCLEAR = "unclear"


def throttle(shown: Shown) -> Iterator[Check | str]:
    """Yield who limits the fifo thread, how much that leaks, and whether that fits."""
    found, free = (leak(shown.case(name)) for name in ("as-found", "no-limit"))
    seen = limiter_seen(found, free)
    expected, share = limiter_expected(shown)
    yield Check(
        f"{expected} limits real-time threads, as this kernel's source has it",
        seen is expected,
        f"seen: {seen}; the ordinary thread got {percent(found)}, and "
        f"{percent(free)} with sched_rt_runtime_us = -1",
    )
    yield Check(
        f"what leaks to ordinary threads is at most twice {percent(share)}, and "
        f"{'some' if share else 'nothing'}",
        (found > NOTHING) == (share > 0) and found <= max(2 * share, NOTHING),
        f"the ordinary thread got {percent(found)}",
    )
    if (off := shown.cases.get("off")) is not None:
        yield Check(
            "with the fair server off, too, nothing leaks",
            leak(off) <= NOTHING,
            f"the ordinary thread got {percent(leak(off))}",
        )
    yield Check(
        "all settings are as they were",
        shown.facts == shown.facts_after,
        f"sched_rt_runtime_us {shown.facts_after.get(RT_RUNTIME, 'unknown')}",
    )
    yield capitalized(
        f"{seen} limits real-time threads on this kernel: a fifo thread that wanted a "
        f"CPU for itself was without it for {percent(lack(shown.case('as-found')))} of "
        f"the time, and the ordinary thread beside it had {percent(found)}."
    )
    if seen is Limiter.FAIR_SERVER:
        yield (
            "sched_rt_runtime_us = -1 does not give a fifo thread the whole CPU here; "
            "/sys/kernel/debug/sched/fair_server/cpuN/runtime = 0 does."
        )
    for name, why in shown.not_tried.items():
        yield f"Case {name} was not tried: {why}."


def leak(one: Performance) -> float:
    """Return the share of the CPU that the ordinary thread had beside the fifo one."""
    fifo, ordinary = one.lane("hog"), one.lane("other")
    ran_ns = ordinary.ran_within(fifo.woke_ns, fifo.done_ns)
    return ran_ns / (fifo.done_ns - fifo.woke_ns)


def lack(one: Performance) -> float:
    """Return the share of its time that the fifo thread was without the CPU."""
    fifo = one.lane("hog")
    ran_ns = fifo.ran_within(fifo.woke_ns, fifo.done_ns)
    return 1 - ran_ns / (fifo.done_ns - fifo.woke_ns)


def limiter_seen(found: float, free: float) -> Limiter:
    """Return who limits, by the shares that leak as found and without throttling."""
    if found <= NOTHING:
        return Limiter.NOBODY if free <= NOTHING else Limiter.UNCLEAR
    return Limiter.THROTTLING if free <= NOTHING else Limiter.FAIR_SERVER


def limiter_expected(shown: Shown) -> tuple[Limiter, float]:
    """Return who should limit by release and settings, and what should leak."""
    one = shown.case("as-found")
    version = re.match(r"(\d+)\.(\d+)", one.begin.kernel)
    if version and (int(version[1]), int(version[2])) >= FAIR_SERVER_SINCE:
        server = f"/sys/kernel/debug/sched/fair_server/cpu{one.begin.cpu}"
        runtime_ns = _number(shown, f"{server}/runtime", FAIR_RUNTIME_NS)
        period_ns = _number(shown, f"{server}/period", FAIR_PERIOD_NS)
        share = runtime_ns / period_ns
        return (Limiter.FAIR_SERVER if share else Limiter.NOBODY), share
    runtime_us = _number(shown, RT_RUNTIME, 950_000)
    period_us = _number(shown, RT_PERIOD, 1_000_000)
    if runtime_us < 0 or runtime_us >= period_us:
        return Limiter.NOBODY, 0.0
    return Limiter.THROTTLING, 1 - runtime_us / period_us


def _number(shown: Shown, path: str, otherwise: int) -> int:
    text = shown.facts.get(path, "").strip()
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else otherwise
