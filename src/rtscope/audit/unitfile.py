"""
A unit of systemd as its files say it: every assignment in order, with its place.

systemd.syntax(7): sections, `key=value`, `#` and `;` comments; a backslash at the end
of a line continues it past comments; an empty assignment forgets what was before it.
Specifiers (`%i`) are left as they are: what has one is not judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
    why_no_threads: str = "whether it runs was not looked at"

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
        found = self.all(key)
        return found[-1] if found else None

    def _own(self) -> Iterator[Assignment]:
        section = SECTIONS.get(self.kind, "")
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
        found, odd = parse(text, name=file)
        assignments += found
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
