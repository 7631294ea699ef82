"""
Caveats as data: every one that a record may carry, with its effect on a verdict.

The catalogue is `caveats.toml`; a caveat that is not in it cannot be raised. Those that
the facts about a machine raise are here too.

The agent passes on what the kernel logged; `kernellog.toml` maps messages to caveats.
A message without a row counts if the kernel logged it as an error.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import Field

from rtscope.contract import KernelMessage
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.facts import FactValue, cpus_in, value_of_cpus


class Effect(StrEnum):
    """Effect of a caveat on a verdict, the worst first."""

    INVALID = "invalid"
    LIMIT = "limit"
    NOTE = "note"

    @property
    def label(self) -> str:
        """The word that a report shows."""
        return "LIMITS VERDICT" if self is Effect.LIMIT else self.value.upper()


class Counts(StrEnum):
    """Whether a run counts in a comparison, an effect, a ranking or a search."""

    YES = "yes"
    UNRANKED = "unranked"
    """It does, but its load is not shown to have run throughout, and has no rank."""
    NO = "no"


@dataclass(frozen=True, slots=True)
class CaveatKind:
    """A row of the catalogue."""

    id: str
    effect: Effect
    counts: Counts
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Caveat:
    """A caveat of one run; `detail` has the numbers or names of this run."""

    id: Annotated[str, Field(max_length=64)]
    detail: Annotated[str, Field(max_length=4096)] = ""


@cache
def catalogue() -> Mapping[str, CaveatKind]:
    """Return every kind of caveat by its id, in the order of the file."""
    text = (
        resources.files("rtscope.record.caveats")
        .joinpath("caveats.toml")
        .read_text("utf-8")
    )
    return {
        name: CaveatKind(
            id=name,
            effect=Effect(row["effect"]),
            counts=Counts(row.get("counts", _counts_by(Effect(row["effect"])))),
            message=row["message"],
            remedy=row["remedy"],
        )
        for name, row in tomllib.loads(text).items()
    }


def _counts_by(effect: Effect) -> Counts:
    return Counts.NO if effect is Effect.INVALID else Counts.YES


def kind_of(caveat: Caveat) -> CaveatKind:
    """Look a caveat up; one from a newer rtscope is kept and limits the verdict."""
    unknown = CaveatKind(
        id=caveat.id,
        effect=Effect.LIMIT,
        counts=Counts.YES,
        message=f"{caveat.id}: a caveat that this version of rtscope does not know",
        remedy="read the record with the version that wrote it",
    )
    return catalogue().get(caveat.id, unknown)


def uncounted(caveats: Iterable[Caveat]) -> Caveat | None:
    """Return the first caveat for which a run does not count; None if it does."""
    return next((one for one in caveats if kind_of(one).counts is Counts.NO), None)


def make(caveat_id: str, detail: str = "") -> Caveat:
    """Raise a caveat; KeyError for an id that the catalogue lacks (a bug of ours)."""
    return Caveat(catalogue()[caveat_id].id, detail[:4096])


def gravest_first(caveats: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Sort by effect, then by the order of the catalogue; drop exact repetitions."""
    effects = list(Effect)
    order = list(catalogue())

    def rank(caveat: Caveat) -> tuple[int, int, str]:
        position = order.index(caveat.id) if caveat.id in order else len(order)
        return effects.index(kind_of(caveat).effect), position, caveat.detail

    return tuple(sorted(set(caveats), key=rank))


# --- caveats of the facts about a machine -------------------------------------------

Facts = Mapping[str, FactValue]

_NOT_READ = FactValue(value=None, source="", reason="not read")


def caveats_from(
    before: Facts, after: Facts, *, cpus: tuple[int, ...], virtual: bool = False
) -> tuple[Caveat, ...]:
    """
    Return the caveats that follow from the facts around a run on these CPUs.

    Of unknown facts only the one about the kernel raises a caveat; the facts themselves
    show the others.
    """
    return (
        *_surroundings(before, virtual=virtual),
        *_kernel(before),
        *_settings(before, after, cpus=cpus),
        *_changes(before, after, cpus=cpus),
    )


def _surroundings(facts: Facts, *, virtual: bool) -> Iterator[Caveat]:
    guest = _fact(facts, "guest")
    # A virtual board is a guest whose time the host cannot touch: `virtual_board`.
    if guest.value is True and not virtual:
        name = _fact(facts, "hypervisor").value or "unnamed hypervisor"
        yield make("guest", f"{name}: {guest.source}")
    container = _fact(facts, "container")
    if container.value is True:
        kind = _fact(facts, "container_kind").value or "unknown kind"
        yield make("container", f"{kind}: {container.source}")


def _kernel(facts: Facts) -> Iterator[Caveat]:
    realtime = facts.get("preempt_rt")
    if realtime is None:
        return
    if realtime.value is None:
        yield make("kernel_unknown", realtime.reason)
    elif realtime.value is False:
        model = _fact(facts, "preemption_model").value or "unknown"
        yield make(
            "not_realtime_kernel", f"{realtime.source}; preemption model: {model}"
        )


def _settings(
    before: Facts, after: Facts, *, cpus: tuple[int, ...]
) -> Iterator[Caveat]:
    cpus_with: dict[str, set[int]] = {}
    for facts in (before, after):
        for cpu, governor in value_of_cpus(_fact(facts, "governor"), cpus).items():
            cpus_with.setdefault(governor, set()).add(cpu)
    cpus_with.pop("performance", None)
    if cpus_with:
        detail = "; ".join(
            f"CPU {format_cpulist(where)}: {governor}"
            for governor, where in sorted(cpus_with.items())
        )
        yield make("governor", detail)

    throttling = _fact(before, "rt_throttling")
    if throttling.value is True:
        runtime = _fact(before, "rt_runtime_us").value
        period = _fact(before, "rt_period_us").value
        share = f"{runtime} us of each {period} us"
        yield make("rt_throttling", f"{share}; {throttling.source}")

    used = [_fact(facts, "swap_used_kb").value for facts in (before, after)]
    if any(isinstance(kb, int) and kb > 0 for kb in used):
        yield make("swap_active", f"{used[0]} kB used before, {used[1]} kB after")


def _changes(before: Facts, after: Facts, *, cpus: tuple[int, ...]) -> Iterator[Caveat]:
    first, last = _fact(before, "clocksource").value, _fact(after, "clocksource").value
    if first is not None and last is not None and first != last:
        yield make("clocksource_changed", f"from {first} to {last}")

    former = cpus_in(_fact(before, "cpus_online").value)
    online = cpus_in(_fact(after, "cpus_online").value)
    if former and online and former != online:
        were, are = format_cpulist(former), format_cpulist(online)
        yield make("cpus_changed", f"online: {were}, then {are}")
    gone = set(cpus) - online if online else set()
    if gone:
        yield make("cpu_offline", f"CPU {format_cpulist(gone)}")


def _fact(facts: Facts, name: str) -> FactValue:
    return facts.get(name, _NOT_READ)


# --- kernel messages during a run, as caveats -----------------------------------------

ERROR_LEVEL = 3
"""syslog's `err`: emerg, alert, crit and err are errors, warning is not."""

MAX_CHARACTERS = 240
"""Of each first message: a line of text, not a stack dump."""

MAX_LINE_CHARACTERS = 1024
"""The kernel cuts its lines there (PRINTKRB_RECORD_MAX); more is not looked at."""

OOM_LOAD = "oom"


@dataclass(frozen=True, slots=True)
class MessageKind:
    """A row of the table: messages in which `pattern` is found raise `caveat`."""

    pattern: re.Pattern[str]
    caveat: str
    title: str


@cache
def table() -> tuple[MessageKind, ...]:
    """Return the rows of `kernellog.toml`, first match first."""
    text = (
        resources.files("rtscope.record.caveats")
        .joinpath("kernellog.toml")
        .read_text("utf-8")
    )
    return tuple(
        MessageKind(re.compile(row["pattern"]), row["caveat"], row["title"])
        for row in tomllib.loads(text)["message"]
    )


OTHER_ERROR = MessageKind(re.compile(""), "kernel_warning", "other error")


def kind_of_message(message: KernelMessage) -> MessageKind | None:
    """Classify a message; None if it raises no caveat."""
    line = message.text[:MAX_LINE_CHARACTERS].partition("\n")[0]
    for kind in table():
        if kind.pattern.search(line):
            return kind
    return OTHER_ERROR if message.level <= ERROR_LEVEL else None


def caveats_from_log(
    messages: Sequence[KernelMessage], *, load: str
) -> tuple[Caveat, ...]:
    """
    Return one caveat for each id, with how many messages of each kind, and the first.

    `load` is the name of the load that ran: the one called `oom` is meant to kill.
    """
    by_caveat: dict[str, dict[str, list[str]]] = {}
    for message in messages:
        kind = kind_of_message(message)
        if kind is not None:
            titles = by_caveat.setdefault(kind.caveat, {})
            titles.setdefault(kind.title, []).append(message.text)
    return tuple(
        make(caveat, _expected(caveat, load) + _listed(titles))
        for caveat, titles in by_caveat.items()
    )


WARNINGS = ("kernel_warning", "kernel_stall", "rt_throttled")
"""Caveats of messages that tell of the whole boot, whenever they came."""


def caveats_from_outside(
    boot: Iterable[KernelMessage], measured: Collection[KernelMessage]
) -> Iterator[Caveat]:
    """Yield the caveat of warnings in a boot's log that are not those `measured`."""
    told = {message.text for message in measured}
    titles: dict[str, list[str]] = {}
    for message in boot:
        kind = kind_of_message(message)
        if kind is None or kind is OTHER_ERROR or message.text in told:
            continue
        if kind.caveat in WARNINGS:
            titles.setdefault(kind.title, []).append(message.text)
    if titles:
        yield make("kernel_warned_outside", _listed(titles))


def _expected(caveat: str, load: str) -> str:
    if caveat == "oom_kill" and load == OOM_LOAD:
        return "expected under this load; "
    return ""


def _listed(titles: dict[str, list[str]]) -> str:
    return "; ".join(
        f"{title}: {_count(texts)}: {_first_line(_telling(texts))}"
        for title, texts in titles.items()
    )


def _telling(texts: list[str]) -> str:
    """Return the first message that is more than the line above a dump."""
    return next((text for text in texts if not text.startswith("-----")), texts[0])


def _count(texts: list[str]) -> str:
    return "1 message" if len(texts) == 1 else f"{len(texts)} messages, the first"


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    if len(line) <= MAX_CHARACTERS:
        return line
    return line[: MAX_CHARACTERS - 1] + "…"
