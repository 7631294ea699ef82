"""
A unit of systemd: its files as systemd finds them, its settings, what they mean.

systemd.unit(5), systemd.syntax(7): sections, `key=value`, `#` and `;` comments; a
backslash at the end of a line continues it past comments; an empty assignment forgets
the ones before it. Specifiers (`%i`) stay as they are: their values are not checked.
A unit that is given as a path is read from there, with the drop-ins that lie beside it:
it need not be installed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rtscope.host.errors import UsageError
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Content, Denied, Reader, text_of

SECTIONS = {
    "service": "Service",
    "socket": "Socket",
    "mount": "Mount",
    "swap": "Swap",
}
"""The types of units that start processes, and where that stands (systemd.exec(5))."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One `key=value`."""

    section: str
    key: str
    value: str
    where: str
    """File and line, `my.service:12`."""


@dataclass(frozen=True, slots=True)
class UnitThread:
    """A thread of a unit that runs, as the kernel has it."""

    tid: int
    name: str
    policy: str
    priority: int
    cpus: frozenset[int]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit with its drop-ins merged, and its threads if it runs."""

    name: str
    files: tuple[str, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    ignored: tuple[Assignment, ...] = ()
    """Lines that are none, in `value`; systemd warns and goes on."""
    installed: bool = False
    """Whether it was found by its name where systemd looks."""
    threads: tuple[UnitThread, ...] | None = None
    why_no_threads: str = "not checked whether it runs"

    @property
    def kind(self) -> str:
        """The type of the unit, such as `service`."""
        return self.name.rpartition(".")[2]

    def all(self, key: str) -> tuple[Assignment, ...]:
        """Return the assignments of a key that count: those after an empty one."""
        kept: list[Assignment] = []
        for assignment in self._own():
            if assignment.key == key:
                kept = [*kept, assignment] if assignment.value else []
        return tuple(kept)

    def last(self, key: str) -> Assignment | None:
        """Return what counts of a key that holds one value; None if there is none."""
        assignments = self.all(key)
        return assignments[-1] if assignments else None

    def _own(self) -> Iterator[Assignment]:
        section = SECTIONS.get(self.kind)
        return (a for a in self.assignments if a.section == section)


@dataclass(slots=True)
class _Parsed:
    name: str
    section: str = ""
    assignments: list[Assignment] = field(default_factory=list)
    ignored: list[Assignment] = field(default_factory=list)

    def take(self, line: str, number: int) -> None:
        where = f"{self.name}:{number}"
        key, equals, value = line.partition("=")
        if line.startswith("[") and line.endswith("]"):
            self.section = line[1:-1]
        elif equals and key.strip() and self.section:
            self.assignments.append(
                Assignment(self.section, key.strip(), value.strip(), where)
            )
        else:
            self.ignored.append(Assignment(self.section, "", line, where))


def parse(text: str, *, name: str) -> tuple[list[Assignment], list[Assignment]]:
    """Return the assignments of a file, and the lines that are none."""
    parsed = _Parsed(name)
    for number, line in _logical_lines(text):
        if line:
            parsed.take(line, number)
    return parsed.assignments, parsed.ignored


def merge(name: str, texts: Mapping[str, str]) -> Unit:
    """Make a unit of its files' texts by their names, the main one first."""
    assignments: list[Assignment] = []
    ignored: list[Assignment] = []
    for file, text in texts.items():
        new, odd = parse(text, name=file)
        assignments += new
        ignored += odd
    return Unit(name, tuple(texts), tuple(assignments), tuple(ignored))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without white space at their ends, joined where one is continued."""
    begun: list[str] = []
    first = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip(" \t\r")
        if line.startswith(("#", ";")):
            continue
        if not begun:
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun.append(line[:-1].strip())
            continue
        yield first, " ".join([*begun, line]).strip()
        begun = []
    if begun:
        yield first, " ".join(begun).strip()


def words(assignments: Sequence[Assignment]) -> Iterator[tuple[Assignment, str]]:
    """Yield the words of list values, separated by white space or commas."""
    for assignment in assignments:
        for word in assignment.value.replace(",", " ").split():
            yield assignment, word


SEARCH_PATH = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
"""Of the system's manager, the directory that counts more first (table 1)."""


CGROUPS = "/proc/[0-9]*/cgroup"


def load_unit(unit: str, reader: Reader) -> Unit:
    """
    Return a unit by its name on a machine, or by its path on this one.

    UsageError if there is none, if it is masked, or if it starts no process.
    """
    if "/" in unit or Path(unit).is_file():
        path = Path(unit)
        return _load(path.name, (str(path.absolute().parent),), FileReader())
    name = unit if "." in unit else f"{unit}.service"
    return replace(_load(name, SEARCH_PATH, reader), installed=True)


def processes_of(unit: Unit, reader: Reader) -> frozenset[int]:
    """Return the processes in the unit's control group, or in one below it."""
    files = reader.read_many([CGROUPS])
    return frozenset(
        int(path.split("/")[2])
        for path, content in files.items()
        for line in (text_of(content) or "").splitlines()
        if unit.name in line.split("/")
    )


def _load(name: str, path: tuple[str, ...], reader: Reader) -> Unit:
    kind = name.rpartition(".")[2]
    if kind not in SECTIONS:
        raise UsageError(
            f"--unit {name}: units that start processes end in .{', .'.join(SECTIONS)}"
        )
    names = [name, *([template] if (template := _template(name)) else [])]
    wanted = [f"{place}/{one}" for one in names for place in path]
    dirs = _dropin_dirs(names, path, kind)
    files = reader.read_many([*wanted, *(f"{place}/*.conf" for place in dirs)])
    main = next((p for p in wanted if isinstance(files.get(p), bytes | Denied)), None)
    if main is None:
        where = path[0] if len(path) == 1 else "systemd's search path"
        raise UsageError(f"--unit {name}: no such unit in {where}")
    return merge(name, {main: _text(name, main, files[main]), **_dropins(dirs, files)})


def _text(name: str, path: str, content: Content) -> str:
    if isinstance(content, Denied):
        raise UsageError(
            f"--unit {name}: {path} cannot be read ({content.reason}); a link to "
            "/dev/null masks a unit"
        )
    assert isinstance(content, bytes)
    if not content:
        raise UsageError(f"--unit {name}: {path} is empty: the unit is masked")
    return content.decode("utf-8", "replace")


def _template(name: str) -> str | None:
    """Return the template of an instance: getty@tty3.service is of getty@.service."""
    stem, at, rest = name.partition("@")
    instance, _, kind = rest.rpartition(".")
    return f"{stem}@.{kind}" if at and instance else None


def _dropin_dirs(names: list[str], path: tuple[str, ...], kind: str) -> list[str]:
    """Return the directories of drop-ins: of files with one name the first counts."""
    dirs = [
        f"{place}/{one}.d"
        for place in path
        for name in names
        for one in (name, *_prefixes(name))
    ]
    return list(dict.fromkeys([*dirs, *(f"{place}/{kind}.d" for place in path)]))


def _prefixes(name: str) -> Iterator[str]:
    """Yield foo-bar-.service and foo-.service for foo-bar-baz.service."""
    stem, _, kind = name.rpartition(".")
    stem = stem.partition("@")[0]
    for end in range(len(stem) - 1, 0, -1):
        if stem[end - 1] == "-":
            yield f"{stem[:end]}.{kind}"


def _dropins(dirs: list[str], files: Mapping[str, Content]) -> dict[str, str]:
    """Return the texts of the drop-ins that count, in the order of their names."""
    chosen: dict[str, str] = {}
    for place in dirs:
        for path in sorted(files):
            directory, _, file = path.rpartition("/")
            if directory == place and file.endswith(".conf") and "*" not in file:
                chosen.setdefault(file, path)
    contents = {path: files[path] for _, path in sorted(chosen.items())}
    return {
        path: content.decode("utf-8", "replace")
        for path, content in contents.items()
        # A drop-in is masked as a unit is, and may then not be read.
        if isinstance(content, bytes)
    }


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
    policy, rank = unit.last("CPUSchedulingPolicy"), unit.last("CPUSchedulingPriority")
    name = policy.value if policy else "other"
    if policy and name not in POLICIES:
        raise OddValueError(policy, f"systemd accepts {', '.join(POLICIES)}")
    priority = number(rank) if rank else None
    if rank and not 0 <= (priority or 0) <= MAX_PRIORITY:
        raise OddValueError(rank, f"priorities are 1 to {MAX_PRIORITY}")
    wanted = max(priority or 0, 1) if name in REAL_TIME else 0
    return Policy(name, wanted, policy, rank)


def number(assignment: Assignment) -> int:
    """Return a whole number; raises OddValueError."""
    if not _NUMBER.fullmatch(assignment.value):
        raise OddValueError(assignment, "not a number")
    return int(assignment.value)


def boolean(assignment: Assignment | None) -> bool:
    """Return yes or no, no if not set; raises OddValueError."""
    if assignment is None:
        return False
    value = _BOOLEANS.get(assignment.value.lower())
    if value is None:
        raise OddValueError(assignment, "neither yes nor no")
    return value


def cpus_of(unit: Unit, key: str) -> frozenset[int] | None:
    """Return a list of CPUs, None if there is none; raises OddValueError."""
    cpus: set[int] = set()
    assignments = unit.all(key)
    for assignment, word in words(assignments):
        if word == "numa":
            raise OddValueError(assignment, "rtscope does not read NUMAMask=")
        match = _RANGE.fullmatch(word)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise OddValueError(assignment, "not a CPU list")
        cpus |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(cpus) if assignments else None


def soft_limit(assignment: Assignment | None) -> int | None:
    """
    Return the soft limit of `soft:hard`, -1 for infinity, None if not set.

    Sizes may end in K, M, G, ... to the base 1024; raises OddValueError.
    """
    if assignment is None:
        return None
    text = assignment.value.partition(":")[0]
    if text == "infinity":
        return -1
    match = _BYTES.fullmatch(text)
    if match is None:
        raise OddValueError(assignment, "not a limit")
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
