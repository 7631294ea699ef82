"""
Durations, microseconds, sizes and claims, as people type and read them.

Inside rtscope a time is an int of nanoseconds and a size an int of bytes; this
module is the only way in and out. All parsers are exact and raise UsageError with
the remedy.
"""

import math
import re
from fractions import Fraction

from rtscope.host.errors import UsageError, quote

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
NS_PER_MIN = 60 * NS_PER_S
NS_PER_H = 3_600 * NS_PER_S
NS_PER_DAY = 24 * NS_PER_H

MAX_DURATION_NS = 366 * NS_PER_DAY
MAX_CLAIM_MISSES = 1_000_000
MAX_SIZE_BYTES = 1 << 60

_DURATION_UNITS = {
    "d": NS_PER_DAY,
    "h": NS_PER_H,
    "m": NS_PER_MIN,
    "min": NS_PER_MIN,
    "s": NS_PER_S,
    "ms": NS_PER_MS,
    "us": NS_PER_US,
    "\N{MICRO SIGN}s": NS_PER_US,
    "\N{GREEK SMALL LETTER MU}s": NS_PER_US,
    "ns": 1,
}
_SIZE_UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,20})?"
_DURATION_PART = re.compile(rf"({_NUMBER})\s*({'|'.join(_DURATION_UNITS)})(?![a-z])\s*")
_SIZE = re.compile(rf"({_NUMBER})\s*(?:([KMGT])(?:i?B)?|(B))", re.IGNORECASE)

_NO_VALUE = "–"  # noqa: RUF001 -- an en dash is what tables use for "nothing here"


MAX_DIGITS = 39
"""Of a whole number that is read: 128 bits."""


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number, of plain digits and not without end."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def parse_duration(text: str) -> int:
    """
    Read `200us`, `1.5h` or `1h30m`; return ns, exact, more than 0, at most 366 days.

    In a sum of parts each unit comes once, the larger first.
    """
    rest = text.strip()
    if re.fullmatch(_NUMBER, rest):
        raise UsageError(f"{rest}: no unit; write {rest}us, {rest}ms or {rest}s")
    total, last = Fraction(0), 2 * NS_PER_DAY
    while part := _DURATION_PART.match(rest):
        unit = _DURATION_UNITS[part[2]]
        if unit >= last:
            break
        total, last = total + Fraction(part[1]) * unit, unit
        rest = rest[part.end() :]
    if rest or last > NS_PER_DAY:
        raise UsageError(
            f"{quote(text)}: not a duration; write a number and a unit "
            "(ns, us, ms, s, m, h, d), for example 200us, 90s or 1h30m"
        )
    if total == 0:
        raise UsageError(f"{quote(text)}: not more than 0; write for example 1ms")
    if total.denominator != 1:
        raise UsageError(f"{quote(text)}: finer than 1 ns; write a whole number of ns")
    if total > MAX_DURATION_NS:
        raise UsageError(f"{quote(text)}: too long; write 366d or less")
    return int(total)


def exact_duration(ns: int) -> str:
    """Write ns with the largest unit that loses nothing: `parse_duration` undone."""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        if ns and ns % _DURATION_UNITS[unit] == 0:
            return f"{ns // _DURATION_UNITS[unit]}{unit}"
    return f"{ns}ns" if ns else "0s"


def parse_claim(text: str) -> tuple[int, int]:
    """Read `1/1h`, "fewer than one miss in an hour"; return (misses, ns)."""
    misses, slash, period = text.partition("/")
    if not slash or not re.fullmatch(r"[0-9]{1,7}", misses.strip()):
        raise UsageError(
            f"{quote(text)}: not a claim; write misses/time, for example 1/1h "
            "(fewer than one miss in an hour)"
        )
    if not 1 <= int(misses) <= MAX_CLAIM_MISSES:
        raise UsageError(
            f"{quote(text)}: not 1 to {MAX_CLAIM_MISSES:,} misses; no test can show "
            "zero misses: write 1/ and a longer time"
        )
    return int(misses), parse_duration(period)


def parse_size(text: str) -> int:
    """Read `64M` (K, M, G, T are powers of 1024; B is bytes); return bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{quote(text)}: not a size; write a number and a unit (B, K, M, G, T), "
            "for example 64M"
        )
    size = Fraction(match[1]) * _SIZE_UNITS[(match[2] or match[3]).upper()]
    if size.denominator != 1 or not 0 < size <= MAX_SIZE_BYTES:
        raise UsageError(
            f"{quote(text)}: not a whole number of bytes, 1 to 2^60; write for "
            "example 64M"
        )
    return int(size)


def format_duration(ns: float) -> str:
    """Write a time of 0 ns or more for people: `200 us`, `3.3 min`, `2 h 50 min`."""
    for unit, size, end in (
        ("ns", 1, 999.5),
        ("us", NS_PER_US, 999.5),
        ("ms", NS_PER_MS, 999.5),
        ("s", NS_PER_S, 119.5),
    ):
        if 0 < ns < end * size and ns != NS_PER_MIN:
            return f"{ns / size:.3g} {unit}"
    if ns <= 0:
        return "0 s"
    if ns < 9.95 * NS_PER_MIN:
        return f"{ns / NS_PER_MIN:.2g} min"
    minutes, hours = round(ns / NS_PER_MIN), round(ns / NS_PER_H)
    if minutes < 24 * 60:
        return _two_parts(*divmod(minutes, 60), units=("h", "min"))
    return _two_parts(*divmod(hours, 24), units=("d", "h"))


def format_us(ns: float | None, digits: int = 3) -> str:
    """
    Write ns as microseconds, without the unit: `0.500`, `12.3`, `1,235`.

    Below 100 us with that many significant digits, never finer than 1 ns; above as
    an integer. None and values that are no number become an en dash.
    """
    if ns is None or not math.isfinite(ns):
        return _NO_VALUE
    us = ns / NS_PER_US
    if us == 0:
        return "0"
    integer_digits = math.floor(math.log10(abs(us))) + 1
    decimals = min(3, max(0, digits - integer_digits))
    if round(abs(us), decimals) >= 100:
        return f"{us:,.0f}"
    return f"{us:.{decimals}f}"


def format_share(part_ns: int, whole_ns: int) -> str:
    """Write a share of a time in percent: `12.3 %`."""
    return f"{100 * part_ns / whole_ns:.1f} %" if whole_ns > 0 else "0.0 %"


def format_number(value: float, digits: int = 3) -> str:
    """Write a number with that many significant digits and no exponent: `21,900`."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def count(number: float) -> str:
    """Write a count or a rate with thousands apart; small rates keep two digits."""
    if number == int(number) or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def format_size(size_bytes: int) -> str:
    """Write bytes for people, in powers of 1024: `64 MiB`."""
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if round(size, 1) < 1024:
            break
        size, unit = size / 1024, larger
    return f"{round(size, 1 if size < 100 else 0):g} {unit}"


def _two_parts(large: int, small: int, *, units: tuple[str, str]) -> str:
    parts = [f"{n} {unit}" for n, unit in zip((large, small), units, strict=True) if n]
    return " ".join(parts)


_HISSING = ("ch", "sh", "s", "x")
"""Ends of nouns whose plural has another syllable."""


def plural(number: int, noun: str) -> str:
    """Write `1 run`, `2 runs`, `2 patches`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith(_HISSING) else 's'}"
