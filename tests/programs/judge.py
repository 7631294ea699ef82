"""Is a finding of `app check` true, and which offence that the witness saw is missing?"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from programs.systemcalls import NUMBERS
from programs.witness import Seen

_REAL_TIME = (1, 2, 6)
_ORDINARY = 120
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
_FEW = 5
"""Events of a witness, from which one of them must be inside the shorter window."""


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
    """Judge each finding of an answer."""
    verdicts = []
    for finding in answer["findings"]:
        right, why = _right(finding, seen, answer)
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
        for name, why in _offences(tid, seen):
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


def _offences(tid: int, seen: Seen) -> Iterator[tuple[str, str]]:
    share = 2.0  # the windows of the witness are at most this much longer
    allocating = {n: c for (t, n), c in seen.allocations.items() if t == tid}
    if sum(allocating.values()) >= _FEW * share:
        yield "RA07", f"{allocating}"
    faults = _faults(tid, seen)
    if faults >= _FEW * share:
        yield "RA05", f"{faults} page faults"
    mapping = {name: _calls(name, tid, seen) for name in _MAPPING}
    if sum(mapping.values()) >= _FEW * share:
        yield "RA08", f"{mapping}"
    files = {
        name: n for name in _FILES if (n := _calls(name, tid, seen)) >= _FEW * share
    }
    if files:
        yield "RA09", f"{files}"
    for key, count in seen.maps.get("futexlongest", {}).items():
        if key[0] == tid and key[1] == 6 and count:
            yield "RA10", "FUTEX_LOCK_PI"
    if seen.count("moved", tid) >= _FEW * share:
        yield "RA15", f"{seen.count('moved', tid)} moves"
    if seen.count("signals", tid) >= _FEW * share:
        yield "RA21", f"{seen.count('signals', tid)} signals"


def _faults(tid: int, seen: Seen) -> int:
    at = {k[1]: n for k, n in seen.maps.get("faultat", {}).items() if k[0] == tid}
    own = sum(n for page, n in at.items() if page in seen.own_pages)
    return (sum(at.values()) if at else seen.count("faults", tid)) - own


def _calls(name: str, tid: int, seen: Seen) -> int:
    number = NUMBERS.get(name)
    return 0 if number is None else seen.maps.get("calls", {}).get((tid, number), 0)


def _right(
    finding: Mapping[str, Any], seen: Seen, answer: Mapping[str, Any]
) -> tuple[bool | None, str]:
    tid, name = finding["tid"], finding["id"]
    thread = seen.threads.get(tid) if tid is not None else None
    tids = [tid] if tid is not None else [one["tid"] for one in answer["threads"]]

    def some(of: str) -> tuple[bool, str]:
        count = sum(seen.count(of, one) for one in tids)
        return count > 0, f"{of}: {count} in {seen.window_ns / 1e9:.1f} s"

    match name:
        case "RA01":
            if thread is None:
                ordinary = [
                    t for t in seen.threads.values() if t.policy not in _REAL_TIME
                ]
                return bool(ordinary), f"{len(ordinary)} ordinary threads"
            ordinary = [t for t in seen.threads.values() if t.policy not in _REAL_TIME]
            return thread.policy not in _REAL_TIME or bool(
                ordinary
            ), f"policy {thread.policy}, {len(ordinary)} ordinary"
        case "RA02":
            others = [t for t in seen.threads.values() if t.policy in _REAL_TIME]
            return bool(others), f"priorities {sorted({t.priority for t in others})}"
        case "RA03":
            wide = [seen.threads[one].cpus for one in tids if one in seen.threads]
            return (bool(wide) and max(wide) > 1) or None, f"{wide} CPUs"
        case "RA04":
            return seen.unlocked_kib > 0, f"{seen.unlocked_kib} KiB without lo"
        case "RA05":
            count = sum(_faults(one, seen) for one in tids)
            return count > 0, f"{count} page faults"
        case "RA06":
            count = sum(seen.major.get(one, 0) for one in tids)
            return count > 0, f"{count} major faults"
        case "RA07":
            count = sum(n for (t, _), n in seen.allocations.items() if t in tids)
            if not seen.allocations:
                return None, "the witness has no probe in this program's allocator"
            return count > 0, f"{count} allocations"
        case "RA08":
            count = sum(_calls(call, one, seen) for call in _MAPPING for one in tids)
            return count > 0, f"{count} calls"
        case "RA09":
            return _blocking(finding, tids, seen)
        case "RA10":
            waits = {
                key: n
                for key, n in seen.maps.get("futexlongest", {}).items()
                if key[0] in tids
            }
            return bool(waits), f"futex, longest in ns by operation: {waits}"
        case "RA12":
            woken = [
                key
                for key in seen.maps.get("woken", {})
                if key[0] in tids and key[3] > key[2]
            ]
            return bool(woken), f"{len(woken)} less urgent wakers"
        case "RA13":
            return some("preempted")
        case "RA15":
            return some("moved")
        case "RA17":
            gap = max((seen.most("gap", one) for one in tids), default=0)
            busy = max((seen.most("busy", one) for one in tids), default=0)
            period = re.search(r"period is ([\d.,]+) (us|µs|ms|s)\b", finding["detail"])
            if not period:
                return None, "no period is told"
            scale = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}[period[2]]
            period_ns = float(period[1].replace(",", "")) * scale
            late = gap > 1.5 * period_ns or busy > period_ns
            return late, f"longest from wake-up to wake-up {gap} ns, busy {busy} ns"
        case "RA18":
            slack = [seen.threads[one].slack_ns for one in tids if one in seen.threads]
            return bool(slack) and max(slack) > 1, f"slack {slack} ns"
        case "RA19":
            return None, "limits are told by the same file"
        case "RA20":
            lazy = [one for one in seen.lazy if one in finding["detail"]]
            return bool(lazy) or None, f"without BIND_NOW: {', '.join(lazy)}"
        case "RA21":
            return some("signals")
        case "RA23":
            return seen.not_resident_kib > 0, f"{seen.not_resident_kib} KiB"
    return None, "no witness for this finding"


def _blocking(
    finding: Mapping[str, Any], tids: list[int], seen: Seen
) -> tuple[bool | None, str]:
    detail = finding["detail"]
    told = [
        name
        for name in re.findall(r"(?:^|[ (])([a-z]\w*)(?= [\d(]|,|\)|$)", detail)
        if name in NUMBERS and name != "time"
    ]
    if "sleeps that are not" in detail:
        told += [one for one in _SLEEPS if any(_calls(one, tid, seen) for tid in tids)]
    if not told:
        return None, "no call is named"
    counts = {name: sum(_calls(name, tid, seen) for tid in tids) for name in told}
    if not all(counts.values()):
        return False, f"{counts}"
    cannot = [name for name in told if _never_blocks(name, tids, seen)]
    return not cannot, f"{counts}" + (f"; only O_NONBLOCK: {cannot}" if cannot else "")


def _never_blocks(name: str, tids: list[int], seen: Seen) -> bool:
    if name not in _OF_A_DESCRIPTOR or name == "ioctl":
        return False
    files = {
        key[2]
        for key in seen.maps.get("files", {})
        if key[0] in tids and key[1] == NUMBERS[name]
    }
    return bool(files) and files <= seen.nonblocking
