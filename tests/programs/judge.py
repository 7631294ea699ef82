"""Is a finding of `app check` true, and what that a witness saw has none?"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from programs.systemcalls import NUMBERS
from programs.witness import ALLOCATING, Seen

Answered = tuple[bool | None, str]
"""Right or not, None if the witness cannot tell; and why."""

_REAL_TIME = (1, 2, 6)
_MAPPING = ("mmap", "munmap", "mprotect", "mremap", "brk", "madvise", "mlock")
_FILES = [
    "open",
    "openat",
    "openat2",
    "creat",
    "rename",
    "renameat",
    "unlink",
    "unlinkat",
    "stat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "mkdir",
    "rmdir",
    "getdents64",
    "fsync",
    "fdatasync",
    "sync",
    "ftruncate",
    "fallocate",
    "readlink",
    "readlinkat",
    "chdir",
    "chmod",
    "fchmod",
    "fchown",
    "execve",
]
_OF_A_DESCRIPTOR = [
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "accept4",
    "accept",
    "ioctl",
]
_SLEEPS = ("nanosleep", "clock_nanosleep", "poll", "select", "epoll_wait")
_FEW = 20
"""Events of a witness, from which one must be inside the shorter window too."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding, and what the witness says of it."""

    finding: str
    weight: str
    thread: str
    right: bool | None
    """None: the witness cannot tell."""
    why: str


def judged(answer: Mapping[str, Any], seen: Seen) -> list[Verdict]:
    """Judge each finding of an answer, by what was seen in the time that it is of."""
    verdicts = []
    for finding in answer["findings"]:
        from_ns, to_ns = _window(answer, finding["tid"], finding["id"])
        touching = seen.between(from_ns, to_ns, whole=False)
        right, why = _right(finding, touching, answer)
        verdicts.append(
            Verdict(finding["id"], finding["weight"], finding["thread"], right, why)
        )
    return verdicts


def missed(answer: Mapping[str, Any], seen: Seen) -> list[Verdict]:
    """Return the offences of the judged threads that have no finding."""
    found = {(finding["id"], finding["tid"]) for finding in answer["findings"]}
    without_thread = {name for name, tid in found if tid is None}
    unseen = " ".join(map(str, (*answer["not_seen"], *answer["not_looked_for"])))
    verdicts = []
    for thread in answer["threads"]:
        tid = thread["tid"]
        within = seen.between(*_window(answer, tid), whole=True)
        for name, why in _offences(tid, within):
            there = (name, tid) in found or name in without_thread
            verdicts.append(
                Verdict(
                    name,
                    "",
                    thread["name"],
                    there or None if name in unseen else there,
                    why,
                )
            )
    return verdicts


def _window(
    answer: Mapping[str, Any], tid: int | None, finding: str = ""
) -> tuple[int, int]:
    """Return when a thread was watched; of one that is not listed, when any was."""
    cycles = answer["cycles"]
    if finding == "RA17":
        return cycles["from_ns"], cycles["from_ns"] + cycles["window_ns"]
    windows = {
        one["tid"]: one["watched_ns"] for one in answer["threads"] if one["watched_ns"]
    }
    if tid in windows:
        from_ns, to_ns = windows[tid]
    elif windows:
        from_ns = min(begin for begin, _ in windows.values())
        to_ns = max(end for _, end in windows.values())
    else:
        from_ns, to_ns = cycles["from_ns"], cycles["from_ns"] + cycles["window_ns"]
    return from_ns, to_ns


def _offences(tid: int, seen: Seen) -> Iterator[tuple[str, str]]:
    allocating = {
        ALLOCATING[which]: count
        for (owner, which), count in seen.maps.get("alloc", {}).items()
        if owner == tid
    }
    if sum(allocating.values()) >= _FEW:
        yield "RA07", f"{allocating}"
    faults = _faults(tid, seen)
    if faults >= _FEW:
        yield "RA05", f"{faults} page faults"
    mapping = {name: _calls(name, tid, seen) for name in _MAPPING}
    if sum(mapping.values()) >= _FEW:
        yield "RA08", f"{mapping}"
    files = {name: n for name in _FILES if (n := _calls(name, tid, seen)) >= _FEW}
    if files:
        yield "RA09", f"{files}"
    for key, count in seen.maps.get("futexlongest", {}).items():
        if key[0] == tid and key[1] == 6 and count:
            yield "RA25", "FUTEX_LOCK_PI"
    if seen.count("moved", tid) >= _FEW:
        yield "RA15", f"{seen.count('moved', tid)} moves"
    if seen.count("signals", tid) >= _FEW:
        yield "RA21", f"{seen.count('signals', tid)} signals"


def _faults(tid: int, seen: Seen) -> int:
    at = {k[1]: n for k, n in seen.maps.get("faultat", {}).items() if k[0] == tid}
    own = sum(n for page, n in at.items() if page in seen.own_pages)
    return (sum(at.values()) if at else seen.count("faults", tid)) - own


def _calls(name: str, tid: int, seen: Seen) -> int:
    number = NUMBERS.get(name)
    return 0 if number is None else seen.maps.get("calls", {}).get((tid, number), 0)


@dataclass(frozen=True, slots=True)
class _Case:
    """One finding, the threads that it is about, and what the witness saw."""

    detail: str
    tid: int | None
    tids: tuple[int, ...]
    seen: Seen

    def some(self, of: str) -> Answered:
        """True if any of its threads has one."""
        count = sum(self.seen.count(of, one) for one in self.tids)
        return count > 0, f"{of}: {count}"

    def called(self, name: str) -> int:
        """Return how often its threads made a system call."""
        return sum(_calls(name, one, self.seen) for one in self.tids)


def _right(
    finding: Mapping[str, Any], seen: Seen, answer: Mapping[str, Any]
) -> Answered:
    tid = finding["tid"]
    tids = [one["tid"] for one in answer["threads"]] if tid is None else [tid]
    case = _Case(finding["detail"], tid, tuple(tids), seen)
    rule = _RULES.get(finding["id"])
    return rule(case) if rule else (None, "no witness for this finding")


def _not_real_time(case: _Case) -> Answered:
    threads = case.seen.threads
    thread = threads.get(case.tid) if case.tid is not None else None
    ordinary = sum(one.policy not in _REAL_TIME for one in threads.values())
    own = thread is not None and thread.policy not in _REAL_TIME
    return own or ordinary > 0, f"{ordinary} ordinary threads"


def _priorities(case: _Case) -> Answered:
    found = {one.priority for one in case.seen.threads.values()} - {0}
    return bool(found), f"priorities {sorted(found)}"


def _affinity(case: _Case) -> Answered:
    threads = case.seen.threads
    cpus = [threads[one].cpus for one in case.tids if one in threads]
    return max(cpus, default=0) > 1 or None, f"{cpus} CPUs"


def _minor_faults(case: _Case) -> Answered:
    count = sum(_faults(one, case.seen) for one in case.tids)
    return count > 0, f"{count} page faults"


def _major_faults(case: _Case) -> Answered:
    count = sum(case.seen.major.get(one, 0) for one in case.tids)
    return count > 0, f"{count} major faults"


def _allocations(case: _Case) -> Answered:
    if not case.seen.maps.get("alloc"):
        return None, "the witness has no probe in this program's allocator"
    count = sum(case.seen.count("alloc", one) for one in case.tids)
    return count > 0, f"{count} allocations"


def _mappings(case: _Case) -> Answered:
    count = sum(case.called(name) for name in _MAPPING)
    return count > 0, f"{count} calls"


def _lock_waits(case: _Case) -> Answered:
    waits = case.seen.maps.get("futexlongest", {})
    own = {key: longest for key, longest in waits.items() if key[0] in case.tids}
    return bool(own), f"futex, longest in ns by thread and operation: {own}"


def _less_urgent_wakers(case: _Case) -> Answered:
    woken = case.seen.maps.get("woken", {})
    found = [key for key in woken if key[0] in case.tids and key[3] > key[2]]
    return bool(found), f"{len(found)} less urgent wakers"


def _lateness(case: _Case) -> Answered:
    gap = max((case.seen.most("gap", one) for one in case.tids), default=0)
    busy = max((case.seen.most("busy", one) for one in case.tids), default=0)
    period = re.search(r"period is ([\d.,]+) (us|µs|ms|s)\b", case.detail)
    if not period:
        return None, "no period is told"
    scale = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}[period[2]]
    period_ns = float(period[1].replace(",", "")) * scale
    late = gap > 1.5 * period_ns or busy > period_ns
    return late, f"from wake-up to wake-up {gap} ns, busy {busy} ns at most"


def _slack(case: _Case) -> Answered:
    threads = case.seen.threads
    slack = [threads[one].slack_ns for one in case.tids if one in threads]
    return max(slack, default=0) > 1, f"slack {slack} ns"


def _lazy(case: _Case) -> Answered:
    found = [one for one in case.seen.lazy if one in case.detail]
    return bool(found) or None, f"without BIND_NOW: {', '.join(found)}"


_RULES: Mapping[str, Callable[[_Case], Answered]] = {
    "RA01": _not_real_time,
    "RA02": _priorities,
    "RA03": _affinity,
    "RA04": lambda case: (case.seen.unlocked_kib > 0, f"{case.seen.unlocked_kib} KiB"),
    "RA05": _minor_faults,
    "RA06": _major_faults,
    "RA07": _allocations,
    "RA08": _mappings,
    "RA09": lambda case: _blocking(case),
    "RA10": _lock_waits,
    "RA12": _less_urgent_wakers,
    "RA13": lambda case: case.some("preempted"),
    "RA15": lambda case: case.some("moved"),
    "RA17": _lateness,
    "RA18": _slack,
    "RA20": _lazy,
    "RA21": lambda case: case.some("signals"),
    "RA23": lambda case: (case.seen.not_resident_kib > 0, "of mapped code"),
}


def _blocking(case: _Case) -> Answered:
    told = [
        name
        for name in re.findall(r"(?:^|[ (])([a-z]\w*)(?= [\d(]|,|\)|$)", case.detail)
        if name in NUMBERS and name != "time"
    ]
    if "sleeps that are not" in case.detail:
        told += [one for one in _SLEEPS if case.called(one)]
    if not told:
        return None, "no call is named"
    counts = {name: case.called(name) for name in told}
    if not all(counts.values()):
        return False, f"{counts}"
    cannot = [name for name in told if _never_blocks(name, case.tids, case.seen)]
    return not cannot, f"{counts}" + (f"; only O_NONBLOCK: {cannot}" if cannot else "")


def _never_blocks(name: str, tids: tuple[int, ...], seen: Seen) -> bool:
    if name not in _OF_A_DESCRIPTOR or name == "ioctl":
        return False
    if any((tid, NUMBERS[name]) in seen.maps.get("slept", {}) for tid in tids):
        return False  # for a lock of the kernel
    files = {
        key[2]
        for key in seen.maps.get("files", {})
        if key[0] in tids and key[1] == NUMBERS[name]
    }
    return bool(files) and files <= seen.nonblocking
