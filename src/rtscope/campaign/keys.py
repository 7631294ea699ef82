"""
Every key that a campaign may have, and the one function that reads its value.

A reader takes what was found (in TOML, in JSON or as an option) and where, and
returns the value in rtscope's own units or raises UsageError with what to write.
The reference manual of campaign files is made from `TABLES`.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rtscope.campaign import values
from rtscope.campaign.model import POLICIES
from rtscope.campaign.values import Read, shown
from rtscope.cpulist import format_cpulist, parse_cpulist
from rtscope.errors import UsageError
from rtscope.loads import get_load
from rtscope.units import (
    MAX_DURATION_NS,
    NS_PER_DAY,
    NS_PER_H,
    NS_PER_S,
    NS_PER_US,
    exact_duration,
    parse_claim,
)

MAX_SEED = 2**63 - 1

Write = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a campaign file, the field it fills, and its way in and out."""

    name: str
    field: str
    read: Read
    says: str
    write: Write = lambda value: value


def _load(value: object, where: str) -> str:
    try:
        return get_load(values.read_text(value, where)).name
    except UsageError as error:
        if str(error).startswith(where):
            raise
        raise UsageError(f"{where}: {error}") from error


_HOST = re.compile(r"(?:[A-Za-z0-9_][\w.+-]*@)?[A-Za-z0-9_\[:][\w.:%\]-]*", re.ASCII)
_BOARD = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def _target(value: object, where: str) -> str:
    text = values.read_text(value, where)
    kind, _, name = text.partition(":")
    # A name that begins with "-" would be an option to ssh.
    known = {"local": "", "ssh": _HOST, "virtual": _BOARD}.get(kind)
    if text != "local" and not (
        isinstance(known, re.Pattern) and len(name) <= 255 and known.fullmatch(name)
    ):
        raise UsageError(
            f"{where}: {shown(text)}: write local, ssh:HOST or virtual:BOARD; a host "
            "is a name or address as ssh takes it and does not begin with '-'"
        )
    return text


def _command(value: object, where: str) -> tuple[str, ...]:
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise UsageError(f"{where}: {shown(value)}: a quote is not closed") from error
    if not isinstance(words, list | tuple) or not 0 < len(words) <= values.MAX_ITEMS:
        raise UsageError(
            f'{where}: {shown(value)}: write a command such as ["iperf3", "-c", "host"]'
        )
    for word in words:
        if not isinstance(word, str) or "\0" in word or len(word) > values.MAX_TEXT:
            raise UsageError(f"{where}: {shown(word)}: each word is a text in quotes")
    if not words[0]:
        raise UsageError(f"{where}: the first word is the program; write its name")
    return tuple(words)


def _path(value: object, where: str) -> str:
    text = values.read_text(value, where)
    if text.startswith("-"):
        raise UsageError(f"{where}: {shown(text)} begins with '-'; write ./{text}")
    return text


_KERNEL_NAME = re.compile("[a-z0-9][a-z0-9._+-]{0,60}")


def _kernel(value: object, where: str) -> str:
    text = values.read_text(value, where)
    if "/" in text:
        return _path(text, where)
    if not _KERNEL_NAME.fullmatch(text):
        raise UsageError(
            f"{where}: {shown(text)}: write for example debian-6.12-rt, or the path "
            "of an image with a slash, such as ./bzImage"
        )
    return text


def _seeds(value: object, where: str) -> tuple[int, ...]:
    """A count, for the seeds from 1 on, or the seeds themselves."""
    items = value
    if isinstance(value, str):
        words = [word.strip() for word in value.split(",")]
        numbers = [int(w) if re.fullmatch("[0-9]{1,19}", w) else w for w in words]
        items = numbers if len(numbers) > 1 else numbers[0]
    if isinstance(items, list | tuple):
        found: tuple[int, ...] = values.many(values.whole(0, MAX_SEED))(items, where)
        return found
    return tuple(range(1, values.whole(1, values.MAX_ITEMS)(items, where) + 1))


def duration_text(duration_ns: int) -> str:
    """Write a duration as a campaign file has it: exact, without a space."""
    return exact_duration(duration_ns)


def _write_durations(values: tuple[int, ...]) -> object:
    return [duration_text(value) for value in values]


def _write_claim(claim: tuple[int, int]) -> object:
    return f"{claim[0]}/{duration_text(claim[1])}"


_CAMPAIGN = (
    Key("name", "name", values.read_text, "what to call it in reports"),
    Key(
        "order",
        "order",
        values.choice("order", "interleaved", "blocked"),
        "interleaved runs A B A B, blocked A A B B",
    ),
    Key(
        "settle",
        "settle_ns",
        values.duration(0, NS_PER_DAY, example="3m"),
        "how long the machine is left alone before the first run; a virtual board "
        "after each boot, in virtual time, 10s if nothing is said",
        duration_text,
    ),
    Key(
        "warmup",
        "warmup_ns",
        values.duration(0, NS_PER_H, example="1s"),
        "how long a load runs before its samples count",
        duration_text,
    ),
    Key(
        "deadline",
        "deadline_ns",
        values.duration(1, MAX_DURATION_NS, example="200us"),
        "the latency that must not be exceeded; asks for a verdict",
        duration_text,
    ),
    Key(
        "claim",
        "claim",
        values.parsed(parse_claim, example="1/1h"),
        "what is to be shown: fewer than so many misses in so much time",
        _write_claim,
    ),
    Key(
        "min_boots",
        "min_boots",
        values.whole(1, 10_000),
        "how many boots a claim needs",
    ),
    Key("seed", "seed", values.whole(0, MAX_SEED), "the seed of a virtual board"),
    Key(
        "seeds",
        "seeds",
        _seeds,
        "run everything with each of these seeds of a virtual board: 8 for 1 to 8, or "
        "a list",
        list,
    ),
    Key(
        "require_identical",
        "require_identical",
        values.flag,
        "repetitions on a virtual board must have identical results, else the exit "
        "status is 1",
    ),
    Key("worst", "worst", values.whole(1, 64), "worst wake-ups to keep per CPU"),
    Key(
        "record",
        "record",
        values.flag,
        "on a virtual board: record the paths to the worst wake-ups",
    ),
    Key(
        "explain",
        "explain",
        values.flag,
        "on a machine: record what its kernel did around the worst wake-ups, and "
        "measure what recording costs",
    ),
    Key(
        "deadline_runtime",
        "deadline_runtime_ns",
        values.duration(NS_PER_US, 10 * NS_PER_S, example="50us"),
        "policy deadline: run time reserved per interval; without it half of that",
        duration_text,
    ),
    Key("command", "command", _command, "the custom load, word by word", list),
    Key(
        "files",
        "files",
        values.many(_path),
        "files that a virtual board has below /files: what the custom load runs or "
        "inserts",
        list,
    ),
)
_TARGET = (
    Key("address", "target", _target, "local, ssh:HOST or virtual:BOARD"),
    Key(
        "governor",
        "governor",
        values.matching("[a-z_]{1,32}", example="performance"),
        "CPU frequency governor for the campaign; put back afterwards",
    ),
    Key(
        "hold_cpu_awake",
        "hold_cpu_awake",
        values.flag,
        "forbid idle states; flatters the machine unless the application does it too",
    ),
    Key(
        "rt_throttling",
        "rt_throttling",
        values.choice("setting", "keep", "off"),
        "off: no limit on real-time threads during the campaign; put back afterwards",
    ),
    Key(
        "tuned",
        "tuned",
        values.many(values.matching("[a-z0-9_]{1,64}", example="safe")),
        "checks of rtscope audit whose remedies hold for the campaign, or safe; put "
        "back afterwards",
        list,
    ),
    Key(
        "storage_dir",
        "storage_dir",
        _path,
        "where the storage load works: a directory on a real disk",
    ),
    Key("qemu", "qemu", _path, "your own QEMU for a virtual board: its path"),
    Key(
        "locked",
        "locked",
        _path,
        "a lock file: make a virtual board of exactly these packages",
    ),
)
_KERNEL = (
    Key(
        "names",
        "kernels",
        values.many(_kernel),
        "kernels to measure, names or images' paths; without it the one that runs",
        list,
    ),
)
_RUN = (
    Key("load", "loads", values.many(_load), "loads, see rtscope run --help", list),
    Key(
        "duration",
        "durations_ns",
        values.many(values.duration(NS_PER_S, MAX_DURATION_NS, example="10m")),
        "how long each run measures",
        _write_durations,
    ),
    Key(
        "policy",
        "policy_names",
        values.many(values.choice("policy", *POLICIES)),
        "scheduling policy of the measuring threads",
        list,
    ),
    Key(
        "priority",
        "priorities",
        values.many(values.whole(1, 99)),
        "their priority; fifo and rr only",
        list,
    ),
    Key(
        "interval",
        "intervals_ns",
        values.many(values.duration(10 * NS_PER_US, 10 * NS_PER_S, example="200us")),
        "time between two wake-ups",
        _write_durations,
    ),
    Key("repetitions", "repetitions", values.whole(1, 10_000), "how often each is run"),
    Key(
        "cpus",
        "cpus",
        values.parsed(parse_cpulist, example="0-3"),
        "CPUs to measure; without it all that may be used",
        format_cpulist,
    ),
)

TABLES: Mapping[str, Mapping[str, Key]] = {
    table: {key.name: key for key in keys}
    for table, keys in (
        ("campaign", _CAMPAIGN),
        ("target", _TARGET),
        ("kernel", _KERNEL),
        ("run", _RUN),
    )
}
