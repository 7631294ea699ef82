"""
Checks of units that a user's manager runs: what it may not give, whatever they say.

It runs as that user, without capabilities: it sets a policy, a nice value and limits
only as far as its own limits go, which user@.service and pam_limits give it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rtscope.machine.audit.answers import (
    Answer,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.machine.audit.context import AuditContext
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.audit.sessionchecks import session_limits
from rtscope.machine.audit.unit import Assignment, Unit, merge
from rtscope.machine.audit.unitmeaning import policy_of
from rtscope.machine.audit.unitvalues import (
    INFINITY,
    LIMITS,
    MAX_PRIORITY,
    nice_value,
)

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
        return failed("; ".join(told), *_seen(wrong))
    if open_:
        told = [f"{line.key}={line.value}: {why}" for line, why in open_]
        return unknown("; ".join(told), *_seen(open_))
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


def _seen(lines: list[tuple[Assignment, str]]) -> tuple[Sighting, ...]:
    return tuple(Sighting(one.where, f"{one.key}={one.value}") for one, _ in lines)
