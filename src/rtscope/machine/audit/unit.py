"""
A unit of systemd: its lines as systemd reads them, and which of them count.

systemd.unit(5), systemd.syntax(7): sections, `key=value`, `#` and `;` comments; a
backslash at the end of a line continues it past comments; an empty assignment forgets
the ones before it. A line that systemd refuses counts for nothing and is kept as a
mistake. `systemctl cat` gives several files, `systemctl show` the properties of a unit.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources

from rtscope.machine.audit.unitvalues import (
    EXPANDED,
    NEVER_EMPTY,
    SYNTAX,
    FatalValueError,
    backward_ranges,
    unknown_capabilities,
)

SECTIONS = {
    "service": "Service",
    "socket": "Socket",
    "mount": "Mount",
    "swap": "Swap",
}
"""The types of units that start processes, and where that stands (systemd.exec(5))."""

_GENERAL = ("Unit", "Install")
_OWN_NAMES = "X-"
"""How names begin that systemd leaves to others."""
_CAT_HEADING = re.compile(r"# (/\S+\.(?:service|socket|mount|swap|conf))")
_SPECIFIER = re.compile(r"(?<!%)(?:%%)*%[^%]")
_CAPABILITY_SETS = ("AmbientCapabilities", "CapabilityBoundingSet")


@dataclass(frozen=True, slots=True)
class Assignment:
    """One `key=value`."""

    section: str
    key: str
    value: str
    where: str
    """File and line, `my.service:12`."""

    @property
    def expands(self) -> bool:
        """Whether only systemd can say what it is: it has a specifier, `%i`."""
        return self.key in EXPANDED and bool(_SPECIFIER.search(self.value))


@dataclass(frozen=True, slots=True)
class Mistake:
    """A line that systemd does not take as it stands."""

    line: Assignment
    """A line that is no assignment has no key."""
    why: str
    effect: str = "systemd ignores the line"

    def __str__(self) -> str:
        named = f"{self.line.key}={self.line.value}" if self.line.key else ""
        text = named or self.line.value
        return f"{text[:80]}: {self.why}; {self.effect}"


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
    """Those that systemd takes."""
    mistakes: tuple[Mistake, ...] = ()
    unknown_keys: tuple[Assignment, ...] = ()
    """Settings that no systemd has that rtscope knows."""
    installed: bool = False
    """Whether it was found by its name where systemd looks."""
    of_user: bool = False
    """Whether a user's manager runs it."""
    threads: tuple[UnitThread, ...] | None = None
    why_no_threads: str = "not checked whether it runs"

    @property
    def kind(self) -> str:
        """The type of the unit, such as `service`."""
        return self.name.rpartition(".")[2]

    def all(self, key: str) -> tuple[Assignment, ...]:
        """Return the assignments of a key that count: those after an empty one."""
        kept: list[Assignment] = []
        for assignment in self.own():
            if assignment.key == key:
                kept = [*kept, assignment] if assignment.value else []
        return tuple(kept)

    def last(self, key: str) -> Assignment | None:
        """Return what counts of a key that holds one value; None if there is none."""
        assignments = self.all(key)
        return assignments[-1] if assignments else None

    def own(self) -> Iterator[Assignment]:
        """Yield the assignments of the section of this type of unit, in order."""
        section = SECTIONS.get(self.kind)
        return (a for a in self.assignments if a.section == section)


@dataclass(slots=True)
class _Parsed:
    name: str
    section: str = ""
    assignments: list[Assignment] = field(default_factory=list)
    ignored: list[Mistake] = field(default_factory=list)

    def take(self, line: str, number: int) -> None:
        where = f"{self.name}:{number}"
        key, equals, value = line.partition("=")
        odd = Assignment(self.section, "", line, where)
        if line.startswith("["):
            self._take_section(line, odd)
        elif not equals or not key.strip():
            self.ignored.append(Mistake(odd, "no assignment"))
        elif not self.section:
            self.ignored.append(Mistake(odd, "an assignment outside of a section"))
        else:
            self.assignments.append(
                Assignment(self.section, key.strip(), value.strip(), where)
            )

    def _take_section(self, line: str, odd: Assignment) -> None:
        if line.endswith("]"):
            self.section = line[1:-1]
            return
        effect = "systemd does not load the unit"
        self.ignored.append(Mistake(odd, "a section without its bracket", effect))


def parse(text: str, *, name: str) -> tuple[list[Assignment], list[Mistake]]:
    """Return the assignments of a file, and the lines that are none."""
    parsed, first = _Parsed(name), 0
    if is_shown(text):
        # Its section's head stands before the first line.
        text, first = service_of_properties(text), 1
    for number, line in _logical_lines(text):
        if heading := _CAT_HEADING.fullmatch(line):
            parsed.name, parsed.section, first = heading[1], "", number
        elif line:
            parsed.take(line, number - first)
    return parsed.assignments, parsed.ignored


def merge(name: str, texts: Mapping[str, str]) -> Unit:
    """Make a unit of its files' texts by their names, the main one first."""
    assignments: list[Assignment] = []
    mistakes: list[Mistake] = []
    for file, text in texts.items():
        new, odd = parse(text, name=file)
        assignments += new
        mistakes += odd
    unit = Unit(name, tuple(texts))
    return _checked(unit, assignments, mistakes)


def _checked(unit: Unit, lines: list[Assignment], mistakes: list[Mistake]) -> Unit:
    """Keep the assignments that systemd takes, and name the others."""
    own = SECTIONS.get(unit.kind, "")
    taken: list[Assignment] = []
    unknown_keys: list[Assignment] = []
    seen: set[str] = set()
    for line in (_expanded(line, unit.name) for line in lines):
        known = (*_GENERAL, own)
        if line.section not in known:
            if line.section not in seen and not line.section.startswith(_OWN_NAMES):
                mistakes.append(_of_section(line, own))
            seen.add(line.section)
        elif line.key.startswith(_OWN_NAMES) or line.key in _keys_of(line.section):
            mistake = _of_value(line, taken) if line.section == own else None
            mistakes += [mistake] if mistake else []
            if mistake is None or mistake.effect == _PARTLY:
                taken.append(line)
        elif mistake := _of_key(line, own):
            mistakes.append(mistake)
        else:
            unknown_keys.append(line)
    mistakes += _of_commands(taken, own)
    files = list(dict.fromkeys(a.where.rpartition(":")[0] for a in lines))
    return replace(
        unit,
        assignments=tuple(taken),
        mistakes=tuple(sorted(mistakes, key=lambda one: _place(one.line, files))),
        unknown_keys=tuple(unknown_keys),
    )


def _place(line: Assignment, files: list[str]) -> tuple[int, int]:
    file, _, number = line.where.rpartition(":")
    return files.index(file) if file in files else -1, int(number)


def _expanded(line: Assignment, name: str) -> Assignment:
    """Replace the instance's name, which a unit's name shows."""
    instance = name.partition("@")[2].rpartition(".")[0]
    if not instance or not line.expands:
        return line
    value = re.sub(r"%[iI]", lambda _: instance, line.value)
    return replace(line, value=value)


_PARTLY = "systemd ignores that part"
_NOT_LOADED = "systemd does not load the unit"


def _of_value(line: Assignment, taken: list[Assignment]) -> Mistake | None:
    read = SYNTAX.get(line.key)
    if line.key in _CAPABILITY_SETS and (odd := unknown_capabilities(line.value)):
        return Mistake(line, f"{', '.join(odd)}: no capability", _PARTLY)
    if read is None or line.expands:
        return None
    try:
        if line.value or line.key in NEVER_EMPTY:
            read(line.value)
        if line.key in ("CPUAffinity", "AllowedCPUs"):
            odd = backward_ranges(line.value)
            if odd:
                return Mistake(line, f"{', '.join(odd)}: not a CPU list", _PARTLY)
    except FatalValueError as error:
        return Mistake(line, str(error), _NOT_LOADED)
    except ValueError as error:
        before = [a for a in taken if (a.section, a.key) == (line.section, line.key)]
        if before and before[-1].value:
            effect = f"systemd ignores the line and keeps {before[-1].value}"
            return Mistake(line, str(error), effect)
        return Mistake(line, str(error))
    return None


def _of_section(line: Assignment, own: str) -> Mistake:
    odd = Assignment(line.section, "", f"[{line.section}]", line.where)
    near = difflib.get_close_matches(line.section.title(), (*_GENERAL, own), n=1)
    meant = f"; [{near[0]}] is meant, as it seems" if near else ""
    return Mistake(odd, f"no section of such a unit{meant}", "systemd ignores it whole")


def _of_key(line: Assignment, own: str) -> Mistake | None:
    """Return a mistake for a setting of another section, or one much like a known."""
    for section in (own, *_GENERAL):
        if line.key in _keys_of(section):
            return Mistake(line, f"a setting of [{section}], not of [{line.section}]")
    by_case = {key.lower(): key for key in _keys_of(own)}
    near = by_case.get(line.key.lower())
    close = difflib.get_close_matches(line.key, _keys_of(own), n=1, cutoff=0.85)
    if near or close:
        return Mistake(line, f"no such setting; near: {near or close[0]}")
    return None


def _of_commands(taken: list[Assignment], own: str) -> list[Mistake]:
    """Return a mistake for a second command where only one is allowed."""
    kept: list[Assignment] = []
    kind = ""
    for line in taken:
        if line.section == own and line.key == "ExecStart":
            kept = [*kept, line] if line.value else []
        elif line.section == own and line.key == "Type":
            kind = line.value
    if len(kept) < 2 or kind == "oneshot" or own != "Service":
        return []
    return [Mistake(kept[1], "a second command needs Type=oneshot", _NOT_LOADED)]


@cache
def _key_table() -> Mapping[str, frozenset[str]]:
    file = resources.files("rtscope.machine.audit").joinpath("unitkeys.toml")
    return {
        section: frozenset(keys)
        for section, keys in tomllib.loads(file.read_text("utf-8")).items()
    }


def _keys_of(section: str) -> frozenset[str]:
    """Return the settings that a section may have."""
    table = _key_table()
    own = table.get(section, frozenset())
    return own | table["Exec"] if section in SECTIONS.values() else own


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without white space at their ends, joined where one is continued."""
    begun, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.lstrip(" \t\r")
        if line.startswith(("#", ";")):
            if not begun and _CAT_HEADING.fullmatch(line.rstrip()):
                yield number, line.rstrip()
            continue
        if not begun:
            first = number
        line = line.rstrip("\r")
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun += line[:-1] + " "
            continue
        yield first, (begun + line).strip(" \t\r")
        begun = ""
    if begun:
        yield first, begun.strip(" \t\r")


# --- what `systemctl show` prints, as the section of a unit file --------------------

# It has no sections: a property in each line, in other words for some values: limits in
# two properties, policies as numbers, times and sizes in full.

_PROPERTY = re.compile(r"[A-Z]\w*=.*")
_UNMISTAKABLE = re.compile(
    r"^(?:Id|LoadState|ActiveState|FragmentPath|LimitRTPRIOSoft|ExecMainPID)=",
    re.MULTILINE,
)
_INFINITE = ("infinity", str(2**64 - 1))
_UNSET = ("", "[not set]", "[unprintable]")
_LIMITS = ("LimitRTPRIO", "LimitMEMLOCK", "LimitRTTIME")
_COPIED = (
    *("User", "DynamicUser", "RestrictRealtime", "CPUSchedulingResetOnFork"),
    *("CPUAffinity", "AllowedCPUs", "CPUWeight", "StartupCPUWeight", "CPUShares"),
)
_PATH = re.compile(r"path=(\S+) ;")
_SECOND_US = 1_000_000
_TIMES = {"us": 1, "ms": 1_000, "s": _SECOND_US, "min": 60 * _SECOND_US}


def is_shown(text: str) -> bool:
    """Whether a text is what `systemctl show` prints."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or any(line.lstrip().startswith("[") for line in lines):
        return False
    some = sum(bool(_PROPERTY.fullmatch(line)) for line in lines)
    return bool(_UNMISTAKABLE.search(text)) and 2 * some > len(lines)


def service_of_properties(text: str) -> str:
    """Return the properties as a [Service] section, each on the line after its own."""
    lines = text.splitlines()
    properties = {}
    for line in lines:
        key, _, value = line.partition("=")
        properties[key] = value.strip()
    made = ["[Service]"]
    for line in lines:
        key, _, value = line.partition("=")
        made.append(_setting(key, value.strip(), properties))
    return "\n".join(made) + "\n"


def _setting(key: str, value: str, properties: dict[str, str]) -> str:
    if value in _UNSET or (value in _INFINITE and key not in _LIMITS):
        return "#"
    if key in _LIMITS:
        soft = properties.get(f"{key}Soft", value)
        return f"{key}={_limit(key, soft)}:{_limit(key, value)}"
    if key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        return f"{key}={value.upper()}"
    if key == "ExecStart":
        path = _PATH.search(value)
        return f"{key}={path[1]}" if path else "#"
    if key == "CPUQuotaPerSecUSec":
        share = _share(value)
        return f"CPUQuota={share}" if share else "#"
    policy = properties.get("CPUSchedulingPolicy", "0")
    if key in ("CPUSchedulingPolicy", "CPUSchedulingPriority"):
        # Of a unit that names none it prints 0.
        return "#" if policy == "0" else f"{key}={value}"
    if key == "Nice" and value == "0":
        return "#"
    return f"{key}={value}" if key in (*_COPIED, "Nice") else "#"


def _limit(key: str, value: str) -> str:
    if value in _INFINITE:
        return "infinity"
    return f"{value}us" if key == "LimitRTTIME" and value.isdecimal() else value


def _share(value: str) -> str:
    """Return `500ms` of each second as a percentage."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|min)", value)
    if match is None:
        return ""
    return f"{float(match[1]) * _TIMES[match[2]] / _SECOND_US * 100:.2f}%"
