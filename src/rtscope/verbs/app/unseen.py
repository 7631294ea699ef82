"""What could not be looked at in a watched process, why, and what to do."""

from collections.abc import Iterator, Mapping

from rtscope.contract import WatchedThread
from rtscope.host.units import NS_PER_MS, plural
from rtscope.present.words import duration
from rtscope.programs.binaries.lookups import LOOKUP
from rtscope.programs.probes import is_allocation
from rtscope.verbs.app.lookups import unseen_lookups
from rtscope.verbs.app.model import OUTSIDE, Observation, Unseen
from rtscope.verbs.app.waits import OF_TIMELINE, OF_WAKERS, WAITS_SEEN_BY

_BY_FILE = {
    "smaps": ("RA04", "RA23"),
    "limits": ("RA19",),
    "status": ("RA19", "RA20"),
}


SLOW_NS, SLOW_THREAD_NS = 100 * NS_PER_MS, 10 * NS_PER_MS
"""Some new threads, and each of many, have their events in far less."""

LOOK_NS = 50 * NS_PER_MS
"""Between two looks of the agent for new threads."""
FEW = 8
"""Threads of an end of the watching, or of one that began before it."""
_CLONES = ("clone", "clone3")

_AS_ROOT = "run as root or with sudo"
_UNMAPPED = "its memory changed before it was watched: did it execute a program?"


def unseen_of(seen: Observation, events: Mapping[str, str]) -> Iterator[Unseen]:
    """Yield what it was; `events`: the finding that each kind of event shows."""
    refused_by = {one.cause: one.remedy for one in seen.watch.begin.events}
    remedy = refused_by.get("namespace", _AS_ROOT)  # sudo does not lead out of it
    for name, why in (seen.files.denied or {}).items():
        if name in _BY_FILE:
            yield Unseen(
                _BY_FILE[name],
                f"/proc/{seen.pid}/{name}",
                why,
                remedy,
            )
    by_kind: dict[str, tuple[str, ...]] = {k: (id_,) for k, id_ in events.items()}
    by_kind |= WAITS_SEEN_BY
    by_kind[LOOKUP] = ("RA20",)
    refused: dict[tuple[str, ...], Unseen] = {}
    for event in seen.watch.begin.events:
        ids = by_kind.get(event.name.partition(".")[0])
        ids = ("RA07",) if is_allocation(event.name) else ids
        if event.name == "timeline" and event.cause == "namespace":
            ids = OF_WAKERS  # all else is seen there, too
        if ids and not event.seen:
            blind = event.cause == OUTSIDE
            cause = f" ({event.cause})" if event.cause and not blind else ""
            why = _UNMAPPED if event.cause == "unmapped" else f"{event.reason}{cause}"
            refused.setdefault(ids, Unseen(ids, event.name, why, event.remedy, blind))
        elif ids and event.user_only:
            refused.setdefault(
                ids,
                Unseen(
                    ids,
                    f"{event.name} within system calls",
                    "perf_event_paranoid is 2",
                    remedy,
                ),
            )
    yield from refused.values()
    yield from _unseen_allocations(seen)
    unwatched = [x for x in seen.watch.threads if seen.executed and not x.events]
    if unwatched:
        yield Unseen(
            (*sorted({*events.values(), "RA07", *OF_TIMELINE}),),
            f"thread {unwatched[-1].tid} {unwatched[-1].name}",
            f"{seen.executed[-1].name}, executed meanwhile, has rights of its own: its "
            "threads may not be watched",
            remedy,
        )
    yield from unseen_lookups(seen)
    yield from _unseen_threads(
        seen, (*sorted({*events.values(), "RA07", *OF_TIMELINE}),)
    )


def _unseen_threads(seen: Observation, ids: tuple[str, ...]) -> Iterator[Unseen]:
    end = seen.watch.end
    if end.opening_ns > max(SLOW_NS, SLOW_THREAD_NS * end.threads):
        yield Unseen(
            ids,
            "what a thread did before its events were open",
            f"nothing of a new thread for up to {duration(end.opening_ns)}, until its "
            "events were open: the kernel may still close those of another watch",
            "watch it again in 20 s",
        )
    if brief := _brief_threads(seen):
        yield Unseen(
            ids,
            f"{plural(brief, 'thread')} that ended soon",
            f"{plural(brief, 'thread')} ended before the watch saw them: it looks each "
            "50 ms",
            "keep threads that serve a cycle, and hand them their work",
        )
    if end.not_watched:
        yield Unseen(
            ids, f"{end.not_watched} threads", "the agent watches 128 at once", ""
        )


def _brief_threads(seen: Observation) -> int:
    """Return how many threads were made by pthread_create, and never watched."""
    if seen.watch.from_outside:
        return 0
    made = sum(
        call.times.count
        for thread in seen.watch.threads
        for call in thread.calls
        if call.name in _CLONES and _makes_threads(seen, thread, call.name)
    )
    from_ns = seen.watch.begin.from_ns
    new = sum(one.from_ns > from_ns + LOOK_NS for one in seen.watch.threads)
    return max(0, made - new - seen.watch.end.not_watched) if made > FEW else 0


def _makes_threads(seen: Observation, thread: WatchedThread, call: str) -> bool:
    stacks = seen.watch.stacks_of(thread, "blocking_call")
    of_call = [one for one in stacks if one.call == call]
    return bool(of_call) and all(
        any("pthread_create" in frame.function for frame in one.stack.frames)
        for one in of_call
    )


def _unseen_allocations(seen: Observation) -> Iterator[Unseen]:
    if seen.no_probe:
        yield Unseen(("RA07",), "calls of the allocator", seen.no_probe, "")
    elif seen.no_probe_since:
        yield Unseen(
            ("RA07",),
            "calls of the allocator",
            f"{seen.no_probe_since} was executed meanwhile, with an allocator of its "
            "own",
            f"watch it from then on: rtscope app check {seen.pid}",
        )
    for one in seen.runtimes:
        yield Unseen(
            ("RA07",),
            f"allocations inside {one.name}",
            f"allocations inside {one.name} are not seen: it makes them without a call",
            one.advice,
            by_nature=True,
        )
