"""
The findings about waits: calls that may block, locks, the kernel, and who ends a wait.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rtscope.contract import (
    EventTimes,
    Inversion,
    Waker,
    WatchedCall,
    WatchedThread,
    WatchedWord,
)
from rtscope.contract.watching import Meanwhile, Party
from rtscope.host.units import NS_PER_MS, NS_PER_S
from rtscope.present.words import duration
from rtscope.programs.calls import (
    call_kinds,
    idle_wait,
    may_block,
    memory_calls,
    name_of,
    reason_of,
    sum_of,
)
from rtscope.programs.probes import PROBE
from rtscope.programs.stackwords import frame_words
from rtscope.verbs.app.locks import Lock, after_probe, language_of, lock_of
from rtscope.verbs.app.model import (
    EventStack,
    Finding,
    JudgedCall,
    Unseen,
    Watch,
    Worst,
)

OF_TIMELINE = ("RA08", "RA09", "RA10", "RA11", "RA12", "RA24", "RA25")
"""The rules that need switches, wake-ups and calls in order."""

OF_WAKERS = ("RA11", "RA12")
"""Those that need wake-ups."""

WAITS_SEEN_BY: Mapping[str, tuple[str, ...]] = {
    "memory_call": ("RA08",),
    "blocking_call": ("RA09",),
    "lock_wait": ("RA10", "RA25"),
    "timeline": OF_TIMELINE,
}

_LOWEST_REAL_TIME = 99
"""Of the kernel's priorities: those of ordinary threads are above."""

LONG_WAIT_NS = NS_PER_MS
"""Inside the kernel: it weighs more than a shorter one."""


def of_waits(watch: Watch, watched: WatchedThread) -> Iterator[Finding]:
    """Find what one thread waited for."""
    locks = locks_in(watch, watched)
    yield from memory(watch, watched)
    yield from blocking(watch, watched)
    yield from waits_in_kernel(watch, watched)
    yield from lock_waits(watch, watched, locks)
    yield from inversions(watch, watched, locks)
    yield from wakers(watched, locks)


def unseen_waits(watch: Watch, found: Collection[str]) -> Iterator[Unseen]:
    """Say what there was no room for; what was `found` was seen in part."""
    lost = watch.end.records_lost + sum(t.records_lost for t in watch.threads)
    calls = sum(t.other_calls for t in watch.threads)
    words = sum(t.other_words for t in watch.threads)
    losses = (
        (OF_TIMELINE, lost, "switches, wake-ups and calls"),
        (("RA08", "RA09", "RA24"), calls, "system calls of more kinds than 48"),
        (("RA09", "RA10", "RA11", "RA25"), words, "waits for more words than 16"),
    )
    for ids, count, what in losses:
        missing = tuple(id_ for id_ in ids if id_ not in found)
        partly = tuple(id_ for id_ in ids if id_ in found)
        if count and missing:
            cause = "there was no room for them: the program does too much at once"
            yield Unseen(missing, f"{count:,} {what}", cause, "")
        if count and partly:
            cause = "there was no room for some: what is counted above is not all"
            yield Unseen(partly, f"{count:,} {what}", cause, "")
    yield from _undecided(call for t in watch.threads for call in t.calls)


def _undecided(calls: Iterable[WatchedCall]) -> Iterator[Unseen]:
    counts: Counter[str] = Counter()
    for one in calls:
        counts[name_of(one)] += one.undecided
    names = [f"{name} {count:,}" for name, count in counts.most_common() if count]
    if names:
        what = f"whether calls may block: {', '.join(names)}"
        cause = (
            "what decides it is in memory, or of a descriptor that was closed or "
            "changed before it could be looked at; none of them waited"
        )
        yield Unseen(("RA09",), what, cause, "")


# --- calls --------------------------------------------------------------------------


def memory(watch: Watch, watched: WatchedThread) -> Iterator[Finding]:
    """Find calls that change the memory map."""
    calls = memory_calls(watched)
    if calls:
        yield _of_calls("RA08", watch, watched, calls, "memory_call")


def blocking(watch: Watch, watched: WatchedThread) -> Iterator[Finding]:
    """Find calls that may block, but not the wait for the next cycle."""
    stacks = watch.stacks_of(watched, "blocking_call")
    rows = [one for one in watched.calls if not _of_loop(one, stacks)]
    others = replace(watched, calls=tuple(rows))
    if calls := may_block(others):
        yield _of_calls("RA09", watch, others, calls, "blocking_call")


_LOOPS = re.compile(
    r"runtime\.(?:findRunnable|findrunnable|sysmon)"  # of Go
    r"|tokio::runtime::(?:\w+::)*(?:park|driver|Driver)|mio::poll::Poll::poll"
    r"|boost::asio::detail::(?:scheduler|epoll_reactor)::\w+"
    r"|uv__io_poll|event_base_loop|ev_run|sd_event_wait|g_main_context_iterate"
    r"|QEventDispatcher\w+::processEvents"
)


def _of_loop(call: WatchedCall, stacks: Iterable[EventStack]) -> bool:
    """Whether an event loop, or a monitor of a runtime, waits there when it has nothing
    to do, on whichever of its threads: also if that waits longer elsewhere."""
    if not (call.idle or call.name == "nanosleep"):
        return False
    of_call = [x for x in stacks if (x.call, f"{x.key:x}") == (call.name, call.key)]
    return bool(of_call) and all(
        any(_LOOPS.search(frame.function) for frame in one.stack.frames)
        for one in of_call
    )


def _of_calls(
    id_: str,
    watch: Watch,
    watched: WatchedThread,
    calls: Iterable[WatchedCall],
    event: str,
) -> Finding:
    rows = tuple(calls)
    idle = idle_wait(watched)
    times = sum_of(one.times for one in rows)
    names = [_call_words(one) for one in rows]
    known = {"", *(one.name for one in watched.calls)}
    stacks = watch.stacks_of(watched, event)
    return Finding(
        id_,
        ", ".join(names),
        tid=watched.tid,
        thread=watched.name,
        count=times.count,
        rate_per_s=rate_of(times.count, watched),
        stacks=_in_order(
            rows,
            [
                one
                for one in stacks
                if one.call in known
                and (
                    idle is None or (one.call, f"{one.key:x}") != (idle.name, idle.key)
                )
            ],
        ),
        worst=worst_of(watch, times),
        calls=tuple(_judged(one) for one in rows),
    )


def _in_order(
    calls: Iterable[WatchedCall], stacks: Iterable[EventStack]
) -> tuple[EventStack, ...]:
    """Return the stacks in the order of their calls: the longest first."""
    place = {name_of(call): number for number, call in enumerate(calls)}
    return tuple(sorted(stacks, key=lambda one: place.get(one.call, len(place))))


def _judged(call: WatchedCall) -> JudgedCall:
    kind = call_kinds().get(call.name)
    return JudgedCall(
        name=name_of(call),
        effect="unknown" if kind is None else kind.effect,
        why=reason_of(call.name),
        count=call.times.count,
        longest_ns=call.times.worst_ns,
        slept=call.slept.count,
        longest_sleep_ns=call.slept.worst_ns,
        in_kernel=call.held.count,
        longest_in_kernel_ns=call.held.worst_ns,
        ended_by=call.slept.worst_in,
    )


def _call_words(call: WatchedCall) -> str:
    longest = duration(call.times.worst_ns)
    return f"{name_of(call)} {call.times.count:,} (at most {longest})"


def waits_in_kernel(watch: Watch, watched: WatchedThread) -> Iterator[Finding]:
    """Find calls that waited where no signal ends it: for the kernel, or a device."""
    idle = idle_wait(watched)
    rows = [one for one in watched.calls if one is not idle and one.held.count]
    if not rows:
        return
    rows.sort(key=lambda one: -one.held.worst_ns)
    held = sum_of(one.held for one in rows)
    names = {name_of(one) for one in rows}
    stacks = (
        one
        for event in ("blocking_call", "memory_call")
        for one in watch.stacks_of(watched, event)
    )
    worst = worst_of(watch, held)
    yield Finding(
        "RA24",
        ", ".join(_held_words(one) for one in rows),
        tid=watched.tid,
        thread=watched.name,
        count=held.count,
        rate_per_s=rate_of(held.count, watched),
        stacks=_in_order(rows, [one for one in stacks if one.call in names]),
        worst=worst,
        variant="short" if held.worst_ns < LONG_WAIT_NS else "",
        calls=tuple(_judged(one) for one in rows),
    )


def _held_words(call: WatchedCall) -> str:
    by = f", ended by {call.held.worst_in}" if call.held.worst_in else ""
    longest = duration(call.held.worst_ns)
    why = reason_of(call.name)
    return f"{name_of(call)} {call.held.count:,} (at most {longest}{by}): it {why}"


# --- locks --------------------------------------------------------------------------


def locks_in(watch: Watch, watched: WatchedThread) -> Mapping[str, Lock]:
    """Return the words that a thread waited for and that are locks."""
    threads = {one.tid for one in watch.threads}
    stacks = watch.stacks_of(watched, "lock_wait")
    language = language_of([one for some in watch.stacks.values() for one in some])
    locks = {
        one.word: lock_of(one, _of_word(stacks, one.word), threads, language)
        for one in watched.words
    }
    return {word: lock for word, lock in locks.items() if lock is not None}


def _of_word(stacks: Iterable[EventStack], word: str) -> tuple[EventStack, ...]:
    return tuple(one for one in stacks if one.key == int(word, 16))


def lock_waits(
    watch: Watch, watched: WatchedThread, locks: Mapping[str, Lock]
) -> Iterator[Finding]:
    """Find waits for locks among those for conditions, which are no fault."""
    stacks = watch.stacks_of(watched, "lock_wait")
    for lock, words in _by_lock(watched, locks):
        times = sum_of(one.times for one in words)
        of_words = tuple(s for one in words for s in _of_word(stacks, one.word))
        if after_probe(words[0].word):
            of_words, count = _of_probes(watch, watched)
        else:
            count = times.count
        yield Finding(
            "RA25" if lock.inherits else "RA10",
            f"{lock.kind}{_holder_words(watch, words, lock)}",
            tid=watched.tid,
            thread=watched.name,
            count=count,
            rate_per_s=rate_of(count, watched),
            stacks=of_words,
            worst=worst_of(watch, times),
            advice=lock.remedy,
        )


def _of_probes(
    watch: Watch, watched: WatchedThread
) -> tuple[tuple[EventStack, ...], int]:
    """Return stacks and number of the calls that waits for locks followed."""
    names = [name for name in watched.events if name.partition(".")[0] == PROBE]
    stacks = [one for name in names for one in watch.stacks_of(watched, name)]
    return tuple(stacks), sum(watched.events[name].count for name in names)


def _by_lock(
    watched: WatchedThread, locks: Mapping[str, Lock]
) -> Iterator[tuple[Lock, list[WatchedWord]]]:
    """Return the words of each lock, of those that it waited for."""
    groups: dict[str, tuple[Lock, list[WatchedWord]]] = {}
    for one in watched.words:
        if (lock := locks.get(one.word)) is not None and one.times.count:
            same = lock.single or after_probe(one.word)
            name = lock.kind if same else one.word
            groups.setdefault(name, (lock, []))[1].append(one)
    yield from groups.values()


def _holder_words(watch: Watch, words: Sequence[WatchedWord], lock: Lock) -> str:
    """Return who let it go, of the longest wait of which that is known."""
    known = [one for one in words if one.waker is not None]
    word = max(known, key=lambda one: one.times.worst_ns, default=None)
    if word is None or word.waker is None:
        return ""
    place = _place_of(watch, word.waker.tid, word.word)
    did = "" if word.meanwhile is None else f", which {_did_words(word.meanwhile)}"
    verb = "woke it" if after_probe(word.word) else "let it go"
    # its priority was the one that it had inherited
    who = _of_tid(word.waker) if lock.inherits else _named(word.waker)
    return f"; {who} {verb}{place} after {duration(word.times.worst_ns)}{did}"


def _did_words(did: Meanwhile) -> str:
    parts = [f"ran {duration(did.ran_ns)}"]
    if did.aside_ns:
        parts.append(f"lacked a CPU for {duration(did.aside_ns)}")
    if did.slept_ns:
        where = f" ({did.slept_in})" if did.slept_in else ""
        parts.append(f"slept {duration(did.slept_ns)}{where}")
    return ", ".join(parts)


def _place_of(watch: Watch, tid: int, word: str) -> str:
    """Return where a thread lets a lock go: its first frame of the program's own."""
    for one in _of_word(watch.stacks.get((tid, "lock_wake"), ()), word):
        if (leading := one.stack.leading) is not None:
            return f" in {frame_words(one.stack.frames[leading])}"
    return ""


def inversions(
    watch: Watch, watched: WatchedThread, locks: Mapping[str, Lock]
) -> Iterator[Finding]:
    """Find locks whose owners could not run, as a thread that is less urgent did."""
    stacks = watch.stacks_of(watched, "lock_wait")
    for lock, words in _by_lock(watched, locks):
        names = {one.word for one in words}
        # of a probed lock it is known who woke the thread, not who had the lock
        known = not lock.inherits and not after_probe(words[0].word)
        rows = [one for one in watched.inversions if known and one.word in names]
        if rows:
            times = sum_of(one.times for one in rows)
            yield Finding(
                "RA11",
                _inversion_words(rows),
                tid=watched.tid,
                thread=watched.name,
                count=times.count,
                rate_per_s=rate_of(times.count, watched),
                stacks=tuple(s for one in words for s in _of_word(stacks, one.word)),
                worst=worst_of(watch, times),
                advice=lock.remedy,
            )


def _inversion_words(rows: Sequence[Inversion]) -> str:
    owners = dict.fromkeys(_named(one.owner) for one in rows)
    by = sorted(rows, key=lambda one: -one.times.total_ns)
    names = dict.fromkeys(_named(one.by) for one in by)
    return f"{', '.join(owners)} had the lock, {', '.join(names)} had its CPU"


# --- who wakes ----------------------------------------------------------------------


def wakers(watched: WatchedThread, locks: Mapping[str, Lock]) -> Iterator[Finding]:
    """Find wake-ups of a real-time thread that depend on a less urgent one."""
    by = sorted(_merged(watched, locks), key=lambda one: -one.count)
    total = sum(one.count for one in by) + watched.other_wakers
    if not total:
        return
    words = [_waker(one) for one in by]
    if rest := watched.other_wakers:
        words.append(f"{rest:,} by threads that there was no room to name")
    yield Finding(
        "RA12",
        ", ".join(words),
        tid=watched.tid,
        thread=watched.name,
        count=total,
        rate_per_s=rate_of(total, watched),
    )


def _merged(watched: WatchedThread, locks: Mapping[str, Lock]) -> Iterable[Waker]:
    """Return who woke it, but for the owners of locks; each once."""
    rows: dict[tuple[int, bool], Waker] = {}
    for one in watched.wakers:
        if one.word in locks:
            continue
        key = (one.by.tid, one.softirq)
        count = rows[key].count if key in rows else 0
        rows[key] = Waker(one.by, one.softirq, one.count + count, "0")
    return rows.values()


def _waker(one: Waker) -> str:
    if one.softirq:
        return f"by a softirq in {one.by.name} {one.count:,}"
    return f"by {_named(one.by)} {one.count:,}"


def _of_tid(party: Party) -> str:
    if not party.name:
        return f"a thread that has ended ({party.tid})"
    return f"{party.name} ({party.tid})"


def _named(party: Party) -> str:
    """Return thread and priority as chrt and ps give them."""
    if not party.name:
        return _of_tid(party)
    if party.priority > _LOWEST_REAL_TIME:
        return f"{party.name} ({party.tid}, not real-time)"
    if party.priority < 0:
        return f"{party.name} ({party.tid}, deadline)"
    return f"{party.name} ({party.tid}, priority {99 - party.priority})"


# --- numbers ------------------------------------------------------------------------


def worst_of(watch: Watch, times: EventTimes | None) -> Worst | None:
    """Return the longest; None if none was seen from begin to end."""
    if times is None or not times.count:
        return None
    return Worst(
        lasted_ns=times.worst_ns,
        after_ns=max(0, times.worst_at_ns - watch.begin.from_ns),
        where=times.worst_in,
        timed=times.count,
        total_ns=times.total_ns,
    )


def rate_of(count: int, watched: WatchedThread) -> float | None:
    """Return how often a second; None if the thread was watched for no time."""
    lasted_ns = watched.to_ns - watched.from_ns
    return count * NS_PER_S / lasted_ns if lasted_ns > 0 else None
