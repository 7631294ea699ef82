"""
Command lines of other programs: read as those do, and the same for `rtscope run`.

`otherlines.toml` has their options. Nothing is left out without a word: an option is
written otherwise, has the same effect without being written, differs, or is refused.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any

from rtscope.contract import FIXED_PRIORITY
from rtscope.host.errors import UsageError
from rtscope.host.units import NS_PER_S, NS_PER_US, exact_duration
from rtscope.machine.cpulist import format_cpulist, parse_cpulist
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options

CYCLICTEST = "cyclictest"
PROGRAMS = (CYCLICTEST, "rtla", "oslat")
"""In the order in which a line is taken for one of theirs."""

_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_POLICIES = ("other", "batch", "idle", "fifo", "rr")
_INTERVAL_US = 1000
_DISTANCE_US = 500


@dataclass(frozen=True, slots=True)
class OtherLine:
    """A command line of another program."""

    program: str
    typed: tuple[tuple[str, str | None], ...]
    """Options by their first name, with their values; None: it has none."""
    names: tuple[str, ...]
    """The same as they were typed."""
    rest: tuple[str, ...]
    """Words that are no options."""

    def value(self, name: str) -> str | None:
        """Return the last value of an option; None: not typed, or without a value."""
        return next((v for n, v in reversed(self.typed) if n == name), None)

    def has(self, name: str) -> bool:
        """Whether an option was typed."""
        return any(one == name for one, _ in self.typed)


@dataclass(slots=True)
class Translation:
    """What `rtscope run` makes of another program's line."""

    options: dict[str, str] = field(default_factory=dict)
    """By their names without `--`; a switch has an empty value."""
    differs: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The command, to be pasted."""
        words = ["rtscope", "run"]
        for name, value in sorted(self.options.items(), key=_place):
            words += [f"--{name}", *([value] if value else [])]
        return shlex.join(words)


_ORDER = ("load", "event", "duration", "interval", "policy", "priority", "cpus")


def _place(option: tuple[str, str]) -> int:
    return _ORDER.index(option[0]) if option[0] in _ORDER else len(_ORDER)


@dataclass(frozen=True, slots=True)
class _Option:
    names: tuple[str, ...]
    takes: str
    row: Mapping[str, Any]


# --- read a line --------------------------------------------------------------------


def read_line(program: str, words: Sequence[str]) -> OtherLine:
    """
    Return the options of a line; UsageError for one that the program does not have.

    As getopt_long() does: joined letters, values in the same word or the next one, and
    long names cut short.
    """
    options = _options(program)
    typed: list[tuple[str, str | None]] = []
    names: list[str] = []
    rest: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word == "--":
            rest += queue
            break
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            option = _long(program, name)
            taken = value if equals else _next(option, queue)
            _check(program, option, name, taken, joined=bool(equals))
            typed.append((option.names[0], taken))
            names.append(name)
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            while letters:
                name, letters = f"-{letters[0]}", letters[1:]
                found = options.get(name)
                if found is None:
                    raise UsageError(f"{program} has no option {name}")
                names.append(name)
                if found.takes == "none":
                    typed.append((found.names[0], None))
                    continue
                taken = letters or _next(found, queue)
                _check(program, found, name, taken, joined=False)
                typed.append((found.names[0], taken))
                letters = ""
        else:
            rest.append(word)
    return OtherLine(program, tuple(typed), tuple(names), tuple(rest))


def _next(option: _Option, queue: list[str]) -> str | None:
    """Take the value from the next word; one that may be left out is a number."""
    if not queue or option.takes == "none":
        return None
    if option.takes == "maybe" and not queue[0][:1].isdigit():
        return None
    return queue.pop(0)


def _check(
    program: str, option: _Option, name: str, value: str | None, *, joined: bool
) -> None:
    if option.takes == "one" and not value:
        raise UsageError(f"{program} {name} needs a value")
    if option.takes == "none" and joined:
        raise UsageError(f"{program} {name} takes no value")


def _long(program: str, name: str) -> _Option:
    options = _options(program)
    if name in options:
        return options[name]
    near = {one.names: one for full, one in options.items() if full.startswith(name)}
    if len(near) != 1:
        raise UsageError(f"{program} has no option {name}")
    return next(iter(near.values()))


@cache
def _table() -> Mapping[str, Any]:
    file = resources.files("rtscope.cli").joinpath("otherlines.toml")
    return tomllib.loads(file.read_text("utf-8"))


@cache
def _options(program: str) -> Mapping[str, _Option]:
    options = {}
    for names, row in _table()[program]["options"].items():
        words = tuple(names.split(", "))
        for word in words:
            options[word] = _Option(words, row.get("takes", "none"), row)
    return options


# --- the same for rtscope run -------------------------------------------------------


def translate(
    line: OtherLine,
    *,
    online: Sequence[int] | None = None,
    alone: bool = False,
) -> Translation:
    """
    Return the line for `rtscope run`; UsageError for a value that makes no sense.

    `online` are the CPUs of the machine; None: not known. `alone`: of the options
    typed, without what the program does unasked.
    """
    table = _table()[line.program]
    result = Translation({} if alone else dict(table.get("always", {})))
    if "differs" in table and not alone:
        result.differs.append(table["differs"])
    rules: dict[str, None] = {}
    for name, value in line.typed:
        row = _options(line.program)[name].row
        if "rule" in row:
            rules[row["rule"]] = None
        elif "refuse" in row:
            result.refused.append(f"{name}: {row['refuse']}")
        elif "write" in row:
            _write(result, name, value, row["write"])
        if "differs" in row:
            result.differs.append(row["differs"].format(value=value))
    if line.program == CYCLICTEST and not alone:
        rules |= dict.fromkeys(("cpus", "policy", "length", "distance", "awake"))
    for rule in rules:
        if rule == "cpus":
            _cpus(line, result, online)
        else:
            _RULES[rule](line, result)
    _beyond(line, result)
    return result


def _beyond(line: OtherLine, result: Translation) -> None:
    """Refuse, in the words of the line, values that `rtscope run` does not take."""
    for names, row in _table()[line.program]["options"].items():
        name = names.partition(",")[0]
        value = line.value(name)
        option = row.get("gives") or row.get("write", "").partition(" ")[0]
        ours = option.removeprefix("--")
        if ours not in result.options or value is None:
            continue
        given: dict[str, Any] = {ours.replace("-", "_"): result.options[ours]}
        try:
            with_options(Campaign(), Options(**given), _at(f"{name} {value}"))
        except UsageError as error:
            del result.options[ours]
            result.refused.append(str(error))


def _at(typed: str) -> Callable[[str, int], str]:
    return lambda _key, _number: typed


def _write(result: Translation, name: str, value: str | None, text: str) -> None:
    option, _, form = text.removeprefix("--").partition(" ")
    if "{us}" in form:
        form = _duration(_number(name, value) * NS_PER_US)
    elif "{s}" in form:
        form = _duration(_seconds(name, value or "") * NS_PER_S)
    result.options[option] = form.format(value=value)


def _duration(ns: int) -> str:
    return exact_duration(ns)


def _number(name: str, value: str | None, *, least: int = 1) -> int:
    if value is None or not re.fullmatch(r"[0-9]{1,12}", value) or int(value) < least:
        raise UsageError(f"{name} {value or ''}: not a whole number from {least} on")
    return int(value)


def _seconds(name: str, value: str) -> int:
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", value)
    if match is None or int(match[1]) == 0:
        raise UsageError(f"{name} {value}: no time such as 60, 10m or 2h")
    return int(match[1]) * _UNITS_S[match[2]]


def _cpus(line: OtherLine, result: Translation, online: Sequence[int] | None) -> None:
    """By -a, -t and -S: which threads there are, and where."""
    named, threads = line.value("-a"), line.value("-t")
    everywhere = line.has("-S") or (line.has("-t") and threads is None)
    cpus = parse_cpulist(named) if named is not None else online
    count = None if everywhere else 1 if threads is None else _number("-t", threads)
    if cpus is not None and count is not None and count > len(cpus):
        result.refused.append(
            f"-t {count}: one thread for each CPU is measured, and here are {len(cpus)}"
        )
        return
    if count is not None:
        chosen = range(count) if cpus is None else cpus[:count]
        if online is None or len(chosen) < len(online):
            result.options["cpus"] = format_cpulist(chosen)
    elif named is not None:
        result.options["cpus"] = named
    if not (line.has("-S") or line.has("-a")):
        result.differs.append("each thread stays on its CPU; in cyclictest it may move")


def _policy(line: OtherLine, result: Translation) -> None:
    policy, priority = line.value("--policy"), line.value("-p")
    urgent = priority is not None and _number("-p", priority, least=0) > 0
    policy = {"normal": "other"}.get(policy or "", policy)
    if policy is None:
        policy = "fifo" if urgent else "other"
    if policy not in _POLICIES:
        known = ", ".join(_POLICIES)
        raise UsageError(f"--policy {policy}: cyclictest knows {known}")
    if policy != "fifo":
        result.options["policy"] = policy
    if policy in FIXED_PRIORITY and priority is not None and urgent:
        result.options["priority"] = priority
    several = line.has("-t") and not line.has("-S")
    shaped = line.has("-h") or line.has("-H")
    if policy in FIXED_PRIORITY and several and not shaped:
        result.differs.append(
            "all threads have one priority; in cyclictest without -S or -h each has "
            "one less than the thread before"
        )


def _length(line: OtherLine, result: Translation) -> None:
    length, typed = line.value("-D"), line.value("-l")
    loops = None if typed is None else _number("-l", typed, least=0)
    if length is not None:
        result.options["duration"] = _duration(_seconds("-D", length) * NS_PER_S)
        if loops is not None:
            result.differs.append("-l is left out: -D ends the run")
        return
    if not loops:
        result.refused.append(
            "no length: cyclictest would run until it is stopped; add -D 10m"
        )
        return
    interval_us = _number("-i", line.value("-i") or str(_INTERVAL_US))
    result.options["duration"] = _duration(loops * interval_us * NS_PER_US)
    result.differs.append(
        "the length is a time: each CPU has as many releases as -l says, and ends with "
        "the others"
    )


def _distance(line: OtherLine, result: Translation) -> None:
    shaped = line.has("-h") or line.has("-H")
    several = line.has("-t") or line.has("-S")
    distance_us = _DISTANCE_US
    if (typed := line.value("-d")) is not None:
        distance_us = _number("-d", typed, least=0)
    elif shaped:
        distance_us = 0
    if not line.has("-i"):
        result.options["interval"] = _duration(_INTERVAL_US * NS_PER_US)
    if several and distance_us:
        result.differs.append(
            f"all threads have one interval; in cyclictest each has {distance_us} us "
            "more than the thread before (-d 0: none)"
        )


def _awake(line: OtherLine, result: Translation) -> None:
    """Whether idle states are allowed: cyclictest forbids them unasked."""
    if line.program == CYCLICTEST:
        limit = line.value("--latency")
        if line.has("--laptop") or line.has("--default-system"):
            return
        limit = "0" if limit is None else limit
    else:
        limit = line.value("--dma-latency") or "0"
    if limit != "0":
        result.refused.append(
            f"a limit of {limit} us for idle states: rtscope knows 0 "
            "(--hold-cpu-awake) and as found"
        )
        return
    result.options["hold-cpu-awake"] = ""


def _clock(line: OtherLine, result: Translation) -> None:
    clock = line.value("-c")
    if clock != "0":
        result.refused.append(
            f"-c {clock}: rtscope measures by CLOCK_MONOTONIC (-c 0), which nobody sets"
        )


def _nanoseconds(line: OtherLine, result: Translation) -> None:
    if line.has("-h") or line.has("-H"):
        result.refused.append(
            "-N with a histogram: its rows are microseconds; rtscope report --format "
            "csv has the histogram in ns"
        )


def _rtla_priority(line: OtherLine, result: Translation) -> None:
    typed = line.value("-P") or ""
    match = re.fullmatch(r"([for]):(-?[0-9]{1,2})", typed)
    if match is None:
        result.refused.append(
            f"-P {typed}: rtscope run --policy and --priority choose both"
        )
    elif match[1] == "o":
        result.options["policy"] = "other"
    else:
        result.options |= {} if match[1] == "f" else {"policy": "rr"}
        result.options["priority"] = match[2]


def _oslat_priority(line: OtherLine, result: Translation) -> None:
    result.options.pop("policy", None)
    result.options["priority"] = line.value("-f") or ""


_RULES: Mapping[str, Callable[[OtherLine, Translation], None]] = {
    "policy": _policy,
    "length": _length,
    "distance": _distance,
    "awake": _awake,
    "clock": _clock,
    "nanoseconds": _nanoseconds,
    "rtla_priority": _rtla_priority,
    "oslat_priority": _oslat_priority,
}


# --- say it ---------------------------------------------------------------------------

_OURS = {
    *("-d", "-k", "-l", "-o", "-p", "-q", "-t", "-v", "-h"),
    *("--quiet", "--json", "--verbose", "--resume", "--out", "--yes", "--reuse"),
    *(f"--{one.name.replace('_', '-')}" for one in fields(Options)),
}
"""What `rtscope run` has under the same name."""

_NUMBERS = {"-l", "-t", "--interval"}
"""Of these, those that are another program's if a bare number follows."""


def answer(words: Sequence[str]) -> Iterator[str]:
    """
    Yield what to type instead of another program's options; nothing if they are none.

    `words` follow `rtscope run`, which did not understand them: all of them as one
    line, or those that are another program's, one by one.
    """
    for program in PROGRAMS:
        try:
            line = read_line(program, words)
            if line.rest or not _is_foreign(line):
                continue
            result = translate(line)
        except UsageError:
            continue
        yield f"these are options of {program}; the same measurement is:"
        yield f"  {result.line}"
        yield from (f"it differs: {one}" for one in result.differs)
        yield from (f"not to be had: {one}" for one in result.refused)
        if program == CYCLICTEST and not result.refused:
            again = shlex.join(["rtscope", "cyclictest", *words])
            yield f"or, with the output of cyclictest: {again}"
        return
    yield from _one_by_one(words)


def _is_foreign(line: OtherLine) -> bool:
    """Whether an option of the line is not one of ours, as it was typed."""
    return any(
        name not in _OURS or (name in _NUMBERS and (value or "").isdigit())
        for name, (_, value) in zip(line.names, line.typed, strict=True)
    )


def _one_by_one(words: Sequence[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        for program in PROGRAMS if word.startswith("-") else ():
            try:
                line = read_line(program, words[place : place + 2])
                one = OtherLine(program, line.typed[:1], line.names[:1], ())
                if not one.typed or not _is_foreign(one):
                    continue
                result = translate(one, alone=True)
            except UsageError:
                continue
            yield f"{program} {_typed(one)}: {_advice(one, result)}"
            break


def _typed(line: OtherLine) -> str:
    ((name, value),) = line.typed
    return name if value is None else f"{name} {value}"


def _advice(line: OtherLine, result: Translation) -> str:
    row = _options(line.program)[line.typed[0][0]].row
    if result.refused:
        name = line.typed[0][0]
        return "; ".join(one.removeprefix(f"{name}: ") for one in result.refused)
    if result.options:
        words = result.line.removeprefix("rtscope run ")
        return "; ".join([f"write {words}", *result.differs])
    return f"write nothing: {row['same']}"
