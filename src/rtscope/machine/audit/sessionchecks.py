"""
Checks of what login sessions and user managers are given: limits.conf, rtkit, units.

None of it reaches a unit of the system's manager.

It runs as that user, without capabilities: it sets a policy, a nice value and limits
only as far as its own limits go, which user@.service and pam_limits give it.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rtscope.host.errors import first_of
from rtscope.machine.audit.context import (
    Answer,
    AuditContext,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.audit.unit import Assignment, Unit, merge
from rtscope.machine.audit.unitmeaning import policy_of
from rtscope.machine.audit.unitvalues import INFINITY, LIMITS, MAX_PRIORITY, nice_value

# --- limits.conf and limits.d/*.conf, as pam_limits reads them ----------------------

# limits.conf(5), modules/pam_limits/pam_limits.c: domain, type, item and value in four
# words; limits.conf first, then limits.d in the order of the names; the last line about
# a domain counts, and a line about a user over one about a group over `*`.

MAIN = "/etc/security/limits.conf"
FOLDER = "/etc/security/limits.d/*.conf"

REAL_TIME = ("rtprio", "memlock", "nice")
"""What real-time programs need."""

_ITEMS = (
    *("core", "data", "fsize", "memlock", "nofile", "rss", "stack", "cpu", "nproc"),
    *("as", "maxlogins", "maxsyslogins", "nonewprivs", "priority", "locks", "chroot"),
    *("sigpending", "msgqueue", "nice", "rtprio"),
)
_TYPES = ("soft", "hard", "-")
_NO_LIMIT = ("-1", "unlimited", "infinity")
_NUMBERS_ONLY = ("priority", "nice", "nonewprivs")
_RANGE = re.compile(r"(?:[0-9]*:[0-9]+|[0-9]+:)")
_OF_LOGINS = ("maxlogins", "maxsyslogins")
_MAX_RTPRIO = 99


@dataclass(frozen=True, slots=True)
class LimitLine:
    """A line that pam_limits takes."""

    domain: str
    kind: str
    item: str
    value: str
    where: str
    """File and line."""

    @property
    def who(self) -> str:
        """For whom it is, in words."""
        if self.domain == "*":
            return "all users but root"
        name = self.domain.removeprefix("@")
        what = "group" if self.domain.startswith("@") else "user"
        if _RANGE.fullmatch(name):
            return f"{'GID' if what == 'group' else 'UID'} {name}"
        return f"{what} {name}"


@dataclass(frozen=True, slots=True)
class LimitMistake:
    """A line that pam_limits skips, or that does not do what it seems to."""

    where: str
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.text[:80]!r}: {self.why}"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """All files together."""

    lines: tuple[LimitLine, ...]
    """Those that count, in order."""
    overridden: tuple[LimitLine, ...]
    mistakes: tuple[LimitMistake, ...]

    def of(self, item: str) -> Iterator[LimitLine]:
        """Yield the lines of an item."""
        return (line for line in self.lines if line.item == item)


def read_limits(texts: Mapping[str, str]) -> SessionLimits:
    """Read the texts of all files by their paths."""
    lines: dict[tuple[str, str, str], LimitLine] = {}
    overridden: list[LimitLine] = []
    mistakes: list[LimitMistake] = []
    order = sorted(texts, key=lambda path: (path != MAIN, path))
    for path in order:
        for number, raw in enumerate(texts[path].split("\n"), start=1):
            text = " ".join(raw.partition("#")[0].split())
            if not text:
                continue
            line = _line(text, f"{path}:{number}")
            if isinstance(line, LimitMistake):
                mistakes.append(line)
                continue
            for kind in _TYPES[:2] if line.kind == "-" else (line.kind,):
                before = lines.pop((line.domain, line.item, kind), None)
                if before is not None and before.value != line.value:
                    overridden.append(before)
                lines[line.domain, line.item, kind] = line
    kept = dict.fromkeys(lines.values())
    return SessionLimits(
        tuple(kept),
        tuple(one for one in dict.fromkeys(overridden) if one not in kept),
        tuple(mistakes),
    )


def _line(text: str, where: str) -> LimitLine | LimitMistake:
    words = text.split()

    def odd(why: str) -> LimitMistake:
        return LimitMistake(where, text, f"{why}; pam_limits skips the line")

    if len(words) == 2 and words[1] == "-":
        return LimitLine(words[0], "-", "", "", where)
    if len(words) < 4:
        return odd("a line has four words: domain, type, item and value")
    domain, kind, item, value = words[0], *map(str.lower, words[1:4])
    if kind not in _TYPES:
        return odd(f"{words[1]}: not soft, hard or -{_near(kind, _TYPES)}")
    if item not in _ITEMS:
        return odd(f"{words[2]}: no such item{_near(item, _ITEMS)}")
    if domain.startswith("%") and item not in _OF_LOGINS:
        return odd(f"{domain}: % is for maxlogins alone; a group is @{domain[1:]}")
    if why := _odd_value(item, value):
        return odd(f"{words[3]}: {why}")
    if len(words) > 4:
        why = f"{' '.join(words[4:])!r} behind the value is passed over"
        return LimitMistake(where, text, why)
    return LimitLine(domain, kind, item, value, where)


def _odd_value(item: str, value: str) -> str:
    if item == "chroot":
        return ""
    if value in _NO_LIMIT and not (item in _NUMBERS_ONLY and not value[-1].isdecimal()):
        return ""
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", value):
        what = " in KiB" if item == "memlock" else ""
        return f"not a number{what}, nor unlimited"
    if item == "rtprio" and not 0 <= int(value) <= _MAX_RTPRIO:
        return f"priorities are 0 to {_MAX_RTPRIO}"
    if item == "nice" and not -20 <= int(value) <= 19:
        return "nice values are -20 to 19"
    return ""


def _near(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f", near: {near[0]}" if near else ""


# --- checks -------------------------------------------------------------------------

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
        told = [f"{one.where}: {one}" for one in limits.mistakes]
        sightings = [Sighting(one.where, str(one)) for one in limits.mistakes]
        return failed(first_of(MAX_TOLD, told, between="; ", last="; and "), *sightings)
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


# Checks of units that a user's manager runs: what it may not give, whatever they say.

MANAGER = "user@.service"
PAM_SERVICES = ("/etc/pam.d/systemd-user", "/usr/lib/pam.d/systemd-user")

_NEEDS_ROOT = ("User", "Group", "DynamicUser", "AmbientCapabilities")
_NOT_DELEGATED = ("AllowedCPUs", "StartupAllowedCPUs")
_DEFAULT_MEMLOCK = 8 << 20


@dataclass(frozen=True, slots=True)
class _Own:
    """A limit of a user's manager itself."""

    most: int | None
    """None: it depends on the user."""
    why: str


def unit_user_manager(kind: CheckKind, context: AuditContext) -> Answer:
    """Check what a user's manager may not give to a unit."""
    unit = context.unit
    if unit is None or not unit.of_user:
        return not_applicable("the system's manager runs it")
    found = list(_refused(kind, context, unit))
    wrong = [(line, why) for line, why, sure in found if sure]
    open_ = [(line, why) for line, why, sure in found if not sure]
    if wrong:
        told = [f"{line.key}={line.value}: {why}" for line, why in wrong]
        return failed("; ".join(told), *_seen_lines(wrong))
    if open_:
        told = [f"{line.key}={line.value}: {why}" for line, why in open_]
        return unknown("; ".join(told), *_seen_lines(open_))
    files = [Sighting(file, "read") for file in unit.files[:1]]
    return passed("nothing that a user's manager may not give", *files)


Refused = tuple[Assignment, str, bool]
"""A line without its effect, why, and whether that is certain."""


def _refused(kind: CheckKind, context: AuditContext, unit: Unit) -> Iterator[Refused]:
    for key in _NEEDS_ROOT:
        if (line := unit.last(key)) is not None:
            yield line, "only the system's manager can", True
    for key in _NOT_DELEGATED:
        if (line := unit.last(key)) is not None:
            yield line, "user@.service does not delegate the controller cpuset", True
    yield from _policy_refused(_own_limit(kind, context, "LimitRTPRIO"), unit)
    yield from _nice_refused(_own_limit(kind, context, "LimitNICE"), unit)
    for key in ("LimitRTPRIO", "LimitMEMLOCK"):
        yield from _limit_capped(_own_limit(kind, context, key), unit.last(key))


def _policy_refused(own: _Own, unit: Unit) -> Iterator[Refused]:
    policy = policy_of(unit)
    if not policy.real_time or policy.named is None:
        return
    line = policy.priority_named or policy.named
    if own.most is None:
        yield line, own.why, False
    elif policy.priority > own.most:
        yield line, f"{own.why}; the unit does not start (214/SETSCHEDULER)", True


def _nice_refused(own: _Own, unit: Unit) -> Iterator[Refused]:
    line = unit.last("Nice")
    nice = nice_value(line.value) if line is not None else 0
    if line is None or nice >= 0:
        return
    if own.most is None:
        yield line, own.why, False
    elif own.most != INFINITY and 20 - own.most > nice:
        yield line, f"{own.why}; the unit does not start (201/NICE)", True


def _limit_capped(own: _Own, line: Assignment | None) -> Iterator[Refused]:
    if line is None or own.most == INFINITY:
        return
    wanted = LIMITS[line.key](line.value)[0]
    if own.most is None:
        yield line, own.why, False
    elif wanted == INFINITY or wanted > own.most:
        yield line, f"capped: {own.why}", True


def _own_limit(kind: CheckKind, context: AuditContext, key: str) -> _Own:
    item = key.removeprefix("Limit").lower()
    texts = {
        path: text
        for pattern in kind.paths
        if MANAGER in pattern
        for path, text in context.matching(pattern).items()
    }
    if not texts:
        return _Own(None, f"no {MANAGER} is visible")
    line = merge(MANAGER, texts).last(key)
    if line is not None:
        hard = LIMITS[key](line.value)[1]
        most = MAX_PRIORITY if item == "rtprio" and hard == INFINITY else hard
        return _Own(most, f"{MANAGER} has {key}={line.value} ({line.where})")
    limits = session_limits(context)
    given = list(limits.of(item)) if limits else []
    uses_pam = any("pam_limits" in context.words(path) for path in PAM_SERVICES)
    if given and uses_pam:
        who = ", ".join(f"{one.value} to {one.who}" for one in given)
        return _Own(None, f"limits.conf gives {item} {who}; unknown whether it is that")
    says = f"no {key}= in {MANAGER}"
    if item == "memlock":
        return _Own(_DEFAULT_MEMLOCK, f"{says}: the default of 8 MiB or less")
    return _Own(0, f"{says}, and no limits.conf that reaches it: 0")


def _seen_lines(lines: list[tuple[Assignment, str]]) -> tuple[Sighting, ...]:
    return tuple(Sighting(one.where, f"{one.key}={one.value}") for one, _ in lines)
