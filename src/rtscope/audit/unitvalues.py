"""What the settings of a unit mean together: its policy, its rights, its CPUs."""

import re
from dataclasses import dataclass

from rtscope.audit.cpus import Cpus
from rtscope.audit.unitfile import Assignment, Unit, words

REAL_TIME = ("fifo", "rr")
POLICIES = ("other", "batch", "idle", *REAL_TIME)
MAX_PRIORITY = 99

SYS_NICE, IPC_LOCK = "CAP_SYS_NICE", "CAP_IPC_LOCK"

_BOOLEANS = {
    **dict.fromkeys(("1", "yes", "y", "true", "t", "on"), True),
    **dict.fromkeys(("0", "no", "n", "false", "f", "off"), False),
}
_NUMBER = re.compile(r"\d+")
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_BYTES = re.compile(r"(\d+)([KMGTPE]?)")


class OddValueError(ValueError):
    """A value that systemd would ignore, or that only systemd can expand."""

    def __init__(self, assignment: Assignment, why: str) -> None:
        super().__init__(f"{assignment.key}={assignment.value}: {why}")
        self.assignment = assignment
        self.expands = "%" in assignment.value


@dataclass(frozen=True, slots=True)
class Policy:
    """What the first thread of a unit is started with."""

    name: str
    priority: int
    """0 where the policy has none; 1 if the unit names none (load-fragment.c)."""
    named: Assignment | None
    priority_named: Assignment | None

    @property
    def real_time(self) -> bool:
        """Whether it is fifo or rr."""
        return self.name in REAL_TIME


def policy_of(unit: Unit) -> Policy:
    """Return the policy of a unit; raises OddValueError."""
    named, given = unit.last("CPUSchedulingPolicy"), unit.last("CPUSchedulingPriority")
    name = named.value if named else "other"
    if named and name not in POLICIES:
        raise OddValueError(named, f"systemd knows {', '.join(POLICIES)}")
    priority = number(given) if given else None
    if given and not 0 <= (priority or 0) <= MAX_PRIORITY:
        raise OddValueError(given, f"priorities are 1 to {MAX_PRIORITY}")
    wanted = max(priority or 0, 1) if name in REAL_TIME else 0
    return Policy(name, wanted, named, given)


def number(assignment: Assignment) -> int:
    """Return a whole number; raises OddValueError."""
    if not _NUMBER.fullmatch(assignment.value):
        raise OddValueError(assignment, "no number")
    return int(assignment.value)


def boolean(assignment: Assignment | None) -> bool:
    """Return yes or no, no if nothing is said; raises OddValueError."""
    if assignment is None:
        return False
    found = _BOOLEANS.get(assignment.value.lower())
    if found is None:
        raise OddValueError(assignment, "neither yes nor no")
    return found


def cpus_of(unit: Unit, key: str) -> Cpus | None:
    """Return a list of CPUs, None if there is none; raises OddValueError."""
    found: set[int] = set()
    assignments = unit.all(key)
    for assignment, word in words(assignments):
        if word == "numa":
            raise OddValueError(assignment, "the CPUs of NUMAMask=, which is not read")
        match = _RANGE.fullmatch(word)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise OddValueError(assignment, "no list of CPUs")
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found) if assignments else None


def soft_limit(assignment: Assignment | None) -> int | None:
    """
    Return the soft limit of `soft:hard`, -1 for infinity, None if nothing is said.

    Sizes may end in K, M, G, ... to the base 1024; raises OddValueError.
    """
    if assignment is None:
        return None
    text = assignment.value.partition(":")[0]
    if text == "infinity":
        return -1
    match = _BYTES.fullmatch(text)
    if match is None:
        raise OddValueError(assignment, "no limit")
    power = " KMGTPE".index(match[2] or " ")
    return int(match[1]) << 10 * power


def runs_as_root(unit: Unit) -> bool:
    """Whether its processes are root's; raises OddValueError."""
    user = unit.last("User")
    if user is not None and "%" in user.value:
        raise OddValueError(user, "only systemd can expand it")
    named = user is not None and user.value not in ("root", "0")
    return not named and not boolean(unit.last("DynamicUser"))


def has_capability(unit: Unit, name: str) -> bool:
    """Whether its processes keep or get a capability; raises OddValueError."""
    if not _in_set(unit, "CapabilityBoundingSet", name, unset=True):
        return False
    return runs_as_root(unit) or _in_set(unit, "AmbientCapabilities", name, unset=False)


def contradicts_itself(unit: Unit, name: str) -> bool:
    """Whether AmbientCapabilities= gives what CapabilityBoundingSet= takes away."""
    ambient = _in_set(unit, "AmbientCapabilities", name, unset=False)
    return ambient and not _in_set(unit, "CapabilityBoundingSet", name, unset=True)


def _in_set(unit: Unit, key: str, name: str, *, unset: bool) -> bool:
    """Whether a capability is in a set, merged as systemd.exec(5) says."""
    there: bool | None = None
    for assignment in unit.assignments:
        if assignment.key != key:
            continue
        inverted = assignment.value.startswith("~")
        named = assignment.value.removeprefix("~").split()
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
    return MAX_PRIORITY if limit == -1 else min(limit or 0, MAX_PRIORITY)


def asks_for_realtime(unit: Unit) -> bool:
    """Whether a unit has to do with real time at all; raises OddValueError."""
    policy = policy_of(unit)
    return (
        policy.real_time
        or policy.priority_named is not None
        or soft_limit(unit.last("LimitRTPRIO")) not in (None, 0)
        or _in_set(unit, "AmbientCapabilities", SYS_NICE, unset=False)
    )
