"""
What the settings of a unit come to: policy, CPUs, limits, rights.

A setting that only systemd can expand (`%i`) is an OddValueError.
"""

from dataclasses import dataclass

from rtscope.contract import FIXED_PRIORITY
from rtscope.machine.audit.unit import Assignment, Unit
from rtscope.machine.audit.unitvalues import (
    INFINITY,
    LIMITS,
    MAX_PRIORITY,
    POLICIES,
    backward_ranges,
    boolean_word,
    command,
    cpu_list,
    list_words,
)
from rtscope.machine.audit.unitvalues import policy as policy_number
from rtscope.machine.audit.unitvalues import priority as priority_number

NOT_SET_BY_SYSTEMD = {6: "deadline", 7: "ext"}
"""Policies with more values than the two settings have, or of a loaded scheduler."""

SYS_NICE, IPC_LOCK = "CAP_SYS_NICE", "CAP_IPC_LOCK"

_NAMES = {number: name for name, number in POLICIES.items()} | NOT_SET_BY_SYSTEMD


class OddValueError(ValueError):
    """A value that only systemd can expand."""

    def __init__(self, assignment: Assignment, why: str) -> None:
        super().__init__(f"{assignment.key}={assignment.value}: {why}")
        self.assignment = assignment


@dataclass(frozen=True, slots=True)
class Policy:
    """What the first thread of a unit is started with."""

    name: str
    priority: int
    """0 where the policy has none; 1 if the unit names none (load-fragment.c)."""
    named: Assignment | None
    priority_named: Assignment | None
    requested: int = 0
    """The priority that systemd hands to the kernel, which refuses some with EINVAL."""

    @property
    def real_time(self) -> bool:
        """Whether it is fifo or rr."""
        return self.name in FIXED_PRIORITY

    @property
    def starts(self) -> bool:
        """Whether the kernel takes policy and priority together."""
        if self.name not in POLICIES:
            return False
        return self.real_time == (self.requested > 0)


def policy_of(unit: Unit) -> Policy:
    """Return the policy of a unit, line after line as systemd sets it."""
    name, requested = "other", 0
    named: Assignment | None = None
    ranked: Assignment | None = None
    for line in unit.own():
        if line.key == "CPUSchedulingPolicy":
            named = line if line.value else None
            if named is None:
                name, requested, ranked = "other", 0, None
                continue
            number = policy_number(line.value)
            name = _NAMES.get(number, f"policy {number}")
            least, most = (1, MAX_PRIORITY) if name in FIXED_PRIORITY else (0, 0)
            requested = min(max(requested, least), most)
        elif line.key == "CPUSchedulingPriority":
            ranked, requested = line, priority_number(line.value)
    wanted = max(requested, 1) if name in FIXED_PRIORITY else 0
    return Policy(name, wanted, named, ranked, requested)


def boolean(assignment: Assignment | None) -> bool:
    """Return yes or no, no if not set."""
    return assignment is not None and boolean_word(assignment.value)


def cpus_of(unit: Unit, key: str) -> frozenset[int] | None:
    """Return a list of CPUs, None if there is none; raises OddValueError."""
    cpus: set[int] = set()
    assignments = unit.all(key)
    for line in assignments:
        if line.expands:
            raise OddValueError(line, "only systemd can expand it")
        skipped = backward_ranges(line.value)
        words = [word for word in list_words(line.value) if word not in skipped]
        listed = cpu_list(" ".join(words), numa=key == "CPUAffinity")
        if listed is None:
            raise OddValueError(line, "rtscope does not read NUMAMask=")
        cpus |= listed
    return frozenset(cpus) if assignments else None


def soft_limit(assignment: Assignment | None) -> int | None:
    """Return the soft limit of `soft:hard`, -1 for infinity, None if not set."""
    if assignment is None:
        return None
    return LIMITS[assignment.key](assignment.value)[0]


def runs_as_root(unit: Unit) -> bool:
    """Whether its processes are root's; raises OddValueError."""
    user, start = unit.last("User"), unit.last("ExecStart")
    if unit.of_user:
        return False
    prefixes = _prefixes(start) if start is not None else ""
    # Full privileges, or no change of the user (systemd.service(5), table 2).
    return "+" in prefixes or prefixes.count("!") == 1 or _is_roots(unit, user)


def _prefixes(start: Assignment) -> str:
    return command(start.value) if not start.expands else start.value[:4]


def _is_roots(unit: Unit, user: Assignment | None) -> bool:
    if user is not None and user.expands:
        raise OddValueError(user, "only systemd can expand it")
    named = user is not None and user.value not in ("root", "0")
    return not named and not boolean(unit.last("DynamicUser"))


def has_capability(unit: Unit, name: str) -> bool:
    """Whether its processes keep or get a capability; raises OddValueError."""
    # A user's manager has no capability to give.
    if unit.of_user or not _in_set(unit, "CapabilityBoundingSet", name, unset=True):
        return False
    return runs_as_root(unit) or _in_set(unit, "AmbientCapabilities", name, unset=False)


def contradicts_itself(unit: Unit, name: str) -> bool:
    """Whether AmbientCapabilities= gives what CapabilityBoundingSet= takes away."""
    ambient = _in_set(unit, "AmbientCapabilities", name, unset=False)
    return ambient and not _in_set(unit, "CapabilityBoundingSet", name, unset=True)


def _in_set(unit: Unit, key: str, name: str, *, unset: bool) -> bool:
    """Whether a capability is in a set, merged as systemd.exec(5) says."""
    there: bool | None = None
    for assignment in unit.own():
        if assignment.key != key:
            continue
        inverted = assignment.value.startswith("~")
        named = assignment.value.removeprefix("~").upper().split()
        if not named:
            there = inverted
        elif inverted:
            # The first line alone decides from which set is taken away.
            there = (there is None or there) and name not in named
        else:
            there = bool(there) or name in named
    return unset if there is None else there


def rtprio_allowed(unit: Unit) -> int:
    """Return the highest priority its threads may ask for; raises OddValueError."""
    if has_capability(unit, SYS_NICE):
        return MAX_PRIORITY
    limit = soft_limit(unit.last("LimitRTPRIO"))
    return MAX_PRIORITY if limit == INFINITY else min(limit or 0, MAX_PRIORITY)


def asks_for_realtime(unit: Unit) -> bool:
    """Whether a unit has to do with real time at all; raises OddValueError."""
    policy = policy_of(unit)
    return (
        policy.real_time
        or policy.priority_named is not None
        or soft_limit(unit.last("LimitRTPRIO")) not in (None, 0)
        or _in_set(unit, "AmbientCapabilities", SYS_NICE, unset=False)
    )
