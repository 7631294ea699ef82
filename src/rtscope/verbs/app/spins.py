"""
Waits of a library that look again and again: by naps and yields, or before they sleep.

Where it naps, no word of memory and no waker says for whom it waits.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtscope.contract import WatchedThread
from rtscope.verbs.app.deadlines import YIELD
from rtscope.verbs.app.model import EventStack, Finding, Watch
from rtscope.verbs.app.waits import rate_of

NAP = "relative_sleep"
_CALL = "blocking_call"

_SPINS = re.compile(
    r"std::__detail::__(?:atomic_spin|timed_backoff_spin_policy)"  # libstdc++
    r"|std::__\w+::__libcpp_(?:thread_poll_with_backoff|timed_backoff_policy)"
    r"|crossbeam_utils::backoff::Backoff::"
    r"|tbb::detail::\w+::atomic_backoff::"
    r"|absl::(?:\w+::)*synchronization_internal::MutexDelay"
    r"|boost::(?:\w+::)*(?:spinlock|yield_k|thread_sleep)\b"
)


def without_spins(
    watch: Watch, watched: WatchedThread
) -> tuple[WatchedThread, list[Finding]]:
    """Return a thread without its naps and yields in such waits, and what they are."""
    naps = watch.stacks_of(watched, NAP)
    yields = [x for x in watch.stacks_of(watched, _CALL) if x.call == YIELD]
    napped = watched.events[NAP].count if NAP in watched.events and spin(naps) else 0
    rows = [one for one in watched.calls if one.name == YIELD and spin(yields)]
    yielded = sum(one.times.count for one in rows)
    if not (napped or yielded):
        return watched, []
    kinds = ((napped, "nap"), (yielded, "yield"))
    words = [f"{name}s {number:,}" for number, name in kinds if number]
    count = napped + yielded
    found = Finding(
        "RA10" if napped else "RA09",
        ", ".join(words),
        tid=watched.tid,
        thread=watched.name,
        count=count,
        rate_per_s=rate_of(count, watched),
        stacks=(*(naps if napped else ()), *(yields if rows else ())),
        variant="naps" if napped else "yields",
    )
    events = {
        name: x for name, x in watched.events.items() if name != NAP or not napped
    }
    calls = tuple(one for one in watched.calls if one not in rows)
    return replace(watched, events=events, calls=calls), [found]


def spin(stacks: Sequence[EventStack]) -> bool:
    """Whether all of these are of such waits, and there are some."""
    return bool(stacks) and all(any(_names(one)) for one in stacks)


def _names(one: EventStack) -> Iterator[bool]:
    return (bool(_SPINS.search(frame.function)) for frame in one.stack.frames)
