"""
What a machine is and how it is set up: facts, what they mean, what they say of CPUs.

`facts.toml` says where each fact is read, in which form, and what it means; `gather`
reads them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pydantic import TypeAdapter

from rtscope.contract import Finite, Text, Whole
from rtscope.host.errors import UsageError
from rtscope.machine.cpulist import parse_cpulist

Value = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactValue:
    """A fact about the machine; `value` is None if unknown, `reason` then says why."""

    value: str | Whole | Finite | bool | tuple[str, ...] | None
    source: Text
    """The file or call that it was read from."""
    reason: Text = ""


@dataclass(frozen=True, slots=True)
class FactKind:
    """A row of `facts.toml`."""

    name: str
    title: str
    means: str
    paths: tuple[str, ...]
    parser: str
    key: str = ""
    absent: str = ""
    """Why there is no value when none of the paths exists."""
    volatile: bool = False
    """A reading that changes by itself: no setting, and no identity."""


@cache
def catalogue() -> Mapping[str, FactKind]:
    """Return every kind of fact by its name, in the order of the file."""
    text = resources.files("rtscope.machine").joinpath("facts.toml").read_text("utf-8")
    kind = TypeAdapter(FactKind)
    rows = tomllib.loads(text).items()
    return {name: kind.validate_python({"name": name, **row}) for name, row in rows}


def memory_available_bytes(facts: Mapping[str, FactValue]) -> int | None:
    """Return how much memory a load may take before the machine swaps, in bytes."""
    available = facts.get("memory_available_kb")
    known = available.value if available else None
    return known * 1024 if isinstance(known, int) else None


def value_of_cpus(fact: FactValue, cpus: tuple[int, ...]) -> Mapping[int, str]:
    """Undo `per_cpu`: return the value of each of these CPUs that is known."""
    if fact.value is None:
        return {}
    if not isinstance(fact.value, tuple):
        return {cpu: str(fact.value) for cpu in cpus}
    values: dict[int, str] = {}
    for group in fact.value:
        listed, _, value = group.partition("=")
        values |= {cpu: value for cpu in cpus_in(listed) or () if cpu in cpus}
    return values


def cpus_in(listed: object) -> frozenset[int] | None:
    """Return the CPUs of a list, None if it is none."""
    if not isinstance(listed, str):
        return None
    try:
        return frozenset(parse_cpulist(listed))
    except UsageError:
        return None
