"""The lines of the agent's `apply` and `hold`: settings, changed or refused."""

from dataclasses import dataclass, field
from typing import Literal

from rtscope.contract.scalars import Count, Text


@dataclass(frozen=True, slots=True)
class Applied:
    """A setting is as it was asked for; it was before if `old` is `value`."""

    type: Literal["applied"] = field(kw_only=True, default="applied")
    knob: Text
    index: Count
    """Of the CPU, interrupt, ...; see `KNOB_STRIDE` in `agent/knob.h`."""
    old: Text
    value: Text


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting could not be made, or put back; `cause` is a word of the contract."""

    type: Literal["refused"] = field(kw_only=True, default="refused")
    knob: Text
    index: Count
    value: Text
    cause: Text
    reason: Text


@dataclass(frozen=True, slots=True)
class Tuned:
    """Every setting was tried; with `hold` they stay until the host ends it."""

    type: Literal["tuned"] = field(kw_only=True, default="tuned")
    schema: Count
    applied: Count
    already: Count
    refused: Count
