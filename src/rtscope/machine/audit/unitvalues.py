"""
What systemd accepts as the value of a setting: names, numbers, sizes, times, CPU lists.

By src/core/load-fragment.c, src/basic/parse-util.c and time-util.c; the tests compare
it with `systemd-analyze verify`. A value that it refuses is a ValueError; some of them
keep the unit from being loaded.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from rtscope.machine.capabilities import CAPABILITIES

INFINITY = -1
"""A limit that is none."""

MAX_PRIORITY = 99
MAX_CPU = 8191
MAX_WEIGHT = 10_000
_INT_MAX = 2**31 - 1
_MOST_IO_CLASS = 8
_ID = re.compile(r"[0-9]{1,20}")
_NO_IDS = (2**16 - 1, 2**32 - 1)
"""Numbers of no user (uid_is_valid)."""

POLICIES: Mapping[str, int] = {"other": 0, "batch": 3, "idle": 5, "fifo": 1, "rr": 2}
"""By name; each number is accepted too (sched(7), include/uapi/linux/sched.h)."""

_IO_CLASSES = {"none": 0, "realtime": 1, "best-effort": 2, "idle": 3}
_NUMA_POLICIES = ("default", "preferred", "bind", "interleave", "local")
_BOOLEANS = {
    **dict.fromkeys(("1", "yes", "y", "true", "t", "on"), True),
    **dict.fromkeys(("0", "no", "n", "false", "f", "off"), False),
}
_NUMBER = re.compile(
    r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]{1,16})|0[bB]([01]{1,64})|0[oO]([0-7]{1,22})|"
    r"(0[0-7]{0,22})|([1-9][0-9]{0,19}))"
)
_BASES = (16, 2, 8, 8, 10)
_RANGE = re.compile(r"\+?([0-9a-zA-Z]+)(?:-\+?([0-9a-zA-Z]+))?")
_SIZE = re.compile(r"\s*\+?([0-9]{1,20})(?:\.([0-9]{0,20}))?\s*([BKMGTPE]?)")
_PART_OF_TIME = re.compile(
    r"\s*(?:([0-9]{1,20})(?:\.([0-9]{0,20}))?|\.([0-9]{1,20}))\s*([a-zA-Zµμ]*)"
)
_QUOTA = re.compile(
    r"\+?([0-9]+)(?:\.[0-9]{1,2})?%|\+?([0-9]+)(?:\.[0-9])?‰|\+?([0-9]+)‱"
)

_US = {
    **dict.fromkeys(("us", "usec", "µs", "μs"), 1),
    **dict.fromkeys(("ms", "msec"), 1_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400_000_000),
    **dict.fromkeys(("M", "month", "months"), 2_629_800_000_000),
    **dict.fromkeys(("y", "year", "years"), 31_557_600_000_000),
}


class FatalValueError(ValueError):
    """A value with which systemd does not load the unit."""


def integer(text: str, low: int, high: int, *, said: str = "") -> int:
    """Return a number as C reads it (0x10, 010, +5); ValueError."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError("not a number")
    digits = ((d, b) for d, b in zip(match.groups()[1:], _BASES, strict=True) if d)
    value = int(*next(digits))
    value = -value if match[1] == "-" else value
    if not low <= value <= high:
        raise ValueError(said or f"from {low} to {high}")
    return value


def policy(text: str) -> int:
    """Return the number of a policy by its name or number; ValueError."""
    if text in POLICIES:
        return POLICIES[text]
    try:
        return integer(text, 0, _INT_MAX)
    except ValueError:
        names = ", ".join(POLICIES)
        raise ValueError(f"systemd accepts {names}, and numbers") from None


def priority(text: str) -> int:
    """Return a priority, 0 to 99; ValueError."""
    said = f"priorities are 1 to {MAX_PRIORITY}"
    return integer(text, 0, MAX_PRIORITY, said=said)


def boolean_word(text: str) -> bool:
    """Return yes or no; ValueError."""
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ValueError("neither yes nor no")
    return value


def cpu_list(text: str, *, numa: bool = False) -> frozenset[int] | None:
    """
    Return the CPUs of a list; None for `numa`, which only systemd can expand.

    A range whose end is before its start is passed over, as systemd does.
    """
    words = list_words(text)
    if numa and words == ["numa"]:
        return None
    return frozenset(cpu for word in words for cpu in _cpus(word))


def list_words(text: str) -> list[str]:
    """Return the words of a list, separated by white space or commas; ValueError."""
    return [w for part in split(text) for w in part.split(",") if w]


def _cpus(word: str) -> Iterator[int]:
    match = _RANGE.fullmatch(word)
    if match is None:
        raise ValueError("not a CPU list")
    try:
        first = integer(match[1], 0, MAX_CPU)
        last = integer(match[2] or match[1], 0, MAX_CPU)
    except ValueError:
        raise ValueError("not a CPU list") from None
    yield from range(first, last + 1)


def backward_ranges(text: str) -> list[str]:
    """Return the ranges of a CPU list that systemd passes over, such as 3-1."""
    words = list_words(text)
    return [w for w in words if w != "numa" and "-" in w and not [*_cpus(w)]]


def split(text: str) -> list[str]:
    """Split at white space, with quotes and backslashes; ValueError if unbalanced."""
    try:
        return shlex.split(text, comments=False)
    except ValueError as error:
        raise ValueError("unbalanced quotes") from error


def size(text: str) -> int:
    """Return bytes of `64K`, `1.5G`, `1G 512M`, to the base 1024; ValueError."""
    total, at, smallest = 0, 0, 99
    while at < len(text):
        match = _SIZE.match(text, at)
        if match is None:
            raise ValueError("not a limit")
        power = "BKMGTPE".index(match[3] or "B")
        if power >= smallest:
            raise ValueError("not a limit")
        fraction = match[2] or ""
        scale = 1 << 10 * power
        total += int(match[1]) * scale + int(fraction or "0") * scale // 10 ** len(
            fraction
        )
        at, smallest = match.end(), power
    if not text.strip():
        raise ValueError("not a limit")
    return total


def time_us(text: str, *, unit_us: int = 1_000_000) -> int:
    """Return microseconds of `200ms`, `1min 30s`, a number of units; ValueError."""
    if text.strip() == "infinity":
        return INFINITY
    total, at = 0, 0
    while at < len(text.rstrip()):
        match = _PART_OF_TIME.match(text, at)
        if match is None or (match[4] and match[4] not in _US):
            raise ValueError("not a time")
        scale = _US[match[4]] if match[4] else unit_us
        whole, fraction = int(match[1] or "0"), match[2] or match[3] or ""
        total += whole * scale + int(fraction or "0") * scale // 10 ** len(fraction)
        at = match.end()
    if not text.strip():
        raise ValueError("not a time")
    return total


def _nice_limit(text: str) -> int:
    if text[:1] in "+-" and text:
        return 20 - nice_value(text)
    return integer(text, 0, 40)


Limit = tuple[int, int]
"""Soft and hard."""


def limit(read: Callable[[str], int], text: str) -> Limit:
    """Return `soft:hard`, or one value for both; ValueError."""
    if read is _nice_limit and "infinity" in text:
        raise ValueError("not a limit")
    soft, colon, hard = text.partition(":")
    both = [
        INFINITY if part == "infinity" else _limit_part(read, part)
        for part in (soft, hard if colon else soft)
    ]
    if both[1] != INFINITY and (both[0] == INFINITY or both[0] > both[1]):
        raise ValueError("the soft limit is above the hard one")
    return both[0], both[1]


def _limit_part(read: Callable[[str], int], text: str) -> int:
    try:
        return read(text)
    except ValueError:
        raise ValueError("not a limit") from None


def _weight(text: str) -> int:
    return 0 if text == "idle" else integer(text, 1, MAX_WEIGHT)


def _quota(text: str) -> str:
    match = _QUOTA.fullmatch(text)
    if match is None:
        raise ValueError("write a percentage, such as 50%")
    if not re.search(r"[1-9]", text):
        raise ValueError("a share of nothing")
    return text


def _slice(text: str) -> str:
    if not re.fullmatch(r"[\w:.\\-]+\.slice", text):
        raise ValueError("no name of a slice")
    return text


def _nodes(text: str) -> object:
    return text if text == "all" else cpu_list(text)


def _slack_ns(text: str) -> object:
    bare = re.sub(r"(?<=\d)\s*n(?:s|sec)\b", "", text)
    return time_us(bare, unit_us=1)


def _one_of(names: tuple[str, ...], text: str) -> str:
    if text not in names:
        raise ValueError(f"systemd accepts {', '.join(names)}")
    return text


def _io_class(text: str) -> int:
    if text in _IO_CLASSES:
        return _IO_CLASSES[text]
    try:
        return integer(text, 0, _MOST_IO_CLASS)
    except ValueError:
        raise ValueError(f"systemd accepts {', '.join(_IO_CLASSES)}") from None


def _user(text: str) -> str:
    odd = re.search(r"[:/\x00-\x1f\x7f]", text) or text in (".", "..")
    if odd or (_ID.fullmatch(text) and int(text) in _NO_IDS):
        raise FatalValueError("not a user's name or number")
    return text


def _fatal_boolean(text: str) -> bool:
    try:
        return boolean_word(text)
    except ValueError as error:
        raise FatalValueError(str(error)) from None


PREFIXES = "-@:+!|"
"""Of a command (systemd.service(5), table 2)."""


def command(text: str) -> str:
    """Return the prefixes of a command; FatalValueError if it cannot be one."""
    bare = text.lstrip(PREFIXES)
    prefixes = text[: len(text) - len(bare)]
    try:
        words = split(bare)
    except ValueError:
        raise FatalValueError("unbalanced quotes") from None
    path = words[0] if words else ""
    if path.startswith("/") and not path.endswith("/"):
        return prefixes
    if not path or "/" in path:
        error = ValueError if "-" in prefixes else FatalValueError
        raise error("neither an absolute path nor a name")
    return prefixes


nice_value = partial(integer, low=-20, high=19)
rtprio_limit = partial(limit, partial(integer, low=0, high=2**64 - 1))
bytes_limit = partial(limit, size)
rttime_limit = partial(limit, partial(time_us, unit_us=1))

LIMITS: Mapping[str, Callable[[str], Limit]] = {
    "LimitRTPRIO": rtprio_limit,
    "LimitMEMLOCK": bytes_limit,
    "LimitRTTIME": rttime_limit,
    "LimitNICE": partial(limit, _nice_limit),
}

SYNTAX: Mapping[str, Callable[[str], object]] = {
    "CPUSchedulingPolicy": policy,
    "CPUSchedulingPriority": priority,
    "CPUSchedulingResetOnFork": boolean_word,
    "RestrictRealtime": boolean_word,
    "CPUAffinity": partial(cpu_list, numa=True),
    "AllowedCPUs": cpu_list,
    "StartupAllowedCPUs": cpu_list,
    "NUMAPolicy": partial(_one_of, _NUMA_POLICIES),
    "NUMAMask": _nodes,
    "TimerSlackNSec": _slack_ns,
    "Slice": _slice,
    "Nice": nice_value,
    "IOSchedulingClass": _io_class,
    "IOSchedulingPriority": partial(integer, low=0, high=7),
    **LIMITS,
    "CPUWeight": _weight,
    "StartupCPUWeight": _weight,
    "CPUShares": partial(integer, low=2, high=262_144),
    "CPUQuota": _quota,
    "CPUQuotaPeriodSec": time_us,
    "User": _user,
    "Group": _user,
    "DynamicUser": _fatal_boolean,
    "ExecStart": command,
}
"""How each setting that is read here is read by systemd."""

NEVER_EMPTY = frozenset(
    {
        *("CPUSchedulingPriority", "CPUSchedulingResetOnFork", "RestrictRealtime"),
        *("DynamicUser", "Slice", "TimerSlackNSec", *LIMITS),
    }
)
"""An empty value of these is refused; of the others it forgets what stood before."""

EXPANDED = frozenset({"User", "Group", "CPUAffinity", "AllowedCPUs", "ExecStart"})
"""Settings in which systemd replaces specifiers, such as %i."""

_CAPABILITIES = frozenset(f"CAP_{name}" for name in CAPABILITIES)


def unknown_capabilities(text: str) -> list[str]:
    """Return the words that name no capability: systemd passes them over in silence."""
    words = text.removeprefix("~").split()
    return [w for w in words if not w.isdecimal() and w.upper() not in _CAPABILITIES]
