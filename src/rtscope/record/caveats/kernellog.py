"""
Kernel messages during a run, as caveats.

The agent passes on what the kernel logged; `kernellog.toml` maps messages to caveats.
A message without a row counts if the kernel logged it as an error.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rtscope.contract import KernelMessage
from rtscope.record.caveats.catalogue import Caveat, make

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


def kind_of(message: KernelMessage) -> MessageKind | None:
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
        kind = kind_of(message)
        if kind is not None:
            titles = by_caveat.setdefault(kind.caveat, {})
            titles.setdefault(kind.title, []).append(message.text)
    return tuple(
        make(caveat, _expected(caveat, load) + _listed(titles))
        for caveat, titles in by_caveat.items()
    )


def _expected(caveat: str, load: str) -> str:
    if caveat == "oom_kill" and load == OOM_LOAD:
        return "expected under this load; "
    return ""


def _listed(titles: dict[str, list[str]]) -> str:
    return "; ".join(
        f"{title}: {_count(texts)}: {_first_line(texts[0])}"
        for title, texts in titles.items()
    )


def _count(texts: list[str]) -> str:
    return "1 message" if len(texts) == 1 else f"{len(texts)} messages, the first"


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    if len(line) <= MAX_CHARACTERS:
        return line
    return line[: MAX_CHARACTERS - 1] + "…"
