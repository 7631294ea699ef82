"""The kinds of values in a test file: pydantic types, with their messages."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from rtscope.boards.catalogue import get_board
from rtscope.host.errors import UsageError, quote
from rtscope.host.units import (
    NS_PER_H,
    NS_PER_MS,
    NS_PER_S,
    NS_PER_US,
    exact_duration,
    parse_duration,
)
from rtscope.machine.cpulist import format_cpulist, parse_cpulist
from rtscope.measure.campaign import values
from rtscope.measure.campaign.values import Written, duration_between

MAX_CYCLES = 10_000_000
MAX_STARTS = 1000
MAX_NUMBER = 10**12


def _cpus(text: str) -> tuple[int, ...]:
    return () if text.strip() == "all" else parse_cpulist(text)


def _cpus_text(cpus: tuple[int, ...]) -> str:
    return format_cpulist(cpus) or "all"


def pairs(value: object) -> object:
    """Read `A=B,C=D` of an option as a table."""
    if not isinstance(value, str):
        return value
    read = [one.partition("=") for one in value.split(",")]
    if any(not name or not mark for name, mark, _ in read):
        raise ValueError(f"{quote(value)}: write names and values, such as A=B,C=D")
    return {name: text for name, _, text in read}


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(-?[0-9]{1,12})\.\.(-?[0-9]{1,12})", text.strip())
    if match is None or int(match[1]) > int(match[2]):
        raise UsageError(f"{quote(text)}: write LOW..HIGH, such as 0..2000")
    return int(match[1]), int(match[2])


def _range_text(limits: tuple[int, int]) -> str:
    return f"{limits[0]}..{limits[1]}"


def _phase(text: str) -> tuple[int, int]:
    """Read `120us/1ms`, in ns."""
    after, slash, period = text.partition("/")
    period_ns = parse_duration(period) if slash else 0
    after_ns = 0 if after.strip() == "0" else parse_duration(after)
    if not slash or not 0 <= after_ns < period_ns <= NS_PER_S:
        raise UsageError(
            f"{quote(text)}: write a time and a longer period of at most 1 s, such as "
            "120us/1ms"
        )
    return after_ns, period_ns


def phase_text(phase: tuple[int, int]) -> str:
    """Write a phase as in a test file."""
    after_ns, period_ns = phase
    after = exact_duration(after_ns) if after_ns else "0"
    return f"{after}/{exact_duration(period_ns)}"


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", text):
        raise ValueError(f"{quote(text)}: no name of an environment variable")
    return text


def _value(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"{quote(text)} has a zero byte; leave it out")
    return text


def _place(text: str) -> str:
    if ".." in text.split("/") or not text.strip("/"):
        raise ValueError(f"{quote(text)}: write the path that the board has, e.g. /etc")
    return text


def _known_board(text: str) -> str:
    try:
        return get_board(text).name
    except UsageError as error:
        raise ValueError(str(error)) from error


Board = Annotated[values.Text, AfterValidator(_known_board), Field(examples=["pc"])]
Package = Annotated[
    str,
    Field(strict=True, pattern=r"^[a-z0-9][a-z0-9+.-]{0,127}$", examples=["libfoo2"]),
]
Place = Annotated[values.Text, AfterValidator(_place)]
Policy = Annotated[values.RealtimePolicy, Field(title="policy")]
User = Annotated[
    str,
    Field(
        strict=True,
        pattern=r"^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,9}(:[0-9]{1,9})?)$",
        examples=["nobody"],
    ),
]
Variable = Annotated[str, Field(strict=True), AfterValidator(_name)]
Value = Annotated[
    str, Field(strict=True, max_length=values.MAX_TEXT), AfterValidator(_value)
]
Cpus = Annotated[
    tuple[int, ...], Written(_cpus, _cpus_text, "a list of CPUs, or all", "0-1")
]
Time = Annotated[int, duration_between(NS_PER_MS, NS_PER_H, example="2s")]
Wait = Annotated[int, duration_between(0, NS_PER_H, example="100ms")]
Limit = Annotated[int, duration_between(1, NS_PER_H, example="200us")]
Period = Annotated[int, duration_between(NS_PER_US, NS_PER_H, example="1ms")]
Number = Annotated[
    int, Field(strict=True, ge=0, le=MAX_NUMBER), BeforeValidator(values.number)
]
ThreadNumber = Annotated[
    str, Field(strict=True, pattern=r"^[1-9][0-9]{0,3}$", examples=["2"])
]
Phase = Annotated[
    tuple[int, int],
    Written(_phase, phase_text, "a time after a multiple of a period", "120us/1ms"),
]
Range = Annotated[
    tuple[int, int],
    Written(_range, _range_text, "two whole numbers, LOW..HIGH", "0..2000"),
]
Cycles = Annotated[
    int, Field(strict=True, ge=1, le=MAX_CYCLES), BeforeValidator(values.number)
]
Starts = Annotated[
    int, Field(strict=True, ge=1, le=MAX_STARTS), BeforeValidator(values.number)
]
