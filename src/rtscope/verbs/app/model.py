"""What was seen of a process, and what was found in it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rtscope.contract import WatchBegin, WatchedThread, WatchEnd, sha256_of_json
from rtscope.machine.tasks.model import Listing, Thread
from rtscope.programs.naming import BareFile, NamedStack
from rtscope.verbs.app.executed import Execution
from rtscope.verbs.app.runtimes import Runtime


class Weight(StrEnum):
    """How much a finding delays a thread."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


RANK = {Weight.HIGH: 0, Weight.MEDIUM: 1, Weight.LOW: 2}


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A row of `findings.toml`: a rule with its title, reason and remedy."""

    title: str
    weight: Weight
    why: str
    remedy: str
    variants: Mapping[str, "FindingKind"] = field(default_factory=dict)
    """The same rule where title, weight or remedy differ, by a word."""


@cache
def finding_kinds() -> Mapping[str, FindingKind]:
    """Return the rules by their ids."""
    text = (
        resources.files("rtscope.verbs.app")
        .joinpath("findings.toml")
        .read_text("utf-8")
    )
    return {name: _kind(row) for name, row in tomllib.loads(text).items()}


def _kind(row: Mapping[str, Any]) -> FindingKind:
    variants = row.get("variants", {})
    return FindingKind(
        row["title"],
        Weight(row["weight"]),
        row["why"],
        row["remedy"],
        {name: _kind({**row, "variants": {}, **one}) for name, one in variants.items()},
    )


@dataclass(frozen=True, slots=True)
class EventStack:
    """A stack, and how many of the copied ones are the same."""

    stack: NamedStack
    times: int
    address: int
    """Of a page fault: what was touched first with this stack."""
    call: str = ""
    """Of a system call: its name."""
    key: int = 0
    """As in a sample: the word of a futex, or the first argument of a call."""
    own_memory: bool = False
    """The word is on the stack of the thread itself."""
    since_ns: int | None = None
    """When the watching of its thread began: of a program that a process executes all
    threads are watched anew. None: it was once."""


@dataclass(frozen=True, slots=True)
class Worst:
    """The longest of those that were seen from begin to end."""

    lasted_ns: int
    after_ns: int
    """When it began, from the begin of the watching."""
    where: str
    """The system call, or the thread that got the CPU; empty for others."""
    timed: int
    """How many were seen from begin to end."""
    total_ns: int
    """How long these lasted together."""


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A system call of a finding: why it may block, and how long it took."""

    name: str
    effect: str
    why: str
    count: int
    longest_ns: int
    """From its entry to its return."""
    slept: int
    """Times that the thread slept in it."""
    longest_sleep_ns: int
    in_kernel: int
    """Of these, where no signal ends it."""
    longest_in_kernel_ns: int
    ended_by: str
    """Who ended the longest sleep; empty if that is not known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that costs one thread, or the whole process, its real time."""

    id: str
    detail: str
    tid: int | None = None
    """None: of the whole process."""
    thread: str = ""
    count: int | None = None
    rate_per_s: float | None = None
    stacks: tuple[EventStack, ...] = ()
    """The most frequent first."""
    worst: Worst | None = None
    """None: how long it lasts cannot be seen, or was not."""
    variant: str = ""
    """Of its rule, where title, weight or remedy differ."""
    advice: str = ""
    """What to do here; empty: what the rule says."""
    calls: tuple[JudgedCall, ...] = ()
    """Of a finding about system calls: each one, the longest first."""

    @property
    def kind(self) -> FindingKind:
        """Its rule, with the words of its variant."""
        kind = finding_kinds()[self.id]
        return kind.variants[self.variant] if self.variant else kind

    @property
    def remedy(self) -> str:
        """What to do."""
        return self.advice or self.kind.remedy

    @property
    def weight(self) -> Weight:
        """How much it delays."""
        return self.kind.weight


@dataclass(frozen=True, slots=True)
class Unseen:
    """What could not be looked at: the findings it would show, cause and remedy."""

    ids: tuple[str, ...]
    what: str
    cause: str
    remedy: str
    by_nature: bool = False
    """Nothing on a virtual board shows it: it decides no exit status."""


OUTSIDE = "outside"
"""The cause of an event that is in no record of a virtual board."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What was seen of the threads: by an agent, or from outside of a board."""

    begin: WatchBegin
    threads: tuple[WatchedThread, ...]
    end: WatchEnd
    stacks: Mapping[tuple[int, str], tuple[EventStack, ...]]
    """By thread and kind of event."""
    own_faults: Mapping[int, int]
    """By thread, those that the probes made: not in the stacks, but in the counts."""
    from_outside: bool = False
    """Nothing in the machine watched: it cost the program nothing."""

    def stacks_of(self, thread: WatchedThread, event: str) -> tuple[EventStack, ...]:
        """Return those of a kind of event in a thread, the most frequent first."""
        return tuple(
            one
            for one in self.stacks.get((thread.tid, event), ())
            if one.since_ns in (None, thread.from_ns)
        )

    @property
    def window_ns(self) -> int:
        """How long it was watched."""
        return self.end.to_ns - self.begin.from_ns


@dataclass(frozen=True, slots=True)
class Files:
    """Files of /proc of the process; None where one could not be read."""

    status: str | None = None
    limits: str | None = None
    smaps: str | None = None
    environ: str | None = None
    denied: Mapping[str, str] | None = None
    """Why a file could not be read, by its name."""


@dataclass(frozen=True, slots=True)
class Observation:
    """All that was seen of one process."""

    pid: int
    name: str
    listing: Listing
    files: Files
    watch: Watch
    lazy_images: tuple[str, ...]
    """Files in its memory whose functions are looked up at their first call."""
    unread_images: Mapping[str, str]
    """Files in its memory that could not be read, and why."""
    no_probe: str
    """Why no function could be probed; empty if one could."""
    not_named: Mapping[str, str] = field(default_factory=dict)
    """Files whose functions have no names, and why."""
    bare_files: Mapping[str, BareFile] = field(default_factory=dict)
    """Files on its stacks that lack debug information."""
    executed: tuple[Execution, ...] = ()
    """Programs that its threads executed while it was watched."""
    runtimes: tuple[Runtime, ...] = ()
    """Those in it whose allocations are not seen."""
    no_probe_since: str = ""
    """Programs executed meanwhile whose allocator was not probed."""

    @property
    def threads(self) -> tuple[Thread, ...]:
        """Its threads, the first one first."""
        return tuple(t for t in self.listing.threads if t.line.pid == self.pid)


@dataclass(frozen=True, slots=True)
class Examined:
    """The result: what was found, what could not be seen, who was judged."""

    observation: Observation
    judged: tuple[Thread, ...]
    findings: tuple[Finding, ...]
    """The worst first."""
    unseen: tuple[Unseen, ...]


# --- the virtual board of a program: its label, and the digest ----------------------

DIGITS = 12
"""Shown of a digest."""


@dataclass(frozen=True, slots=True)
class BoardLabel:
    """A board in words, and as a row of JSON."""

    name: str
    words: str
    """What its times are, and what is needed to get them again."""
    row: Mapping[str, Any]


def answer_digest(answer: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all findings, counts, times and stacks of an answer."""
    return sha256_of_json(answer)


def board_row(label: BoardLabel | None, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a JSON document says of a board; nothing of a real machine."""
    if label is None:
        return {}
    return {"virtual": {**label.row, "answer_digest": answer_digest(answer)}}


def digest_words(answer: Mapping[str, Any]) -> str:
    """Return the digest for the last line of a terminal."""
    return (
        f"answer {answer_digest(answer)[:DIGITS]}: the same command gives it again, "
        "with the same rtscope and libraries"
    )
