"""
What stands beside a record: `explain.json`, written, read, and asked what it lacks.

`rtscope explain` writes it, long after the record, which is never edited. It may come
by mail with the record: it is read within limits, and only for the result that it
names. Keys that a reader does not need may be missing. The verdict HELD AND EXPLAINED
takes its bound from here, and only if nothing is missing.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field as DataField
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from rtscope.host.errors import RecordError
from rtscope.host.files import read_bounded, write_atomically
from rtscope.host.files.documents import JsonShape, holds_too_much
from rtscope.host.files.jsontext import json_text
from rtscope.host.files.opening import is_there
from rtscope.host.units import format_us
from rtscope.record.model import RunRecord, refused

T = TypeVar("T")

EXPLAINED = "explain.json"
"""Lies beside the record of each run that was explained."""

SCHEMA: Literal[2] = 2
MAX_BYTES = 64 << 20
ATTRIBUTED = 0.95
"""Less of a wake-up with a cause is a caveat of its explanation."""

Whole = Annotated[int, Field(ge=-(1 << 62), le=1 << 62)]
Nanoseconds = Annotated[int, Field(ge=-(1 << 62), le=1 << 62)]
MAX_NAME = 1024
MAX_SENTENCE = 16384
MAX_EVIDENCE = 64
"""Lines of one segment."""
_LONGEST_BREAK = 8
"""Bytes between two lines of the document."""
Name = Annotated[str, Field(max_length=MAX_NAME)]
Sentence = Annotated[str, Field(max_length=MAX_SENTENCE)]
_SENTENCES = frozenset({"sentence", "evidence", "note", "notes"})
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of a wake-up's path with one cause; times in ns since the expiry."""

    part: Name = ""
    begin_ns: Nanoseconds
    end_ns: Nanoseconds
    executed_ns: Nanoseconds | None = None
    """Of it, time in which this CPU executed."""
    cause: Name
    name: Name
    task: Name = ""
    confidence: Name = ""
    callers: tuple[Name, ...] = ()
    functions: tuple[tuple[Name, Nanoseconds], ...] = ()
    """Functions that this CPU executed in it, longest first."""
    evidence: tuple[Sentence, ...] = ()

    @property
    def title(self) -> str:
        """The cause, and where it is, if that is known."""
        return _title(self.cause, self.name)


def _title(cause: str, name: str) -> str:
    return f"{cause} in {name}" if name else cause


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenInvariant:
    """A statement that must hold of every wake-up, and does not of this one."""

    invariant: Name
    """A name of `explain.invariants.Invariant`, in lower case."""
    begin_ns: Nanoseconds
    end_ns: Nanoseconds
    """Since the expiry: the causes of this time prove nothing."""
    values: Mapping[Name, Nanoseconds | Name] = field(default_factory=dict)
    """What was found, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakeup:
    """One of the worst wake-ups, explained."""

    cpu: Whole
    sequence: Whole = -1
    latency_ns: Nanoseconds
    attributed_share: Share
    sentence: Sentence
    parts: Mapping[Name, Nanoseconds] = field(default_factory=dict)
    residual_ns: Nanoseconds = 0
    dominant_segment: Whole | None
    """Index of the segment with the dominant cause."""
    dominant_ns: Nanoseconds | None = None
    """How long that cause took in all its segments; None in older explanations."""
    segments: tuple[Segment, ...]
    segments_left_out: Whole = 0
    """The shortest, where a document cannot hold all: the parts count them, too."""
    left_out_ns: Nanoseconds = 0
    """How long those took together."""
    notes: tuple[Sentence, ...]
    """What limits the explanation."""
    broken_invariants: tuple[BrokenInvariant, ...] = ()
    """Why it is not certain; older explanations were not checked."""

    @property
    def dominant(self) -> Segment | None:
        """The segment with the dominant cause; None if no cause is known."""
        at = self.dominant_segment
        if at is None or not 0 <= at < len(self.segments):
            return None
        return self.segments[at]

    @property
    def is_withdrawn(self) -> bool:
        """Whether broken invariants leave no dominant cause."""
        return self.dominant is None and bool(self.broken_invariants)

    @property
    def blamed_ns(self) -> int:
        """How long the dominant cause took; 0 if no cause is known."""
        one = self.dominant
        if one is None or self.dominant_ns is not None:
            return self.dominant_ns or 0
        return one.end_ns - one.begin_ns


@dataclass(frozen=True, slots=True)
class CauseSum:
    """A cause over all of the wake-ups."""

    cause: Name
    name: Name
    """Of the function; empty where there is no choice of them."""
    wakeups: Whole
    """In how many of them it occurs."""
    dominant_in: Whole
    """Of these wake-ups, those whose dominant cause it is."""
    sum_ns: Nanoseconds
    """In all of them together."""
    worst_ns: Nanoseconds
    """In the one that it took longest in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailCause:
    """A cause over the tail of a run."""

    cause: Name
    wakeups: Whole
    """Of how many it is the dominant cause."""
    sum_ns: Nanoseconds
    """How long it took in these; not how late they were."""
    worst_ns: Nanoseconds
    """In the one that it took longest in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The latest wake-ups of all: of how many the cause is known."""

    from_ns: Nanoseconds
    wakeups: Whole
    recorded: Whole
    not_recorded: Whole
    causes: tuple[TailCause, ...]


@dataclass(frozen=True, slots=True)
class LongestSection:
    """The longest observed critical section of a kind, without the interrupts in it."""

    section: Name
    """A value of `explain.bound.Section`."""
    duration_ns: Nanoseconds
    executed_ns: Nanoseconds | None = None
    """What this CPU executed from its begin to its end; None if that is not known."""
    name: Name = ""
    """The function that all of it was in; empty if that is not known."""
    callers: tuple[Name, ...] = ()
    """It and who called it, innermost first."""
    dominant_function: Name = ""
    """The function that it executed most in."""
    note: Sentence = ""
    """A limit of the recording, such as a missing begin."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """What one interrupt adds to a bound."""

    vector: Name
    arrivals: Whole
    longest_ns: Nanoseconds
    min_interarrival_ns: Nanoseconds | None
    """The least time from one arrival to the next; None for fewer than two."""
    max_in_window_ns: Nanoseconds
    """The most that it executed in a window as long as the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuBound:
    """Latency bound of one CPU from observed critical sections: `explain.bound`."""

    cpu: Whole
    bound_ns: Nanoseconds | None
    """With interrupts and additions to the paper's; None if they fill every window."""
    observed_max_ns: Nanoseconds = 0
    scheduling_ns: Nanoseconds = 0
    """L_IF: the paper's latency without interrupts."""
    complete: bool
    """Whether everything that the bound is made of was seen."""
    not_recorded: tuple[Name, ...] = ()
    """Parts that were not recorded; the bound may be too small by them."""
    sections: tuple[LongestSection, ...] = ()
    """One of each kind that was seen."""
    interrupts: tuple[Interrupt, ...] = ()
    """Most in a window first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The explanation of one run, as `explain.json` has it."""

    schema: Literal[2]
    rtscope: Name = ""
    run: Name = ""
    load: Name = ""
    kernel: Name = ""
    board: Name | None = None
    target: Name | None = None
    """Of a machine, which has no board."""
    result_digest: Digest
    wakeups: tuple[Wakeup, ...]
    causes: tuple[CauseSum, ...] = ()
    tail: Tail | None = None
    bounds: tuple[CpuBound, ...] = ()
    """None of a run whose sections were not recorded."""

    @property
    def worst(self) -> Wakeup | None:
        """The latest of the wake-ups."""
        return max(self.wakeups, key=lambda w: w.latency_ns, default=None)

    @property
    def worst_bound(self) -> CpuBound | None:
        """The bound of the CPU that could be latest; None without bounds."""
        endless = 1 << 62
        return max(
            self.bounds,
            key=lambda b: endless if b.bound_ns is None else b.bound_ns,
            default=None,
        )


@functools.cache
def _shape(of: type[T]) -> JsonShape[T]:
    return JsonShape(TypeAdapter(of))


def find_explained(
    paths: Sequence[Path], records: Sequence[RunRecord], *, log: Callable[[str], None]
) -> dict[str, Explained]:
    """
    Return the explanations that lie below or beside `paths`, by the result's digest.

    Log and leave out one that is damaged, or explains no result in `records`.
    """
    known = {record.result_digest for record in records}
    by_digest: dict[str, Explained] = {}
    for path in paths:
        for file in _files(path):
            try:
                one = read_explained(file)
            except RecordError as error:
                log(f"not shown: {error}")
                continue
            if one.result_digest not in known:
                log(f"not shown: {file} explains another result than the record's")
            elif one.bounds or one.result_digest not in by_digest:
                # Exact repetitions have one result: keep an explanation with bounds.
                by_digest[one.result_digest] = one
    return by_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blamed:
    """What `worst_cause` reads of a segment."""

    cause: Name
    name: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Late:
    """What it reads of a wake-up."""

    latency_ns: Nanoseconds
    dominant_segment: Whole | None
    segments: tuple[_Blamed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outline:
    """What it reads of all."""

    schema: Literal[2]
    result_digest: Digest
    wakeups: tuple[_Late, ...]


def worst_cause(path: Path, result_digest: str) -> str:
    """
    Return the dominant cause of the worst wake-up; empty: none, or another result.

    Nothing else is read, in less than half of the time. Raises as `read_explained`.
    """
    one: _Outline = _read(path, _shape(_Outline))
    worst = max(one.wakeups, key=lambda w: w.latency_ns, default=None)
    if one.result_digest != result_digest or worst is None:
        return ""
    at = worst.dominant_segment
    if at is None or not 0 <= at < len(worst.segments):
        return ""
    return _title(worst.segments[at].cause, worst.segments[at].name)


def read_explained(path: Path) -> Explained:
    """Read one explanation; RecordError if it is damaged or of another schema."""
    explained: Explained = _read(path, _shape(Explained))
    return explained


def _read(path: Path, shape: JsonShape[T]) -> T:
    text = read_bounded(path, limit=MAX_BYTES, kind="explanation")
    try:
        return shape.read(text)
    except ValidationError as error:
        again = "explain the record again: rtscope explain RECORD"
        raise refused(
            text, error, name=str(path), kind="explanation", known=SCHEMA, again=again
        ) from error


def fitted(explained: Explained) -> Explained:
    """
    Return an explanation that `read_explained` accepts.

    Of too many segments the longest stay, and the dominant one; each wake-up counts
    those that are left out, and a note says so. Long texts and lists are cut.
    """
    explained = _shape_of_texts(explained)
    most = max((len(one.segments) for one in explained.wakeups), default=0)
    while not _is_readable(explained) and most > 1:
        most = max(1, most * 2 // 3)
        explained = replace(
            explained,
            wakeups=tuple(_with_longest(one, most) for one in explained.wakeups),
        )
    return explained


def _is_readable(explained: Explained) -> bool:
    text = json_text(explained_as_dict(explained), indent=None).encode()
    breaks = sum(text.count(sign) for sign in (b",", b"{", b"[", b"}", b"]"))
    written = len(text) + _LONGEST_BREAK * breaks
    return written <= MAX_BYTES and not holds_too_much(text)


def _with_longest(wakeup: Wakeup, most: int) -> Wakeup:
    """Return a wake-up with so many segments at most, in their order."""
    segments, dominant = wakeup.segments, wakeup.dominant_segment
    if len(segments) <= most:
        return wakeup
    first = {} if dominant is None else {dominant: True}
    longest = sorted(
        range(len(segments)),
        key=lambda at: (at not in first, segments[at].begin_ns - segments[at].end_ns),
    )
    kept = sorted(longest[:most])
    gone = [segments[at] for at in longest[most:]]
    left_out = wakeup.segments_left_out + len(gone)
    left_out_ns = wakeup.left_out_ns + sum(one.end_ns - one.begin_ns for one in gone)
    notes = wakeup.notes[:-1] if wakeup.segments_left_out else wakeup.notes
    return replace(
        wakeup,
        segments=tuple(segments[at] for at in kept),
        dominant_segment=None if dominant is None else kept.index(dominant),
        segments_left_out=left_out,
        left_out_ns=left_out_ns,
        notes=(
            *notes,
            f"{EXPLAINED} has the {most:,} longest segments: {left_out:,} shorter "
            f"ones, together {format_us(left_out_ns)} µs, did not fit",
        ),
    )


def _shape_of_texts(explained: Explained) -> Explained:
    """Cut names, sentences and lists of evidence to lengths that a reader accepts."""

    def cut(value: Any, most: int = MAX_NAME) -> Any:
        if isinstance(value, str):
            return value if len(value) <= most else f"{value[: most - 1]}…"
        if isinstance(value, tuple):
            return tuple(cut(one, most) for one in value)
        if isinstance(value, Mapping):
            return {cut(key): cut(one, most) for key, one in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return replace(
                value, **{one.name: of_field(value, one) for one in fields(value)}
            )
        return value

    def of_field(value: Any, one: DataField[Any]) -> Any:
        content = getattr(value, one.name)
        if one.name == "evidence" and len(content) > MAX_EVIDENCE:
            more = f"and {len(content) - MAX_EVIDENCE:,} more"
            content = (*content[:MAX_EVIDENCE], more)
        return cut(content, MAX_SENTENCE if one.name in _SENTENCES else MAX_NAME)

    made = cut(explained)
    assert isinstance(made, Explained)
    return made


def explained_as_dict(explained: Explained) -> dict[str, Any]:
    """Write an explanation for JSON; `read_explained` gives it back."""
    document = TypeAdapter(Explained).dump_python(explained, mode="json")
    assert isinstance(document, dict)
    del document["board" if explained.board is None else "target"]
    return document


def write_explained(path: Path, explained: Explained) -> None:
    """Write an explanation; RecordError if it cannot be written."""
    text = json_text(explained_as_dict(explained), indent=1)
    write_atomically(path, text.encode())


def bounds_by_digest(
    explained: Mapping[str, Explained], records: Sequence[RunRecord]
) -> dict[str, int]:
    """Return, by the result's digest, the bounds of runs that nothing is missing of."""
    bounds = {}
    for record in records:
        one = explained.get(record.result_digest)
        if one is not None and not any(missing(one, record)):
            bounds[record.result_digest] = max(b.bound_ns or 0 for b in one.bounds)
    return bounds


def missing(explained: Explained, record: RunRecord) -> Iterator[str]:
    """Yield what an explanation lacks to complete a verdict; nothing if it does."""
    worst = explained.worst
    observed_ns = record.max_ns or 0
    if worst is None or worst.latency_ns != observed_ns:
        yield "the worst wake-up is not explained"
    if any(not w.segments for w in explained.wakeups):
        yield "a path was not kept"
    if any(w.notes or w.attributed_share < ATTRIBUTED for w in explained.wakeups):
        yield "an explanation has a caveat"
    if not explained.bounds:
        yield "no critical sections were recorded"
        return
    bounds = {one.cpu: one for one in explained.bounds}
    if not all(one.complete and one.bound_ns is not None for one in bounds.values()):
        yield "some critical sections or interrupts were lost, or have no bound"
    for thread in record.result.threads:
        if thread.cpu is None or thread.cpu not in bounds:
            yield "a measured CPU has no bound"
        elif (bounds[thread.cpu].bound_ns or 0) < (thread.max_ns or 0):
            yield f"CPU {thread.cpu} exceeded its bound"


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        candidates = [path.parent / EXPLAINED]
    elif is_there(path / EXPLAINED):
        candidates = [path / EXPLAINED]
    else:
        runs = path / "runs"
        folders = sorted(runs.iterdir()) if runs.is_dir() else []
        candidates = [folder / EXPLAINED for folder in folders]
    return [file for file in candidates if is_there(file)]
