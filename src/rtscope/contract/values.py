"""
What lines of the agent are made of: numbers and texts with their bounds, and what
counters of the machine grew by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_TEXT = 64 * 1024

HIST_SUB_BITS = 10
"""Each power of two is cut into 2^10 buckets: a bucket spans ≤ 0.1 % of its values."""

HIST_MAX_BITS = 34
"""Latencies of 2^34 ns (17 s) and more are counted in `beyond`."""


def _decimal(value: object) -> object:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value) if len(value) <= 39 else value
    return value if isinstance(value, int) else None


Count = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
"""A count or a time in ns: a 64-bit integer that cannot be negative."""

Whole = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""A 64-bit integer with its sign."""

Finite = Annotated[float, Field(ge=-1e18, le=1e18, allow_inf_nan=False)]
"""A number that can be printed and divided; JSON has 1e400."""

Times = Annotated[int, Field(ge=0, le=2**45, strict=True)]
"""How often something happened in a run: 2^45 is ten years at 10 us. Sums fit int64."""

BucketLow = Annotated[int, Field(ge=0, lt=1 << HIST_MAX_BITS, strict=True)]
"""Where a bucket of a histogram starts, in ns."""

Sum = Annotated[
    int,
    BeforeValidator(_decimal),
    Field(ge=0, lt=2**128, strict=True),
    PlainSerializer(str, return_type=str, when_used="json"),
]
"""A sum that may not fit 64 bits; in JSON a decimal string."""

SCHEMA = 2
"""The version of the contract: 2 was the first, and 1 is never used."""


def _known_schema(schema: int) -> int:
    if schema == SCHEMA:
        return schema
    raise ValueError(
        f"the agent speaks version {schema}, and this rtscope version {SCHEMA}, of "
        "their contract; build the agent of this rtscope: make agent"
    )


Schema = Annotated[
    int, Field(ge=0, lt=2**31, strict=True), AfterValidator(_known_schema)
]


def without_default(
    written: dict[str, Any], key: str, default: object
) -> dict[str, Any]:
    """Leave a key out that has its default: older records stay equal to the byte."""
    if written.get(key) == default:
        written.pop(key, None)
    return written


Text = Annotated[str, Field(max_length=MAX_TEXT, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Cpu = Annotated[int, Field(ge=0, lt=2**16, strict=True)]


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """How often something happened on each CPU between start and end."""

    id: Text
    name: Text
    per_cpu: Mapping[Cpu, Count]


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Where the time of one CPU went during the run, from /proc/stat."""

    cpu: Cpu
    steal_ns: Count
    irq_ns: Count
    softirq_ns: Count
    user_ns: Count
    system_ns: Count
    idle_ns: Count
