"""
Waits until a time of a clock that can be set: CLOCK_REALTIME, mostly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.contract import (
    EventTimes,
    Settable,
    WatchedCall,
    WatchedThread,
    WatchedWord,
)
from rtscope.programs.calls import name_of, sum_of
from rtscope.verbs.app.model import EventStack, Finding, Watch
from rtscope.verbs.app.waits import rate_of, worst_of

PACES_SHARE = 0.5
"""Of the waits, that their time ends: then it is no guard, but paces the thread."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """Waits in one call, or for one word of memory."""

    name: str
    waits: int
    expired: int
    times: EventTimes
    stacks: tuple[EventStack, ...]

    @property
    def paces(self) -> bool:
        return self.expired >= PACES_SHARE * self.waits


def by_settable_clock(watch: Watch, watched: WatchedThread) -> Iterator[Finding]:
    """Find waits that end sooner or later when somebody sets the clock."""
    waits = [*_of_words(watch, watched), *_of_calls(watch, watched)]
    paced = [one for one in waits if one.paces]
    for some, variant in (
        (paced, "settable"),
        ([one for one in waits if not one.paces], "guard"),
    ):
        if some:
            yield _found(watch, watched, some, variant)


def _found(
    watch: Watch, watched: WatchedThread, waits: Sequence[_Wait], variant: str
) -> Finding:
    counts: dict[str, list[int]] = {}
    for one in waits:
        row = counts.setdefault(one.name, [0, 0])
        row[0] += one.waits
        row[1] += one.expired
    total = sum(one.waits for one in waits)
    words = [
        f"{name} {n:,} (it ended {ended:,})" for name, (n, ended) in counts.items()
    ]
    return Finding(
        "RA09",
        f"until a time of CLOCK_REALTIME: {', '.join(words)}",
        tid=watched.tid,
        thread=watched.name,
        count=total,
        rate_per_s=rate_of(total, watched),
        stacks=tuple(stack for one in waits for stack in one.stacks),
        worst=worst_of(watch, sum_of(one.times for one in waits)),
        variant=variant,
    )


def _of_words(watch: Watch, watched: WatchedThread) -> Iterator[_Wait]:
    stacks = watch.stacks_of(watched, "lock_wait")
    for one in watched.words:
        if (of := _some(one)) is not None:
            # a probe that came before makes the word odd, after its stack was sent
            keys = {int(one.word, 16), int(one.word, 16) & ~1}
            mine = tuple(x for x in stacks if x.key in keys)
            yield _Wait("futex", of.waits, of.expired, one.times, mine)


def _of_calls(watch: Watch, watched: WatchedThread) -> Iterator[_Wait]:
    stacks = watch.stacks_of(watched, "blocking_call")
    for one in watched.calls:
        if (of := _some(one)) is not None:
            mine = tuple(
                x for x in stacks if (x.call, f"{x.key:x}") == (one.name, one.key)
            )
            yield _Wait(name_of(one), of.waits, of.expired, one.times, mine)


def _some(one: WatchedCall | WatchedWord) -> Settable | None:
    return one.settable if one.settable is not None and one.settable.waits else None
