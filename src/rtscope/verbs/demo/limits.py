"""
Who limits real-time threads on this kernel, told by what it does and not by its name.

Two mechanisms keep a CPU from ordinary threads' starvation. RT throttling (until 6.11)
stops all real-time threads for the rest of each `sched_rt_period_us` in which they had
`sched_rt_runtime_us`; -1 ends it. The fair server (from 6.12) is a deadline server
for ordinary threads, which -1 does not touch. Kernels with RT_GROUP_SCHED also have
RT throttling for each control group, in all versions, which -1 ends, too.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

from rtscope.host.units import NS_PER_MS
from rtscope.present.words import capital
from rtscope.verbs.demo.model import (
    GROUP_PERIOD,
    GROUP_RUNTIME,
    RT_PERIOD,
    RT_RUNTIME,
    CaseResult,
    Check,
    DemoResult,
    percent,
)

NOTHING = 0.001
"""Of the CPU: what an ordinary thread may have although it never should run."""

FAIR_SERVER_SINCE = (6, 12)
FAIR_RUNTIME_NS, FAIR_PERIOD_NS = 50 * NS_PER_MS, 1000 * NS_PER_MS
"""The kernel's own, where debugfs does not show them (kernel/sched/deadline.c)."""


MUCH = 0.1
"""Of the CPU: what a control group takes beyond the limit of the whole machine."""


class Limiter(StrEnum):
    """What keeps real-time threads from a part of the CPU."""

    THROTTLING = "RT throttling"
    FAIR_SERVER = "the fair server"
    NOBODY = "nobody"
    GROUP = "RT throttling of its control group"
    UNCLEAR = "unclear"


def throttle(result: DemoResult) -> Iterator[Check | str]:
    """Yield who limits the fifo thread, how much that leaks, and whether that fits."""
    one, free = (result.case(name) for name in ("as-found", "no-limit"))
    seen = limiter_seen(
        one, free, _machine_share(result), grouped=GROUP_RUNTIME in result.facts
    )
    expected, share = limiter_expected(result)
    yield Check(
        f"{expected} limits real-time threads, as this kernel's source has it",
        seen is expected,
        f"seen: {seen}; the ordinary thread got {percent(leak(one))}, and "
        f"{percent(leak(free))} with sched_rt_runtime_us = -1",
    )
    yield _amount(one, expected, share)
    if (off := result.cases.get("off")) is not None:
        yield Check(
            "with the fair server off, too, nothing leaks",
            leak(off) <= NOTHING,
            f"the ordinary thread got {percent(leak(off))}",
        )
    yield Check(
        "all settings are as they were",
        RT_RUNTIME in result.facts and result.facts == result.facts_after,
        f"sched_rt_runtime_us {result.facts_after.get(RT_RUNTIME, 'unknown')}",
    )
    yield from _conclusion(one, seen, expected)
    if seen is expected and leak(free) > NOTHING:
        does = "does" if off is not None else "would, but could not be set here"
        yield (
            "sched_rt_runtime_us = -1 does not give a fifo thread the whole CPU here; "
            f"/sys/kernel/debug/sched/fair_server/cpuN/runtime = 0 {does}."
        )
    for name, why in result.not_tried.items():
        yield f"Case {name} was not tried: {why}."


def _conclusion(one: CaseResult, seen: Limiter, expected: Limiter) -> Iterator[str]:
    had = (
        f"a fifo thread that wanted a CPU for itself was without it for "
        f"{percent(lack(one))} of the time, and the ordinary thread beside it had "
        f"{percent(leak(one))}."
    )
    if seen is not expected:
        like = "nothing known" if seen is Limiter.UNCLEAR else str(seen)
        yield (
            f"The limiter of real-time threads is not clear: this looks like "
            f"{like}, and by its release and settings this kernel has {expected}; {had}"
        )
        return
    yield capital(f"{seen} limits real-time threads on this kernel: {had}")


def leak(one: CaseResult) -> float:
    """Return the share of the CPU that the ordinary thread had beside the fifo one."""
    fifo, ordinary = one.lane("hog"), one.lane("other")
    ran_ns = ordinary.ran_within(fifo.woke_ns, fifo.done_ns)
    return ran_ns / (fifo.done_ns - fifo.woke_ns)


def lack(one: CaseResult) -> float:
    """Return the share of its time that the fifo thread was without the CPU."""
    fifo = one.lane("hog")
    ran_ns = fifo.ran_within(fifo.woke_ns, fifo.done_ns)
    return 1 - ran_ns / (fifo.done_ns - fifo.woke_ns)


def _amount(one: CaseResult, expected: Limiter, share: float) -> Check:
    if expected is Limiter.GROUP:
        return Check(
            f"the fifo thread lacks about {percent(share)}, as its group is limited",
            abs(lack(one) - share) <= MUCH,
            f"it was without the CPU for {percent(lack(one))}",
        )
    return Check(
        f"the ordinary thread gets some of the CPU, at most twice {percent(share)}"
        if share
        else "the ordinary thread gets nothing of the CPU",
        (leak(one) > NOTHING) == (share > 0) and leak(one) <= max(2 * share, NOTHING),
        f"the ordinary thread got {percent(leak(one))}",
    )


def limiter_seen(
    one: CaseResult, free: CaseResult, machine_share: float, *, grouped: bool
) -> Limiter:
    """
    Return who limits, by what leaks as found and with -1.

    A control group shows by how much more -1 gives than the limit of the machine, if
    it is `grouped`: if it has a limit at all.
    """
    if lack(one) - lack(free) > machine_share + MUCH:
        return Limiter.GROUP if grouped else Limiter.UNCLEAR
    if leak(one) <= NOTHING:
        return Limiter.NOBODY if leak(free) <= NOTHING else Limiter.UNCLEAR
    return Limiter.THROTTLING if leak(free) <= NOTHING else Limiter.FAIR_SERVER


def limiter_expected(result: DemoResult) -> tuple[Limiter, float]:
    """Return who should limit by release and settings, and for what share."""
    one = result.case("as-found")
    machine = _machine_share(result)
    group = _limited(result, GROUP_RUNTIME, GROUP_PERIOD)
    if _number(result, RT_RUNTIME, 950_000) >= 0 and group > machine + MUCH:
        return Limiter.GROUP, group
    version = re.match(r"(\d+)\.(\d+)", one.begin.kernel)
    if version and (int(version[1]), int(version[2])) >= FAIR_SERVER_SINCE:
        server = f"/sys/kernel/debug/sched/fair_server/cpu{one.begin.cpu}"
        runtime_ns = _number(result, f"{server}/runtime", FAIR_RUNTIME_NS)
        share = runtime_ns / _number(result, f"{server}/period", FAIR_PERIOD_NS)
        return (Limiter.FAIR_SERVER if share else Limiter.NOBODY), share
    return (Limiter.THROTTLING if machine else Limiter.NOBODY), machine


def _machine_share(result: DemoResult) -> float:
    """Return what the limit of the whole machine keeps from real-time threads."""
    return _limited(result, RT_RUNTIME, RT_PERIOD)


def _limited(result: DemoResult, runtime: str, period: str) -> float:
    period_us = _number(result, period, 1_000_000)
    runtime_us = _number(result, runtime, period_us)
    return 0.0 if runtime_us < 0 else max(0.0, 1 - runtime_us / period_us)


def _number(result: DemoResult, path: str, otherwise: int) -> int:
    text = result.facts.get(path, "").strip()
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else otherwise
