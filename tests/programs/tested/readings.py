"""
What programs say of their own times, beside what was seen of them from outside.

A reading returns a sentence with the figures of both, and whether they agree.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from programs.tested.asking import Asked

_NS = 1_000
"""Of a us."""
_TICKS = 0.26
"""Of a loop of a ms: there an interrupt may come before it reads the clock."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Both sources, and whether they agree."""

    says: str
    agrees: bool


def _latencies(asked: Asked, name: str) -> Sequence[Sequence[int]]:
    return [
        one["latency_ns"] for one in asked.kept[0]["threads"] if one["name"] == name
    ]


def _apart(own: Sequence[int], seen: Sequence[int]) -> Counter[int]:
    return Counter(mine - outside for mine, outside in zip(own, seen, strict=False))


def cyclictest(asked: Asked) -> Reading:
    """Each cycle by itself: what -v and -N print is what was seen, and a constant."""
    own: dict[int, list[int]] = {}
    for number, ns in re.findall(r"^\s*(\d+):\s+\d+:\s+(\d+)$", asked.said(), re.M):
        own.setdefault(int(number), []).append(int(ns))
    seen = _latencies(asked, "cyclictest")
    apart = [_apart(own[number], one) for number, one in enumerate(seen)]
    usual = [one.most_common(1)[0][0] for one in apart]
    cycles = sum(map(len, seen))
    others = {
        ns: times
        for most, one in zip(usual, apart, strict=True)
        for ns, times in one.items()
        if abs(ns - most) > 1
    }
    return Reading(
        f"{cycles} cycles; its own latency is {sorted(set(usual))} ns more, in "
        f"{sum(others.values())} by {sorted(others)}",
        agrees=len(own) == len(seen)
        and all(ns > max(usual) for ns in others)
        and sum(others.values()) <= cycles * _TICKS,
    )


def python(asked: Asked) -> Reading:
    """Each cycle by itself; the interpreter works before it reads the clock."""
    own = [int(one) for one in asked.said().split() if one.isdigit()]
    (seen,) = _latencies(asked, asked.threads[0]["thread"])
    apart = _apart(own, seen)
    middle = sorted(apart.elements())[apart.total() // 2]
    return Reading(
        f"{apart.total()} cycles; its own latency is {min(apart)} to {max(apart)} ns "
        f"more, the median {middle}",
        agrees=apart.total() >= len(own) - 1
        and 0 < min(apart) < max(apart) < 20 * middle,
    )


def pairs(asked: Asked) -> Reading:
    """
    Read the tests of rt-tests with a sender and a receiver of each CPU.

    The receiver's time runs from before the sender's call, so it is longer than the
    wake-up latency that is seen, by that call: the maxima are compared in whole us.
    """
    own = re.findall(
        r"#(\d+) -> #\d+, Min +(\d+), Cur +\d+, Avg +(\d+), Max +(\d+)", asked.said()
    )
    last = {int(number): tuple(map(int, rest)) for number, *rest in own}
    count = dict(re.findall(r"#(\d+): ID\d+, .*?Cycles (\d+)", asked.said()))
    receivers = asked.threads[1::2]
    rows, agrees = [], len(last) == len(receivers) > 0
    for (number, (_, average, most)), thread in zip(
        sorted(last.items()), receivers, strict=False
    ):
        seen_us = thread["latency"] / _NS
        rows.append(
            f"receiver {number}: own average {average}, maximum {most} us; seen "
            f"maximum {seen_us:.1f} us, {thread['cycles']} cycles"
        )
        agrees &= seen_us <= most + 1 and thread["missed"] in (0, None)
    return Reading(f"{'; '.join(rows)} (senders say {count})", agrees=agrees)


def signaltest(asked: Asked) -> Reading:
    """The second thread's cycles are the signals that the first one says it sent."""
    sent = [int(one) for one in re.findall(r"T: 0 .*?C: +(\d+)", asked.said())]
    cycles = [one["cycles"] for one in asked.threads]
    return Reading(
        f"it sent {sent[-1]} signals; seen {cycles} cycles of its threads",
        agrees=abs(sent[-1] - max(cycles)) <= 2,
    )


def stress_ng(asked: Asked) -> Reading:
    """Its percentiles of the latencies of its own sleeps."""
    text = asked.answer["runs"][0]["starts"][0]["stderr"]["text"] + asked.said()
    own = re.findall(r"min: +(\d+) ns, max: +(\d+) ns", text) or re.findall(
        r"min: +(\d+), max: +(\d+)", text
    )
    seen = [one["latency_ns"] for one in asked.kept[0]["threads"]]
    if not own or not seen:
        return Reading(f"it printed no latency: {text[-200:]}", agrees=False)
    least, most = map(int, own[-1])
    low, high = min(map(min, seen)), max(map(max, seen))
    return Reading(
        f"own minimum {least}, maximum {most} ns; seen {low} and {high} ns",
        agrees=0 < least - low < _NS and 0 <= most - high + _NS < 3 * _NS,
    )


def jackd(asked: Asked) -> Reading:
    """256 frames at 48,000 a second: the period of the server and of its client."""
    periods = {
        (one["thread"], one["period_ns"])
        for one in asked.threads
        if one["period_ns"] and one["cycles"] > 100
    }
    off = [abs(ns - 256e9 / 48_000) for _, ns in periods]
    return Reading(
        f"periods {sorted(periods)} ns; 256 frames at 48 kHz are 5,333,333 ns",
        agrees=len(periods) > 1 and all(one < 3_000 for one in off),
    )


def soem(asked: Asked) -> Reading:
    """The master's counter of cycles, and the slave's of frames, in each line."""
    said = asked.said()
    told = re.findall(
        r"cycle +(\d+) , Wck +(-?\d+),.*? O: ([0-9a-f ]+) I: (\w\w)", said
    )
    apart = Counter((int(n) - int(frames, 16)) % 256 for n, _, _, frames in told[1:])
    answered = {int(one) for _, one, _, _ in told[1:]}
    cycles = [one["cycles"] for one in asked.threads]
    return Reading(
        f"in {len(told)} lines working counter {sorted(answered)}, the slave's frames "
        f"{sorted(apart)} fewer than the master's cycles; seen {cycles} cycles",
        agrees=len(told) > 50 and answered == {3} and set(apart) <= {1, 2},
    )


def lvgl(asked: Asked) -> Reading:
    """Each frame by itself; after the last one it sleeps no more: it was no cycle."""
    own = [
        tuple(map(int, one)) for one in re.findall(r"^(\d+) (\d+)$", asked.said(), re.M)
    ]
    (thread,) = asked.kept[0]["threads"]
    seen = list(zip(thread["latency_ns"], thread["response_ns"], strict=True))
    own = own[len(own) - len(seen) - 1 : -1]
    apart = [_apart([one[n] for one in own], [one[n] for one in seen]) for n in (0, 1)]
    usual = [one.most_common(1)[0] if one else (0, 0) for one in apart]
    return Reading(
        f"{len(own)} frames: latency {usual[0][0]} ns apart in {usual[0][1]}, end "
        f"{usual[1][0]} ns in {usual[1][1]}",
        agrees=bool(own) and usual[0][1] > len(own) / 2,
    )


def _only_seen(asked: Asked) -> Reading:
    rows = [
        f"{one['thread']} {one['priority']}: {one['cycles']} cycles, period "
        f"{one['period_ns']}"
        for one in asked.threads
    ]
    return Reading("; ".join(rows[:6]) or "no cycle", agrees=bool(rows))


READINGS: Mapping[str, Callable[[Asked], Reading]] = {
    "cyclictest": cyclictest,
    "cyclictest-threads": cyclictest,
    "pmqtest": pairs,
    "ptsematest": pairs,
    "svsematest": pairs,
    "sigwaittest": pairs,
    "signaltest": signaltest,
    "stress-ng": stress_ng,
    "jackd": jackd,
    "python": python,
    "soem": soem,
    "lvgl": lvgl,
}


def reading_of(name: str, asked: Asked) -> Reading:
    """Return what a program says of itself beside what was seen."""
    return READINGS.get(name, _only_seen)(asked)
