"""
Checks of what login sessions and user managers are given: limits.conf, rtkit.

None of it reaches a unit of the system's manager.
"""

import re
from collections.abc import Iterable

from rtscope.machine.audit.answers import (
    Answer,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.machine.audit.context import AuditContext
from rtscope.machine.audit.limitsfiles import (
    FOLDER,
    MAIN,
    REAL_TIME,
    LimitLine,
    SessionLimits,
    read_limits,
)
from rtscope.machine.audit.model import CheckKind, Sighting

PAM = "/etc/pam.d/*"
MAX_TOLD = 8

RTKIT_COMM = "rtkit-daemon"
_MAX_PRIORITY = re.compile(r"--max-realtime-priority=(\d+)")
_MAX_RTTIME = re.compile(r"--rttime-usec-max=(\d+)")
RTKIT_PRIORITY, RTKIT_RTTIME_US = 20, 200_000
"""Of rtkit-daemon.c, where its command line names no other."""


def session_limits(context: AuditContext) -> SessionLimits | None:
    """Return what the files of pam_limits say; None if there are none."""
    texts = {
        path: content.decode("utf-8", "replace")
        for pattern in (MAIN, FOLDER)
        for path in context.matching(pattern)
        if (content := context.machine.raw(path)) is not None
    }
    return read_limits(texts) if texts else None


def limits_files(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether pam_limits takes every line, and say whom it gives what."""
    limits = session_limits(context)
    refused = context.refusals(MAIN, FOLDER)
    services = context.matching(PAM)
    if refused:
        return unknown("not readable", *refused)
    if limits is None and not services:
        return unknown(f"no {MAIN}, and no file of /etc/pam.d either")
    if limits is None:
        says = f"no {MAIN}: login sessions have the kernel's limits"
        return not_applicable(says)
    if limits.mistakes:
        told = [f"{one.where}: {one}" for one in limits.mistakes[:MAX_TOLD]]
        more = len(limits.mistakes) - MAX_TOLD
        rest = [f"and {more} more"] if more > 0 else []
        sightings = [Sighting(one.where, str(one)) for one in limits.mistakes]
        return failed("; ".join([*told, *rest]), *sightings)
    given = [line for item in REAL_TIME for line in limits.of(item)]
    evidence = (*_seen(given), *_seen(limits.overridden, "overridden by a later line"))
    if not given:
        says = "no line on rtprio, memlock or nice: login sessions get the defaults"
        return passed(says, *(evidence or (Sighting(MAIN, "read"),)))
    if services and not any("pam_limits.so" in text for text in services.values()):
        says = f"{_told(given)}, but no service of /etc/pam.d has pam_limits.so"
        return failed(says, *evidence)
    return passed(f"{_told(given)}; for login sessions, no system unit", *evidence)


def _told(lines: Iterable[LimitLine]) -> str:
    parts = [
        f"{one.item} {kind}{one.value} for {one.who}"
        for one in lines
        for kind in ("" if one.kind == "-" else f"{one.kind} ",)
    ]
    return ", ".join(parts[:MAX_TOLD]) + (", …" if len(parts) > MAX_TOLD else "")


def _seen(lines: Iterable[LimitLine], why: str = "") -> tuple[Sighting, ...]:
    return tuple(
        Sighting(
            one.where,
            f"{one.domain} {one.kind} {one.item} {one.value}"
            + (f": {why}" if why else ""),
        )
        for one in lines
    )


def rtkit(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether rtkit hands out real-time policies, and within which limits."""
    processes = context.matching(kind.paths[0])
    runs = [path for path, name in processes.items() if name == RTKIT_COMM]
    files = {p: t for path in kind.paths[1:] for p, t in context.matching(path).items()}
    if not runs and not files:
        seen = Sighting(kind.paths[0], f"no process {RTKIT_COMM}")
        return passed("no rtkit", seen) if processes else unknown("no visible process")
    text = "\n".join(files.values())
    priority = _last(_MAX_PRIORITY, text, RTKIT_PRIORITY)
    rttime_us = _last(_MAX_RTTIME, text, RTKIT_RTTIME_US)
    state = "runs" if runs else "is installed, and starts when it is asked"
    says = (
        f"it {state}: SCHED_RR up to priority {priority} for programs that ask over "
        f"D-Bus, if their limit on real-time CPU time is {rttime_us / 1000:.0f} ms or "
        "less; its canary makes them all ordinary when it starves"
    )
    where = (*runs[:1], *files)
    return failed(says, *(Sighting(path, "there") for path in where))


def _last(pattern: re.Pattern[str], text: str, default: int) -> int:
    found = pattern.findall(text)
    return int(found[-1]) if found else default
